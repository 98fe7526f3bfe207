"""A problem is a function to maximise, where it may be asked, and the truth about its maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stoic.data import Array
from stoic.domains import Domain


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The maximum of a problem over its domain, known to the world and never to a learner.

    Attributes
    ----------
    x:
        A maximiser, shape (d,).
    value:
        f(x), noiseless.
    """

    x: Array
    value: float


@runtime_checkable
class Problem(Protocol):
    """A noiseless function on a domain. Noise and attacks are added outside, by the environment."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def domain(self) -> Domain:
        """Where the function may be asked."""

    @property
    def optimum(self) -> Optimum:
        """The maximum over ``domain``."""

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,), noiseless and deterministic."""
