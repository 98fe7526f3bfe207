"""Studies that several workers share, any of which may be killed at any instant."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import CENSORED, EXECUTED, FAILED, NOISE, failure_kind
from stoic.integrations.optuna.encoding import as_written
from stoic.integrations.optuna.executed import check_executed
from stoic.integrations.optuna.internals import (
    begin_trial,
    fixed_attrs,
    storage_of,
    store_constraints,
    trial_id,
    unfix,
)
from stoic.integrations.optuna.objectives import VALUES, check_objectives, objective_names
from stoic.printable import printable
from stoic.refusal import RefusalError
from stoic.tuning.constraint import told_constraints
from stoic.tuning.mark import kill_marked, seal, visible
from stoic.tuning.objectives import (
    Direction,
    Objective,
    goal_of,
    merge_objectives,
)
from stoic.tuning.program import Result
from stoic.tuning.space import Space, parse_as, parse_named
from stoic.tuning.storage import TROUBLE, cause, open_storage, patiently
from stoic.tuning.stored import COMMAND, DIRECTORY, SPACE, as_data, check_stored, known_space
from stoic.tuning.worker import Worker

WORKER = "stoic:worker"  # of a trial: the worker that runs it
PROGRAM = "stoic:program"  # of a trial: the process it runs, for people
SEAL = "stoic:run"  # of a trial: digest of the mark of what it runs
FAILURE = "failure"  # of a trial: why it has no value
ERRORS = "stderr"  # of a trial: the end of its program's standard error

log = logging.getLogger(__name__)


def open_study(
    storage: BaseStorage,
    name: str | None,
    direction: Direction | Sequence[Objective],
    space: Space,
    sampler: BaseSampler,
    command: tuple[str, ...] | None = None,
    directory: Path | None = None,
) -> optuna.Study:
    """Create a study, or load the one of that name.

    The command and its directory are recorded with a new one. With several objectives they are
    given instead of a direction.

    Raises
    ------
    RefusalError
        If it exists with another direction, other objectives or another search space, or the
        storage fails.
    """
    objectives = () if isinstance(direction, str) else tuple(direction)

    def opened() -> optuna.Study:
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            directions=[direction]
            if isinstance(direction, str)
            else [each.direction for each in direction],
            sampler=sampler,
            load_if_exists=True,
        )
        if objectives:
            name_objectives(study, objectives)
            merge_objectives(study, objectives)
        elif (stored := goal_of(study)) != direction:
            raise RefusalError(
                f"The study {study.study_name!r} exists and is to {stored}, not to {direction}: "
                "give another --study-name or the same direction."
            )
        adopt_space(study, space)
        if command is not None and study.user_attrs.get(COMMAND) is None:
            study.set_user_attr(COMMAND, list(command))
            if directory is not None:
                study.set_user_attr(DIRECTORY, str(directory.absolute()))
        return study

    return patiently(opened, f"Could not open the study {name!r}")


def name_objectives(study: optuna.Study, objectives: Sequence[Objective]) -> None:
    """Record the names of the objectives with a new study."""
    if study.metric_names is None and len(study.directions) == len(objectives):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names([objective.name for objective in objectives])


def adopt_space(study: optuna.Study, space: Space) -> None:
    """Record the search space of a new study; refuse another one than a study has."""
    known = known_space(study)
    if known is None:
        record = {key: json.loads(distribution_to_json(value)) for key, value in space.items()}
        study.set_user_attr(SPACE, record)
    elif known != space:
        raise RefusalError(
            f"The study {study.study_name!r} exists with another search space "
            f"({_difference(known, space)}): give another --study-name or the same parameters."
        )


def find_study(storage: BaseStorage, name: str) -> optuna.Study | None:
    """Load the study of that name, None if there is none."""

    def load() -> optuna.Study | None:
        try:
            study = optuna.load_study(storage=storage, study_name=name)
        except KeyError:
            return None
        check_objectives(study)
        check_stored(study)
        return study

    what = f"Could not look for the study {name!r}"
    with as_data(what):
        return patiently(load, what)


def load_study(
    storage: BaseStorage, name: str | None, sampler: BaseSampler | None = None
) -> optuna.Study:
    """Load the study of that name, or without a name the only one there is.

    Raises
    ------
    RefusalError
        If there is no such study, or it has too many objectives.
    """
    with as_data("Cannot read the storage"):
        study = _load(storage, name, sampler)
    check_objectives(study)
    check_stored(study)
    return study


def earlier_studies(
    named: Sequence[str], storage: BaseStorage | None, own: str | None
) -> list[optuna.Study]:
    """Load the studies that inform a new one: NAME in ``storage``, or URL::NAME in another one.

    Raises
    ------
    RefusalError
        If one of them does not exist, or is the study itself, of the name ``own``; and if it
        should be in ``storage``, which is None if that is empty.
    """
    found = []
    for text in named:
        url, elsewhere, name = text.rpartition("::")
        if not name or (elsewhere and not url):
            raise RefusalError(
                f"A warm start is the NAME of a study, or STORAGE::NAME, got {text!r}."
            )
        if not elsewhere and name == own:
            raise RefusalError(f"The study {own!r} cannot warm itself.")
        if not elsewhere and storage is None:
            raise RefusalError(
                f"There is no study {name!r} in the storage, which is new: for one in another "
                f"storage give STORAGE::{name}."
            )
        opened = open_storage(url, create=False, only_read=True) if elsewhere else storage
        assert opened is not None
        found.append(load_study(opened, name))
    return found


def _load(storage: BaseStorage, name: str | None, sampler: BaseSampler | None) -> optuna.Study:
    try:
        if name is None:
            names = optuna.get_all_study_names(storage)
            if len(names) != 1:
                raise RefusalError(
                    f"The storage holds {len(names)} studies ({', '.join(names)}): "
                    "say which with --study-name."
                    if names
                    else "The storage holds no study."
                )
            name = names[0]
        return optuna.load_study(storage=storage, study_name=name, sampler=sampler)
    except KeyError as error:
        raise RefusalError(
            f"There is no study {name!r} in the storage; "
            f"it holds {', '.join(optuna.get_all_study_names(storage)) or 'none'}."
        ) from error
    except TROUBLE as error:
        raise RefusalError(f"Cannot read the storage: {cause(error)}.") from error


def _difference(known: Space, asked: Space) -> str:
    for name in known.keys() | asked.keys():
        if name not in asked:
            return f"it has {name!r}, the request does not"
        if name not in known:
            return f"it has no {name!r}"
        if known[name] != asked[name]:
            it, request = as_written(known[name]), as_written(asked[name])
            return f"{name!r} is {it} in it, and {request} in the request"
    raise AssertionError("the spaces are equal")


def claim(
    study: optuna.Study,
    space: Space,
    trials: int,
    me: Worker,
    fixed: Mapping[str, Any] | None = None,
) -> Trial | None:
    """Claim the next trial of a study that shall have ``trials`` of them; None if all are taken.

    Parameters in ``fixed`` have the values there; one that is waiting in the queue has its own.

    The storage gives out the numbers 0 to ``trials`` - 1, each once. The trial carries the name of
    its worker from the moment it exists, which distinguishes a death from a long run.
    """
    storage = storage_of(study)
    stand = study.get_trials(deepcopy=False)
    taken = [trial for trial in stand if trial.state != TrialState.WAITING]
    if len(taken) >= trials:
        return None
    if len(taken) < len(stand):
        trial = study.ask()  # queued by the user, or by a worker that took one too many
        storage.set_trial_system_attr(trial_id(trial), WORKER, me.record())
    else:
        trial = begin_trial(study, {WORKER: me.record()} | fixed_attrs(fixed or {}))
    if trial.number >= trials:  # another worker was quicker: back into the queue, for a longer run
        storage.set_trial_system_attr(trial_id(trial), WORKER, None)
        if fixed:  # which holds for this run only
            unfix(study, trial)
        storage.set_trial_state_values(trial_id(trial), state=TrialState.WAITING)
        return None
    choose(trial, space)
    return trial


def choose(trial: Trial, space: Space) -> None:
    """Suggest the parameters of a trial; a queued one keeps those it was queued with.

    Raises
    ------
    RefusalError
        If a queued value is none of its parameter's: it would stand in a program's arguments.
    """
    value: object
    with as_data(f"Cannot begin trial {trial.number} with what is stored for it"):
        for name, d in space.items():
            if isinstance(d, FloatDistribution):
                value = trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
                valid = isinstance(value, Real) and math.isfinite(value)
            elif isinstance(d, IntDistribution):
                value = trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
                valid = isinstance(value, Integral)
            elif isinstance(d, CategoricalDistribution):
                value = trial.suggest_categorical(name, d.choices)
                valid = any(value is c or (type(value), value) == (type(c), c) for c in d.choices)
            else:
                raise AssertionError(f"Optuna has no parameter of the kind {d!r}")
            if not valid:
                raise ValueError(f"{name} is {value!r} there, which is no value of {name}")


def record_run(trial: Trial, mark: str, me: Worker) -> None:
    """Record the seal of a run before it starts, so that others can end it if its worker dies."""
    with contextlib.suppress(UpdateFinishedTrialError):  # somebody else ended it, just now
        trial.storage.set_trial_system_attr(trial_id(trial), SEAL, seal(mark, me))


def record_program(trial: Trial, pid: int, me: Worker) -> None:
    """Record the process that a trial runs, for whoever has to stop it by hand."""
    with contextlib.suppress(UpdateFinishedTrialError):
        record = Worker.of(pid, me).record()
        trial.storage.set_trial_system_attr(trial_id(trial), PROGRAM, record)


def finish(study: optuna.Study, trial: Trial, result: Result) -> FrozenTrial:
    """Store how a trial ended: its value and what belongs to it, or its failure.

    Raises
    ------
    RefusalError
        If the storage failed; the message holds the value, so that it is not lost.
    """
    if result.value is not None:
        value = list(result.values) or result.value

        def tell() -> FrozenTrial:
            with contextlib.suppress(UpdateFinishedTrialError):
                _note_beside(study, trial, result)
            return study.tell(trial, value, skip_if_finished=True)

        what = f"Could not store the value {value!r} of trial {trial.number}"
        return patiently(tell, what)
    if result.pruned:

        def prune() -> FrozenTrial:
            with contextlib.suppress(UpdateFinishedTrialError):
                _note_beside(study, trial, result)
            return study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)

        what = f"Could not store that trial {trial.number} was pruned ({result.failure})"
        return patiently(prune, what)

    def fail() -> FrozenTrial:
        with contextlib.suppress(UpdateFinishedTrialError):
            _note_beside(study, trial, result)
            if result.values:  # of some objectives: Optuna stores values of complete trials alone
                trial.set_user_attr(VALUES, as_stored(result.values))
            trial.set_user_attr(FAILURE, result.failure)
            if result.kind is not None:
                trial.set_user_attr(FAILED, result.kind)
            if result.errors.strip():
                trial.set_user_attr(ERRORS, result.errors.strip()[-1000:])
        return study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)

    return patiently(fail, f"Could not store that trial {trial.number} failed ({result.failure})")


def _note_beside(study: optuna.Study, trial: Trial, result: Result) -> None:
    """Store what must be there before the value: executed parameters, noise, constraints."""
    if result.constraints:
        store_constraints(study, trial, result.constraints)
    if result.executed is not None:
        trial.set_user_attr(EXECUTED, dict(result.executed))
    noise = result.noise if result.noises is None else list(result.noises)
    if noise is not None:
        trial.set_user_attr(NOISE, noise)
    if result.bound is not None:
        trial.set_user_attr(CENSORED, result.bound)


def as_stored(values: Iterable[float]) -> list[float | None]:
    """Return values as a list that JSON can hold, None for nan."""
    return [None if math.isnan(value) else value for value in values]


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
    excess = told_constraints(study, constraints)
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
    if censored:
        if len(values) != 1 or not math.isfinite(values[0]):
            raise RefusalError(f"Cannot tell trial {number}: a bound is a number, got {value}.")
        if kind is not None or state not in (None, "pruned"):
            said = f"the state {state}" if kind is None else "a failure"
            raise RefusalError(f"Cannot tell trial {number}: a bound does not go with {said}.")
        _note(study, number, CENSORED, values[0])
        value, values, state = None, [], "pruned"
    if state is None:
        state = "fail" if no_number or (kind is not None and value is None) else "complete"
    if state == "fail" and no_number:
        value = None
    if some and state == "fail":
        _note(study, number, VALUES, as_stored(values))
    if kind is not None:
        if state != "fail" or value is not None:
            said = f"the value {value!r}" if value is not None else f"the state {state}"
            raise RefusalError(f"Cannot tell trial {number}: a failure does not go with {said}.")
        _note(study, number, FAILED, kind)
    if executed:
        _note(study, number, EXECUTED, _parse_executed(study, number, executed))
    if noise is not None:
        _note(study, number, NOISE, noise)
    if excess:
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.number == number:
                with contextlib.suppress(UpdateFinishedTrialError):
                    store_constraints(study, trial, excess)
    try:
        ended = TrialState[state.upper()]
        return study.tell(number, None if value is None else values, ended, skip_if_finished=skip)
    except (ValueError, UpdateFinishedTrialError) as error:
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


def fail_orphans(study: optuna.Study) -> list[int]:
    """Mark the running trials of dead workers as failed, and stop what they left running.

    The parameters are not the cause: the failure is transient. Trials of living workers, of other
    machines and of unknown workers stay as they are.

    Returns
    -------
    numbers:
        Of these trials.
    """
    storage = storage_of(study)
    lost = [
        (trial, worker)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        if (worker := Worker.from_record(trial.system_attrs.get(WORKER))) is not None
        and worker.alive is False
    ]
    _kill_left(lost)
    failed = []
    for trial, _ in lost:
        with contextlib.suppress(UpdateFinishedTrialError):  # by another worker, just now
            if FAILURE not in trial.user_attrs:
                storage.set_trial_user_attr(trial_id(trial), FAILURE, "its worker died")
                storage.set_trial_user_attr(trial_id(trial), FAILED, "transient")
            storage.set_trial_state_values(trial_id(trial), state=TrialState.FAIL)
            failed.append(trial.number)
    return failed


def _kill_left(lost: Sequence[tuple[FrozenTrial, Worker]]) -> None:
    """Kill what dead workers left running, as far as it can be identified.

    Whoever writes to the storage can write these records, so no process id is taken from it.
    """
    ran = [(trial, worker) for trial, worker in lost if SEAL in trial.system_attrs]
    if not ran:
        return
    if visible():
        seals = [(worker, trial.system_attrs[SEAL]) for trial, worker in ran]
        kill_marked(lambda mark: any(seal(mark, worker) == sealed for worker, sealed in seals))
        return
    for trial, _ in ran:
        program = Worker.from_record(trial.system_attrs.get(PROGRAM))
        log.warning(
            "The worker of trial %d died, and this system does not show of which run a process is: "
            "if its program (%s, says the storage) still runs, stop it yourself.",
            trial.number,
            printable(program or "of a number that is not recorded"),
        )


def holder(trial: FrozenTrial) -> tuple[str, bool | None]:
    """Return the worker of a trial, in words, and whether it is alive; None if unknown."""
    worker = Worker.from_record(trial.system_attrs.get(WORKER))
    if worker is None:
        return "somebody who left no name", None
    return str(worker), worker.alive


def failures(trials: list[FrozenTrial]) -> Mapping[str, list[int]]:
    """Return reason -> numbers of the trials that failed for it, the most frequent first."""
    reasons: dict[str, list[int]] = {}
    for trial in trials:
        if trial.state == TrialState.FAIL:
            reason: Any = trial.user_attrs.get(FAILURE, "no reason recorded")
            reasons.setdefault(str(reason), []).append(trial.number)
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def last_error(trial: FrozenTrial) -> str:
    """Return the last line that a trial's program wrote to standard error; empty without any."""
    said = trial.user_attrs.get(ERRORS)
    return str(said).splitlines()[-1] if said else ""


def failure_kinds(trials: list[FrozenTrial]) -> Mapping[int, FailureKind]:
    """Return number -> kind of failure, for the failed trials of which it is known."""
    kinds = {trial.number: failure_kind(trial) for trial in trials}
    return {number: kind for number, kind in kinds.items() if kind is not None}


def failed_numbers(trials: list[FrozenTrial]) -> list[int]:
    """Return the numbers of the failed trials, in order."""
    return [trial.number for trial in trials if trial.state == TrialState.FAIL]
