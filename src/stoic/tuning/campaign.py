"""The loop: claim a trial, evaluate it, tell the storage, explain what is known."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Protocol

import optuna
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.integrations.optuna import Explanation, StoicSampler, explain
from stoic.tuning.program import Result
from stoic.tuning.request import Request
from stoic.tuning.space import Space
from stoic.tuning.storage import PATIENCE, open_storage, patiently
from stoic.tuning.study import COMMAND, bury, claim, finish, open_study, record_program
from stoic.tuning.template import fixed_values
from stoic.tuning.worker import Worker

Explain = Callable[[], Explanation | None]  # None before there is a value


class Observer(Protocol):
    """Is told what happens, in the order in which it happens."""

    def buried(self, numbers: list[int]) -> None:
        """Trials of dead workers have been marked as failed."""

    def begun(self, trial: Trial) -> None:
        """A trial has its parameters and starts."""

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """A trial has been stored. Explaining costs a fit of the model: at most once a trial."""


class Silent:
    """An observer that does nothing."""

    def buried(self, numbers: list[int]) -> None:
        """Nothing."""

    def begun(self, trial: Trial) -> None:
        """Nothing."""

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """Nothing."""


class Stop:
    """Turns SIGINT, SIGTERM and SIGHUP into a flag, so that nothing is torn in the middle.

    The loop looks at the flag between its steps and while a program runs. A second Ctrl-C is an
    ordinary KeyboardInterrupt. Outside the main thread no signal arrives and none is handled.

    Fields:
        signal: the first signal that came, None before.
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
) -> None:
    """Work on a study until it has `trials` finished ones, together with whoever shares it.

    Trials that others run at the end are not waited for.
    """
    while not stop:
        numbers = patiently(lambda: bury(study), "Could not mark the trials of dead workers")
        if numbers:
            observer.buried(numbers)
        trial = patiently(lambda: claim(study, space, trials, worker), "Could not begin a trial")
        if trial is None:
            return
        if stop:
            result = Result(None, "interrupted", "", 0.0, "transient")
        else:
            observer.begun(trial)
            result = evaluate(trial)
        stored = finish(study, trial, result)
        observer.ended(stored, result, lambda: explanation(study))


def explanation(study: optuna.Study) -> Explanation | None:
    """What is known of a study; None before there is a value."""
    if any(trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)):
        return explain(study)
    return None


def open_request(
    request: Request, kind: str | None = None, patience: float = PATIENCE
) -> optuna.Study:
    """The study of a request, created or taken up; nothing is created if the request is refused."""
    request.program.check()
    return open_study(
        open_storage(request.storage, create=True, kind=kind, patience=patience),
        request.name,
        request.direction,
        request.space,
        StoicSampler(seed=request.seed, n_startup_trials=request.startup),
        request.program.template.arguments,
    )


def earlier_command(study: optuna.Study, request: Request) -> str | None:
    """The command the study was begun with, if it is not the one of the request."""
    earlier = study.user_attrs.get(COMMAND)
    if not isinstance(earlier, list) or tuple(earlier) == request.program.template.arguments:
        return None
    return shlex.join(map(str, earlier))


def run_request(study: optuna.Study, request: Request, observer: Observer) -> int | None:
    """Carry out a request by running its program.

    Returns:
        the number of the signal that stopped it, None if it came to its end.
    """
    worker = Worker.current()
    with Stop() as stop:

        def evaluate(trial: Trial) -> Result:
            return request.program.run(
                fixed_values(trial.number) | trial.params,
                environment={"STOIC_STUDY": study.study_name, "STOIC_TRIAL": str(trial.number)},
                stopped=lambda: bool(stop),
                started=lambda pid: record_program(trial, pid, worker),
            )

        run(study, request.space, request.trials, evaluate, observer, stop, worker)
        return stop.signal
