"""Values that stand for a failure: repeated exactly, and far from nearly all others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution
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
_BEYOND = 0.1  # of the others: wrong results may be farther still
# Interquartile ranges from a better value to the nearest worse one: .5 to 1.1 in four studies where
# a quarter of the runs crash and report 0, at most .25 in six where a loss is clipped at 0 or an
# accuracy at 1.
_GAP = 0.35
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
    settings = np.array([_setting(t) for t in done], dtype=object)
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
) -> str | None:
    """Say so if a value looks like that of failed runs and is better than nearly all others.

    Where a quarter of all runs fail and report 0, that may look like a region where a loss is
    least. Settings that have a number in common may have the value for that: it is at a bound.
    """
    finite = [(t, value) for t in trials if math.isfinite(value := as_number(t.value))]
    value, count = max(Counter(v for _, v in finite).items(), key=itemgetter(1), default=(0.0, 0))
    those = [t for t, v in finite if v == value]
    others = sign * np.array([v for _, v in finite if v != value])
    if possible is not None or len({_setting(t) for t in those}) < _FEWEST:
        return None
    if not _various(others) or _number_in_common(those, trials):
        return None
    worse = others[others < sign * value].tolist()
    low, high = np.quantile(others, (0.25, 0.75)).tolist()
    better = len(others) - len(worse)
    if better > _BEYOND * len(others) or not sign * value - max(worse) >= _GAP * (high - low):
        return None
    return (
        f"{count} values are {value + 0.0:.12g} exactly, and better than nearly all others: trials "
        f"{some([t.number for t in those])}. If a run that failed reports it, let it fail instead, "
        "or say which values are possible."
    )


def _setting(trial: FrozenTrial) -> str:
    """Return what trials at one setting have in common, and no others."""
    return str(sorted(trial.params.items()))


def _number_in_common(those: Sequence[FrozenTrial], trials: Sequence[FrozenTrial]) -> bool:
    """Return True if some trials have the same value of a numeric parameter, that others lack."""
    for name, distribution in those[0].distributions.items():
        if not isinstance(distribution, CategoricalDistribution):
            same = {t.params.get(name) for t in those}
            if len(same) == 1 and {t.params.get(name) for t in trials} != same:
                return True
    return False


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
    if np.count_nonzero(others < value) > _BEYOND * len(others):
        return False
    low, middle, high = np.quantile(others, (0.25, 0.5, 0.75)).tolist()
    return bool(middle - value > _FAR * (high - low))  # in Python: an infinite one is none
