"""One parameter as coordinates of a box, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from stoic.data import Array
from stoic.integrations.optuna.choices import ChoiceNumbers
from stoic.refusal import RefusalError

Numbers = FloatDistribution | IntDistribution

# An integer or stepped range with more values than this is searched as if it were continuous.
_FINE = 10_000

ROUNDING = 1e-9  # of the width of a range: values that are apart by less are the same


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

    distribution: Numbers
    column: int
    absent = 0.5  # where a setting lacks the parameter: the middle of its range

    @property
    def columns(self) -> list[int]:
        return [self.column]

    @property
    def _halvings(self) -> int:
        """Number of halvings of a float, so that no width overflows or underflows; exact."""
        d = self.distribution
        ints = isinstance(d, IntDistribution)  # these have exact differences
        return 0 if ints else math.frexp(max(abs(d.low), abs(d.high)))[1]

    def _halved(self, value: float) -> float:
        return math.ldexp(value, -self._halvings)

    def _above(self, value: Any) -> float:
        """Difference of a value from the low end, halved."""
        d = self.distribution
        if isinstance(d, IntDistribution):
            return float(value - d.low)
        return self._halved(value) - self._halved(d.low)

    def _offset(self, value: Any) -> float:
        """Difference of a value from the low end, of logarithms if it is log-scaled."""
        d = self.distribution
        if not d.log:
            return self._above(value)
        if d.high <= 2 * d.low:  # the logarithms themselves could be the same
            return math.log1p(self._above(value) / self._halved(d.low))
        return float(np.log(float(value)) - np.log(float(d.low)))

    @cached_property
    def _width(self) -> float:
        return self._offset(self.distribution.high)

    @property
    def _step(self) -> float | None:
        """The step, halved; None if there is none that a float could take."""
        d = self.distribution
        step = 0.0 if d.step is None else self._halved(d.step)
        return step if step > 1e-300 else None

    def _count(self) -> int | None:
        """Count the values that are allowed; None if these are too many to distinguish."""
        if self._step is None:
            return None
        count = round(self._above(self.distribution.high) / self._step) + 1
        return count if count <= _FINE else None

    def _on_step(self, number: int) -> Any:
        d = self.distribution
        if isinstance(d, IntDistribution):
            return d.low + d.step * number
        assert self._step is not None
        value = self._halved(d.low) + self._step * number
        # Rounding may pass the high end
        return math.ldexp(min(value, self._halved(d.high)), self._halvings)

    @cached_property
    def _grid(self) -> Array | None:
        if (count := self._count()) is None:
            return None
        return np.array([self.encode(self._on_step(number)) for number in range(count)])

    def grid(self) -> Array | None:
        """Return the values that are allowed, as coordinates, shape (k, 1); None if all are."""
        return self._grid

    def encode(self, value: Any) -> list[float]:
        # A range of a single value is that of a branch
        return [self._offset(value) / self._width if self._width else self.absent]

    def ends(self, other: Numbers) -> tuple[float, float]:
        """Return the ends of another range of the parameter, as far as they are in this one."""
        d = self.distribution
        low, high = (min(max(end, d.low), d.high) for end in (other.low, other.high))
        return self.encode(low)[0], self.encode(high)[0]

    def same(self, value: Any, other: Any) -> bool:
        """Return True if two values are the same, up to rounding."""
        return bool(np.allclose(self.encode(value), self.encode(other), rtol=0.0, atol=ROUNDING))

    def decode(self, point: Array) -> Any:
        d, u = self.distribution, float(point[self.column])
        if u in (0.0, 1.0):  # not exp(log(low)), which differs in the last digit
            return d.high if u else d.low
        offset = u * self._width
        if self._step is not None:
            above = self._halved(d.low) * math.expm1(offset) if d.log else offset
            value = self._on_step(round(above / self._step))
        elif not d.log:
            low, high = self._halved(d.low), self._halved(d.high)
            value = math.ldexp(min(max(low + offset, low), high), self._halvings)
        elif d.high <= 2 * d.low:
            value = d.low + d.low * math.expm1(offset)
        else:
            value = float(np.exp(np.log(d.low) + offset))
        return min(max(value, d.low), d.high)

    def tolerance(self, name: str, given: float) -> list[float]:
        """Move of the coordinate if the parameter moves by ``given``, or by that factor."""
        if not self.distribution.log:
            with np.errstate(over="ignore"):
                return [float(np.ldexp(given, -self._halvings)) / self._width]
        if given < 1.0:
            raise RefusalError(
                f"{name} is on a logarithmic scale, so its tolerance is a factor of at least 1, "
                f"such as 1.1 for 10 % either way; got {given:g}."
            )
        return [float(np.log(given)) / self._width]

    def moved(self, tolerances: float, given: float) -> float:
        """Convert a distance in tolerances to one in the parameter's unit, or to a factor."""
        return given**tolerances if self.distribution.log else given * tolerances

    def spread(self, u: float) -> list[float]:
        """Return the coordinate at quantile ``u`` of the uniform distribution over the values."""
        grid = self.grid()
        if grid is None or self.distribution.log:
            return [u]
        return [float(grid[min(int(u * len(grid)), len(grid) - 1), 0])]

    def quantile(self, u: float) -> Any:
        """Return the value at quantile ``u`` of the uniform distribution over the values."""
        unit = np.zeros(self.column + 1)
        unit[self.column] = self.spread(u)[0]
        return self.decode(unit)


