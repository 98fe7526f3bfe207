"""Widths for noise with heavy tails [Chowdhury2019]_.

v bounds the (1 + alpha)-th moment of a result about the prior mean, B the norm of f. A width in
round t rests on t - 1 results, so the paper's beta_(t+1) is the width in round t + 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.confidence.frequentist import check_norm
from stoic.models.truncated import Truncated
from stoic.posteriors.base import Posterior
from stoic.posteriors.levels import (
    Constants,
    FeatureLevel,
    check_constants,
    check_moment,
    growing_level,
)


@dataclass(frozen=True, slots=True)
class GrowingTruncation:
    """Width of TGP-UCB, for results truncated at b_t = v^(1/(1+alpha)) t^(1/(2(1+alpha))).

    Theory: B + 3 / sqrt(noise) b_(t-1) sqrt(ln det(I + K / noise) + 2 ln(1 / delta)). Practice, as
    the authors ran it: B sqrt(noise) + b_t sqrt(ln t); they had noise = 1, where the first terms
    agree.

    Parameters
    ----------
    norm:
        B >= ||f - mean||_k.
    moment, alpha:
        v and alpha.
    delta:
        Failure probability.
    constants:
        ``"practice"`` or ``"theory"``.

    Guarantee
    ---------
    Theory, behind :class:`~stoic.defences.truncation.Truncation` with the same moment: f is in
    the band everywhere in all rounds with probability 1 - delta (Theorem 1 of [Chowdhury2019]_),
    for delta <= 3/4. The truncated noise is b_t-sub-Gaussian, and the bias of the truncation is at
    most sqrt(1 + alpha) b_t / sqrt(noise); the factor 3 covers both once 2 ln(1 / delta) >= 1/2.
    None in practice.
    """

    norm: float
    moment: float
    alpha: float = 1.0
    delta: float = 0.1
    constants: Constants = "practice"

    def __post_init__(self) -> None:
        check_norm(self.norm)
        check_moment(self.moment, self.alpha)
        check_constants(self.constants, 1, self.delta)

    def __call__(self, posterior: Posterior, t: int) -> float:
        noise = posterior.prior.noise
        if self.constants == "practice":
            level = growing_level(t, self.moment, self.alpha)
            return self.norm * math.sqrt(noise) + level * math.sqrt(math.log(t))
        level = growing_level(t - 1, self.moment, self.alpha)  # 0 in round 1: the width is B
        inner = 2.0 * posterior.information + 2.0 * math.log(1.0 / self.delta)
        return self.norm + 3.0 / math.sqrt(noise) * level * math.sqrt(inner)


@dataclass(frozen=True, slots=True)
class FeatureTruncation:
    """Width of ATA-GP-UCB, for results truncated in each of m features.

    With b = v^(1/(1+alpha)) L^(alpha/(1+alpha)) s^((1-alpha)/(2(1+alpha))), L as in
    :class:`~stoic.posteriors.levels.FeatureLevel`:

    theory: B' + 4 sqrt(m / noise) b at s = t - 1, where B' = B for features given in advance and
    B (1 + 1 / sqrt(1 - distortion)) for features drawn from the data;
    practice, as the authors ran it: B sqrt(noise) + sqrt(m) b at s = t.

    Parameters
    ----------
    norm, moment, alpha:
        As in :class:`GrowingTruncation`.
    level:
        Truncation level of the features, a function of T and delta.
    features:
        m; ``None`` takes the number of features of a posterior that has them.
    distortion:
        eps of the Nystroem features.

    Guarantee
    ---------
    Theory: f is in the band with probability 1 - delta in all T rounds, up to O(B sqrt(error)
    t^2) for quadrature features with an error of the kernel of ``error`` (Lemma 1 of
    [Chowdhury2019]_; ``error`` is an attribute of the embedding), and without that term for
    Nystroem features that distort variances by at most (1 + eps) / (1 - eps) (Theorem 4). For that
    alpha, v and B must be right and k(x, x) <= 1. None in practice.

    Raises
    ------
    ValueError
        When called for a posterior that has no features, without a number of them.
    """

    norm: float
    moment: float
    level: FeatureLevel
    alpha: float = 1.0
    features: int | None = None
    distortion: float = 0.1

    def __post_init__(self) -> None:
        check_norm(self.norm)
        check_moment(self.moment, self.alpha)
        if not 0.0 < self.distortion < 1.0:
            raise ValueError(f"A distortion is between 0 and 1, got {self.distortion!r}.")

    def __call__(self, posterior: Posterior, t: int) -> float:
        m = self.features
        if m is None:
            if not isinstance(posterior, Truncated):
                raise ValueError(
                    "FeatureTruncation needs a model with features or their number, got a "
                    f"posterior of type {type(posterior).__name__}: use TruncatedFeatures."
                )
            m = posterior.features
        noise, practice = posterior.prior.noise, self.level.constants == "practice"
        power = 1.0 / (1.0 + self.alpha)
        s = t if practice else max(t - 1, 1)
        b = self.moment**power * self.level.logarithm(m) ** (self.alpha * power)
        b *= s ** (0.5 * (1.0 - self.alpha) * power)
        if practice:
            return float(self.norm * math.sqrt(noise) + math.sqrt(m) * b)
        factor = 1.0 + 1.0 / math.sqrt(1.0 - self.distortion) if self.level.drawn else 1.0
        return float(self.norm * factor + 4.0 * math.sqrt(m / noise) * b)
