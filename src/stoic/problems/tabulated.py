"""Function given by its values on a list of points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stoic.data import Array
from stoic.domains import Finite
from stoic.problems.base import Optimum


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

    Raises
    ------
    ValueError
        If there is not one finite value for each point.
    """

    name: str
    domain: Finite
    values: Array
    optimum: Optimum = field(init=False)

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.shape != (len(self.domain),) or not np.isfinite(values).all():
            raise ValueError(
                f"{self.name} needs one finite value for each of its {len(self.domain)} points, "
                f"got an array of shape {values.shape} with "
                f"{np.count_nonzero(~np.isfinite(values))} entries that are not finite."
            )
        values.flags.writeable = False
        best = int(np.argmax(values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "optimum", Optimum(self.domain.points[best], float(values[best])))

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,); ``ValueError`` off the points."""
        return np.asarray(self.values[self.domain.locate(x)])
