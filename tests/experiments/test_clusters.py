"""The same figure, on clusters of two processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stoic.experiments import find
from stoic.experiments.reproduction import with_options
from stoic.experiments.sweep import sweep
from stoic.refusal import RefusalError

FIGURE = find("corruption/figure-2")
SETTINGS = with_options(FIGURE.settings, trials=1, rounds=60)


@pytest.fixture(scope="module")
def alone():
    return sweep(FIGURE, SETTINGS, 1)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a Dask scheduler with two workers, each a process of its own."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    directory = tmp_path_factory.mktemp("dask")
    file = directory / "scheduler.json"
    programs = [
        ["dask", "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
        *2 * [["dask", "worker", "--scheduler-file", str(file), "--nthreads", "1",
               "--no-dashboard", "--local-directory", str(directory)]],
    ]  # fmt: skip
    started = []
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    try:
        for program in programs:
            while started and not file.exists():
                assert started[0].poll() is None
                time.sleep(0.1)
            started.append(
                subprocess.Popen(
                    program, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.kill()
        for process in started:
            process.wait(timeout=120)


def test_a_cluster_of_two_processes_gives_the_same_results(scheduler, alone):
    from distributed import Client

    with Client(scheduler) as client:
        client.wait_for_workers(2, timeout=300)
        pids = set(client.run(os.getpid).values())
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert sweep(FIGURE, SETTINGS, backend="dask", address=scheduler) == alone


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rounds"), [("corruption/figure-2", "20"), ("matrix", "6")])
def test_the_command_says_and_writes_the_same_on_a_cluster(name, rounds, scheduler, tmp_path):
    command = [sys.executable, "-m", "stoic", "reproduce", name, "--trials", "1", "--json"]
    where = {"here": ["--jobs", "2"], "there": ["--backend", "dask", "--address", scheduler]}
    said = {
        place: subprocess.run(
            [*command, "--rounds", rounds, *options, "--out", str(tmp_path / place)],
            capture_output=True, text=True, check=True,
        ).stdout
        for place, options in where.items()
    }  # fmt: skip
    assert json.loads(said["there"]) == json.loads(said["here"])
    table = f"{name.replace('/', '-')}.csv"
    rows = (tmp_path / "here" / table).read_text()
    assert rows.count("\n") > 60
    assert (tmp_path / "there" / table).read_text() == rows


def test_ray_gives_the_same_results(alone):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    assert sweep(FIGURE, SETTINGS, 2, backend="ray") == alone


def test_what_is_not_a_cluster_is_refused():
    with pytest.raises(RefusalError, match="one of local, dask, ray, got 'slurm'"):
        sweep(FIGURE, SETTINGS, backend="slurm")
    with pytest.raises(RefusalError, match="--backend dask or ray"):
        sweep(FIGURE, SETTINGS, address="tcp://localhost:8786")
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    with pytest.raises(RefusalError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:1"):
        sweep(FIGURE, SETTINGS, backend="dask", address="tcp://127.0.0.1:1")
