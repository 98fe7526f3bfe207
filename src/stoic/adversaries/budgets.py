"""Corruption budgets. The environment records the spending in a ``Ledger``."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(slots=True)
class Ledger:
    """Record of the corruptions so far.

    Attributes
    ----------
    count:
        Number of observations changed.
    magnitude:
        Sum of the absolute changes; infinite once a value was replaced by nan or an infinity.
    rest:
        Rounding error of that sum.
    """

    count: int = 0
    magnitude: float = 0.0
    rest: float = field(default=0.0, compare=False)

    def record(self, observed: float, reported: float) -> None:
        """Record one change of ``observed`` into ``reported``."""
        change = abs(reported - observed)
        self.count += 1
        if not math.isfinite(change):
            self.magnitude, self.rest = math.inf, 0.0
            return
        change += self.rest
        total = self.magnitude + change
        if math.isfinite(total):  # the smaller summand loses digits: keep them for next time
            large, small = max(self.magnitude, change), min(self.magnitude, change)
            self.rest = small - (total - large)
        self.magnitude = total


class Budget(Protocol):
    """Bound on the corruptions of an adversary."""

    def allow(self, wanted: float, observed: float, t: int, spent: Ledger) -> float:
        """Limit the corruption of a round in which the attack wants ``wanted``.

        Between ``observed`` (nothing is left) and ``wanted`` (enough is left), both included.
        It is called only where ``wanted`` differs from ``observed``; it must not change ``spent``.
        """

    def exhausted(self, spent: Ledger) -> bool:
        """Return true if nothing is left for ever: then no attack is called any more."""


@dataclass(frozen=True, slots=True)
class Unlimited:
    """Neutral budget: everything is allowed."""

    def allow(self, wanted: float, observed: float, t: int, spent: Ledger) -> float:
        return wanted

    def exhausted(self, spent: Ledger) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Frequency:
    """At most ``count`` observations may be replaced, by anything [Ezzerg2026]_ (definition 2.1).

    Attributes
    ----------
    count:
        T_c, at least 0.
    releases:
        Rounds, in increasing order, at each of which one more replacement becomes available;
        unused ones stay available. Empty: all of them are available from the first round.
    """

    count: int
    releases: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not (0 <= self.count < math.inf and self.count == int(self.count)):
            raise ValueError(f"A number of corruptions is whole and at least 0, got {self.count}.")
        if list(self.releases) != sorted(self.releases):
            raise ValueError(f"Release rounds must rise, got {self.releases}.")

    def allow(self, wanted: float, observed: float, t: int, spent: Ledger) -> float:
        available = self.count
        if self.releases:
            available = min(available, bisect_right(self.releases, t))
        return wanted if spent.count < available else observed

    def exhausted(self, spent: Ledger) -> bool:
        return spent.count >= self.count


@dataclass(frozen=True, slots=True)
class Magnitude:
    """The absolute changes may add up to ``total`` [Bogunovic2022]_ (equation 3).

    The last change is cut to what is left. A change without a size, into nan or from an infinity,
    is not allowed.

    Attributes
    ----------
    total:
        C >= 0, in units of f.
    """

    total: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.total < math.inf:
            raise ValueError(f"A total corruption is finite and at least 0, got {self.total!r}.")

    def allow(self, wanted: float, observed: float, t: int, spent: Ledger) -> float:
        left = self.total - spent.magnitude - spent.rest
        # An infinite ``wanted`` has a direction, and is cut as any other
        if left <= 0.0 or math.isnan(wanted) or not math.isfinite(observed):
            return observed
        if abs(wanted - observed) <= left:
            return wanted
        allowed = observed + math.copysign(left, wanted - observed)
        # Rounding may have overshot by one floating-point step.
        return allowed if abs(allowed - observed) <= left else math.nextafter(allowed, observed)

    def exhausted(self, spent: Ledger) -> bool:
        return spent.magnitude + spent.rest >= self.total


def cube_root(rounds: int) -> int:
    """floor(T^(1/3)) in whole numbers: the corruption count of [Ezzerg2026]_ (4 for T = 64)."""
    if rounds < 0:
        raise ValueError(f"A number of rounds is at least 0, got {rounds}.")
    root = int(rounds ** (1 / 3)) + 1  # at least the true root, whatever the rounding
    while root**3 > rounds:
        root -= 1
    return root


def cubic_releases(count: int) -> tuple[int, ...]:
    """Compute rounds 1, 8, 27, ...: by round t, floor(t^(1/3)) corruptions are released."""
    return tuple(k**3 for k in range(1, count + 1))
