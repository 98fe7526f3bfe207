"""Life of a trial: begun, run, finished, or failed when its worker died."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import CENSORED, EXECUTED, FAILED, NOISE, failure_kind
from stoic.integrations.optuna.confirming import confirmations, confirms, next_confirmation
from stoic.integrations.optuna.coordinates import Branches
from stoic.integrations.optuna.internals import (
    begin_trial,
    fixed_attrs,
    fixed_params,
    leaves_out,
    storage_of,
    store_constraints,
    trial_id,
    unfix,
)
from stoic.integrations.optuna.objectives import VALUES
from stoic.integrations.optuna.unmodelled import CONFIRM, FAILURE, branches_of
from stoic.printable import printable
from stoic.tuning.mark import kill_marked, seal, visible
from stoic.tuning.program import Result
from stoic.tuning.space import Space
from stoic.tuning.storage import patiently
from stoic.tuning.stored import as_data
from stoic.tuning.worker import Worker

WORKER = "stoic:worker"  # of a trial: the worker that runs it
PROGRAM = "stoic:program"  # of a trial: the process it runs, for people
SEAL = "stoic:run"  # of a trial: digest of the mark of what it runs
ERRORS = "stderr"  # of a trial: the end of its program's standard error

log = logging.getLogger(__name__)


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
    its worker from the moment it exists, or right after it was taken from the queue, which
    distinguishes a death from a long run.
    """
    stand = study.get_trials(deepcopy=False)
    taken = [trial for trial in stand if trial.state != TrialState.WAITING]
    if len(taken) >= trials:
        return None
    if len(taken) < len(stand):
        trial = study.ask()  # queued by the user, or by a worker that took one too many
        trial.storage.set_trial_system_attr(trial_id(trial), WORKER, me.record())
    else:
        trial = begin_trial(study, {WORKER: me.record()} | fixed_attrs(fixed or {}))
    if trial.number >= trials:
        if fixed:  # which holds for this run only
            unfix(study, trial)
        _put_back(trial)
        return None
    choose_or_end(trial, space)
    return trial


def claim_confirmation(
    study: optuna.Study, space: Space, measurements: int, me: Worker
) -> Trial | None:
    """Claim the next of ``measurements`` confirming trials; None if all are taken, or settled.

    It carries its mark and the name of its worker from the moment it exists.
    """
    trials = study.get_trials(deepcopy=False)
    if confirmations(trials) >= measurements:
        return None
    if (params := next_confirmation(study, trials)) is None:
        return None
    trial = begin_trial(study, {WORKER: me.record()} | fixed_attrs(params), {CONFIRM: True})
    # Of those that began at once the lowest numbers count, whichever worker looks
    before = [t for t in study.get_trials(deepcopy=False) if t.number < trial.number]
    if confirmations(before) >= measurements:
        _put_back(trial)
        return None
    choose_or_end(trial, space, branches_of(trials))
    return trial


def _put_back(trial: Trial) -> None:
    """Put a trial into the queue, for a longer run: another worker was quicker."""
    # Before it waits: from then on another worker may take it and write its own name
    trial.storage.set_trial_system_attr(trial_id(trial), WORKER, None)
    trial.storage.set_trial_state_values(trial_id(trial), state=TrialState.WAITING)


def choose_or_end(
    trial: Trial, space: Space, branches: Mapping[str, Branches] | None = None
) -> None:
    """Suggest the parameters of a trial that has just begun, or end it.

    This process may live on, as a notebook's does after Ctrl-C: then it would run for ever.
    """
    try:
        patiently(lambda: choose(trial, space, branches), f"Could not choose trial {trial.number}")
    except BaseException:
        with contextlib.suppress(Exception):
            trial.set_user_attr(FAILED, "transient")
            trial.storage.set_trial_state_values(trial_id(trial), state=TrialState.FAIL)
        raise


