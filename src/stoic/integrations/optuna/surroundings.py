"""Moves of a setting, and the minimum of a lower bound over them: searched for, not sampled.

Tolerances hold at once, so a ball is a box. The worst place in it is often a corner, which
quasi-random moves do not come near to in more than two or three dimensions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from stoic.confidence.base import Band
from stoic.data import Array, Booleans, Integers
from stoic.distances import Distance, reach
from stoic.domains import Box

_CORNERS = 1 << 13  # of all balls together: 16 balls have all of theirs in 9 dimensions
_TOWARDS = 32  # of the lowest points, in whose direction corners are evaluated where they are many
_STARTS = 2  # corners that the search in a ball begins from, and as many other points
_ITERATIONS = 40
_NEARBY = 4.0  # tolerances
_PASSES = 3  # each finds a radius more exactly
_RADII = 24  # evaluated in a pass


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The moves of one setting.

    Attributes
    ----------
    box:
        All settings.
    x:
        The setting, shape (d,).
    moving, unit:
        Indices of the coordinates that move, and their tolerances, both (k,).
    """

    box: Box
    x: Array
    moving: Integers
    unit: Array

    @staticmethod
    def of(box: Box, x: Array, distance: Distance) -> Surroundings:
        """Build those in which a move is as long as that of the coordinate that moves the most."""
        moving, _, unit = distance.coordinates(box.dim)
        return Surroundings(box, x, moving, unit)

    @property
    def farthest(self) -> float:
        """The longest move there is, in tolerances."""
        low, high = self.box.lower[self.moving], self.box.upper[self.moving]
        here = self.x[self.moving]
        return float((np.maximum(here - low, high - here) / self.unit).max())

    def far(self, points: Array) -> Array:
        """Distances of points (m, d) from the setting, in tolerances, shape (m,)."""
        gaps = np.abs(points[:, self.moving] - self.x[self.moving]) / self.unit
        return np.asarray(gaps.max(axis=1))

    def ball(self, radii: Array) -> tuple[Array, Array]:
        """Opposite corners of balls, both (m, k): inside the range and, on a lattice, on values."""
        size = radii[:, None] * self.unit
        low = np.maximum(self.x[self.moving] - size, self.box.lower[self.moving])
        high = np.minimum(self.x[self.moving] + size, self.box.upper[self.moving])
        for lattice in self.box.lattices:
            for c, column in enumerate(lattice.columns.tolist()):
                k = np.flatnonzero(self.moving == column)
                if not len(k):
                    continue
                values = np.unique(np.append(lattice.values[:, c], self.x[column]))
                slack = (reach(1.0) - 1.0) * size[:, k[0]]
                first = np.searchsorted(values, low[:, k[0]] - slack)
                last = np.searchsorted(values, high[:, k[0]] + slack, side="right") - 1
                low[:, k[0]], high[:, k[0]] = values[first], values[last]
        return low, high

    def at(self, moved: Array) -> Array:
        """Snap points with these values (m, k) of the moving coordinates to the domain, (m, d)."""
        points = np.tile(self.x, (len(moved), 1))
        points[:, self.moving] = moved
        points[:, self.moving] = self.box.snap(points)[:, self.moving]
        return points

    def sample(self, n: int) -> Array:
        """Return the setting, ``n`` moves all over the range and as many nearby, (1 + m, d)."""
        span = Box(self.box.lower[self.moving], self.box.upper[self.moving])
        far = span.spread(n, np.random.default_rng(0))
        share = (far - span.lower) / span.widths
        low, high = self.ball(np.array([_NEARBY]))
        return np.concatenate(
            [self.x[None], self.at(np.concatenate([low + share * (high - low), far]))]
        )

    def corners(self, radii: Array, sides: Booleans) -> Array:
        """Corners of balls (m, d), one ball after another; of ``sides`` (n, k) true are upper."""
        low, high = self.ball(radii)
        return self.at(np.where(sides, high[:, None], low[:, None]).reshape(-1, len(self.moving)))

    def sides(self, balls: int, band: Band, promising: Array) -> Booleans:
        """Select the corners to evaluate in so many balls, (n, k): all of them, if these are few.

        Otherwise the one downhill from the setting, those in whose direction the ``promising``
        points (m, d) are, and others at random.
        """
        k = len(self.moving)
        if k < 31 and balls << k <= _CORNERS:
            return np.array(list(itertools.product([False, True], repeat=k)))
        _, _, mean_slope, std_slope = band.posterior.predict_with_gradient(self.x[None])
        downhill = (mean_slope - band.width * std_slope)[:, self.moving] < 0.0
        towards = promising[:, self.moving] > self.x[self.moving]
        others = np.random.default_rng(0).random((max(_CORNERS // balls - len(towards), 1), k))
        return np.unique(np.concatenate([downhill, towards, others < 0.5]), axis=0)

    def lowest(self, band: Band, radii: Array, known: Array, lower: Array) -> Array:
        """Search balls for minima of the lower confidence bound; return the points found, (m, d).

        All balls are searched at once, by L-BFGS-B from the worst few of their corners, and of the
        ``known`` points (m, d), where the bound is ``lower`` (m,). On a lattice the result goes to
        the nearest value.
        """
        order = np.argsort(lower, kind="stable")
        corners = self.corners(radii, self.sides(len(radii), band, known[order[:_TOWARDS]]))
        depth = band.bounds(corners)[0].reshape(len(radii), -1)  # (balls, corners of each)
        deepest = np.argsort(depth, axis=1, kind="stable")[:, :_STARTS]
        per_ball = corners.reshape(len(radii), -1, len(self.x))
        far, starts = self.far(known)[order], []
        for ball, rows, radius in zip(per_ball, deepest, radii, strict=True):
            inside = order[far <= reach(radius)][:_STARTS]
            # np.resize repeats them where a ball has fewer
            starts.append(
                np.concatenate([ball[np.resize(rows, _STARTS)], known[np.resize(inside, _STARTS)]])
            )
        first = np.concatenate(starts)  # (balls * 2 * _STARTS, d)
        low, high = (np.repeat(side, 2 * _STARTS, axis=0) for side in self.ball(radii))
        points = first.copy()

        def fall(u: Array) -> tuple[float, Array]:
            points[:, self.moving] = u.reshape(low.shape)
            mean, std, mean_slope, std_slope = band.posterior.predict_with_gradient(points)
            slope = mean_slope - band.width * std_slope
            # No term depends on the point of another ball: the sum is least where each is
            return float((mean - band.width * std).sum()), slope[:, self.moving].ravel()

        found = optimize.minimize(
            fall,
            np.clip(first[:, self.moving], low, high).ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(low.ravel(), high.ravel()),
            options={"maxiter": _ITERATIONS, "ftol": 1e-10, "gtol": 1e-7},
        )
        last = self.at(np.clip(found.x.reshape(low.shape), low, high))
        return np.concatenate([first, last])  # a lattice may have moved it uphill


@dataclass(frozen=True, eq=False)
class Searched:
    """Points around a setting, which comes first, with the band's lower bound on each.

    Attributes
    ----------
    points:
        Shape (m, d).
    lower:
        Shape (m,).
    """

    points: Array
    lower: Array

    @staticmethod
    def of(around: Surroundings, band: Band, n: int, radii: Array) -> Searched:
        """Evaluate ``n`` moves all over the range, as many nearby, and the corners of balls."""
        points = around.sample(n)
        lower = band.bounds(points)[0]
        promising = points[np.argsort(lower, kind="stable")[:_TOWARDS]]
        corners = around.corners(radii, around.sides(len(radii), band, promising))
        points = np.concatenate([points, corners])
        return Searched(points, np.r_[lower, band.bounds(corners)[0]])

    def within(self, around: Surroundings, band: Band, radii: Array) -> Searched:
        """Add the minima that a search finds in balls of these radii."""
        more = around.lowest(band, radii, self.points, self.lower)
        return Searched(
            np.concatenate([self.points, more]), np.r_[self.lower, band.bounds(more)[0]]
        )

    def radius(
        self, around: Surroundings, band: Band, threshold: float
    ) -> tuple[float, float, Searched]:
        """Largest move of the setting before the bound falls below the threshold.

        The largest radius for which a search of the ball found nothing below, the distance of the
        nearest point below, and all points evaluated. Both are infinite if nothing is below in the
        whole range, and minus infinity if the setting itself is.
        """
        if self.lower[0] < threshold:
            return -np.inf, -np.inf, self
        searched, held, farthest = self, 0.0, around.farthest
        for _ in range(_PASSES):
            fails = searched._nearest_below(around, threshold)
            radii = np.linspace(held, min(fails, farthest), _RADII + 1)[1:]
            searched = searched.within(around, band, radii)
            fails = searched._nearest_below(around, threshold)
            if fails == np.inf:
                return np.inf, np.inf, searched
            # A point found at the edge of a ball may be a little outside of it, by rounding.
            held = float(np.max(radii[radii < fails / reach(1.0)], initial=held))
        return held, fails, searched

    def _nearest_below(self, around: Surroundings, threshold: float) -> float:
        return float(np.min(around.far(self.points[self.lower < threshold]), initial=np.inf))
