"""Confirming measurements of a campaign, shared by its workers."""

from __future__ import annotations

from collections.abc import Sequence

import optuna
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.integrations.confirming import CONFIRM, Confirmation, confirms, next_confirmation
from stoic.integrations.optuna_internals import begin_trial, fixed_attrs, storage_of, trial_id
from stoic.tuning.space import Space
from stoic.tuning.study import WORKER, choose
from stoic.tuning.worker import Worker

_SHOWN = 5  # candidates


def confirmations(trials: Sequence[FrozenTrial]) -> int:
    """Count the confirming measurements that were begun."""
    return sum(confirms(trial) and trial.state != TrialState.WAITING for trial in trials)


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
    before = [t for t in study.get_trials(deepcopy=False) if t.number < trial.number]
    if confirmations(before) >= measurements:
        storage = storage_of(study)
        storage.set_trial_system_attr(trial_id(trial), WORKER, None)
        storage.set_trial_state_values(trial_id(trial), state=TrialState.WAITING)
        return None
    choose(trial, space)
    return trial


def confirmation_lines(found: Confirmation | None) -> list[str]:
    """Format for people: the outcome, and the candidates that are left."""
    if found is None:
        return []
    lines = [f"confirmed      {found.sentence()}"]
    for candidate in found.candidates[:_SHOWN]:
        count, failed = candidate.measurements, candidate.failures
        lines.append(
            f"  trial {candidate.number}: {candidate.mean:.6g} +- {candidate.std:.2g}, best with "
            f"probability {candidate.probability:.2f}, measured {count} time{'s' * (count != 1)}"
            + f", failed {failed} time{'s' * (failed != 1)}"
            * bool(failed)
        )
    rest = len(found.candidates) - _SHOWN
    return lines + [f"  and {rest} more, see stoic show --json"] * (rest > 0)
