"""Methods that [Bogunovic2022]_ compares, and the start of the attacks on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoic.data import Array, Booleans, Choice, Recommendation
from stoic.experiments.corruption.worlds import World
from stoic.experiments.methods import BLACK, BLUE, VERMILION
from stoic.learner import Learner
from stoic.posteriors.prior import Prior
from stoic.problems import Tabulated
from stoic.recipes.corruption import rgp_pe, rgp_ucb
from stoic.simulate import Player


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Learner, and the time from which it is attacked.

    Attributes
    ----------
    learner:
        Its name in claims.
    build:
        Function from a world, one of its problems and the budget to a learner.
    colour, line:
        One colour a learner, one style a start of the attack.
    batch:
        Number of rounds queried at once; more than one for learners that plan ahead.
    later:
        True if the attack waits until the learner has ruled out an arm.
    """

    learner: str
    build: Callable[[World, Tabulated, float], Learner]
    colour: str
    line: str = "-"
    batch: int = 1
    later: bool = False

    @property
    def name(self) -> str:
        """Name as in tables and legends."""
        return f"{self.learner}, attacked later" if self.later else self.learner


class Watched:
    """Player whose epoch is recorded at each query.

    Parameters
    ----------
    player:
        The wrapped player.

    Attributes
    ----------
    epochs:
        Number of epochs complete at the last query; 0 for players without epochs.
    """

    def __init__(self, player: Player) -> None:
        self.player = player
        self.epochs = 0

    def ask(self, n: int) -> list[Choice]:
        """Query the player and record its epoch."""
        choices = self.player.ask(n)
        epoch = choices[-1].notes.get("epoch", 0)
        assert isinstance(epoch, int)
        self.epochs = epoch
        return choices

    def tell(self, x: Array, y: Array) -> None:
        """Pass the observations to the player."""
        self.player.tell(x, y)

    def active(self) -> Booleans:
        """Rows that the player has not ruled out."""
        return self.player.active()

    def recommend(self) -> Recommendation:
        """Recommendation of the player."""
        return self.player.recommend()


def _prior(world: World) -> Prior:
    return Prior(world.kernel, noise=1.0)


def _gp_ucb(world: World, problem: Tabulated, budget: float) -> Learner:
    return Learner(problem.domain, rgp_ucb(prior=_prior(world), confidence=world.round_width))


def _rgp_ucb(world: World, problem: Tabulated, budget: float) -> Learner:
    return Learner(
        problem.domain, rgp_ucb(prior=_prior(world), budget=budget, confidence=world.round_width)
    )


def _rgp_pe(world: World, problem: Tabulated, budget: float) -> Learner:
    return Learner(
        problem.domain, rgp_pe(prior=_prior(world), budget=budget, confidence=world.epoch_width)
    )


GP_UCB = Algorithm("GP-UCB", _gp_ucb, BLACK)
RGP_UCB = Algorithm("RGP-UCB", _rgp_ucb, BLUE)
RGP_PE = Algorithm("RGP-PE", _rgp_pe, VERMILION, batch=256)
RGP_UCB_LATER = Algorithm("RGP-UCB", _rgp_ucb, BLUE, "--", later=True)
RGP_PE_LATER = Algorithm("RGP-PE", _rgp_pe, VERMILION, "--", batch=256, later=True)

ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (GP_UCB, RGP_UCB, RGP_PE, RGP_UCB_LATER, RGP_PE_LATER)
}
