"""Recipes against a few outliers of any size [Ezzerg2026]_."""

from __future__ import annotations

import math
from typing import Literal

from stoic.confidence import Confidence, Enlarged, Schedule, influence, psi
from stoic.defences import AdaptivePlateau, Anchored, LeaveOneOut, Plateau
from stoic.defences.leave_one_out import AsSettled
from stoic.domains import Domain
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.posteriors.fitting import Fitting, Given, marginal_likelihood
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad_in_space
from stoic.recipes.parts import Seed, check_prior, family, kappa_and_noise, policy, union

Constants = Literal["practice", "theory"]


def fc_rcgp_ucb(
    domain: Domain,
    prior: Prior | None = None,
    *,
    constants: Constants = "practice",
    half_width: float | Literal["quantile"] | None = None,
    shape: float = 0.25,
    unit: Literal["scale", "noise"] = "scale",
    confidence: Confidence | None = None,
    corruptions: float | Literal["distrusted"] = 0,
    horizon: int = 100,
    delta: float = 0.1,
    norm: float = 1.0,
    scale: Scale = median_and_mad_in_space,
    initial: int = 0,
    retries: int | None = None,
    seed: Seed = None,
) -> Learner:
    """Fixed-centre RCGP-UCB, Algorithm 1 of [Ezzerg2026]_.

    The centre of the plateau is the prior mean: of a given prior as it stands, otherwise the
    location of the results. Half-width and shape are in prior standard deviations with a given
    prior, otherwise in units of the results' ``scale``.

    Parameters
    ----------
    domain, prior, initial, retries, seed:
        As in every recipe.
    constants:
        ``"practice"``: the width max(1, 1.7 sqrt(2 ln(t + 2))), without T_c. ``"theory"``: the
        half-width L_T = norm sqrt(kappa) + sigma sqrt(2 ln(3 T / delta)) and the enlarged width.
    half_width, shape, unit:
        The plateau; ``unit="noise"`` gives the shape in noise standard deviations.
    confidence:
        The width without enlargement, instead of the default.
    corruptions, horizon, delta, norm:
        T_c, T, delta and sqrt(B_f) of the theory. On a ``Box`` its base width is ``CompactUnion``
        with a = b = 1 and the longest side; give a ``confidence`` for other constants.
    scale:
        How results are standardised. The default gives each neighbourhood one vote; the paper's
        ``mean_and_sd`` is wrecked by one outlier.

    Guarantee
    ---------
    With a given prior and ``constants="theory"``: Theorem 4.2 of [Ezzerg2026]_, regret
    O(Psi(T_c) (1 + sqrt(T_c)) sqrt(beta_T T (gamma_T + T_c))) with probability 1 - delta, sublinear
    for T_c = o(T^(1/4)). While no residual leaves the plateau and T_c = 0 it is GP-UCB, choice by
    choice. In practice mode and with fitted hyperparameters, only the influence of each observation
    on the posterior is bounded.
    """
    _check(constants, unit, corruptions, horizon, delta)
    check_prior(domain, prior)
    theory = constants == "theory"
    kappa, noise = kappa_and_noise(domain, prior)
    if half_width is None:
        bound = noise_bound(horizon, delta / 3.0, noise)
        half_width = norm + bound / math.sqrt(kappa) if theory else 3.0
    defence: Plateau | AdaptivePlateau
    if prior is None:
        defence = AdaptivePlateau(half_width, shape, unit, scale, small_sample=not theory)
    elif half_width == "quantile":
        raise ValueError(
            "With a given prior the half-width is a number of its standard deviations."
        )
    else:
        defence = _fixed_plateau(prior, kappa, half_width, shape, unit)
    model = GaussianProcess(prior or family(domain), defence, _fitting(prior, scale))
    width = _width(domain, confidence, theory, corruptions, delta, norm)
    return Learner(domain, model, width, policy(initial, retries), seed)


