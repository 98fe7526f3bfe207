"""Function given by its values on a list of points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stoic.data import Array
from stoic.domains import Finite
from stoic.problems.base import Optimum, finite_values


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """Values on a finite domain: a draw, a simulation run once for each point, a mean of records.

    Parameters
    ----------
    name:
        A short name for tables.
    domain:
        The points, N of them.
    values:
        f at each row, finite, shape (N,).

    Attributes
    ----------
    optimum:
        The best row (ties: the lowest).
    """

    name: str
    domain: Finite
    values: Array
    optimum: Optimum = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.domain)
        what = f"{self.name} needs one finite value for each of its {n} points"
        object.__setattr__(self, "values", finite_values(self.values, (n,), what))
        object.__setattr__(self, "optimum", Optimum.among(self.domain.points, self.values))

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,); ``ValueError`` off the points."""
        return np.asarray(self.values[self.domain.locate(x)])
