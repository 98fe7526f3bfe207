"""Widths enlarged by the largest effect of corruptions on the posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from stoic.confidence.base import Confidence
from stoic.confidence.frequentist import check_norm
from stoic.confidence.theory import check_corruptions
from stoic.defences.plateau import Plateau
from stoic.posteriors.base import Posterior

# A finite cap: where a scale of 1e300 makes the bound infinite, the largest std still decides.
_WIDEST = 1e100


@runtime_checkable
class _HasPlateau(Protocol):
    @property
    def plateau(self) -> Plateau: ...


def psi(corruptions: float, kappa: float, noise: float) -> float:
    """Psi(n) = sqrt(1 + (n kappa / noise)(1 + n kappa / noise)): Lemma D.11 of [Ezzerg2026]_.

    It bounds the posterior sd without the corrupted rows by the observable one times Psi.
    """
    ratio = corruptions * kappa / noise
    return math.sqrt(1.0 + ratio * (1.0 + ratio))


def influence(half_width: float, shape: float, noise: float, deviation: float) -> float:
    """C_w = sqrt(2) C_1 / sigma^2, with the bound on C_1 of appendix G of [Ezzerg2026]_.

    C_1 <= W (sqrt(L^2 + c^2) + deviation + 4 sigma^2 / (3 sqrt(3) c)), W = sigma / sqrt 2, where
    ``deviation`` bounds |g - mu| between the centre and the posterior mean of the clean rows.
    """
    sigma = math.sqrt(noise)
    slack = 4.0 * noise / (3.0 * math.sqrt(3.0) * shape)  # largest w |m| / W, at z = c / sqrt 2
    # hypot(L, c) is the largest w |y - g| / W, at z = c^2 / L
    C_1 = sigma / math.sqrt(2.0) * (math.hypot(half_width, shape) + deviation + slack)
    return math.sqrt(2.0) * C_1 / noise


@dataclass(frozen=True, slots=True)
class CorruptionCount:
    """(base + C_w sqrt(T_c)) Psi(T_c): the robust multiplier of [Ezzerg2026]_, section 4.1.

    Half-width and shape come from the plateau of the posterior's own defence, kappa and the noise
    from its prior.

    Parameters
    ----------
    base:
        sqrt(beta'_t), the width without corruptions.
    corruptions:
        T_c, an assumed bound on the number of corrupted observations, capped at the number of
        observations; ``"distrusted"`` takes the number outside the plateau.
    norm:
        sqrt(B_f): |f| <= norm sqrt(kappa).
    variance:
        If true, multiply by Psi(T_c); the paper's "ideal" rates leave it out.
    deviation:
        Delta, a bound on |g - mu| between the centre and the posterior mean of the clean rows, in
        prior standard deviations sqrt(kappa). ``None`` takes norm + base, which bounds it in this
        round for a centre at the prior mean (Lemma D.1); Algorithms 1 and 2 take a bound for
        all T rounds, norm + the base of round T.

    Guarantee
    ---------
    If all clean residuals are inside the plateau, at most T_c observations are corrupted and the
    base width holds for the clean rows, f is in the band (Lemmas D.5, D.7, D.11). With T_c = 0,
    or before the first observation, it is the base width. A counted T_c is not a bound, so
    ``"distrusted"`` has no guarantee. The noise is the prior's: corruption of a row with a
    smaller noise of its own may have a greater effect.

    Raises
    ------
    ValueError
        When called for a posterior whose defence has no plateau.
    """

    base: Confidence
    corruptions: float | Literal["distrusted"]
    norm: float = 1.0
    variance: bool = True
    deviation: float | None = None

    def __post_init__(self) -> None:
        check_norm(self.norm)
        if self.deviation is not None and not 0.0 <= self.deviation < math.inf:
            raise ValueError(f"A deviation is a number >= 0, or None, got {self.deviation!r}.")
        check_corruptions(self.corruptions)

    def __call__(self, posterior: Posterior, t: int) -> float:
        base = self.base(posterior, t)
        if self.corruptions == 0:
            return base
        defence = posterior.fitted_defence
        if not isinstance(defence, _HasPlateau):
            raise ValueError(
                f"CorruptionCount needs a defence with a plateau, got {type(defence).__name__}: "
                "use Plateau, AdaptivePlateau or Anchored, or corruptions=0."
            )
        count = self.corruptions
        corruptions = posterior.distrusted if count == "distrusted" else min(count, posterior.n)
        if corruptions == 0:
            return base
        noise, kappa = posterior.prior.noise, posterior.max_variance
        unit = math.sqrt(noise) if defence.plateau.unit == "noise" else 1.0
        half_width = float(np.max(defence.plateau.half_width))
        deviation = self.norm + base if self.deviation is None else self.deviation
        # Each row may have a shape of its own, in which the influence is convex
        C_w = max(
            influence(half_width, float(c) * unit, noise, deviation * math.sqrt(kappa))
            for c in (np.min(defence.plateau.shape), np.max(defence.plateau.shape))
        )
        factor = psi(corruptions, kappa, noise) if self.variance else 1.0
        return min((base + C_w * math.sqrt(corruptions)) * factor, _WIDEST)
