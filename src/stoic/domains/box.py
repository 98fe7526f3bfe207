"""Boxes, with continuous and discrete coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stoic.data import Array, Booleans, Integers, numbers
from stoic.descent import descend
from stoic.domains.base import (
    TOLERANCE,
    Acquisition,
    Domain,
    Peak,
    Random,
    as_points,
    check_columns,
    check_widths,
    having_value,
    rounding,
)
from stoic.domains.finite import Finite
from stoic.domains.sobol import sobol, sobol_points
from stoic.domains.tree import Tree
from stoic.linalg import squared_distances

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SAME = 1e-9  # widths, by which values of a lattice differ by rounding alone
_LOW = 1e-5  # range of heights, below which the slopes are as small as the tolerance of an ascent


@dataclass(frozen=True, eq=False)
class Lattice:
    """Coordinates of a box that take a few values together: an integer, a step, a category.

    Parameters
    ----------
    columns:
        The coordinates, shape (c,).
    values:
        The allowed values, shape (k, c), or (k,) on one coordinate: those of an integer; an
        identity matrix for a category encoded by one coordinate per choice.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a value is not finite.
    """

    columns: Integers
    values: Array

    if TYPE_CHECKING:

        def __init__(self, columns: ArrayLike, values: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        columns = np.array(numbers(self.columns, "A coordinate of a lattice"), ndmin=1)
        if columns.ndim != 1 or (columns % 1.0).any() or len(np.unique(columns)) < len(columns):
            raise ValueError(
                f"A lattice has the numbers of different coordinates, got {self.columns!r}."
            )
        columns = columns.astype(np.intp)
        values = numbers(self.values, "A value of a lattice")
        if values.ndim == 1 and len(columns) == 1:
            values = values[:, None]
        if values.ndim != 2 or values.shape[1:] != columns.shape:
            raise ValueError(
                "A lattice has values of shape (k, c) on c coordinates, got shape "
                f"{values.shape} on the coordinates {columns.tolist()}."
            )
        # The sum, since a category of 5,000 choices has 25 million values
        if not len(values) or not np.isfinite(values.sum()):
            raise ValueError(f"A lattice has finite values, got {self.values!r:.200}.")
        if len(columns) == 1:
            values = np.sort(values, axis=0)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "values", values)

    def nearest(self, x: Array) -> Array:
        """Round each row of ``x`` (n, d) to the closest row of ``values``, shape (n, c)."""
        offered = x[:, self.columns]
        if len(self.columns) == 1 and len(self.values) > 1:  # sorted: bisect
            grid = self.values[:, 0]
            right = np.clip(np.searchsorted(grid, offered[:, 0]), 1, len(grid) - 1)
            # Ties go to the lower value
            closer = offered[:, 0] - grid[right - 1] <= grid[right] - offered[:, 0]
            return self.values[np.where(closer, right - 1, right)]
        nearest = np.argmin(squared_distances(offered, self.values), axis=1)
        return np.asarray(self.values[nearest])

    def thinned(self, n: int) -> Array:
        """At most ``n`` evenly spread values if it has one coordinate; else all values."""
        if len(self.columns) > 1 or len(self.values) <= n:
            return self.values
        even = np.linspace(self.values[0, 0], self.values[-1, 0], n)
        rows: Integers = np.unique(np.abs(self.values - even).argmin(axis=0))
        return np.asarray(self.values[rows])


class InUnits(NamedTuple):
    """Acquisition function in another unit."""

    surface: Acquisition
    unit: float

    def __call__(self, x: Array) -> Array:
        return self.surface(x) / self.unit

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        heights, slopes = self.surface.with_gradient(x)
        return heights / self.unit, slopes / self.unit


@dataclass(frozen=True, eq=False)
class Box:
    """All points between two corners, some coordinates possibly restricted to a lattice.

    The search for a maximum evaluates ``candidates`` quasi-random points and perturbations of the
    best points known in one batch, then climbs from the best of them, all together, by L-BFGS-B
    with analytic gradients. Coordinates on a lattice are improved one block at a time instead.

    Parameters
    ----------
    lower, upper:
        Opposite corners, shape (d,), lower < upper.
    lattices:
        Blocks of coordinates that take a few values only.
    candidates:
        Number of quasi-random points that are compared; a power of two is spread best.
    climbs:
        Number of them that start a gradient ascent.
    tree:
        Rule for the coordinates that a point has, where not all points have all.

    Raises
    ------
    ValueError
        If a range is empty, not finite, or narrower or wider than floats can be computed with.
    """

    lower: Array
    upper: Array
    lattices: tuple[Lattice, ...] = ()
    candidates: int = 512
    climbs: int = 8
    tree: Tree | None = None
    dim: int = field(init=False)
    widths: Array = field(init=False)
    finite = False

    if TYPE_CHECKING:  # the corners are given as anything that is an array

        def __init__(
            self,
            lower: ArrayLike,
            upper: ArrayLike,
            lattices: Lattice | Sequence[Lattice] = (),
            candidates: int = 512,
            climbs: int = 8,
            tree: Tree | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        lower = np.atleast_1d(np.array(numbers(self.lower, "A corner of a box")))
        upper = np.atleast_1d(np.array(numbers(self.upper, "A corner of a box")))
        if lower.ndim != 1 or lower.shape != upper.shape or lower.size == 0:
            raise ValueError(
                "Box needs two corners with the same number of coordinates, got shapes "
                f"{lower.shape} and {upper.shape}."
            )
        if not np.all(np.isfinite(lower) & np.isfinite(upper) & (lower < upper)):
            k = int(np.argmin(np.isfinite(lower) & np.isfinite(upper) & (lower < upper)))
            raise ValueError(
                f"Box needs lower < upper, both finite, got [{lower[k]:g}, {upper[k]:g}] in "
                f"coordinate {k}."
            )
        for name, count in (("candidates", self.candidates), ("climbs", self.climbs)):
            if not isinstance(count, int | np.integer) or count < 1:
                raise ValueError(f"{name} is a whole number above 0, got {count!r}.")
        lattices = (self.lattices,) if isinstance(self.lattices, Lattice) else self.lattices
        if not (isinstance(lattices, Sequence) and all(isinstance(k, Lattice) for k in lattices)):
            raise ValueError(
                "Lattices of a box are each a Lattice(columns, values), as Lattice(0, [1, 2, 3]) "
                f"for a whole number in the first coordinate, got {lattices!r:.200}."
            )
        columns = [column for lattice in lattices for column in lattice.columns.tolist()]
        if not np.isin(columns, np.arange(len(lower))).all() or len(set(columns)) < len(columns):
            raise ValueError(
                f"Lattices of a box are on different coordinates, 0 to {len(lower) - 1}, got "
                f"{columns}."
            )
        with np.errstate(over="ignore"):  # an infinite width is refused
            widths = check_widths(upper - lower)
        object.__setattr__(self, "lattices", tuple(lattices))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "dim", len(lower))
        object.__setattr__(self, "widths", widths)

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()})"

    def locate(self, x: Array) -> None:
        points = as_points(x, self.dim)
        slack = rounding(np.maximum(np.abs(self.lower), np.abs(self.upper)), self.widths)
        outside = (points < self.lower - slack) | (points > self.upper + slack)
        outside &= ~self.apart(points)
        if outside.any():
            row, k = np.argwhere(outside)[0]
            raise ValueError(
                f"An input must be in the box: coordinate {k} is {points[row, k]:.12g}, outside "
                f"[{self.lower[k]:.12g}, {self.upper[k]:.12g}]."
            )

    def grid(self, n: int | Sequence[int]) -> Finite:
        """All points of a regular grid with ``n`` values per coordinate, corners included.

        On a lattice all its values are taken; of one coordinate with more than ``n`` values those
        that are nearest to ``n`` evenly spread places. A category keeps all its choices.
        """
        counts: list[Any] = list(n) if isinstance(n, Sequence | np.ndarray) else [n] * self.dim
        if not all(isinstance(k, int | np.integer) and k is not True and k >= 1 for k in counts):
            raise ValueError(f"A number of values of a grid is a whole one above 0, got {n!r}.")
        if len(counts) != self.dim:
            raise ValueError(
                f"A grid takes one number of values, or one for each of the {self.dim} "
                f"coordinates, got {len(counts)}."
            )
        axes: dict[int, tuple[Integers, Array]] = {
            k: (np.array([k]), np.linspace(a, b, count)[:, None])
            for k, (a, b, count) in enumerate(zip(self.lower, self.upper, counts, strict=True))
        }
        for lattice in self.lattices:
            for column in lattice.columns.tolist():
                del axes[column]
            first = int(lattice.columns[0])
            axes[first] = lattice.columns, lattice.thinned(counts[first])
        parts = [axes[first] for first in sorted(axes)]
        rows = np.indices([len(values) for _, values in parts]).reshape(len(parts), -1)
        points = np.empty((rows.shape[1], self.dim))
        for row, (columns, values) in zip(rows, parts, strict=True):
            points[:, columns] = values[row]
        # Points that differ in coordinates they lack alone are one point
        return Finite(points if self.tree is None else np.unique(self.tree.fill(points), axis=0))

    def on_lattices_of(self, whole: Domain) -> Box:
        """Add the lattices and the tree of ``whole``, except on coordinates with a lattice already.

        Raises
        ------
        ValueError
            If no value of a lattice is in the box.
        """
        mine = {int(column) for lattice in self.lattices for column in lattice.columns}
        kept = []
        for lattice in whole.lattices if isinstance(whole, Box) else ():
            if mine & set(lattice.columns.tolist()):
                continue
            low, high = self.lower[lattice.columns], self.upper[lattice.columns]
            slack = _SAME * whole.widths[lattice.columns]  # a step's multiple is rounded
            inside = np.all(
                (lattice.values >= low - slack) & (lattice.values <= high + slack), axis=1
            )
            if not inside.any():
                raise ValueError(
                    f"None of the values that coordinates {lattice.columns.tolist()} may take lies "
                    f"between {low.tolist()} and {high.tolist()}."
                )
            kept.append(Lattice(lattice.columns, np.clip(lattice.values[inside], low, high)))
        tree = self.tree or (whole.tree if isinstance(whole, Box) else None)
        if not kept and tree is self.tree:
            return self
        return replace(self, lattices=(*self.lattices, *kept), tree=tree)

    def around(self, x: Array, half: Array) -> Box:
        """Return the part within ``half`` (d,) of a point (d,) in each coordinate.

        The next values of an integer of more than two are in it at any distance, and so is all of a
        coordinate that the point lacks.
        """
        x = np.clip(x, self.lower, self.upper)
        lower, upper = np.maximum(x - half, self.lower), np.minimum(x + half, self.upper)
        for lattice in self.lattices:
            if len(lattice.columns) == 1 and len(lattice.values) > 2:
                k, values = lattice.columns[0], lattice.values[:, 0]
                same = _SAME * self.widths[k]
                below, above = values[values < x[k] - same], values[values > x[k] + same]
                lower[k] = min(lower[k], below.max(initial=self.lower[k]))
                upper[k] = max(upper[k], above.min(initial=self.upper[k]))
        if self.tree is not None:
            lacking = ~self.tree.has(x[None])[0]
            lower[lacking], upper[lacking] = self.lower[lacking], self.upper[lacking]
        part = replace(self, lower=lower, upper=upper, lattices=(), tree=None)
        return part.on_lattices_of(self)

    def having(self, values: Mapping[int, float]) -> Box:
        """Fix coordinates at these values, which a lattice must contain, up to rounding."""
        check_columns(values, self.dim)
        lattices, free = [], dict(values)
        for lattice in self.lattices:
            offered = lattice.values
            for c, k in enumerate(lattice.columns.tolist()):
                if k not in free:
                    continue
                same, nearest = having_value(offered[:, c], free[k], self.widths[k])
                if not same.any():
                    raise ValueError(
                        f"Coordinate {k} cannot have the value {float(free[k]):.12g}: the nearest "
                        f"it can have is {nearest:.12g}."
                    )
                offered = offered[same]
                del free[k]
            lattices.append(Lattice(lattice.columns, offered))
        for k, value in free.items():
            slack = rounding(value, self.widths[k])
            if not self.lower[k] - slack <= value <= self.upper[k] + slack:
                raise ValueError(
                    f"Coordinate {k} lies in [{self.lower[k]:g}, {self.upper[k]:g}], so it cannot "
                    f"have the value {float(value):g}."
                )
            inside = float(np.clip(value, self.lower[k], self.upper[k]))
            # A lattice of one value: no ascent moves it, and ``snap`` returns to it
            lattices.append(Lattice(np.array([k]), np.array([[inside]])))
        return replace(self, lattices=tuple(lattices))

    @property
    def fixes(self) -> bool:
        """True if a coordinate has one value only."""
        return any(len(lattice.values) == 1 for lattice in self.lattices)

    def contains(self, x: Array) -> Booleans:
        points = as_points(x, self.dim)
        inside: Booleans = np.all(np.abs(self.snap(points) - points) <= 1e-9 * self.widths, axis=1)
        return inside

    def apart(self, x: Array) -> Booleans:
        """Mask of the coordinates (n, d) that points lack, with a place for that outside."""
        if self.tree is None:
            return np.zeros(x.shape, dtype=bool)
        return np.asarray((x == self.tree.absent) & (self.tree.absent < self.lower))

    def clip(self, x: Array) -> Array:
        """Put points (n, d) into the box, but for the coordinates that they lack."""
        return np.where(self.apart(x), x, np.clip(x, self.lower, self.upper))

    def snap(self, x: Array) -> Array:
        """Project to the nearest points of the domain: in the box, on lattices, by the tree."""
        points = np.clip(x, self.lower, self.upper)  # a new array, so that x stays
        for lattice in self.lattices:
            points[:, lattice.columns] = lattice.nearest(points)
        # Last, since rules decide by values that a point may have
        return points if self.tree is None else self.tree.fill(points)

    def sample(self, n: int, rng: Random) -> Array:
        return self.snap(rng.uniform(self.lower, self.upper, size=(n, self.dim)))

    def spread(self, n: int, rng: Random) -> Array:
        """Return the first ``n`` points of a scrambled Sobol sequence."""
        # Sobol sequences are balanced at powers of two only; SciPy warns at any other length.
        points = sobol(self.dim, rng).random_base2(max(n - 1, 0).bit_length())[:n]
        return self.snap(self.lower + self.widths * points)

    def maximise(
        self, surface: Acquisition, rng: Random, near: Array, tolerance: float = TOLERANCE
    ) -> Peak:
        starts, unit = self._starts(surface, rng, near)
        # L-BFGS-B ends at slopes and gains that are tiny beside 1, however low the surface
        high = InUnits(surface, unit) if 0.0 < unit < _LOW else surface
        peaks = self._climb(high, starts, tolerance)
        if self.lattices:
            peaks = self._walk(high, peaks, tolerance)
        heights = surface(peaks)
        best = int(np.argmax(heights))
        return Peak(peaks[best], None, float(heights[best]))

    def _starts(self, surface: Acquisition, rng: Random, near: Array) -> tuple[Array, float]:
        """Choose the highest candidates, no two of them close together, shape (<= climbs, d).

        Also the range of the heights of all candidates.
        """
        # A random rotation (modulo 1) of fixed Sobol points: evenly spread, new in every call.
        unit = (sobol_points(self.dim, self.candidates) + rng.random(self.dim)) % 1.0
        pools = [self.lower + self.widths * unit]
        if len(near):
            # ~ N(near, (scale * width)^2), from fine tuning to exploration
            scales = 10.0 ** rng.uniform(-3.0, -0.7, size=(self.candidates // 4, 1))
            chosen = near[rng.integers(len(near), size=self.candidates // 4)]
            steps = scales * rng.standard_normal(chosen.shape)
            pools += [near, chosen + self.widths * steps]
        candidates = self.snap(np.concatenate(pools))
        heights = surface(candidates)
        order = np.argsort(-heights, kind="stable")
        starts = [order[0]]
        for i in order[1:]:
            if len(starts) == self.climbs:
                break
            gaps = np.abs(candidates[starts] - candidates[i]) / self.widths
            if np.all(gaps.max(axis=1) > 0.02):  # of the widths: closer ones climb the same hill
                starts.append(i)
        return candidates[starts], float(heights[order[0]] - heights[order[-1]])

    def _climb(self, surface: Acquisition, starts: Array, tolerance: float) -> Array:
        """Ascend from all starts: one L-BFGS-B on the sum, then the best alone to convergence."""
        free = np.ones(self.dim, dtype=bool)
        for lattice in self.lattices:
            free[lattice.columns] = False
        if not free.any():
            return starts

        lower, widths = self.lower[free], self.widths[free]
        columns: Booleans | slice = slice(None) if free.all() else free

        def ascend(points: Array, iterations: int) -> Array:
            # A coordinate that a point lacks stays in its place
            moving = None if self.tree is None else self.tree.has(points)[:, free]

            # In units of the box, so that the optimiser sees comparable coordinates.
            def at(u: Array) -> Array:
                x = points.copy()
                moved = lower + widths * u.reshape(len(points), -1)
                x[:, columns] = moved if moving is None else np.where(moving, moved, x[:, columns])
                return x

            def descent(u: Array) -> tuple[float, Array]:
                heights, slopes = surface.with_gradient(at(u))
                slopes = slopes[:, columns] * widths
                slopes = slopes if moving is None else slopes * moving
                # The sum is separable: each point climbs alone, all in one batch of evaluations
                return -float(heights.sum()), -slopes.ravel()

            u = ((points - self.lower) / self.widths)[:, columns].ravel()
            zero = np.zeros(len(u))
            u, _ = descend(descent, u, zero, zero + 1.0, iterations, tolerance, 1e-7)
            found = at(u)
            inside = np.clip(found, self.lower, self.upper)  # u = 1 may round to beyond the corner
            return inside if self.tree is None else np.where(self.tree.has(found), inside, found)

        peaks = ascend(starts, 20)  # enough to rank the local maxima
        heights = surface(peaks)
        best = int(np.argmax(heights))
        peaks[best] = ascend(peaks[[best]], 100)[0]
        return peaks

    def _walk(self, surface: Acquisition, peaks: Array, tolerance: float) -> Array:
        """Improve the best peak one lattice block at a time, with gradient ascents in between."""
        best = peaks[[int(np.argmax(surface(peaks)))]]
        height = float(surface(best)[0])
        for _ in range(10):
            before = height
            for lattice in self.lattices:
                values = lattice.values
                if len(values) > 64:  # the nearest ones, and an even subset of all
                    here = int(np.argmin(np.abs(values - best[:, lattice.columns]).sum(axis=1)))
                    rows = np.r_[
                        max(here - 16, 0) : min(here + 17, len(values)),
                        np.linspace(0, len(values) - 1, 32).astype(int),
                    ]
                    values = values[np.unique(rows)]
                moves = np.repeat(best, len(values), axis=0)
                moves[:, lattice.columns] = values
                moves = moves if self.tree is None else self.snap(moves)
                heights = surface(moves)
                if heights.max() > height:
                    best, height = moves[[int(np.argmax(heights))]], float(heights.max())
            if height == before:
                break
            # With other values on lattices the continuous coordinates have another optimum
            best = self._climb(surface, best, tolerance)
            height = float(surface(best)[0])
        return best
