"""Opening a storage, and sharing one SQLite file."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
import types
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from stoic.refusal import RefusalError
from stoic.tuning.storage import (
    DEFAULT_URL,
    PATIENCE,
    Redis,
    in_one_sentence,
    is_new,
    open_storage,
    patiently,
    storage_url,
)


def test_given_before_variable_before_default(monkeypatch):
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    assert storage_url(None) == DEFAULT_URL
    monkeypatch.setenv("OPTUNA_STORAGE", "sqlite:///there.db")
    assert storage_url(None) == "sqlite:///there.db"
    assert storage_url("sqlite:///here.db") == "sqlite:///here.db"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("not a url", "not a database URL"),
        ("nosuch://host/x", "Cannot open the storage"),
        ("sqlite:////nowhere/at/all/x.db", "no directory"),
        ("postgresql://localhost:1/none", "Cannot open the storage"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_one_sentence(url, said):
    with pytest.raises(RefusalError) as refusal:
        open_storage(url, create=True)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_reading_never_creates_a_file(tmp_path):
    with pytest.raises(RefusalError, match="There is no storage"):
        open_storage(f"sqlite:///{tmp_path}/x.db", create=False)
    with pytest.raises(RefusalError, match="There is no storage"):
        open_storage(f"{tmp_path}/x.log", create=False, kind="JournalFileBackend")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    file = tmp_path / "x.db"
    file.write_text("something else, and long enough not to be taken for an empty file" * 20)
    before = file.read_bytes()
    with pytest.raises(RefusalError, match="file is not a database"):
        open_storage(f"sqlite:///{file}", create=True)
    assert file.read_bytes() == before


def test_an_unknown_class_of_storage_is_refused():
    with pytest.raises(RefusalError, match="Unknown storage class"):
        open_storage("x", create=True, kind="Nothing")


def test_a_journal_file_is_recognised(tmp_path):
    file = tmp_path / "journal.log"
    storage = open_storage(str(file), create=True, kind="JournalFileBackend")
    optuna.create_study(storage=storage, study_name="s")
    again = open_storage(str(file), create=False)
    assert isinstance(again, optuna.storages.JournalStorage)
    assert isinstance(again._backend, JournalFileBackend)
    assert optuna.get_all_study_names(again) == ["s"]


def test_memory_is_a_storage_too():
    storage = open_storage("sqlite:///:memory:", create=False)
    assert optuna.get_all_study_names(storage) == []


def test_a_waiting_trial_is_taken_by_one_worker_only(tmp_path):
    """Without the write lock from the start two of them take the same trial now and then."""
    url = f"sqlite:///{tmp_path}/x.db"
    study = optuna.create_study(storage=open_storage(url, create=True), study_name="s")
    count, workers = 30, 6
    for _ in range(count):
        study.add_trial(create_trial(state=TrialState.WAITING))
    taken: list[list[int]] = [[] for _ in range(workers)]
    barrier = threading.Barrier(workers)

    def work(mine: list[int]) -> None:
        own = optuna.load_study(study_name="s", storage=open_storage(url, create=False))
        barrier.wait()
        while (trial_id := own._pop_waiting_trial_id()) is not None:
            mine.append(trial_id)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = [trial_id for mine in taken for trial_id in mine]
    assert len(together) == count
    assert len(set(together)) == count


def test_several_may_create_one_database_at_once(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    failed: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        try:
            optuna.create_study(
                storage=open_storage(url, create=True), study_name="s", load_if_exists=True
            )
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert optuna.get_all_study_names(open_storage(url, create=False)) == ["s"]


def lock(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def test_a_locked_file_is_waited_for_and_then_named(tmp_path):
    file = tmp_path / "x.db"
    url = f"sqlite:///{file}"
    study = optuna.create_study(storage=open_storage(url, create=True, patience=0.2))
    held = lock(file)
    begun = time.monotonic()
    with pytest.raises(RefusalError, match=r"could not write: database is locked\."):
        patiently(lambda: study.set_user_attr("a", 1), "could not write")
    assert 0.5 < time.monotonic() - begun < PATIENCE
    with pytest.raises(RefusalError, match="database is locked"):
        open_storage(url, create=True, patience=0.2)
    threading.Timer(0.3, held.close).start()
    patient = optuna.load_study(
        study_name=study.study_name, storage=open_storage(url, create=True, patience=PATIENCE)
    )
    assert patient.trials == []


@pytest.mark.parametrize("content", [b"my notes\n", b"[1, 2]\n", b'{"a": 1}\n', b"\x00\xff"])
def test_a_file_that_is_no_storage_is_refused_and_left_alone(tmp_path, content):
    notes = tmp_path / "notes.txt"
    notes.write_bytes(content)
    with pytest.raises(RefusalError, match="is not a storage"):
        open_storage(str(notes), create=True)
    assert notes.read_bytes() == content


@pytest.mark.parametrize("torn", [b'{"op', b"x" * 10_000, b"{}", b'{"op\n', b"x" * 9_000 + b"\n"])
def test_a_torn_entry_at_the_end_of_a_journal_is_removed_before_the_next(tmp_path, torn, caplog):
    path = tmp_path / "journal.log"
    storage = open_storage(str(path), create=True, kind="JournalFileBackend")
    study = optuna.create_study(storage=storage)
    study.add_trial(optuna.create_trial(value=1.0))
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    read = open_storage(str(path), create=False)
    (again,) = optuna.get_all_study_names(read)
    assert path.read_bytes() == whole + torn  # who reads changes nothing
    optuna.load_study(study_name=again, storage=read).add_trial(optuna.create_trial(value=2.0))
    assert f"its {len(torn)} bytes are removed" in caplog.text
    values = [trial.value for trial in study.trials]
    assert values == [1.0, 2.0]
    assert path.read_bytes().startswith(whole)


def test_a_journal_is_opened_again(tmp_path):
    journal = str(tmp_path / "journal.log")
    (tmp_path / "journal.log").touch()
    first = optuna.create_study(storage=open_storage(journal, create=True), study_name="s")
    first.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    again = optuna.load_study(study_name="s", storage=open_storage(journal, create=False))
    assert len(again.trials) == 2


def test_a_storage_is_new_if_its_file_is_not_there(tmp_path):
    path = tmp_path / "x.db"
    assert is_new(f"sqlite:///{path}")
    assert is_new(str(path), "JournalFileBackend")
    path.touch()
    for url, kind in (
        (f"sqlite:///{path}", None),
        (str(path), "JournalFileBackend"),
        (str(path), None),
        ("sqlite://", None),
        ("sqlite:///:memory:", None),
        ("sqlite:///file:x?mode=ro&uri=true", None),
        ("redis://localhost", "JournalRedisBackend"),
        ("postgresql://localhost/x", None),
        ("no url at all", None),
    ):
        assert not is_new(url, kind)


def test_a_refused_url_is_shown_without_its_password():
    with pytest.raises(RefusalError) as refused:
        open_storage("mysql+nosuchdriver://me:hunter2@nowhere/db", create=True)
    assert "hunter2" not in str(refused.value)
    assert "me:***@nowhere" in str(refused.value)


@pytest.mark.parametrize(
    "entry", [{"op_code": 4, "worker_id": "w"}, {"op_code": 99, "worker_id": "w"}, {"op_code": 0}]
)
def test_a_journal_in_which_something_else_has_written_is_refused(tmp_path, entry):
    path = tmp_path / "study.log"
    optuna.create_study(storage=JournalStorage(JournalFileBackend(str(path))))
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    with pytest.raises(RefusalError, match="of which an entry is not one of Optuna's"):
        open_storage(str(path), create=False)


class DownError(Exception):
    """A ConnectionError of Redis."""


class Client:
    """As much of a client of Redis as a journal needs; it may be down."""

    def __init__(self):
        self.held, self.down = {"p:snapshot": b"cos\nsystem\n(S'false'\ntR."}, False

    def get(self, key):
        if self.down:
            raise DownError("connection refused")
        return self.held.get(key)

    def set(self, key, value):
        self.held[key] = value

    def setnx(self, key, value):
        self.get(key)
        self.held.setdefault(key, value)

    def eval(self, script, keys, prefix, log):
        self.held[f"{prefix}:log_number"] += 1
        self.held[f"{prefix}:log:{self.held[f'{prefix}:log_number']}"] = log


def test_redis_tells_its_errors_as_others_do_and_nothing_in_it_is_run(monkeypatch):
    exceptions = types.ModuleType("redis.exceptions")
    exceptions.RedisError = DownError
    monkeypatch.setitem(sys.modules, "redis", types.ModuleType("redis"))
    monkeypatch.setitem(sys.modules, "redis.exceptions", exceptions)
    backend, client = Redis.__new__(Redis), Client()
    backend._redis, backend._prefix, backend._use_cluster = client, "p", False
    ran = []
    monkeypatch.setattr("pickle.loads", lambda *_: ran.append(1))
    study = optuna.create_study(storage=JournalStorage(backend))
    for _ in range(101):  # a journal takes a snapshot now and then
        study.tell(study.ask(), 1.0)
    assert len(optuna.load_study(study_name=study.study_name, storage=study._storage).trials) == 101
    assert not ran
    client.down = True
    refused = pytest.raises(RefusalError, match=r"Could not read it: connection refused\.")
    with refused, in_one_sentence("Could not read it"):
        study.ask()
