"""Recipes against a few outliers of any size [Ezzerg2026]_."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from stoic.confidence import (
    PRACTICE,
    BoundedNoise,
    Confidence,
    CorruptionCount,
    Schedule,
    Theory,
    influence,
    psi,
)
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Anchored, Plateau
from stoic.defences.anchored import Reach
from stoic.domains import Domain, Finite
from stoic.models import GaussianProcess, LeaveOneOutGP
from stoic.policies import UCB, Policy, Requery
from stoic.posteriors import information_bounds
from stoic.posteriors.fitting import (
    Fitting,
    FixedHyperparameters,
    bounded_leave_one_out,
    marginal_likelihood,
)
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad_in_space
from stoic.recipes.base import Parts, recipe
from stoic.recipes.parts import check_prior, family, fitting, union, variance_and_noise

_USED = ("corruptions", "horizon", "delta", "norm", "assumption", "gain")  # of a theory


@dataclass(frozen=True)
class ActingPlateau:
    """Plateau of the acting model of :func:`a2_rcgp_ucb`.

    Parameters
    ----------
    half_width, shape, unit:
        L_R and c_R, as in :func:`fc_rcgp_ucb`. ``half_width="anchor"``, with a theory: the adaptive
        L_R,t(x) = sqrt(beta_A,t) Psi(T_c) std_A(x) + N_T(delta / 3) of appendix D.5.1, which is at
        most the constant of Algorithm 2 and allows an estimated T_c. The constant does not: with
        ``corruptions="distrusted"`` it and Delta, below, are those for T_c = 0.
    """

    half_width: float | Literal["anchor"] | None = None
    shape: float = 0.25
    unit: Literal["scale", "noise"] = "scale"


@dataclass(frozen=True)
class Anchor:
    """Anchor model of :func:`a2_rcgp_ucb`.

    Parameters
    ----------
    half_width, shape:
        L_A and c_A of its plateau; c_A is c_R by default. An anchor whose weights decay more slowly
        (a larger c_A) comes to trust results that agree with each other however far they are from
        the centre.
    prequential:
        Weight each observation once, by the anchor before it was observed.
    """

    half_width: float | None = None
    shape: float | None = None
    prequential: bool = False


_ACTING, _ANCHOR = ActingPlateau(), Anchor()


@runtime_checkable
class Foreseen(Protocol):
    """Width that is known in advance."""

    def at(self, t: int) -> float:
        """Width in round ``t``, independent of the posterior."""


@recipe
def fc_rcgp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    half_width: float | Literal["quantile"] | None = None,
    shape: float = 0.25,
    unit: Literal["scale", "noise"] = "scale",
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    scale: Scale = median_and_mad_in_space,
    policy: Policy | None = None,
) -> Parts:
    """Fixed-centre RCGP-UCB, Algorithm 1 of [Ezzerg2026]_.

    The centre of the plateau is the prior mean: of a given prior as it stands, otherwise the
    location of the results. Half-width and shape are in prior standard deviations with a given
    prior, otherwise in units of the results' ``scale``.

    Parameters
    ----------
    prior, policy:
        As in every recipe.
    half_width, shape, unit:
        The plateau; ``unit="noise"`` gives the shape in noise standard deviations. By default the
        half-width is 3, and wider while results are few: then their scale is uncertain. A given
        one is taken as it is; ``"quantile"`` is the 95 % quantile of |y - median|.
    confidence:
        The width without enlargement, instead of the default.
    theory:
        T_c, T (by default 100), delta and norm = sqrt(B_f), for |f - mean| <= norm sqrt(kappa), of
        the half-width L_T = norm sqrt(kappa) + N_T(delta / 3) and the enlarged width.
        ``"distrusted"`` estimates T_c by the number of results outside the plateau. In practice the
        width is max(1, 1.7 sqrt(2 ln(t + 2))), without T_c unless it is given, and without Psi(T_c)
        (appendix I.1): the band is so wide then that a search is hardly better than random.

        For f drawn from the prior, with Gaussian noise (cases 1 and 2), the base width is
        ``FiniteUnion(N, delta / 3)``, on a ``Box`` ``CompactUnion`` with a = b = 1 and the longest
        side (give a ``confidence`` for other constants), and N_T(delta / 3) =
        sigma sqrt(2 ln(3 T / delta)). For f of bounded norm, noise within sigma (case 3), it is
        ``BoundedNoise(norm^2, delta / 3, gain)`` with the maximum information gain gamma_T, and
        N_T = sigma. On a finite domain with a given prior ``gain`` is an upper bound on gamma_T
        unless it is given.
    scale:
        Standardisation of the results. The default weights observations by inverse local density;
        the paper's ``mean_and_sd`` has breakdown point 0.

    Guarantee
    ---------
    With a given prior and a ``Theory``: Theorem 4.2 of [Ezzerg2026]_, regret
    O(Psi(T_c) (1 + sqrt(T_c)) sqrt(beta_T T (gamma_T + T_c))) with probability 1 - delta, sublinear
    for T_c = o(T^(1/4)). While no residual leaves the plateau and T_c = 0 it is GP-UCB, choice by
    choice. In practice mode and with fitted hyperparameters, only the influence of each observation
    on the posterior is bounded.
    """
    theory.only("fc_rcgp_ucb", *_USED, practice=("corruptions",))
    _check_unit(unit)
    check_prior(domain, prior)
    kappa, noise = variance_and_noise(domain, prior)
    practice = half_width is None and not theory.proved
    if half_width is None:
        half_width = 3.0
        if theory.proved:
            # Algorithm 1, line 3: L_T, in units of sqrt(kappa)
            half_width = theory.norm + _noise_bound(theory, noise) / math.sqrt(kappa)
    defence: Plateau | AdaptivePlateau
    if prior is None:
        defence = AdaptivePlateau(half_width, shape, unit, scale, small_sample=practice)
    elif half_width == "quantile":
        raise ValueError(
            "With a given prior the half-width is a number of its standard deviations."
        )
    else:
        defence = _fixed_plateau(prior, kappa, half_width, shape, unit)
    # Under weights the marginal likelihood is that of pseudo-observations
    fitted = fitting(prior, scale, bounded_leave_one_out)
    model = GaussianProcess(prior or family(domain), defence, fitted)
    if confidence is None:
        confidence = _base(domain, prior, theory) if theory.proved else Schedule()
    return Parts(model, _enlarged(confidence, theory), policy or UCB())


@recipe
def a2_rcgp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    plateau: ActingPlateau = _ACTING,
    anchor: Anchor = _ANCHOR,
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    scale: Scale = median_and_mad_in_space,
    policy: Policy | None = None,
) -> Parts:
    """Anchor-adapt RCGP-UCB, Algorithm 2 of [Ezzerg2026]_.

    An anchor model with a fixed centre gives the centre of the acting model's plateau. Each has
    its own hyperparameters. Parameters are those of :func:`fc_rcgp_ucb`, and:

    Parameters
    ----------
    plateau, anchor:
        Of the acting model, and of the anchor.

    Guarantee
    ---------
    With a given prior and a ``Theory``: Theorem 4.3 of [Ezzerg2026]_, sublinear regret
    for T_c = O(T^(1/7)). In practice mode and with fitted hyperparameters, only the influence of
    each observation on the acting model is bounded, given the centre.

    Lemma D.25 bounds the distance Delta between a row's centre and the clean posterior mean as if
    both used the same rows. They do not: the centre is the anchor's prediction before the row (or
    without the newest row). The bound Delta <= (sqrt(beta_A,T) Psi(T_c) + sqrt(beta'_T))
    sqrt(kappa) holds, through f, whenever both bands do, and is used instead.
    """
    theory.only("a2_rcgp_ucb", *_USED, practice=("corruptions",))
    _check_unit(plateau.unit)
    check_prior(domain, prior)
    anchor_shape = plateau.shape if anchor.shape is None else anchor.shape
    kappa, noise = variance_and_noise(domain, prior)
    sd = math.sqrt(kappa)
    bound = _noise_bound(theory, noise) / sd  # N_T, in units of sqrt(kappa)
    anchor_half_width = anchor.half_width
    if anchor_half_width is None:
        anchor_half_width = theory.norm + bound if theory.proved else 3.0
    adaptive = plateau.half_width == "anchor"
    if adaptive and not theory.proved:
        raise ValueError("half_width='anchor' is made of the theory's constants: give a Theory.")
    base = confidence or (_base(domain, prior, theory) if theory.proved else Schedule())
    deviation: float | None = None
    reach: float | Reach = 1.0
    if plateau.half_width is not None and plateau.half_width != "anchor":
        reach = plateau.half_width
    elif theory.proved:
        last = _last(base, _horizon(theory))
        c = anchor_shape * (math.sqrt(noise) if plateau.unit == "noise" else sd)
        count = 0.0 if theory.corruptions == "distrusted" else float(theory.corruptions)
        # Algorithm 2, lines 3 to 5: C_w,A; sqrt(beta_A,T) Psi(T_c); L_R
        C_w = influence(anchor_half_width * sd, c, noise, (theory.norm + last) * sd)
        furthest = (last + C_w * math.sqrt(count)) * psi(count, kappa, noise)
        reach = Reach(_enlarged(base, theory), bound) if adaptive else furthest + bound
        deviation = furthest + last  # Delta, in the same units
    fitted = fitting(prior, scale, bounded_leave_one_out)
    anchor_defence: Plateau | AdaptivePlateau
    if prior is None:
        anchor_defence = AdaptivePlateau(
            anchor_half_width,
            anchor_shape,
            plateau.unit,
            scale,
            small_sample=anchor.half_width is None and not theory.proved,
        )
    else:
        anchor_defence = _fixed_plateau(prior, kappa, anchor_half_width, anchor_shape, plateau.unit)
    defence = Anchored(
        GaussianProcess(prior or family(domain), anchor_defence, fitted),
        reach,
        plateau.shape,
        plateau.unit,
        scale if prior is None else _OfPrior(prior.mean, sd),
        prequential=anchor.prequential,
    )
    model = GaussianProcess(prior or family(domain), defence, fitted)
    return Parts(model, _enlarged(base, theory, deviation), policy or UCB())


@recipe
def loo_gp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    half_width: float = 2.5,
    shape: float = 1.0,
    price: float = 3.0,
    confidence: Confidence | None = None,
    policy: Policy | None = None,
) -> Parts:
    """GP-UCB behind :class:`~stoic.models.LeaveOneOutGP`: our own.

    Each result is tested against the leave-one-out prediction; no centre, range or number of
    outliers is assumed. Where that leaves several outlier hypotheses, the likeliest gives the mean
    and all of them the deviation, see :class:`~stoic.models.LeaveOneOutGP`: so the search queries
    again where they differ. Results of few values have at least the noise of rounding.

    Parameters
    ----------
    prior, policy:
        As in every recipe; by default ``Requery(UCB())``, which evaluates a rejected result that
        would be the best again.
    half_width, shape, price:
        k, c and the outlier penalty in nats, see there. A lower penalty rejects sooner: it costs
        clean campaigns a re-evaluation of surprising results, and saves corrupted ones many.
    confidence:
        The width, instead of the default.

    Guarantee
    ---------
    None for the regret. Under a hypothesis in which a result may be an outlier, it moves the
    posterior mean by at most (k + sqrt(k^2 + c^2)) / 2 of the standard deviations without it, with
    the other rows' noises and the hyperparameters fixed. The hypothesis of no outliers has no such
    bound: it gives the mean while its evidence is the highest, and loses evidence as one result
    grows. While no result is outside and one hypothesis is left, it is
    :func:`~stoic.recipes.plain.gp_ucb`. Without outliers it may query surprising results twice,
    such as a deep trough at an edge. A result that would be the best is not given up through fewer
    than t^(1/3) corruptions beside it, see there.
    """
    check_prior(domain, prior)
    chosen = prior or family(domain)
    # Without ``scale``: the model does not use that of its fitting
    judging = FixedHyperparameters() if prior else Fitting(marginal_likelihood, step=None)
    model = LeaveOneOutGP(chosen, judging, half_width, shape, price)
    return Parts(model, confidence or Schedule(), policy or Requery(UCB()))


def noise_bound(horizon: int, delta: float, noise: float, *, bounded: bool = False) -> float:
    """Noise bound N_T(delta) of appendix D.2 of [Ezzerg2026]_, for all T rounds.

    sigma sqrt(2 ln(T / delta)) for Gaussian noise, sigma for noise that is bounded by sigma.
    """
    return math.sqrt(noise if bounded else 2.0 * noise * math.log(horizon / delta))


def _noise_bound(theory: Theory, noise: float) -> float:
    bounded = theory.assumption == "norm"
    # A third of delta each for the noise, the band and the size of f (appendix D.4.1)
    return noise_bound(_horizon(theory), theory.delta / 3.0, noise, bounded=bounded)


def _horizon(theory: Theory) -> int:
    return theory.horizon or 100


def _check_unit(unit: str) -> None:
    if unit not in ("scale", "noise"):
        raise ValueError(f"unit is 'scale' or 'noise', got {unit!r}.")


def _fixed_plateau(
    prior: Prior, kappa: float, half_width: float, shape: float, unit: str
) -> Plateau:
    """Plateau about the prior mean, from numbers in prior standard deviations."""
    sd = math.sqrt(kappa)
    if unit == "noise":
        return Plateau(half_width * sd, shape, prior.mean, "noise")
    return Plateau(half_width * sd, shape * sd, prior.mean)


@dataclass(frozen=True)
class _OfPrior:
    """Scale: mean and standard deviation of a given prior, whatever the results."""

    mean: float
    sd: float

    def __call__(self, domain: Domain, observations: Observations) -> tuple[float, float]:
        return self.mean, self.sd


def _base(domain: Domain, prior: Prior | None, theory: Theory) -> Confidence:
    """Width sqrt(beta'_t(delta / 3)) of appendix D.2, in its three cases."""
    if theory.assumption == "draw":
        if theory.gain is not None:
            raise ValueError(
                f"Only assumption='norm' has a gain: leave it out, got {theory.gain!r}."
            )
        return union(domain, theory.delta)  # it takes the third itself
    gain = theory.gain
    if gain is None:
        if prior is None or not isinstance(domain, Finite):
            raise ValueError(
                "assumption='norm' needs gain=, a bound on the maximum information gain of all "
                f"rounds; it is known for a given prior on a finite domain, got {domain!r}."
            )
        gain = information_bounds(prior, domain, _horizon(theory)).upper
    return BoundedNoise(theory.norm**2, theory.delta / 3.0, gain)


def _last(base: Confidence, horizon: int) -> float:
    """Width without enlargement in the last round."""
    if not isinstance(base, Foreseen):
        raise ValueError(
            "The theory's half-width is made of the width of the last round, which "
            f"{type(base).__name__} does not know in advance: use FiniteUnion, CompactUnion, "
            "BoundedNoise with its gain, or another confidence that has ``at``; or give a "
            "half_width where the recipe has one."
        )
    return base.at(horizon)


def _enlarged(base: Confidence, theory: Theory, deviation: float | None = None) -> Confidence:
    """Enlarge the base width for T_c corruptions, if there are any.

    In practice without Psi(T_c): appendix I.1 takes the posterior deviation for that of the clean
    rows, which Psi is there to bound.
    """
    if theory.corruptions == 0:
        return base
    return CorruptionCount(base, theory.corruptions, theory.norm, theory.proved, deviation)
