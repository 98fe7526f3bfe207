"""Noise of results that do not state it, in studies where most others do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from optuna.trial import FrozenTrial

from stoic.integrations.optuna.objectives import NOISE
from stoic.integrations.optuna.partial import noise_variance
from stoic.learner import Learner

_WIDE = 3.0  # standard deviations of the results: noise wider than that is none of theirs
_FEWEST = 10  # results; with normal noise alone they are as narrow in one of 2,000 studies


class TypicalNoise:
    """Noise variance of results without one, if more results of a study have one.

    A model has one noise for all results that state none, learned from these alone. Of a few it is
    anything: nothing at all for the one batch of 100 without a success, whose plug-in variance is
    zero, or, for two that a broken instrument made, as wide as they are off. So these have the
    median of the reported variances, rounded to a power of two, lest each result change it.
    """

    def __init__(self) -> None:
        self._reported: list[float] = []
        self._silent = 0  # results of trials that say nothing, not even 0
        self._without: dict[int, float] = {}  # row of the learner -> its result
        self._variance: float | None = None

    def of(self, trial: FrozenTrial, row: int, value: float) -> float | None:
        """Return the variance to tell with the result of a row; None if it is to be learned."""
        reported, is_result = noise_variance(trial), math.isfinite(value)
        if reported is not None:
            if is_result:
                self._reported.append(reported)
            return reported
        if is_result:
            self._without[row] = value
            self._silent += NOISE not in trial.user_attrs
        return self._variance

    def revise(self, learner: Learner) -> None:
        """Update the results without a variance by those that came since."""
        variance = None
        if self._without and len(self._reported) > self._silent:
            # In logarithms nothing overflows, but for the power of what is nearly infinite
            variance = 2.0 ** min(round(float(np.median(np.log2(self._reported)))), 1023)
        if variance == self._variance:
            return
        self._variance = variance
        for row, value in self._without.items():
            learner.revise(row, value, variance)


def too_wide(trials: Sequence[FrozenTrial]) -> tuple[str, ...]:
    """State that the reported noise is far wider than the results that it is part of."""
    reported = [noise for t in trials if (noise := noise_variance(t)) is not None]
    values = [value for t in trials if math.isfinite(value := t.values[0])]
    if len(reported) < _FEWEST or 2 * len(reported) < len(trials) or len(values) < _FEWEST:
        return ()
    with np.errstate(over="ignore", invalid="ignore"):
        noise, spread = math.sqrt(float(np.median(reported))), float(np.std(values))
    if not 0.0 < spread < math.inf or noise <= _WIDE * spread:
        return ()
    return (
        f"The reported noise has a standard deviation of {noise:.3g}, and all results together one "
        f"of {spread:.3g}: {NOISE} is a variance, the square of a standard error.",
    )
