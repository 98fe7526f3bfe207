"""Widths that depend on the round alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.posteriors.base import Posterior


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant width.

    Guarantee
    ---------
    At one given point of a correctly specified Gaussian process the band of width 2 holds with
    probability 0.954. It holds nowhere uniformly.
    """

    width: float = 2.0

    def __post_init__(self) -> None:
        if not (self.width >= 0.0 and math.isfinite(self.width)):
            raise ValueError(f"A width is a number >= 0, got {self.width!r}.")

    def __call__(self, posterior: Posterior | None, t: int) -> float:
        return self.width


@dataclass(frozen=True, slots=True)
class Schedule:
    """max(least, scale sqrt(2 ln(t + offset))): the schedule that [Ezzerg2026]_ ran.

    Guarantee
    ---------
    None: it grows as the theory's widths do, with heuristic constants.
    """

    scale: float = 1.7
    offset: float = 2.0
    least: float = 1.0

    def __post_init__(self) -> None:
        for value in (self.scale, self.offset, self.least):
            if not 0.0 <= value < math.inf:
                raise ValueError(f"scale, offset and least are numbers >= 0, got {value!r}.")

    def __call__(self, posterior: Posterior | None, t: int) -> float:
        return max(self.least, self.scale * math.sqrt(2.0 * math.log(t + self.offset)))
