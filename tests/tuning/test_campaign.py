"""`stoic tune` as real processes that are killed, interrupted, doubled and starved.

What can be claimed after kill -9. Stoic prints a line for a trial after the storage has its value.
So every printed value must be in the storage. A value that the program has printed but that stoic
had not stored when it was killed cannot be known to anyone: its trial is marked as failed, and it
is never run again under the same number. The program writes each value it computes to a log of
its own, so that the storage can be checked against what was truly computed.
"""

from __future__ import annotations

import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from stoic.tuning.campaign import Explain, Observer, Stop, run
from stoic.tuning.program import Result
from stoic.tuning.search import Search, StudyMethod
from stoic.tuning.study import open_study
from stoic.tuning.worker import Worker

PROGRAM = """
import os, sys, time
x, pause, log = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
time.sleep(pause)
while os.path.exists(log + ".closed"):
    open(log + ".waiting", "w").close()
    time.sleep(0.01)
line = f"{os.environ['STOIC_TRIAL']} {os.getpid()} {x * x!r}\\n"
descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(descriptor, line.encode())
os.fsync(descriptor)
print(x * x)
"""


PATIENCE = 300.0  # seconds: only what is broken takes as long, a loaded machine does not


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """Signals as at a terminal, here and in what is started: behind ``nohup`` some are ignored."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Campaign:
    """A study in a directory of its own, worked on by processes."""

    def __init__(self, directory: Path, pause: float) -> None:
        self.directory = directory
        self.log = directory / "log"
        self.program = directory / "program.py"
        self.program.write_text(PROGRAM)
        self.pause = pause
        self.closed = directory / "log.closed"  # while it is there no program comes to its end
        self.waiting = directory / "log.waiting"  # one has got there

    def start(self, trials: int, output: Path | None = None, *more: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "stoic",
            "tune",
            "--param",
            "x=float(-1, 1)",
            "--seed",
            "0",
        ]
        command += ["--trials", str(trials), "--startup", "1000", *more, "--"]
        command += ["{python}", "-S", str(self.program), "{x}", str(self.pause), str(self.log)]
        with open(output or os.devnull, "ab") as told:
            return subprocess.Popen(
                command, cwd=self.directory, stdout=told, stderr=subprocess.STDOUT
            )

    def trials(self) -> list[FrozenTrial]:
        storage = f"sqlite:///{self.directory}/stoic.db"
        return optuna.load_study(study_name="stoic", storage=storage).trials

    def program_of(self, trial: int) -> Worker | None:
        """The process that a trial runs, read without Optuna, which would make missing tables."""
        query = (
            "SELECT value_json FROM trial_system_attributes JOIN trials USING (trial_id) "
            "WHERE number = ? AND key = 'stoic:program'"
        )
        try:
            with closing(
                sqlite3.connect(f"file:{self.directory}/stoic.db?mode=ro", uri=True)
            ) as db:
                found = db.execute(query, (trial,)).fetchone()
        except sqlite3.OperationalError:  # not there yet
            return None
        return Worker.from_record(json.loads(found[0])) if found else None

    def computed(self) -> list[tuple[int, int, float]]:
        """(trial, process, value) of every run of the program that came to its end."""
        lines = self.log.read_text().split("\n")[:-1] if self.log.exists() else []
        return [(int(n), int(p), float(v)) for n, p, v in map(str.split, lines)]


def announced(output: Path) -> dict[int, float]:
    """Trial -> value, for each line that stoic printed whole."""
    found: dict[int, float] = {}
    for line in output.read_text().split("\n")[:-1]:
        words = line.split()
        if line.startswith("trial ") and "value" in words:
            assert int(words[1]) not in found, "a trial is announced twice"
            found[int(words[1])] = float(words[words.index("value") + 1])
    return found


def wait_for(what) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_value_is_stored_before_anything_is_said_about_it():
    """What the claim above rests on; and explaining, which costs a fit, is left to the observer."""
    space = {"x": FloatDistribution(0, 1)}
    study = open_study(optuna.storages.InMemoryStorage(), "s", "minimize", space, RandomSampler())
    said: list[tuple[int, str, list[float] | None]] = []

    class Looking(Observer):
        def begun(self, trial: optuna.Trial) -> None:
            stored = study.trials[trial.number]
            said.append((trial.number, stored.state.name, stored.values))

        def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
            stored = study.trials[trial.number]
            said.append((trial.number, stored.state.name, stored.values))

    def evaluate(trial: optuna.Trial, repeat: int) -> Result:
        if trial.number == 1:
            return Result(None, "exit code 1", "", 0.0)
        return Result(float(trial.number), None, "", 0.0)

    run(study, Search(space=space, trials=3), evaluate, Looking(), Stop(), StudyMethod())
    assert said == [
        (0, "RUNNING", None),
        (0, "COMPLETE", [0.0]),
        (1, "RUNNING", None),
        (1, "FAIL", None),
        (2, "RUNNING", None),
        (2, "COMPLETE", [2.0]),
    ]


def test_signals_are_given_back_and_those_that_are_ignored_stay_so():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stop() as stop:
            assert not stop
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop
            os.kill(os.getpid(), signal.SIGINT)
            assert stop.signal == signal.SIGINT
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.signal == signal.SIGINT
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGHUP, hangup)
    assert before == {number: signal.getsignal(number) for number in before}


# One kill for certain while a program runs, which is stopped on resume; others at any instant.
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_kill_nine_many_times_and_resume(tmp_path, kills):
    campaign = Campaign(tmp_path, pause=0.25)
    output = tmp_path / "output"
    chance = random.Random(20)
    for turn in range(kills):
        before = len(announced(output)) if output.exists() else 0
        with ended(campaign.start(1000, output)) as process:
            if turn % 3 == 1:  # anywhere, also while Python starts and the database is made
                time.sleep(chance.uniform(0.2, 1.6))
            else:  # in the middle of the work
                wait_for(lambda seen=before: len(announced(output)) > seen)
                time.sleep(chance.uniform(0.0, 0.5))
            if turn == kills - 1:
                campaign.closed.touch()
                campaign.waiting.unlink(missing_ok=True)
                wait_for(campaign.waiting.exists)
            assert process.poll() is None
            process.send_signal(signal.SIGKILL)
    stored = campaign.trials()
    orphan = campaign.program_of(len(stored) - 1)
    assert orphan is not None
    assert orphan.alive
    total = len(stored) + 4
    with ended(campaign.start(total, output)) as last:
        wait_for(lambda: not orphan.alive)
        campaign.closed.unlink()
        assert last.wait(timeout=PATIENCE) == 0

    stored = campaign.trials()
    assert [trial.number for trial in stored] == list(range(total))
    assert all(trial.state.is_finished() for trial in stored)
    told = {trial.number: trial.value for trial in stored if trial.state == TrialState.COMPLETE}
    lost = [trial for trial in stored if trial.state == TrialState.FAIL]
    for number, value in announced(output).items():
        assert told[number] == pytest.approx(value, rel=1e-5)  # the line has six digits
    computed = {number: value for number, _, value in campaign.computed()}
    assert len(computed) == len(campaign.computed()), "a trial was run twice"
    assert told.items() <= computed.items(), "a value was made up"
    assert {trial.user_attrs["failure"] for trial in lost} == {"its worker died"}
    assert {trial.user_attrs["stoic:failed"] for trial in lost} == {"transient"}
    assert 1 <= len(lost) <= kills  # at most one for each kill
    assert total - len(told) == len(lost)
    me = Worker.current()
    assert all(Worker.of(process, me).started == "" for _, process, _ in campaign.computed())


@pytest.mark.long
def test_two_workers_share_the_work(tmp_path):
    campaign = Campaign(tmp_path, pause=0.02)
    campaign.closed.touch()
    outputs = [tmp_path / "one", tmp_path / "two"]
    with ended(campaign.start(9, outputs[0])) as one, ended(campaign.start(9, outputs[1])) as two:
        wait_for(lambda: campaign.program_of(0) and campaign.program_of(1))  # both have begun
        campaign.closed.unlink()
        assert one.wait(timeout=PATIENCE) == 0
        assert two.wait(timeout=PATIENCE) == 0
    stored = campaign.trials()
    assert [trial.number for trial in stored] == list(range(9))
    assert all(trial.state == TrialState.COMPLETE for trial in stored)
    mine, theirs = (announced(output) for output in outputs)
    assert mine.keys() | theirs.keys() == set(range(9))
    assert not mine.keys() & theirs.keys()
    assert mine
    assert theirs
    assert sorted(number for number, _, _ in campaign.computed()) == list(range(9))


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_a_signal_stops_cleanly(tmp_path, number, code):
    campaign = Campaign(tmp_path, pause=0)
    output = tmp_path / "output"
    with ended(campaign.start(999, output)) as process:
        wait_for(lambda: len(announced(output)) >= 3)
        campaign.closed.touch()
        wait_for(campaign.waiting.exists)
        *done, last = campaign.trials()
        program = campaign.program_of(last.number)
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == code
    assert not program.alive
    stored = campaign.trials()
    assert [trial.state.name for trial in stored] == ["COMPLETE"] * len(done) + ["FAIL"]
    assert stored[-1].user_attrs["failure"] == "interrupted"
    printed = output.read_text()
    assert "Traceback" not in printed
    assert printed.count("recommended    trial") == 1, "the summary is printed all the same"
    assert f"1 x interrupted (transient): trial {last.number}" in printed


def test_a_terminal_gets_a_live_table(tmp_path):
    campaign = Campaign(tmp_path, pause=0)
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "stoic", "tune", "-p", "x=float(-1, 1)", "-n", "5", "--"]
    command += ["{python}", "-S", str(campaign.program), "{x}", "0", str(campaign.log)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(command, cwd=tmp_path, stdout=terminal, env=environment)
    os.close(terminal)
    seen = b""
    with ended(process):
        while True:
            try:
                data = os.read(main, 4096)
            except OSError:  # Linux tells the end of a terminal so
                break
            if not data:
                break
            seen += data
        assert process.wait(timeout=PATIENCE) == 0
    os.close(main)
    text = seen.decode()
    assert "recommended so far: trial" in text
    assert "5 of 5 trials begun" in text
    assert "observed best  trial" in text


@pytest.mark.long
def test_a_value_that_cannot_be_stored_is_in_the_sentence(tmp_path):
    campaign = Campaign(tmp_path, pause=0)
    campaign.closed.touch()
    output = tmp_path / "output"
    with ended(campaign.start(5, output, "--patience", "0.2")) as process:
        wait_for(lambda: campaign.program_of(0) is not None)
        blocking = sqlite3.connect(tmp_path / "stoic.db", isolation_level=None)
        blocking.execute("BEGIN EXCLUSIVE")
        campaign.closed.unlink()
        assert process.wait(timeout=PATIENCE) == 2
        blocking.close()
    printed = output.read_text()
    value = campaign.computed()[0][2]
    assert f"Could not store the value {value!r} of trial 0: database is locked." in printed
    assert "Traceback" not in printed


def test_closing_the_terminal_is_a_hangup(tmp_path):
    command = [
        sys.executable, "-m", "stoic", "tune", "--param", "x=float(0, 1)", "--trials", "9999",
        "--", "sh", "-c", "echo {x}",
    ]  # fmt: skip
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup ignores
        os.execv(sys.executable, command)
    seen = b""
    while b"recommended so far" not in seen:
        seen += os.read(terminal, 1 << 16)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (128 + signal.SIGHUP, -signal.SIGHUP)
    with closing(sqlite3.connect(tmp_path / "stoic.db")) as storage:
        (complete,) = storage.execute(
            "SELECT count(*) FROM trials WHERE state = 'COMPLETE'"
        ).fetchone()
    assert complete >= 1
