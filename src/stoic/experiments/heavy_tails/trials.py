"""Runs behind figures 1 (a) to (e) of [Chowdhury2019]_."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stoic.data import Array
from stoic.environment import Environment
from stoic.experiments.figure import Cell, crossed
from stoic.experiments.heavy_tails.algorithms import ALGORITHMS, Situation
from stoic.experiments.heavy_tails.worlds import FILES, WORLDS
from stoic.experiments.statistics import compared
from stoic.experiments.trials import Trials, marks
from stoic.simulate import run as simulate


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiments of section 6. Trial k has draw k and noise seed k, the same for all methods.

    Alpha and v belong to a world, levels and widths to the recipes with ``constants="practice"``,
    which are the ones that the authors ran.

    Attributes
    ----------
    world:
        Name of the world.
    methods, same_width:
        Names: drawn and in the table; and, in the table alone, those whose width is GP-UCB's.
    data:
        Path of the table of a real world; a directory stands for the file in it that has the
        paper's name. None for the tables that come with other packages, and in other worlds.
    trials, same_width_trials:
        Independent runs of ``methods``, and of ``same_width``, at most ``trials``.
    rounds:
        T, which the methods know.
    regulariser:
        lambda, the noise variance of the prior.
    nodes, distortion:
        Number of quadrature features per coordinate, and eps of Nystroem features.
    """

    world: str
    methods: tuple[str, ...]
    same_width: tuple[str, ...]
    data: Path | None = None
    # 20 trials of 2 x 10^4 rounds, lambda = 1, m = 32 and eps = 0.1: section 6
    trials: int = 20
    same_width_trials: int = 10
    rounds: int = 20_000
    seed: int = 0
    regulariser: float = 1.0
    nodes: int = 32
    distortion: float = 0.1

    def __post_init__(self) -> None:
        # --data is for all figures of a command: where there is no table, it is no setting
        if self.world not in FILES:
            object.__setattr__(self, "data", None)
        elif self.data is not None and self.data.is_dir():
            object.__setattr__(self, "data", self.data / FILES[self.world])


class Row(NamedTuple):
    """State after some round of one run: a row of the CSV file.

    Attributes
    ----------
    round:
        Round number, from 1.
    cumulative_regret:
        Sum of f(x*) - f(x), noiseless, in units of max |f|.
    distrusted:
        Number of results so far that do not count, or not in every feature.
    """

    panel: str
    method: str
    seed: int
    round: int
    cumulative_regret: float
    distrusted: int


def cells(settings: Settings) -> list[Cell]:
    """Every method on each of its trials.

    Raises
    ------
    ValueError
        If the table of a real world is missing, or is not such a table.
    """
    # Not used: it fails where there is no table
    WORLDS[settings.world](settings.seed, settings.data)
    few = min(settings.same_width_trials, settings.trials)
    return [
        *crossed([settings.world], settings.methods, settings.seed, settings.trials),
        *crossed([settings.world], settings.same_width, settings.seed, few),
    ]


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one trial."""
    instance = WORLDS[cell.panel](cell.seed, settings.data)
    algorithm = ALGORITHMS[cell.method]
    arms = algorithm.arms(instance)
    environment = Environment(arms.problem, instance.noise, seed=cell.seed)
    learner = algorithm.build(Situation(settings, instance, cell.seed), arms)
    rows, cumulative = [], 0.0
    for mark in marks(settings.rounds):
        more = mark - environment.round
        cumulative += float(simulate(learner, environment, more).regret.sum())
        rows.append(Row(*cell, mark, cumulative, learner.posterior.distrusted))
    return rows


def average(trials: Trials[Row]) -> Array:
    """R_t / t after the kept rounds, shape (trials, n)."""
    return np.asarray(trials.curves() / trials.rounds)


def paired(ours: Trials[Row], theirs: Trials[Row]) -> dict[str, float]:
    """R_T / T of two methods on the trials that both played, and the paired difference."""
    a, b = average(ours.among(theirs.seeds)), average(theirs.among(ours.seeds))
    above = np.flatnonzero(~(a.mean(axis=0) < b.mean(axis=0)))
    # The first round that was kept from which on the mean curve stays below; nan if it is not.
    later = 0 if not len(above) else int(above[-1]) + 1
    lasting = later < a.shape[1]
    return {
        **compared(a[:, -1], b[:, -1]),
        "below_from_round": float(ours.rounds[later]) if lasting else np.nan,
    }