def a2_rcgp_ucb(
    domain: Domain,
    prior: Prior | None = None,
    *,
    constants: Constants = "practice",
    anchor_half_width: float | None = None,
    anchor_shape: float | None = None,
    half_width: float | None = None,
    shape: float = 0.25,
    unit: Literal["scale", "noise"] = "scale",
    prequential: bool = False,
    small_sample: bool = False,
    place: float = 0.0,
    confidence: Confidence | None = None,
    corruptions: float | Literal["distrusted"] = 0,
    horizon: int = 100,
    delta: float = 0.1,
    norm: float = 1.0,
    scale: Scale = median_and_mad_in_space,
    initial: int = 0,
    retries: int | None = None,
    seed: Seed = None,
) -> Learner:
    """Anchor-adapt RCGP-UCB, Algorithm 2 of [Ezzerg2026]_.

    An anchor model with a fixed centre gives the centre of the acting model's plateau. Both have
    their own hyperparameters. Parameters are those of :func:`fc_rcgp_ucb`, and:

    Parameters
    ----------
    anchor_half_width, anchor_shape, half_width, shape:
        L_A and c_A of the anchor, L_R and c_R of the acting model; c_A is c_R by default. An anchor
        that forgets more slowly (a larger c_A) comes to believe results that agree with each other
        however far they are from the centre.
    prequential:
        Weigh each observation once, by the anchor as it stood before it.
    small_sample:
        Whether the acting plateau is wider while observations are few, as the anchor's is.
    place:
        Results less than this share of the domain's widths apart confirm each other; 0 for never.
    retries:
        How often a place whose results are not believed is asked again, see
        :class:`~stoic.policies.ucb.UCB`.

    Guarantee
    ---------
    With a given prior and ``constants="theory"``: Theorem 4.3 of [Ezzerg2026]_, sublinear regret
    for T_c = O(T^(1/7)). In practice mode and with fitted hyperparameters, only the influence of
    each observation on the acting model is bounded, given the centre.
    """
    _check(constants, unit, corruptions, horizon, delta)
    check_prior(domain, prior)
    theory = constants == "theory"
    if anchor_shape is None:
        anchor_shape = shape
    kappa, noise = kappa_and_noise(domain, prior)
    sd = math.sqrt(kappa)
    bound = noise_bound(horizon, delta / 3.0, noise) / sd
    if anchor_half_width is None:
        anchor_half_width = norm + bound if theory else 3.0
    deviation: float | None = None
    if half_width is None:
        half_width = 1.0
        if theory:  # Algorithm 2, line 5: sqrt(beta_A kappa) Psi(T_c) + N_T(delta / 3)
            count = 0.0 if corruptions == "distrusted" else float(corruptions)
            base = union(domain, delta).at(horizon)
            c = anchor_shape * (math.sqrt(noise) if unit == "noise" else sd)
            C_w = influence(anchor_half_width * sd, c, noise, (norm + base) * sd)
            half_width = (base + C_w * math.sqrt(count)) * psi(count, kappa, noise) + bound
            # The centre is the anchor's mean: Lemma D.5 bounds how far the lies move it.
            deviation = C_w * math.sqrt(count) * sd
    fitting = _fitting(prior, scale)
    anchor_defence: Plateau | AdaptivePlateau
    if prior is None:
        anchor_defence = AdaptivePlateau(
            anchor_half_width, anchor_shape, unit, scale, small_sample=not theory, place=place
        )
    else:
        anchor_defence = _fixed_plateau(prior, kappa, anchor_half_width, anchor_shape, unit)
    anchor = GaussianProcess(prior or family(domain), anchor_defence, fitting)
    defence = Anchored(
        anchor,
        half_width,
        shape,
        unit,
        scale if prior is None else _prior_scale(prior, kappa),
        small_sample=small_sample,
        place=place,
        prequential=prequential,
    )
    model = GaussianProcess(prior or family(domain), defence, fitting)
    width = _width(domain, confidence, theory, corruptions, delta, norm, deviation)
    return Learner(domain, model, width, policy(initial, retries), seed)


