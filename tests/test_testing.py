"""The checks have teeth: each broken promise is found, and said."""

import contextlib
import math
from dataclasses import dataclass

import numpy as np
import pytest

from stoic import testing
from stoic.adversaries import Adversary, Attack, Frequency
from stoic.confidence import Fixed
from stoic.data import Choice, Targets
from stoic.defences import AdaptivePlateau, Defence, Plateau, Trust
from stoic.domains import Box
from stoic.kernels import Matern52
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import UCB, Policy
from stoic.posteriors import Exact
from stoic.problems import forrester
from stoic.recipes import Parts

X = np.random.default_rng(0).uniform(5.0, 9.0, (6, 2))


def broken(call, promise):
    with pytest.raises(AssertionError, match=f"Broken promise: .*{promise}"):
        call()


def test_examples_are_of_every_kind_and_absurd():
    domains = testing.example_domains()
    assert {domain.finite for domain in domains} == {True, False}
    assert any(getattr(domain, "lattices", ()) for domain in domains)
    for domain in domains:
        observations = testing.example_observations(domain, 30)
        domain.locate(observations.x)
        assert np.isnan(observations.observed).any()
        assert np.isinf(observations.observed).any()
        assert (np.abs(observations.observed) == 1e300).any()
        assert np.isfinite(observations.noise).any()
        tame = testing.example_observations(domain, 30, absurd=False)
        assert np.abs(tame.observed).max() < 4.0


# Kernels


class Lopsided(Matern52):
    def __call__(self, x, z):
        return super().__call__(x, z) * np.linspace(1.0, 1.1, len(z))


class Indefinite(Matern52):
    def profile(self, squares):
        return 1.0 - squares, -np.ones_like(squares)


class WrongSlope(Matern52):
    def profile(self, squares):
        K, slope = super().profile(squares)
        return K, 1.01 * slope


class Greedy(Matern52):
    def __call__(self, x, z):
        K = super().__call__(x, z)
        x[0, 0] = np.nextafter(x[0, 0], np.inf)
        return K


@pytest.mark.parametrize(
    ("kernel", "promise"),
    [
        (Lopsided(2.0), "k\\("),
        (Indefinite(2.0), "positive semi-definite"),
        (WrongSlope(2.0), "gradient in theta"),
        (Greedy(2.0), "altered"),
    ],
)
def test_broken_kernels_are_found(kernel, promise):
    broken(lambda: testing.check_kernel(kernel, X.copy()), promise)


def test_a_gradient_that_is_not_refused_is_found():
    check = lambda: testing.check_kernel(Matern52(2.0), X, differentiable=False)  # noqa: E731
    broken(check, "refuses to give one")


# Defences


class Meddling(Defence):
    """Does what ``how`` says, wrongly."""

    def __init__(self, how, revises=False):
        self.how, self.revises = how, revises

    def __call__(self, observations, prior):
        plain = Trust()(observations, prior)
        values, noise, trust = plain.values.copy(), plain.noise.copy(), plain.trust.copy()
        self.how(observations, values, noise, trust)
        return Targets(values, noise, trust)


def centring(observations, values, noise, trust):
    known = np.isfinite(observations.observed) & (np.abs(observations.observed) < 100.0)
    if known.any():
        values -= observations.observed[known].mean()


def keeping_nan(observations, values, noise, trust):
    values[:] = observations.observed


def trusting(observations, values, noise, trust):
    trust[:] = 1.0


def over_trusting(observations, values, noise, trust):
    trust[np.isfinite(noise)] = 1.5


def negative(observations, values, noise, trust):
    noise[np.isfinite(noise)] *= -1.0


def altering(observations, values, noise, trust):
    observations.x[:1] += 1.0


def squaring(observations, values, noise, trust):
    noise **= 2


def numbering(observations, values, noise, trust):
    values += np.arange(len(values))


@pytest.mark.parametrize(
    ("how", "promise"),
    [
        (centring, "no target of an earlier row|tail of the targets"),
        (keeping_nan, "values are finite"),
        (trusting, "left out is not trusted"),
        (over_trusting, "trust is in"),
        (negative, "noise is positive"),
        (altering, "altered"),
        (squaring, "slopes are the derivatives"),
        (numbering, "the targets of a tail"),
    ],
)
def test_broken_defences_are_found(how, promise):
    data = r".* With .* observations.*, on (Finite|Box)\("  # the first that it is broken with
    broken(lambda: testing.check_defence(Meddling(how)), promise + data)


