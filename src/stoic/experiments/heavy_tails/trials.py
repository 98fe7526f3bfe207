"""Runs behind figures 1 (a) to (e) of [Chowdhury2019]_."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.data import Array, Integers
from stoic.environment import Environment
from stoic.experiments import regret
from stoic.experiments.figure import Cell
from stoic.experiments.heavy_tails.algorithms import ALGORITHMS, Situation
from stoic.experiments.heavy_tails.settings import Settings
from stoic.experiments.heavy_tails.worlds import WORLDS
from stoic.experiments.regret import marks
from stoic.simulate import run as simulate


class Row(NamedTuple):
    """State after some round of one run: a row of the CSV file.

    Attributes
    ----------
    panel, method, seed:
        Key of the run: the world, the method and the trial.
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
    WORLDS[settings.world](settings.seed, settings.data)
    return [
        Cell(settings.world, name, seed)
        for name in (*settings.methods, *settings.same_width)
        for seed in settings.seeds_of(name)
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


@dataclass(frozen=True, slots=True, eq=False)
class Trials:
    """All runs of one method.

    Attributes
    ----------
    seeds:
        Their trial numbers, shape (trials,).
    rounds:
        The rounds that were kept, shape (n,).
    average:
        R_t / t after these rounds, shape (trials, n).
    distrusted:
        Share of the results that do not count in full at the end, shape (trials,).
    """

    seeds: Integers
    rounds: Integers
    average: Array
    distrusted: Array

    def among(self, seeds: Integers) -> regret.Run:
        """Select R_t / t of these trials."""
        return regret.Run(self.average[np.isin(self.seeds, seeds)], np.full(len(seeds), np.nan))


def grouped(rows: Sequence[Row]) -> dict[str, Trials]:
    """Trials of each method, in the order of the rows."""
    collected: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        collected.setdefault(row.method, {}).setdefault(row.seed, []).append(row)
    return {method: _trials(runs) for method, runs in collected.items()}


def _trials(runs: dict[int, list[Row]]) -> Trials:
    rounds = np.array([row.round for row in next(iter(runs.values()))])
    cumulative = np.array([[row.cumulative_regret for row in one] for one in runs.values()])
    distrusted = np.array([one[-1].distrusted / one[-1].round for one in runs.values()])
    return Trials(np.array(list(runs)), rounds, cumulative / rounds, distrusted)


def paired(ours: Trials, theirs: Trials) -> dict[str, float]:
    """R_T / T of two methods on the trials that both played, and the paired difference."""
    common = np.intersect1d(ours.seeds, theirs.seeds)
    a, b = ours.among(common), theirs.among(common)
    below = a.cumulative.mean(axis=0) < b.cumulative.mean(axis=0)
    above = np.flatnonzero(~below)
    # The first round that was kept from which on the mean curve stays below; nan if it is not.
    later = 0 if not len(above) else int(above[-1]) + 1
    return {
        **regret.comparison(a, b),
        "below_from_round": float(ours.rounds[later]) if later < len(below) else np.nan,
    }
