"""Environment marks of processes, so that a run stops what it started and nothing else."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from stoic.tuning.worker import Worker

RUN = "STOIC_RUN"  # variable of a program and its descendants: the marks of their runs

_SWEEPS = 50  # for what is being forked meanwhile; what hangs in the kernel outlives them


def new_mark() -> str:
    """Return an unguessable mark for one run."""
    return secrets.token_hex(16)


def seal(mark: str, worker: Worker) -> str:
    """Digest of a mark and the worker of its run, for a storage that others read and write.

    It does not reveal the mark. Copied beside another worker it fits no process, so that only
    what a dead worker left is stopped.
    """
    said = json.dumps([mark, worker.host, worker.boot, worker.pid, worker.started])
    return hashlib.sha256(said.encode()).hexdigest()


def visible() -> bool:
    """Return True if this system shows the environment of processes."""
    try:
        return bool(Path("/proc/self/environ").read_bytes())
    except OSError:
        return False


def kill_marked(ours: Callable[[str], bool]) -> None:
    """Kill the processes that began with such a mark in their environment, where that is visible.

    Parameters
    ----------
    ours:
        True for the mark of a run that is to end; called once for each mark.
    """
    known = functools.cache(ours)
    for _ in range(_SWEEPS):
        left = [pid for pid in _processes() if any(map(known, _marks(pid)))]
        if not left:
            return
        for pid in left:
            _kill(pid, known)
        time.sleep(0.01)


def _kill(pid: int, ours: Callable[[str], bool]) -> None:
    """Kill one process, unless its number has been reused since it was found."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        except (AttributeError, OSError):  # not on this system: its number is all there is
            if any(map(ours, _marks(pid))):
                os.kill(pid, signal.SIGKILL)
            return
        try:  # a handle is of one process for ever: what is read now is of that, or it has ended
            if any(map(ours, _marks(pid))):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _processes() -> Iterator[int]:
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                yield int(entry.name)


def _marks(pid: int) -> list[str]:
    """Read the marks of the runs of a process; none if it has ended, or is another user's."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
    name = f"{RUN}=".encode()
    found = next((each for each in variables if each.startswith(name)), name)
    return found.removeprefix(name).decode("utf-8", "replace").split()
