"""Conformance checks: the contracts of kernels, posteriors, defences, widths, policies, attacks.

A new part is checked with one call, which is silent or names the requirement that is violated:

    from stoic import testing

    testing.check_defence(MyDefence(level=3.0))

The parts of this library go through the same checks. Nothing here needs a test framework.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from numbers import Real

import numpy as np

from stoic.adversaries import Adversary, Ledger, Round
from stoic.confidence import Confidence, Fixed
from stoic.data import Array, Choice, Integers, Observations, Targets
from stoic.defences import Defence, Trust
from stoic.domains import Box, Domain, Finite, Lattice
from stoic.environment import Environment
from stoic.history import History
from stoic.kernels import Kernel, Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.pending import NothingLeftError
from stoic.policies import Policy, View
from stoic.posteriors import Model, Posterior, Prior
from stoic.problems import Problem
from stoic.recipes import Parts
from stoic.requirements import (
    differences,
    fingerprint,
    no_warnings,
    refusal_of,
    require,
    require_close,
    unaltered,
)
from stoic.surrogate import Surrogate

# Results that a crash, an overflow or an adversary produces; none of them is an error.
ABSURD = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e6)
_WAITS = "a policy waits only if it plans, and only for something that is pending"


def example_domains() -> tuple[Domain, ...]:
    """One domain of every kind, none of them at the origin or of width 1."""
    rng = np.random.default_rng(20260401)
    mixed = Box(
        np.array([-3.0, 10.0, 0.0, 0.0]),
        np.array([2.0, 14.0, 1.0, 1.0]),
        lattices=(
            Lattice(np.array([1]), np.arange(10.0, 15.0)[:, None]),
            Lattice(np.array([2, 3]), np.eye(2)),
        ),
        candidates=64,
        climbs=3,
    )
    return (
        Finite(5.0 + 3.0 * rng.standard_normal((25, 2))),
        Box(np.array([4.0]), np.array([12.0]), candidates=64, climbs=3),
        mixed,
    )


def example_prior(domain: Domain) -> Prior:
    """Prior that suits ``example_observations``."""
    return Prior(Scaled(Matern52(0.3 * domain.widths), 2.0), 0.05, 1.0)


def example_observations(
    domain: Domain, n: int, seed: int = 0, absurd: bool = True
) -> Observations:
    """``n`` noisy results of a smooth function, one point twice, some with a noise of their own.

    With ``absurd``, every fourth result is an outlier of 20 deviations, or one of ``ABSURD``.
    """
    rng = np.random.default_rng(seed)
    x = domain.sample(n, rng)
    if n > 1:
        x[-1] = x[0]
    u = (x - x.mean(axis=0)) / domain.widths if n else x
    observed = 1.0 + np.sin(4.0 * u.sum(axis=1)) + 0.2 * rng.standard_normal(n)
    if absurd:
        for k, row in enumerate(range(2, n, 4)):
            observed[row] = (20.0, *ABSURD)[k % (1 + len(ABSURD))]
    noise = np.where(np.arange(n) % 3 == 1, 0.02, np.nan)
    return Observations(x, observed, noise, domain.locate(x) if n else _no_arms(domain))


def check_kernel(kernel: Kernel, x: Array, *, differentiable: bool = True) -> None:
    """Check that ``kernel`` is a covariance and that its gradients are its slopes.

    Parameters
    ----------
    kernel:
        The kernel.
    x:
        Inputs to check it at, shape (n, d), n >= 3; some of them may be equal.
    differentiable:
        True if it has a gradient in x. Otherwise computing one must raise ``ValueError``.
    """
    theta, n = kernel.theta, len(x)
    rng = np.random.default_rng(0)
    with unaltered(x, theta):
        K = kernel(x, x)
        require(K.shape == (n, n), "k(x, z) has shape (n, m)")
        require(kernel(x[:2], x).shape == (2, n), "k(x, z) has shape (n, m)")
        require_close(kernel(x[:2], x), K[:2], "k(x, z) depends on each pair of rows alone")
        require_close(K, K.T, "k(x, z) = k(z, x)")
        require_close(kernel.diagonal(x), np.diagonal(K), "diagonal(x) is the diagonal of k(x, x)")
        eigenvalues = np.linalg.eigvalsh(K)
        require(
            eigenvalues[0] >= -1e-9 * max(float(eigenvalues[-1]), 1e-300),
            "k(x, x) is positive semi-definite",
        )
        require(len(kernel.labels) == len(theta), "there is one label for each entry of theta")
        require_close(kernel.with_theta(theta).theta, theta, "with_theta(theta) has this theta")
        require_close(kernel.with_theta(theta)(x, x), K, "with_theta(theta) is the same formula")
        same, pull = kernel.wrt_theta(x)
        require_close(same, K, "wrt_theta(x) returns k(x, x)")
        A = rng.standard_normal((n, n))  # not symmetric, as weights need not be
        slopes = [
            np.vdot(A, difference)
            for difference in differences(lambda t: kernel.with_theta(t)(x, x), theta)
        ]
        require_close(
            pull(A), np.array(slopes), "wrt_theta pulls back to the gradient in theta", 1e-6, 1e-6
        )
    if not differentiable:
        for refused in (lambda: kernel.wrt_x(x, x), lambda: kernel.diagonal_wrt_x(x)):
            refusal_of(refused, "a kernel without a gradient in x refuses to give one")
        return
    # Away from the rows themselves, where a kernel may have a kink.
    z = x + 0.1 * np.std(x, axis=0) * rng.choice([-1.0, 1.0], size=x.shape)
    z += 0.01 * rng.standard_normal(x.shape)
    W = rng.standard_normal((n, n))
    with unaltered(x, z, W):
        values, pull = kernel.wrt_x(z, x)
        require_close(values, kernel(z, x), "wrt_x(x, z) returns k(x, z)")
        gradient = pull(W)
        require(gradient.shape == x.shape, "wrt_x pulls back to shape (n, d)")
        diagonal = kernel.diagonal_wrt_x(z)
        for i in range(min(n, 4)):
            along_z = [W[i] @ d[0] for d in differences(lambda p: kernel(p[None], x), z[i])]
            require_close(
                gradient[i], np.array(along_z), "wrt_x gives the gradient in x", 1e-5, 1e-6
            )
            along_z = [d[0] for d in differences(lambda p: kernel.diagonal(p[None]), z[i])]
            require_close(
                diagonal[i], np.array(along_z), "diagonal_wrt_x is a gradient", 1e-5, 1e-6
            )


def check_posterior(posterior: Posterior, domain: Domain, observations: Observations) -> None:
    """Check the interface of a posterior that was conditioned on ``observations``."""
    rng = np.random.default_rng(0)
    x = domain.sample(6, rng)
    with unaltered(x, observations), no_warnings():
        mean, std = (a.copy() for a in posterior.predict(x))
        require(mean.shape == std.shape == (6,), "predict(x) returns two arrays of shape (m,)")
        require(np.isfinite(mean).all() and np.isfinite(std).all(), "predictions are finite")
        require((std >= 0.0).all(), "standard deviations are not negative")
        require(posterior.n == len(observations), "n counts all observations")
        require(0 <= posterior.distrusted <= posterior.n, "distrusted counts observations")
        require(posterior.information >= 0.0, "information gain is not negative")
        require(posterior.max_variance > 0.0, "max_variance is positive")
        trust = posterior.trust(observations)
        require(trust.shape == (len(observations),), "trust has shape (n,)")
        require(((trust >= 0.0) & (trust <= 1.0)).all(), "trust is in [0, 1]")
        require(
            int(np.count_nonzero(trust < 1.0)) == posterior.distrusted,
            "distrusted is the number of observations with a trust below 1",
        )
        scale = math.sqrt(posterior.max_variance)
        fantasy = posterior.fantasise(x[:2], domain.locate(x[:2]))
        held, narrower = fantasy.predict(x)
        size = scale + np.abs(mean).max()
        require_close(held, mean, "a fantasy holds the mean", 1e-6 * size, 1e-6)
        require((narrower <= std + 1e-6 * scale).all(), "a fantasy widens no deviation")
        again = posterior.predict(x)
        require_close(again[0], mean, "a fantasy leaves the posterior alone")
        require_close(again[1], std, "a fantasy leaves the posterior alone")
        kept = posterior.copy().predict(x)
        require_close(kept[0], mean, "a copy predicts the same")
        require_close(kept[1], std, "a copy predicts the same")
        if isinstance(domain, Finite):
            known, again = (posterior.predict(x) for x in (domain.points, domain.points.copy()))
            require_close(known[0], again[0], "predict knows the mean at the arms", 1e-12, 1e-9)
            require_close(
                known[1], again[1], "predict knows the deviation at the arms", 1e-12, 1e-9
            )
            return
        mean, std, *slopes = posterior.predict_with_gradient(x)
        require_close(mean, kept[0], "predict_with_gradient predicts the same", 1e-7 * size, 1e-7)
        # Variances: the root of one that is nearly 0 has lost half of its digits
        require_close(
            std**2, kept[1] ** 2, "predict_with_gradient predicts the same", 1e-7 * size, 1e-7
        )
        for k, width in enumerate(domain.widths):
            step = 1e-5 * width * np.eye(domain.dim)[k]
            up, down = posterior.predict(x + step), posterior.predict(x - step)
            for of, slope in enumerate(slopes):
                require(slope.shape == x.shape, "gradients have shape (m, d)")
                # Where the variance is nearly 0 its root has no accurate numeric slope.
                flat = std > 1e-2 * scale
                numeric = (up[of] - down[of]) / (2e-5 * width)
                require_close(
                    slope[flat, k] * width,
                    numeric[flat] * width,
                    "gradients are slopes",
                    1e-4 * size,
                    1e-4,
                )


def check_model(model: Model, domain: Domain, tolerance: float = 1e-6) -> None:
    """Check that ``model`` gives legal posteriors on ``domain``, for any observations.

    With and without absurd results among them; after each of them the posterior that is updated
    from the previous one predicts what the one from the start does, up to ``tolerance``, and
    previous ones stay.
    """
    for n, absurd in ((0, False), (1, False), (12, False), (17, True)):
        observations = example_observations(domain, n, 3 + n, absurd)
        with _given(domain, n, absurd):
            check_posterior(model(domain, observations), domain, observations)
    observations = example_observations(domain, 9, 1, absurd=False)
    x = domain.sample(6, np.random.default_rng(0))
    posterior = model(domain, observations.until(5))
    for n in range(6, 10):
        # An update may work in the arrays of the posterior before it, and not in those of a copy
        held = posterior.copy()
        before = held.predict(x)[0].copy()
        posterior = model(domain, observations.until(n), posterior)
        fresh = model(domain, observations.until(n))
        require(posterior.n == n, "an updated posterior counts all observations")
        for updated, anew in zip(posterior.predict(x), fresh.predict(x), strict=True):
            same = "an update gives what conditioning anew does"
            require_close(updated, anew, same, tolerance, tolerance)
        require_close(held.predict(x)[0], before, "later observations do not change a copy")


def check_defence(defence: Defence, domains: Sequence[Domain] | None = None) -> None:
    """Check that ``defence`` gives legal targets for any observations, and declares the truth.

    On every domain, for results with and without absurd ones among them: values are finite, noise
    is positive or infinite, trust is in [0, 1] and is 0 where the noise is infinite; nothing is
    altered, and nothing warns or raises. ``slopes`` are the derivatives in log(prior.noise). If
    ``revises`` is false, no target of an earlier row changes when rows are appended, and the
    targets of a tail are the tail of the targets. What a defence learns is in what ``fit`` returns:
    itself it does not change.
    """
    before = fingerprint(defence)
    for domain in domains if domains is not None else example_domains():
        for n, absurd in ((0, False), (1, False), (2, False), (17, False), (32, True)):
            with _given(domain, n, absurd):
                _check_targets(defence, domain, example_observations(domain, n, 3 + n, absurd))
        nothing = example_observations(domain, 3)
        nothing.observed[:] = math.nan
        with _given(domain, "3 nan among 3"):
            _check_targets(defence, domain, nothing)
        if not defence.revises:
            with _given(domain, "up to 21"):
                _check_that_it_does_not_revise(defence, domain)
    require(fingerprint(defence) == before, "what a defence learns is in what fit returns")


def check_confidence(
    confidence: Confidence,
    posteriors: Sequence[Posterior] | None = None,
    *,
    non_decreasing: bool = True,
) -> None:
    """Check that a width is a number >= 0 and that looking at a posterior leaves it alone.

    ``posteriors`` are by default those of Gaussian processes on every kind of domain.
    ``non_decreasing``: for one of them, the width may not fall as the rounds go by.
    """
    for posterior in _example_posteriors() if posteriors is None else posteriors:
        before = fingerprint(posterior)
        widths = []
        with no_warnings():
            for t in (1, 2, 3, 10, 100, 10_000):
                width = confidence(posterior, t)
                require(isinstance(width, Real), f"a width is a number, got {width!r}")
                require(0.0 <= width < math.inf, f"a width is finite and >= 0, got {width}")
                require(confidence(posterior, t) == width, "a width is the same when asked again")
                widths.append(width)
        if non_decreasing:
            require(widths == sorted(widths), f"the width does not fall with t, got {widths}")
        require(fingerprint(posterior) == before, "a width does not alter the posterior")


def _example_posteriors() -> Iterator[Posterior]:
    for domain in example_domains():
        yield GaussianProcess(example_prior(domain))(domain, example_observations(domain, 12))


def check_policy(policy: Policy, domains: Sequence[Domain] | None = None) -> None:
    """Check that ``policy`` chooses in the domain, deterministically, for any observations.

    Its memory must be in the state: the policy itself may not change. It may suggest fewer choices
    than requested; none only if it ``plans``, and while something is pending. Where only a part of
    the domain may be chosen, it chooses there. If it declares ``needs_finite``, a learner on a
    ``Box`` is refused with a sentence that says what to do.
    """
    require(isinstance(policy, Policy), "a policy is an instance of a subclass of Policy")
    before = fingerprint(policy)
    for domain in domains if domains is not None else example_domains():
        if policy.needs_finite and not domain.finite:
            refusal = refusal_of(
                partial(_learner, domain, policy),
                "a policy that needs a finite domain is refused any other",
            )
            require("finite" in refusal and "grid" in refusal, "a refusal says what to do")
            continue
        with _given(domain, 0):
            _check_answer(policy, domain)
        with _given(domain, "up to 16", True):
            runs = [_campaign(_learner(domain, policy), 8) for _ in range(2)]
            for a, b in zip(*runs, strict=True):
                require(np.array_equal(a, b), "the same seed gives the same choices")
        with _given(domain, 12):
            _check_purity(policy, domain)
            _check_part(policy, domain)
    require(fingerprint(policy) == before, "what a policy remembers is in the state")


def check_adversary(adversary: Adversary, problem: Problem, rounds: int = 50) -> None:
    """Check that an attack is pure and that its budget binds.

    An attack neither alters its arguments nor has memory; with the same generator it wants the
    same result. A budget allows something between the observed and the wanted result, and does not
    spend. In ``rounds`` rounds the environment counts every change, and no other.
    """
    attack, budget = adversary.attack, adversary.budget
    before = fingerprint(adversary)
    rng = np.random.default_rng(0)
    domain = problem.domain
    points = domain.sample(20, rng)
    arms = [None] * 20 if (located := domain.locate(points)) is None else located.tolist()
    for t, (x, arm) in enumerate(zip(points, arms, strict=True), start=1):
        value = float(problem.value(x[None])[0])
        observed = value + 0.1
        # A learner that has ruled out nothing, then every other row.
        active = np.ones(len(domain) if isinstance(domain, Finite) else 1, dtype=np.bool_)
        active[1::2] = t % 2 == 0
        spent = Ledger(t // 10, 0.1 * (t // 10))
        untouched = copy.copy(spent)
        with unaltered(x, active):
            # A generator in the same state for each: a difference is a memory
            wanted, again = (
                attack.rewrite(
                    Round(x, arm, value, observed, t, np.random.default_rng(t), spent, active.copy)
                )
                for _ in range(2)
            )
        require(spent == untouched, "an attack does not spend")
        require(isinstance(wanted, float), f"an attack wants a float, got {wanted!r}")
        require(_same(wanted, again), "an attack does not remember")
        for wish in (wanted, *ABSURD):
            # Nothing spent, some, and a great deal
            for spent in (Ledger(), Ledger(3, 1.5), Ledger(10**6, math.inf)):
                untouched = copy.copy(spent)
                allowed = budget.allow(wish, observed, t, spent)
                exhausted = budget.exhausted(spent)
                require(spent == untouched, "a budget does not spend")
                require(
                    not exhausted or _same(allowed, observed), "an exhausted budget allows nothing"
                )
                # False for nan, which then must be one of the two
                between = min(wish, observed) <= allowed <= max(wish, observed)
                require(
                    between or _same(allowed, wish) or _same(allowed, observed),
                    f"a budget allows something between {observed} and {wish}, got {allowed}",
                )
    world, clean = Environment(problem, adversary=adversary), Environment(problem)
    changed = 0
    for x in problem.domain.sample(rounds, rng):
        corrupt, honest = world.step(x), clean.step(x)
        require(_same(corrupt.value, honest.value), "an adversary does not change f")
        changed += not _same(corrupt.observed, honest.observed)
        require(
            corrupt.corrupted == (not _same(corrupt.observed, honest.observed)), "changes are noted"
        )
        require(world.spent.count == changed, "the ledger counts every change")
    require(fingerprint(adversary) == before, "an adversary does not remember")


def check_learner(make: Callable[[], Learner], rounds: int = 6) -> None:
    """Check ask, tell, recommend, trust and posterior of the learners that ``make`` builds.

    ``make`` must build equal learners, with a seed, without observations.
    """
    first, second = make(), make()
    with no_warnings():
        for a, b in zip(_campaign(first, rounds), _campaign(second, rounds), strict=True):
            require(np.array_equal(a, b), "equal learners ask the same")
        n = len(first)
        trust, observations = first.trust, first.observations
        require(trust.shape == (n,), "trust has shape (n,)")
        require(((trust >= 0.0) & (trust <= 1.0)).all(), "trust is in [0, 1]")
        require(len(observations) == n, "observations are all results")
        known = np.isfinite(observations.observed)
        require((trust[~known] == 0.0).all(), "what is not a number is not trusted")
        for learner in (first, second):  # not later: a recommendation may leave nothing pending
            learner.forget_pending()  # it may be waiting for these
        recommended = first.recommend()
        tried = (observations.x == recommended.x).all(axis=1)
        require(tried.any(), "the recommended point was tried")
        require(
            recommended.lower <= recommended.mean <= recommended.upper,
            "the bounds enclose the mean",
        )
        first.domain.locate(recommended.model_x[None])
        require(
            np.array_equal(first.ask().x, second.ask().x),
            "recommending does not change what is asked next",
        )
        x = first.domain.sample(5, np.random.default_rng(1))
        posterior = first.posterior
        before = [a.copy() for a in posterior.predict(x)]
        for refused in (
            lambda: first.tell(np.full(first.domain.dim, math.nan), 0.0),
            lambda: first.tell(np.full(first.domain.dim + 1, 1.0), 0.0),
            lambda: first.tell(x[:2], [0.0]),
            lambda: first.tell(x[0], 0.0, noise=-1.0),
            lambda: first.tell(x[:2], [0.0, 1.0], noise=[1.0, math.inf]),
            lambda: first.ask_batch(0),
        ):
            refusal_of(refused, "an impossible input is refused")
            require(len(first) == n, "nothing is stored of what is refused")
        first.tell(x, np.arange(5.0))
        require(len(first) == n + 5, "several results can be given at once")
        first.forget_pending()
        # So that the model is conditioned on the new results before they are compared
        first.ask()
        for a, b in zip(before, posterior.predict(x), strict=True):
            require(np.array_equal(a, b), "later tells do not change a posterior")


def _learner(domain: Domain, policy: Policy) -> Learner:
    return Learner(
        domain, Parts(GaussianProcess(example_prior(domain), Trust()), Fixed(2.0), policy), seed=7
    )


def _campaign(learner: Learner, rounds: int) -> list[Array]:
    """Run a learner on results with absurd ones among them; return all points it suggested."""
    domain, queried = learner.domain, []
    rng = np.random.default_rng(11)
    for round_ in range(rounds):
        wanted = (1, 3)[round_ % 2]
        choices = _ask(learner, wanted)
        for choice in choices:
            arms = domain.locate(choice.x[None])
            require(
                choice.arm is None if arms is None else choice.arm == int(arms[0]),
                "a choice names its row in a finite domain, and no other",
            )
            queried.append(choice.x.copy())
        for k, choice in enumerate(choices):
            if round_ == 2 and k == 0:
                continue  # this one stays pending
            elsewhere = round_ == 4 and k == 0
            x = domain.sample(1, rng)[0] if elsewhere else choice.x
            absurd = (round_ + k) % 3 == 1
            y = ABSURD[round_ % len(ABSURD)] if absurd else float(np.sin(x.sum()))
            learner.tell(x, y, 0.05 if round_ == 5 else None)
    return queried


def _ask(learner: Learner, wanted: int) -> list[Choice]:
    choices = learner.ask_batch(wanted)
    require(len(choices) <= wanted, "no more choices than asked for")
    require(choices or bool(learner.pending and learner.plans), _WAITS)
    return choices


def _check_targets(defence: Defence, domain: Domain, observations: Observations) -> None:
    prior, n = example_prior(domain), len(observations)
    with unaltered(observations), no_warnings():
        fitted = defence.fit(domain, observations)
        targets, again = fitted(observations, prior), fitted(observations, prior)
        for part in (getattr(targets, name, None) for name in ("values", "noise", "trust")):
            alike = isinstance(part, np.ndarray) and part.shape == (n,) and part.dtype == float
            require(alike, "values, noise and trust of Targets are floats of shape (n,)")
        require(np.isfinite(targets.values).all(), "values are finite")
        require((targets.noise > 0.0).all(), "noise is positive or infinite")
        require(((targets.trust >= 0.0) & (targets.trust <= 1.0)).all(), "trust is in [0, 1]")
        left_out = np.isinf(targets.noise)
        require(not targets.trust[left_out].any(), "what is left out is not trusted")
        unknown = ~np.isfinite(observations.observed)
        require(left_out[unknown].all(), "what is not a number is left out")
        _same_targets(targets, again, "targets are the same when asked again")
        slopes = fitted.slopes(observations, prior, targets)
        step = 1e-5  # of ln(noise), for central differences
        up, down = (
            fitted(observations, Prior(prior.kernel, prior.noise * math.exp(h), prior.mean))
            for h in (step, -step)
        )
    # A row may be left out on one side of the step: there is no slope
    kept = np.isfinite(targets.noise) & np.isfinite(up.noise) & np.isfinite(down.noise)
    for slope, above, below, of in (
        (slopes[0], up.values, down.values, targets.values),
        (slopes[1], up.noise, down.noise, targets.noise),
    ):
        require(slope.shape == (n,), "slopes have shape (n,)")
        numeric = (above[kept] - below[kept]) / (2.0 * step)
        error = np.abs(slope[kept] - numeric)
        allowed = 1e-6 * (1.0 + np.abs(of[kept]) + np.abs(numeric))
        require((error <= allowed).all(), "slopes are the derivatives in log(prior.noise)")


def _check_that_it_does_not_revise(defence: Defence, domain: Domain) -> None:
    observations, prior = example_observations(domain, 21, 5), example_prior(domain)
    fitted, earlier = None, None
    whole = defence.fit(domain, observations)
    all_targets = whole(observations, prior)
    for n in (1, 2, 7, 8, 14, 21):
        head = observations.until(n)
        fitted = defence.fit(domain, head, fitted)
        targets = fitted(head, prior)
        promise = "with revises = False, appending rows changes no target of an earlier row"
        _same_targets(targets, _rows(all_targets, slice(0, n)), promise)
        if earlier is not None:
            _same_targets(earlier, _rows(targets, slice(0, len(earlier))), promise)
        _same_targets(
            whole(observations.since(n), prior),
            _rows(all_targets, slice(n, None)),
            "the targets of a tail are the tail of the targets",
        )
        earlier = targets
    model = GaussianProcess(prior, defence)
    posterior: Posterior | None = None
    for n in (3, 4, 11, 21):
        posterior = model(domain, observations.until(n), posterior)
    assert posterior is not None
    x = domain.sample(6, np.random.default_rng(0))
    # Of what is trusted at all: rounding is relative to it
    size = float(np.abs(observations.observed[all_targets.trust > 0.0]).max(initial=1.0))
    for a, b in zip(posterior.predict(x), model(domain, observations).predict(x), strict=True):
        require_close(a, b, "an updated posterior is the one recomputed", 1e-7 * size, 1e-7)


def _check_answer(policy: Policy, domain: Domain) -> None:
    answer = policy.choose(_learner(domain, policy).view(), policy.start(domain), 1)
    pair = isinstance(answer, tuple) and len(answer) == 2
    choices = answer[0] if pair and isinstance(answer[0], list) else [None]
    require(
        all(isinstance(choice, Choice) for choice in choices),
        "choose returns a list of choices, and the state after them",
    )
    require(choices or policy.plans, _WAITS)


def _check_part(policy: Policy, domain: Domain) -> None:
    learner, seen = _learner(domain, policy), example_observations(domain, 12, absurd=False)
    at = float(domain.sample(1, np.random.default_rng(3))[0, 0])
    for n in (0, 12):
        learner.tell(seen.x[:n], seen.observed[:n])
        view = learner.view([3, 4]) if domain.finite else learner.view(context={0: at})
        with suppress(NothingLeftError):  # of a policy that plans over the whole domain
            for choice in policy.choose(view, policy.start(domain), 2)[0]:
                inside = choice.arm in (3, 4) if domain.finite else choice.x[0] == at
                require(inside, "it chooses in view.among, which may be a part of the domain")


def _check_purity(policy: Policy, domain: Domain) -> None:
    model = GaussianProcess(example_prior(domain), Trust())
    history, seen = History(domain), example_observations(domain, 12, absurd=False)
    history.add(history.check(seen.x, seen.observed))
    bad, lost = domain.sample(2, np.random.default_rng(4))
    history.add(history.check(bad, failed="bad"))
    history.add(history.check(lost, failed="transient"))
    data = history.observations
    surrogate = Surrogate(history, model, Fixed(2.0), model)
    state = policy.start(domain)
    somewhere = domain.sample(2, np.random.default_rng(2))
    for pending in (np.empty((0, domain.dim)), somewhere):
        for n in (1, 3):
            after, answers = state, []
            for _ in range(2):
                rng = np.random.default_rng(n)
                view = View(domain, domain, data, rng, surrogate, pending, history.failures)
                with unaltered(data, pending):
                    # A copy, so that both answers begin from one state
                    choices, after = policy.choose(view, copy.deepcopy(state), n)
                require(len(choices) <= n, "no more choices than asked for")
                require(choices or len(pending) > 0, "it waits only for what is pending")
                if isinstance(domain, Finite):
                    active = policy.active(view, after)
                    require(active.shape == (len(domain),), "what is active is a mask")
                    require(active.any(), "something stays active")
                answers.append(np.array([choice.x for choice in choices]))
            require(
                np.array_equal(answers[0], answers[1]),
                "the same view, state and generator give the same choices",
            )
            state = after


@contextmanager
def _given(domain: Domain, n: int | str, absurd: bool = False) -> Iterator[None]:
    """Name the data with which a promise is broken, or something raises or warns."""
    among = ", absurd ones among them" if absurd else ""
    data = f"With {n} observations{among}, on {domain!r}."
    try:
        yield
    except AssertionError as error:
        error.args = (f"{error} {data}",)
        raise
    except Exception as error:
        error.add_note(data)
        raise


def _same_targets(a: Targets, b: Targets, promise: str) -> None:
    require(np.array_equal(np.isinf(a.noise), np.isinf(b.noise)), promise)
    kept = np.isfinite(a.noise)
    require_close(a.values[kept], b.values[kept], promise, 1e-9, 1e-9)
    require_close(a.noise[kept] / b.noise[kept], np.ones(int(kept.sum())), promise, 1e-9)
    require_close(a.trust, b.trust, promise, 1e-9)


def _rows(targets: Targets, rows: slice) -> Targets:
    return Targets(targets.values[rows], targets.noise[rows], targets.trust[rows])


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _no_arms(domain: Domain) -> Integers | None:
    return np.empty(0, dtype=np.intp) if domain.finite else None
