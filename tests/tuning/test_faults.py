"""What machines do to a campaign: full disks, clocks that jump, programs that print rubbish."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from optuna.trial import TrialState

from scripts import trials_of
from stoic.tuning.program import Program
from stoic.tuning.reading import Reading
from stoic.tuning.storage import open_storage
from stoic.tuning.template import Template
from stoic.tuning.worker import Worker

SQUARE = "import sys; print(float(sys.argv[1]) ** 2)"


def tune(directory: Path, trials: int, *, room: int | None = None, code: str = SQUARE):
    """``stoic tune``, whose files may grow to ``room`` bytes, as on a disk that is full."""
    command = [
        sys.executable, "-m", "stoic", "tune", "--param", "x=float(-1, 1)", "--seed", "0",
        "--study-name", "squares", "--startup", "1000", "--trials", str(trials),
        "--", "{python}", "-S", "-c", code, "{x}",
    ]  # fmt: skip

    def fill() -> None:
        if room is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error, as a full disk gives
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=6000, preexec_fn=fill
    )


def stored(directory: Path) -> dict[int, float]:
    """Number -> value of all complete trials."""
    trials = trials_of(f"sqlite:///{directory}/stoic.db", "squares")
    return {t.number: t.value for t in trials if t.state == TrialState.COMPLETE}


@pytest.mark.slow  # three processes, of many trials; CI runs it
def test_a_full_disk_ends_in_one_sentence_and_nothing_told_is_lost(tmp_path):
    open_storage(f"sqlite:///{tmp_path}/stoic.db", create=True).remove_session()
    size = (tmp_path / "stoic.db").stat().st_size
    full = tune(tmp_path, 500, room=size + 8_192)
    assert full.returncode == 2, full.stdout[-500:]
    assert "Traceback" not in full.stderr
    assert full.stderr.strip().splitlines()[-1].startswith("stoic: Could not ")
    told = [
        (int(words[1]), float(words[words.index("value") + 1]))
        for words in map(str.split, full.stdout.splitlines())
        if words[:1] == ["trial"] and "value" in words
    ]
    assert len(told) > 3
    after = stored(tmp_path)
    for number, value in told:
        assert after[number] == pytest.approx(value, rel=1e-5)  # printed with six digits
    freed = tune(tmp_path, len(after) + 4)
    assert freed.returncode == 0, freed.stderr
    assert set(stored(tmp_path)) >= set(after)


def test_a_clock_that_jumps_neither_ends_a_program_nor_keeps_it(monkeypatch):
    """Time limits are those of a clock that does not jump."""
    program = Program(
        Template((sys.executable, "-S", "-c", "import time; time.sleep(0.3); print(1)")),
        Reading.parse("last-line"), Path.cwd(), 300.0,
    )  # fmt: skip
    for jump in (86_400.0, -86_400.0):
        began = time.time()
        monkeypatch.setattr(time, "time", lambda began=began, jump=jump: began + jump)
        assert program.run({}).value == 1.0
        monkeypatch.undo()
    endless = Program(
        Template((sys.executable, "-S", "-c", "import time; time.sleep(300)")),
        Reading.parse("last-line"), Path.cwd(), 0.5,
    )  # fmt: skip
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert endless.run({}).failure == "timeout after 0.5 s"


def test_a_worker_is_known_again_after_the_clock_has_jumped(monkeypatch):
    me = Worker.current()
    record = me.record()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    again = Worker.from_record(record)
    assert again == Worker.current() == me
    assert again is not None
    assert again.alive


@pytest.mark.long
def test_a_program_that_prints_rubbish_has_its_value(tmp_path):
    rubbish = (
        "import os; every = bytes(range(256)); os.write(1, every * 40 + b'\\n'); "
        "os.write(2, every); print(0.25)"
    )
    said = tune(tmp_path, 2, code=rubbish)
    assert said.returncode == 0, said.stderr
    assert list(stored(tmp_path).values()) == [0.25, 0.25]


@pytest.mark.slow  # test_cli.py refuses other spaces in one process
def test_one_name_for_two_studies_is_refused(tmp_path):
    assert tune(tmp_path, 2).returncode == 0
    other = subprocess.run(
        [sys.executable, "-m", "stoic", "tune", "--param", "depth=int(1, 9)", "--trials", "4",
         "--study-name", "squares", "--", "{python}", "-S", "-c", SQUARE, "{depth}"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert other.returncode == 2
    assert "squares" in other.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "stoic", "show", "squares", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert json.loads(shown.stdout)["counts"] == {"complete": 2}
