"""Open Optuna storage so that several processes can share one SQLite file."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, get_storage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock, JournalRedisBackend
from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy.engine import Connection
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from stoic.printable import is_json_object, printable
from stoic.refusal import RefusalError

log = logging.getLogger(__name__)

DEFAULT_URL = "sqlite:///stoic.db"
TROUBLE = (SQLAlchemyError, StorageInternalError, OSError)  # what a storage may raise
# Optuna raises these where an entry of a journal is not what it writes.
_MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
PATIENCE = 60.0  # seconds to wait for a locked SQLite file
OUTAGE = 120.0  # and for a server to come back

Answer = TypeVar("Answer")


def storage_url(given: str | None) -> str:
    """Return the given storage, else the variable OPTUNA_STORAGE, else ``DEFAULT_URL``."""
    return given or os.environ.get("OPTUNA_STORAGE") or DEFAULT_URL


def beside(directory: Path, written: str | None) -> str | None:
    """Return the storage that a study file in ``directory`` means, with what is ``written`` in it.

    A file of a relative path is beside the study file. None if nothing is written and the variable
    OPTUNA_STORAGE is set.
    """
    if written is None and os.environ.get("OPTUNA_STORAGE"):
        return None
    url = written or DEFAULT_URL
    if "://" not in url:
        return str(directory / url)
    try:
        parsed = make_url(url)
    except ArgumentError:  # opening it says why
        return url
    if (file := _file(parsed)) is None or file.is_absolute():
        return url
    return parsed.set(database=str(directory / file)).render_as_string(hide_password=False)


def open_storage(
    url: str,
    *,
    create: bool,
    kind: str | None = None,
    patience: float = PATIENCE,
    only_read: bool = False,
) -> BaseStorage:
    """Open a storage: the URL of a database or of Redis, or the path of an existing journal file.

    Parameters
    ----------
    create:
        True if a file that does not exist may be created.
    kind:
        Class of storage where the URL does not determine it: RDBStorage, JournalFileBackend or
        JournalRedisBackend.
    patience:
        Seconds to wait for a SQLite file that another process has locked.
    only_read:
        True if nothing will be written, so that a read-only SQLite file will do.
    """
    if kind not in (None, "RDBStorage", "JournalFileBackend", "JournalRedisBackend"):
        raise RefusalError(
            f"Unknown storage class {kind!r}: it may be RDBStorage, JournalFileBackend or "
            "JournalRedisBackend."
        )
    try:
        if kind == "JournalRedisBackend" or (kind is None and url.startswith("redis")):
            return _open_journal(url, Redis)
        if kind == "JournalFileBackend" or (kind is None and os.path.isfile(url)):
            if not create and not os.path.isfile(url):
                raise RefusalError(f"There is no storage at {url}: run stoic tune first.")
            if os.path.isfile(url) and not _is_journal(url):
                raise RefusalError(
                    f"{url} is not a storage: it is a file with something else in it. Give a "
                    f"database URL such as {DEFAULT_URL}, or the path of a journal."
                )
            return _open_journal(url, _journal_file)
        return _open_database(url, create, patience, only_read)
    except RefusalError:
        raise
    except ArgumentError as error:  # before TROUBLE: it is a SQLAlchemyError
        raise RefusalError(
            f"Cannot open the storage {shown(url)!r}: it is not a database URL such as "
            f"{DEFAULT_URL}."
        ) from error
    except ImportError as error:
        kind = make_url(url).get_backend_name()
        install = "install it"
        if kind == "postgresql":
            install = (
                "pip install 'stoic[postgresql]', and begin the URL with postgresql+psycopg://"
            )
        raise RefusalError(
            f"Cannot open the storage {shown(url)!r}, the driver of {kind} is missing: "
            f"{cause(error)}; {install}."
        ) from error
    except (*TROUBLE, RuntimeError) as error:  # the last: tables of another version of Optuna
        raise RefusalError(f"Cannot open the storage {shown(url)!r}: {cause(error)}.") from error


def _open_journal(
    url: str, backend: Callable[[str], JournalFileBackend | JournalRedisBackend]
) -> BaseStorage:
    try:
        return JournalStorage(backend(url))
    except _MALFORMED as error:
        raise RefusalError(
            f"Cannot read the journal {shown(url)!r}, of which an entry is not one of Optuna's: "
            f"{type(error).__name__}: {cause(error)}."
        ) from error


def _journal_file(path: str) -> JournalFileBackend:
    return JournalFileBackend(path, _WholeEntries(path))


class _WholeEntries(JournalFileSymlinkLock):
    """Lock of a journal file that removes a torn entry at its end before the next is written.

    Who wrote it has died or found the disk full. Optuna would write on in the same line, and could
    not read the journal from then on.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path

    def acquire(self) -> bool:
        acquired = super().acquire()
        try:
            with open(self._path, "rb") as file:
                torn = _torn(file)
            if torn:
                os.truncate(self._path, os.path.getsize(self._path) - torn)
                log.warning(
                    "The last entry of the journal %s was torn: its %d bytes are removed.",
                    printable(self._path),
                    torn,
                )
        except BaseException:
            self.release()
            raise
        return acquired


