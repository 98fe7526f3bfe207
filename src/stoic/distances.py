"""Distances between inputs, in which moves are measured, and nearest neighbours.

Notation: ``x`` is (n, d), ``z`` is (m, d); a distance is infinite where no move leads from one to
the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from stoic.data import Array, Integers
from stoic.kernels import Kernel, kernel_metric

_MINKOWSKI = {"cityblock": 1.0, "euclidean": 2.0, "chebyshev": math.inf}
# These scale by the variance of all rows of a call, so blocks would disagree with the whole.
_OF_ALL_ROWS = ("mahalanobis", "seuclidean")
_BLOCK = 1 << 19  # distances computed at once: 4 MB, which stay in the cache
_SMALL = 1 << 14  # below this many distances a tree does not pay
# Rounding moves points that are exactly ``radius`` away, as on a grid, in and out of the ball.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Distance:
    """Distance between inputs, in units of a tolerance per coordinate.

    Parameters
    ----------
    metric:
        A name that :func:`scipy.spatial.distance.cdist` knows, or a function from (n, d) and (m, d)
        to distances (n, m); see :meth:`of_kernel`.
    tolerance:
        The unit in which each coordinate is measured, shape (d,) or one number: distance 1 is a
        move by one tolerance. A coordinate with tolerance 0 is never moved: an action that is
        executed as it is, while the context is not the announced one. A metric given as a function
        has units of its own, and takes tolerances 0 and 1 only.

    Raises
    ------
    ValueError
        If the metric is not known or depends on all rows of a call, or if a tolerance is negative
        or not finite, or none is positive.
    """

    metric: str | Callable[[Array, Array], Array] = "euclidean"
    tolerance: ArrayLike = 1.0

    def __post_init__(self) -> None:
        tolerance = np.array(self.tolerance, dtype=float)
        if tolerance.ndim > 1 or not np.all((tolerance >= 0.0) & np.isfinite(tolerance)):
            raise ValueError(
                "A tolerance is a finite number >= 0, one or one per coordinate, got "
                f"{self.tolerance!r}."
            )
        if not np.any(tolerance > 0.0):
            raise ValueError("All tolerances are 0, so nothing moves: give a positive one.")
        if isinstance(self.metric, str):
            if self.metric in _OF_ALL_ROWS:
                raise ValueError(
                    f"{self.metric} depends on all rows it is given: use 'euclidean' with a "
                    "tolerance per coordinate, or pass a function of two arrays."
                )
            try:
                cdist(np.ones((1, 1)), np.ones((1, 1)), self.metric)  # type: ignore[call-overload]
            except ValueError as error:
                raise ValueError(
                    f"A metric is a name that scipy knows, or a function, got {self.metric!r}."
                ) from error
        elif not np.all((tolerance == 0.0) | (tolerance == 1.0)):
            raise ValueError(
                "A metric given as a function has units of its own: tolerances are 0 (never moved) "
                f"or 1, got {self.tolerance!r}."
            )
        tolerance.flags.writeable = False
        object.__setattr__(self, "tolerance", tolerance)

    @staticmethod
    def of_kernel(kernel: Kernel, tolerance: ArrayLike = 1.0) -> Distance:
        """Kernel metric sqrt(k(x, x) - 2 k(x, z) + k(z, z)), in which f is ||f||_k-Lipschitz."""
        return Distance(partial(kernel_metric, kernel), tolerance)

    @property
    def indexed(self) -> bool:
        """True if a tree finds the nearest of many points, without all distances."""
        return isinstance(self.metric, str) and self.metric in _MINKOWSKI

    def __call__(self, x: Array, z: Array) -> Array:
        """All distances, shape (n, m)."""
        moving, fixed, unit = self.coordinates(x.shape[1])
        if isinstance(self.metric, str):
            distances = cdist(x[:, moving] / unit, z[:, moving] / unit, self.metric)  # type: ignore[call-overload]
        else:
            distances = np.array(self.metric(x, z), dtype=float)
        for k in fixed:
            distances[np.not_equal.outer(x[:, k], z[:, k])] = np.inf
        return np.asarray(distances)

    def nearest(self, x: Array, z: Array, within: float = math.inf) -> Array:
        """Distance of each row of ``x`` to the nearest of ``z``, shape (n,).

        Infinite where there is none, or none ``within`` this distance.
        """
        if not len(z):
            return np.full(len(x), np.inf)
        order = _MINKOWSKI.get(self.metric) if isinstance(self.metric, str) else None
        if order is None or len(x) * len(z) < _SMALL:
            least = np.empty(len(x))
            for part in blocks(len(x), len(z)):
                least[part] = self(x[part], z).min(axis=1)
            least[least > within] = np.inf
            return least
        moving, fixed, unit = self.coordinates(x.shape[1])
        u, v = x[:, moving] / unit, z[:, moving] / unit
        if not len(fixed):
            return _nearest(u, v, order, within)
        least = np.full(len(x), np.inf)
        # A tree for each combination of fixed values: no move leads to another one
        _, labels = np.unique(np.concatenate([x, z])[:, fixed], axis=0, return_inverse=True)
        of_x, of_z = _groups(labels[: len(x)]), _groups(labels[len(x) :])
        for label, rows in of_x.items():
            if label in of_z:
                least[rows] = _nearest(u[rows], v[of_z[label]], order, within)
        return least

    def ball(self, x: Array, z: Array, radius: float) -> Integers:
        """Numbers of the rows of ``z`` within ``radius`` of the point ``x`` (d,)."""
        return np.flatnonzero(self(x[None], z)[0] <= reach(radius))

    def coordinates(self, d: int) -> tuple[Integers, Integers, Array]:
        """Split d coordinates into moving and fixed ones; units of the moving ones."""
        tolerance = np.asarray(self.tolerance)
        if tolerance.ndim and len(tolerance) != d:
            raise ValueError(
                f"Inputs have {d} coordinates, but there are {len(tolerance)} tolerances: give one "
                "for each, or one for all."
            )
        units = np.broadcast_to(tolerance, (d,))
        moving = np.flatnonzero(units > 0.0)
        return moving, np.flatnonzero(units == 0.0), units[moving]


def reach(radius: float) -> float:
    """``radius`` and a little, so that points exactly that far away count as within."""
    return radius * (1.0 + _ROUNDING)


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slice the rows, so that a block of all columns is a few megabytes."""
    step = max(_BLOCK // max(columns, 1), 1)
    return (slice(first, first + step) for first in range(0, rows, step))


def _nearest(u: Array, v: Array, order: float, within: float) -> Array:
    # The tree returns points strictly closer than its bound.
    bound = math.nextafter(within, math.inf)
    return np.asarray(cKDTree(v).query(u, p=order, distance_upper_bound=bound)[0])


def _groups(labels: Integers) -> dict[int, Integers]:
    """Rows of each label."""
    order = np.argsort(labels, kind="stable")
    found, starts = np.unique(labels[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True))
