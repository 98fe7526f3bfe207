"""Runs behind figures 3, 4 and 6 to 10 of [Saday2025]_."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stoic.adversaries import Gaussian
from stoic.data import Array, Integers
from stoic.environment import Environment
from stoic.experiments.figure import Cell, crossed
from stoic.experiments.inputs import worlds
from stoic.experiments.inputs.algorithms import ADVERS_1, ADVERS_2, ALGORITHMS
from stoic.experiments.inputs.worlds import perturbation, world
from stoic.experiments.trials import Trials, marks
from stoic.learner import Learner
from stoic.satisficing import lenient_regret, satisficing_regret
from stoic.simulate import run as simulate


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiments of section 5 and appendix E. Trial k has noise, moves and learner of seed k.

    All widths are 2. The paper does not say how fine the grid of the polynomial is, nor T but for
    the pendulum.

    Attributes
    ----------
    world, threshold:
        Name of the world; and tau, in units of f.
    radii:
        eps, the true radius, known to StableOpt alone; of Gaussian moves the standard deviation.
    attacks:
        Perturbations of the inputs; a panel each, for every radius.
    side:
        Points of the grid in each coordinate, where there is a grid.
    data:
        Path of the table of insulin; a directory stands for the file in it that has the usual name.
        None for the simulator.
    """

    world: str = worlds.POLYNOMIAL
    threshold: float = -10.0
    radii: tuple[float, ...] = (0.5,)
    attacks: tuple[str, ...] = (worlds.RANDOM, worlds.LCB, worlds.WORST)
    methods: tuple[str, ...] = (ADVERS_1.name, ADVERS_2.name)
    trials: int = 100
    rounds: int = 100
    seed: int = 0
    side: int = 30
    data: Path | None = None

    def __post_init__(self) -> None:
        # --data is for all figures of a command: in other worlds it is no setting
        if self.data is not None and (self.world != worlds.INSULIN or self.data.is_dir()):
            path = self.data / worlds.TABLE if self.world == worlds.INSULIN else None
            object.__setattr__(self, "data", path)

    @property
    def panels(self) -> dict[str, tuple[str, float]]:
        """Attack and radius of each panel, by its name."""
        return {
            f"{attack}, eps = {radius:g}": (attack, radius)
            for radius in self.radii
            for attack in self.attacks
        }


class Row(NamedTuple):
    """State after some round of one run: a row of the CSV file.

    Attributes
    ----------
    round:
        Round number, from 1.
    lenient_regret:
        Sum of (tau - f(x))^+ at the executed points, noiseless.
    satisficing_regret:
        Sum of (tau - kappa_tau eps_t - f(x))^+.
    below:
        Number of rounds with f(x) below tau.
    """

    panel: str
    method: str
    seed: int
    round: int
    lenient_regret: float
    satisficing_regret: float
    below: int


def cells(settings: Settings) -> list[Cell]:
    """Every method on every trial in every panel.

    Raises
    ------
    ValueError
        If the table of insulin is missing, or is not such a table.
    """
    # Not used: it fails where there is no table
    world(settings.world, settings.side, settings.data)
    return crossed(settings.panels, settings.methods, settings.seed, settings.trials)


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one trial."""
    attack, radius = settings.panels[cell.panel]
    where = (settings.world, settings.side, settings.data)
    tau, rounds = settings.threshold, settings.rounds
    return kept(cell, played(where, tau, radius, attack, cell.method, cell.seed, rounds))


class Curves(NamedTuple):
    """Running sums of one run, all (T,): both regrets, and the rounds with f below tau."""

    lenient: Array
    satisficing: Array
    below: Integers


def kept(cell: Cell, curves: Curves) -> list[Row]:
    """Rows of one run."""
    at = np.array(marks(len(curves.below)))
    columns = (at.tolist(), *(column[at - 1].tolist() for column in curves))
    return [Row(*cell, *values) for values in zip(*columns, strict=True)]


@cache
def played(
    where: tuple[str, int, Path | None],
    threshold: float,
    radius: float,
    attack: str,
    method: str,
    seed: int,
    rounds: int,
) -> Curves:
    """Play one run. Two figures show the same runs: a process that makes both plays them once."""
    here = world(*where)
    move = perturbation(attack, radius, here.distance)
    environment = Environment(here.problem, Gaussian(here.noise_sd), seed=seed, perturbation=move)
    learner = ALGORITHMS[method].build(here, threshold, radius, seed)
    if here.contexts:
        # A stream of its own, so that all methods meet the same contexts.
        announced = np.random.default_rng([seed, 1]).choice(here.contexts, size=rounds)
        chosen, executed = with_contexts(learner, environment, announced)
        kappa = np.array([kappa_of(where, threshold, c) for c in announced.tolist()])
    else:
        trace = simulate(learner, environment, rounds)
        chosen, executed = trace.chosen, trace.executed
        kappa = np.full(rounds, kappa_of(where, threshold))
    value = here.problem.value(executed)
    moved = np.full(rounds, radius)
    if attack == worlds.GAUSSIAN:  # no ball: what it was moved by
        pairs = zip(chosen, executed, strict=True)
        moved = np.array([here.distance(x[None], z[None])[0, 0] for x, z in pairs])
    return Curves(
        lenient_regret(value, threshold),
        satisficing_regret(value, threshold, 1.0, np.maximum(kappa, 0.0) * moved),
        np.cumsum(value < threshold),
    )


@cache
def kappa_of(
    where: tuple[str, int, Path | None], threshold: float, context: float | None = None
) -> float:
    """Least fragility of any point, or of any with this context."""
    return world(*where).fragility(threshold, context)


def with_contexts(
    learner: Learner, environment: Environment, announced: Array
) -> tuple[Array, Array]:
    """Play a round for each announced context: chosen and executed points, both (T, d)."""
    chosen, executed = np.empty((2, len(announced), environment.problem.domain.dim))
    for t, context in enumerate(announced.tolist()):
        choice = learner.ask(context={worlds.MEAL: context})
        outcome = environment.step(choice.x, learner.active, learner.band)
        learner.tell(outcome.x, outcome.observed, choice=choice)
        chosen[t], executed[t] = choice.x, outcome.x
    return chosen, executed


def share_below(trials: Trials[Row]) -> Array:
    """Share of the rounds in which f was below tau, shape (trials,)."""
    return np.asarray(trials.final("below") / trials.rounds[-1])
