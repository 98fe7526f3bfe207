"""Location and scale of results: the plain way, and those that survive outliers."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.linalg import squared_distances

_NORMAL = 1.4826  # of a normal distribution, standard deviation / median absolute deviation


class Scale(Protocol):
    """From observations, any of them nan or infinite, to a location and a positive scale."""

    def __call__(self, domain: Domain, observations: Observations) -> tuple[float, float]: ...


def mean_and_sd(domain: Domain, observations: Observations) -> tuple[float, float]:
    """Mean and standard deviation of the finite results: one outlier moves both at will."""
    observed = observations.observed
    finite = observed[np.isfinite(observed)]
    if not len(finite):
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, sd = float(np.mean(finite)), float(np.std(finite))
    if not (np.isfinite(mean) and np.isfinite(sd)):  # the sums overflowed
        return median_and_mad(domain, observations)
    return mean, _within(sd) if sd > 0.0 else 1.0


def median_and_mad(domain: Domain, observations: Observations) -> tuple[float, float]:
    """Median, and 1.4826 times the median absolute deviation from it: one result, one vote."""
    return _weighted(observations.observed, np.ones(len(observations)))


def median_and_mad_in_space(domain: Domain, observations: Observations) -> tuple[float, float]:
    """As ``median_and_mad``, but one neighbourhood, one vote.

    A search that works evaluates the same good region again and again, so the plain median tends to
    the maximum and the plain deviation to the noise, and everything learned elsewhere would look
    like an outlier. Here each result votes with weight 1 / sum_j exp(-|u_i - u_j|^2 / (2 h^2)),
    with u in widths of the domain and h = 0.1 sqrt(d).
    """
    u = observations.x / domain.widths
    h = 0.1 * np.sqrt(domain.dim)
    crowd = np.exp(squared_distances(u, u) / (-2.0 * h**2)).sum(axis=1)
    return _weighted(observations.observed, 1.0 / crowd)


def _weighted(observed: Array, votes: Array) -> tuple[float, float]:
    """Weighted median, and 1.4826 times the weighted median absolute deviation from it.

    nan has no vote; infinities have one. Where more than half of the votes agree exactly the
    deviation is 0; then the median of the others' deviations decides, and 1 if there are none.
    """
    known = ~np.isnan(observed)
    observed, votes = observed[known], votes[known]
    if not np.isfinite(observed).any():
        return 0.0, 1.0
    centre = _median(observed, votes)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.abs(observed - centre)
    spread = _median(deviations, votes)
    if not spread > 0.0:
        others = (deviations > 0.0) & np.isfinite(deviations)
        if not others.any():
            return centre, 1.0
        return centre, _within(_median(deviations[others], votes[others]))
    return centre, _within(_NORMAL * spread)


def _within(spread: float) -> float:
    """``spread``, moved to where multiples of it are numbers too."""
    return min(max(spread, 1e-300), 1e300)


def _median(values: Array, votes: Array) -> float:
    """The weighted median, halfway where the votes tie; finite if any value is."""
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(votes[order])
    half = 0.5 * total[-1]
    low = int(np.searchsorted(total, half * (1.0 - 1e-12)))
    high = int(np.searchsorted(total, half * (1.0 + 1e-12)))
    pair = values[[low, min(high, len(values) - 1)]]
    finite = pair[np.isfinite(pair)]
    if len(finite) == 2:
        return float(0.5 * finite[0] + 0.5 * finite[1])
    if len(finite) == 1:
        return float(finite[0])
    finite = values[np.isfinite(values)]  # more than half of the votes are infinite
    return float(finite[-1] if pair[0] > 0.0 else finite[0])
