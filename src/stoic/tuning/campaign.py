"""Optimization loop: claim a trial, evaluate it, store the result, explain the study."""

from __future__ import annotations

import itertools
import logging
import shlex
import signal
import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.integrations.optuna import Explanation
from stoic.integrations.optuna.confirming import confirmations
from stoic.integrations.optuna.internals import begin_trial, fixed_attrs
from stoic.integrations.recipe import Recipe
from stoic.printable import printable
from stoic.refusal import RefusalError
from stoic.tuning.confirming import claim_confirmation
from stoic.tuning.constraint import declare_constraints, merge_constraints
from stoic.tuning.ending import Ending
from stoic.tuning.explaining import Explainer
from stoic.tuning.mark import RUN, new_mark
from stoic.tuning.method import StudyMethod
from stoic.tuning.objectives import merge_objectives, written
from stoic.tuning.program import Result
from stoic.tuning.pruning import PRUNERS, intermediate_values
from stoic.tuning.repeats import repeated, surpassed_in
from stoic.tuning.request import Request, check_objectives
from stoic.tuning.space import Space, parse_fixed
from stoic.tuning.storage import PATIENCE, is_new, open_storage, patiently
from stoic.tuning.stored import known_space, stored_command
from stoic.tuning.study import earlier_studies, find_study, open_study
from stoic.tuning.template import fixed_values
from stoic.tuning.trials import choose, claim, fail_orphans, finish, record_program, record_run
from stoic.tuning.worker import Worker

log = logging.getLogger(__name__)

_HOPELESS = 5  # failures from the start of a run: a typo, rather than a hard problem

Explain = Callable[[], Explanation | None]  # None before there is a value


class HopelessError(RuntimeError):
    """A program that fails from the start; the message is one sentence for the user."""


class Observer:
    """Receiver of the events of a campaign, in their order; this one does nothing with them."""

    def orphaned(self, numbers: list[int]) -> None:
        """Handle trials of dead workers, which have been marked as failed."""

    def begun(self, trial: Trial) -> None:
        """Handle the start of a trial, which has its parameters."""

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """Handle the end of a stored trial; ``explain`` fits the model: call it at most once."""


