"""Trials that ended without a final value, or with a bound instead, and what they say about it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from stoic.curves import Curve, FinishedCurves
from stoic.data import Array, as_results
from stoic.integrations.optuna.objectives import CENSORED, NOISE
from stoic.integrations.optuna.possible import PossibleValues, is_result
from stoic.integrations.optuna.times import end_of
from stoic.integrations.reported import finite
from stoic.learner import Learner


def noise_variance(trial: FrozenTrial) -> float | None:
    """Noise variance reported with a trial; None if there is none, or none that could be one."""
    noise = finite(trial.user_attrs.get(NOISE))
    return noise if noise is not None and noise > 0.0 else None


@dataclass(frozen=True)
class Partial:
    """What a trial without a final value says about it; larger is better.

    Attributes
    ----------
    value:
        Estimate of the final value, or the bound that it does not exceed.
    noise:
        Variance of the estimate's error, or of the noise of the value that has the bound; None if
        unknown.
    source:
        "curve": by its intermediate values and the finished trials; "bound": the trial states one;
        "pruned": it was no better than the second best when it was pruned.
    censored:
        True if the value is a bound.
    """

    value: float
    noise: float | None
    source: Literal["curve", "bound", "pruned"]
    censored: bool = True


def bound_of(trial: FrozenTrial) -> float | None:
    """Return the bound of a trial, in the user's units; None if it has none that can be used."""
    said = trial.user_attrs.get(CENSORED)
    # Of a pruned trial it is the last intermediate value, which Optuna stores as its value
    if said is True:
        return finite(trial.values[0]) if trial.values and len(trial.values) == 1 else None
    return finite(said)


def has_value(trial: FrozenTrial) -> bool:
    """Return True for a complete trial whose value is an observation."""
    complete = trial.state == TrialState.COMPLETE and trial.value is not None
    return complete and bound_of(trial) is None


def bound_trouble(trial: FrozenTrial) -> str | None:
    """Say why the bound that is recorded with a trial is not used; None if it may be."""
    said = trial.user_attrs.get(CENSORED, False)
    if isinstance(said, bool) or finite(said) is not None:
        return None
    return f"{CENSORED} is not used: it must be True, or a finite number, got {said!r}"


def ended_early(trial: FrozenTrial) -> bool:
    """Return True if an ended trial has no final value, and may say something about it."""
    return trial.state == TrialState.PRUNED or bound_of(trial) is not None


def diverged(trial: FrozenTrial) -> bool:
    """Return True if the last intermediate value of a trial without a result is not finite.

    What its values before predict is no result that this setting would have had.
    """
    values = trial.intermediate_values
    if trial.state == TrialState.COMPLETE or not values or bound_of(trial) is not None:
        return False
    return not math.isfinite(values[max(values)])


