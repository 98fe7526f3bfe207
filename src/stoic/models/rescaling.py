"""Increasing maps of results to the scale that they are modelled on. Ours.

Latencies and losses span orders of magnitude: beside one result of 60,000, 10 and 60 are the same
to a stationary process with one noise, and of the poor results those that differ most are outliers
to it. What is poor need not be resolved, so it may be compressed, and what is good is left as it
is: then a mean, an improvement and an interval near the best are in the units of the results. A
density of w(y) is one of y with the factor w'(y): so the evidence on both scales is that of the
same results, and decides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from stoic.data import Array, Booleans, Integers, Observations
from stoic.domains import Domain
from stoic.models.fixed_points import Search
from stoic.posteriors.scales import quantiles_in_space, step_of

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP

# Spreads below the upper quartile where compression begins; a spread further on it is logarithmic.
# Six searches of two simulated services recommend 12.8 ms in the median, 13.9 with 5 instead of 3
_EDGE = 3.0
_LEAST = 1e-2  # of the distance from the upper quartile to the median: a spread
_SHARES = (0.5, 0.75, 0.9)  # of the results below the quantiles that the edge follows from
# Finite results by which the scale is chosen: those of the default's design, and twice as many
_FIRST, _LAST = 10, 80
# Nats of evidence for another scale. Of 10, 20 and 40 random settings, 40 draws each, those of five
# functions of 2 to 5 parameters, with and without noise, have more in none to two draws; latencies
# over four orders of magnitude in 25 to 33 of a function with many ups and downs, and in nearly all
# of one with fewer
_MARGIN = 3.0


class Rescaling(ABC):
    """Increasing map of results y to w(y)."""

    @abstractmethod
    def __call__(self, y: Array) -> Array:
        """Return w(y)."""

    @abstractmethod
    def inverse(self, w: Array) -> Array:
        """Return y(w)."""

    @abstractmethod
    def slopes(self, y: Array) -> Array:
        """Return w'(y)."""

    def of(self, observations: Observations) -> Observations:
        """Return the results on this scale, and their noise."""
        y = observations.observed
        with np.errstate(over="ignore", invalid="ignore"):
            noise = observations.noise * self.slopes(y) ** 2
            return replace(observations, observed=self(y), noise=noise, step=None)

    def restored(self, mean: Array, std: Array, seen: Array | None = None) -> tuple[Array, Array]:
        """Convert a mean and a deviation on this scale to units of the results.

        The deviation is divided by the slope at the mean; with results ``seen``, on this scale, by
        that of the chord from there to the mean: the two are as many deviations apart as before.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            y = self.inverse(mean)
            slopes = self.slopes(y)
            if seen is not None:
                chord = (seen - mean) / (self.inverse(seen) - y)
                slopes = np.where(np.isfinite(chord) & (chord > 0.0), chord, slopes)
            return y, std / slopes


class Unchanged(Rescaling):
    """The identity: results are modelled as they are."""

    def __call__(self, y: Array) -> Array:
        return y

    def inverse(self, w: Array) -> Array:
        return w

    def slopes(self, y: Array) -> Array:
        return np.ones_like(y)

    def of(self, observations: Observations) -> Observations:
        return observations

    def restored(self, mean: Array, std: Array, seen: Array | None = None) -> tuple[Array, Array]:
        return mean, std


UNCHANGED = Unchanged()


@dataclass(frozen=True, slots=True)
class CompressedTail(Rescaling):
    """Identity from an edge on, and logarithmic below: edge - length asinh((edge - y) / length).

    It has two continuous derivatives: a kink would look like noise, or like outliers.

    Parameters
    ----------
    edge, length:
        In units of the results; the length is positive.
    """

    edge: float
    length: float

    @classmethod
    def below_the_best(cls, results: Array, quantiles: Sequence[float]) -> CompressedTail | None:
        """Return the map for finite results; None where none is below the edge.

        That is three spreads below their upper quartile. A spread is the distance from there to the
        median or to the upper decile, whichever is nearer: neither outliers nor a poor half make it
        large. It is at least a hundredth of that to the median.

        Parameters
        ----------
        results, quantiles:
            Results; and their median, upper quartile and upper decile.
        """
        median, upper, best = quantiles
        # Two of the best may be equal by chance, or up to a rounding
        spread = max(min(upper - median, best - upper), _LEAST * (upper - median))
        edge = upper - _EDGE * spread
        return cls(edge, spread) if spread > 0.0 and results.min() < edge else None

    def of(self, observations: Observations) -> Observations:
        if not (observations.observed < self.edge).any():
            return observations
        # Those that are left as they are have the step of all
        return replace(Rescaling.of(self, observations), step=step_of(observations))

    def __call__(self, y: Array) -> Array:
        return np.where(y < self.edge, self.edge - self.length * np.arcsinh(self._beyond(y)), y)

    def inverse(self, w: Array) -> Array:
        with np.errstate(over="ignore"):  # far below all results
            return np.where(w < self.edge, self.edge - self.length * np.sinh(self._beyond(w)), w)

    def slopes(self, y: Array) -> Array:
        return np.asarray(1.0 / np.hypot(1.0, self._beyond(y)))

    def _beyond(self, y: Array) -> Array:
        """Distance below the edge in lengths, 0 above."""
        return np.maximum(self.edge - y, 0.0) / self.length


@runtime_checkable
class Scaling(Protocol):
    """Model that may be one of results on another scale."""

    def rescaling(self, domain: Domain, first: Observations) -> Rescaling:
        """Return the scale that results are to be modelled on.

        It is chosen by the ``first`` ones, see :func:`first_of`.
        """


def likeliest_on(
    scale: Rescaling, other: Search, observations: Observations
) -> tuple[Booleans, float]:
    """Mask of the rows that a model on the scale trusts, and its evidence of the results.

    It is that of the ``other`` search, for these results on the scale, as a density of them as they
    are: w has the slope w' and an outlier its deviation. -inf if no explanation is permitted.
    """
    climbed = other.rules.climbed(other)
    found = other.rules.permitted(climbed.explanations, other.observations)
    there = other.likeliest(found, climbed)
    none = np.zeros(len(observations), dtype=bool)
    if there.posterior is None or not found:
        return none, -math.inf
    trusted = other.trusted(there)
    left = np.isfinite(observations.observed) & ~trusted
    residual = other.judge(there).residual
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(
            observations.observed - scale.inverse(other.observations.observed - residual)
        )
    # An outlier's density is one over its deviation, on the scale of the results
    tiny = np.finfo(float).tiny
    of_outliers = np.log(np.maximum(np.abs(residual[left]), tiny) / np.maximum(apart[left], tiny))
    with np.errstate(divide="ignore"):  # a slope of 0 is beyond all numbers
        of_trusted = np.log(scale.slopes(observations.observed[trusted]))
    return trusted, there.evidence + float(of_trusted.sum() + of_outliers.sum())


def first_of(observations: Observations, order: Integers | None = None) -> Observations:
    """Return the results that the scale is chosen by: the first 10, 20, 40 or 80, or none of fewer.

    Finite ones that are no bounds, in the ``order`` of their rows (n,), by default as they are. So
    the scale changes rarely, and not late.
    """
    finite = np.isfinite(observations.observed) & observations.measured
    known = np.flatnonzero(finite) if order is None else order[finite[order]]
    doublings = (min(len(known), _LAST) // _FIRST).bit_length() - 1
    return observations.only(known[: _FIRST << doublings if doublings >= 0 else 0])


def scale_of(model: LeaveOneOutGP, domain: Domain, first: Observations) -> Rescaling:
    """Return the scale on which the ``first`` results are clearly likelier than as they are.

    Two are tried. A search crowds about the best: by quantiles in space
    (:func:`~stoic.posteriors.scales.quantiles_in_space`) the edge is among results of the whole
    domain, by those of the results among good ones, which is better where most of the domain is
    poor by orders of magnitude.
    """
    if not len(first):
        return UNCHANGED
    results = first.observed
    of_both = (quantiles_in_space(domain, first, _SHARES), np.quantile(results, _SHARES).tolist())
    tails = (CompressedTail.below_the_best(results, quantiles) for quantiles in of_both)
    if not (scales := [tail for tail in tails if tail]):
        return UNCHANGED
    as_they_are, *compressed = (
        likeliest_on(each, Search(model, domain, each.of(first)), first)[1]
        for each in (UNCHANGED, *scales)
    )
    best = int(np.argmax(compressed))
    return scales[best] if compressed[best] > as_they_are + _MARGIN else UNCHANGED
