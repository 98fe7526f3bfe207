"""Turns of the workers on one study, so that each knows what the others have chosen.

A trial is running from the moment its number exists, and has parameters only when they have been
chosen, which takes a fit of the model. Two workers that choose at the same time would not see each
other, and find the same point. So the later number waits until the earlier ones have announced
their parameters, in an attribute of their trial. Only what depends on them waits: who is not next
fits its model meanwhile, and counts as pending what ended since. A trial that was begun in the same
thread cannot choose meanwhile, so that it is not waited for.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.internals import storage_of, trial_id

log = logging.getLogger(__name__)

CHOSEN = "stoic:chosen"  # system attribute: parameter -> what Optuna stores for its value
SILENT = "stoic:silent"  # system attribute: the trial's number, if nobody waits for it any more

_LONGEST = 5.0  # seconds until a silent worker is taken for dead, or for another sampler
_SHORTEST = 1.0  # the same of the next one behind it, which waited for it as well
_POLL, _SELDOM = 0.01, 0.04  # seconds between two looks for each trial before, if few and if many
_SOON = 8  # few


class Turns:
    """Order of choosing; trials that were waited for in vain are not waited for again."""

    def __init__(self) -> None:
        self._silent: set[tuple[int, int]] = set()  # storage and trial
        self._begun: dict[tuple[int, int], int] = {}  # and the thread that has begun it

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Take note that this thread has begun a trial."""
        self._begun[id(storage_of(study)), trial_id(trial)] = threading.get_ident()

    def end(self, study: Study, trial: FrozenTrial) -> None:
        """Forget a trial that ends."""
        self._begun.pop((id(storage_of(study)), trial_id(trial)), None)

    def wait(self, study: Study, trial: FrozenTrial, prepare: Callable[[], None]) -> bool:
        """Wait until the trials with a lower number have chosen, or have taken too long.

        However many there are: time counts for the first of the row alone, since the others wait
        for it, too. When it is taken for dead all can read it, and there is less time for the
        next one, which has had time to prepare.

        Parameters
        ----------
        study, trial:
            Whose turn is waited for.
        prepare:
            Called while others choose: at once, and again when few of many are left.

        Returns
        -------
        prepared:
            True if it was called.
        """
        storage, first = storage_of(study), None
        prepared_for = math.inf
        until, patience, shortest = 0.0, _LONGEST, min(_SHORTEST, _LONGEST)
        while True:
            trials = study.get_trials(deepcopy=False)
            choosing = [trial_id(t) for t in trials if t.number < trial.number and _chooses(t)]
            left = [one for one in choosing if not self._in_vain(storage, one)]
            if not left:
                return prepared_for < math.inf
            if prepared_for == math.inf or len(left) <= _SOON < prepared_for:
                begun = time.monotonic()
                prepare()
                shortest = max(shortest, 2.0 * (time.monotonic() - begun))
                prepared_for = len(left)
                continue
            if left[0] != first:
                silent = first is not None and self._is_silent(storage, first)
                patience = max(patience / 2.0, shortest) if silent else _LONGEST
                first, until = left[0], time.monotonic() + patience
            elif time.monotonic() > until:
                self._give_up(storage, first)
                continue
            # All trials are read in some tens of milliseconds where sixty are running.
            if len(left) > _SOON:
                enough = max(until - time.monotonic(), _POLL)
                time.sleep(min(_SELDOM * len(left), enough))
            else:
                _wait_for(storage, left[-1], _POLL * len(left), until)

    def _in_vain(self, storage: BaseStorage, one: int) -> bool:
        key = (id(storage), one)
        return key in self._silent or self._begun.get(key) == threading.get_ident()

    def _is_silent(self, storage: BaseStorage, one: int) -> bool:
        if (id(storage), one) in self._silent:
            return True
        with contextlib.suppress(KeyError):  # of a study that was deleted
            trial = storage.get_trial(one)
            return trial.system_attrs.get(SILENT) == trial.number
        return False

    def _give_up(self, storage: BaseStorage, one: int) -> None:
        """Take a trial for dead, and tell the others."""
        self._silent.add((id(storage), one))
        with contextlib.suppress(KeyError, RuntimeError):  # it was deleted, or has finished
            number = storage.get_trial(one).number
            storage.set_trial_system_attr(one, SILENT, number)
            log.warning(
                "Trial %d was begun and has chosen no parameters: it is not waited for any more.",
                number,
            )


def _wait_for(storage: BaseStorage, one: int, interval: float, until: float) -> None:
    """Look at one trial until it has chosen, which it does after those before it."""
    while True:
        time.sleep(interval)
        if time.monotonic() > until or not _chooses(storage.get_trial(one)):
            return


def announce(
    study: Study, trial: FrozenTrial, params: Mapping[str, Any], space: Mapping[str, Any]
) -> None:
    """Store what a trial will run, before it has its parameters."""
    # As floats, which any storage holds: a choice may be an object that JSON does not know
    chosen = {name: space[name].to_internal_repr(value) for name, value in params.items()}
    storage_of(study).set_trial_system_attr(trial_id(trial), CHOSEN, chosen)


def announced(trial: FrozenTrial, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return the parameters of a trial, announced ones included."""
    chosen = trial.system_attrs.get(CHOSEN)
    found: dict[str, Any] = {}
    for name, value in chosen.items() if isinstance(chosen, dict) else ():
        # Another writer may have put anything there.
        with contextlib.suppress(ValueError, TypeError, LookupError, ArithmeticError):
            if name in space:
                found[name] = space[name].to_external_repr(value)
    return found | trial.params


def _chooses(trial: FrozenTrial) -> bool:
    known = trial.system_attrs
    return (
        trial.state == TrialState.RUNNING
        and not trial.params
        and CHOSEN not in known
        and known.get(SILENT) != trial.number  # of a retried trial it is that of the first one
    )
