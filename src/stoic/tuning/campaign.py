"""Optimization loop: claim a trial, evaluate it, store the result, explain the study."""

from __future__ import annotations

import logging
import math
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import FrameType

import optuna
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.integrations.optuna import Explanation
from stoic.integrations.optuna.confirming import confirmations
from stoic.integrations.optuna.internals import begin_trial, fixed_attrs
from stoic.integrations.optuna.objectives import check_single_objective, signs
from stoic.integrations.optuna.possible import PossibleValues, is_result
from stoic.integrations.optuna.unmodelled import Parameters
from stoic.printable import printable
from stoic.refusal import RefusalError
from stoic.tuning.constraint import declare_constraints, merge_constraints
from stoic.tuning.ending import Ending
from stoic.tuning.explaining import Explainer, Half
from stoic.tuning.mark import RUN, new_mark
from stoic.tuning.objectives import merge_objectives, written
from stoic.tuning.program import Result
from stoic.tuning.pruning import PRUNERS, intermediate_values
from stoic.tuning.reading import Reading
from stoic.tuning.repeats import repeated, surpassed_in
from stoic.tuning.request import Request, check_objectives
from stoic.tuning.search import Search, StudyMethod, prepare
from stoic.tuning.space import Space, parse_fixed
from stoic.tuning.storage import PATIENCE, patiently
from stoic.tuning.stored import VALUE, known_space, stored_command, stored_rule
from stoic.tuning.study import check_changes, open_study, record_space
from stoic.tuning.template import fixed_values
from stoic.tuning.trials import (
    choose_or_end,
    claim,
    claim_confirmation,
    fail_orphans,
    finish,
    record_program,
    record_run,
)
from stoic.tuning.worker import Worker

log = logging.getLogger(__name__)

_HOPELESS = 5  # failures from the start of a run: a typo, rather than a hard problem
# Transient failures in a row, at three settings or more: an outage, which would use up all trials
_OUTAGE, _SETTINGS = 10, 3

Explain = Callable[[], Explanation | None]  # None before there is a value


class HopelessError(RuntimeError):
    """A program or function that fails from the start.

    Attributes
    ----------
    finding:
        What was found, in one sentence.
    remedy:
        What to do about a program, in another.
    outage:
        True if it is not the program's fault.
    """

    def __init__(self, finding: str, remedy: str, outage: bool = False) -> None:
        super().__init__(finding, remedy, outage)
        self.finding = finding
        self.remedy = remedy
        self.outage = outage

    def __str__(self) -> str:
        return f"{self.finding} {self.remedy}"


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
            hangup = getattr(signal, "SIGHUP", signal.SIGINT)  # Windows has none
            for number in {signal.SIGINT, signal.SIGTERM, hangup}:
                # Ignored as under nohup, or handled by something that is not Python: left alone.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
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
    search: Search,
    measure: Callable[[Trial, int], Result],
    observer: Observer,
    stop: Stop,
    method: StudyMethod,
    keep_going: bool = True,
) -> None:
    """Run trials until a study has enough finished ones, together with its other workers.

    ``measure`` is given a trial and the number of the measurement in it. ``method`` explains the
    study. The loop does not wait for trials that other workers run at the end.

    Raises
    ------
    HopelessError
        Without ``keep_going``, see :meth:`Health.check`.
    """
    worker, explainer = Worker.current(), Explainer(study, method.recipe, search.fixed)
    surpassed = surpassed_in(study, method.possible)
    sign = float(signs(study)[0])
    # stoic confirm asks for 0 trials
    health = Health(study, method.possible, confirming=not search.trials)
    settling = Settling(search.ending, explainer.half)
    while not stop:
        numbers = patiently(
            lambda: fail_orphans(study), "Could not mark the trials of dead workers"
        )
        if numbers:
            observer.orphaned(numbers)
        trial = patiently(lambda: _next(study, search, worker, settling), "Could not begin a trial")
        if trial is None:
            explainer.catch_up()
            return
        # It came while the trial was chosen: the program has not been started
        if stop:
            result = Result(failure="interrupted", kind="transient")
        else:
            observer.begun(trial)
            once = partial(measure, trial)
            result = repeated(
                once, search.repeats, lambda: bool(stop), surpassed, method.possible, sign
            )
        # Before the model is fitted and anything is printed: from here on a kill loses no result
        stored = finish(study, trial, result)
        observer.ended(stored, result, explainer)
        if not keep_going and not stop:
            health.check(stored, result)


