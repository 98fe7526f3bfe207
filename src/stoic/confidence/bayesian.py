"""Widths that hold with probability 1 - delta when f is a draw from the prior [Srinivas2010]_."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.posteriors.base import Posterior


def check_delta(delta: float) -> None:
    """Refuse a failure probability outside (0, 1)."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"A failure probability is between 0 and 1, got {delta!r}.")


def check_arms(arms: int) -> None:
    """Refuse what is no number of points."""
    if not (1 <= arms < math.inf and arms == int(arms)):
        raise ValueError(f"A domain has at least one point, got {arms!r}.")


def share_of(delta: float, t: int) -> float:
    """6 delta / (pi t)^2: share of delta for round or epoch t; the shares add up to delta."""
    return 6.0 * delta / (math.pi * t) ** 2


@dataclass(frozen=True, slots=True)
class FiniteUnion:
    """sqrt(2 ln(N t^2 pi^2 / (6 delta))) for N arms: Theorem 1 of [Srinivas2010]_.

    Guarantee
    ---------
    If f is a draw from the prior and the noise is Gaussian with the prior's variance, f is in the
    band on all arms in all rounds with probability 1 - delta.
    """

    arms: int
    delta: float = 0.1

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_arms(self.arms)

    def at(self, t: int) -> float:
        """Width in round ``t``, for any posterior."""
        return math.sqrt(2.0 * math.log(self.arms * t**2 * math.pi**2 / (6.0 * self.delta)))

    def __call__(self, posterior: Posterior, t: int) -> float:
        return self.at(t)


@dataclass(frozen=True, slots=True)
class CompactUnion:
    """Theorem 2 of [Srinivas2010]_, for a draw from the prior on [0, r]^dim.

    sqrt(2 ln(2 pi^2 t^2 / (3 delta)) + 2 d ln(t^2 d b r sqrt(ln(4 d a / delta)))).

    Parameters
    ----------
    dim:
        d.
    a, b:
        Constants of P(sup |df/dx_j| > M) <= a exp(-(M / b)^2).
    extent:
        r, the side of the cube.
    delta:
        Failure probability.

    Guarantee
    ---------
    With such a draw and Gaussian noise, the regret bound of Theorem 2 holds with probability
    1 - delta; the band itself holds on a discretisation that is refined with t. The printed
    formula in [Ezzerg2026]_, appendix D.2, lost a parenthesis; this is the original.
    """

    dim: int
    a: float = 1.0
    b: float = 1.0
    extent: float = 1.0
    delta: float = 0.1

    def __post_init__(self) -> None:
        check_delta(self.delta)
        for value in (self.dim, self.a, self.b, self.extent):
            if not 0.0 < value < math.inf:
                raise ValueError(f"dim, a, b and extent are positive and finite, got {value!r}.")

    def at(self, t: int) -> float:
        """Width in round ``t``, for any posterior."""
        d = self.dim
        root = math.sqrt(max(math.log(4.0 * d * self.a / self.delta), 0.0))
        # Points of the discretisation in each coordinate: one at least, where b and r are small
        cells = max(t**2 * d * self.b * self.extent * root, 1.0)
        beta = 2.0 * math.log(2.0 * math.pi**2 * t**2 / (3.0 * self.delta))
        return math.sqrt(beta + 2.0 * d * math.log(cells))

    def __call__(self, posterior: Posterior, t: int) -> float:
        return self.at(t)
