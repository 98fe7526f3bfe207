"""Candidate points for moved inputs: rows of a finite domain, or a sample of a box."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from stoic.confidence.base import Band
from stoic.data import Array, Choice, Integers
from stoic.distances import Distance
from stoic.domains import PLACE, Among, Box, Domain, Finite
from stoic.policies.base import Feasible, View
from stoic.policies.ucb import UpperConfidenceBound, given_up

_DENSE = 4.0  # candidates in a ball of one unit, enough to rank candidates by their balls
_CLOSER = (2.0, 0.5)  # units: radii of the local search about the best point
_CORNERED = 6  # up to this many moving coordinates, all corners are moves
_MOVES = 32  # quasi-random moves in a ball, and as many in each smaller one
_SIZES = (1.0, 0.5, 0.25)


class _Known(NamedTuple):
    """Bounds of points, and their band, which is kept so that its posterior keeps its identity."""

    band: Band
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False, slots=True)
class Ground:
    """Candidate points and moves of them, and which of them may be chosen.

    On a box it consists of quasi-random candidates, the same in every round, and of the observed
    points. Where some coordinates never move, it has all combinations of their values and of the
    values of those that move. Results on it are exact, and do not extend to the points in between.

    Attributes
    ----------
    points:
        Shape (N, d).
    rows:
        Rows that may be chosen, shape (k,), increasing.
    domain:
        The domain of the points.
    centres:
        Those of ``rows`` that are compared by their moves, (c,), increasing; all if None.
    known:
        Bounds of the first points by each band that was asked, shared by the grounds that add to
        these points.
    """

    points: Array
    rows: Integers
    domain: Domain
    centres: Integers | None = None
    known: dict[tuple[int, float], _Known] = field(default_factory=dict, repr=False)

    @property
    def compared(self) -> Integers:
        """Rows of the points that are compared by their moves."""
        return self.rows if self.centres is None else self.centres

    def bounds(self, band: Band) -> tuple[Array, Array]:
        """Lower and upper bounds of f on all points, both (N,), not to be written to.

        Those that are known are not predicted again: most of the points are in several grounds of a
        round, and what is pending may be nothing.
        """
        key = id(band.posterior), band.width
        known = self.known.get(key)
        if known is None or len(known.lower) > len(self.points):
            known = _Known(band, *band.bounds(self.points))
        elif new := len(self.points) - len(known.lower):
            lower, upper = band.bounds(self.points[-new:])
            known = _Known(band, np.append(known.lower, lower), np.append(known.upper, upper))
        self.known[key] = known
        return known.lower, known.upper

    def usable(self, upper: Array, view: View) -> Array:
        """Upper bound (N,) weighted by the probability of feasibility, down to the floor."""
        feasibility = view.feasibility()
        if feasibility is None:
            return upper
        floor = view.floor()
        return np.asarray(floor + Feasible.chance(feasibility(self.points)) * (upper - floor))

    def place(self, row: int, points: Array) -> int:
        """Position of this row among ``points`` (k, d)."""
        return int(np.flatnonzero((points == self.points[row]).all(axis=1))[0])

    def choice(self, row: int, notes: dict[str, object]) -> Choice:
        """Make a choice of a row."""
        arm = row if isinstance(self.domain, Finite) else None
        return Choice(self.points[row].copy(), arm, notes)


def candidates(domain: Domain, n: int, distance: Distance) -> Array:
    """All points of a finite domain, or about ``n`` that cover a box; deterministic.

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
    # sqrt(n) values of the fixed coordinates times sqrt(n) of the moving ones
    some = _spread(domain, math.ceil(math.sqrt(n)))
    return _combinations(some, some, distance)


