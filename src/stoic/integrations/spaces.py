"""Between Optuna's parameters and points of a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.stats import qmc

from stoic.data import Array
from stoic.domains import Box, Lattice
from stoic.integrations.executed import unknown
from stoic.refusal import Refusal

_WIDEST = 2_000  # coordinates of a box: with more, a single matrix takes minutes

# An integer or stepped range with more values than this is searched as if it were continuous.
_FINE = 10_000

_ROUNDING = 1e-9  # of the width of a range: values that are apart by less are the same


@dataclass(frozen=True)
class Coordinate:
    """One numerical parameter as one coordinate of [0, 1], in its logarithm if it is log-scaled.

    Attributes
    ----------
    distribution:
        A float or integer distribution.
    column:
        The coordinate.
    """

    distribution: FloatDistribution | IntDistribution
    column: int

    @property
    def columns(self) -> list[int]:
        return [self.column]

    def _scaled(self, value: Any) -> Any:
        return np.log(value) if self.distribution.log else np.asarray(value, dtype=float)

    def _ends(self) -> tuple[float, float]:
        d = self.distribution
        return float(self._scaled(d.low)), float(self._scaled(d.high))

    def grid(self) -> Array | None:
        """The values that are allowed, as coordinates, shape (k, 1); None if all are."""
        d = self.distribution
        if d.step is None or (isinstance(d, FloatDistribution) and d.log):
            return None
        if (d.high - d.low) / d.step >= _FINE:
            return None
        count = round((d.high - d.low) / d.step) + 1
        values = d.low + d.step * np.arange(count)
        low, high = self._ends()
        coordinates: Array = (self._scaled(values) - low) / (high - low)
        return coordinates[:, None]

    def encode(self, value: Any) -> list[float]:
        low, high = self._ends()
        return [float((self._scaled(value) - low) / (high - low))]

    def decode(self, point: Array) -> Any:
        d, u = self.distribution, float(point[self.column])
        low, high = self._ends()
        value = low + u * (high - low)
        value = float(np.exp(value)) if d.log else value
        if u in (0.0, 1.0):  # not exp(log(low)), which differs in the last digit
            value = d.high if u else d.low
        if d.step is not None and not (isinstance(d, FloatDistribution) and d.log):
            value = d.low + d.step * round((value - d.low) / d.step)
        value = min(max(value, d.low), d.high)
        return round(value) if isinstance(d, IntDistribution) else value

    def tolerance(self, name: str, given: float) -> list[float]:
        """How far the coordinate moves if the parameter moves by ``given``, or by that factor."""
        low, high = self._ends()
        if not self.distribution.log:
            return [given / (high - low)]
        if given < 1.0:
            raise Refusal(
                f"{name} is on a logarithmic scale, so its tolerance is a factor of at least 1, "
                f"such as 1.1 for 10 % either way; got {given:g}."
            )
        return [float(np.log(given)) / (high - low)]

    def moved(self, tolerances: float, given: float) -> float:
        """A distance in tolerances as one in the parameter's unit, or as a factor."""
        return given**tolerances if self.distribution.log else given * tolerances

    def spread(self, u: float) -> list[float]:
        """The coordinate at quantile ``u`` of the uniform distribution over the values."""
        grid = self.grid()
        if grid is None or self.distribution.log:
            return [u]
        return [float(grid[min(int(u * len(grid)), len(grid) - 1), 0])]


@dataclass(frozen=True)
class Category:
    """One categorical parameter as one coordinate per choice, of which one is 1.

    Attributes
    ----------
    distribution:
        A categorical distribution.
    first:
        The first of its coordinates.
    """

    distribution: CategoricalDistribution
    first: int

    @property
    def columns(self) -> list[int]:
        return list(range(self.first, self.first + len(self.distribution.choices)))

    def grid(self) -> Array:
        return np.eye(len(self.distribution.choices))

    def encode(self, value: Any) -> list[float]:
        index = int(self.distribution.to_internal_repr(value))
        return [float(i == index) for i in range(len(self.distribution.choices))]

    def decode(self, point: Array) -> Any:
        return self.distribution.choices[int(np.argmax(point[self.columns]))]

    def tolerance(self, name: str, given: float) -> list[float]:
        raise Refusal(
            f"{name} is a choice among {', '.join(map(str, self.distribution.choices))}, so it "
            "cannot be moved by a little: leave out its tolerance."
        )

    def spread(self, u: float) -> list[float]:
        k = len(self.distribution.choices)
        return [float(i == min(int(u * k), k - 1)) for i in range(k)]


