"""Results that people report by hand."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import CENSORED, EXECUTED, FAILED, NOISE
from stoic.integrations.optuna.executed import check_executed
from stoic.integrations.optuna.internals import (
    storage_of,
    store_constraints,
    trial_id,
)
from stoic.integrations.optuna.objectives import VALUES, objective_names
from stoic.refusal import RefusalError
from stoic.tuning.constraint import observed_constraints
from stoic.tuning.space import parse_as, parse_named
from stoic.tuning.trials import as_stored


def tell_number(
    study: optuna.Study,
    number: int,
    value: float | Sequence[float] | None,
    state: str | None,
    skip: bool,
    kind: FailureKind | None = None,
    executed: Sequence[str] = (),
    noise: float | None = None,
    constraints: Sequence[str] = (),
    censored: bool = False,
) -> FrozenTrial:
    """Finish the trial with this number; nan fails it, and so does a kind of failure.

    Parameters
    ----------
    number:
        Of the trial.
    value:
        Its value, or one for each objective; None for a trial that has none.
    state:
        "complete", "pruned" or "fail"; None for complete, or fail if the value is nan.
    skip:
        True to leave a trial that has ended already as it is.
    kind:
        Kind of failure, None if it did not fail, or if unknown.
    executed:
        NAME=VALUE of the parameters that were run as something else.
    noise:
        Noise variance of the value, None if unknown.
    constraints:
        NAME=OUTPUT of outputs that have a limit.
    censored:
        True if the value is a bound, at least as bad as which the result would have been: then the
        trial is pruned, and no software takes the bound for a result.

    Raises
    ------
    RefusalError
        If there is no such trial, it has ended, value and state do not fit together, a parameter
        cannot have been run as that, or the study has no such constraint.
    """
    excess = observed_constraints(study, constraints)
    values = [value] if isinstance(value, int | float) else list(value or ())
    if value is not None and len(values) != len(study.directions):
        count = f"{len(values)} value{'s' * (len(values) != 1)}"
        if not (names := ", ".join(objective_names(study))):
            raise RefusalError(
                f"One trial at a time: got {count}, and the study {study.study_name!r} has one "
                "objective."
            )
        raise RefusalError(
            f"Cannot tell trial {number} {count}: the study {study.study_name!r} has {names}, and "
            "each needs one; nan for what is not known."
        )
    no_number = any(map(math.isnan, values))
    some = no_number and not all(map(math.isnan, values))
    notes: dict[str, object] = {}
    if censored:
        if len(values) != 1 or not math.isfinite(values[0]):
            raise RefusalError(f"Cannot tell trial {number}: a bound is a number, got {value}.")
        if kind is not None or state not in (None, "pruned"):
            said = f"the state {state}" if kind is None else "a failure"
            raise RefusalError(f"Cannot tell trial {number}: a bound does not go with {said}.")
        notes[CENSORED] = values[0]
        value, values, state = None, [], "pruned"
    if state is None:
        state = "fail" if no_number or (kind is not None and value is None) else "complete"
    if state == "fail" and no_number:
        value = None
    if kind is None and value is not None and state != "complete":
        raise RefusalError(
            f"Cannot tell trial {number}: a value does not go with the state {state}."
        )
    if no_number and state == "complete":
        raise RefusalError(f"Cannot tell trial {number}: nan does not go with the state complete.")
    if some and state == "fail":
        notes[VALUES] = as_stored(values)
    if kind is not None:
        if state != "fail" or value is not None:
            said = f"the value {value!r}" if value is not None else f"the state {state}"
            raise RefusalError(f"Cannot tell trial {number}: a failure does not go with {said}.")
        notes[FAILED] = kind
    if executed:
        notes[EXECUTED] = _parse_executed(study, number, executed)
    if noise is not None:
        notes[NOISE] = noise
    # Once nothing is refused any more, and before the end: a finished trial takes no attributes
    for name, note in notes.items():
        _note(study, number, name, note)
    if excess:
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.number == number:
                with contextlib.suppress(UpdateFinishedTrialError):
                    store_constraints(study, trial, excess)
    try:
        ended = TrialState[state.upper()]
        return study.tell(number, None if value is None else values, ended, skip_if_finished=skip)
    except (ValueError, UpdateFinishedTrialError) as error:
        for trial in study.get_trials(deepcopy=False):
            if trial.number == number and trial.state.is_finished():
                raise RefusalError(
                    f"Cannot tell trial {number}: it has ended ({trial.state.name.lower()})."
                ) from error
        raise RefusalError(f"Cannot tell trial {number}: {error}") from error


def _parse_executed(study: optuna.Study, number: int, texts: Sequence[str]) -> dict[str, Any]:
    trials = study.get_trials(deepcopy=False)
    space = trials[number].distributions if 0 <= number < len(trials) else {}
    written = parse_named(texts)
    return {
        name: check_executed(name, parse_as(space.get(name), value), space)
        for name, value in written.items()
    }


def _note(study: optuna.Study, number: int, attribute: str, value: object) -> None:
    """Set an attribute of a running trial; for any other, ``study.tell`` reports the error."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.number == number:
            with contextlib.suppress(UpdateFinishedTrialError):
                storage_of(study).set_trial_user_attr(trial_id(trial), attribute, value)