def ground(view: View, known: Array, distance: Distance) -> Ground:
    """Make the ground of a view from the ``candidates`` of its domain."""
    domain, among = view.domain, view.among
    if isinstance(domain, Finite):
        arms = among.arms if isinstance(among, Among) else np.arange(len(known))
        return Ground(known, arms, domain)
    observed = view.observations.x
    # Observed points are moves here, not choices: only the first rows may be chosen
    if among is domain:
        return Ground(np.concatenate([known, observed]), np.arange(len(known)), domain)
    assert not isinstance(among, Among)
    first = candidates(among, len(known), distance)
    # A move may leave the part: its fixed coordinates with moving ones of the whole
    points = np.concatenate([first, _combinations(first, known, distance), observed])
    return Ground(points, np.arange(len(first)), domain)


def ground_of(
    view: View, known: Array, distance: Distance, chosen: Array, far: float = 0.0
) -> Ground:
    """Make a ground of ``chosen`` (k, d) and all their moves, also those of at most ``far``."""
    domain = view.domain
    if isinstance(domain, Finite):
        return Ground(known, np.sort(domain.locate(chosen)), domain)
    reached = _combinations(chosen, known, distance)
    if far:
        reached = np.concatenate([reached, moves_of(domain, chosen, distance, far)])
    points = np.concatenate([chosen, reached, view.observations.x])
    return Ground(points, np.arange(len(chosen)), domain)


def observed_choices(view: View) -> Array:
    """Return the observed points that may be chosen, each once, shape (k, d)."""
    observed = np.unique(view.observations.x, axis=0)
    if view.among is not view.domain and len(observed):
        observed = observed[view.among.contains(observed)]
    return observed


def with_peak(view: View, here: Ground, band: Band) -> Ground:
    """Add, on a box, the maximiser of the upper bound."""
    if isinstance(view.domain, Finite):
        return here
    return _with_centres(
        view, here, view.maximise(UpperConfidenceBound(band)).x[None], here.points[:0]
    )


def with_moves(
    view: View,
    here: Ground,
    band: Band,
    distance: Distance,
    few: int,
    far: float,
    best: Callable[[Array, Array, Ground], int],
) -> Ground:
    """Add, on a box, the ``few`` most promising points with moves of their own.

    Where several coordinates move, candidates are so far apart that no move leads from one to
    another. All of them would seem to lose nothing by being moved. So only those with moves of
    their own are compared then: the points of the highest upper bounds, the best observed points,
    the maximiser of the bound, and twice some near the ``best`` of them so far.

    Parameters
    ----------
    view, here, band, distance:
        The view, the candidates, the band for their bounds, and the distance of moves.
    few:
        Number of each kind; with 0 the ground stays as it is.
    far:
        Length of the moves, in units of the distance.
    best:
        Map from lower and upper bounds (N,) and a ground to the row to choose.
    """
    if not few or isinstance(view.domain, Finite):
        return here
    moving, fixed, unit = distance.coordinates(view.domain.dim)
    # Of the range of each moving coordinate: what is within one unit on either side
    share = np.minimum(2.0 * unit / view.domain.widths[moving], 1.0)
    # Candidates with the same fixed coordinates, see ``candidates``
    alike = math.sqrt(len(here.rows)) if len(fixed) else len(here.rows)
    dense = alike * float(np.prod(share)) >= _DENSE
    here = with_peak(view, here, band)
    lower, upper = here.bounds(band)
    upper = here.usable(upper, view)
    observed = view.observations.x
    observed = observed[view.among.contains(observed)] if len(observed) else observed
    low, high = band.bounds(observed) if len(observed) else (np.empty(0), np.empty(0))
    seeds = np.unique(np.concatenate([
        here.points[here.rows[np.argsort(-upper[here.rows], kind="stable")[:few]]],
        here.points[[best(lower, upper, here)]],
        observed[np.argsort(-low, kind="stable")[:few]],
        observed[np.argsort(-high, kind="stable")[:few]],
    ]), axis=0)  # fmt: skip
    here = replace(here, centres=here.rows if dense else here.rows[:0])
    here = _with_centres(view, here, seeds, moves_of(view.domain, seeds, distance, far))
    rng = np.random.default_rng(0)
    for scale in _CLOSER:
        lower, upper = here.bounds(band)
        x = here.points[best(lower, here.usable(upper, view), here)]
        near = np.tile(x, (few, 1))
        # ~ U(x - scale unit, x + scale unit)
        near[:, moving] += scale * unit * rng.uniform(-1.0, 1.0, (few, len(moving)))
        assert isinstance(view.among, Box)
        near = view.among.snap(near)
        here = _with_centres(view, here, near, moves_of(view.domain, near, distance, far))
    return here


