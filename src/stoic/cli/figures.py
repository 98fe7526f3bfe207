"""Commands about the papers: figures and bounds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from stoic.cli.options import command, option
from stoic.cli.printing import print_table
from stoic.printable import to_json
from stoic.refusal import RefusalError

_ONCE = ("contest/final", "contest/held-out")  # run often, they would choose a method


@command("list")
def list_figures() -> None:
    """List the figures that can be reproduced."""
    from stoic.experiments import catalogue

    figures = list(catalogue())
    width = max((len(figure.name) for figure in figures), default=0)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.title}")


@command(
    names=typer.Argument(
        help="Figures, see stoic list; or FILE.py:FIGURE. They run one after another.",
        metavar="NAME",
    ),
    every=option("Every figure but the reports, contest/final and contest/held-out.", "--all"),
    trials=option("Independent runs for each method."),
    rounds=option("Rounds of each run."),
    jobs=option("Processes; one per processor if not said."),
    seed=option("The first seed."),
    data=option("The table that a figure of real data is made of, or its directory."),
    out=option("Directory for the picture and the numbers."),
    backend=option("Where it runs: local, dask or ray."),
    address=option("Scheduler of the cluster; if not said, one is started here."),
    check=option("Compare so many runs, drawn at random, with the results in --out."),
)
def reproduce(
    *,
    names: list[str] | None,
    every: bool,
    trials: int | None,
    rounds: int | None,
    jobs: int | None,
    seed: int | None,
    data: Path | None,
    out: Path = Path("results"),
    backend: str = "local",
    address: str | None,
    check: int | None,
    json: bool,
) -> None:
    """Run figures of the papers: picture, numbers, and whether the papers' claims hold."""
    from stoic.experiments import catalogue, find, repeat, reproduce
    from stoic.experiments.sweep import check_backend

    if every:
        names = [figure.name for figure in catalogue() if figure.name not in _ONCE]
    if not names:
        raise RefusalError("Name a figure, as stoic list does, or say --all.")
    # Before the first figure, which may take hours
    for name in names if len(names) > 1 else ():
        find(name)
    place = check_backend(backend)
    if check is not None:
        elsewhere = backend != "local" or address is not None
        for option, is_given in (("--json", json), ("--backend or --address", elsewhere)):
            if is_given:
                raise RefusalError(
                    f"--check repeats runs here and prints lines: leave out {option}."
                )
    options: dict[str, Any] = {
        "trials": trials, "rounds": rounds, "jobs": jobs, "seed": seed, "data": data, "out": out,
    }  # fmt: skip
    different = refused = False
    try:
        for name in names:
            try:
                if check is not None:
                    different |= bool(repeat(name, check, **options))
                else:
                    reproduce(name, **options, json=json, backend=place, address=address)
            except RefusalError as refusal:  # one figure may lack data that the others do without
                if len(names) == 1:
                    raise
                refused = True
                print(f"{name}: {refusal}", file=sys.stderr)
    except KeyboardInterrupt as interrupt:
        print(interrupt, file=sys.stderr)
        raise typer.Exit(130) from None
    if refused or different:
        raise typer.Exit(2 if refused else 1)


@command(
    kernel=option("linear, se or matern."),
    dim=option("Dimensions of the domain."),
    rounds=option("Rounds T of the campaign."),
    budget=option("Largest sum C of absolute corruptions; or unknown."),
    nu=option("Smoothness, for a matern kernel."),
    norm=option("Largest norm B of the objective."),
)
def bounds(
    *,
    kernel: str,
    dim: int,
    rounds: int,
    budget: str = "unknown",
    nu: float | None,
    norm: float = 1.0,
    json: bool,
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