class Health:
    """Results of a run by which it is stopped early.

    Parameters
    ----------
    study, possible:
        The study that is run, and which values are.
    confirming:
        True for a run of confirming measurements alone.
    """

    def __init__(
        self, study: optuna.Study, possible: PossibleValues | None, confirming: bool
    ) -> None:
        self._study, self._possible, self._confirming = study, possible, confirming
        self._first: list[Result] = []
        self._lost: list[FrozenTrial] = []  # of transient failures in a row

    def check(self, trial: FrozenTrial, result: Result) -> None:
        """Look at the next result.

        Raises
        ------
        HopelessError
            If the first five are of no use: all fail and the study has no value, or they confirm
            it; or none has a value of some constraint. One that is said to be infeasible is of use:
            it says where not to search. Or if the last ten, of three settings or more, failed for a
            transient reason.
        """
        if len(self._first) < _HOPELESS and not result.is_excluded:  # which nothing was run of
            self._first.append(result)
            if len(self._first) == _HOPELESS:
                self._check_start()
        if result.kind != "transient" or result.value is not None:
            self._lost.clear()
        else:
            self._lost.append(trial)
            self._check_outage(result)

    def _check_start(self) -> None:
        first, last = self._first, self._first[-1]
        useful = any(_useful(result, self._possible) for result in first)
        if not useful and not _in_parts(self._study, first):
            reason = last.reason.rstrip(".")
            if last.value is not None:
                reason = f"the value {last.value:g} is not possible, which is {self._possible}"
            if self._confirming:
                raise HopelessError(
                    f"The first {_HOPELESS} measurements failed, the last one so: {reason}.",
                    "Change the command and run it again.",
                )
            trials = patiently(
                lambda: self._study.get_trials(deepcopy=False), "Could not read the study"
            )
            complete = (trial for trial in trials if trial.state == TrialState.COMPLETE)
            if not any(is_result(trial.values[0], self._possible) for trial in complete):
                raise HopelessError(
                    f"The first {_HOPELESS} trials failed, the last one so: {reason}.",
                    "Change the program and run the same command again, or say --keep-going.",
                ) from last.error
        for text in sorted(set(last.missing).intersection(*(result.missing for result in first))):
            raise HopelessError(
                f"The first {_HOPELESS} trials say nothing of a constraint, {text}: "
                f"{last.missing[text]}.",
                "Change the program and run the same command again; or the constraint, in a study "
                "of another name; or say --keep-going.",
            )

    def _check_outage(self, last: Result) -> None:
        settings = {str(sorted(trial.params.items())) for trial in self._lost}
        if len(self._lost) >= _OUTAGE and len(settings) >= _SETTINGS:
            raise HopelessError(
                f"The last {len(self._lost)} trials failed, and not because of their parameters, "
                f"the last one so: {last.reason.rstrip('.')}.",
                "Run the same command again when that is over"
                + ("." if self._confirming else ", or say --keep-going."),
                outage=True,
            ) from last.error


def _useful(result: Result, possible: PossibleValues | None) -> bool:
    return is_result(result.value, possible) or result.pruned or result.kind == "infeasible"


def _in_parts(study: optuna.Study, results: Sequence[Result]) -> bool:
    """Return True if some result has a value of each of several objectives."""
    count = len(study.directions)
    values = [result.values for result in results if len(result.values) == count > 1]
    return bool(values) and all(any(map(math.isfinite, each)) for each in zip(*values, strict=True))


class Settling:
    """Whether the search of a run is settled, as far as ``half`` of its time is left to look."""

    def __init__(self, ending: Ending, half: Half) -> None:
        self.ending, self.half, self.found = ending, half, False

    def __call__(self, study: optuna.Study, trials: Sequence[FrozenTrial]) -> bool:
        """Return True if more trials are not worth it; what is settled is looked at each time."""
        if self.ending.until_settled is not None and (self.found or not self.half.over):
            with self.half.spending():
                self.found = self.ending.settled(study, trials)
        return self.found


def _next(study: optuna.Study, search: Search, worker: Worker, settling: Settling) -> Trial | None:
    """Claim the next trial of the search, or of the confirmation after it; None at the end."""
    stand = study.get_trials(deepcopy=False)
    if not settling(study, stand):
        # Confirming measurements have numbers, too, and are no trials of the search
        trials = search.trials + confirmations(stand)
        if (trial := claim(study, search.space, trials, worker, search.fixed)) is not None:
            return trial
    return claim_confirmation(study, search.space, search.ending.confirm, worker)


def open_request(
    request: Request, kind: str | None = None, patience: float = PATIENCE
) -> tuple[optuna.Study, StudyMethod]:
    """Create or load the study of a request; return it and the method of its search from now on.

    A refused request creates nothing.
    """
    program = request.program
    if program.template.arguments:  # else trials are run by hand
        program.check()
    storage, earlier, method, sampler = prepare(request, request.storage, kind, patience)
    constraints = merge_constraints(earlier, program.constraints)
    objectives = merge_objectives(earlier, program.objectives)
    check_objectives(request, objectives)
    # What is left at its default may not have been given at all
    if objectives != program.objectives and (
        request.goal == "maximize" or request.value not in (None, "last-line")
    ):
        raise RefusalError(
            f"The study {request.name!r} is to {written(objectives)}, which says what is read and "
            "its directions: leave out direction and value."
        )
    study = open_study(
        storage,
        request.name,
        objectives or request.goal,
        request.space,
        sampler,
        program.template.arguments or None,
        program.directory,
    )
    study.pruner = PRUNERS[request.pruner]()
    if constraints:
        patiently(
            lambda: declare_constraints(study, constraints), "Could not record the constraints"
        )
    return study, method


