"""What a trial may give where trials fail: its gain, or a failure that costs something. Ours."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from stoic.data import Array
from stoic.domains import Finite, Surface
from stoic.policies.base import View
from stoic.posteriors.feasibility import Feasibility

_PRIOR = -math.log(3.0)  # log odds that failures without a kind are those of a region
# Of a failure, for each before it, in prior standard deviations. Where the optimum is behind the
# border of a half that crashes, 18 to 20 of 50 trials failed with a constant cost of 1, and with 5
# and 20 for each failure it was 5.5 and 5; with a least chance of 0.9 instead of a cost, 6 to 10
# failed where the optimum is at the border, and 4 to 5 with a cost.
_COST = 20.0
_LEAST = 1e-6  # chance


class Chance(NamedTuple):
    """P(result at x), in units of the largest one where there was a result.

    Failures without a kind are those of a region, which a classifier learns, or they happen
    everywhere at one rate: P is w P(result | region) + (1 - w) P(result | rate), where w is the
    posterior probability of the region. At the same rate everywhere it is 1.

    Attributes
    ----------
    region:
        P(result | region).
    otherwise:
        P(result | rate), or by those that are known to be infeasible alone.
    weight:
        w.
    most:
        The largest P where there was a result.
    failures:
        How many there were.
    """

    region: Feasibility
    otherwise: Feasibility | float
    weight: float
    most: float
    failures: int

    @classmethod
    def of(cls, view: View) -> Self | None:
        """``None`` where nothing failed."""
        observations, known = view.observations, view.failures.of("infeasible")
        finite = np.isfinite(observations.observed)
        told, unexplained = view.feasibility(), observations.x[~finite]
        count = len(known) + len(unexplained)
        if len(unexplained) and finite.any():
            failed = np.concatenate([known, unexplained])
            region = Feasibility.learned(view.domain, observations.x[finite], failed)
            weight = float(expit(region.evidence + _PRIOR))
            chance = cls(region, told or region.share, weight, 1.0, count)
        elif told is not None:
            chance = cls(told, 1.0, 1.0, 1.0, count)
        else:
            return None
        most = float(chance(observations.x[finite]).max(initial=_LEAST))
        return chance._replace(most=most)

    def on(self, points: Finite) -> Array:
        return self(points.points)

    def __call__(self, x: Array) -> Array:
        other = self.otherwise(x) if isinstance(self.otherwise, Feasibility) else self.otherwise
        p: Array = (self.weight * self.region(x) + (1.0 - self.weight) * other) / self.most
        return np.clip(p, _LEAST, 1.0)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        p, slope = self.region.with_gradient(x)
        p, slope = self.weight * p, self.weight * slope
        if isinstance(self.otherwise, Feasibility):
            other, other_slope = self.otherwise.with_gradient(x)
            p, slope = p + (1.0 - self.weight) * other, slope + (1.0 - self.weight) * other_slope
        else:
            p = p + (1.0 - self.weight) * self.otherwise
        p = p / self.most
        inside = (p > _LEAST) & (p < 1.0)
        return np.clip(p, _LEAST, 1.0), np.where(inside[:, None], slope / self.most, 0.0)


class Risky(NamedTuple):
    """The logarithm of a gain where a trial may fail: log gain + log P - (1 - P) cost / gain.

    It orders points as P gain - (1 - P) cost does where that is much of the gain, and has a
    logarithm where it is negative. A gain below ``negligible`` counts as that in the last term.

    Attributes
    ----------
    surface:
        The log gain where there is a result.
    chance:
        P.
    cost:
        Of a failure, in units of the gain.
    negligible:
        In the same units.
    """

    surface: Surface
    chance: Chance
    cost: float
    negligible: float

    def on(self, points: Finite) -> Array:
        return self._risky(self.surface.on(points), self.chance.on(points))

    def __call__(self, x: Array) -> Array:
        return self._risky(self.surface(x), self.chance(x))

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        height, slope = self.surface.with_gradient(x)
        p, p_slope = self.chance.with_gradient(x)
        price = self._price(height)
        by_height = 1.0 + np.where(height > math.log(self.negligible), price * (1.0 - p), 0.0)
        by_p = 1.0 / p + price
        return self._risky(height, p), by_height[:, None] * slope + by_p[:, None] * p_slope

    def _price(self, height: Array) -> Array:
        """A failure in units of the gain."""
        return self.cost * np.exp(-np.maximum(height, math.log(self.negligible)))

    def _risky(self, height: Array, p: Array) -> Array:
        return height + np.log(p) - self._price(height) * (1.0 - p)


def at_risk(surface: Surface, chance: Chance | None, unit: float, negligible: float) -> Surface:
    """The logarithm of a gain in units of f, whose prior deviation is ``unit``, at its risk."""
    if chance is None:
        return surface
    # As many of the failures so far, and of those to come, are a region's, which can be avoided.
    avoidable = chance.failures * chance.weight**2
    return Risky(surface, chance, _COST * avoidable * unit, negligible * unit)
