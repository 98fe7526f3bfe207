"""Finite sets of points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

from stoic.data import Array, Booleans, Integers, numbers
from stoic.domains.base import (
    TOLERANCE,
    Acquisition,
    Peak,
    Random,
    as_points,
    check_columns,
    check_widths,
    having_value,
    rounding,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_BLOCK = 1 << 22  # distances held at once


@dataclass(frozen=True, eq=False)
class Finite:
    """A list of points, called arms; ties go to the lowest row, always.

    Parameters
    ----------
    points:
        Distinct finite rows, shape (N, d); shape (N,) is read as N points of one coordinate.

    Raises
    ------
    ValueError
        If there are no points, two are equal, one is not finite, or they are closer together or
        farther apart than floats can be computed with.
    """

    points: Array
    dim: int = field(init=False)
    widths: Array = field(init=False)
    finite = True
    _rows: dict[bytes, int] = field(init=False, repr=False)
    _numbers: Integers = field(init=False, repr=False)

    if TYPE_CHECKING:  # the points are given as anything that is an array

        def __init__(self, points: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        points = np.array(numbers(self.points, "A point"))
        if points.ndim == 1:
            points = points[:, None]
        if points.ndim != 2 or points.size == 0:
            raise ValueError(
                f"Finite needs points of shape (N, d) with N, d >= 1, got shape {points.shape}."
            )
        points = as_points(points, points.shape[1]) + 0.0  # -0.0 becomes 0.0
        rows = {row.tobytes(): i for i, row in enumerate(points)}  # equal to the last bit
        if len(rows) < len(points):
            raise ValueError(
                f"Finite needs distinct points, got {len(points)} of which {len(rows)} are "
                "distinct: use np.unique(points, axis=0)."
            )
        with np.errstate(over="ignore"):
            extent = np.ptp(points, axis=0)
        points.flags.writeable = False
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "dim", points.shape[1])
        # A coordinate that never changes has no extent, and any unit will do
        object.__setattr__(self, "widths", check_widths(np.where(extent > 0.0, extent, 1.0)))
        arms = np.arange(len(points))
        arms.flags.writeable = False
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "_numbers", arms)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"Finite({len(self)} points, dim={self.dim})"

    def locate(self, x: Array) -> Integers:
        if len(x) == 1:  # the usual case, and the hot path
            arm = self._rows.get(x.tobytes())
            if arm is not None:  # not so for -0.0 and integers, which go on below
                return self._numbers[arm : arm + 1]  # a view: no new array
        points = as_points(x, self.dim) + 0.0
        arms = [self._rows.get(row.tobytes(), -1) for row in points]
        for i in np.flatnonzero(np.array(arms) < 0):
            arms[i] = int(self.nearest(points[i : i + 1])[0])
            apart = np.abs(points[i] - self.points[arms[i]])
            if np.all(apart <= rounding(points[i], self.widths)):
                continue
            missing = points[i].tolist()
            raise ValueError(
                f"{missing} is not one of the {len(self)} points of this finite domain: tell "
                "results at its rows, or use a Box."
            )
        return np.array(arms, dtype=np.intp)

    def nearest(self, x: Array) -> Integers:
        """Find the row nearest to each of ``x`` (n, d), shape (n,).

        By the Chebyshev distance in units of the widths.
        """
        points, block = as_points(x, self.dim) / self.widths, max(_BLOCK // len(self), 1)
        rows = [
            cdist(points[i : i + block], self.points / self.widths, "chebyshev").argmin(axis=1)
            for i in range(0, len(points), block)
        ]
        return np.concatenate(rows or [np.empty(0, dtype=np.intp)])

    def having(self, values: Mapping[int, float]) -> Among:
        """Select the rows with these values, up to rounding."""
        return Among(self, self._numbers).having(values)

    def contains(self, x: Array) -> Booleans:
        rows = as_points(x, self.dim) + 0.0
        return np.array([row.tobytes() in self._rows for row in rows], dtype=np.bool_)

    def maximise(
        self, surface: Acquisition, rng: Random, near: Array, tolerance: float = TOLERANCE
    ) -> Peak:
        heights = surface(self.points)
        arm = int(heights.argmax())
        return Peak(self.points[arm], arm, float(heights[arm]))

    def sample(self, n: int, rng: Random) -> Array:
        return self.points[rng.integers(len(self), size=n)]

    def spread(self, n: int, rng: Random) -> Array:
        """``n`` random points, without repetition while there are enough."""
        rounds = max(-(-n // len(self)), 1)  # rounded up
        rows = [rng.permutation(len(self)) for _ in range(rounds)]
        return self.points[np.concatenate(rows)[:n]]


@dataclass(frozen=True, eq=False)
class Among:
    """Subset of a finite domain: the actions of this round, or those with its context.

    Parameters
    ----------
    whole:
        The domain that the observations and the posterior live on.
    arms:
        The rows that may be chosen, shape (k,).
    """

    whole: Finite
    arms: Integers

    def __post_init__(self) -> None:
        arms = np.atleast_1d(np.asarray(self.arms))
        if arms.dtype == bool:
            if arms.shape != (len(self.whole),):
                raise ValueError(
                    f"A mask has an entry for each of the {len(self.whole)} points, got "
                    f"{arms.size}: give row numbers, or a mask of all rows."
                )
            arms = np.flatnonzero(arms)
        if arms.size == 0:
            raise ValueError("Nothing to choose among: give at least one row number.")
        if arms.ndim != 1:
            raise ValueError(
                f"Choose among row numbers, a list of them, got an array of shape {arms.shape}: "
                "the numbers of points are domain.locate(points)."
            )
        if not np.issubdtype(arms.dtype, np.integer):
            raise ValueError(f"Choose among row numbers (integers), got {arms.dtype} values.")
        if arms.min() < 0 or arms.max() >= len(self.whole):
            raise ValueError(
                f"Choose among rows 0 to {len(self.whole) - 1}, got {arms.min()} to {arms.max()}."
            )
        # In order, so that ties go to the lowest row.
        object.__setattr__(self, "arms", np.unique(arms).astype(np.intp))

    def having(self, values: Mapping[int, float]) -> Among:
        """Select those of its rows with these values, up to rounding."""
        check_columns(values, self.whole.dim)
        arms = self.arms
        for k, value in values.items():
            same, nearest = having_value(self.whole.points[arms, k], value, self.whole.widths[k])
            if not same.any():
                raise ValueError(
                    f"None of the points that may be chosen has {float(value):.12g} in coordinate "
                    f"{k}: the nearest value there is {nearest:.12g}."
                )
            arms = arms[same]
        return Among(self.whole, arms)

    def contains(self, x: Array) -> Booleans:
        points = as_points(x, self.whole.dim)
        inside = self.whole.contains(points)
        inside[inside] = np.isin(self.whole.locate(points[inside]), self.arms)
        return inside

    def maximise(
        self, surface: Acquisition, rng: Random, near: Array, tolerance: float = TOLERANCE
    ) -> Peak:
        heights = surface(self.whole.points)[self.arms]
        best = int(heights.argmax())
        arm = int(self.arms[best])
        return Peak(self.whole.points[arm], arm, float(heights[best]))