def moves_of(domain: Domain, chosen: Array, distance: Distance, far: float) -> Array:
    """Move points (k, d) of a box by at most ``far``, corners included, shape (m, d)."""
    assert isinstance(domain, Box)
    moving, _, unit = distance.coordinates(domain.dim)
    k = len(moving)
    if k <= _CORNERED:
        corners = np.array(list(itertools.product([-1.0, 1.0], repeat=k)))
    else:
        # 2^k are too many: 64 at random, always the same ones
        corners = np.sign(np.random.default_rng(0).random((1 << _CORNERED, k)) - 0.5)
    cube = Box(-np.ones(k), np.ones(k)).spread(_MOVES, np.random.default_rng(0))
    steps = np.concatenate([size * far * each for size in _SIZES for each in (corners, cube)])
    # steps: (s, moving coordinates), so s moves of each point
    points = np.repeat(chosen, len(steps), axis=0)
    points[:, moving] += np.tile(steps * unit, (len(chosen), 1))
    return domain.snap(points)


def _with_centres(view: View, here: Ground, centres: Array, others: Array) -> Ground:
    """Add ``centres`` (k, d), which may be chosen, and ``others`` (m, d), their moves."""
    n = len(here.points)
    points = np.concatenate([here.points, centres, others])
    first = n + np.arange(len(centres))
    # A learner may probe moves in the part that may be chosen, but compares centres alone
    rows = n + len(centres) + np.flatnonzero(view.among.contains(others))
    compared = None if here.centres is None else np.concatenate([here.centres, first])
    rows = np.concatenate([here.rows, first, rows])
    return replace(here, points=points, rows=rows, centres=compared)


def without_given_up(
    view: View, here: Ground, band: Band, retries: int | None
) -> tuple[Ground, Band]:
    """Drop places that used up their ``retries``, and hallucinate the prior mean there.

    The band treats them as :class:`~stoic.policies.ucb.UCB` does. And they are not chosen again: at
    the prior mean they may be as good as any others here, and the queries there would never end.
    """
    if retries is None:
        return here, band
    places = given_up(view, band.posterior.trust(view.observations), retries)
    if not len(places):
        return here, band
    widths = view.domain.widths
    near = cdist(here.points[here.rows] / widths, places / widths, "chebyshev").min(axis=1)
    left = here.rows[near > PLACE]
    if len(left):
        kept = None if here.centres is None else np.intersect1d(here.centres, left)
        here = replace(here, rows=left, centres=None if kept is None or not len(kept) else kept)
    return here, band.without_gain(places)


def _spread(domain: Domain, n: int) -> Array:
    # A category has few values, so points may coincide: keep distinct ones.
    return np.unique(domain.spread(n, np.random.default_rng(0)), axis=0)


def _combinations(stay: Array, move: Array, distance: Distance) -> Array:
    """All combinations of fixed coordinates of ``stay`` and moving coordinates of ``move``."""
    moving, fixed, _ = distance.coordinates(stay.shape[1])
    kept, moved = (
        np.unique(rows[:, columns], axis=0) for rows, columns in ((stay, fixed), (move, moving))
    )
    points = np.empty((len(kept), len(moved), stay.shape[1]))
    points[:, :, fixed] = kept[:, None]
    points[:, :, moving] = moved[None]
    return points.reshape(-1, stay.shape[1])