class PartialResults:
    """Partial results of the trials of a study, by the finished trials there are.

    Parameters
    ----------
    trials:
        Of the study.
    sign:
        -1 if the study minimises.
    possible:
        Range of final values; one outside of it teaches nothing.
    curves:
        Number of a trial -> its curve: a cache of finished trials.
    penalties:
        Values that stand for a failure; they teach nothing, either.

    Attributes
    ----------
    finished:
        Curves of the complete trials that have intermediate values.
    """

    def __init__(
        self,
        trials: Iterable[FrozenTrial],
        sign: float,
        possible: PossibleValues | None = None,
        curves: dict[int, Curve] | None = None,
        penalties: frozenset[float] = frozenset(),
    ) -> None:
        self.sign, self.possible, self.penalties = sign, possible, penalties
        self._curves = {} if curves is None else curves
        self._complete = [trial for trial in trials if self._is_result(trial)]
        with_curves = [trial for trial in self._complete if trial.intermediate_values]
        self.finished = FinishedCurves(
            [self._curve(trial) for trial in with_curves],
            as_results([sign * (trial.value or 0.0) for trial in with_curves]),
        )

    def __call__(self, trial: FrozenTrial) -> Partial | None:
        """Return what an ended trial says about its final value; None if it has one, or nothing."""
        if (bound := bound_of(trial)) is not None:
            return Partial(self.sign * bound, noise_variance(trial), "bound")
        if trial.state != TrialState.PRUNED:  # a failed one might have had no result at its end
            return None
        found = self.finished.predict(self._curve(trial)) if trial.intermediate_values else None
        if found is not None:
            # The noise of an observation is above 0, or not known
            return Partial(found.value, found.noise or None, "curve", found.bound)
        best = self._second_best(trial)
        return None if best is None else Partial(best, None, "pruned")

    @property
    def finals(self) -> Array:
        """Values of all complete trials, shape (n,), larger is better."""
        return self.sign * np.array([trial.value for trial in self._complete], dtype=float)

    def _is_result(self, trial: FrozenTrial) -> bool:
        value = finite(trial.value) if has_value(trial) else None
        return is_result(value, self.possible) and value not in self.penalties

    def _curve(self, trial: FrozenTrial) -> Curve:
        if trial.number not in self._curves:
            self._curves[trial.number] = Curve.of(trial.intermediate_values, self.sign)
        return self._curves[trial.number]

    def _second_best(self, trial: FrozenTrial) -> float | None:
        """Return the second best value when a trial was pruned, so that no outlier decides.

        A pruner says that the trial would not have been among the best: at its last value it may
        well have been much worse than it would have become. Without a value by then, of all values.
        """
        at = end_of(trial)[0] if trial.datetime_complete else None
        values = [(end_of(other)[0], float(other.value or 0.0)) for other in self._complete]
        by_then = [value for then, value in values if at is None or then <= at]
        known = sorted(self.sign * value for value in by_then or [value for _, value in values])
        return known[-min(2, len(known))] if known else None


class Unfinished:
    """Trials of a study that ended without a final value, as its learner observes them.

    Parameters
    ----------
    sign, possible, penalties:
        As of :class:`PartialResults`.

    Attributes
    ----------
    partial:
        Number of a trial -> what the learner observed of it.
    """

    def __init__(
        self, sign: float, possible: PossibleValues | None, penalties: frozenset[float]
    ) -> None:
        self.partial: dict[int, Partial] = {}
        self._sign, self._possible, self._penalties = sign, possible, penalties
        self._curves: dict[int, Curve] = {}  # by number; finished trials do not change
        self._rows: dict[int, tuple[FrozenTrial, int]] = {}  # and the row of its observation
        self._waiting: list[FrozenTrial] = []  # pruned, with nothing to compare them with
        self._trials: tuple[FrozenTrial, ...] = ()  # to compare with
        self._known: PartialResults | None = None

    def compare_with(self, trials: Iterable[FrozenTrial]) -> None:
        """Compare from now on with these trials, all that there are."""
        self._trials, self._known = tuple(trials), None

    @property
    def _results(self) -> PartialResults:
        # Built when a trial needs it: in most studies all have final values
        if self._known is None:
            self._known = PartialResults(
                self._trials, self._sign, self._possible, self._curves, self._penalties
            )
        return self._known

    def begin(self, trial: FrozenTrial, row: int) -> Partial | None:
        """Return what is to be observed of a trial, in this row; None if that is not known.

        Then a pruned one waits until it is known, and is no observation before.
        """
        found = self._results(trial)
        if found is not None:
            self.partial[trial.number] = found
        elif trial.state == TrialState.PRUNED:
            self._waiting.append(trial)
            return None
        self._rows[trial.number] = trial, row
        return found

    def take_waiting(self) -> list[FrozenTrial]:
        """Return the trials that wait, for another :meth:`begin`."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def revise(self, learner: Learner) -> None:
        """Update the observations of a learner by what the trials say now."""
        for number, (trial, row) in self._rows.items():
            found = self._results(trial)
            if found is not None and found != self.partial.get(number):
                self.partial[number] = found
                learner.revise(row, found.value, found.noise, censored=found.censored)
