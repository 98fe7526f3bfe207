"""Reproduce a figure: run it, write it, print the results."""

from __future__ import annotations

import dataclasses
import json as jsonlib
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from stoic.experiments import (
    contest,
    corruption,
    heavy_tails,
    inputs,
    matrix,
    misspecification,
    outliers,
)
from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.partial import Partial
from stoic.experiments.results import Results, Shelf, digest, plain_settings, to_json
from stoic.experiments.sweep import Backend, sweep
from stoic.refusal import RefusalError
from stoic.user_file import run_file


def catalogue() -> tuple[Figure[Any, Any], ...]:
    """All figures, in the order of their names within each family."""
    return (
        *outliers.FIGURES,
        *corruption.FIGURES,
        *heavy_tails.FIGURES,
        *inputs.FIGURES,
        *misspecification.FIGURES,
        *matrix.FIGURES,
        *contest.FIGURES,
    )


def find(name: str) -> Figure[Any, Any]:
    """Find the figure called ``name``; ``ValueError`` with all names if there is none.

    A figure of the user's own is ``FILE.py:NAME``, a variable of a file, which is executed.
    """
    file, separator, variable = name.rpartition(":")
    if separator and file.endswith(".py"):
        return _load(Path(file), variable)
    for figure in catalogue():
        if figure.name == name:
            return figure
    names = ", ".join(figure.name for figure in catalogue())
    raise RefusalError(
        f"There is no figure {name!r}: choose one of {names}; or FILE.py:FIGURE for one of yours."
    )


def _load(file: Path, variable: str) -> Figure[Any, Any]:
    """Execute a file and take a figure from it, which workers elsewhere can run, too."""
    module = run_file(file, f"figures_of_{file.stem}")
    for pickler in ("joblib.externals.cloudpickle", "cloudpickle", "ray.cloudpickle"):
        with suppress(ImportError):  # workers cannot import the file: they are sent what is in it
            import_module(pickler).register_pickle_by_value(module)
    figure = getattr(module, variable, None)
    if not isinstance(figure, Figure):
        raise RefusalError(f"{file} has no Figure called {variable!r}.")
    return figure


def reproduce(
    name: str,
    *,
    trials: int | None = None,
    rounds: int | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    data: str | Path | None = None,
    out: str | Path = "results",
    json: bool = False,
    backend: Backend = "local",
    address: str | None = None,
) -> Results:
    """Run a figure and write ``<out>/<family>-<figure>.png``, ``.csv`` and ``.json``.

    The same settings give the same results, whatever the number of jobs and wherever they run. Runs
    are kept in ``<family>-<figure>.partial.jsonl`` until then: an interrupted figure goes on.

    Parameters
    ----------
    name:
        As in ``catalogue()``, or ``FILE.py:FIGURE``.
    trials, rounds, seed:
        Instead of the figure's own settings. A figure that draws nothing at random has none of
        them, and is the same whatever they are.
    jobs:
        Number of processes; one per processor if not said.
    data:
        Table that a figure of real data is made of, or the directory that holds it under its usual
        name. Other figures ignore it.
    out:
        Directory, made when needed.
    json:
        Print one JSON object instead of a table: ``{"figure", "settings", "claims", "cells"}``.
    backend, address:
        Place of the runs: ``"local"``, or a ``"dask"`` or ``"ray"`` cluster with the scheduler at
        ``address``; without one, the cluster is started on this machine.

    Raises
    ------
    ValueError
        If there is no such figure, a number is out of range, or ``out`` holds results of this
        figure made with other settings. Nothing is written then.
    """
    figure, settings, shelf = _wanted(name, trials, rounds, seed, data, out)
    # Before the runs, which may take hours; ``write`` checks again
    shelf.check_free(plain_settings(settings))
    partial = Partial(shelf.partial, figure, settings)
    parts = sweep(figure, settings, jobs, backend, address, partial)
    results = shelf.write(figure, settings, parts)
    partial.remove()
    if json:
        sys.stdout.write(to_json(results.summary()) + "\n")
    else:
        show(results)
    return results


