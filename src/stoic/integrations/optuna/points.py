"""Conversion between settings of parameters and points of a learner's domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stoic.data import Array, Integers
from stoic.domains import Box, Domain, Finite
from stoic.integrations.optuna.coordinates import ROUNDING, Coordinate, Numbers
from stoic.integrations.optuna.encoding import Encoding
from stoic.refusal import RefusalError


class Points:
    """Points of settings in the domain that a recipe made of the box of a search space.

    Parameters
    ----------
    encoding:
        The search space, and the box that the recipe was given.
    domain:
        The recipe's domain: the box itself, another one, or a grid.

    Raises
    ------
    RefusalError
        If its points have another number of coordinates, or if two points of a grid are one
        setting, once parameters are rounded to what they can be.
    """

    def __init__(self, encoding: Encoding, domain: Domain) -> None:
        self.encoding, self.domain = encoding, domain
        if domain.dim != encoding.box.dim:
            raise RefusalError(
                f"The recipe's domain has {domain.dim} coordinates and the search space has "
                f"{encoding.box.dim}: make it of the box that the recipe is given, as in "
                "box.grid(20)."
            )
        self._run: Finite | None = None  # the grid as its settings are run
        if isinstance(domain, Finite):
            run = np.array([encoding.encode(encoding.decode(x)) for x in domain.points])
            if (distinct := len(np.unique(run, axis=0))) < len(run):
                raise RefusalError(
                    f"The {len(run)} points of the recipe's grid are only {distinct} settings, "
                    "once parameters are rounded to what they can be: use box.grid(20), which has "
                    "the values that there are."
                )
            self._run = Finite(run)

    def of(self, settings: Array) -> Array:
        """Return the points of encoded settings (n, d), up to rounding; nan where there is none."""
        settings = settings.reshape(-1, self.domain.dim)
        if not isinstance(self.domain, Box) or self.domain.tree is None:
            # It has no place for what settings lack: there they are at the middle
            settings = np.where(self.encoding.box.apart(settings), 0.5, settings)
        if self._run is not None:
            rows = self._run.nearest(settings)
            points, there = self._grid.points[rows], self._run.points[rows]
        else:
            assert isinstance(self.domain, Box)
            points = there = self.domain.clip(settings)
        far = np.abs(settings - there) > ROUNDING * self.domain.widths
        return np.where(far.any(axis=1, keepdims=True), np.nan, points)

    def nearest(self, settings: Array) -> Array:
        """Return the points that are nearest to encoded settings (n, d), shape (n, d)."""
        if self._run is not None:
            return np.asarray(self._grid.points[self._run.nearest(settings)])
        assert isinstance(self.domain, Box)
        return self.domain.snap(settings)

    def having(self, fixed: Mapping[str, Any], ranges: Mapping[str, Numbers]) -> Box | Integers:
        """Return the part where parameters have these values, and others are in these ranges.

        A box, or rows of a grid. Where it has no such points, those with the nearest values.
        """
        fixed = self.encoding.placed(fixed)
        parts = [(self.encoding.part(name, fixed), value) for name, value in fixed.items()]
        columns = [column for part, _ in parts for column in part.columns]
        values = np.array([u for part, value in parts for u in part.encode(value)])
        low, high = np.zeros(self.domain.dim), np.ones(self.domain.dim)
        for name in ranges.keys() - fixed.keys():
            if isinstance(coordinate := self.encoding.parts[name], Coordinate):
                low[coordinate.column], high[coordinate.column] = coordinate.ends(ranges[name])
        if self._run is None:
            assert isinstance(self.domain, Box)
            x = self.domain.lower.copy()
            x[columns] = values
            # By the tree, a setting at the low ends of all others may lack what is given
            near = replace(self.domain, tree=None).snap(x[None])[0, columns]
            box = self.domain.having(dict(zip(columns, near.tolist(), strict=True)))
            low, high = np.maximum(low, box.lower), np.minimum(high, box.upper)
            if not ranges or not (low < high).all():  # a range apart from all others is no part
                return box
            return replace(box, lower=low, upper=high, lattices=(), tree=None).on_lattices_of(box)
        run = self._run.points
        apart = np.maximum(np.maximum(low - run, run - high), 0.0)
        apart[:, columns] = np.abs(run[:, columns] - values)
        far = (apart / self._run.widths).max(axis=1)
        return np.flatnonzero(far <= far.min() + ROUNDING)

    @property
    def _grid(self) -> Finite:
        assert isinstance(self.domain, Finite)
        return self.domain
