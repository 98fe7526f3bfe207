"""Initial space-filling design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.data import Array, Choice
from stoic.domains import SAME, Among, Box, Domain, Finite
from stoic.policies.base import View, Wrapper, choices_at


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """Remaining points of the design, and the state of the policy that follows."""

    left: Array
    then: Any


@dataclass(frozen=True)
class Initial(Wrapper):
    """``n`` points that cover the domain (scrambled Sobol on a box), then another policy.

    Observations from elsewhere count, and failures: the design ends once ``n`` inputs are observed,
    failed or pending. It leaves these out. A batch that begins in the design is of the design. If
    only a part of the domain may be chosen, such as the inputs with a given context, its points
    are moved there.

    Guarantee
    ---------
    That of ``then``, from round n + 1 on.
    """

    n: int

    def __post_init__(self) -> None:
        if not isinstance(self.n, int | np.integer) or self.n < 0:
            raise ValueError(f"A design has a size >= 0, a whole number, got {self.n!r}.")
        super().__post_init__()

    def theirs(self, state: Design) -> Any:
        return state.then

    def start(self, domain: Domain) -> Design:
        return Design(np.empty((0, domain.dim)), self.then.start(domain))

    def choose(self, view: View, state: Design, n: int) -> tuple[list[Choice], Design]:
        points, left = self.designed(view, state.left, n)
        if len(points):
            return choices_at(view.domain, points), Design(left, state.then)
        choices, then = self.then.choose(view, state.then, n)
        return choices, Design(left, then)

    def designed(self, view: View, left: Array, n: int) -> tuple[Array, Array]:
        """Return ``n`` points, or none after the design, and what is ``left`` of it."""
        tried = view.observations.x, view.failures.x, view.pending
        missing = self.n - sum(map(len, tried))
        if missing <= 0:
            return left[:0], left
        # At the start, or where suggestions were forgotten
        if not len(left):
            left = view.domain.spread(self.n, view.rng)
            steps = np.abs(left[:, None] - np.concatenate(tried))  # (n, tried, d)
            apart = np.any(steps > SAME * view.domain.widths, axis=2)
            left = left[np.all(apart, axis=1)][-missing:]
        if 0 < len(left) < n:  # a batch that begins in the design is of the design
            left = np.concatenate([left, view.domain.spread(n - len(left), view.rng)])
        return _within(view, left[:n], np.concatenate(tried)), left[n:]


def _within(view: View, points: Array, tried: Array) -> Array:
    """Move points (n, d) of a design to where one may choose.

    On a finite domain that is the nearest row that is not ``tried`` (k, d), while there is one.
    """
    # In 28 searches of seven functions, 30 rounds with a context each, the regret without a design
    # is 1.2 times as much, and 1.3 times with one result in ten wrong
    part, whole = view.among, view.domain
    if isinstance(part, Box) and isinstance(whole, Box):
        if part is whole:
            return points
        if whole.tree is not None:  # a point of the design may lack what is given here
            return part.spread(len(points), view.rng)
        return part.snap(part.lower + (points - whole.lower) / whole.widths * part.widths)
    assert isinstance(whole, Finite)
    arms = part.arms if isinstance(part, Among) else np.arange(len(whole))
    left = list(np.setdiff1d(arms, whole.locate(tried)) if len(tried) else arms)
    rows = []
    for x in points:
        offered = left or arms.tolist()
        steps = (whole.points[offered] - x) / whole.widths
        row = offered[int(np.square(steps).sum(axis=1).argmin())]
        rows.append(row)
        if left:
            left.remove(row)
    return whole.points[rows]