class Stop:
    """Signal handler that turns SIGINT, SIGTERM and SIGHUP into a flag, so that no step is torn.

    The loop looks at the flag between its steps and while a program runs. A second Ctrl-C is an
    ordinary KeyboardInterrupt. Outside the main thread no signal arrives and none is handled.

    Attributes
    ----------
    signal:
        The first signal that came, None before.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # Ignored as under nohup, or handled by something that is not Python: left alone.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # came from signal.signal

    def __bool__(self) -> bool:
        return self.signal is not None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt


def run(
    study: optuna.Study,
    space: Space,
    trials: int,
    evaluate: Callable[[Trial], Result],
    observer: Observer,
    stop: Stop,
    worker: Worker,
    fixed: Mapping[str, Any] | None = None,
    recipe: Recipe | None = None,
    ending: Ending | None = None,
    keep_going: bool = True,
) -> None:
    """Run trials until a study has ``trials`` finished ones, together with its other workers.

    Parameters in ``fixed`` have the values there. ``recipe`` explains the study. ``ending`` may end
    the search before, and adds confirming measurements. The loop does not wait for trials that
    other workers run at the end.

    Raises
    ------
    HopelessError
        Without ``keep_going``, see :func:`check_start`.
    """
    ending = ending or Ending()
    explainer = Explainer(study, recipe)
    first: list[Result] = []
    while not stop:
        numbers = patiently(
            lambda: fail_orphans(study), "Could not mark the trials of dead workers"
        )
        if numbers:
            observer.orphaned(numbers)
        trial = patiently(
            lambda: _next(study, space, trials, worker, fixed, ending), "Could not begin a trial"
        )
        if trial is None:
            explainer.catch_up()
            return
        # It came while the trial was chosen: the program has not been started
        if stop:
            result = Result(None, "interrupted", "", 0.0, "transient")
        else:
            observer.begun(trial)
            result = evaluate(trial)
        # Before the model is fitted and anything is printed: from here on a kill loses no result
        stored = finish(study, trial, result)
        observer.ended(stored, result, explainer)
        if not keep_going and not stop and len(first) < _HOPELESS:
            first.append(result)
            check_start(study, first, confirming=not trials)  # stoic confirm asks for 0


def check_start(study: optuna.Study, first: Sequence[Result], confirming: bool) -> None:
    """Stop a campaign whose first five results are all of no use.

    Raises
    ------
    HopelessError
        If all fail and the study has no value, or they are ``confirming`` it; or if none has a
        value of some constraint.
    """
    if len(first) < _HOPELESS:
        return
    last = first[-1]
    if all(result.value is None and not result.pruned for result in first):
        if confirming:
            raise HopelessError(
                f"The first {_HOPELESS} measurements failed, the last one so: {last.reason}. "
                "Change the command and run it again: these failures count against no setting."
            )
        if not count_trials(study, {TrialState.COMPLETE}):
            raise HopelessError(
                f"The first {_HOPELESS} trials failed, the last one so: {last.reason}. Change "
                "the program and run the same command again, or say --keep-going."
            )
    for why in sorted(set(last.missing).intersection(*(result.missing for result in first))):
        raise HopelessError(
            f"The first {_HOPELESS} trials say nothing of a constraint, {why}. Change the program "
            "and run the same command again; or the constraint, in a study of another name; or "
            "say --keep-going."
        )


def _next(
    study: optuna.Study,
    space: Space,
    trials: int,
    worker: Worker,
    fixed: Mapping[str, Any] | None,
    ending: Ending,
) -> Trial | None:
    """Claim the next trial of the search, or of the confirmation after it; None at the end."""
    stand = study.get_trials(deepcopy=False)
    confirming = confirmations(stand)
    if not ending.settled(study, stand):
        # Confirming measurements have numbers, too, and are no trials of the search
        trial = claim(study, space, trials + confirming, worker, fixed)
        if trial is not None:
            return trial
    return claim_confirmation(study, space, ending.confirm, worker)


def open_request(
    request: Request, kind: str | None = None, patience: float = PATIENCE
) -> tuple[optuna.Study, StudyMethod]:
    """Create or load the study of a request; return it and the method of its search from now on.

    A refused request creates nothing.
    """
    request.program.check()
    if is_new(request.storage, kind):  # a refused request must create no file
        new = StudyMethod.of(
            None, request.said, request.recipe, request.possible,
            earlier_studies(request.warm_start, None, request.name),
        )  # fmt: skip
        new.check(request.space)
    storage = open_storage(request.storage, create=True, kind=kind, patience=patience)
    warm_start = earlier_studies(request.warm_start, storage, request.name)
    earlier = find_study(storage, request.name)

    def searched_with() -> tuple[StudyMethod, BaseSampler]:
        method = StudyMethod.of(earlier, request.said, request.recipe, request.possible, warm_start)
        method.check(request.space)
        request.ending.check("tolerances, which the study has" if method.aim else None)
        return method, method.sampler(earlier, request.space, request.seed, request.startup)

    method, sampler = patiently(searched_with, f"Could not read the study {request.name!r}")
    constraints = merge_constraints(earlier, request.program.constraints)
    objectives = merge_objectives(earlier, request.program.objectives)
    check_objectives(request, objectives)
    # What is left at its default may not have been given at all
    reading = request.program.reading.written
    if objectives != request.program.objectives and (
        request.direction == "maximize" or reading != "last-line"
    ):
        raise RefusalError(
            f"The study {request.name!r} is to {written(objectives)}, which says what is read and "
            "its directions: leave out direction and value."
        )
    study = open_study(
        storage,
        request.name,
        objectives or request.direction,
        request.space,
        sampler,
        request.program.template.arguments,
        request.program.directory,
    )
    study.pruner = PRUNERS[request.pruner]()
    if constraints:
        patiently(
            lambda: declare_constraints(study, constraints), "Could not record the constraints"
        )
    return study, method


def ask_for(
    study: optuna.Study,
    space: Space | None,
    seed: int | None,
    startup: int,
    fix: Sequence[str],
    recipe: Recipe | None = None,
) -> Trial:
    """Suggest a new trial, by the aim and the recipe of the study.

    Parameters
    ----------
    study:
        To which the trial belongs.
    space:
        Its search space, None for the one that the study was begun with.
    seed, startup:
        Of the sampler.
    fix:
        NAME=VALUE of the fixed parameters.
    recipe:
        Overrides the one that is recorded with the study.

    Raises
    ------
    RefusalError
        If the study has no search space, if a fixed parameter does not exist or cannot have the
        value, or if the recipe cannot be used.
    """
    space = space or known_space(study)
    if not space:
        raise RefusalError(
            f"The study {study.study_name!r} has no search space yet: give its parameters, as in "
            "--param 'x=float(0, 1)'."
        )
    fixed = parse_fixed(fix, space)
    method = StudyMethod.of(study, recipe=recipe)
    method.check(space)
    study.sampler = method.sampler(study, space, seed, startup)
    method.record(study)
    # study.ask() would take a queued trial, which has values of its own
    trial = begin_trial(study, fixed_attrs(fixed)) if fixed else study.ask()
    choose(trial, space)
    return trial


def notes(study: optuna.Study, request: Request, method: StudyMethod) -> list[str]:
    """List what changes from now on: the command, the aim, the recipe."""
    said, earlier = method.replaces(study), stored_command(study)
    if earlier not in (None, request.program.template.arguments):
        words = shlex.join(earlier)
        said.insert(0, f"the storage says that earlier trials ran another command: {words}")
    return said


def count_trials(study: optuna.Study, states: Set[TrialState]) -> int:
    """Count the trials of a study in these states."""
    trials = patiently(lambda: study.get_trials(deepcopy=False), "Could not read the study")
    return sum(trial.state in states for trial in trials)


def run_request(
    study: optuna.Study,
    request: Request,
    method: StudyMethod,
    observer: Observer,
    keep_going: bool = True,
) -> int | None:
    """Carry out a request by running its program; see ``run`` on ``keep_going``.

    Returns
    -------
    signal:
        Number of the signal that stopped it, None if it came to its end.
    """
    worker = Worker.current()
    method.record(study)
    program = replace(
        request.program,
        constraints=merge_constraints(study, request.program.constraints),
        objectives=merge_objectives(study, request.program.objectives),
    )
    missing: set[str] = set()  # rules that were warned of
    surpassed = surpassed_in(study)
    with Stop() as stop:

        def evaluate(trial: Trial) -> Result:
            turn = itertools.count()
            return repeated(
                lambda: measure(trial, next(turn)), request.repeats, lambda: bool(stop), surpassed
            )

        def measure(trial: Trial, repeat: int) -> Result:
            mark, report, reported = new_mark(), intermediate_values(trial), False

            def note_and_report(value: float) -> bool:
                nonlocal reported
                reported = True
                return report(value)

            patiently(
                lambda: record_run(trial, mark, worker), f"Could not begin trial {trial.number}"
            )
            result = program.run(
                fixed_values(trial.number, repeat) | trial.params,
                environment={
                    "STOIC_STUDY": study.study_name,
                    "STOIC_TRIAL": str(trial.number),
                    "STOIC_REPEAT": str(repeat),
                    RUN: mark,
                },
                stopped=lambda: bool(stop),
                reported=note_and_report,
                started=lambda pid: patiently(
                    lambda: record_program(trial, pid, worker),
                    f"Could not record the program of trial {trial.number}",
                ),
            )
            rule = "" if program.intermediate is None else program.intermediate.written
            if rule and not reported and result.value is not None and rule not in missing:
                missing.add(rule)
                log.warning(
                    "Trial %d printed no intermediate value: no line has what %s reads.",
                    trial.number,
                    printable(rule),
                )
            for why in set(result.missing) - missing:
                missing.add(why)
                log.warning(
                    "Trial %d, %s. It counts for the objective and not for the constraint.",
                    trial.number,
                    printable(why),
                )
            return result

        run(
            study,
            request.space,
            request.trials,
            evaluate,
            observer,
            stop,
            worker,
            request.fixed,
            method.recipe,
            request.ending,
            keep_going,
        )
        return stop.signal
