"""optuna-dashboard, running, on a study of ours."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

LYING = (
    "import os, sys; x = float(sys.argv[1]); "
    "print(-1e6 if os.environ['STOIC_TRIAL'] == '7' else x * x)"
)


@pytest.fixture
def dashboard(tmp_path):
    """The address of a dashboard on a study that was tuned by the command line."""
    program = shutil.which("optuna-dashboard", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("optuna-dashboard is not installed")
    storage = f"sqlite:///{tmp_path}/study.db"
    subprocess.run(
        [
            sys.executable, "-m", "stoic", "tune", "--storage", storage, "--study-name", "squares",
            "--param", "x=float(-1, 1)", "--trials", "14", "--seed", "0", "--startup", "6",
            "--", "{python}", "-S", "-c", LYING, "{x}",
        ],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, storage, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=120)


def read(url: str) -> dict:
    until = time.monotonic() + 300.0
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < until, "the dashboard does not answer"
            time.sleep(0.2)


def test_a_dashboard_shows_the_trials_and_what_is_believed(dashboard):
    [summary] = read(f"{dashboard}/api/studies")["study_summaries"]
    assert summary["study_name"] == "squares"
    study = read(f"{dashboard}/api/studies/{summary['study_id']}?after=0")
    assert len(study["trials"]) == 14
    values = {trial["number"]: float(trial["values"][0]) for trial in study["trials"]}
    assert values[7] == -1e6
    assert max(abs(value) for number, value in values.items() if number != 7) <= 1.0
    # A text is sent as it is, all else as JSON.
    attributes = {each["key"]: each["value"] for each in study["user_attrs"]}
    assert attributes["stoic:directory"]
    trust = json.loads(attributes["stoic:trust:0-199"])
    assert set(trust) == {str(number) for number in range(14)}
    assert trust["7"] == 0.0
    assert min(value for number, value in trust.items() if number != "7") > 0.5
