"""Observations grouped by place and sorted by size: any truncated sum is a look-up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stoic.data import Array, Booleans, Integers, Observations
from stoic.posteriors.prior import Prior

# Beyond, a result counts as infinite: no sum of smaller ones overflows, and no feature that keeps a
# larger one has a weight that is more than rounding.
_INFINITE = 1e200
_FARTHEST = 1e300  # as a threshold: above all that is finite, below the sentinel


class Places:
    """Distinct inputs of the observations, numbered in the order of their first visit.

    A result y with noise variance v counts as z = (noise / v) (y - mean): with the prior's own
    noise as z = y - mean. At each place |z| is kept sorted, with the sums of z from the smallest
    on, so that sum(z over |z| <= threshold) is one binary search. Unlike most things here it is
    updated in place, by :meth:`add`.

    Attributes
    ----------
    n:
        Number of results that were added.
    plays:
        Number of results at each place, finite or not, shape (U,).
    weights:
        Sums of noise / v over them, shape (U,).
    points:
        Coordinates of the places, shape (U, d).
    """

    __slots__ = (
        "_arms",
        "_cache",
        "_numbers",
        "_plays",
        "_points",
        "_prior",
        "_sizes",
        "_sorted",
        "_sums",
        "_weights",
        "n",
    )

    def __init__(self, prior: Prior, dim: int) -> None:
        self.n = 0
        self._prior = prior
        self._numbers: dict[int | bytes, int] = {}
        self._arms = np.empty(16, dtype=np.intp)
        self._points = np.empty((16, dim))
        self._plays = np.zeros(16)
        self._weights = np.zeros(16)
        self._sizes: list[int] = []  # finite results at each place
        self._sorted: list[Array] = []  # -inf, |z| in order, inf, room
        self._sums: list[Array] = []  # 0, sums of the first 1, 2, ... of them, room
        self._cache = np.empty((4, 0, 0))  # low, high, sum and count by place and threshold

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def plays(self) -> Array:
        return self._plays[: len(self)]

    @property
    def weights(self) -> Array:
        return self._weights[: len(self)]

    @property
    def points(self) -> Array:
        return self._points[: len(self)]

    @property
    def finite(self) -> int:
        """Number of finite results."""
        return sum(self._sizes)

    @property
    def arms(self) -> Integers:
        """Row numbers of the places in a finite domain, shape (U,)."""
        return self._arms[: len(self)]

    def numbers(self, observations: Observations) -> Integers:
        """Look up the place of each row, shape (n,), all of them known."""
        known = self._numbers
        return np.array([known[key] for key in _keys(observations)], dtype=np.intp)

    def strengths(self, observations: Observations) -> tuple[Array, Array]:
        """z, infinite where it is not finite, and the weight noise / v of each row, both (n,)."""
        noise = self._prior.noise
        weights = noise / observations.own_noise(noise)
        with np.errstate(over="ignore", invalid="ignore"):
            z = weights * (observations.observed - self._prior.mean)
            return np.where(np.abs(z) < _INFINITE, z, np.inf), weights

    def add(self, observations: Observations) -> None:
        """Account for further rows."""
        z, weights = self.strengths(observations)
        keys = _keys(observations)
        slots = [self._number(key, observations, row) for row, key in enumerate(keys)]
        self.n += len(slots)
        np.add.at(self._plays, slots, 1.0)
        np.add.at(self._weights, slots, weights)
        finite = np.isfinite(z)
        if len(slots) == 1:
            if finite[0]:
                self._insert(slots[0], z.item())
            return
        of = np.array(slots, dtype=np.intp)
        for slot in np.unique(of[finite]).tolist():
            new = z[finite & (of == slot)]
            # A merge sorts all results of the place, an insertion moves some of them
            if len(new) < 8:
                for value in new.tolist():
                    self._insert(slot, value)
            else:
                self._merge(slot, new)

    def _number(self, key: int | bytes, observations: Observations, row: int) -> int:
        slot = self._numbers.get(key)
        if slot is None:
            slot = len(self)
            if slot == len(self._plays):
                self._arms, self._points, self._plays, self._weights = (
                    np.concatenate([a, np.zeros_like(a)])
                    for a in (self._arms, self._points, self._plays, self._weights)
                )
            self._numbers[key] = slot
            self._points[slot] = observations.x[row]
            if observations.arms is not None:
                self._arms[slot] = observations.arms[row]
            self._sizes.append(0)
            self._sorted.append(np.array([-np.inf, np.inf] + [np.nan] * 8))
            self._sums.append(np.zeros(10))
        return slot

    def _insert(self, slot: int, z: float) -> None:
        """Insert one more result at a place: a binary search, and moving larger ones."""
        n, values, sums = self._sizes[slot], self._sorted[slot], self._sums[slot]
        if n + 3 > len(values):  # n, two sentinels and the new one
            # np.resize fills the room with repetitions, which are never read
            values, sums = np.resize(values, 2 * len(values)), np.resize(sums, 2 * len(sums))
            self._sorted[slot], self._sums[slot] = values, sums
        k = int(values[: n + 2].searchsorted(abs(z), side="right"))  # >= 1, after -inf
        values[k + 1 : n + 3] = values[k : n + 2]
        values[k] = abs(z)
        sums[k + 1 : n + 2] = sums[k : n + 1] + z
        sums[k] = sums[k - 1] + z
        self._sizes[slot] = n + 1
        self._forget(slot)

    def _merge(self, slot: int, new: Array) -> None:
        """Merge many more results into a place."""
        n, values, sums = self._sizes[slot], self._sorted[slot], self._sums[slot]
        # The sums before a z are at most n |z|, so their difference has its sign.
        old = np.copysign(values[1 : n + 1], np.diff(sums[: n + 1]))
        z = np.concatenate([old, new])
        z = z[np.argsort(np.abs(z), kind="stable")]
        room = np.full(max(len(z) // 2, 8), np.nan)
        self._sorted[slot] = np.concatenate([[-np.inf], np.abs(z), [np.inf], room])
        self._sums[slot] = np.concatenate([[0.0], np.cumsum(z), [0.0], room])
        self._sizes[slot] = len(z)
        self._forget(slot)

    def _forget(self, slot: int) -> None:
        if slot < self._cache.shape[1]:
            self._cache[1, slot] = -np.inf  # no threshold is below it

    def below(self, thresholds: Array) -> tuple[Array, Array]:
        """Return sums and counts of the z with |z| <= ``thresholds`` at each place, all (U, m).

        A threshold that moved past no result has the sum it had: only the others are searched for,
        in O(log n) each.
        """
        U, m = thresholds.shape
        cache = self._cache
        if cache.shape[1] < U or cache.shape[2] != m:
            room = max(U, min(2 * cache.shape[1], 2 * U))
            larger = np.full((4, room, m), -np.inf)
            if cache.shape[2] == m:
                larger[:, : cache.shape[1]] = cache
            self._cache = cache = larger
        # A sum holds for low <= threshold < high; new places have high = -inf
        low, high, sums, counts = cache[:, :U]
        moved: Booleans = (thresholds < low) | (thresholds >= high)
        for slot in np.flatnonzero(moved.any(axis=1)).tolist():
            values = self._sorted[slot]
            k = values[: self._sizes[slot] + 2].searchsorted(thresholds[slot], side="right")
            low[slot], high[slot] = values[k - 1], values[k]
            sums[slot] = self._sums[slot][k - 1]
            counts[slot] = k - 1
        return sums, counts


def thresholds(level: float, u: Array) -> Array:
    """Largest |z| for |u z| <= level, that is level / |u|, elementwise; finite."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.fmin(level / np.abs(u), _FARTHEST))


def _keys(observations: Observations) -> Sequence[int | bytes]:
    """Return a key of each place: the row number in a finite domain, else the coordinates."""
    if observations.arms is not None:
        arms: list[int] = observations.arms.tolist()
        return arms
    return [row.tobytes() for row in observations.x + 0.0]  # -0.0 becomes 0.0
