"""Range of the values that a study's objective can have: what is outside counts as nan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from optuna.study import Study

from stoic.integrations.reported import as_number
from stoic.refusal import RefusalError

POSSIBLE = "stoic:possible"  # user attribute of a study: [low, high], None where there is no bound


@dataclass(frozen=True)
class PossibleValues:
    """Range of possible values, ends included.

    A value outside of it is a failed measurement: whatever the parameters are, it cannot be right.
    So it counts as nan, which may be by chance or wherever a sensor does not work, and it stays in
    the study.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise RefusalError(
                f"possible needs a low value and a higher one, as in 0 1, got {self.low:g} and "
                f"{self.high:g}."
            )

    @classmethod
    def of(cls, given: object) -> PossibleValues | None:
        """Return the range of two numbers; None if nothing is given.

        Raises
        ------
        RefusalError
            If it is anything else.
        """
        if given is None:
            return None
        ends = list(given) if isinstance(given, Sequence | np.ndarray) else []
        numbers = [end for end in ends if isinstance(end, int | float | np.number)]
        if isinstance(given, str) or len(ends) != 2 or len(numbers) != 2:
            raise RefusalError(f"possible needs two numbers, low and high, got {given!r}.")
        # An integer that no float holds is an infinite end
        return cls(*(as_number(float(n) if isinstance(n, np.number) else n) for n in numbers))

    def excludes(self, value: float) -> bool:
        """Return True for a value outside of the range; nan is no value."""
        return value < self.low or value > self.high

    def record(self) -> list[float | None]:
        """Return a JSON array."""
        return [end if math.isfinite(end) else None for end in (self.low, self.high)]

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


def is_result(value: float | None, possible: PossibleValues | None) -> TypeGuard[float]:
    """Return True for a value that is there, and possible as far as is known."""
    return value is not None and not (possible and possible.excludes(value))


def stored_possible(study: Study) -> PossibleValues | None:
    """Return the range that is recorded with a study; None if there is none, or no valid one."""
    match study.user_attrs.get(POSSIBLE):
        case [low, high]:
            try:
                return PossibleValues.of(
                    [-math.inf if low is None else low, math.inf if high is None else high]
                )
            except RefusalError:  # recorded by something else
                return None
    return None


def record_possible(study: Study, possible: PossibleValues) -> None:
    """Record a range with a study, in the place of an earlier one."""
    if study.user_attrs.get(POSSIBLE) != possible.record():
        study.set_user_attr(POSSIBLE, possible.record())
