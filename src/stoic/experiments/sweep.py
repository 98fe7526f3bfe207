"""Run the cells of a figure in parallel, with a sign of life, the same whatever the number of jobs.

Each worker has one BLAS thread: the matrices are small, and more threads than processors make
every one of them wait.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import joblib
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from stoic.experiments.figure import Cell, Figure
from stoic.refusal import Refusal

T = TypeVar("T")


def sweep(figure: Figure[Any, Any], settings: Any, jobs: int | None = None) -> list[Any]:
    """The rows of all cells of ``figure``, in the order of the cells.

    Parameters
    ----------
    figure:
        What to run.
    settings:
        Its settings.
    jobs:
        Number of processes; ``None`` for one per processor. Progress goes to standard error.
    """
    if jobs is not None and jobs < 1:
        raise Refusal(f"The number of jobs is at least 1, got {jobs}.")
    cells = list(figure.cells(settings))
    processes = min(joblib.cpu_count() if jobs is None else jobs, len(cells))
    parts: list[list[Any]] = [[] for _ in cells]
    for index, rows in _with_progress(
        _results(figure, settings, cells, processes), len(cells), figure.name
    ):
        parts[index] = rows
    return [row for part in parts for row in part]


def _results(
    figure: Figure[Any, Any], settings: Any, cells: Sequence[Cell], processes: int
) -> Iterator[tuple[int, list[Any]]]:
    if processes <= 1:
        with threadpool_limits(1):
            for index, cell in enumerate(cells):
                yield index, figure.run(settings, cell)
        return
    with joblib.parallel_config(
        backend="loky", n_jobs=processes, inner_max_num_threads=1, initializer=_ignore_interrupts
    ):
        run = joblib.Parallel(return_as="generator_unordered")
        yield from run(
            joblib.delayed(_one)(figure.run, settings, index, cell)
            for index, cell in enumerate(cells)
        )


def _one(run: Any, settings: Any, index: int, cell: Cell) -> tuple[int, list[Any]]:
    return index, run(settings, cell)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent, which ends the workers: no traceback from each of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _with_progress(results: Iterable[T], total: int, name: str) -> Iterator[T]:
    """The results, with a bar on a terminal and a line for every tenth elsewhere."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            yield from progress.track(results, total=total, description=name)
        return
    for done, result in enumerate(results, start=1):
        yield result
        if 10 * done // total > 10 * (done - 1) // total:
            print(f"{name}: {done} of {total} runs", file=sys.stderr, flush=True)
