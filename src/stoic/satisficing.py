"""Robustness of f to moves of its input: fragility, critical radius, worst value.

All of it for a function that is known on a list of points: f itself, or a confidence bound in its
place. [Saday2025]_ calls the upper bound optimistic, since with it every point looks as robust as
it can be, and the lower bound pessimistic: its values hold with the probability of the band.

Notation: ``f`` is (N,), ``points`` (N, d), tau the ``threshold``; ``rows`` are the points that may
be chosen, (k,), by default all; moves may lead to any point. kappa is a fragility, eps a radius.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any, NamedTuple

import numpy as np

from stoic.data import Array, Integers
from stoic.distances import Distance, blocks, reach

EUCLIDEAN = Distance()

_BATCH = 8  # rows solved exactly in one step of the search
_LISTED = 1 << 19  # neighbours kept as lists: beyond, a search is as fast
_TIE = 1e-12  # relative: on a grid, equal distances differ in the last digit


class Spot(NamedTuple):
    """A point: its ``row``, and its fragility, radius or worst value."""

    row: int
    value: float


def fragility(
    f: Array,
    threshold: float,
    points: Array,
    distance: Distance = EUCLIDEAN,
    rows: Integers | None = None,
    *,
    p: float = 1.0,
) -> Array:
    """Fragility kappa_tau,p of each row, shape (k,): eqs. (3) and (10) of [Saday2025]_.

    The least slope for which f(x') >= tau - (kappa d(x, x'))^p at all x'; infinite where
    f(x) < tau. With p = 1 it is max over x' != x of (tau - f(x')) / d(x, x'), eq. (3), which is
    negative where f exceeds tau everywhere else. With p > 1 the maximum is over the x' with
    f(x') < tau, and 0 if there is none; for p = infinity it is 1 over the critical radius.
    """
    gap = _gaps(f, threshold, p)
    # All points for p = 1, where a fragility may be negative
    below = np.flatnonzero(gap > -np.inf)
    chosen = np.arange(len(points)) if rows is None else rows
    kappa = np.full(len(chosen), np.inf)
    fine = np.flatnonzero(f[chosen] >= threshold)
    for part in blocks(len(fine), len(below)):
        x = points[chosen[fine[part]]]
        kappa[fine[part]] = _limits(gap[below], distance(x, points[below]))[0]
    return np.maximum(kappa, 0.0) if p > 1.0 else kappa


def critical_radius(
    f: Array,
    threshold: float,
    points: Array,
    distance: Distance = EUCLIDEAN,
    rows: Integers | None = None,
) -> Array:
    """Critical radius eps_tau of each row, shape (k,): distance to the nearest f(x') < tau.

    f >= tau wherever it is *closer*. Minus infinity where f(x) < tau; where no x' in reach is below
    tau, the largest distance in the domain. Eq. (4) of [Saday2025]_ is the largest distance of the
    points that are closer, so that it belongs to the safe ones; in the limit of a fine grid both
    are the same.
    """
    chosen = np.arange(len(points)) if rows is None else rows
    radius = _radius(f, threshold, points, distance, chosen)
    if np.any(radius == np.inf):
        radius[radius == np.inf] = diameter(points, distance)
    return radius


def worst_value(
    f: Array,
    radius: float,
    points: Array,
    distance: Distance = EUCLIDEAN,
    rows: Integers | None = None,
) -> Array:
    """Minimum of f over the ball of this radius about each row, shape (k,): inner problem of RO."""
    check_radius(radius)
    chosen = np.arange(len(points)) if rows is None else rows
    worst = f[chosen].astype(float)  # itself too, if rounding makes d(x, x) > 0
    for part in blocks(len(chosen), len(points)):
        inside = distance(points[chosen[part]], points) <= reach(radius)
        worst[part] = np.minimum(worst[part], np.where(inside, f, np.inf).min(axis=1))
    return worst


def guaranteed(
    f: Array, points: Array, row: int, distance: Distance = EUCLIDEAN
) -> tuple[Array, Array]:
    """Worst value of f by the size of a move of x: sizes, increasing, and worst values.

    Both (m,); the worst value stays the same up to the next size. With a lower bound in the place
    of f, it holds with the probability of the band (Figure 5, left, of [Saday2025]_).
    """
    far = distance(points[[row]], points)[0]
    far[row] = 0.0
    order = np.lexsort((f, far))
    order = order[np.isfinite(far[order])]
    sizes, values = far[order], np.minimum.accumulate(f[order])
    last = np.r_[np.diff(sizes) > 0.0, True]  # of those equally far away
    return sizes[last], values[last]


def diameter(points: Array, distance: Distance = EUCLIDEAN) -> float:
    """Largest finite distance between two points."""
    largest = 0.0
    for part in blocks(len(points), len(points)):
        distances = distance(points[part], points)
        largest = max(largest, float(distances[np.isfinite(distances)].max(initial=0.0)))
    return largest


def least_fragile(
    f: Array,
    threshold: float,
    points: Array,
    distance: Distance = EUCLIDEAN,
    rows: Integers | None = None,
    *,
    p: float = 1.0,
) -> Spot:
    """RS-1 (``p`` = 1) or RS-G: the row of least :func:`fragility`, ties to the lowest.

    A branch and bound with few distances. The point that limits an exactly solved row bounds the
    fragility of all other rows from below. Rows whose bound exceeds the best are never solved; the
    others are solved in the order of their bounds.
    """
    chosen = np.arange(len(points)) if rows is None else rows
    gap = _gaps(f, threshold, p)
    lowest = -np.inf if p == 1.0 else 0.0  # no fragility is below it
    below = np.flatnonzero(gap > -np.inf)
    gap, there = gap[below], points[below]
    alive = chosen[f[chosen] >= threshold]
    if not len(alive):
        return Spot(int(chosen[0]), np.inf)
    bound, solved = np.full(len(alive), lowest), np.zeros(len(alive), dtype=np.bool_)
    while True:
        open_ = np.flatnonzero(~solved)
        open_ = open_[np.argsort(bound[open_], kind="stable")[:_BATCH]]
        exact, limits = _limits(gap, distance(points[alive[open_]], there))
        bound[open_], solved[open_] = np.maximum(exact, lowest), True
        best = float(bound[solved].min())
        if best == lowest:  # rows come in order, so this is the first of them
            return Spot(int(alive[solved & (bound == best)].min()), best)
        limits = np.unique(limits)
        for part in blocks(len(alive), len(limits)):
            others, _ = _limits(gap[limits], distance(points[alive[part]], there[limits]))
            np.maximum(bound[part], others, out=bound[part], where=~solved[part])
        kept = bound <= (best + _TIE * abs(best) if best < np.inf else best)
        # Later rows that are no better lose the tie: many are where a kernel metric is saturated.
        first = alive[solved & kept].min()
        kept &= solved | (alive < first) | (bound < best)
        alive, bound, solved = alive[kept], bound[kept], solved[kept]
        if solved.all():
            return Spot(int(alive.min()), best)


def most_robust(
    f: Array,
    threshold: float,
    points: Array,
    distance: Distance = EUCLIDEAN,
    rows: Integers | None = None,
) -> Spot:
    """RS-2: the row of largest :func:`critical_radius`, ties to the lowest.

    Its value is infinite where nothing in reach is below tau, minus infinity if all rows are.
    """
    chosen = np.arange(len(points)) if rows is None else rows
    # A tree finds all radii at once; else p = inf, where the fragility is 1 / radius
    if distance.indexed:
        radius = _radius(f, threshold, points, distance, chosen)
        best = float(radius.max())
        least = best - _TIE * best if 0.0 < best < np.inf else best
        return Spot(int(chosen[np.argmax(radius >= least)]), best)
    row, kappa = least_fragile(f, threshold, points, distance, chosen, p=math.inf)
    if kappa == np.inf:  # below tau itself, or no farther than rounding from what is
        return Spot(row, 0.0 if f[row] >= threshold else -np.inf)
    return Spot(row, 1.0 / kappa if kappa > 0.0 else np.inf)


def highest_worst(
    f: Array,
    radius: float,
    points: Array,
    distance: Distance = EUCLIDEAN,
    rows: Integers | None = None,
) -> Spot:
    """RO: the row of largest :func:`worst_value`, ties to the lowest.

    The worst value of a row is at least v unless a point with f < v is within the radius, so v is
    bisected: only the remaining rows, and the points between the two values, are compared again.
    """
    check_radius(radius)
    alive = np.arange(len(points)) if rows is None else rows
    order = np.argsort(f, kind="stable")
    values = f[order]
    # Where each distinct value starts in the order; none of ``alive`` has a point before ``low``
    # within the radius, and all of them have one before ``high``: themselves.
    starts = np.r_[np.flatnonzero(np.r_[True, values[1:] > values[:-1]]), len(f)]
    low, high = 0, len(starts) - 1
    step = 1  # doubled until it is too much: what limits is usually among the lowest
    while high - low > 1:
        middle = min(low + step, (low + high) // 2) if step else (low + high) // 2
        there = points[order[starts[low] : starts[middle]]]
        hit = distance.nearest(points[alive], there, reach(radius)) < np.inf
        if hit.all():
            high, step = middle, 0
        else:
            alive, low, step = alive[~hit], middle, 2 * step
    return Spot(int(alive.min()), float(values[starts[low]]))


@dataclass(frozen=True, slots=True, eq=False)
class Balls:
    """Lists of the points within a radius of each point, for repeated worst values.

    Attributes
    ----------
    members:
        The row numbers in all balls, one ball after another, shape (m,).
    starts:
        Index in ``members`` at which the ball of each row begins, shape (N,).
    """

    members: Integers
    starts: Integers

    @staticmethod
    def of(points: Array, radius: float, distance: Distance = EUCLIDEAN) -> Balls | None:
        """Compute the balls about all points; None if the lists would be long."""
        check_radius(radius)
        members, sizes, m = [], [], 0
        for part in blocks(len(points), len(points)):
            inside = distance(points[part], points) <= reach(radius)
            np.fill_diagonal(inside[:, part], True)  # d(x, x) > 0 by rounding in a kernel metric
            members.append(np.nonzero(inside)[1])
            sizes.append(np.count_nonzero(inside, axis=1))
            m += len(members[-1])
            if m > _LISTED:
                return None
        ends = np.cumsum(np.concatenate(sizes))
        return Balls(np.concatenate(members), np.r_[0, ends[:-1]])

    def worst(self, f: Array) -> Array:
        """Minimum of f over each ball, shape (N,): :func:`worst_value` of all rows."""
        return np.asarray(np.minimum.reduceat(f[self.members], self.starts))


@dataclass(frozen=True, slots=True)
class Certificate:
    """Robustness certificate of a point: lower bounds on f when it is moved.

    If f is at least the bound that it was computed from: f >= ``value`` at all points closer than
    ``radius`` (or just as far, if ``closed``), and f >= ``value`` - (``fragility`` d)^``p`` at
    distance d, on the given points. It holds with the probability of the band
    (Corollaries 3.3 and 3.5 of [Saday2025]_).

    Attributes
    ----------
    value:
        The threshold, or the worst value.
    radius:
        Minus infinity if nothing holds, not even at the point itself; infinite if f >= ``value``
        wherever it can be moved.
    fragility, p:
        Infinite, or at most 0, likewise.
    closed:
        True if the points at distance ``radius`` are included.
    """

    value: float
    radius: float
    fragility: float
    p: float = 1.0
    closed: bool = False

    @staticmethod
    def of(notes: Mapping[str, Any]) -> Certificate:
        """Certificate with the numbers from the notes of a choice."""
        return Certificate(**{each.name: notes[each.name] for each in fields(Certificate)})

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, probability: float | None = None) -> str:
        """Certificate in words, numbers rounded to the safe side.

        Parameters
        ----------
        probability:
            Probability that the band holds in all rounds: 1 - delta of the width. ``None`` if it is
            not known.
        """
        surely = (
            "If f lies in the band"
            if probability is None
            else (f"With probability at least {probability:g}")
        )
        if self.radius == -math.inf:
            return f"{surely}, nothing is promised: f may be below {self.value:.6g} at this point."
        value = rounded(self.value, ROUND_FLOOR, 6)
        if self.radius == math.inf:
            return f"{surely}, f >= {value} however far this point is moved."
        near = "within" if self.closed else "closer than"
        said = f"{surely}, f >= {value} {near} {rounded(self.radius, ROUND_FLOOR, 3)} of here"
        if 0.0 < self.fragility < math.inf and self.p < math.inf:
            slope = rounded(self.fragility, ROUND_CEILING, 3)
            power = "" if self.p == 1.0 else f"^{self.p:g}"
            loss = f"{slope} d" if self.p == 1.0 else f"({slope} d){power}"
            said += f", and f >= {value} - {loss} at distance d"
        return f"{said}."


def certify(
    lower: Array,
    threshold: float,
    points: Array,
    row: int,
    distance: Distance = EUCLIDEAN,
    *,
    p: float = 1.0,
) -> Certificate:
    """Certify one row by a lower bound on f (N,): pessimistic radius and fragility."""
    rows = np.array([row])
    radius = float(_radius(lower, threshold, points, distance, rows)[0])
    kappa = float(fragility(lower, threshold, points, distance, rows, p=p)[0])
    return Certificate(threshold, radius, kappa, p)


def lenient_regret(value: Array, threshold: float) -> Array:
    """Lenient regret, the running sum of (tau - f(x_t))^+ at the executed points, (T,): eq. (6)."""
    return np.cumsum(np.maximum(threshold - value, 0.0))


def satisficing_regret(
    value: Array, threshold: float, kappa: float, radius: float | Array, *, p: float = 1.0
) -> Array:
    """Robust satisficing regret, shape (T,): eq. (6) of [Saday2025]_.

    The running sum of (tau - (kappa eps_t)^p - f(x_t))^+.

    Parameters
    ----------
    value:
        f at the executed points, shape (T,).
    threshold:
        tau.
    kappa:
        The true least fragility of any point, see :func:`least_fragile`; for ``p`` > 1 the
        p-fragility (section 4). A negative one counts as 0: no move makes it fall short of tau.
    radius:
        eps_t, the largest possible move of the input: one number, or one per round.
    """
    slack = (max(kappa, 0.0) * np.asarray(radius, dtype=float)) ** p
    return np.cumsum(np.maximum(threshold - slack - value, 0.0))


def check_power(p: float) -> None:
    """Refuse a power below 1."""
    if not p >= 1.0:
        raise ValueError(f"The power of a fragility is a number >= 1, or infinity, got {p!r}.")


def check_radius(radius: float) -> None:
    """Refuse a radius that is negative or not finite."""
    if not (radius >= 0.0 and math.isfinite(radius)):
        raise ValueError(f"A radius is a finite number >= 0, got {radius!r}.")


def _radius(
    f: Array, threshold: float, points: Array, distance: Distance, chosen: Integers
) -> Array:
    """Critical radius of each row, infinite where nothing below tau is in reach."""
    radius = np.full(len(chosen), -np.inf)
    fine = f[chosen] >= threshold
    radius[fine] = distance.nearest(points[chosen[fine]], points[f < threshold])
    return radius


def _gaps(f: Array, threshold: float, p: float) -> Array:
    """Gap (tau - f)^(1/p), minus infinity at points that do not limit the fragility."""
    check_power(p)
    gap = threshold - np.asarray(f, dtype=float)
    if p == 1.0:
        return gap
    below = gap > 0.0
    # For infinite p the gap is 1, so that slopes are 1 / distance
    return np.where(below, np.where(below, gap, 1.0) ** (1.0 / p), -np.inf)


def _limits(gap: Array, distances: Array) -> tuple[Array, Integers]:
    """Largest slope gap (m,) / distances (n, m) of each row, and its column.

    A move that is impossible limits nothing, nor does one of length 0, unless it goes below tau.
    Overwrites ``distances``.
    """
    if not len(gap):
        return np.full(len(distances), -np.inf), np.empty(0, dtype=np.intp)
    stuck = np.isinf(distances) if distances.max(initial=0.0) == np.inf else None
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.divide(gap, distances, out=distances)
    slopes[np.isnan(slopes)] = -np.inf  # 0 / 0
    if stuck is not None:
        slopes[stuck] = -np.inf
    where = slopes.argmax(axis=1)
    return slopes[np.arange(len(slopes)), where], where


def rounded(x: float, rounding: str, digits: int) -> str:
    """Round a number to few digits, to the safe side."""
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(repr(float(x)))):g}"
