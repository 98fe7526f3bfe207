"""Several workers by one command: they share the study, and end together."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from stoic.refusal import RefusalError
from stoic.tuning.trials import WORKER
from stoic.tuning.workers import alone, check_workers, run_workers

# Each run leaves a file, and waits until there are two: alone it would wait for a minute.
TWO = (
    "import os, pathlib, sys, time\n"
    "here = pathlib.Path('run-' + os.environ['STOIC_TRIAL'])\n"
    "here.touch()\n"
    "end = time.monotonic() + 60\n"
    "while len(list(pathlib.Path().glob('run-*'))) < {count} and time.monotonic() < end:\n"
    "    time.sleep(0.05)\n"
    "assert time.monotonic() < end\n"
    "print(float(sys.argv[1]) ** 2)\n"
)


def tune(where: Path, trials: int, count: int, program: str = TWO) -> subprocess.Popen[str]:
    (where / "program.py").write_text(program.replace("{count}", str(count)))
    command = [
        sys.executable, "-m", "stoic", "tune", "--study-name", "shared", "-n", str(trials),
        "--workers=2", "--param", "x=float(-1, 1)", "--", sys.executable, "-S", "program.py", "{x}",
    ]  # fmt: skip
    return subprocess.Popen(
        command, cwd=where, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def trials_of(where: Path) -> list[optuna.trial.FrozenTrial]:
    storage = f"sqlite:///{where / 'stoic.db'}"
    return optuna.load_study(study_name="shared", storage=storage).trials


def test_only_the_option_is_left_out():
    command = ["tune", "--workers", "3", "-n", "5", "--", "a", "--workers", "4", "--workers=4"]
    assert alone(command) == ["tune", "-n", "5", "--", "a", "--workers", "4", "--workers=4"]
    assert alone(["tune", "--workers=3", "study.toml"]) == ["tune", "study.toml"]


@pytest.mark.parametrize("count", [-1, 0, 257])
def test_a_number_that_cannot_be_is_refused(count):
    with pytest.raises(RefusalError, match=f"between 1 and 256, got {count}"):
        check_workers(count, "sqlite:///a.db")
    with pytest.raises(RefusalError, match="in memory"):
        check_workers(2, "sqlite:///:memory:")
    assert check_workers(1, "sqlite:///:memory:") == 1


def test_two_run_at_once_and_each_trial_once(tmp_path):
    process = tune(tmp_path, 4, 2)
    out, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    trials = trials_of(tmp_path)
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    assert all(trial.state == TrialState.COMPLETE for trial in trials)
    assert len({str(trial.system_attrs[WORKER]) for trial in trials}) == 2
    lines = out.splitlines()
    assert sum(line.startswith("trial ") for line in lines) == 4
    assert sum(line.startswith("study shared (minimize): 4 trials") for line in lines) == 1


def test_a_signal_ends_all_of_them(tmp_path):
    process = tune(tmp_path, 4, 99)
    until = time.monotonic() + 120
    while len(list(tmp_path.glob("run-*"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert "stopped by signal 15; run the same command again to resume" in out
    trials = trials_of(tmp_path)
    assert len(trials) == 2
    assert all(trial.state == TrialState.FAIL for trial in trials)
    assert all(trial.user_attrs["stoic:failed"] == "transient" for trial in trials)


def test_all_of_them_end_when_the_reader_of_their_lines_has_left(tmp_path):
    with tune(tmp_path, 2000, 1, "print(1.0)") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("study shared")
        process.stdout.close()  # as head does
        assert (process.wait(120), process.stderr.read()) == (1, "")
    states = {trial.state for trial in trials_of(tmp_path)}
    assert states <= {TrialState.COMPLETE, TrialState.FAIL}  # no trial of a lost worker


def test_a_warning_that_cannot_be_written_ends_nothing():
    def say(line, error):
        if error:
            raise OSError(28, "No space left on device")

    stop, codes = run_workers(2, ["--none"], say)
    assert (bool(stop), codes) == (False, [2, 2])  # what they ended with


def test_workers_that_are_killed_are_told_and_what_is_missing_is_an_error(tmp_path):
    process = tune(tmp_path, 4, 1, "import os; os.kill(os.getppid(), 9)")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "stoic: 2 of 2 workers failed, with exit code -9." in errors.splitlines()
