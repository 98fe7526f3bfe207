"""Protocol of a problem: a function to maximise, its domain and its true maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stoic.data import Array
from stoic.domains import Domain


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Maximum of a problem over its domain, never known to a learner.

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
    """Noiseless function on a domain. The environment adds noise and attacks."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def domain(self) -> Domain:
        """Domain of the function."""

    @property
    def optimum(self) -> Optimum:
        """The maximum over ``domain``."""

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,), noiseless and deterministic."""
