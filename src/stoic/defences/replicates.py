"""Observations that replicate each other."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from stoic.data import Array, Booleans, Integers, Observations
from stoic.domains import Domain

_SAME = 1e-6  # of the domain's widths, in every coordinate: one input, up to rounding


def agreement(
    domain: Domain,
    observations: Observations,
    noise: Array,
    half_width: float,
    rows: Integers | None = None,
) -> Array:
    """Count others at the same input that agree with each row, less those that do not, (n,).

    Two agree if they differ by at most ``half_width`` standard deviations of a difference, where
    ``noise`` has the variance of each, shape (n,). A censored one agrees with none. Given ``rows``
    (k,), only these are compared with all, shape (k,).
    """
    u, y = observations.x / domain.widths, observations.observed
    rows = np.arange(len(y)) if rows is None else rows
    together = cdist(u[rows], u, "chebyshev") <= _SAME
    together[np.arange(len(rows)), rows] = False
    if observations.censored is not None:
        together &= observations.measured[rows][:, None] & observations.measured
    if not together.any():  # spares the (k, n) differences
        return np.zeros(len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(y[rows][:, None] - y) / np.sqrt(noise[rows][:, None] + noise)
    agreeing = together & (apart <= half_width)
    contradicting = together & ~agreeing & np.isfinite(y)  # a nan or infinity contradicts none
    return np.asarray(agreeing.sum(axis=1) - contradicting.sum(axis=1), dtype=float)


def confirmed(
    domain: Domain,
    observations: Observations,
    noise: Array,
    half_width: float,
    rows: Integers | None = None,
) -> Booleans:
    """Mask of rows that at least two more replicates agree with than contradict, shape (n,).

    Independent outliers of a fixed size, such as those of a stuck sensor, agree with each other.
    Three of three are outliers with probability 1e-3 where one in ten is, and less if their size
    varies, whatever the model of f. Given ``rows`` (k,), the mask of these.
    """
    agrees = agreement(domain, observations, noise, half_width, rows) >= 2.0
    finite = np.isfinite(observations.observed)
    return np.asarray(agrees & (finite if rows is None else finite[rows]))