@pytest.mark.parametrize(
    "targets",
    [
        lambda y, prior: y,  # an array
        lambda y, prior: Targets(y, prior.noise, 1.0),
        lambda y, prior: Targets(y, np.full(len(y), prior.noise), np.isfinite(y)),
    ],
)
def test_what_are_no_targets_is_said(targets):
    class Other(Defence):
        def __call__(self, observations, prior):
            return targets(observations.observed, prior)

    broken(lambda: testing.check_defence(Other()), "of Targets are floats of shape")


def test_a_defence_that_counts_its_fits_is_found():
    class Counting(Defence):
        def __init__(self):
            self.fits = [0]

        def __repr__(self):  # of a local class, which has no pickle
            return f"Counting({self.fits})"

        def fit(self, domain, observations, previous=None):
            self.fits[0] += 1
            return super().fit(domain, observations, previous)

        def __call__(self, observations, prior):
            return Trust()(observations, prior)

    broken(lambda: testing.check_defence(Counting()), "in what fit returns")


def test_data_with_which_a_part_raises_are_named():
    def raising(observations, values, noise, trust):
        raise KeyError("level")

    with pytest.raises(KeyError) as failure:
        testing.check_defence(Meddling(raising))
    assert "With 0 observations, on Finite(" in failure.value.__notes__[0]


def test_a_defence_that_declares_that_it_revises_may():
    testing.check_defence(Meddling(centring, revises=True))


def test_a_false_declaration_of_a_real_defence_is_found():
    class Claiming(AdaptivePlateau):
        revises = False

    broken(lambda: testing.check_defence(Claiming()), "appending rows changes no target")


def test_an_exception_on_absurd_results_is_not_swallowed():
    class Fragile(Trust):
        __slots__ = ()

        def __call__(self, observations, prior):
            if not np.isfinite(observations.observed).all():
                raise FloatingPointError("nan")
            return super().__call__(observations, prior)

    with pytest.raises(FloatingPointError):
        testing.check_defence(Fragile())


# Posteriors


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        ({"n": 3}, "n counts"),
        ({"distrusted": 5}, "distrusted is the number"),
        ({"alpha": np.full(20, np.nan)}, "finite"),
    ],
)
def test_broken_posteriors_are_found(change, promise):
    domain = Box([4.0], [12.0])
    observations = testing.example_observations(domain, 20, absurd=False)
    posterior = GaussianProcess(testing.example_prior(domain))(domain, observations)
    testing.check_posterior(posterior, domain, observations)
    fields = {name: getattr(posterior, name) for name in Exact.__dataclass_fields__}
    wrong = Exact(**(fields | change))
    broken(lambda: testing.check_posterior(wrong, domain, observations), promise)


# Widths


def an_exact_posterior(domain):
    model = GaussianProcess(testing.example_prior(domain))
    return model(domain, testing.example_observations(domain, 5, absurd=False))


@pytest.mark.parametrize(
    ("width", "promise"),
    [
        (lambda posterior, t: -1.0, ">= 0"),
        (lambda posterior, t: math.nan, "finite"),
        (lambda posterior, t: math.inf, "finite"),
        (lambda posterior, t: np.ones(2), "a number"),
        (lambda posterior, t: 1.0 / t, "does not fall"),
    ],
)
def test_broken_widths_are_found(width, promise):
    posterior = an_exact_posterior(Box([4.0], [12.0]))
    broken(lambda: testing.check_confidence(width, [posterior]), promise)
    broken(lambda: testing.check_confidence(width), promise)


def test_a_width_may_be_any_number():
    for width in (2, np.float32(2.0), 0.0):
        testing.check_confidence(lambda posterior, t, width=width: width)


def test_a_width_that_alters_the_posterior_is_found():
    posterior = an_exact_posterior(testing.example_domains()[0])

    def narrowing(posterior, t):
        posterior.variance *= 0.5
        return 2.0

    broken(lambda: testing.check_confidence(narrowing, [posterior]), "does not alter")
    testing.check_confidence(lambda posterior, t: 1.0 / t, [posterior], non_decreasing=False)


# Policies


class Odd(Policy):
    """UCB, but for what ``how`` does to its choices."""

    def __init__(self, how):
        self.how = how
        self.memory = []

    def start(self, domain):
        return None

    def choose(self, view, state, n):
        choices, _ = UCB().choose(view, None, n)
        return self.how(self, view, choices), None