def _torn(file: BinaryIO) -> int:
    """Count the bytes of a file behind its last whole entry."""
    size, block = file.seek(0, os.SEEK_END), 1 << 12
    while True:
        back = min(block, size)
        file.seek(-back, os.SEEK_END)
        *lines, rest = file.read(back).split(b"\n")
        if len(lines) > 1 or back == size:
            whole = not lines or is_json_object(lines[-1])
            return len(rest) + (0 if whole else len(lines[-1]) + 1)
        block *= 16


class Redis(JournalRedisBackend):
    """Journal in Redis, with errors as other storages have them, and without snapshots.

    Those are pickles, and reading one runs what it holds.
    """

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        with _errors_of_redis():
            yield from super().read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        with _errors_of_redis():
            super().append_logs(logs)

    def load_snapshot(self) -> bytes | None:
        return None

    def save_snapshot(self, snapshot: bytes) -> None:
        pass


@contextlib.contextmanager
def _errors_of_redis() -> Iterator[None]:
    from redis.exceptions import RedisError

    try:
        yield
    except RedisError as error:
        raise StorageInternalError("Redis failed") from error


def shown(url: str) -> str:
    """Return a URL without its password, the path of a file from the root on."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        return url
    if (file := _file(parsed)) is not None:
        parsed = parsed.set(database=str(file.absolute()))
    return parsed.render_as_string(hide_password=True)


def is_new(url: str, kind: str | None = None) -> bool:
    """Return True if a storage is a file that does not exist yet, so that it holds no study."""
    if kind == "JournalFileBackend":
        return not os.path.exists(url)
    try:
        file = _file(make_url(url))
    except ArgumentError:  # open_storage reports it
        return False
    return kind != "JournalRedisBackend" and file is not None and not file.exists()


def _file(url: URL) -> Path | None:
    """Return the file of a SQLite database; None if in memory, elsewhere, or given as a URI."""
    name = url.database if url.get_backend_name() == "sqlite" else None
    return None if not name or name == ":memory:" or name.startswith("file:") else Path(name)


def _is_journal(path: str) -> bool:
    """Return True if a file is empty or begins with an entry of Optuna's journal."""
    with open(path, "rb") as file:
        first = file.readline(1 << 16)  # at most: another file may have no end of line
    try:
        return not first or "op_code" in json.loads(first)
    except (ValueError, TypeError):
        return False


