"""Observations that replicate each other."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from stoic.data import Array, Booleans, Integers, Observations
from stoic.domains import SAME, Domain

Pairs = tuple[Integers, Integers]


def pairs_at_one_input(
    domain: Domain, observations: Observations, rows: Integers | None = None
) -> Pairs:
    """Find the pairs of different rows at the same input, neither censored, each in both orders.

    Given ``rows`` (k,), those of one of them with any row; the first numbers are then from 0 to k.
    """
    u = observations.x / domain.widths
    rows = np.arange(len(u)) if rows is None else rows
    together = cdist(u[rows], u, "chebyshev") <= SAME
    together[np.arange(len(rows)), rows] = False
    if observations.censored is not None:
        together &= observations.measured[rows][:, None] & observations.measured
    first, second = np.nonzero(together)
    return first, second


def agreement(
    domain: Domain,
    observations: Observations,
    noise: Array,
    half_width: float,
    rows: Integers | None = None,
    pairs: Pairs | None = None,
) -> Array:
    """Count others at the same input that agree with each row, less those that do not, (n,).

    Two agree if they differ by at most ``half_width`` standard deviations of a difference, where
    ``noise`` has the variance of each, shape (n,). A censored one agrees with none. Given ``rows``
    (k,), only these are compared with all, shape (k,). ``pairs`` are :func:`pairs_at_one_input` of
    them, if they are known.
    """
    first, second = pairs_at_one_input(domain, observations, rows) if pairs is None else pairs
    rows = np.arange(len(observations)) if rows is None else rows
    votes = compared(observations, noise, half_width, rows[first], second)
    return np.asarray(np.bincount(first, votes, minlength=len(rows)), dtype=float)


def compared(
    observations: Observations,
    noise: Array,
    half_width: float,
    one: int | Integers,
    other: Integers,
) -> Array:
    """Return 1 where rows ``other`` (k,) agree with ``one``, -1 where they contradict it, (k,).

    As in :func:`agreement`; a nan or infinity contradicts none, which is 0.
    """
    y = observations.observed
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.abs(y[one] - y[other]) / np.sqrt(noise[one] + noise[other])
    return np.where(apart <= half_width, 1.0, np.where(np.isfinite(y[other]), -1.0, 0.0))


def most_of_others(votes: Array, pairs: Pairs) -> Array:
    """Return the most votes of another row at the input of each, -inf where there is none, (n,)."""
    first, second = pairs
    most = np.full(len(votes), -np.inf)
    np.maximum.at(most, first, votes[second])
    return most


def confirmed(
    domain: Domain,
    observations: Observations,
    noise: Array,
    half_width: float,
    rows: Integers | None = None,
    pairs: Pairs | None = None,
) -> Booleans:
    """Mask of rows that at least two more replicates agree with than contradict, shape (n,).

    Independent outliers of a fixed size, such as those of a stuck sensor, agree with each other.
    Three of three are outliers with probability 1e-3 where one in ten is, and less if their size
    varies, whatever the model of f. ``rows`` and ``pairs`` as in :func:`agreement`.
    """
    agrees = agreement(domain, observations, noise, half_width, rows, pairs) >= 2.0
    finite = np.isfinite(observations.observed)
    return np.asarray(agrees & (finite if rows is None else finite[rows]))
