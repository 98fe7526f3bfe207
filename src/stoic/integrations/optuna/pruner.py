"""Pruner that no single intermediate value decides. Ours."""

from __future__ import annotations

import math

import numpy as np
from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.internals import storage_of, study_id, whole_study
from stoic.integrations.optuna.partial import PartialResults
from stoic.integrations.optuna.possible import stored_possible
from stoic.integrations.optuna.times import end_of
from stoic.refusal import RefusalError, check_at_least

_WINDOW = 3  # last values of a trial, each with a vote
_AGREE = 2  # votes that prune
_BEST = 0.2  # share of the complete trials among which a trial must be able to end
_MOST = 4  # pruned trials one after the other: as large a share runs to its end


class StoicPruner(BasePruner):
    """Prune a trial that is unlikely to end among the best, if two of its last values agree on it.

    Each of the last three intermediate values is judged alone. It is hopeless if hardly any
    finished trial gained enough, from that step on, to lift it to the best fifth of all values:
    with n finished trials that reached the step, at most ``chance`` (n + 1) - 1 of them. Two
    hopeless values of the last three prune the trial. Nothing is assumed of the shape of the
    curves, and curves that cross are learned from; only a finished trial teaches how much can
    still be gained.

    After four pruned trials the next one runs to its end, so that wrong values of finished trials,
    which nothing can reach, do not prune all that come. So does a setting that has finished before:
    it is evaluated again because its result is doubted.

    Parameters
    ----------
    chance:
        Largest probability that a pruned trial would have ended among the best fifth, in (0, 1).
        0.2 prunes nothing before nine trials have finished.
    n_warmup_steps:
        Steps before which nothing is pruned.

    Guarantee
    ---------
    If a trial gains what the finished ones gained (its gain is exchangeable with theirs), the
    probability that one of its values is hopeless although it ends at the target is at most
    ``chance``, whatever the distribution. Where the honest ones of the last three values agree,
    one outlier among them, of any size, changes no decision. One in a finished trial moves the
    median of three by one rank, or its own gain alone, of which at least two more would have to
    agree with it; and the target by one rank.
    """

    def __init__(self, *, chance: float = 0.2, n_warmup_steps: int = 0) -> None:
        if not (isinstance(chance, int | float | np.floating) and 0.0 < chance < 1.0):
            raise RefusalError(f"chance is a probability between 0 and 1, got {chance!r}.")
        check_at_least(0, n_warmup_steps=n_warmup_steps)
        self._chance, self._warmup = chance, n_warmup_steps
        self._known: tuple[tuple[int, ...], PartialResults] | None = None

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Judge a trial by its last values; called by ``trial.should_prune()``."""
        last = trial.last_step
        if last is None or last < self._warmup:
            return False
        results = self._results(study)
        steps = sorted(trial.intermediate_values)[-_WINDOW:]
        if len(steps) < _AGREE or (target := _target(results)) is None:
            return False
        votes = [
            results.finished.hopeless(
                step, results.sign * trial.intermediate_values[step], target, self._chance
            )
            for step in steps
        ]
        # A vote is None where too few finished trials reached the step
        agreed = sum(vote is True for vote in votes) >= _AGREE
        # The exceptions last: they read all trials that have ended
        return agreed and not _runs_to_its_end(whole_study(study), trial)

    def _results(self, study: Study) -> PartialResults:
        """Complete trials of a study, read again when there are more."""
        study = whole_study(study)
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        numbers = (len(complete), complete[-1].number) if complete else ()
        # Results of finished trials do not change: count and last number tell if there are more
        key = (id(storage_of(study)), study_id(study), *numbers)
        if self._known is None or self._known[0] != key:
            sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
            self._known = key, PartialResults(complete, sign, stored_possible(study))
        return self._known[1]


def _runs_to_its_end(study: Study, trial: FrozenTrial) -> bool:
    """Return True after four pruned trials, and at a setting that has finished before."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    latest = sorted(trials, key=end_of)[-_MOST:]
    if len(latest) == _MOST and all(other.state == TrialState.PRUNED for other in latest):
        return True
    return any(
        other.state == TrialState.COMPLETE and other.params == trial.params for other in trials
    )


def _target(results: PartialResults) -> float | None:
    """Return the value that a trial must be able to reach; one other is at least as good."""
    finals = np.sort(results.finals)
    if len(finals) < _AGREE:
        return None
    return float(finals[-max(_AGREE, math.ceil(_BEST * len(finals)))])
