"""Several `stoic tune` on one storage: every result counts once, and no two ask the same."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from sqlalchemy import Engine, event

from scripts import trials_of
from stoic.tuning.storage import open_storage
from stoic.tuning.study import COMMAND, find_study, known_space, open_study

# No program ends before every worker has begun one, nor from trial 8 on while a file says so.
BOWL = """
import os, sys, time
x, y = map(float, sys.argv[1:3])
here, workers = sys.argv[3], int(sys.argv[4])
open(f"{here}/begun-{os.getppid()}", "w").close()
while sum(name.startswith("begun-") for name in os.listdir(here)) < workers:
    time.sleep(0.01)
while int(os.environ["STOIC_TRIAL"]) >= 8 and os.path.exists(f"{here}/closed"):
    time.sleep(0.01)
time.sleep(0.3)
print(x * x + y * y)
"""


def tune(directory: Path, storage: str, trials: int, workers: int) -> list[subprocess.Popen[str]]:
    command = [
        sys.executable, "-m", "stoic", "tune", "--storage", storage, "--study-name", "bowl",
        "--param", "x=float(-1, 1)", "--param", "y=float(-1, 1)", "--trials", str(trials),
        "--seed", "3", "--startup", "4", "--", "{python}", "-S", str(directory / "bowl.py"),
        "{x}", "{y}", str(directory), str(workers),
    ]  # fmt: skip
    (directory / "bowl.py").write_text(BOWL)
    return [
        subprocess.Popen(
            command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for _ in range(workers)
    ]


def finished(processes: list[subprocess.Popen[str]], within: float) -> None:
    try:
        for process in processes:
            said, _ = process.communicate(timeout=within)
            assert process.returncode == 0, said
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def check(directory: Path, storage: str, trials: int) -> None:
    """No trial is lost, none is doubled, and show agrees with the storage."""
    found = trials_of(storage, "bowl")
    stored, back = found[:trials], found[trials:]
    assert [trial.number for trial in stored] == list(range(trials))
    # A worker that took one too many has put it back into the queue
    assert all(trial.state == TrialState.WAITING for trial in back)
    assert {trial.state for trial in stored} == {TrialState.COMPLETE}
    points = np.array([[trial.params["x"], trial.params["y"]] for trial in stored])
    values = np.array([trial.value for trial in stored])
    np.testing.assert_allclose(values, (points**2).sum(axis=1), rtol=1e-12)
    assert len(np.unique(points, axis=0)) == trials
    together = [
        (a.number, b.number)
        for a, b in combinations(stored, 2)
        if a.datetime_start < b.datetime_complete and b.datetime_start < a.datetime_complete
    ]
    assert len(together) >= trials // 4  # they did run at the same time, on a busy machine, too
    # Later, all of them are within a millionth of the bottom.
    apart = [np.abs(points[a] - points[b]).max() for a, b in together if b < 24]
    assert min(apart) > 1e-6
    shown = subprocess.run(
        [sys.executable, "-m", "stoic", "show", "bowl", "--storage", storage, "--json"],
        cwd=directory, capture_output=True, text=True, check=True,
    )  # fmt: skip
    summary = json.loads(shown.stdout)
    waiting = {"waiting": len(back)} if back else {}
    assert summary["counts"] == {"complete": trials} | waiting
    assert summary["observed_best"]["number"] == int(np.argmin(values))
    assert summary["distrusted"] == []
    # Which trials follow the first ten depends on who was faster.
    assert summary["recommended"]["mean"] == pytest.approx(values.min(), abs=0.05)


SIZES = [
    pytest.param(2, 12, id="2-workers"),
    pytest.param(8, 200, id="8-workers", marks=pytest.mark.slow),
]


@pytest.mark.slow  # two workers share a file in test_campaign.py, and a server below
@pytest.mark.parametrize(("workers", "trials"), SIZES)
def test_one_sqlite_file(tmp_path, workers, trials):
    storage = f"sqlite:///{tmp_path}/study.db"
    finished(tune(tmp_path, storage, trials, workers), within=3600)
    check(tmp_path, storage, trials)


@pytest.mark.parametrize(("workers", "trials"), SIZES)
def test_one_postgresql_server(tmp_path, postgresql, workers, trials):
    finished(tune(tmp_path, postgresql.url, trials, workers), within=3600)
    check(tmp_path, postgresql.url, trials)


def test_a_server_that_is_killed_and_comes_back_has_every_result(tmp_path, postgresql):
    closed = tmp_path / "closed"
    closed.touch()
    workers = tune(tmp_path, postgresql.url, 16, workers=2)
    until = time.monotonic() + 300.0
    while time.monotonic() < until:
        try:
            stored = trials_of(postgresql.url, "bowl")
        except (KeyError, optuna.exceptions.StorageInternalError):
            stored = []
        if len(stored) >= 6:
            break
        time.sleep(0.05)
    postgresql.kill()
    closed.unlink()
    time.sleep(1.0)
    assert [worker.poll() for worker in workers] == [None, None]
    postgresql.start()
    finished(workers, within=3600)
    trials = trials_of(postgresql.url, "bowl")
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    assert len(complete) >= 14  # whoever lost the answer of the storage may leave one behind
    for trial in complete:
        assert trial.value == pytest.approx(trial.params["x"] ** 2 + trial.params["y"] ** 2)


# Of about 50 statements: most make tables, those from about the 40th on make the study.
@pytest.mark.parametrize("at", [1, 30, 41, 49])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_restarts_while_a_study_is_created(postgresql, at):
    left = iter(range(at))

    def restart(*_: object) -> None:
        if next(left, None) == at - 1:
            postgresql.kill()
            postgresql.start()

    space = {"x": FloatDistribution(0.0, 1.0)}
    event.listen(Engine, "before_cursor_execute", restart)
    event.listen(Engine, "commit", restart)
    try:
        storage = open_storage(postgresql.url, create=True)
        assert find_study(storage, "bowl") is None
        open_study(storage, "bowl", "minimize", space, RandomSampler(), ("true",))
    finally:
        event.remove(Engine, "before_cursor_execute", restart)
        event.remove(Engine, "commit", restart)
    assert next(left, None) is None  # it did restart
    storage.remove_session()
    study = find_study(storage, "bowl")
    assert study is not None
    assert known_space(study) == space
    assert study.user_attrs[COMMAND] == ["true"]
    storage._backend.engine.dispose()
    gc.collect()  # attempts that failed leave connections behind
