"""Attacks bounded in number and not in size.

The published experiment exists in three versions that do not agree, and each is a named setting:
the text of the paper, its appendix, and the code its authors ran.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stoic.adversaries.base import Adversary, Attack, Round
from stoic.adversaries.budgets import Frequency, cube_root, cubic_releases
from stoic.data import Array
from stoic.problems.base import Optimum


@dataclass(frozen=True, slots=True, eq=False)
class Clairvoyant(Attack):
    """Low values near the optimum and high values far from it [Ezzerg2026]_ (section 5.3).

    It is greedy: it wants to replace *every* such query, so it spends as early as its budget
    allows.

    Attributes
    ----------
    optimum:
        x*, shape (d,), which this adversary knows.
    near, far:
        Euclidean distances to x*: strictly less than ``near`` gives ``low``, strictly more than
        ``far`` gives ``high``, anything between is left alone.
    low, high:
        The corrupted values, in the units of f.
    """

    optimum: Array
    near: float
    far: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.near <= self.far:
            raise ValueError(f"Needs 0 <= near <= far, got near={self.near}, far={self.far}.")

    def rewrite(self, seen: Round) -> float:
        # A third of numpy's norm in time
        distance = math.dist(seen.x.tolist(), self.optimum.tolist())
        if distance < self.near:
            return self.low
        return self.high if distance > self.far else seen.observed


@dataclass(frozen=True, slots=True)
class Replace(Attack):
    """Replace the observations of given rounds by given values, for any query.

    Attributes
    ----------
    values:
        The corrupted value by round number (from 1); any float, nan and infinities included.
    """

    values: Mapping[int, float]

    def rewrite(self, seen: Round) -> float:
        return self.values.get(seen.t, seen.observed)


@dataclass(frozen=True, slots=True)
class Always(Attack):
    """Replace every result by the same value, for any query [Ezzerg2026]_ (section 5.4).

    A crash that is reported as a number, or a reward that is spuriously low (section 5.5). It wants
    *every* round, so it spends as early as its budget allows.

    Attributes
    ----------
    reported:
        The value instead, in the units of f; any float, nan and infinities included.
    """

    reported: float

    def rewrite(self, seen: Round) -> float:
        return self.reported


@dataclass(frozen=True, slots=True)
class ClairvoyantSetting:
    """One published version of the clairvoyant adversary, to be aimed at an optimum.

    Attributes
    ----------
    near, far:
        Distances to the optimum, in units of x.
    low, high:
        The corrupted values, in units of f.
    scheduled:
        True if the corruptions are released one by one, at rounds 1, 8, 27, 64, ..., instead of
        all being available from the first round.
    """

    near: float
    far: float
    low: float
    high: float
    scheduled: bool = False

    def against(self, optimum: Optimum, rounds: int, count: int | None = None) -> Adversary:
        """Make the adversary, with floor(T^(1/3)) corruptions unless a ``count`` is given."""
        corruptions = cube_root(rounds) if count is None else count
        releases = cubic_releases(corruptions) if self.scheduled else ()
        attack = Clairvoyant(optimum.x, self.near, self.far, self.low, self.high)
        return Adversary(attack, Frequency(corruptions, releases))


# Section 5.3 states the distances and no values; the values are those of appendix I.4.2, the only
# ones the paper itself prints, whose budget of "time_budget" type grows with the rounds played:
# T^(1/3) releases a corruption at rounds 1, 8, 27 and 64.
TEXT = ClairvoyantSetting(near=0.2, far=0.5, low=-10.0, high=25.0, scheduled=True)
APPENDIX = ClairvoyantSetting(near=0.1, far=0.4, low=-10.0, high=25.0, scheduled=True)
# The code differs in the values. Distances of its own are not known to us; the appendix's are used,
# as the harder of the two: more queries can be corrupted.
CODE = ClairvoyantSetting(near=0.1, far=0.4, low=-20.0, high=20.0, scheduled=True)

SETTINGS: Mapping[str, ClairvoyantSetting] = {"text": TEXT, "appendix": APPENDIX, "code": CODE}

# Not published, and harder: corruptions that come before there are honest results beside them.
AT_ONCE = replace(APPENDIX, scheduled=False)
