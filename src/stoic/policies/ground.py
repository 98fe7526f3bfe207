"""Points between which inputs are moved: rows of a finite domain, or candidates of a box."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from stoic.data import Array, Choice, Integers
from stoic.distances import Distance
from stoic.domains import Among, Box, Domain, Finite
from stoic.policies.base import Band, View
from stoic.policies.ucb import PLACE, UpperBound, given_up

_DENSE = 4.0  # candidates in a ball of one unit, with which balls tell candidates apart
_CLOSER = (2.0, 0.5)  # units, within which better points are looked for about the best one
_CORNERED = 6  # coordinates of which all corners are moves
_MOVES = 32  # within a ball, and as many in smaller ones
_SIZES = (1.0, 0.5, 0.25)


@dataclass(frozen=True, eq=False, slots=True)
class Ground:
    """Points with a bound on each, and which of them may be chosen.

    On a box it consists of quasi-random candidates, the same in every round, and of the points that
    were told. Where some coordinates never move, it has all combinations of what they may be and
    of where the others may be moved to. What is found out about it is exact, and says nothing about
    the points in between.

    Attributes
    ----------
    points:
        Shape (N, d).
    rows:
        Which of them may be chosen, shape (k,), increasing.
    domain:
        Where they come from.
    centres:
        Which of those are compared by their moves, shape (c,), increasing: ``rows`` if None.
    """

    points: Array
    rows: Integers
    domain: Domain
    centres: Integers | None = None

    @property
    def compared(self) -> Integers:
        """The rows of all points that are compared by their moves."""
        return self.rows if self.centres is None else self.centres

    def bounds(self, band: Band) -> tuple[Array, Array]:
        """Lower and upper bounds of f on all points, both (N,)."""
        return band.on(self.domain) if isinstance(self.domain, Finite) else band.bounds(self.points)

    def usable(self, upper: Array, view: View) -> Array:
        """An upper bound (N,) lowered to the floor where there may be no result at all."""
        feasibility = view.feasibility()
        if feasibility is None:
            return upper
        domain = self.domain
        p = feasibility.on(domain) if isinstance(domain, Finite) else feasibility(self.points)
        floor = view.floor()
        return np.asarray(floor + p * (upper - floor))

    def place(self, row: int, points: Array) -> int:
        """Which of ``points`` (k, d) is this row."""
        return int(np.flatnonzero((points == self.points[row]).all(axis=1))[0])

    def choice(self, row: int, notes: dict[str, object]) -> Choice:
        """The choice of a point."""
        arm = row if isinstance(self.domain, Finite) else None
        return Choice(self.points[row].copy(), arm, notes)


def candidates(domain: Domain, n: int, distance: Distance) -> Array:
    """All points of a finite domain, or about ``n`` that cover a box: the same in every call.

    Raises
    ------
    ValueError
        If a lattice ties a coordinate that moves to one that does not.
    """
    if isinstance(domain, Finite):
        return domain.points
    moving, fixed, _ = distance.coordinates(domain.dim)
    if not len(fixed):
        return _spread(domain, n)
    for lattice in domain.lattices if isinstance(domain, Box) else ():
        tied = np.isin(lattice.columns, moving)
        if tied.any() and not tied.all():
            raise ValueError(
                f"Coordinates {lattice.columns.tolist()} take their values together, so give all "
                "of them a tolerance of 0, or none."
            )
    some = _spread(domain, math.ceil(math.sqrt(n)))
    return _combinations(some, some, distance)


def ground(view: View, known: Array, distance: Distance) -> Ground:
    """What a view is about, given the ``candidates`` of its domain."""
    domain, among = view.domain, view.among
    if isinstance(domain, Finite):
        arms = among.arms if isinstance(among, Among) else np.arange(len(known))
        return Ground(known, arms, domain)
    told = view.observations.x
    if among is domain:
        return Ground(np.concatenate([known, told]), np.arange(len(known)), domain)
    assert not isinstance(among, Among)
    first = candidates(among, len(known), distance)
    points = np.concatenate([first, _combinations(first, known, distance), told])
    return Ground(points, np.arange(len(first)), domain)


def ground_of(
    view: View, known: Array, distance: Distance, chosen: Array, far: float = 0.0
) -> Ground:
    """The points ``chosen`` (k, d), and all that they may be moved to, also by at most ``far``."""
    domain = view.domain
    if isinstance(domain, Finite):
        return Ground(known, np.sort(domain.locate(chosen)), domain)
    reached = _combinations(chosen, known, distance)
    if far:
        reached = np.concatenate([reached, moves_of(domain, chosen, distance, far)])
    points = np.concatenate([chosen, reached, view.observations.x])
    return Ground(points, np.arange(len(chosen)), domain)


def with_peak(view: View, here: Ground, band: Band) -> Ground:
    """The same, and on a box the point of the highest upper bound, which is climbed to."""
    if isinstance(view.domain, Finite):
        return here
    return _with_centres(view, here, view.maximise(UpperBound(band)).x[None], here.points[:0])


def with_moves(
    view: View,
    here: Ground,
    band: Band,
    distance: Distance,
    few: int,
    far: float,
    best: Callable[[Array, Array, Ground], int],
) -> Ground:
    """The same, and on a box the ``few`` most promising points with moves of their own.

    Where several coordinates move, candidates are so far apart that no move leads from one to
    another. All of them would seem to lose nothing by being moved. So those with moves of their own
    are the only ones compared then: the points of the highest upper bounds and of the best told
    ones, the peak of the bound, and twice some near the ``best`` of them so far.

    Parameters
    ----------
    view, here, band, distance:
        What is asked, the candidates, and by which bounds.
    few:
        How many of each kind; with 0 the ground stays as it is.
    far:
        How long moves are, in units of the distance.
    best:
        From lower and upper bounds (N,) and a ground to the row to choose.
    """
    if not few or isinstance(view.domain, Finite):
        return here
    moving, fixed, unit = distance.coordinates(view.domain.dim)
    share = np.minimum(2.0 * unit / view.domain.widths[moving], 1.0)
    alike = math.sqrt(len(here.rows)) if len(fixed) else len(here.rows)
    dense = alike * float(np.prod(share)) >= _DENSE
    here = with_peak(view, here, band)
    lower, upper = here.bounds(band)
    upper = here.usable(upper, view)
    told = view.observations.x
    told = told[view.among.contains(told)] if len(told) else told
    low, high = band.bounds(told) if len(told) else (np.empty(0), np.empty(0))
    seeds = np.unique(np.concatenate([
        here.points[here.rows[np.argsort(-upper[here.rows], kind="stable")[:few]]],
        here.points[[best(lower, upper, here)]],
        told[np.argsort(-low, kind="stable")[:few]],
        told[np.argsort(-high, kind="stable")[:few]],
    ]), axis=0)  # fmt: skip
    here = replace(here, centres=here.rows if dense else here.rows[:0])
    here = _with_centres(view, here, seeds, moves_of(view.domain, seeds, distance, far))
    rng = np.random.default_rng(0)
    for scale in _CLOSER:
        lower, upper = here.bounds(band)
        x = here.points[best(lower, here.usable(upper, view), here)]
        near = np.tile(x, (few, 1))
        near[:, moving] += scale * unit * rng.uniform(-1.0, 1.0, (few, len(moving)))
        assert isinstance(view.among, Box)
        near = view.among.snap(near)
        here = _with_centres(view, here, near, moves_of(view.domain, near, distance, far))
    return here


def moves_of(domain: Domain, chosen: Array, distance: Distance, far: float) -> Array:
    """Where points (k, d) of a box may be moved to by at most ``far``, corners included, (m, d)."""
    assert isinstance(domain, Box)
    moving, _, unit = distance.coordinates(domain.dim)
    k = len(moving)
    if k <= _CORNERED:
        corners = np.array(list(itertools.product([-1.0, 1.0], repeat=k)))
    else:
        corners = np.sign(np.random.default_rng(0).random((1 << _CORNERED, k)) - 0.5)
    cube = Box(-np.ones(k), np.ones(k)).spread(_MOVES, np.random.default_rng(0))
    steps = np.concatenate([size * far * each for size in _SIZES for each in (corners, cube)])
    points = np.repeat(chosen, len(steps), axis=0)
    points[:, moving] += np.tile(steps * unit, (len(chosen), 1))
    return domain.snap(points)


def _with_centres(view: View, here: Ground, centres: Array, others: Array) -> Ground:
    """The same with more ``centres`` (k, d), which may be chosen, and ``others`` (m, d)."""
    n = len(here.points)
    points = np.concatenate([here.points, centres, others])
    first = n + np.arange(len(centres))
    rows = n + len(centres) + np.flatnonzero(view.among.contains(others))
    known = None if here.centres is None else np.concatenate([here.centres, first])
    return Ground(points, np.concatenate([here.rows, first, rows]), here.domain, known)


def without_given_up(
    view: View, here: Ground, band: Band, retries: int | None
) -> tuple[Ground, Band]:
    """What may still be chosen once places have used up their ``retries``, and what f is there.

    As in :class:`~stoic.policies.ucb.UCB`, f is ordinary there. And they are not chosen again: with
    an ordinary f they may be as good as any others here, and what is asked would never end.
    """
    if retries is None:
        return here, band
    posterior = band.posterior
    places = given_up(view, posterior.trust(view.observations), retries)
    if not len(places):
        return here, band
    widths = view.domain.widths
    near = cdist(here.points[here.rows] / widths, places / widths, "chebyshev").min(axis=1)
    left = here.rows[near > PLACE]
    if len(left):
        kept = None if here.centres is None else np.intersect1d(here.centres, left)
        here = replace(here, rows=left, centres=None if kept is None or not len(kept) else kept)
    return here, band.fantasise(places, None, posterior.prior.mean)


def _spread(domain: Domain, n: int) -> Array:
    # A category has few values, so points may coincide.
    return np.unique(domain.spread(n, np.random.default_rng(0)), axis=0)


def _combinations(stay: Array, move: Array, distance: Distance) -> Array:
    """What never moves as in the rows of ``stay``, what does as in the rows of ``move``."""
    moving, fixed, _ = distance.coordinates(stay.shape[1])
    kept, moved = (
        np.unique(rows[:, columns], axis=0) for rows, columns in ((stay, fixed), (move, moving))
    )
    points = np.empty((len(kept), len(moved), stay.shape[1]))
    points[:, :, fixed] = kept[:, None]
    points[:, :, moving] = moved[None]
    return points.reshape(-1, stay.shape[1])
