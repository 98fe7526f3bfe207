"""Run an external program for one trial, and let nothing of it survive the trial."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stoic.data import FailureKind
from stoic.integrations.reported import noise_of, noises_of, unknown
from stoic.refusal import RefusalError
from stoic.tuning.constraint import Constraint, read_constraints
from stoic.tuning.mark import RUN, kill_marked, new_mark
from stoic.tuning.objectives import Objective, read_values
from stoic.tuning.reading import Beside, NotANumberError, NoValueError, Reading
from stoic.tuning.template import Template

KEPT_OUTPUT = 1 << 18  # last bytes of standard output, in which the value is searched
KEPT_ERRORS = 1 << 12
POLITE_SECONDS = 3.0  # between SIGTERM and SIGKILL
DRAIN_SECONDS = 0.5  # for output still in the pipe when the program has ended
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Result:
    """Outcome of one run.

    Attributes
    ----------
    value:
        The number the program reported (possibly infinite, never nan), None if it failed.
    failure:
        Reason of the failure, in a few words; None if there is a value.
    errors:
        End of the program's standard error; if that is empty, what it wrote in the place of a
        number.
    seconds:
        Duration of the run.
    kind:
        Kind of the failure, see ``stoic.data.Failures``; None if unknown.
    executed:
        Name of a parameter -> what was run instead of what was suggested, None if not reported.
    noise:
        Noise variance of the value, None if unknown.
    constraints:
        Name of a constraint -> by how much it is violated, at most 0 if it holds.
    missing:
        Text of each other constraint -> why it has no value.
    values:
        Value of each objective, if there are several: ``value`` is the first one then. If it
        failed, what there is of them, nan for the others.
    noises:
        Noise variance of each of them, None for one where it is unknown; None if all are.
    unused:
        What was given as a standard error, and is none.
    pruned:
        True if there is no final value because the run could not become good, or prints none as it
        violates a constraint.
    bound:
        Value that a run without one is at least as bad as, if it says so.
    error:
        What a Python function raised.
    """

    value: float | None = None
    failure: str | None = None
    errors: str = ""
    seconds: float = 0.0
    kind: FailureKind | None = None
    executed: Mapping[str, Any] | None = None
    noise: float | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    values: tuple[float, ...] = ()
    noises: tuple[float | None, ...] | None = None
    unused: object = None
    pruned: bool = False
    bound: float | None = None
    error: Exception | None = None

    @classmethod
    def at_least_as_bad_as(cls, bound: float, noise: float | None = None) -> Result:
        """Return the result of a run that says no more than this."""
        return cls(failure=f"{bound:g} or worse", noise=noise, pruned=True, bound=bound)

    @classmethod
    def excluded(
        cls, violated: Iterable[str], constraints: Mapping[str, float], run: Result | None = None
    ) -> Result:
        """Return the result of a run that has no value, since its setting violates these."""
        why = f"violates {' and '.join(violated)}"
        return replace(run or cls(), failure=why, constraints=constraints, pruned=True)

    @property
    def is_excluded(self) -> bool:
        """True if there is no value since the setting violates a constraint."""
        return self.pruned and self.bound is None and bool(self.constraints)

    @property
    def reason(self) -> str:
        """Reason of the failure, with its kind if that is known."""
        return f"{self.failure}" if self.kind is None else f"{self.failure} ({self.kind})"


@dataclass(frozen=True)
class Program:
    """Command that runs once a trial, without a shell.

    Attributes
    ----------
    template:
        The command.
    reading:
        Rule that reads the value from standard output.
    directory:
        Working directory.
    timeout:
        Seconds after which the program is stopped, None for never.
    failures:
        Ending of the program -> kind of failure, see ``stoic.tuning.failure.parse_rules``.
    constraints:
        Outputs with a limit.
    objectives:
        Outputs that are the values, if there are several; ``reading`` is not used then.
    intermediate:
        Rule that reads an intermediate value from a line of standard output, as it comes.
    """

    template: Template
    reading: Reading
    directory: Path
    timeout: float | None = None
    failures: Mapping[str, FailureKind] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    objectives: tuple[Objective, ...] = ()
    intermediate: Reading | None = None

    def check(self) -> None:
        """Refuse a directory or a program that does not exist, and Windows."""
        if not hasattr(os, "killpg"):
            raise RefusalError(
                "Programs run on Linux and macOS alone, where all that they start can be stopped: "
                "on Windows give stoic.tune a function, use stoic ask and tell, or WSL."
            )
        if not self.directory.is_dir():
            raise RefusalError(
                f"There is no directory {str(self.directory)!r} to run the program in."
            )
        first = self.template.arguments[0]
        if "{" in first:
            return  # it is known when a trial has its parameters
        if os.sep in first:
            found = os.access(self.directory / first, os.X_OK)
        else:
            found = shutil.which(first) is not None
        if not found:
            raise RefusalError(f"Cannot find the program {first!r}, or it may not be executed.")

    def run(
        self,
        values: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        stopped: Callable[[], bool] = lambda: False,
        started: Callable[[int], None] = lambda pid: None,
        reported: Callable[[float], bool] = lambda value: False,
    ) -> Result:
        """Run the command with ``values`` in its placeholders.

        The program gets a session of its own, so that it can be stopped with all it started. When
        it ends, times out or is stopped, this method kills what is left of its process group and,
        where the system shows the environment of processes (Linux), what has left the group for a
        session of its own; ``env -u STOIC_RUN`` starts what shall stay.

        Parameters
        ----------
        values:
            Name of a placeholder -> its value.
        environment:
            Variables added to our own; a ``RUN`` among them is the mark of this run.
        stopped:
            Called about 20 times a second; true stops the program ("interrupted").
        started:
            Called with the process id, which is also the id of the process group.
        reported:
            Called with each intermediate value, nan included; true stops the program ("pruned").
        """
        begun = time.monotonic()
        beside = Beside()
        added = dict(environment or {})
        mark = added.get(RUN) or new_mark()
        added[RUN] = f"{os.environ.get(RUN, '')} {mark}".strip()  # a trial may itself tune a study

        def failed(
            reason: str, errors: str = "", kind: FailureKind | None = None, *endings: str
        ) -> Result:
            # Endings come with the most specific one first: "exit 3" before "exit"
            known = (self.failures[ending] for ending in endings if ending in self.failures)
            seconds = time.monotonic() - begun
            bound = None if isinstance(beside.censored, bool) else beside.censored
            kind = kind or next(known, None)
            return Result(None, reason, errors, seconds, kind, beside.executed, bound=bound)

        try:
            process = subprocess.Popen(
                self.template.fill(values),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.directory,
                env={**os.environ, **added},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a null byte in an argument
            return failed(f"cannot start: {error.args[-1] if error.args else error}")
        output = _Tail(KEPT_OUTPUT)
        if self.intermediate is not None:
            output = _Watched(KEPT_OUTPUT, self.intermediate, reported)
        errors = _Tail(KEPT_ERRORS)
        deadline = None if self.timeout is None else begun + self.timeout
        try:
            started(process.pid)
            ending = _follow(process, output, errors, deadline, stopped)
        finally:
            _end(process, mark)
        said = errors.text()
        if ending == "stopped":
            return failed("interrupted", said, "transient")
        printed, code = output.whole_lines(), process.returncode
        # failed() reads it: what was executed counts for a failure, too
        beside = Beside.find(printed)
        word = beside.failed  # overrides the ending
        if ending == "pruned":
            return replace(failed("pruned", said), pruned=True)
        if ending == "timeout":
            return failed(f"timeout after {self.timeout:g} s", said, word, "timeout")
        if code < 0:
            endings = (f"signal {-code}", "signal")
            return failed(f"killed by {_signal_name(-code)}", said, word, *endings)
        if code > 0:
            return failed(f"exit code {code}", said, word, f"exit {code}", "exit")
        if word is not None:
            return failed("said that it failed", said, word)
        if output.cut and not printed.strip():
            kept = f"the last {KEPT_OUTPUT >> 10} KiB that the program printed"
            return failed(f"no value: {kept} have no whole line", said)
        limits, missing = read_constraints(self.constraints, printed)

        def without_value(*why: Any, values: tuple[float, ...] = (), ruled: bool = False) -> Result:
            violated = [c.written for c in self.constraints if limits.get(c.name, 0.0) > 0.0]
            if ruled and violated:
                return Result.excluded(violated, limits, replace(failed(*why), missing=missing))
            return replace(failed(*why), values=values, constraints=limits, missing=missing)

        if self.objectives:
            if beside.censored is not False:
                return failed("a bound is of one value, and there are several objectives", said)
            found, lacking = read_values(self.objectives, printed)
            if lacking:
                name, first = next(iter(lacking.items()))
                if isinstance(first, NotANumberError):
                    return without_value(f"{name} is nan", said, None, "nan", values=found)
                some = any(isinstance(error, NotANumberError) for error in lacking.values())
                none = len(lacking) == len(found) and not some
                return without_value(str(first), said, values=found, ruled=none)
            noises = noises_of(beside.standard_error, [each.name for each in self.objectives])
            result = Result(found[0], values=found, noises=noises)
        else:
            try:
                value = self.reading.find(printed)
            except NotANumberError as error:
                return without_value(str(error), said, None, "nan")
            except NoValueError as error:
                return without_value(str(error), said or error.found, ruled=True)
            noise = noise_of(beside.standard_error)
            result = Result(value, noise=noise)
            if beside.censored is True and math.isfinite(value):
                result = Result.at_least_as_bad_as(value, noise)
        lacks = result.noise is None and result.noises is None
        return replace(
            result, errors=said, seconds=time.monotonic() - begun, executed=beside.executed,
            constraints=limits, missing=missing,
            unused=beside.standard_error if lacks and not unknown(beside.standard_error) else None,
        )  # fmt: skip


class _Tail:
    """Last bytes of a stream, in at most twice the memory that is kept."""

    busy = 0.0  # seconds spent on intermediate values: output waits in the pipe meanwhile
    pruned = False

    def __init__(self, size: int) -> None:
        self.size = size
        self.kept = bytearray()
        self.cut = False

    def add(self, data: bytes) -> None:
        self.kept += data
        if len(self.kept) > 2 * self.size:
            del self.kept[: -self.size]
            self.cut = True

    def text(self) -> str:
        return self.kept[-self.size :].decode("utf-8", "replace")

    def whole_lines(self) -> str:
        """Return the text without a first line that may be cut: 0.5 of 10.5 is a wrong value."""
        whole = self.kept.partition(b"\n")[2] if self.cut else self.kept
        return whole.decode("utf-8", "replace")


class _Watched(_Tail):
    """Standard output whose whole lines are searched for intermediate values as they come."""

    def __init__(self, size: int, reading: Reading, reported: Callable[[float], bool]) -> None:
        super().__init__(size)
        self.reading, self.reported = reading, reported
        self.line = bytearray()

    def add(self, data: bytes) -> None:
        super().add(data)
        *whole, rest = (self.line + data).split(b"\n")
        self.line = bytearray(rest[-self.size :])  # of a line that may never end
        for line in whole:
            try:
                value = self.reading.find(line.decode("utf-8", "replace"))
            except NotANumberError:
                value = math.nan
            except NoValueError:
                continue
            begun = time.monotonic()
            self.pruned = self.reported(value) or self.pruned  # what comes later is stored, too
            self.busy += time.monotonic() - begun


def _follow(
    process: subprocess.Popen[bytes],
    output: _Tail,
    errors: _Tail,
    deadline: float | None,
    stopped: Callable[[], bool],
) -> str:
    """Read both streams until the program has ended; return "ended", or why to stop it."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        for stream, tail in ((process.stdout, output), (process.stderr, errors)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, tail)
        ended_at: float | None = None
        while True:
            now = time.monotonic()
            reading = now - output.busy
            if ended_at is None and process.poll() is not None:
                ended_at = reading
            # What the program left running may hold the pipes open, so that they never end
            if ended_at is not None and (
                not selector.get_map() or reading > ended_at + DRAIN_SECONDS
            ):
                return "ended"
            if ended_at is None and deadline is not None and now >= deadline:
                return "timeout"
            if ended_at is None and stopped():
                return "stopped"
            if ended_at is None and output.pruned:
                return "pruned"
            wait = POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(deadline - now, 0))
            if selector.get_map():
                _read(selector, wait)
            elif ended_at is None:  # it has closed its output and goes on
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(wait)


def _read(selector: selectors.BaseSelector, wait: float) -> None:
    for key, _ in selector.select(wait):
        with contextlib.suppress(BlockingIOError):
            data = os.read(key.fd, 1 << 16)
            if data:
                key.data.add(data)
            else:
                selector.unregister(key.fileobj)


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Stop the program if it runs, politely first; then kill what is left of its group and run."""
    try:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGTERM)
            _close_pipes(process)  # or a program that floods them would hang on its way out
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLITE_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing is left of it
            os.killpg(process.pid, signal.SIGKILL)
        kill_marked(lambda found: found == mark)
        process.wait()
        _close_pipes(process)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
