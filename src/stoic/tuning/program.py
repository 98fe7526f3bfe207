"""Run an external program for one trial, and let nothing of it survive the trial."""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoic.data import FailureKind
from stoic.refusal import Refusal
from stoic.tuning.mark import RUN, kill_marked, new_mark
from stoic.tuning.reading import Beside, NotANumberError, NoValueError, Reading
from stoic.tuning.template import Template

KEPT_OUTPUT = 1 << 18  # bytes of standard output the value is looked for in: the last ones
KEPT_ERRORS = 1 << 12
POLITE_SECONDS = 3.0  # between SIGTERM and SIGKILL
DRAIN_SECONDS = 0.5  # for output still in the pipe when the program has ended
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Result:
    """What became of one run.

    Fields:
        value: the number the program reported (possibly infinite, never nan), None if it failed.
        failure: why there is no value, in a few words; None if there is one.
        errors: the end of what the program wrote to standard error; if that is nothing, what it
            wrote in the place of a number.
        seconds: how long it ran.
        kind: of the failure, see `stoic.data.Failures`; None if that is not known.
        executed: name of a parameter -> what was run instead of what was asked, None if that is not
            said.
        noise: variance of the noise of the value, None if it is not known.
    """

    value: float | None
    failure: str | None
    errors: str
    seconds: float
    kind: FailureKind | None = None
    executed: Mapping[str, Any] | None = None
    noise: float | None = None

    @property
    def reason(self) -> str:
        """Why there is no value, with the kind of the failure if that is known."""
        return f"{self.failure}" if self.kind is None else f"{self.failure} ({self.kind})"


@dataclass(frozen=True)
class Program:
    """A command that is run once a trial, without a shell.

    Fields:
        template: the command.
        reading: where its value stands in its standard output.
        directory: where it runs.
        timeout: seconds after which it is stopped, None for never.
        failures: how it may end -> what kind of failure that is, see
            `stoic.tuning.failure.parse_rules`.
    """

    template: Template
    reading: Reading
    directory: Path
    timeout: float | None = None
    failures: Mapping[str, FailureKind] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse a directory or a program that is not there."""
        if not self.directory.is_dir():
            raise Refusal(f"There is no directory {str(self.directory)!r} to run the program in.")
        first = self.template.arguments[0]
        if "{" in first:
            return
        if os.sep in first:
            found = os.access(self.directory / first, os.X_OK)
        else:
            found = shutil.which(first) is not None
        if not found:
            raise Refusal(f"Cannot find the program {first!r}, or it may not be executed.")

    def run(
        self,
        values: Mapping[str, Any],
        *,
        environment: Mapping[str, str] | None = None,
        stopped: Callable[[], bool] = lambda: False,
        started: Callable[[int], None] = lambda pid: None,
    ) -> Result:
        """Run the command with `values` in its placeholders.

        The program gets a session of its own, so that it can be stopped with all it started.
        Whatever is left of its process group when it ends, times out or is stopped is killed. So is
        what has left the group for a session of its own, where the system shows the environment of
        processes (Linux); `env -u STOIC_RUN` starts what shall stay.

        Args:
            values: name of a placeholder -> its value.
            environment: variables added to our own; a `RUN` among them is the mark of this run.
            stopped: asked about 20 times a second; true stops the program ("interrupted").
            started: told the process id, which is also the id of the process group.
        """
        begun = time.monotonic()
        told = Beside()
        added = dict(environment or {})
        mark = added.get(RUN) or new_mark()
        added[RUN] = f"{os.environ.get(RUN, '')} {mark}".strip()  # a study may be tuned in a trial

        def failed(
            reason: str, errors: str = "", kind: FailureKind | None = None, *endings: str
        ) -> Result:
            known = (self.failures[ending] for ending in endings if ending in self.failures)
            seconds = time.monotonic() - begun
            return Result(None, reason, errors, seconds, kind or next(known, None), told.executed)

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
        output, errors = _Tail(KEPT_OUTPUT), _Tail(KEPT_ERRORS)
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
        told = Beside.find(printed)
        word = told.failed  # goes before how it ended
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
        try:
            value = self.reading.find(printed)
        except NotANumberError as error:
            return failed(str(error), said, None, "nan")
        except NoValueError as error:
            return failed(str(error), said or error.found)
        seconds = time.monotonic() - begun
        return Result(value, None, said, seconds, None, told.executed, told.noise)


class _Tail:
    """The last bytes of a stream, in at most twice the memory that is kept."""

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
        return codecs.decode(bytes(self.kept[-self.size :]), "utf-8", "replace")

    def whole_lines(self) -> str:
        """The text without a first line that may have lost its beginning: 0.5 of 10.5 is a lie."""
        if not self.cut:
            return codecs.decode(bytes(self.kept), "utf-8", "replace")
        _, newline, rest = self.kept.partition(b"\n")
        return codecs.decode(bytes(rest if newline else b""), "utf-8", "replace")


def _follow(
    process: subprocess.Popen[bytes],
    output: _Tail,
    errors: _Tail,
    deadline: float | None,
    stopped: Callable[[], bool],
) -> str:
    """Read both streams until the program has ended; return "ended", "timeout" or "stopped"."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        for stream, tail in ((process.stdout, output), (process.stderr, errors)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, tail)
        ended_at: float | None = None
        while True:
            now = time.monotonic()
            if ended_at is None and process.poll() is not None:
                ended_at = now
            if ended_at is not None and (not selector.get_map() or now > ended_at + DRAIN_SECONDS):
                return "ended"
            if ended_at is None and deadline is not None and now >= deadline:
                return "timeout"
            if ended_at is None and stopped():
                return "stopped"
            wait = POLL_SECONDS if deadline is None else min(POLL_SECONDS, max(deadline - now, 0))
            if selector.get_map():
                _read(selector, wait)
            elif ended_at is None:
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