@dataclass(frozen=True)
class Category:
    """One categorical parameter as one coordinate per choice, of which one is 1.

    Attributes
    ----------
    distribution:
        A categorical distribution.
    first:
        The first of its coordinates.
    numbers:
        Numbers of the choices that have a coordinate.
    other:
        Number of the one that stands for those without, which no trial has; -1 if all have one.
    """

    distribution: CategoricalDistribution
    first: int
    numbers: tuple[int, ...]
    other: int = -1
    absent = 0.0  # where a setting lacks the parameter: no choice

    @property
    def columns(self) -> list[int]:
        return list(range(self.first, self.first + len(self.numbers)))

    @cached_property
    def _at(self) -> dict[int, int]:
        return {number: at for at, number in enumerate(self.numbers)}

    def grid(self) -> Array:
        return np.eye(len(self.numbers))

    @cached_property
    def _number(self) -> ChoiceNumbers:
        return ChoiceNumbers(self.distribution)

    def same(self, value: Any, other: Any) -> bool:
        """Return True if two values are the same choice."""
        return self._number(value) == self._number(other)

    def has(self, value: Any) -> bool:
        """Return True if a choice has a coordinate that stands for no other one."""
        return self._number(value) in self._at and self._number(value) != self.other

    def encode(self, value: Any) -> list[float]:
        number = self._number(value)
        # A choice without a coordinate is where the one is that stands for those
        at = self._at.get(number, self._at.get(self.other, -1))
        return [float(i == at) for i in range(len(self.numbers))]

    def decode(self, point: Array) -> Any:
        return self.distribution.choices[self.numbers[int(np.argmax(point[self.columns]))]]

    def tolerance(self, name: str, given: float) -> list[float]:
        raise RefusalError(
            f"{name} is a choice among {', '.join(map(str, self.distribution.choices))}, so it "
            "cannot be moved by a little: leave out its tolerance."
        )

    def spread(self, u: float) -> list[float]:
        k = len(self.numbers)
        return [float(i == min(int(u * k), k - 1)) for i in range(k)]


@dataclass(frozen=True)
class Branches:
    """Ranges of a number that depend on a choice, as of a learning rate on the optimizer.

    Attributes
    ----------
    by, choices:
        Name of the choice, and its distribution.
    ranges:
        Number of a choice -> range of the parameter there.
    """

    by: str
    choices: CategoricalDistribution
    ranges: Mapping[int, Numbers]

    @cached_property
    def _number(self) -> ChoiceNumbers:
        return ChoiceNumbers(self.choices)

    def number(self, parameters: Mapping[str, Any]) -> int | None:
        """Return the number of the choice that ``parameters`` have; None without a range of it."""
        if self.by not in parameters or parameters[self.by] not in self._number:
            return None
        number = self._number(parameters[self.by])
        return number if number in self.ranges else None

    def range_of(self, parameters: Mapping[str, Any]) -> Numbers | None:
        """Return the range in the branch of ``parameters``; None if it is not known."""
        number = self.number(parameters)
        return None if number is None else self.ranges[number]
