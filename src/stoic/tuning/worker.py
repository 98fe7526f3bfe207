"""Workers that run trials, and whether their processes are still alive."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Worker:
    """Process, identified so that no other process is ever mistaken for it.

    Attributes
    ----------
    host:
        Host name, machine id and process namespace: the scope of ``pid``.
    boot:
        Identity of the machine's current boot, empty where unknown.
    pid:
        Process id.
    started:
        Start time of the process, as the system writes it, empty where unknown.
    """

    host: str
    boot: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Worker:
        """Identify the current process."""
        return cls(_host(), _boot(), os.getpid(), _started(os.getpid()))

    @classmethod
    def of(cls, pid: int, beside: Worker) -> Worker:
        """Identify a process on the machine where ``beside`` runs: this one."""
        return cls(beside.host, beside.boot, pid, _started(pid))

    @classmethod
    def from_record(cls, record: object) -> Worker | None:
        """Restore a worker from its ``record``; None for anything else."""
        if not isinstance(record, dict):
            return None
        try:
            return cls(
                str(record["host"]), str(record["boot"]), int(record["pid"]), str(record["started"])
            )
        except (KeyError, TypeError, ValueError, OverflowError):  # the last: of infinity
            return None

    def record(self) -> dict[str, Any]:
        """Return a JSON object, for a storage."""
        return asdict(self)

    @property
    def alive(self) -> bool | None:
        """True if the process still runs; None if that is unknown from here."""
        if self.host != _host():
            return None
        if self.boot != _boot():
            return False  # no process outlives a restart
        if _started(os.getpid()) == "":
            return None  # neither /proc nor ps: processes cannot be seen from here
        # With its start, since a number is given to another process later; an empty one is of none
        return _started(self.pid) == self.started != ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.split('/')[0]}"


@functools.cache
def _host() -> str:
    machine = ""
    for place in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        machine = machine or _content(place)
    try:
        # Containers may share host name and machine id, and each has numbers of its own
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{platform.node()}/{machine}/{namespace}"


@functools.cache
def _boot() -> str:
    return _content("/proc/sys/kernel/random/boot_id")


def _started(pid: int) -> str:
    """Start time of a process; empty if there is no such process, or it is a zombie."""
    stat = _content(f"/proc/{pid}/stat")
    if stat:
        fields = stat.rpartition(")")[2].split()  # after the name, which may hold anything
        # Fields 3 and 22 of proc(5): the state, and the start in ticks since the boot
        return "" if fields[0] in "ZX" else fields[19]
    if os.path.exists("/proc/self/stat"):
        return ""  # /proc shows processes, and not this one
    try:
        # macOS has no /proc. Its ps writes the time by zone and language of whoever asks
        listed = subprocess.run(
            ["ps", "-o", "state=,lstart=", "-p", str(pid)],
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    state, _, started = listed.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else started.strip()


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
