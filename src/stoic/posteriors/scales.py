"""Location and scale of observations: plain and robust estimators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import special

from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.linalg import squared_distances

_RARE = 0.05  # share of the results, of which fewer may be outliers
# Repeats at inputs, none of which differ: of 30 trials of 40 settings with 2, 4 and 10 exact values
# 15, 15 and 9 were repeats, and are 9, 9 and 7.
_EXACT = 8
_SAME = 1e-12  # of the median distance of values, which are one if they are nearer
_DISTINCT = 8  # values that show a grid: each is on one by chance with a probability of 0.1
_ON_GRID = 0.9  # share of the values; others may be outliers
# Of the step, by which a value may be off: in single precision, many steps from the median
_OFF = 0.05
_FINEST = 1e-4  # of the values' median deviation: a finer step is no noise that matters
_SAMPLE = 256  # distinct values: of more a grid is looked for in some
# Steps from the median of the values that make a step more exact; the last one is only tried. Of 40
# shares of 228 printed with four digits the step is found in 99 %, without in none.
_REACHES = (8, 64, 512, 0)
_NEAR = 0.2  # of the step, by which such a value may be off; others are outliers


class Scale(Protocol):
    """Estimator of location and positive scale; any observation may be nan or infinite."""

    def __call__(self, domain: Domain, observations: Observations) -> tuple[float, float]: ...


def mean_and_sd(domain: Domain, observations: Observations) -> tuple[float, float]:
    """Mean and standard deviation of finite observations: one outlier moves both at will."""
    observed = observations.observed
    finite = observed[np.isfinite(observed)]
    if not len(finite):
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, sd = float(np.mean(finite)), float(np.std(finite))
    if not (np.isfinite(mean) and np.isfinite(sd)):  # the sums overflowed
        return median_and_mad(domain, observations)
    return mean, min(max(sd, 1e-300), 1e300) if sd > rounding_of(finite) else 1.0


def rounding_of(values: Array) -> float:
    """Largest standard deviation that equal values have: their mean is off by a rounding."""
    return 1e-14 * float(np.abs(values).max())


def step_of(observations: Observations) -> float:
    """Step of results that are rounded or counted: 0 and 1, a rating, k of 228; 0 if there is none.

    It is the smallest difference of few values, and of many the step of the grid that nine in ten
    are on. They are few if, apart from the most frequent one, each is that of two results on
    average, and of one result in 20 altogether: a rarer one may be an outlier. So may results that
    are all equal where others are not, and then the values are many. Results that are exact have no
    noise: equal ones count once at an input where there is no other, and nowhere differing after
    many repeats they have no step. Bounds, and results with a noise of their own, do not count.
    """
    if observations.step is not None:
        return observations.step
    learned = np.isfinite(observations.observed) & np.isnan(observations.noise)
    learned &= observations.measured
    y = observations.observed[learned]
    if len(y) < 4:
        return 0.0
    distinct = np.unique(y)
    grid, few = _grid_of(distinct), 2 * (len(distinct) - 1) <= len(y) - 1
    if not (few or grid):
        return 0.0
    x = observations.x[learned]
    _, first, at = np.unique(x, axis=0, return_index=True, return_inverse=True)
    differ = np.zeros(len(first), dtype=bool)
    differ[at[y != y[first[at]]]] = True
    counted = differ[at]
    counted[first] = True
    if not differ.any() and np.count_nonzero(~counted) >= _EXACT:
        return 0.0
    return (_least_of_few(y[counted]) if few else 0.0) or grid


def _least_of_few(y: Array) -> float:
    """Smallest difference of results that have few values; 0 if they have many."""
    values, counts = np.unique(y, return_counts=True)
    with np.errstate(over="ignore"):
        apart = np.abs(values - values[np.argmax(counts)])
        if not apart.any():
            return 0.0
        # Sums in another order differ by a rounding
        new = np.diff(values) > _SAME * float(np.median(apart[apart > 0.0]))
    new = np.append(True, new)
    counts, values = np.add.reduceat(counts, np.flatnonzero(new)), values[new]
    rest = counts.sum() - counts.max()
    if len(values) < 2 or rest < max(2 * (len(values) - 1), _RARE * counts.sum()):
        return 0.0
    return float(np.diff(values).min())


def _grid_of(values: Array) -> float:
    """Step of the grid that most of the distinct, ascending values are on, each at its own point.

    It is the smallest difference that fits or, where neighbours are printed with too few digits to
    tell, one made more exact by the values about the median, then by more of them.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(np.median(np.abs(values - values[len(values) // 2])))
        values = values[np.append(True, np.diff(values) > _SAME * deviation)]
        gaps = np.diff(values)
        gaps = gaps[gaps > _FINEST * deviation]
        if len(gaps) < _DISTINCT - 1:
            return 0.0
        # A value that is off the grid makes two gaps
        tried = 1 + 2 * math.floor((1.0 - _ON_GRID) * min(len(values), _SAMPLE))
        steps = np.sort(gaps)[:tried, None]
        values = (values - values[len(values) // 2])[:: -(-len(values) // _SAMPLE)]
        enough = _ON_GRID * len(values)
        for reach in _REACHES:
            points = np.rint(values / steps)
            off = np.abs(values / steps - points)
            for k in np.flatnonzero(np.count_nonzero(off < _OFF, axis=1) >= enough):
                if len(np.unique(points[k, off[k] < _OFF])) >= enough:
                    return float(steps[k, 0])
            points[(np.abs(points) > reach) | (off > _NEAR)] = 0.0
            square = np.sum(points**2, axis=1, keepdims=True)
            least_squares = np.sum(points * values, axis=1, keepdims=True)
            np.divide(least_squares, square, out=steps, where=square > 0.0)
    return 0.0


def median_and_mad(domain: Domain, observations: Observations) -> tuple[float, float]:
    """Median, and 1.4826 times the median absolute deviation, with equal weights."""
    centre, deviations, weights = _centred(observations.observed, np.ones(len(observations)))
    return centre, _spread(deviations, weights, 0.5)


def median_and_mad_in_space(domain: Domain, observations: Observations) -> tuple[float, float]:
    """Median and MAD of observations weighted by inverse local density.

    A search that works evaluates the same good region again and again, so the plain median tends to
    the maximum and the plain deviation to the noise, and everything learned elsewhere would look
    like an outlier. Here each observation has the weight
    1 / sum_j exp(-|u_i - u_j|^2 / (2 h^2)), with u in widths of the domain and h = 0.1 sqrt(d).
    """
    centre, deviations, weights = _centred(
        observations.observed, _inverse_density(domain, observations)
    )
    return centre, _spread(deviations, weights, 0.5)


def median_and_spread_in_space(domain: Domain, observations: Observations) -> tuple[float, float]:
    """As ``median_and_mad_in_space``, with the 80 % quantile of the deviations as the scale.

    Where most settings do equally badly the median deviation is noise, and every good setting would
    look like an outlier. A broader quantile covers them, and outliers of moderate size with them.
    It is at most 30 times the scale by the median deviation, so that it has a bound as long as
    outliers have less than half of the weight.
    """
    centre, deviations, weights = _centred(
        observations.observed, _inverse_density(domain, observations)
    )
    broad = _spread(deviations, weights, 0.8)
    # No cap where the median deviation is 0: `_spread` then is that of the others
    if len(weights) and _quantile(deviations, weights, 0.5) > 0.0:
        return centre, min(broad, 30.0 * _spread(deviations, weights, 0.5))
    return centre, broad


def quantiles_in_space(
    domain: Domain, observations: Observations, shares: Sequence[float]
) -> list[float]:
    """Quantiles of observations weighted as in ``median_and_mad_in_space``."""
    weights = _inverse_density(domain, observations)
    return [_quantile(observations.observed, weights, share) for share in shares]


def _inverse_density(domain: Domain, observations: Observations) -> Array:
    """Inverse local density at each observation, shape (n,)."""
    u = observations.x / domain.widths
    h = 0.1 * np.sqrt(domain.dim)
    # Each sum is at least 1, the own term of the row
    return np.asarray(1.0 / np.exp(squared_distances(u, u) / (-2.0 * h**2)).sum(axis=1))


def _centred(observed: Array, weights: Array) -> tuple[float, Array, Array]:
    """Weighted median without nan, absolute deviations from it, and their weights.

    Infinities have a weight, too.
    """
    known = ~np.isnan(observed)
    observed, weights = observed[known], weights[known]
    if not np.isfinite(observed).any():
        return 0.0, np.empty(0), np.empty(0)
    centre = _quantile(observed, weights, 0.5)
    with np.errstate(over="ignore", invalid="ignore"):
        return centre, np.abs(observed - centre), weights


def _spread(deviations: Array, weights: Array, share: float) -> float:
    """Return the weighted ``share`` quantile of the deviations, over that of a normal distribution.

    Where so many agree exactly that it is 0, the median of the others' deviations decides, and 1 if
    there are none.
    """
    if not len(weights):
        return 1.0
    # The quantile of |N(0, 1)| is that of N(0, 1) at (1 + share) / 2: 0.6745 for the median
    spread = _quantile(deviations, weights, share) / float(special.ndtri(0.5 + 0.5 * share))
    if not spread > 0.0:
        others = (deviations > 0.0) & np.isfinite(deviations)
        spread = _quantile(deviations[others], weights[others], 0.5) if others.any() else 1.0
    return min(max(spread, 1e-300), 1e300)  # where multiples of it are numbers too


def _quantile(values: Array, weights: Array, share: float) -> float:
    """Return the weighted quantile, the midpoint at ties; finite if any value is."""
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(weights[order])
    mark = share * total[-1]
    # Sums of weights are rounded: those so close to the mark tie with it
    low = int(np.searchsorted(total, mark * (1.0 - 1e-12)))
    high = int(np.searchsorted(total, mark * (1.0 + 1e-12)))
    pair = values[[low, min(high, len(values) - 1)]]
    finite = pair[np.isfinite(pair)]
    if len(finite) == 2:
        return float(0.5 * finite[0] + 0.5 * finite[1])  # their sum may overflow
    if len(finite) == 1:
        return float(finite[0])
    finite = values[np.isfinite(values)]  # so much of the weight is at infinities
    return float(finite[-1] if pair[0] > 0.0 else finite[0])
