"""Location and scale of results: the plain way, and the one that survives outliers."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stoic.data import Array

_NORMAL = 1.4826  # of a normal distribution, standard deviation / median absolute deviation


class Scale(Protocol):
    """From results (n,), any of them nan or infinite, to a location and a positive scale."""

    def __call__(self, observed: Array) -> tuple[float, float]: ...


def median_and_mad(observed: Array) -> tuple[float, float]:
    """Median, and 1.4826 times the median absolute deviation from it.

    Infinite results count in both, as what they are: very large or very small. Where more than half
    of the results are equal the deviation is 0; then the median of the others' deviations decides,
    and 1 if there are no others.
    """
    known = observed[~np.isnan(observed)]
    if not np.isfinite(known).any():
        return 0.0, 1.0
    ordered = np.sort(known)
    centre = _middle(ordered)
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = np.sort(np.abs(known - centre))
    spread = _middle(deviations)
    if not spread > 0.0:
        positive = deviations[(deviations > 0.0) & np.isfinite(deviations)]
        spread = _middle(positive) / _NORMAL if len(positive) else 1.0 / _NORMAL
    return centre, _NORMAL * spread


def mean_and_sd(observed: Array) -> tuple[float, float]:
    """Mean and standard deviation of the finite results: one outlier moves both at will."""
    finite = observed[np.isfinite(observed)]
    if not len(finite):
        return 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        mean, sd = float(np.mean(finite)), float(np.std(finite))
    if not np.isfinite(mean) or not np.isfinite(sd):
        return median_and_mad(observed)
    return mean, sd if sd > 0.0 else 1.0


def _middle(ordered: Array) -> float:
    """The median of sorted numbers; of an even number, the mean of the middle two if finite."""
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if np.isfinite(low) and np.isfinite(high):
        return float(low + 0.5 * (high - low))
    finite = ordered[np.isfinite(ordered)]
    return float(low if np.isfinite(low) else high if np.isfinite(high) else finite[-1])