def _open_database(url: str, create: bool, patience: float, only_read: bool) -> BaseStorage:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        # Before its use, SQLAlchemy replaces a connection that a restart of the server has broken.
        return get_storage(_tables_made(url, {"pool_pre_ping": True}))
    file = parsed.database
    on_disk = bool(file) and file != ":memory:"
    if (path := _file(parsed)) is not None and not path.exists():
        if not create:
            raise RefusalError(
                f"There is no storage at {url}: run stoic tune first, or give --storage."
            )
        if not path.absolute().parent.is_dir():
            raise RefusalError(
                f"Cannot open the storage {url!r}: there is no directory {str(path.parent)!r}."
            )

    storage = _tables_made(url, {"connect_args": {"timeout": patience}})
    # A file that may only be read has no write lock to take, and a database in memory would be lost
    # with its connections.
    if on_disk and not only_read:
        _begin_immediately(storage.engine)
    return get_storage(storage)  # with Optuna's cache of finished trials around it


def _tables_made(url: str, engine: dict[str, object]) -> RDBStorage:
    """Open a database, with Optuna's tables.

    Two processes that start at once may both find a table missing and both create it; the second
    gets the error that it exists, and finds it when it tries again. If a server answered and then
    broke the connection, it may be restarting: wait. One that never answered is a wrong address.
    """
    until, answered, attempts = time.monotonic() + OUTAGE, False, 5
    while True:
        try:
            return RDBStorage(url, engine_kwargs=engine)
        except (SQLAlchemyError, StorageInternalError) as error:
            reason = cause(error).lower()
            answered |= any(
                getattr(each, "connection_invalidated", False) for each in _causes(error)
            )
            if "already exists" in reason or "unique" in reason:
                attempts -= 1
                again = attempts > 0
            else:
                again = answered and _is_down(error) and time.monotonic() < until
            if not again:
                raise
            time.sleep(0.2)


def _begin_immediately(engine: Engine) -> None:
    """Take SQLite's write lock when a transaction begins, not at its first write.

    Optuna reads the state of a trial and then changes it, under a row lock that SQLite does not
    have: two processes could both take the same waiting trial. With BEGIN IMMEDIATE every
    transaction is alone.
    """

    def connected(connection: object, entry: ConnectionPoolEntry) -> None:
        # Else the driver begins transactions itself, without a lock until something is written
        connection.isolation_level = None  # type: ignore[attr-defined]  # sqlite3.Connection

    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    # The connections that made the tables were opened before there were listeners
    engine.dispose()
    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)


def patiently(action: Callable[[], Answer], what: str) -> Answer:
    """Try an action three times; each attempt waits as long as the storage was opened to wait.

    A server that does not answer may be restarting: the action is retried for ``OUTAGE`` seconds.
    ``what`` begins the refusal if every attempt fails.
    """
    attempts, until, pause = 3, time.monotonic() + OUTAGE, 0.05
    while True:
        attempts -= 1
        try:
            return action()
        except TROUBLE as error:
            down = _is_down(error)
            if attempts < 1 and not (down and time.monotonic() < until):
                raise RefusalError(f"{what}: {cause(error)}.") from error
            # No pause for a locked file: its driver has waited already, up to its timeout
            if down:
                time.sleep(pause)
                pause = min(2.0 * pause, 2.0)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _is_down(failed: BaseException) -> bool:
    """Return True if the connection to a server failed, not the query."""
    for error in _causes(failed):
        if isinstance(error, DBAPIError):
            # In SQLite an OperationalError is a lock or the disk: there is no server to come back
            module = type(error.orig).__module__
            return isinstance(error, OperationalError) and not module.startswith("sqlite3")
        if type(error).__module__.startswith("redis"):
            return type(error).__name__ in ("ConnectionError", "TimeoutError")
    return False


@contextlib.contextmanager
def in_one_sentence(what: str) -> Iterator[None]:
    """Turn an error of a storage into a refusal that begins with ``what``."""
    try:
        yield
    except TROUBLE as error:
        raise RefusalError(f"{what}: {cause(error)}.") from error


def cause(error: BaseException) -> str:
    """Return the first line of the innermost error's message."""
    *_, error = _causes(error)
    # The driver's own words: SQLAlchemy adds the statement and its parameters
    text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")