def loo_gp_ucb(
    domain: Domain,
    prior: Prior | None = None,
    *,
    half_width: float = 2.5,
    shape: float = 1.0,
    price: float = 3.0,
    confidence: Confidence | None = None,
    initial: int = 0,
    retries: int | None = None,
    seed: Seed = None,
) -> Learner:
    """GP-UCB behind :class:`~stoic.defences.leave_one_out.LeaveOneOut`: our own.

    Each result is judged by all the others; no centre, range or number of lies is assumed. What is
    believed first is checked by the search itself: it asks again where it stays uncertain.

    Parameters
    ----------
    domain, prior, initial, retries, seed:
        As in every recipe.
    half_width, shape, price:
        k, c and the price of distrust, see there. A lower price disbelieves sooner: it costs clean
        campaigns a second look at what surprises, and saves corrupted ones many.
    confidence:
        The width, instead of the default.

    Guarantee
    ---------
    None for the regret. Each result moves the posterior mean by at most (k + sqrt(k^2 + c^2)) / 2
    of the standard deviations that there would be without it, with the other rows' noises and the
    hyperparameters held. While nothing is outside, and no doubt has more evidence, it is
    :func:`~stoic.recipes.plain.gp_ucb`. Where nothing lies it may ask twice what surprises.
    """
    check_prior(domain, prior)
    chosen = prior or family(domain)
    judging = Given() if prior else Fitting(marginal_likelihood)
    defence = LeaveOneOut(chosen, judging, half_width, shape, price)
    model = GaussianProcess(chosen, defence, Given() if prior else AsSettled())
    return Learner(domain, model, confidence or Schedule(), policy(initial, retries), seed)


def noise_bound(horizon: int, delta: float, noise: float) -> float:
    """N_T(delta) = sigma sqrt(2 ln(T / delta)), appendix D.2 of [Ezzerg2026]_."""
    return math.sqrt(2.0 * noise * math.log(horizon / delta))


def _check(
    constants: str,
    unit: str,
    corruptions: float | Literal["distrusted"],
    horizon: int,
    delta: float,
) -> None:
    """Refuse what would silently mean something else."""
    if constants not in ("practice", "theory"):
        raise ValueError(f"constants is 'practice' or 'theory', got {constants!r}.")
    if unit not in ("scale", "noise"):
        raise ValueError(f"unit is 'scale' or 'noise', got {unit!r}.")
    if corruptions != "distrusted" and not (
        isinstance(corruptions, int | float) and 0.0 <= corruptions < math.inf
    ):
        raise ValueError(f"corruptions is a count >= 0 or 'distrusted', got {corruptions!r}.")
    if horizon < 1 or not 0.0 < delta < 1.0:
        raise ValueError(
            f"The theory needs a horizon >= 1 and 0 < delta < 1, got {horizon!r} and {delta!r}."
        )


def _fixed_plateau(
    prior: Prior, kappa: float, half_width: float, shape: float, unit: str
) -> Plateau:
    """A plateau about the prior mean, its numbers given in prior standard deviations."""
    sd = math.sqrt(kappa)
    if unit == "noise":
        return Plateau(half_width * sd, shape, prior.mean, "noise")
    return Plateau(half_width * sd, shape * sd, prior.mean)


def _prior_scale(prior: Prior, kappa: float) -> Scale:
    """The location and scale that a given prior says, whatever the results."""
    return lambda domain, observations: (prior.mean, math.sqrt(kappa))


def _fitting(prior: Prior | None, scale: Scale) -> Fitting | Given:
    return Fitting(scale=scale) if prior is None else Given()


def _width(
    domain: Domain,
    confidence: Confidence | None,
    theory: bool,
    corruptions: float | Literal["distrusted"],
    delta: float,
    norm: float,
    deviation: float | None = None,
) -> Confidence:
    base = confidence or (union(domain, delta) if theory else Schedule())
    if corruptions == 0:
        return base
    return Enlarged(base, corruptions, norm, deviation=deviation)