def searched(space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """What there is to search: parameters with more than one value, in the order of their names."""
    return {name: d for name, d in sorted(space.items()) if not d.single()}


class Encoding:
    """A search space as a box, and back.

    Parameters
    ----------
    space:
        Names and distributions, none of them with a single value; the order is kept.
    """

    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self.space = dict(space)
        self.parts: dict[str, Coordinate | Category] = {}
        column = 0
        for name, distribution in space.items():
            part: Coordinate | Category
            if isinstance(distribution, CategoricalDistribution):
                part = Category(distribution, column)
            elif isinstance(distribution, FloatDistribution | IntDistribution):
                _check_range(name, distribution)
                part = Coordinate(distribution, column)
            else:
                raise ValueError(
                    f"Parameter {name!r} has a distribution of an unknown kind, {distribution!r}: "
                    "use a float, integer or categorical one."
                )
            self.parts[name] = part
            column += len(part.columns)
        if column > _WIDEST:
            raise Refusal(
                f"The search space has {column} coordinates, one for each number and each choice; "
                f"at most {_WIDEST} can be searched."
            )
        lattices = [
            Lattice(np.array(part.columns), grid)
            for part in self.parts.values()
            if (grid := part.grid()) is not None
        ]
        self.box = Box(np.zeros(column), np.ones(column), tuple(lattices))

    def encode(self, parameters: Mapping[str, Any]) -> Array:
        """The point of some parameters, shape (d,)."""
        return np.array([
            u for name, part in self.parts.items() for u in part.encode(parameters[name])
        ])  # fmt: skip

    def decode(self, point: Array) -> dict[str, Any]:
        """The parameters at a point (d,), rounded to what their distributions allow."""
        return {name: part.decode(point) for name, part in self.parts.items()}

    def admits(self, name: str, value: Any) -> bool:
        """Whether ``name`` is a parameter of the space and ``value`` in its range."""
        distribution = self.space.get(name)
        return distribution is not None and _possible(distribution, value)

    def contains(self, parameters: Mapping[str, Any]) -> bool:
        """Whether all parameters of the space are there, with values in their ranges."""
        return all(
            name in parameters and self.admits(name, parameters[name]) for name in self.space
        )

    def agrees(self, parameters: Mapping[str, Any], fixed: Mapping[str, Any]) -> bool:
        """Whether parameters have the values that are ``fixed``, up to rounding."""
        return all(
            np.allclose(
                self.parts[name].encode(parameters[name]),
                self.parts[name].encode(value),
                rtol=0.0,
                atol=_ROUNDING,
            )
            for name, value in fixed.items()
        )

    def part_with(self, fixed: Mapping[str, Any]) -> Box:
        """The points whose parameters ``fixed`` have these values."""
        return self.box.having(
            {
                int(column): float(u)
                for name, value in fixed.items()
                for column, u in zip(
                    self.parts[name].columns, self.parts[name].encode(value), strict=True
                )
            }
        )

    def tolerances(self, given: Mapping[str, float]) -> Array:
        """How far each coordinate moves, shape (d,): 0 for parameters that are not ``given``.

        Raises
        ------
        Refusal
            If a parameter is not in the space or is a choice, if the factor of a logarithmic one is
            below 1, or if nothing moves.
        """
        moves = np.zeros(self.box.dim)
        for name, size in given.items():
            if name not in self.parts:
                raise Refusal(f"{unknown(name, self.parts)} A tolerance needs one all trials have.")
            part = self.parts[name]
            moves[part.columns] = part.tolerance(name, size)
        if not moves.any():
            raise Refusal("All tolerances are 0, so nothing moves: leave them out, or raise one.")
        return moves

    def scaled(self, name: str) -> bool:
        """Whether a parameter is on a logarithmic scale."""
        part = self.parts[name]
        return isinstance(part, Coordinate) and part.distribution.log

    def sobol(self, number: int, seed: int) -> dict[str, Any]:
        """The parameters of point ``number`` of a scrambled Sobol sequence, one axis each."""
        sequence = qmc.Sobol(len(self.parts), rng=np.random.default_rng(seed))
        if number:
            sequence.fast_forward(number)
        u = sequence.random(1)[0]
        point = np.concatenate([
            part.spread(u[i]) for i, part in enumerate(self.parts.values())
        ])  # fmt: skip
        return self.decode(point)


def _check_range(name: str, distribution: FloatDistribution | IntDistribution) -> None:
    """Refuse a range without a finite width: nothing can be said about how far values are apart."""
    try:
        width = float(distribution.high) - float(distribution.low)
    except OverflowError:
        width = math.inf
    if not math.isfinite(width):
        raise Refusal(f"The range of {name!r} is too wide: high - low must be a finite number.")


def check_fixed(
    fixed: Mapping[str, Any], space: Mapping[str, BaseDistribution], which: str
) -> None:
    """Refuse values that parameters cannot have, and parameters that are none of ``space``.

    ``which`` says whose they are: those that it is true of.

    Raises
    ------
    Refusal
        With the name, and what it can be.
    """
    for name, value in fixed.items():
        if name not in space:
            raise Refusal(f"{unknown(name, space)} Values can be given of those that {which}.")
        if not _possible(space[name], value):
            raise Refusal(f"{name} cannot be fixed at {value}: it is {space[name]}.")


def _possible(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a parameter can have this value."""
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (ValueError, TypeError, OverflowError):  # not one of the choices, or not a number
        return False
