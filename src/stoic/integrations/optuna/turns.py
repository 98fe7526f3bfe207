"""Turns of the workers on one study, so that each knows what the others have chosen.

A trial is running from the moment its number exists, and has parameters only when they have been
chosen, which takes a fit of the model. Two workers that choose at the same time would not see each
other, and find the same point. So the later number waits until the earlier ones have announced
their parameters, in an attribute of their trial.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.internals import storage_of, trial_id

CHOSEN = "stoic:chosen"  # system attribute: parameter -> what Optuna stores for its value

_LONGEST = 5.0  # seconds until a silent worker is taken for dead, or for another sampler


class Turns:
    """Order of choosing; trials that were waited for in vain are not waited for again."""

    def __init__(self) -> None:
        self._silent: set[int] = set()  # identities of trials

    def wait(self, study: Study, trial: FrozenTrial) -> None:
        """Wait until the trials with a lower number have chosen, or have taken too long."""
        until = time.monotonic() + _LONGEST
        while True:
            trials = study.get_trials(deepcopy=False)
            choosing = [trial_id(t) for t in trials if t.number < trial.number and _chooses(t)]
            if set(choosing) <= self._silent:
                return
            if time.monotonic() > until:
                self._silent.update(choosing)
                return
            time.sleep(0.01)


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
