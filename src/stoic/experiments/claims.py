"""Vocabulary of claims: less regret, regret that flattens, regret that grows linearly.

Each takes the numbers that it is judged by, and puts them beside the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stoic.data import Array, Integers
from stoic.experiments.figure import Claim

# Share of a mean curve's regret in the second half of the rounds: 0.5 is a straight line from the
# origin, 0 is no regret in the second half.
# The sqrt(t) of a regret bound has 1 - 2^(-1/2) = 0.29 and is neither.
LINEAR, FLAT = 0.4, 0.1


def share(cumulative: Array, rounds: Integers) -> Array:
    """(R(T) - R(T/2)) / R(T) of curves of shape (..., n), shape (...); nan where R(T) = 0."""
    half = np.flatnonzero(rounds == rounds[-1] // 2)  # kept by ``trials.marks``
    before = cumulative[..., half[0]] if len(half) else 0.0  # a single round has no first half
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((cumulative[..., -1] - before) / cumulative[..., -1])


def less(sentence: str, numbers: Mapping[str, float], source: str = "") -> Claim:
    """Claim that one mean is below another: a negative paired difference."""
    # Read literally: how sure the difference is stands beside it, as its standard error
    return Claim(sentence, numbers["paired_difference"] < 0.0, numbers, source)


def flattens(regret: str, numbers: Mapping[str, float], source: str = "") -> Claim:
    """Claim that at most ``FLAT`` of a regret falls in the second half of the rounds."""
    sentence = f"{regret} flattens (at most {FLAT:g} of it in the second half)."
    return Claim(sentence, numbers["share_in_second_half"] <= FLAT, numbers, source)


def grows_linearly(regret: str, numbers: Mapping[str, float], source: str = "") -> Claim:
    """Claim that at least ``LINEAR`` of a regret falls in the second half of the rounds."""
    sentence = f"{regret} grows linearly (at least {LINEAR:g} of it in the second half)."
    return Claim(sentence, numbers["share_in_second_half"] >= LINEAR, numbers, source)
