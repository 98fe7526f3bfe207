"""Recipes against an unknown threat: model selection among learners by regret bound balancing.

[Pacchiano2020]_, [Bogunovic2021b]_. The putative bound of a learner follows from its own width, as
in the proof of its theorem: while f is in its band a play costs at most 2 width std, and N plays
have std that add up to sqrt(2 kappa gamma_T N / ln(1 + kappa / noise)) at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from stoic.confidence import PRACTICE, Confidence, Schedule, Theory
from stoic.data import Observations
from stoic.domains import Domain, Finite
from stoic.posteriors import information_bounds
from stoic.posteriors.base import FittedDefence, Posterior
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad_in_space
from stoic.recipes.base import Balancing, Parts, recipe
from stoic.recipes.corruption import rgp_ucb
from stoic.recipes.heavy_tails import tgp_ucb
from stoic.recipes.misspecification import ec_gp_ucb
from stoic.recipes.outliers import a2_rcgp_ucb
from stoic.recipes.parts import check_given, check_prior, self_normalised, variance_and_noise
from stoic.recipes.plain import gp_ucb
from stoic.rewards import check_span

_IN_PRACTICE = ("delta", "horizon")  # of a theory
_USED = ("norm", "noise_sd", *_IN_PRACTICE)
_WEIGHT = 0.1  # factor of an enlargement in practice, as in the recipes
_SHARE = 0.1  # factor of a proved bound, in practice
_COMPARISON = 0.5  # c, in practice
_REACH = 3.0  # half a range of results, in their deviations
_PLACES = 256  # points of a continuous domain, for its gamma_T


class Foreseen(NamedTuple):
    """Posterior as far as widths need it, after n plays with the information gain of T."""

    prior: Prior
    fitted_defence: FittedDefence
    max_variance: float
    n: int
    information: float
    distrusted: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class WidthPromise:
    """Putative bound on the regret after N plays, from a width.

    share (2 width sqrt(2 kappa gamma_T N / ln(1 + kappa / noise)) + 2 error N), at most ``most`` a
    play, with the width after N plays. For EC-GP-UCB, whose width is beta + error
    sqrt(N / noise), it is eq. (22) of [Bogunovic2021b]_ with constants.

    Parameters
    ----------
    confidence:
        The width.
    before:
        The posterior before the first play, as the width needs it.
    gain:
        An upper bound on gamma_T.
    most:
        Largest regret of one play.
    error:
        Largest distance of f from the band, on either side.
    share:
        1 in theory; less in practice, where the regret is far below the proved bound.
    wasted:
        Number of plays that may not shrink the std, as the results that a defence rejects. Each
        may cost ``most``.
    """

    confidence: Confidence
    before: Foreseen
    gain: float
    most: float
    error: float = 0.0
    share: float = 1.0
    wasted: int = 0

    def __call__(self, plays: int) -> float:
        if not plays:
            return 0.0
        seen = self.before._replace(n=plays, information=self.gain)
        width = self.confidence(cast("Posterior", seen), plays + 1)
        kappa = seen.max_variance
        # Cauchy-Schwarz: the sum of N std is at most sqrt(N sum std^2)
        total = math.sqrt(2.0 * kappa * self.gain * plays / math.log1p(kappa / seen.prior.noise))
        proved = self.share * (2.0 * width * total + 2.0 * self.error * plays)
        return min(proved + self.wasted * self.most, self.most * plays)


@dataclass(frozen=True, slots=True)
class DoublingWidth:
    """Width base (1 + (n / horizon)^power), n the results so far: twice the base at the horizon.

    The enlargement by a corruption budget (power 0) and by an error of the model (power 1/2) whose
    size doubles the width in the end. It has no unit, so it does not need the scale of the results.

    Parameters
    ----------
    base:
        The width that is enlarged.
    horizon:
        T.
    power:
        Growth exponent of the enlargement.

    Guarantee
    ---------
    None.
    """

    base: Confidence
    horizon: int
    power: float

    def __call__(self, posterior: Posterior, t: int) -> float:
        return self.base(posterior, t) * (1.0 + math.pow(posterior.n / self.horizon, self.power))


@dataclass(frozen=True)
class Threats:
    """Corruptions, errors and tails that the learners of :func:`any_threat` are to withstand.

    Parameters
    ----------
    corruptions, budget, error:
        T_c, C and eps, the latter in units of the results. By default T_c is T^(1/3), and C and
        eps make a width twice that of GP-UCB after T rounds. Without a prior they cannot be given,
        since bounds are computed before the scale of the results is known; the widths are
        doubled as they would be with these defaults, which depends on no unit. Results in another
        unit give the same choices, unless two tie within the accuracy of a fit of hyperparameters,
        about half a percent of a bound's range.
    moment, alpha:
        Of :func:`~stoic.recipes.tgp_ucb`.
    """

    corruptions: int | None = None
    budget: float | None = None
    error: float | None = None
    moment: float | None = None
    alpha: float = 1.0

    def __post_init__(self) -> None:
        given = self.corruptions
        if not (given is None or (isinstance(given, int | np.integer) and given >= 0)):
            raise ValueError(f"corruptions is a count, a whole number >= 0, got {given!r}.")


_THREATS = Threats()


@recipe
def contextual_ec_gp_ucb(
    domain: Domain,
    *,
    prior: Prior,
    span: tuple[float, float] = (0.0, 1.0),
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    learners: int | None = None,
    c: float | None = None,
    everything: bool = False,
) -> Balancing:
    """EC-GP-UCB for an unknown error of the model: section 4 of [Bogunovic2021b]_.

    Balances EC-GP-UCB for eps_i = 2^(1-i) / sqrt(gamma_T) times the width of the span, i = 1, ...,
    M = ceil(1 + log2(T / gamma_T^2) / 2). The actions of a round are given with
    ``ask(among=...)``.

    Parameters
    ----------
    prior:
        As in every recipe; hyperparameters are not fitted, as gamma_T is needed in advance. On a
        ``Box`` it is that of 256 of its points, which is less than gamma_T: nothing is proved then.
    span:
        The range of the rewards.
    theory:
        Of :func:`~stoic.recipes.ec_gp_ucb`, and T, by default 10,000. In practice putative bounds
        are a tenth of those that the widths imply, in theory all of them, and each learner has
        delta / (2 M) of delta.
    confidence:
        beta_t, the width without enlargement, instead of the default.
    learners:
        M, instead of the formula, which is 1 or less where T < gamma_T^2: then even the largest
        error costs no more than learning does.
    c, everything:
        As in :class:`~stoic.balancing.Balanced`; ``c`` is 1/2 in practice unless it is given.

    Guarantee
    ---------
    On a finite domain, with a ``Theory`` and the defaults for ``c`` and ``everything``,
    rewards in the span (or clipped to it, see :class:`~stoic.balancing.Balanced`), action sets
    drawn independently from one law and an f that is within eps of a function of norm B, for eps up
    to the largest eps_i: with probability 1 - delta regret O*((B sqrt(gamma_T) + gamma_T) sqrt(T) +
    eps T sqrt(gamma_T) + (B sqrt(gamma_T) + gamma_T)^2), without eps being known
    ([Bogunovic2021b]_, Proposition 1). In practice, and on a ``Box``: none.
    """
    check_given(prior, "contextual_ec_gp_ucb")
    check_prior(domain, prior)
    check_span(span)
    theory.only(
        "contextual_ec_gp_ucb", *_IN_PRACTICE, practice=_IN_PRACTICE,
        width=("norm", "noise_sd"), confidence=confidence,
    )  # fmt: skip
    horizon = theory.horizon or 10_000
    gain = _gain(domain, prior, horizon)
    if learners is None:
        learners = max(1, math.ceil(1.0 + 0.5 * math.log2(horizon / gain**2)))
    if not isinstance(learners, int | np.integer) or learners < 1:
        raise ValueError(
            f"Balancing needs at least one learner, a whole number of them: got {learners!r}."
        )
    width = span[1] - span[0]
    # eps_i of section 4, i from 1; its rewards are in [0, 1], hence the width
    errors = [width * 2.0**-i / math.sqrt(gain) for i in range(learners)]
    each = Theory(theory.constants)
    if theory.proved and confidence is None:
        each = replace(theory, delta=theory.delta / (2.0 * learners), horizon=None)
    bases = [
        ec_gp_ucb(prior=prior, error=error, theory=each, confidence=confidence)(domain)
        for error in errors
    ]
    share = 1.0 if theory.proved else _SHARE
    bounds = [
        WidthPromise(
            base.confidence,
            _before(base, domain, prior),
            gain,
            width,
            # the error that the width allows for
            error if theory.proved else _WEIGHT * error,
            share,
        )
        for base, error in zip(bases, errors, strict=True)
    ]
    if c is None and not theory.proved:
        c = _COMPARISON
    # The learners have half of delta, the comparison the other half
    options = {"span": span, "c": c, "delta": theory.delta / 2.0, "everything": everything}
    return Balancing(tuple(bases), tuple(bounds), options)


@recipe
def any_threat(
    domain: Domain,
    *,
    prior: Prior | None = None,
    threats: Threats = _THREATS,
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    c: float | None = None,
    everything: bool | None = None,
    scale: Scale = median_and_mad_in_space,
) -> Balancing:
    """Regret bound balancing of five defences, against an unknown threat: our own.

    A2-RCGP-UCB (a few outliers), TGP-UCB (heavy tails), GP-UCB (no threat), RGP-UCB (a corruption
    budget) and EC-GP-UCB (a misspecified model). The learner with the least putative regret bound
    suggests; a learner whose rewards contradict its bound is eliminated. The first of these whose
    mean reward is not below another's recommends, so A2-RCGP-UCB unless the rewards contradict it.

    The rewards that are compared may be corrupted as well. So each is clipped to a robust range:
    three prior standard deviations of a result on either side of the prior mean, or without a prior
    three of ``scale`` on either side of its location. Then an outlier of any size, nan and
    infinities included, moves the mean reward of a learner by no more than the range over its
    plays.

    Parameters
    ----------
    prior:
        As in every recipe. Without a prior each learner fits its own. On a ``Box`` putative bounds
        use the gamma_T of 256 of its points, which is less than gamma_T.
    threats:
        What the learners are to withstand.
    theory:
        Its numbers for all recipes, with delta / 10 each, and T, by default 500: full bounds, the
        comparison allows for T_c corruptions and C, each learner observes its own plays. In
        practice all have the width of GP-UCB, enlarged as their recipes do; putative bounds are a
        tenth of those that the widths imply; comparisons are by ``c`` = 1/2 of the rewards' spread
        and do not count corruptions; all learners observe everything.
    confidence:
        The width of GP-UCB, instead of the default. In theory also that of A2-RCGP-UCB.
    c, everything:
        As in :class:`~stoic.balancing.Balanced`, instead of these.
    scale:
        Of results, without a prior.

    Guarantee
    ---------
    Proved, on a finite domain, for a given prior with a ``Theory``, ``c=None`` and
    ``everything=False``: if at most T_c results are corrupted, by any size, and all others are f
    plus noise of any law that is the same everywhere, moved by at most C in all, then with
    probability 1 - delta / 2 no well-specified learner is eliminated, and the regret is that of
    :class:`~stoic.balancing.Balanced`. Each learner is well-specified with probability 1 - delta
    / 10 under the assumptions of its theorem. The proofs' constants are large: for horizons of a
    few thousand rounds all bounds exceed the largest possible regret, and the learners take turns.

    Heuristic: everything else. In practice, on a ``Box`` and without a prior nothing is proved but
    that rewards are compared by clipped means.

    Raises
    ------
    ValueError
        If a number is out of range; or, without a prior, for a ``Theory`` and for a ``budget`` or
        an ``error``.
    """
    check_prior(domain, prior)
    theory.only("any_threat", *_USED, practice=_IN_PRACTICE)
    theory = replace(theory, delta=theory.delta / 10.0)
    horizon, budget, error = theory.horizon or 500, threats.budget, threats.error
    if prior is None and not (budget is None and error is None):
        raise ValueError(
            "A budget and an error are in units of the results, whose scale is not known without a "
            f"prior: give a prior, or leave them out. Got budget={budget!r}, error={error!r}."
        )
    if theory.proved:
        check_given(prior, "any_threat with a Theory")
    plain = confidence or self_normalised(theory) or Schedule()
    gp = gp_ucb(prior=prior, confidence=plain, scale=scale)(domain)
    gain = _gain(domain, prior, horizon)
    last = _before(gp, domain, prior)._replace(n=horizon, information=gain)
    weight = 1.0 if theory.proved else _WEIGHT
    # The C whose enlargement weight C / sqrt(noise) is the width of GP-UCB itself
    twice = plain(cast("Posterior", last), horizon + 1) * math.sqrt(last.prior.noise) / weight
    corruptions = threats.corruptions
    if corruptions is None:
        corruptions = round(horizon ** (1.0 / 3.0))
    corrupted = misled = plain
    # Likewise for weight eps sqrt(T / noise)
    off = twice / math.sqrt(horizon) if error is None else error  # without a prior: of the scale
    if prior is None:
        corrupted, misled = DoublingWidth(plain, horizon, 0.0), DoublingWidth(plain, horizon, 0.5)
        budget = error = 0.0  # DoublingWidth is enlarged already
    budget = twice if budget is None else budget
    error = off if error is None else error
    # A2-RCGP-UCB and TGP-UCB refuse numbers that they have no use for
    own = replace(theory, noise_sd=None, horizon=None) if theory.proved else PRACTICE
    counted = replace(own, horizon=horizon, corruptions=corruptions) if theory.proved else PRACTICE
    a2 = a2_rcgp_ucb(prior=prior, theory=counted, confidence=confidence, scale=scale)
    tgp = tgp_ucb(
        prior=prior,
        theory=own,
        moment=threats.moment,
        alpha=threats.alpha,
        confidence=None if theory.proved else plain,
        scale=scale,
    )
    # Their widths are given, so only the form of the enlargement is left
    form = Theory(theory.constants)
    rgp = rgp_ucb(prior=prior, budget=budget, theory=form, confidence=corrupted, scale=scale)
    ec = ec_gp_ucb(prior=prior, error=error, theory=form, confidence=misled, scale=scale)
    bases = (a2(domain), tgp(domain), gp, rgp(domain), ec(domain))
    errors = (0.0, 0.0, 0.0, 0.0, off * weight)
    span: tuple[float, float] | Scale = scale
    width = 2.0 * _REACH  # in scales, of a span that is estimated
    if prior is not None:
        reach = _REACH * math.sqrt(sum(variance_and_noise(domain, prior)))
        span, width = (prior.mean - reach, prior.mean + reach), 2.0 * reach
    share = 1.0 if theory.proved else _SHARE
    bounds = [
        WidthPromise(
            base.confidence,
            _before(base, domain, prior),
            gain,
            width,
            outside,
            share,
            corruptions if theory.proved and base is bases[0] else 0,
        )
        for base, outside in zip(bases, errors, strict=True)
    ]
    if c is None and not theory.proved:
        c = _COMPARISON
    options = {
        "span": span,
        "corrupted": corruptions if theory.proved else 0,
        "budget": budget if theory.proved else 0.0,
        "c": c,
        "unit": "span" if theory.proved else "spread",
        "delta": 5.0 * theory.delta,  # half of delta: five learners have a tenth each
        "proxy": 0.25,  # all points may be chosen
        "everything": not theory.proved if everything is None else everything,
    }
    return Balancing(bases, tuple(bounds), options)


def _before(parts: Parts, domain: Domain, prior: Prior | None) -> Foreseen:
    """Posterior without observations, as the width of a learner needs it."""
    posterior = parts.model(domain, Observations.none(domain.dim, domain.finite))
    kappa, _ = variance_and_noise(domain, prior)
    return Foreseen(posterior.prior, posterior.fitted_defence, kappa, 0, 0.0)


def _gain(domain: Domain, prior: Prior | None, horizon: int) -> float:
    """Upper bound on gamma_T on a finite domain, and elsewhere an estimate of it."""
    if prior is None:
        return 2.0 * domain.dim * math.log(1.0 + horizon)  # no lengthscale is known
    if isinstance(domain, Finite):
        return information_bounds(prior, domain, horizon).upper
    places = domain.spread(_PLACES, np.random.default_rng(0))
    return information_bounds(prior, Finite(np.unique(places, axis=0)), horizon).upper
