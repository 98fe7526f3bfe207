"""Figure 1 of [Ezzerg2026]_: a few lies of an adversary that knows where the maximum is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoic.adversaries import ClairvoyantSetting, Gaussian, cube_root
from stoic.adversaries import frequency as adversaries
from stoic.environment import Environment
from stoic.experiments import regret
from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.methods import (
    A2,
    A2_NOISE,
    A2_PLAIN,
    A2_THEORY,
    FC,
    FC_NOISE,
    FC_PLAIN,
    FC_THEORY,
    GP,
    GP_LOO,
    RANDOM,
    Threat,
    method,
)
from stoic.experiments.regret import Step
from stoic.problems import forrester
from stoic.simulate import run as simulate

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True, slots=True)
class Settings:
    """The experiment of section 5.3 with corruption, under each published adversary.

    Attributes
    ----------
    trials:
        Independent runs; trial k has seed ``seed + k``.
    rounds:
        T; the adversary may lie floor(T^(1/3)) times.
    seed:
        The first seed.
    initial:
        Clean scrambled Sobol points, common to all methods.
    noise_sd:
        Standard deviation of the noise, in units of f.
    adversaries:
        One panel each.
    methods:
        Names, the reference first.
    """

    trials: int = 20
    rounds: int = 100
    seed: int = 0
    initial: int = 5
    noise_sd: float = 1.0
    adversaries: Mapping[str, ClairvoyantSetting] = field(
        default_factory=lambda: dict(adversaries.SETTINGS)
    )
    methods: tuple[str, ...] = tuple(
        m.name
        for m in (
            GP,
            GP_LOO,
            FC,
            A2,
            FC_THEORY,
            A2_THEORY,
            FC_PLAIN,
            A2_PLAIN,
            FC_NOISE,
            A2_NOISE,
            RANDOM,
        )
    )


# The rows of the picture: the widths, and what else decides.
ROWS = (
    ("widths", (GP, FC, A2, FC_THEORY, A2_THEORY, RANDOM)),
    (
        "fit, standardisation and shape",
        (GP, GP_LOO, FC, A2, FC_PLAIN, A2_PLAIN, FC_NOISE, A2_NOISE),
    ),
)


def cells(settings: Settings) -> list[Cell]:
    """Every method on every seed, against every adversary."""
    return [
        Cell(panel, name, settings.seed + trial)
        for panel in settings.adversaries
        for name in settings.methods
        for trial in range(settings.trials)
    ]


def run(settings: Settings, cell: Cell) -> list[Step]:
    """One method on one seed against one adversary."""
    problem = forrester()
    adversary = settings.adversaries[cell.panel].against(problem.optimum, settings.rounds)
    environment = Environment(problem, Gaussian(settings.noise_sd), adversary, cell.seed)
    threat = Threat(corruptions=cube_root(settings.rounds), horizon=settings.rounds)
    learner = method(cell.method).build(problem.domain, threat, cell.seed)
    trace = simulate(
        learner, environment, settings.rounds, initial=settings.initial, recommend=True
    )
    return regret.steps(cell, trace)


def plot(settings: Settings, rows: Sequence[Step]) -> matplotlib.figure.Figure:
    """A column per adversary; above the widths, below what else decides."""
    from matplotlib.figure import Figure as Picture

    by_run = regret.runs(rows)
    panels = list(settings.adversaries)
    picture = Picture(figsize=(3.6 * len(panels) + 2.6, 7.0), layout="constrained")
    grid = picture.subplots(len(ROWS), len(panels), sharey=True, squeeze=False)
    for (subject, methods), line in zip(ROWS, grid, strict=True):
        for panel, axes in zip(panels, line, strict=True):
            for one in methods:
                if one.name in settings.methods:
                    regret.draw(axes, by_run[panel, one.name], one)
            regret.finish(axes, settings.initial, settings.rounds)
            axes.set_title(f"{_describe(panel, settings.adversaries[panel])}", fontsize=8)
        line[0].set_ylabel(f"{subject}\ncumulative regret (units of f)")
    lines = {
        label: handle
        for axes in grid[:, 0]
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    picture.legend(
        lines.values(), lines.keys(), loc="outside right upper", frameon=False, fontsize=8
    )
    return picture


def table(settings: Settings, rows: Sequence[Step]) -> Table:
    """Regrets at the end."""
    return regret.table(rows, GP.name)


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """The robust methods against GP-UCB, which the paper shows, and two more references."""
    by_run = regret.runs(rows)
    found = []
    for panel in settings.adversaries:
        for robust in (A2, FC):
            for reference in (GP, GP_LOO, RANDOM):
                measured = regret.comparison(
                    by_run[panel, robust.name], by_run[panel, reference.name]
                )
                found.append(
                    Claim(
                        f"Adversary of the {panel}: {robust.name} has less mean cumulative regret "
                        f"than {reference.name}.",
                        measured["mean"] < measured["reference_mean"],
                        measured,
                    )
                )
    return tuple(found)


def _describe(panel: str, setting: ClairvoyantSetting) -> str:
    schedule = ", released at 1, 8, 27, ..." if setting.scheduled else ""
    return (
        f"adversary of the {panel}{schedule}\n"
        f"within {setting.near:g}: {setting.low:g}, beyond {setting.far:g}: {setting.high:g}"
    )


SETTINGS = Settings()
FIGURE = Figure(
    "outliers/forrester-corrupted",
    "Cumulative regret on the Forrester function with T^(1/3) lies of a clairvoyant adversary",
    SETTINGS,
    cells,
    run,
    plot,
    table,
    claims,
)
