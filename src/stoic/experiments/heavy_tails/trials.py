"""Runs behind figures 1 (a) to (e) of [Chowdhury2019]_."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stoic.data import Array
from stoic.environment import Environment
from stoic.experiments.figure import Cell
from stoic.experiments.heavy_tails.algorithms import ALGORITHMS, Situation
from stoic.experiments.heavy_tails.settings import Settings
from stoic.experiments.heavy_tails.worlds import WORLDS
from stoic.experiments.statistics import compared
from stoic.experiments.trials import Trials, marks
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
    # Not used: it fails where there is no table
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
