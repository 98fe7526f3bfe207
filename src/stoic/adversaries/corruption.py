"""Attacks bounded in their total size [Bogunovic2022]_ (section 4).

Each replaces f by another function f~: its corruption in a round is f~(x) - f(x). All of them
know f, and none of them knows the budget: put them under :class:`~stoic.adversaries.Magnitude`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stoic.adversaries.base import Attack, Round
from stoic.data import Array

Region = Callable[[Array], bool]


@dataclass(frozen=True, slots=True)
class Clipping(Attack):
    """Outside of a region f is clipped below the best value inside: f~ = min(f, best - margin).

    Attributes
    ----------
    inside:
        Returns true for a point (d,) in the region that is to look best.
    best:
        max of f over the region.
    margin:
        Delta, the margin by which the rest is to look worse, in units of f.
    """

    inside: Region
    best: float
    margin: float = 0.5

    def rewrite(self, seen: Round) -> float:
        if self.inside(seen.x):
            return seen.observed
        # The difference f~ - f is added to the result, so that its noise stays
        return seen.observed + min(0.0, self.best - self.margin - seen.value)


@dataclass(frozen=True, slots=True)
class Subtraction(Attack):
    """Outside of a region every observation is lowered by a constant: f~ = f - depth ("AggSub").

    Attributes
    ----------
    inside:
        Returns true for a point (d,) in the region that is to look best.
    depth:
        h_max. The attack can mislead if it is larger than max f less the region's maximum.
    """

    inside: Region
    depth: float

    def rewrite(self, seen: Round) -> float:
        return seen.observed if self.inside(seen.x) else seen.observed - self.depth


@dataclass(frozen=True, slots=True, eq=False)
class TopK(Attack):
    """Of the arms that the learner has not ruled out, the k best are lowered to ``low``.

    Lower values are left alone, and ties go to the lower row.

    Attributes
    ----------
    values:
        f on all arms, shape (N,).
    k:
        Number of arms.
    low:
        Apparent value of f there.
    """

    needs_finite = True
    values: Array
    k: int
    low: float = -1.0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"Top-K needs K >= 1, got {self.k!r}.")

    def rewrite(self, seen: Round) -> float:
        arm, active = seen.arm, seen.active()
        assert arm is not None
        rivals = self.values[active]
        better = np.count_nonzero(rivals > self.values[arm])
        # Equal ones in lower rows come first
        better += np.count_nonzero(active[:arm] & (self.values[:arm] == self.values[arm]))
        if not active[arm] or better >= self.k:
            return seen.observed
        return seen.observed + min(0.0, self.low - seen.value)


@dataclass(frozen=True, slots=True)
class Flip(Attack):
    """Reversed sign: f~ = -f."""

    def rewrite(self, seen: Round) -> float:
        return seen.observed - 2.0 * seen.value


@dataclass(frozen=True, slots=True)
class Later(Attack):
    """Any attack, started only once the learner has ruled out an arm.

    For a phased learner that is an elimination; for any other an arm whose upper bound is below the
    best lower bound. Once it has corrupted an observation, it goes on in every case.

    Attributes
    ----------
    attack:
        The attack that starts then.
    """

    needs_finite = True
    attack: Attack

    def rewrite(self, seen: Round) -> float:
        started = seen.spent.count > 0 or not seen.active().all()
        return self.attack.rewrite(seen) if started else seen.observed