def ask_for(
    study: optuna.Study,
    search: Search,
    fix: Sequence[str],
    changed: Space | None = None,
    count: int = 1,
    confirm: int = 0,
) -> Iterator[Trial]:
    """Suggest new trials, by the aim and the recipe of the study.

    ``search`` overrides what is recorded with the study, and ``fix`` has NAME=VALUE. Parameters in
    ``changed`` are new, or have another range, from the first of these trials on. They are the
    next of so many confirming measurements, if ``confirm`` is not 0.
    """
    if confirm:
        check_single_objective(study)
    known, changed = known_space(study) or {}, changed or {}
    check_changes(known, search.space or changed)
    given = search.space or known | changed
    if not given:
        raise RefusalError(
            f"The study {study.study_name!r} has no search space yet: give its parameters, as in "
            "--param 'x=float(0, 1)'."
        )
    parameters = Parameters.of(study.get_trials(deepcopy=False), len(study.directions))
    met = parameters.modelled()
    # What is said now is the range in this trial, whatever its branch
    branches = {name: of for name, of in parameters.branches(met).items() if name not in changed}
    # The last trial has the range of its branch alone
    space = given | {name: met[name] for name in branches.keys() & given.keys()}
    search, fixed = replace(search, space=space), parse_fixed(fix, space)
    method = StudyMethod.of(study, search)
    method.check(space)
    study.sampler = method.sampler(study, search, confirm)
    method.record(study)
    for k in range(count):
        # study.ask() would take a queued trial, which has values of its own
        trial = begin_trial(study, fixed_attrs(fixed)) if fixed else study.ask()
        choose_or_end(trial, space, branches)
        if not k and changed and given != known:
            # Read again: another one may have been added meanwhile
            record_space(study, (known_space(study) or {}) | changed)
        yield trial


def notes(study: optuna.Study, request: Request, method: StudyMethod) -> list[str]:
    """List what changes from now on: the command, how its value is read, the aim, the recipe."""
    said, earlier = method.replaces(study), stored_command(study)
    if earlier not in (None, request.program.template.arguments):
        words = shlex.join(earlier)
        said.insert(0, f"the storage says that earlier trials ran another command: {words}")
    rule = stored_rule(study)
    if None not in (rule, request.value) and rule != request.value:
        said.append(f"until now values of this study were read by another rule: --value {rule}")
    return said


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
    recorded = patiently(lambda: stored_rule(study), "Could not read how values are read")
    rule = request.value or recorded or request.program.reading.written
    program = replace(
        request.program,
        reading=Reading.parse(rule),
        constraints=merge_constraints(study, request.program.constraints),
        objectives=merge_objectives(study, request.program.objectives),
    )
    along = "" if program.intermediate is None else program.intermediate.written
    missing: set[str] = set()  # rules that were warned of
    found = False  # a value, by the rule

    def remember() -> None:
        """Record the first rule, once a value that it found is stored."""
        nonlocal recorded
        if found and recorded is None:
            patiently(
                lambda: study.set_user_attr(VALUE, rule), "Could not record how values are read"
            )
            recorded = rule

    def warn(what: str, message: str, *args: object) -> None:
        if what not in missing:
            missing.add(what)
            log.warning(message, *args)

    with Stop() as stop:

        def measure(trial: Trial, repeat: int) -> Result:
            nonlocal found
            remember()
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
            if along and not reported and result.value is not None:
                none = "Trial %d printed no intermediate value: no line has what %s reads."
                warn(along, none, trial.number, printable(along))
            if result.unused is not None:
                objectives = ", ".join(printable(each.name) for each in program.objectives)
                of_each = f" for each of {objectives}" if objectives else ""
                warn(
                    "standard_error",
                    "Trial %d: standard_error must be a number above 0%s, got %s. Its %s without: "
                    "leave the key out where it is not known, as of no success among n.",
                    trial.number,
                    of_each,
                    printable(repr(result.unused)),
                    "values count" if of_each else "value counts",
                )
            read = result.value is not None and result.bound is None
            found |= read and not program.objectives
            for text, why in result.missing.items() if result.value is not None else ():
                counts = "It counts for the objective and not for the constraint."
                said = (trial.number, printable(text), printable(why))
                warn(text, f"Trial %d, constraint %s: %s. {counts}", *said)
            return result

        run(study, request, measure, observer, stop, method, keep_going)
        remember()
        return stop.signal
