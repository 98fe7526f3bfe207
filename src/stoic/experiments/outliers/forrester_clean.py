"""Figure 3 of [Ezzerg2026]_: the cost of robustness without corruption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoic.experiments import regret
from stoic.experiments.figure import OURS, Cell, Claim, Figure, Table, crossed
from stoic.experiments.methods import (
    A2,
    A2_THEORY,
    FC,
    FC_THEORY,
    GP,
    GP_LOO,
    RANDOM,
    method,
)
from stoic.experiments.outliers import functions
from stoic.experiments.regret import Step
from stoic.problems import forrester

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiment of section 5.3 without corruption.

    Attributes
    ----------
    trials:
        Independent runs; trial k has seed ``seed + k``.
    rounds:
        T.
    seed:
        The first seed.
    initial:
        Clean scrambled Sobol points, common to all methods.
    noise_sd:
        Standard deviation of the noise, in units of f.
    methods:
        Names, the reference first.
    """

    trials: int = 20
    rounds: int = 30
    seed: int = 0
    initial: int = 5
    noise_sd: float = 1.0
    methods: tuple[str, ...] = tuple(
        m.name for m in (GP, GP_LOO, FC, A2, FC_THEORY, A2_THEORY, RANDOM)
    )


def cells(settings: Settings) -> list[Cell]:
    """Every method on every seed."""
    return crossed(("clean",), settings.methods, seed=settings.seed, trials=settings.trials)


def run(settings: Settings, cell: Cell) -> list[Step]:
    """Play one method with one seed."""
    return functions.play(
        cell,
        forrester(),
        None,
        rounds=settings.rounds,
        initial=settings.initial,
        noise_sd=settings.noise_sd,
    )


def plot(settings: Settings, rows: Sequence[Step]) -> matplotlib.figure.Figure:
    """Mean cumulative regret of each method."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(8.0, 4.0), layout="constrained")
    axes = picture.add_subplot()
    by_run = regret.runs(rows)
    for name in settings.methods:
        regret.draw(axes, by_run["clean", name], method(name))
    regret.finish(axes, settings.initial, settings.rounds)
    # Random search leaves the frame: with it inside, the other curves would be indistinguishable.
    inside = [by_run["clean", n].cumulative for n in settings.methods if n != RANDOM.name]
    axes.set_ylim(top=1.3 * max(float(c.mean(axis=0).max()) for c in inside))
    axes.set_title("Forrester, no corruption", fontsize=10)
    axes.set_ylabel("cumulative regret (units of f)")
    picture.legend(loc="outside right upper", frameon=False, fontsize=8)
    return picture


def table(settings: Settings, rows: Sequence[Step]) -> Table:
    """Regrets at the end."""
    return regret.table(rows, GP.name)


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """Zero-cost robustness (theorem 4.1), as the paper reads its figure, and with equal fits."""
    by_run = regret.runs(rows)
    found = []
    for robust in (FC, A2):
        for reference in (GP, GP_LOO):
            measured = regret.comparison(
                by_run["clean", robust.name], by_run["clean", reference.name]
            )
            gap = measured["mean"] - measured["reference_mean"]
            error = measured["reference_standard_error"]
            found += [
                Claim(
                    f"Clean: {robust.name} ends within one standard error of {reference.name}.",
                    abs(gap) <= error,
                    measured,
                    "" if reference is GP else OURS,
                ),
                Claim(
                    f"Clean: {robust.name} ends at most one standard error above {reference.name}.",
                    gap <= error,
                    measured,
                    OURS,
                ),
            ]
    return tuple(found)


SETTINGS = Settings()
FIGURE = Figure(
    "outliers/forrester-clean",
    "Cumulative regret on the Forrester function without corruption",
    SETTINGS,
    cells,
    run,
    plot,
    table,
    claims,
    "Ezzerg2026, Fig. 3",
)
