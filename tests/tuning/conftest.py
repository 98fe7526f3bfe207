"""A real PostgreSQL server, where Debian's package is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


class Server:
    """A PostgreSQL server on loopback, with a data directory of its own."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self.programs, self.directory = programs, directory
        self.user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        if self.user:
            shutil.chown(directory, self.user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._run("initdb", "-D", self.data, "-U", "stoic", "--auth=trust", "--no-sync")

    @property
    def data(self) -> str:
        return str(self.directory / "data")

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://stoic@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.directory}"
        log = str(self.directory / "log")
        self._run("pg_ctl", "start", "-w", "-D", self.data, "-l", log, "-o", options)

    def kill(self) -> None:
        """As kill -9 would end it: connections break, recovery is for the next start."""
        self._run("pg_ctl", "stop", "-D", self.data, "-m", "immediate")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.programs / program, *arguments],
            user=self.user, cwd=self.directory, check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture
def postgresql() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("the Debian package postgresql is not installed")
    with tempfile.TemporaryDirectory() as directory:  # short: a socket's path has a limit
        os.chmod(directory, 0o755)
        server = Server(found[-1].parent, Path(directory))
        server.start()
        try:
            yield server
        finally:
            subprocess.run(
                [server.programs / "pg_ctl", "stop", "-D", server.data, "-m", "immediate"],
                user=server.user, cwd=directory, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
