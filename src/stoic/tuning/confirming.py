"""Confirming measurements of a campaign, shared by its workers."""

from __future__ import annotations

import optuna
from optuna.trial import Trial, TrialState

from stoic.integrations.optuna.confirming import CONFIRM, confirmations, next_confirmation
from stoic.integrations.optuna.internals import begin_trial, fixed_attrs, storage_of, trial_id
from stoic.tuning.space import Space
from stoic.tuning.trials import WORKER, choose_or_end
from stoic.tuning.worker import Worker


def claim_confirmation(
    study: optuna.Study, space: Space, measurements: int, me: Worker
) -> Trial | None:
    """Claim the next of ``measurements`` confirming trials; None if all are taken, or settled.

    It carries its mark and the name of its worker from the moment it exists. If other workers were
    quicker, it goes back into the queue, for a longer run.
    """
    trials = study.get_trials(deepcopy=False)
    if confirmations(trials) >= measurements:
        return None
    if (params := next_confirmation(study, trials)) is None:
        return None
    attributes = {WORKER: me.record()} | fixed_attrs(params)
    trial = begin_trial(study, attributes, {CONFIRM: True})
    # Of those that began at once the lowest numbers count, whichever worker looks
    before = [t for t in study.get_trials(deepcopy=False) if t.number < trial.number]
    if confirmations(before) >= measurements:
        storage = storage_of(study)
        # Before it waits, as in claim()
        storage.set_trial_system_attr(trial_id(trial), WORKER, None)
        storage.set_trial_state_values(trial_id(trial), state=TrialState.WAITING)
        return None
    choose_or_end(trial, space)
    return trial
