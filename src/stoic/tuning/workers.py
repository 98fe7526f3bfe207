"""Several workers of one study on this machine, each a process with the same command."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO

from stoic.refusal import RefusalError
from stoic.tuning.campaign import Stop

_MOST = 256
_LOOK = 0.1  # seconds between two looks for a signal


def check_workers(count: int, storage: str) -> int:
    """Return a number of workers that can share a storage."""
    if not 1 <= count <= _MOST:
        raise RefusalError(f"workers must be between 1 and {_MOST}, got {count}.")
    if count > 1 and (":memory:" in storage or storage == "sqlite://"):
        raise RefusalError("Several workers need a storage that they share: one in memory is not.")
    return count


def alone(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line without ``--workers``; after ``--`` nothing is one."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    own = iter(arguments[:end])
    for argument in own:
        if argument == "--workers":
            next(own, None)
        elif not argument.startswith("--workers="):
            kept.append(argument)
    return [*kept, *arguments[end:]]


def run_workers(
    count: int, arguments: Sequence[str], say: Callable[[str, bool], None]
) -> tuple[Stop, list[int]]:
    """Run so many processes of ``stoic`` until all have ended.

    A signal is passed on to each once; they have sessions of their own, so that Ctrl-C does not
    reach them twice. When this process is killed, each ends after its trial.

    Parameters
    ----------
    count:
        Number of processes.
    arguments:
        Of each.
    say:
        Called with each line about a trial, and False; and with each other line of standard error,
        the first time that it comes, and True.

    Returns
    -------
    stop:
        With the signal that came, if any.
    codes:
        Exit code of each process; less a signal that killed it.

    Raises
    ------
    OSError
        A line about a trial could not be written; all processes have ended, and what they were
        running has failed as transient. Other lines are left out then.
    """
    said: set[str] = set()
    unwritten: list[OSError] = []
    lock = threading.Lock()

    def pass_on(line: str, error: bool) -> None:
        if unwritten or (line in said if error else not line.startswith("trial ")):
            return
        if error:
            said.add(line)
        try:
            say(line.rstrip("\n"), error)
        except OSError as failure:
            if not error:
                unwritten.append(failure)

    def listen(stream: IO[str], error: bool) -> None:
        with stream:
            for line in stream:  # to the end: a worker whose pipe is full would wait for ever
                with lock:
                    pass_on(line, error)

    with Stop() as stop:
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "stoic", *arguments],  # not whichever stoic is on PATH
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, errors="backslashreplace", start_new_session=True,
            )
            for _ in range(count)
        ]  # fmt: skip
        ears = [
            threading.Thread(target=listen, args=(stream, error), daemon=True)
            for child in children
            for stream, error in ((child.stdout, False), (child.stderr, True))
        ]
        for ear in ears:
            ear.start()
        passed_on = False
        for child in children:
            while True:
                if (stop or unwritten) and not passed_on:
                    passed_on = True
                    for each in children:
                        each.send_signal(stop.signal or signal.SIGTERM)
                try:
                    child.wait(_LOOK)
                    break
                except subprocess.TimeoutExpired:
                    continue
        # The last lines may still be in the pipes
        for ear in ears:
            ear.join()
    if unwritten:
        raise unwritten[0]
    return stop, [child.returncode for child in children]
