from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from stoic.experiments.figure import Cell, Figure
from stoic.experiments.sweep import sweep


@dataclass(frozen=True)
class Settings:
    trials: int = 7


class Row(NamedTuple):
    seed: int
    draw: float
    threads: int


def cells(settings):
    return [Cell("panel", "method", seed) for seed in range(settings.trials)]


def run(settings, cell):
    rng = np.random.default_rng(cell.seed)
    matrix = rng.random((200, 200))
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    return [Row(cell.seed, float((matrix @ matrix).sum()), threads) for _ in range(2)]


def fail(settings, cell):
    raise ArithmeticError(f"cell {cell.seed} broke")


def figure(run):
    return Figure("test/sweep", "", Settings(), cells, run, None, None, None)


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_come_in_the_order_of_the_cells(jobs):
    parts = sweep(figure(run), Settings(), jobs)
    assert [len(part) for part in parts] == [2] * 7
    rows = [row for part in parts for row in part]
    assert [row.seed for row in rows] == [seed for seed in range(7) for _ in range(2)]
    assert {row.threads for row in rows} == {1}  # one BLAS thread, in workers and out


def test_results_do_not_depend_on_the_number_of_jobs():
    assert sweep(figure(run), Settings(), 1) == sweep(figure(run), Settings(), 2)


def test_progress_is_plain_lines_on_standard_error(capsys):
    sweep(figure(run), Settings(20), 1)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "test/sweep: 2 of 20 runs"
    assert lines[-1] == "test/sweep: 20 of 20 runs"
    assert len(lines) == 10


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_run_is_not_swallowed(jobs):
    with pytest.raises(ArithmeticError, match="cell 0 broke"):
        sweep(figure(fail), Settings(1), jobs)


def test_impossible_numbers_of_jobs_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        sweep(figure(run), Settings(), 0)
