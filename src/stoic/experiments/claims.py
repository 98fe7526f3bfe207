"""Vocabulary of claims: one method beside another, regret that flattens or grows linearly.

Each takes the numbers that it is judged by, and puts them beside the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stoic.data import Array, Booleans, Integers
from stoic.experiments.contender import Contender
from stoic.experiments.figure import Claim
from stoic.experiments.trials import REGRET, Groups, Trials, comparison

Numbers = Mapping[str, float]
# Share of a mean curve's regret in the second half of the rounds: 0.5 is a straight line from the
# origin, 0 is no regret in the second half.
# The sqrt(t) of a regret bound has 1 - 2^(-1/2) = 0.29 and is neither.
LINEAR, FLAT = 0.4, 0.1


def second_half(cumulative: Array, rounds: Integers) -> Array:
    """R(T) - R(T/2) of curves of shape (..., n), shape (...)."""
    half = np.flatnonzero(rounds == rounds[-1] // 2)  # kept by ``trials.marks``
    before = cumulative[..., half[0]] if len(half) else 0.0  # a single round has no first half
    return np.asarray(cumulative[..., -1] - before)


def share(cumulative: Array, rounds: Integers) -> Array:
    """(R(T) - R(T/2)) / R(T) of curves of shape (..., n), shape (...); nan where R(T) = 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(second_half(cumulative, rounds) / cumulative[..., -1])


def late(trials: Trials[Any], column: str = REGRET, among: Booleans | None = None) -> float:
    """Share of the mean curve over the trials, or over some of them; nan over none."""
    curves = trials.curves(column) if among is None else trials.curves(column)[among]
    return float(share(curves.mean(axis=0), trials.rounds)) if len(curves) else np.nan


def flattens(regret: str, numbers: Numbers, source: str = "") -> Claim:
    """Claim that at most ``FLAT`` of a regret falls in the second half of the rounds."""
    sentence = f"{regret} flattens (at most {FLAT:g} of it in the second half)."
    return Claim(sentence, numbers["share_in_second_half"] <= FLAT, numbers, source)


def grows_linearly(regret: str, numbers: Numbers, source: str = "") -> Claim:
    """Claim that at least ``LINEAR`` of a regret falls in the second half of the rounds."""
    sentence = f"{regret} grows linearly (at least {LINEAR:g} of it in the second half)."
    return Claim(sentence, numbers["share_in_second_half"] >= LINEAR, numbers, source)


def below(numbers: Numbers) -> bool:
    """One mean is below the other, read literally: its standard error stands beside it."""
    return numbers["paired_difference"] < 0.0


def not_above(numbers: Numbers, errors: float = 0.0) -> bool:
    """One mean is at most so many errors of the paired difference above the other."""
    allowed = errors * numbers["paired_standard_error"] if errors else 0.0
    return numbers["paired_difference"] <= allowed


def less(sentence: str, numbers: Numbers, source: str = "") -> Claim:
    """Claim that one mean is below another: a negative paired difference."""
    return Claim(sentence, below(numbers), numbers, source)


class Beside(NamedTuple):
    """Claims about each of some methods beside each of others, wherever both were run.

    Attributes
    ----------
    ours, theirs:
        The methods.
    source:
        As of a claim.
    sentence:
        What is claimed, of methods ``{0}`` and ``{1}``.
    holds:
        Verdict on the numbers of the comparison.
    """

    ours: Sequence[Contender[..., Any]]
    theirs: Sequence[Contender[..., Any]]
    source: str = ""
    sentence: str = "{0.name} has less mean cumulative regret than {1.name}."
    holds: Callable[[Numbers], bool] = below


def judge(
    groups: Groups[Any],
    panel: str,
    pairs: Iterable[Beside],
    start: str = "",
    compare: Callable[[Trials[Any], Trials[Any]], Numbers] = comparison,
) -> list[Claim]:
    """Judge comparisons by the trials of a panel; ``start`` begins the sentences."""
    found = []
    for pair in pairs:
        for one in pair.ours:
            for other in pair.theirs:
                if (panel, one.name) in groups and (panel, other.name) in groups:
                    numbers = compare(groups[panel, one.name], groups[panel, other.name])
                    sentence = start + pair.sentence.format(one, other)
                    found.append(Claim(sentence, pair.holds(numbers), numbers, pair.source))
    return found
