"""Values that stand for a failure: repeated exactly, and far worse than nearly all others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial

from stoic.data import Array
from stoic.integrations.optuna.explanation import some
from stoic.integrations.optuna.objective import RobustObjective
from stoic.integrations.optuna.partial import has_value
from stoic.integrations.optuna.possible import PossibleValues, is_result
from stoic.integrations.recipe import DEFAULT, Recipe
from stoic.integrations.reported import as_number

_FEWEST = 5  # trials with the value
_SHARE = 0.25  # of the first so many results: wrong results that are constant are fewer
_OTHERS = 4  # other results, at least
# Interquartile ranges of the others from their median to the value. In six dimensions, half of them
# penalised, the best of 80 results is as good with a penalty that is 5 ranges away as with failures
# that are reported, .002 to .01; 17 away it is .05 to 2.3, and 400,000 away 1.8 to 4.9.
_FAR = 10.0
_WORSE = 0.1  # of the others: wrong results may be worse still
_GROWTH = 1.2  # of the number of first results that are looked at


def penalties(
    trials: Iterable[FrozenTrial],
    recipe: Recipe,
    aim: RobustObjective | None,
    possible: PossibleValues | None,
    sign: float,
) -> frozenset[float]:
    """Find the values that trials of a study have in place of a failure, for the default method.

    ``sign`` times the value is maximised. What was found in the first results stays found when
    there are more of them, however few of those to come have it. What is not ``possible`` is none.
    """
    if recipe != DEFAULT or aim is not None:
        return frozenset()
    done = [t for t in trials if has_value(t) and math.isfinite(as_number(t.value))]
    done = sorted((t for t in done if is_result(t.value, possible)), key=lambda t: t.number)
    values = sign * np.array([t.value for t in done], dtype=float)
    # A setting that was measured several times is one
    settings = np.array([str(sorted(t.params.items())) for t in done], dtype=object)
    return frozenset(sign * value for value in _found(values, settings))


class Penalties:
    """Penalties among the results of a study that grows; arguments as of :func:`penalties`.

    Attributes
    ----------
    values:
        Those that were found.
    """

    def __init__(
        self,
        recipe: Recipe,
        aim: RobustObjective | None,
        possible: PossibleValues | None,
        sign: float,
    ) -> None:
        self.values: frozenset[float] = frozenset()
        self._method = recipe, aim, possible, sign
        self._repeated: Counter[float | None] = Counter()  # values, by how often

    def follow(self, new: Sequence[FrozenTrial], finished: Iterable[FrozenTrial]) -> bool:
        """Look at ``new`` ones of the ``finished`` trials; return True if others are penalties."""
        self._repeated.update(trial.value for trial in new if has_value(trial))
        if not new or max(self._repeated.values(), default=0) < _FEWEST:
            return False
        before, self.values = self.values, penalties(finished, *self._method)
        return before != self.values


def too_good(
    trials: Sequence[FrozenTrial], possible: PossibleValues | None, sign: float
) -> tuple[str, ...]:
    """Say so if a value that several settings share exactly is the best, unless it is possible.

    A quarter of all runs that fail and report 0 look like a region where a loss is least.
    """
    finite = [(t, value) for t in trials if math.isfinite(value := as_number(t.value))]
    best = max((value for _, value in finite), key=lambda value: sign * value, default=math.nan)
    those = [t for t, value in finite if value == best]
    others = [value for _, value in finite if value != best]
    settings = {str(sorted(t.params.items())) for t in those}
    if possible is not None or len(settings) < _FEWEST or not _various(others):
        return ()
    numbers = some([t.number for t in those])
    return (
        f"{len(those)} values are {best:.6g} exactly, and none is better: trials {numbers}. If a "
        "run that failed reports it, let it fail instead, or say which values are possible.",
    )


def _various(others: Sequence[float] | Array) -> bool:
    """Return True if these are some, and most of them different."""
    return len(others) >= _OTHERS and 2 * len(np.unique(others)) >= len(others)


def _found(values: Array, settings: NDArray[np.object_]) -> set[float]:
    """Find the penalties of values (n,) that are maximised, in their order."""
    found: set[float] = set()
    size = _FEWEST + _OTHERS
    while size <= len(values):
        first = values[:size]
        each, counts = np.unique(first, return_counts=True)
        for value in each[counts >= max(_FEWEST, _SHARE * size)].tolist():
            several = len(set(settings[:size][first == value])) >= _FEWEST
            if several and _apart(value, first[~np.isin(first, [value, *found])]):
                found.add(value)
        size = math.ceil(_GROWTH * size)
    return found


def _apart(value: float, others: Array) -> bool:
    """Return True if others, most of them different, are far better than the value."""
    if not _various(others):
        return False
    if np.count_nonzero(others < value) > _WORSE * len(others):
        return False
    low, middle, high = np.quantile(others, (0.25, 0.5, 0.75)).tolist()
    return bool(middle - value > _FAR * (high - low))  # in Python: an infinite one is none
