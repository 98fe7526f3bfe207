"""Figure 4 of [Ezzerg2026]_: a network is tuned, and some trainings crash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stoic.experiments import methods, pictures
from stoic.experiments.claims import Beside, judge
from stoic.experiments.figure import OURS, Cell, Claim, Figure, crossed
from stoic.experiments.methods import A2, FC, GP, GP_LOO, LOO, RANDOM, ROBUST
from stoic.experiments.outliers import programs
from stoic.experiments.outliers.programs import SWIFT, Play
from stoic.experiments.regret import Step
from stoic.experiments.trials import Groups, grouped
from stoic.problems.residual import files
from stoic.problems.tuning import CifarTuning, DigitsTuning, digits_mean


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiment of section 5.4, on scikit-learn's digits or, if its data are given, CIFAR-10.

    Attributes
    ----------
    rounds:
        T; floor(T^(1/3)) trainings crash.
    crash:
        Reported value of a crashed training; accuracies are in [0, 1].
    panels:
        Schedules of crashes: ``programs.SWIFT``, ``RELEASED`` or ``NEVER``.
    nodes, trainings:
        On the digits f is the mean over so many trainings at so many nodes, linear between them.
    data:
        The directory of CIFAR-10, python version. With it the network is a ResNet-20 and f is not
        known: regret is then counted from the best accuracy of all runs, as the paper does.
    epochs:
        Passes over CIFAR-10.
    """

    trials: int = 10
    rounds: int = 140
    seed: int = 0
    initial: int = 10
    crash: float = -2.0
    panels: tuple[str, ...] = (SWIFT,)
    nodes: tuple[int, int] = (25, 5)
    trainings: int = 20
    data: Path | None = None
    epochs: int = 4
    methods: tuple[str, ...] = programs.METHODS


def cells(settings: Settings) -> list[Cell]:
    """Every method on every seed; missing data are refused before any run."""
    if settings.data is not None:
        files(settings.data)
    return crossed(settings.panels, settings.methods, settings.seed, settings.trials)


def run(settings: Settings, cell: Cell) -> list[Play]:
    """Play one method with one seed."""
    if settings.data is not None:
        program = CifarTuning(settings.data, settings.epochs)
        return programs.play(cell, program, None, settings, settings.crash, checks=1)
    truth = digits_mean(settings.nodes, settings.trainings)
    return programs.play(cell, DigitsTuning(), truth, settings, settings.crash, checks=1)


def plot(settings: Settings, rows: Sequence[Play]) -> pictures.Picture:
    """Mean cumulative regret of each method."""
    return programs.plot(settings, rows, "accuracy")


CLAIMS = (
    # Section 5.4: RCGP and Diagnosis-GP "successfully navigate" the crashes, GP-UCB does not
    Beside((A2, FC, methods.DIAGNOSTICS_LOO), (GP_LOO,)),
    programs.NO_WORSE,
    Beside((LOO, ROBUST), (GP,), OURS),
    Beside((A2, FC), (GP,), OURS),
    Beside((A2, FC), (RANDOM,), OURS),
    Beside((A2, FC, LOO, ROBUST), (methods.DIAGNOSTICS,), OURS),
)


def claims(settings: Settings, rows: Sequence[Play]) -> tuple[Claim, ...]:
    """Robust methods against GP-UCB, as in the paper, and comparisons of ours."""
    groups = grouped(programs.steps(rows))
    found: list[Claim] = []
    for panel in settings.panels:
        start = f"Corruptions {panel}: "
        found += judge(groups, panel, CLAIMS, start) + _avoids(groups, panel, start)
    return tuple(found)


def _avoids(groups: Groups[Step], panel: str, start: str) -> list[Claim]:
    """Claim that GP-UCB "avoids optimal regions" (section 5.4): the best tenth of all settings.

    Random search says which these are. None if one of the methods was not run.
    """
    names = [one.name for one in (GP_LOO, A2, FC, methods.DIAGNOSTICS_LOO, RANDOM)]
    if any((panel, name) not in groups for name in names):
        return []
    regrets = {name: groups[panel, name].curves("regret") for name in names}
    best_tenth = np.quantile(regrets[RANDOM.name], 0.1)
    shares = {f"share_of_{name}": float((r <= best_tenth).mean()) for name, r in regrets.items()}
    avoiding, *robust, _ = shares.values()
    sentence = "tries the best tenth of all settings less than robust methods."
    return [Claim(f"{start}{GP_LOO.name} {sentence}", avoiding < min(robust), shares)]


FIGURE = Figure(
    "outliers/tuning",
    "Cumulative regret of tuning a network while T^(1/3) trainings crash",
    Settings(), cells, run, plot, programs.table, claims, "Ezzerg2026, Fig. 4",
)  # fmt: skip
