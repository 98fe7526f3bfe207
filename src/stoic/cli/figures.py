"""Commands about the papers: figures and bounds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoic.cli.app import Json, app
from stoic.cli.printing import print_table
from stoic.printable import to_json
from stoic.refusal import RefusalError


@app.command("list")
def list_figures() -> None:
    """List the figures that can be reproduced."""
    from stoic.experiments import catalogue

    figures = list(catalogue())
    width = max((len(figure.name) for figure in figures), default=0)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.title}")


@app.command()
def reproduce(
    name: Annotated[
        str, typer.Argument(help="Name of a figure, see stoic list; or FILE.py:FIGURE.")
    ],
    trials: Annotated[
        int | None, typer.Option("--trials", help="Independent runs for each method.")
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of each run.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", help="Processes; one per processor if not said.", show_default=False
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The first seed.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The table that a figure of real data is made of, or its directory.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Directory for the picture and the numbers.")
    ] = Path("results"),
    backend: Annotated[
        str, typer.Option("--backend", help="Where it runs: local, dask or ray.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            help="Scheduler of the cluster; if not said, one is started here.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(
            "--check",
            help="Compare so many runs, drawn at random, with the results in --out.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a figure of a paper: picture, numbers, and whether the paper's claims hold."""
    from stoic.experiments import repeat, reproduce
    from stoic.experiments.sweep import check_backend

    try:
        if check is not None:
            elsewhere = backend != "local" or address is not None
            for option, is_given in (("--json", json), ("--backend or --address", elsewhere)):
                if is_given:
                    raise RefusalError(
                        f"--check repeats runs here and prints lines: leave out {option}."
                    )
            drawn = {"trials": trials, "rounds": rounds, "seed": seed}
            if repeat(name, check, **drawn, jobs=jobs, data=data, out=out):
                raise typer.Exit(1)
            return
        reproduce(
            name,
            trials=trials,
            rounds=rounds,
            jobs=jobs,
            seed=seed,
            data=data,
            out=out,
            json=json,
            backend=check_backend(backend),
            address=address,
        )
    except KeyboardInterrupt as interrupt:
        print(interrupt, file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def bounds(
    kernel: Annotated[str, typer.Option("--kernel", help="linear, se or matern.")],
    dim: Annotated[int, typer.Option("--dim", help="Dimensions of the domain.")],
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds T of the campaign.")],
    budget: Annotated[
        str,
        typer.Option("--budget", help="Largest sum C of absolute corruptions; or unknown."),
    ] = "unknown",
    nu: Annotated[
        float | None, typer.Option("--nu", help="Smoothness, for a matern kernel.")
    ] = None,
    norm: Annotated[float, typer.Option("--norm", help="Largest norm B of the objective.")] = 1.0,
    json: Json = False,
) -> None:
    """Print what the methods against corrupted results promise: orders of their regret.

    Constants and logarithms are left out, but for those with the dimension in
    their exponent. Corruption up to what is free of charge costs no more than
    a constant factor.
    """
    from stoic.theory import Family, records

    try:
        C = None if budget == "unknown" else float(budget)
    except ValueError as error:
        raise RefusalError(f"The budget is a number or unknown, got {budget!r}.") from error
    rows = records(Family(kernel, dim, nu), rounds, C, norm)
    if json:
        asked = {"kernel": kernel, "nu": nu, "dim": dim, "rounds": rounds, "norm": norm}
        print(to_json({**asked, "budget": "unknown" if C is None else C, "bounds": rows}, indent=2))
        return
    print_table(
        ("method", "order of the regret", "value", "sublinear", "free of charge"),
        [
            (
                str(row["method"]),
                str(row["order"]),
                f"{row['value']:.3g}" + " (trivial)" * bool(row["trivial"]),
                "no" if row["tolerance"] is None else f"C < T^{row['tolerance']:.3g}",
                f"C < {row['free']} = {row['free_value']:.3g}",
            )
            for row in rows
        ],
    )
