"""Points between which inputs are moved: rows of a finite domain, or candidates of a box."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from stoic.data import Array, Choice, Integers
from stoic.distances import Distance
from stoic.domains import Among, Box, Domain, Finite
from stoic.policies.base import Band, View
from stoic.policies.ucb import PLACE, given_up


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
    """

    points: Array
    rows: Integers
    domain: Domain

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


def ground_of(view: View, known: Array, distance: Distance, chosen: Array) -> Ground:
    """The points ``chosen`` (k, d), and all that they may be moved to."""
    domain = view.domain
    if isinstance(domain, Finite):
        return Ground(known, np.sort(domain.locate(chosen)), domain)
    reached = _combinations(chosen, known, distance)
    points = np.concatenate([chosen, reached, view.observations.x])
    return Ground(points, np.arange(len(chosen)), domain)


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
        here = replace(here, rows=left)
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
