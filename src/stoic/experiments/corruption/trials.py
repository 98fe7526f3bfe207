"""Runs behind figures 1, 2, 3, 5 and 6 of [Bogunovic2022]_."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.adversaries import Adversary, Gaussian, Later, Magnitude
from stoic.environment import Environment
from stoic.experiments.corruption.algorithms import ALGORITHMS, Watched
from stoic.experiments.corruption.worlds import ATTACKS, NO_ATTACK, WORLDS, draw
from stoic.experiments.figure import Cell, crossed
from stoic.experiments.trials import Trials, marks
from stoic.refusal import RefusalError
from stoic.simulate import run as simulate

EPOCHS = 13  # after so many epochs the paper counts the arms that are left


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiments of section 4: trial k has noise seed k.

    The paper has one function of each kind, which is not published. Ours is chosen by what the
    paper presupposes without attack: it is that of the first seed 0, 1, 2, ... of which

    - the attacks' assumptions are true: the target region does not contain x*, and h_max is larger
      than f(x*) - max f over the region; and
    - no arm but x* is worth more than the largest width of GP-UCB, and without attack the regret of
      every learner flattens and RGP-PE has one arm left after ``EPOCHS``, see
      ``growth.settled_unattacked``.

    Other parameters are as in the paper, and belong to a world or to the recipes: the kernels,
    beta_t, beta_h and lambda = 1; b = 0.1, psi = 0.5 and eta = 2; Delta = 0.5 and h_max.

    Attributes
    ----------
    world:
        Name of the kind of function.
    budget:
        C, in units of f: the budget of the adversary, and the one RGP-UCB and RGP-PE assume.
    draw:
        Seed of the function of all trials. None for a function of its own for each: that of the
        k-th (from 0) seed of which the attacks' assumptions are true. For f1 these are 4, 6, 10,
        11, 14, 15, 16, 17, 19, 20, ...; for Robot3D 0, 3, 4, 6, 7, 8, 9, 10, 11, 12, ... The rows
        say which one was used.
    noise_sd:
        sigma, in units of f.
    attacks, methods:
        A panel each; and names of learners, with the start of the attack.
    """

    world: str = "f1"
    budget: float = 50.0
    draw: int | None = None
    # T, sigma and ten trials of section 4
    trials: int = 10
    rounds: int = 50_000
    seed: int = 0
    noise_sd: float = 0.02
    attacks: tuple[str, ...] = ATTACKS
    methods: tuple[str, ...] = tuple(ALGORITHMS)


class Row(NamedTuple):
    """State after some round of one run: a row of the CSV file.

    Attributes
    ----------
    draw, best:
        The seed of the function, and its maximum f(x*).
    round:
        Round number, from 1.
    cumulative_regret:
        Sum of f(x*) - f(x), noiseless.
    best_plays:
        Number of plays of x* so far.
    spent:
        Corruption so far, in units of f.
    epochs:
        Number of complete epochs; 0 for learners without epochs.
    active:
        Number of arms not ruled out, by elimination or an upper bound below the best lower bound.
    best_left, worst_left:
        The smallest and the largest f(x*) - f(x) among those.
    """

    panel: str
    method: str
    seed: int
    draw: int
    best: float
    round: int
    cumulative_regret: float
    best_plays: int
    spent: float
    epochs: int
    active: int
    best_left: float
    worst_left: float


def cells(settings: Settings) -> list[Cell]:
    """Every method on every trial against every attack; no later start without attack.

    Raises
    ------
    ValueError
        If the simulator of the world is missing.
    """
    try:
        # Not used: it fails where there is no simulator
        draw(settings.world, settings.seed, settings.draw)
    except ImportError as missing:
        raise RefusalError(str(missing)) from missing

    def trials(attack: str, name: str) -> int:
        return 0 if attack == NO_ATTACK and ALGORITHMS[name].later else settings.trials

    return crossed(settings.attacks, settings.methods, settings.seed, trials)


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one trial against one attack."""
    world, algorithm = WORLDS[settings.world], ALGORITHMS[cell.method]
    seed, problem = draw(settings.world, cell.seed, settings.draw)
    attack = world.attack(cell.panel, problem)
    adversary = Adversary(Later(attack) if algorithm.later else attack, Magnitude(settings.budget))
    environment = Environment(problem, Gaussian(settings.noise_sd), adversary, cell.seed)
    player = Watched(algorithm.build(world, problem, settings.budget))
    regret = problem.optimum.value - problem.values  # (N,)
    rows, cumulative, best_plays = [], 0.0, 0
    # Played in pieces, as the active set is known at the end of a piece alone
    for mark in marks(settings.rounds):
        more = mark - environment.round
        trace = simulate(player, environment, more, batch=algorithm.batch)
        cumulative += float(trace.regret.sum())
        # Exact: f is looked up in a table, so the regret of x* is 0 to the last digit
        best_plays += int(np.count_nonzero(trace.regret == 0.0))
        left = regret[player.active()]
        rows.append(
            Row(
                *cell, seed, problem.optimum.value, mark, cumulative, best_plays,
                environment.spent.magnitude, player.epochs, len(left), float(left.min()),
                float(left.max()),
            )
        )  # fmt: skip
    return rows


def after(trials: Trials[Row], epochs: int = EPOCHS) -> tuple[Row, ...]:
    """First row of each trial with so many complete epochs; the last row if there is none."""
    return tuple(next((row for row in run if row.epochs >= epochs), run[-1]) for run in trials.runs)