def outside(self, view, choices):
    return [Choice(choice.x + 100.0, choice.arm) for choice in choices]


def too_many(self, view, choices):
    return choices * 2


def none(self, view, choices):
    return []


def remembering(self, view, choices):
    self.memory.append(choices[0].x)
    return choices


def dicing(self, view, choices):
    x = view.domain.sample(1, np.random.default_rng())[0]
    arms = view.domain.locate(x[None])
    return [Choice(x, None if arms is None else int(arms[0]))]


def anywhere(self, view, choices):
    return UCB().choose(view._replace(among=view.domain), None, 1)[0]


def one(self, view, choices):
    return choices[0]


def unnamed(self, view, choices):
    return [Choice(choice.x, None if choice.arm is None else 0) for choice in choices]


@pytest.mark.parametrize(
    ("how", "promise"),
    [
        (too_many, "no more choices"),
        (none, "waits only if it plans"),
        (remembering, "in the state"),
        (dicing, "same seed"),
        (unnamed, "names its row"),
        (anywhere, "view.among"),
        (one, "a list of choices"),
    ],
)
def test_broken_policies_are_found(how, promise):
    broken(lambda: testing.check_policy(Odd(how)), promise)


def test_a_policy_that_forgets_the_state_and_a_class_are_found():
    class Forgetful(Odd):
        def choose(self, view, state, n):
            return super().choose(view, state, n)[0]

    broken(lambda: testing.check_policy(Forgetful(lambda self, view, choices: choices)), "state")
    broken(lambda: testing.check_policy(UCB), "an instance")


def test_a_choice_outside_of_the_domain_is_found():
    with pytest.raises(ValueError, match=r"not one of|outside"):
        testing.check_policy(Odd(outside))


def test_a_policy_that_needs_a_finite_domain_is_checked_on_one():
    class Bounded(Odd):
        needs_finite = True

    testing.check_policy(Bounded(lambda self, view, choices: choices))


# Adversaries


@dataclass
class Grudge(Attack):
    """Wants more every time it is asked."""

    asked: int = 0

    def rewrite(self, seen):
        self.asked += 1
        return seen.observed + self.asked


@dataclass(frozen=True)
class Generous:
    """Allows more than is wanted."""

    def allow(self, wanted, observed, t, spent):
        return wanted + 1.0 if math.isfinite(wanted) else wanted

    def exhausted(self, spent):
        return False


@dataclass(frozen=True)
class Spending:
    def allow(self, wanted, observed, t, spent):
        spent.count += 1
        return wanted

    def exhausted(self, spent):
        return False


@dataclass(frozen=True)
class Hasty:
    """Says that nothing is left, and allows it all the same."""

    def allow(self, wanted, observed, t, spent):
        return wanted

    def exhausted(self, spent):
        return True


@dataclass(frozen=True)
class Shift(Attack):
    def rewrite(self, seen):
        return seen.observed + 1.0


def test_broken_adversaries_are_found():
    problem = forrester()
    testing.check_adversary(Adversary(Shift(), Frequency(5)), problem)
    broken(lambda: testing.check_adversary(Adversary(Grudge()), problem), "does not remember")
    broken(lambda: testing.check_adversary(Adversary(Shift(), Generous()), problem), "between")
    broken(lambda: testing.check_adversary(Adversary(Shift(), Spending()), problem), "not spend")
    broken(lambda: testing.check_adversary(Adversary(Shift(), Hasty()), problem), "exhausted")


# Learners


def test_broken_learners_are_found():
    domain = testing.example_domains()[0]

    def build(cls, seed=3):
        model = GaussianProcess(testing.example_prior(domain), Plateau(2.0, 1.0, 1.0))
        return cls(domain, Parts(model, Fixed(2.0), UCB()), seed)

    class Careless(Learner):
        def tell(self, x, y, noise=None, *, choice=None):
            with contextlib.suppress(ValueError):
                super().tell(x, y, noise, choice=choice)

    class Restless(Learner):
        def recommend(self):
            self.ask()
            return super().recommend()

    class Leaking(Learner):
        @property
        def posterior(self):
            return self.surrogate.posterior()

    testing.check_learner(lambda: build(Learner))
    broken(lambda: testing.check_learner(lambda: build(Careless)), "is refused")
    broken(lambda: testing.check_learner(lambda: build(Restless)), "asked next")
    broken(lambda: testing.check_learner(lambda: build(Leaking)), "do not change a posterior")
