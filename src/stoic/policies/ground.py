"""Points between which inputs are moved: rows of a finite domain, or candidates of a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Choice, Integers
from stoic.domains import Among, Domain, Finite
from stoic.policies.base import Band, View


@dataclass(frozen=True, eq=False, slots=True)
class Ground:
    """Points with a bound on each, and which of them may be chosen.

    On a box it consists of quasi-random candidates, the same in every round, and of the points that
    were told; if only a part of the box may be chosen, of as many candidates in that part. What is
    found out about it is exact, and says nothing about the points in between.

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

    def choice(self, row: int, notes: dict[str, object]) -> Choice:
        """The choice of a point."""
        arm = row if isinstance(self.domain, Finite) else None
        return Choice(self.points[row].copy(), arm, notes)


def candidates(domain: Domain, n: int) -> Array:
    """All points of a finite domain, or ``n`` that cover a box: the same in every call."""
    if isinstance(domain, Finite):
        return domain.points
    # A category has few values, so candidates may coincide.
    return np.unique(domain.spread(n, np.random.default_rng(0)), axis=0)


def ground(view: View, known: Array) -> Ground:
    """What a view is about, given the ``candidates`` of its domain."""
    domain, among = view.domain, view.among
    if isinstance(among, Among):
        return Ground(known, among.arms, domain)
    if domain.finite:
        return Ground(known, np.arange(len(known)), domain)
    first = known if among is domain else candidates(among, len(known))
    others = [] if among is domain else [known]
    points = np.concatenate([first, *others, view.observations.x])
    return Ground(points, np.arange(len(first)), domain)
