"""Recipes for noise with heavy tails [Chowdhury2019]_.

Of a result y only E|y - mean|^(1 + alpha) <= v is known, with the prior mean, 0 < alpha <= 1 and v
the ``moment``. By default v = (kappa + noise)^((1 + alpha) / 2), from the prior's variance of a
result, which bounds the moment of any result with this variance. Without a prior the moment is in
units of the results' scale, and hyperparameters are fitted to truncated results.
"""

from __future__ import annotations

import math
from typing import Literal

from stoic.confidence import (
    PRACTICE,
    Confidence,
    FeatureTruncation,
    GrowingTruncation,
    Schedule,
    Theory,
)
from stoic.defences import AdaptiveTruncation, MedianOfMeans, Truncation
from stoic.domains import Domain
from stoic.models import GaussianProcess
from stoic.models.truncated import TruncatedFeatures
from stoic.policies import UCB, Policy
from stoic.posteriors.features import Features, Fourier, Nystroem
from stoic.posteriors.levels import FeatureLevel, check_moment
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad_in_space
from stoic.recipes.base import Parts, recipe
from stoic.recipes.parts import check_prior, family, fitting, variance_and_noise

_DISTORTION = 0.1  # eps of the width, of features without one


@recipe
def tgp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    theory: Theory = PRACTICE,
    moment: float | None = None,
    alpha: float = 1.0,
    confidence: Confidence | None = None,
    scale: Scale = median_and_mad_in_space,
    policy: Policy | None = None,
) -> Parts:
    """TGP-UCB, Algorithm 1 of [Chowdhury2019]_: each result is truncated once, on arrival.

    Parameters
    ----------
    prior, policy:
        As in every recipe. The noise of the prior is lambda of the paper, which has 1.
    theory:
        B >= ||f - mean||_k and delta of the width; ``Theory("practice", ...)`` as the authors ran
        it. The level is the same.
    moment, alpha:
        v and alpha.
    confidence:
        Another width instead. Without a prior the default is ``Schedule()``.
    scale:
        Standardisation of the results while hyperparameters are fitted.

    Guarantee
    ---------
    With a given prior, a ``Theory``, k(x, x) <= 1 and the right moment: Theorem 1 of
    [Chowdhury2019]_, with probability 1 - delta regret O(B sqrt(gamma_T T) + v^(1 / (1 + alpha))
    sqrt(gamma_T (gamma_T + ln(1 / delta))) T^((2 + alpha) / (2 (1 + alpha)))): T^(3/4) for a finite
    variance, where T^(1/2) is possible. None in practice and with fitted hyperparameters.
    """
    used = ("norm", "delta")
    theory.only("tgp_ucb", practice=used, width=used, confidence=confidence)
    _check_theory(prior, theory)
    check_prior(domain, prior)
    defence = _truncation(domain, prior, moment, alpha)
    width = confidence or Schedule()
    if confidence is None and isinstance(defence, Truncation):
        width = GrowingTruncation(theory.norm, defence.moment, alpha, theory.delta, theory.form)
    model = GaussianProcess(prior or family(domain), defence, fitting(prior, scale))
    return Parts(model, width, policy or UCB())


