"""Rows of the threat matrix: threats, their definition of regret, and the functions.

Everything is in units of the standard deviation of f over its points (for ``f1`` of its prior, 0.85
to 1.04 of that), so that C = 50 and outliers of size 10 mean the same on every function.

Regret is f(x*) - f(x), noiseless, but for moved inputs: there it is the best worst value that any
point has within the radius, less the worst value within the radius of the point that was chosen,
which is the value of f where the input was moved to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from stoic import adversaries
from stoic.adversaries import Adversary, Frequency, Magnitude, Noise, Perturbation
from stoic.data import Array
from stoic.distances import Distance
from stoic.domains import Box, Finite
from stoic.environment import Environment
from stoic.kernels import RBF, Kernel, Matern52, Scaled
from stoic.posteriors.prior import Prior
from stoic.problems import Tabulated, f1, forrester, kernel_sum, polynomial
from stoic.problems.synthetic import Synthetic

NOISE_SD = 0.2
BUDGET = 50.0  # C
ERROR = 0.5  # eps of the wrong model
TAILS = 0.5  # scale of Student's t


class Game(NamedTuple):
    """Function, its prior, and the radius of moves of its inputs.

    Attributes
    ----------
    problem, prior:
        f on its points, and the prior of all methods; its noise variance is that of the noise
        without corruption.
    radius:
        Radius of moves: reaches the points next to a point.
    """

    problem: Tabulated
    prior: Prior
    radius: float


def _game(problem: Tabulated, kernel: Kernel, radius: float) -> Game:
    return Game(problem, Prior(kernel, NOISE_SD**2), radius)


def _formula(problem: Synthetic, lengthscale: float, radius: float) -> Game:
    """Standardise a formula on a grid; hyperparameters are nearly the likeliest, given f."""
    assert isinstance(problem.domain, Finite)
    values = problem.value(problem.domain.points)
    f = Tabulated(problem.name, problem.domain, (values - values.mean()) / values.std())
    return _game(f, Scaled(Matern52(lengthscale), 4.0), radius)


@cache
def game(name: str, seed: int) -> Game:
    """Return the function of this name; a random one is drawn with ``seed``."""
    return GAMES[name](seed)


def _rkhs(seed: int) -> Game:
    grid = Box(np.array([2.0, 7.0]), np.array([3.0, 8.0])).grid(10)
    f = kernel_sum(grid, RBF(0.2), seed, terms=30)
    values = f.value(grid.points)
    return _game(Tabulated("RKHS draw", grid, values / values.std()), RBF(0.2), 0.12)  # 1 / 9 apart


GAMES: dict[str, Callable[[int], Game]] = {
    "f1": lambda seed: _game(f1(seed), RBF(0.5), 1.2),  # points are 1.11 apart
    "Forrester": lambda seed: _formula(forrester().on_grid(60), 0.27, 0.05),
    "RKHS draw": _rkhs,
    "polynomial": lambda seed: _formula(polynomial().on_grid(10), 1.1, 0.6),
}


_GAUSSIAN = adversaries.Gaussian(NOISE_SD)


@dataclass(frozen=True, slots=True)
class Threat:
    """Row of the matrix: noise, adversary, misspecification and moves.

    Attributes
    ----------
    name, short:
        As in tables, and as on the axis of the picture.
    noise, adversary:
        Noise of the results; and function from a game and the number of rounds to the adversary.
    error:
        eps: f has random signs times this on top of it, which the prior knows nothing of.
    moved:
        True if the executed input is the worst one within the radius.
    """

    name: str
    short: str
    noise: Noise = _GAUSSIAN
    adversary: Callable[[Game, int], Adversary] = lambda game, rounds: Adversary()
    error: float = 0.0
    moved: bool = False

    def world(self, name: str, seed: int, rounds: int) -> World:
        """Build one game under this threat."""
        game_ = game(name, seed)
        problem = game_.problem
        if self.error:
            # A stream of its own: not the one that drew f
            signs = np.random.default_rng([seed, 7]).choice([-1.0, 1.0], len(problem.domain))
            values = problem.values + self.error * signs
            problem = Tabulated(problem.name, problem.domain, values)
            game_ = game_._replace(problem=problem)
        moves: Perturbation = (
            adversaries.WorstCase(game_.radius) if self.moved else adversaries.Stay()
        )
        best = float(worst_within(game_).max()) if self.moved else problem.optimum.value
        adversary = self.adversary(game_, rounds)
        environment = Environment(problem, self.noise, adversary, seed, perturbation=moves)
        return World(game_, environment, best)


class World(NamedTuple):
    """Game and environment of one run.

    Attributes
    ----------
    game, environment:
        The function with its prior; and with its noise and its adversary.
    best:
        Value that regret is measured from.
    """

    game: Game
    environment: Environment
    best: float


def worst_within(game_: Game) -> Array:
    """Least value within the radius of each point, shape (N,)."""
    points, values = game_.problem.domain.points, game_.problem.values
    balls = (Distance().ball(x, points, game_.radius) for x in points)
    return np.array([values[ball].min() for ball in balls])


def _distances(game_: Game) -> tuple[Array, float]:
    """Distances of all points from x*, shape (N,), and the largest of them."""
    away = np.linalg.norm(game_.problem.domain.points - game_.problem.optimum.x, axis=1)
    return away, float(away.max())


def _clipping(game_: Game, rounds: int) -> Adversary:
    """Clipping that makes the points beyond half the largest distance from x* look best."""
    away, largest = _distances(game_)
    best = float(game_.problem.values[away > 0.5 * largest].max())
    x = game_.problem.optimum.x

    def far(point: Array) -> bool:
        return bool(np.linalg.norm(point - x) > 0.5 * largest)

    return Adversary(adversaries.Clipping(far, best), Magnitude(BUDGET))


def _top(game_: Game, rounds: int) -> Adversary:
    return Adversary(adversaries.TopK(game_.problem.values, 3), Magnitude(BUDGET))


def _outliers(size: float) -> Callable[[Game, int], Adversary]:
    """Corrupt T^(1/3) results as early as possible: low near x*, or high far from it."""

    def adversary(game_: Game, rounds: int) -> Adversary:
        _, largest = _distances(game_)
        near, far = (0.15, np.inf) if size < 0.0 else (0.0, 0.5)  # shares of the largest distance
        attack = adversaries.Clairvoyant(
            game_.problem.optimum.x, near * largest, far * largest, size, size
        )
        return Adversary(attack, Frequency(adversaries.cube_root(rounds)))

    return adversary


THREATS = {
    threat.name: threat
    for threat in (
        Threat("clean", "clean"),
        Threat("Clipping, C = 50", "Clipping", adversary=_clipping),
        Threat("Top-3, C = 50", "Top-3", adversary=_top),
        Threat("outliers +10", "+10", adversary=_outliers(10.0)),
        Threat("outliers -10", "-10", adversary=_outliers(-10.0)),
        Threat("outliers +1e6", "+1e6", adversary=_outliers(1e6)),
        Threat("outliers -1e6", "-1e6", adversary=_outliers(-1e6)),
        # Neither has a variance
        Threat("Student-t(2)", "t(2)", noise=adversaries.StudentT(2.0, TAILS)),
        Threat("Pareto(2)", "Pareto", noise=adversaries.Pareto(2.0)),
        Threat("misspecified", "wrong model", error=ERROR),
        Threat("moved inputs", "moved", moved=True),
    )
}