def choose(trial: Trial, space: Space, branches: Mapping[str, Branches] | None = None) -> None:
    """Suggest the parameters of a trial; a queued one keeps those it was queued with.

    A queued value that is none of its parameter's is refused: it would stand in a program's
    arguments. What such a trial lacks, by the others it has, is left out, and a parameter with
    ``branches`` has the range of its branch.
    """
    value: object
    branches = branches or {}
    # A setting that lacks a parameter is measured again without it
    given = fixed_params(trial) if confirms(trial) else space
    with as_data(f"Cannot begin trial {trial.number} with what is stored for it"):
        for name in sorted(space, key=branches.__contains__):  # after what decides
            if name not in given or leaves_out(trial, name):
                continue
            own = branches[name].range_of(trial.params) if name in branches else None
            d = own or space[name]
            if isinstance(d, FloatDistribution):
                # Optuna takes a queued value as it is stored, if float() reads it: it may be a text
                value = trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)
                valid = isinstance(value, Real) and math.isfinite(value)
            elif isinstance(d, IntDistribution):
                value = trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
                valid = isinstance(value, Integral)
            elif isinstance(d, CategoricalDistribution):
                value = trial.suggest_categorical(name, d.choices)
                # True == 1 == 1.0, and a program would be given another text; nan equals nothing,
                # so that it is found by its identity
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

    If the storage fails, the refusal holds the value, so that it is not lost.
    """
    number, values = trial.number, list(result.values) or result.value
    if result.value is not None:
        state, what = TrialState.COMPLETE, f"the value {values!r} of trial {number}"
    elif result.pruned:
        state, what = TrialState.PRUNED, f"that trial {number} was pruned ({result.failure})"
    else:
        state, what = TrialState.FAIL, f"that trial {number} failed ({result.failure})"

    def tell() -> FrozenTrial:
        with contextlib.suppress(UpdateFinishedTrialError):
            _note_beside(study, trial, result)
            if state == TrialState.FAIL or result.is_excluded:
                _note_failure(trial, result)
        # A second attempt may find that the first one did arrive
        if state == TrialState.COMPLETE:
            return study.tell(trial, values, skip_if_finished=True)
        return study.tell(trial, state=state, skip_if_finished=True)

    return patiently(tell, f"Could not store {what}")


def _note_beside(study: optuna.Study, trial: Trial, result: Result) -> None:
    """Store what must be there before the value: executed parameters, noise, constraints."""
    if result.constraints:
        store_constraints(study, trial, result.constraints)
    noise = result.noise if result.noises is None else list(result.noises)
    executed = None if result.executed is None else dict(result.executed)
    for name, note in ((EXECUTED, executed), (NOISE, noise), (CENSORED, result.bound)):
        if note is not None:
            trial.set_user_attr(name, note)


def _note_failure(trial: Trial, result: Result) -> None:
    if result.values:  # of some objectives: Optuna stores values of complete trials alone
        trial.set_user_attr(VALUES, as_stored(result.values))
    if result.kind is not None:
        # First: whoever ends a trial whose worker died adds a reason, and no kind
        trial.set_user_attr(FAILED, result.kind)
    trial.set_user_attr(FAILURE, result.failure)
    if result.errors.strip():
        trial.set_user_attr(ERRORS, result.errors.strip()[-1000:])


def as_stored(values: Iterable[float]) -> list[float | None]:
    """Return values as a list that JSON can hold, None for nan."""
    return [None if math.isnan(value) else value for value in values]


def fail_orphans(study: optuna.Study) -> list[int]:
    """Mark the running trials of dead workers as failed, and stop what they left running.

    The parameters are not the cause: the failure is transient. Trials of living workers, of other
    machines and of unknown workers stay as they are. The numbers of the others are returned.
    """
    storage = storage_of(study)
    lost = [
        (trial, worker)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        if (worker := Worker.from_record(trial.system_attrs.get(WORKER))) is not None
        and worker.alive is False
    ]
    # Before they are marked: only running trials are looked at, so that the next worker does this
    # again if this one is killed meanwhile.
    _kill_left(lost)
    failed = []
    for trial, _ in lost:
        with contextlib.suppress(UpdateFinishedTrialError):  # by another worker, just now
            # Its worker may have stored the reason and died before the trial was ended
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
            some = VALUES in trial.user_attrs  # set by an objective: Optuna says nothing of nan
            unsaid = "not all values are numbers" if some else "no reason recorded"
            reason: Any = trial.user_attrs.get(FAILURE, unsaid)
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