def repeat(
    name: str,
    cells: int,
    *,
    trials: int | None = None,
    rounds: int | None = None,
    jobs: int | None = None,
    seed: int | None = None,
    data: str | Path | None = None,
    out: str | Path = "results",
) -> list[Cell]:
    """Run some cells of a figure again, and compare them with the results in ``out``.

    Parameters
    ----------
    name, jobs, data, out:
        As those that :func:`reproduce` made the results with.
    trials, rounds, seed:
        As the results have them, where they are not given.
    cells:
        Number of cells, which are drawn anew each time.

    Returns
    -------
    different:
        Those whose rows are not the same, to the last digit. The same processor and the same
        versions of NumPy and SciPy are needed for that.

    Raises
    ------
    ValueError
        As :func:`reproduce`, or if there are no results that can be compared.
    """
    figure, settings, shelf = _wanted(name, trials, rounds, seed, data, out)
    settings = with_options(shelf.like(settings), trials=trials, rounds=rounds, seed=seed)
    if cells < 1:
        raise RefusalError(f"The number of runs to check is at least 1, got {cells}.")
    known = shelf.digests(plain_settings(settings))
    every = list(figure.cells(settings))
    if len(known) != len(every):
        raise RefusalError(
            f"{shelf.json} has {len(known)} runs, and the figure {len(every)}: make it again."
        )
    drawn = np.random.default_rng().permutation(len(every))[:cells]
    chosen = [every[k] for k in drawn]
    parts = sweep(dataclasses.replace(figure, cells=lambda settings: chosen), settings, jobs)
    different = [
        cell for cell, k, rows in zip(chosen, drawn, parts, strict=True) if digest(rows) != known[k]
    ]
    print(f"{figure.name}: {len(chosen) - len(different)} of {len(chosen)} runs are the same.")
    for cell in different:
        print(f"  another result: {', '.join(map(str, cell))}")
    if different:
        print(
            "If the code is the same: other processors, and other versions of NumPy and SciPy, "
            "round in other ways."
        )
    return different


def _wanted(
    name: str,
    trials: int | None,
    rounds: int | None,
    seed: int | None,
    data: str | Path | None,
    out: str | Path,
) -> tuple[Figure[Any, Any], Any, Shelf]:
    """Find a figure, its settings with these options, and the place of its results."""
    figure = find(name)
    for option, value, least in (("trials", trials, 1), ("rounds", rounds, 1), ("seed", seed, 0)):
        if value is not None and value < least:
            raise RefusalError(f"The number for {option} is at least {least}, got {value}.")
    options = {"trials": trials, "rounds": rounds, "seed": seed}
    known = {field.name for field in dataclasses.fields(figure.settings)}
    if unused := [o for o, value in options.items() if value is not None and o not in known]:
        print(f"{figure.name} has no {', no '.join(unused)}: that is not used.", file=sys.stderr)
    path = None if data is None else Path(data)
    settings = with_options(figure.settings, **options, data=path)
    return figure, settings, Shelf(Path(out), figure.name.replace("/", "-"))


def with_options(settings: Any, **options: int | Path | None) -> Any:
    """Return the settings with those options that were given and that they have.

    Where decisive methods have several times the ``trials``, none has ``more`` than other ones.
    """
    fields = {field.name for field in dataclasses.fields(settings)}
    if "decisive" in fields and options.get("trials") not in (None, settings.trials):
        options["more"] = 1
    chosen = {k: v for k, v in options.items() if v is not None and k in fields}
    return dataclasses.replace(settings, **chosen)


def show(results: Results) -> None:
    """Print the table, the claims and where the files are."""
    console = Console()
    if not console.is_terminal:  # no terminal to fit: nothing is cut or wrapped
        console = Console(width=160)
    console.print(_grid(results.figure, results.table))
    for claim in results.claims:
        verdict, colour = ("holds", "green") if claim.holds else ("does not hold", "red")
        source = (f"  ({claim.source})", "dim")
        console.print(Text.assemble((f"{verdict:>13}  ", colour), claim.claim, source))
        if not claim.holds:
            console.print(Text(f"{'':>15}{_numbers(claim)}"), style="dim")
    console.print(Text(f"Wrote {results.png}, {results.csv} and {results.json}."))


def _grid(title: str, table: Table) -> Grid:
    grid = Grid(title=title, caption=table.caption)
    for heading in table.headings:
        grid.add_column(heading)
    for row in table.rows:
        grid.add_row(*(Text(entry) for entry in row))
    return grid


def _numbers(claim: Claim) -> str:
    return ", ".join(f"{name} {jsonlib.dumps(value)}" for name, value in claim.measured.items())
