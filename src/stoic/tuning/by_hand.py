"""Results that people report by hand."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from stoic.data import IS_NAN, FailureKind
from stoic.integrations.optuna import CENSORED, EXECUTED, FAILED, NOISE
from stoic.integrations.optuna.executed import check_inside
from stoic.integrations.optuna.internals import constraints, storage_of, store_constraints, trial_id
from stoic.integrations.optuna.objectives import VALUES, objective_names
from stoic.integrations.optuna.possible import stored_possible
from stoic.integrations.optuna.unmodelled import FAILURE, declared_constraints
from stoic.refusal import RefusalError
from stoic.tuning.constraint import observed_constraints
from stoic.tuning.objectives import stored_objectives
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
    noise: float | Sequence[float | None] | None = None,
    constraints: Sequence[str] = (),
    censored: bool = False,
) -> FrozenTrial:
    """Finish the trial with this number; nan fails it, and so does a kind of failure.

    Parameters
    ----------
    value:
        Its value, or one for each objective; None for a trial that has none.
    state:
        "complete", "pruned" or "fail"; None for complete, or fail if the value is nan.
    skip:
        True to leave a trial that has ended already as it is.
    kind, noise:
        Kind of failure, and noise variance of the value, or one for each; None if there is none, or
        if unknown.
    executed, constraints:
        NAME=VALUE of parameters that were run as something else, and of outputs with a limit.
    censored:
        True if the value is a bound, at least as bad as which the result would have been: then the
        trial is pruned, and no software takes the bound for a result.
    """
    excess = observed_constraints(study, constraints)
    values = [value] if isinstance(value, int | float) else list(value or ())
    _check_count(study, number, value, values)
    refused = f"Cannot tell trial {number}"
    no_number = any(map(math.isnan, values))
    some = no_number and not all(map(math.isnan, values))
    notes: dict[str, object] = {}
    if censored:
        if len(values) != 1 or not math.isfinite(values[0]):
            raise RefusalError(f"{refused}: a bound is a number, got {value}.")
        if kind is not None or state not in (None, "pruned"):
            said = f"the state {state}" if kind is None else "a failure"
            raise RefusalError(f"{refused}: a bound does not go with {said}.")
        notes[CENSORED] = values[0]
        value, values, state = None, [], "pruned"
    if state is None:
        state = "fail" if no_number or (kind is not None and value is None) else "complete"
    if state == "fail" and no_number:
        value = None
    if kind is None and value is not None and state != "complete":
        raise RefusalError(f"{refused}: a value does not go with the state {state}.")
    if no_number and state == "complete":
        raise RefusalError(f"{refused}: nan does not go with the state complete.")
    if some and state == "fail":
        notes[VALUES] = as_stored(values)
    elif no_number:
        notes[FAILURE] = IS_NAN if len(values) == 1 else "all values are nan"
    if kind is not None:
        if state != "fail" or value is not None:
            said = f"the value {value!r}" if value is not None else f"the state {state}"
            raise RefusalError(f"{refused}: a failure does not go with {said}.")
        notes[FAILED] = kind
    if executed:
        notes[EXECUTED] = _parse_executed(study, number, executed)
    if noise is not None:
        notes[NOISE] = noise
    # Once nothing is refused any more, and before the end: a finished trial takes no attributes.
    # For one that is not running, ``study.tell`` reports the error.
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        if trial.number == number:
            _annotate(study, trial, notes, excess)
    try:
        ended = TrialState[state.upper()]
        return study.tell(number, None if value is None else values, ended, skip_if_finished=skip)
    except (ValueError, UpdateFinishedTrialError) as error:
        trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        if number not in trials:
            raise RefusalError(f"{refused}: {_there(study, len(trials))}.") from error
        if trials[number].state.is_finished():
            state = trials[number].state.name.lower()
            options = [f"--{o.direction} {shlex.quote(o.name)}" for o in stored_objectives(study)]
            options = options or [f"--direction {study.direction.name.lower()}"]
            limits = declared_constraints(study).values()
            options += [f"--constraint {shlex.quote(written)}" for written in limits]
            if (possible := stored_possible(study)) is not None:
                options.append(f"--possible {possible.low:g} {possible.high:g}")
            raise RefusalError(
                f"{refused}: it has ended ({state}), and a result cannot be changed where it is. "
                "What was measured again is a row of a table without numbers, for `stoic tell "
                "--csv`. To correct it, write the study to a file with `stoic trials -f csv`, "
                "correct it there, and make a new study of that, without the trials that run now, "
                f"with `stoic create-study --from-csv FILE {' '.join(options)}` and its parameters."
            ) from error
        raise RefusalError(f"{refused}: {error}") from error


def end_running(study: optuna.Study, trial: FrozenTrial, row: FrozenTrial) -> None:
    """End a running trial as the row of a table says."""
    notes, values, state = dict(row.user_attrs), row.values, row.state
    if CENSORED in notes:
        notes[CENSORED], values, state = row.value, None, TrialState.PRUNED
    _annotate(study, trial, notes, constraints(row))
    # Somebody else may have ended it meanwhile
    study.tell(trial.number, values, state, skip_if_finished=True)


def _annotate(
    study: optuna.Study,
    trial: FrozenTrial,
    notes: Mapping[str, object],
    excess: Mapping[str, float],
) -> None:
    """Store what belongs to the result of a running trial, unless somebody else has ended it."""
    storage = storage_of(study)
    with contextlib.suppress(UpdateFinishedTrialError):
        for name, note in notes.items():
            storage.set_trial_user_attr(trial_id(trial), name, note)
        if excess:
            store_constraints(study, trial, excess)


def _there(study: optuna.Study, count: int) -> str:
    numbers = {0: "no trial", 1: "trial 0 alone"}.get(count, f"trials 0 to {count - 1}")
    return f"the study {study.study_name!r} has {numbers}"


def _check_count(study: optuna.Study, number: int, value: object, values: Sequence[float]) -> None:
    """Refuse another number of values than the study has objectives."""
    if value is None or len(values) == len(study.directions):
        return
    count = f"{len(values)} value{'s' * (len(values) != 1)}"
    if not (names := ", ".join(objective_names(study))):
        raise RefusalError(
            f"One trial at a time: got {count}, and the study {study.study_name!r} has one "
            "objective. A second measurement is a trial of its own, of `stoic ask --fix`, or a row "
            "of a table without numbers, for `stoic tell --csv`."
        )
    raise RefusalError(
        f"Got {count} for trial {number}, and the study {study.study_name!r} has {names}: give one "
        "of each, and nan for what is not known."
    )


def _parse_executed(study: optuna.Study, number: int, texts: Sequence[str]) -> dict[str, Any]:
    trials = study.get_trials(deepcopy=False)
    space = trials[number].distributions if 0 <= number < len(trials) else {}
    return {
        name: check_inside(name, parse_as(space.get(name), value), space)
        for name, value in parse_named(texts).items()
    }
