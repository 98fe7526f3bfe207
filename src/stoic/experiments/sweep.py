"""Run the cells of a figure in parallel, with progress, the same wherever they run.

Each worker has one BLAS thread: the matrices are small, and more threads than processors make
every one of them wait.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

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
from stoic.experiments.partial import Partial
from stoic.refusal import RefusalError

T = TypeVar("T")


Backend = Literal["local", "dask", "ray"]
Result = tuple[int, list[Any]]  # number and rows of a cell
Work = tuple[Any, Any, Sequence[tuple[int, Cell]]]  # function, settings and numbered cells


def sweep(
    figure: Figure[Any, Any],
    settings: Any,
    jobs: int | None = None,
    backend: Backend = "local",
    address: str | None = None,
    partial: Partial | None = None,
) -> list[list[Any]]:
    """Run all cells of ``figure``; return the rows of each, in the order of the cells.

    Parameters
    ----------
    figure:
        Figure to run.
    settings:
        Its settings.
    jobs:
        Number of processes; ``None`` for one per processor. Progress goes to standard error.
    backend:
        Place of the runs: processes of this machine, a Dask cluster or a Ray cluster. The workers
        of a cluster need the same version of stoic, and find the tables of real data under the same
        path.
    address:
        Address of the cluster's scheduler; without one, a cluster of ``jobs`` workers is started
        here.
    partial:
        Keeps the rows of each cell as they come; those that it has are not run again.

    Raises
    ------
    KeyboardInterrupt
        With a sentence about what is kept.
    """
    check_backend(backend)
    if address is not None and backend == "local":
        raise RefusalError(
            f"An address is that of a cluster: say --backend dask or ray for {address}."
        )
    if jobs is not None and jobs < 1:
        raise RefusalError(f"The number of jobs is at least 1, got {jobs}.")
    cells = list(figure.cells(settings))
    parts = {k: rows for k, cell in enumerate(cells) if (rows := _kept(partial, cell)) is not None}
    if parts:
        print(f"{figure.name}: {len(parts):,} of {len(cells):,} runs were there.", file=sys.stderr)
    todo = [(k, cell) for k, cell in enumerate(cells) if k not in parts]
    work = (figure.run, settings, todo)
    processes = min(joblib.cpu_count() if jobs is None else jobs, len(todo))
    results = (
        _local(work, processes) if backend == "local" else _CLUSTERS[backend](work, jobs, address)
    )
    try:
        for index, rows in _with_progress(results, len(parts), len(cells), figure.name):
            parts[index] = rows if partial is None else partial.keep(cells[index], rows)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(figure.name, len(cells), partial)) from None
    except ImportError as missing:
        raise RefusalError(f"A run of {figure.name} needs a library: {missing}") from missing
    return [parts[k] for k in range(len(cells))]


def _kept(partial: Partial | None, cell: Cell) -> list[Any] | None:
    return None if partial is None else partial.find(cell)


def _interrupted(name: str, total: int, partial: Partial | None) -> str:
    if not partial:
        return f"Interrupted; no run of {name} was kept."
    return (
        f"Interrupted; {len(partial):,} of {total:,} runs of {name} are kept in {partial.path}: "
        "the same command goes on from them."
    )


def check_backend(name: str) -> Backend:
    """Return the back end of this name, or refuse it."""
    for known in get_args(Backend):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise RefusalError(f"The backend is one of {', '.join(get_args(Backend))}, got {name!r}.")


def _local(work: Work, processes: int) -> Iterator[Result]:
    run, settings, cells = work
    if processes <= 1:
        for index, cell in cells:
            yield _one(run, settings, index, cell)
        return
    with joblib.parallel_config(
        backend="loky", n_jobs=processes, inner_max_num_threads=1, initializer=_ignore_interrupts
    ):
        yield from _parallel(work)


def _parallel(work: Work) -> Iterator[Result]:
    """Results as they come, by the back end of joblib that is set."""
    run, settings, cells = work
    yield from joblib.Parallel(return_as="generator_unordered")(
        joblib.delayed(_one)(run, settings, index, cell) for index, cell in cells
    )


def _one(run: Any, settings: Any, index: int, cell: Cell) -> Result:
    # For every back end, and for one process, which joblib does not limit
    with threadpool_limits(1):
        return index, run(settings, cell)


def _dask(work: Work, jobs: int | None, address: str | None) -> Iterator[Result]:
    distributed = _library("distributed", "dask")
    # Any free port: two sweeps on one machine would both take the usual one of the dashboard.
    here = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": ":0"}
    try:
        client = distributed.Client(**({"address": address, "timeout": 10} if address else here))
    except (OSError, ValueError) as error:  # no scheduler there, or no address at all
        raise RefusalError(f"There is no Dask scheduler at {address}: {error}.") from error
    with client, joblib.parallel_config(backend="dask", client=client, n_jobs=-1):
        yield from _parallel(work)


def _ray(work: Work, jobs: int | None, address: str | None) -> Iterator[Result]:
    # Not by joblib: Ray's back end there is a pool, which has no results before the last one.
    ray = _library("ray", "ray")
    run, settings, cells = work
    here = {"num_cpus": jobs, "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, **({"address": address} if address else here))
    except (ConnectionError, ValueError) as error:
        raise RefusalError(f"There is no Ray cluster at {address}: {error}.") from error
    try:
        one = ray.remote(_one)
        waiting = [one.remote(run, settings, index, cell) for index, cell in cells]
        while waiting:
            done, waiting = ray.wait(waiting)
            yield from ray.get(done)
    finally:
        ray.shutdown()


_CLUSTERS = {"dask": _dask, "ray": _ray}


def _library(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise RefusalError(
            f"The backend needs {module}, which is not installed: pip install 'stoic[{extra}]'."
        ) from error


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent, which ends the workers: no traceback from each of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _with_progress(results: Iterable[T], before: int, total: int, name: str) -> Iterator[T]:
    """Yield the results, with a bar on a terminal and a line for every tenth elsewhere."""
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
            yield from progress.track(results, total=total, completed=before, description=name)
        return
    for done, result in enumerate(results, start=before + 1):
        yield result
        if 10 * done // total > 10 * (done - 1) // total:
            print(f"{name}: {done} of {total} runs", file=sys.stderr, flush=True)
