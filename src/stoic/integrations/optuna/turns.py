"""Turns of the workers on one study, so that each knows what the others have chosen.

A trial is running from the moment its number exists, and has parameters only when they have been
chosen, which takes a fit of the model. Two workers that choose at the same time would not see each
other, and find the same point. So the later number waits until the earlier ones have announced
their parameters, in an attribute of their trial. Only what depends on them waits: who is not next
fits its model meanwhile, and counts as pending what ended since.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.internals import storage_of, trial_id

CHOSEN = "stoic:chosen"  # system attribute: parameter -> what Optuna stores for its value

_LONGEST = 5.0  # seconds until a silent worker is taken for dead, or for another sampler
_POLL, _SELDOM = 0.01, 0.04  # seconds between two looks for each trial before, if few and if many
_SOON = 8  # few


class Turns:
    """Order of choosing; trials that were waited for in vain are not waited for again."""

    def __init__(self) -> None:
        self._silent: set[int] = set()  # identities of trials

    def wait(self, study: Study, trial: FrozenTrial, prepare: Callable[[], None]) -> bool:
        """Wait until the trials with a lower number have chosen, or have taken too long.

        However many there are: only while none of them chooses does time count. Then the first one
        is taken for dead, since the others wait for it, too, and there is half as much time for the
        next: a row of dead ones costs no more than two.

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
        waited_for: list[int] = []
        prepared_for = math.inf
        since, patience = time.monotonic(), _LONGEST
        while True:
            trials = study.get_trials(deepcopy=False)
            choosing = [trial_id(t) for t in trials if t.number < trial.number and _chooses(t)]
            left = [one for one in choosing if one not in self._silent]
            if not left:
                return prepared_for < math.inf
            if prepared_for == math.inf or len(left) <= _SOON < prepared_for:
                prepare()
                prepared_for = len(left)
                continue
            if left != waited_for:
                waited_for, since, patience = left, time.monotonic(), _LONGEST
            elif time.monotonic() - since > patience:
                self._silent.add(waited_for.pop(0))
                since, patience = time.monotonic(), patience / 2.0
                continue
            if len(left) > _SOON:
                time.sleep(_SELDOM * len(left))
            else:
                _wait_for(study, left[-1], _POLL * len(left), since + patience)


def _wait_for(study: Study, one: int, interval: float, until: float) -> None:
    """Look at one trial until it has chosen, which it does after those before it.

    To look at all trials takes the time of a choice where sixty are running.
    """
    while True:
        time.sleep(interval)
        if time.monotonic() > until or not _chooses(storage_of(study).get_trial(one)):
            return


def announce(
    study: Study, trial: FrozenTrial, params: Mapping[str, Any], space: Mapping[str, Any]
) -> None:
    """Store what a trial will run, before it has its parameters."""
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
    return (
        trial.state == TrialState.RUNNING and not trial.params and CHOSEN not in trial.system_attrs
    )
