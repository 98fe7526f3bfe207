"""Rows of a window: those that a posterior given many rows is conditioned on exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoic import linalg
from stoic.data import Array, Booleans, Integers, Observations
from stoic.defences.replicates import agreement, compared, confirmed, pairs_at_one_input
from stoic.domains import Domain
from stoic.posteriors.absorbed import Absorbed
from stoic.posteriors.prior import Prior

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP


@dataclass(frozen=True)
class Bounds:
    """Sizes of the window.

    Attributes
    ----------
    exact:
        Number of rows up to which the model is the exact one.
    chosen, full:
        Number of rows of a new window, and of one that is replaced.
    recent, local, sample:
        Of a new one, the latest rows, those around the best, and some at random, from which the
        noise is learned: rows that differ as much as possible have no neighbours. With none around
        the best, f matters as much everywhere.
    pool:
        Rows that the others are chosen from.
    """

    exact: int = 256
    chosen: int = 320
    full: int = 384
    recent: int = 32
    local: int = 96
    sample: int = 64
    pool: int = 2048

    @property
    def judged(self) -> int:
        """Number of rows from which on those outside of a window judge what it says."""
        return 3 * self.full


_POOR = 0.05  # weight of the poorest rows in the choice of a window, where the best have 1
_AT_ONCE = 256  # rows that are compared with all others, for replicates
_DETERMINED = 0.01  # noise variances: f is determined where the window leaves less


def chosen_rows(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    prior: Prior,
    trusted: Booleans,
    mean: Array | None,
    bounds: Bounds,
    required: Integers | None = None,
) -> Integers:
    """Choose the rows of a window, increasing.

    They are those that are ``required``; the latest, results or not; the latest without a result,
    and those at the very input of the best mean; and trusted rows about that, and then of all, that
    reduce the variance of f most, weighted by the mean. Without means, all rows weigh the same.

    In a window an outlier must not be alone at its input, since others outside are judged by it.
    Rows that agree say as much outside, where they are absorbed without a loss.
    """
    n, x = len(observations), observations.x
    if n <= bounds.chosen:
        return np.arange(n)
    chosen, few = np.zeros(n, dtype=bool), bounds.recent // 4

    def choose(rows: Integers) -> int:
        """Choose those that there is room for, not without rivals; return the room left."""
        given = chosen.copy()
        for those in _with_rivals(model, domain, observations, prior, few, rows, given):
            if np.count_nonzero(chosen) + np.count_nonzero(~chosen[those]) <= bounds.chosen:
                chosen[those] = True
        return bounds.chosen - int(np.count_nonzero(chosen))

    chosen[n - bounds.recent :] = True
    if required is not None:
        chosen[required] = True
    lost = np.flatnonzero(~np.isfinite(observations.observed))
    chosen[latest(lost, bounds.recent)] = True
    candidates = np.flatnonzero(trusted)
    if not len(candidates):
        chosen[-bounds.chosen :] = True
        return np.flatnonzero(chosen)
    weights = np.ones(n)
    if mean is not None and bounds.local:
        best = candidates[np.argmax(mean[candidates])]
        spread = float(mean[candidates].std()) or 1.0
        # From _POOR to 1, by the distance below the best mean in deviations of the means
        weights = np.maximum(np.exp(np.minimum((mean - mean[best]) / spread, 0.0)), _POOR)
        same = (x[candidates] == x[best]).all(axis=1)
        choose(latest(candidates[same], few))
        near = np.argsort(-prior.kernel(x[best : best + 1], x[candidates])[0], kind="stable")
        choose(candidates[near[: bounds.local]])
    choose(np.flatnonzero(chosen & np.isfinite(observations.observed)))
    left = choose(thinned(candidates, bounds.sample))
    # Rows that are chosen but not trusted do not determine f
    pool = thinned(candidates, bounds.pool)
    left = choose(_pivots(prior, observations, chosen & trusted, pool, left, weights))
    # Where few rows determine f, further ones still tell the noise.
    choose(thinned(candidates[~chosen[candidates]], left))
    return np.flatnonzero(chosen)


def _with_rivals(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    prior: Prior,
    few: int,
    rows: Integers,
    given: Booleans,
) -> Iterator[Integers]:
    """Yield what enters a window for each row: itself, unless others at its input contradict it.

    Instead of one that is outvoted, the one that most there agree with; where it is ``given``,
    (n,), all of them. Those with equal votes come together. At an input with more than ``few`` rows
    each is alone.
    """
    first, second = pairs_at_one_input(domain, observations, rows)
    ends = np.searchsorted(first, np.arange(len(rows) + 1))
    for k, row in enumerate(rows):
        here = np.append(row, second[ends[k] : ends[k + 1]])
        if not 1 < len(here) <= few:
            yield here[:1]
            continue
        group = observations.only(here)
        noise = group.own_noise(prior.noise)
        votes = agreement(domain, group, noise, model.half_width)
        against = compared(group, noise, model.half_width, 0, np.arange(len(here))) < 0.0
        rival = int(np.argmax(np.where(against, votes, -np.inf)))
        if not against[rival] or votes[rival] < votes[0]:
            yield here[:1]
        elif votes[rival] == votes[0]:
            yield here[votes == votes[0]]
        else:
            yield here if given[row] else here[[rival]]


def confirmed_rows(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    prior: Prior,
    doubted: Booleans,
) -> Integers:
    """Return the rows among the doubted ones that others at the same input confirm."""
    rows = np.flatnonzero(doubted & np.isfinite(observations.observed))
    if not (model.replicates and len(rows)):
        return rows[:0]
    noise = observations.own_noise(prior.noise)
    parts = np.array_split(rows, 1 + len(rows) // _AT_ONCE)  # of (k, n) comparisons each
    found = [confirmed(domain, observations, noise, model.half_width, part) for part in parts]
    return rows[np.concatenate(found)]


def thinned(rows: Integers, most: int) -> Integers:
    """Return at most so many of the rows, evenly."""
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, max(most, 0)).astype(int)])


def latest(rows: Integers, count: int) -> Integers:
    """Return at most so many of the rows, the last ones."""
    return rows[max(len(rows) - count, 0) :]


def _pivots(
    prior: Prior,
    observations: Observations,
    chosen: Booleans,
    pool: Integers,
    count: int,
    weights: Array | None = None,
) -> Integers:
    """Choose at most ``count`` rows of a pool greedily, by their variance given those chosen.

    This is a pivoted Cholesky factorisation, with ``weights`` as in [Moss2023]_.
    """
    pool = pool[~chosen[pool]]
    x, own = observations.x, observations.own_noise(prior.noise)
    given = np.flatnonzero(chosen)
    start = Absorbed.at(prior, x[given], own[given])
    V = prior.kernel(x[given], x[pool])  # (given, pool)
    V = linalg.solve_lower(start.L, V) if len(given) else V
    rows = np.zeros((len(V) + max(count, 0), len(pool)))
    rows[: len(V)] = V
    c = prior.kernel.diagonal(x[pool]) - np.einsum("ij,ij->j", V, V)
    utility = np.ones(len(pool)) if weights is None else weights[pool]
    picked: list[int] = []
    for t in range(len(V), len(rows)):
        j = int(np.argmax(utility * c)) if len(pool) else -1
        if j < 0 or not c[j] > _DETERMINED * own[pool[j]]:
            break
        covariance = prior.kernel(x[pool[j : j + 1]], x[pool])[0] - rows[:t, j] @ rows[:t]
        rows[t] = covariance / np.sqrt(c[j])
        c -= rows[t] ** 2
        c[j] = 0.0  # exactly, lest rounding pick it again
        picked.append(j)
    return np.asarray(pool[picked])
