"""Shared by the figures of functions: a noisy function, some of whose results are replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stoic.adversaries import Adversary, Frequency, Gaussian
from stoic.environment import Environment
from stoic.experiments.figure import Cell
from stoic.experiments.methods import Threat, method
from stoic.experiments.regret import Step, steps
from stoic.problems.synthetic import Synthetic
from stoic.simulate import run as simulate


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of section 5.3 of [Ezzerg2026]_; of T rounds floor(T^(1/3)) may be corrupted."""

    trials: int = 20
    rounds: int = 100
    seed: int = 0
    initial: int = 5
    noise_sd: float = 1.0


class Game(NamedTuple):
    """Problem of a panel, T, and the adversary, if there is one."""

    problem: Synthetic
    rounds: int
    adversary: Adversary | None = None

    @property
    def lies(self) -> int:
        """Number of results that may be replaced."""
        budget = self.adversary.budget if self.adversary else None
        return budget.count if isinstance(budget, Frequency) else 0


def playing(games: Callable[[Any], Mapping[str, Game]]) -> Callable[[Any, Cell], list[Step]]:
    """Run of a figure: play one method, which knows how many results may be replaced."""

    def run(settings: Any, cell: Cell) -> list[Step]:
        game = games(settings)[cell.panel]
        noise, threat = Gaussian(settings.noise_sd), Threat(game.lies, game.rounds)
        environment = Environment(game.problem, noise, game.adversary, cell.seed)
        learner = method(cell.method).build(game.problem.domain, threat, cell.seed)
        initial = settings.initial
        trace = simulate(learner, environment, game.rounds, initial=initial, recommend=True)
        return steps(cell, trace)

    return run