@recipe
def ata_gp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    features: Literal["qff", "nystroem"] | Features = "nystroem",
    theory: Theory = PRACTICE,
    moment: float | None = None,
    alpha: float = 1.0,
    confidence: Confidence | None = None,
    scale: Scale = median_and_mad_in_space,
    policy: Policy | None = None,
) -> Parts:
    """ATA-GP-UCB, Algorithm 2 of [Chowdhury2019]_: the history is truncated anew in each feature.

    Parameters
    ----------
    prior, theory, moment, alpha, confidence, scale, policy:
        As in :func:`tgp_ucb`; ``theory`` also selects the level and the dictionary, and has their
        horizon T, by default 1000.
    features:
        ``"nystroem"`` for any kernel, ``"qff"`` for a given squared exponential, or an instance of
        :class:`~stoic.posteriors.features.Fourier`, with a number of nodes, or
        :class:`~stoic.posteriors.features.Nystroem`, with a distortion and the seed of its
        dictionaries: a stream of their own, so that they do not change what the learner draws.

    Guarantee
    ---------
    With a given prior, a ``Theory``, k(x, x) <= 1 and the right moment, with probability
    1 - delta. ``"qff"``: Theorem 3 of [Chowdhury2019]_, regret O(B sqrt(T ln^(d + 1) T) +
    v^(1 / (1 + alpha)) (ln(T ln^d T / delta))^(alpha / (1 + alpha)) sqrt(ln T) ln^d T
    T^(1 / (1 + alpha))), with enough nodes that the error of the kernel is below T^-6.
    ``"nystroem"``: Theorem 4, the same power of T times gamma_T for any kernel. T^(1 / (1 + alpha))
    is optimal. None in practice and with fitted hyperparameters.

    Raises
    ------
    ValueError
        If the kernel is not one that the features embed.
    """
    theory.only(
        "ata_gp_ucb", "delta", "horizon", practice=("norm", "delta", "horizon"),
        width=("norm",), confidence=confidence,
    )  # fmt: skip
    _check_theory(prior, theory)
    horizon, delta = theory.horizon or 1000, theory.delta
    check_prior(domain, prior)
    if features == "qff":
        features = Fourier()
    elif features == "nystroem":
        features = Nystroem(horizon=horizon, delta=delta, constants=theory.form)
    elif isinstance(features, str) or not callable(features):
        raise ValueError(f"features is 'qff' or 'nystroem', or a Features, got {features!r}.")
    if prior is None and isinstance(features, Fourier):
        raise ValueError(
            "Quadrature Fourier features need a given prior with a squared exponential kernel: a "
            "fitted lengthscale may need any number of them. Give a prior, or use 'nystroem'."
        )
    if prior is not None:
        features.check(domain, prior)
    defence = _truncation(domain, prior, moment, alpha)
    drawn = not isinstance(features, Fourier)
    level = FeatureLevel(horizon, delta, theory.form, drawn)
    width = confidence or Schedule()
    if confidence is None and isinstance(defence, Truncation):
        eps = features.distortion if isinstance(features, Nystroem) else _DISTORTION
        width = FeatureTruncation(theory.norm, defence.moment, level, alpha, distortion=eps)
    model = TruncatedFeatures(
        prior or family(domain), features, level, defence, fitting(prior, scale)
    )
    return Parts(model, width, policy or UCB())


@recipe
def mom_gp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    delta: float = 0.1,
    confidence: Confidence | None = None,
    scale: Scale = median_and_mad_in_space,
    policy: Policy | None = None,
) -> Parts:
    """GP-UCB on the median of means of the results at each point.

    The closing remark of [Chowdhury2019]_ in its plainest form: per point and not per feature. It
    needs replicates, so it is for finite domains, and no moment.

    Parameters
    ----------
    prior, confidence, scale, policy:
        As in :func:`tgp_ucb`; ``confidence`` is ``Schedule()`` by default.
    delta:
        Failure probability; the number of blocks is 8 ln(1 / delta).

    Guarantee
    ---------
    At one point: that of :class:`~stoic.defences.median_of_means.MedianOfMeans`. None for the band
    and none for the regret; points that were queried three times or less have no defence.
    """
    check_prior(domain, prior)
    model = GaussianProcess(
        prior or family(domain), MedianOfMeans.for_confidence(delta), fitting(prior, scale)
    )
    return Parts(model, confidence or Schedule(), policy or UCB())


def _check_theory(prior: Prior | None, theory: Theory) -> None:
    if prior is None and theory.proved:
        raise ValueError(
            "A theory is for a given prior, whose moment and norm are known: give a prior, or "
            "Theory('practice')."
        )


def _truncation(
    domain: Domain, prior: Prior | None, moment: float | None, alpha: float
) -> Truncation | AdaptiveTruncation:
    if prior is None:
        return AdaptiveTruncation(2.0 if moment is None else moment, alpha)
    if moment is None:
        check_moment(1.0, alpha)  # alpha alone: the moment follows from it
        kappa, noise = variance_and_noise(domain, prior)
        # Jensen: E|r|^(1 + alpha) <= (E r^2)^((1 + alpha) / 2)
        moment = math.pow(kappa + noise, 0.5 * (1.0 + alpha))
    return Truncation(moment, alpha)
