"""Methods that [Bogunovic2022]_ compares, and the start of the attacks on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from stoic.data import Choice
from stoic.experiments.contender import BLACK, BLUE, VERMILION, Contender
from stoic.experiments.corruption.worlds import World
from stoic.learner import Learner
from stoic.problems import Tabulated
from stoic.recipes import Parts, Recipe
from stoic.recipes.corruption import rgp_pe, rgp_ucb
from stoic.simulate import Player


@dataclass(frozen=True)
class Algorithm(Contender[[World, Tabulated, float], Learner]):
    """Contender that is built from a world, one of its problems and the budget.

    Attributes
    ----------
    later:
        True if the attack waits until the learner has ruled out an arm.
    """

    later: bool = False

    @property
    def learner(self) -> str:
        """Name of the learner, as in claims."""
        return self.name.removesuffix(_LATER)


class Watched:
    """Player whose epoch is recorded at each query.

    Attributes
    ----------
    epochs:
        Number of epochs complete at the last query; 0 for players without epochs.
    """

    def __init__(self, player: Player) -> None:
        self.player = player
        self.tell, self.active, self.recommend = player.tell, player.active, player.recommend
        self.epochs = 0

    def ask_batch(self, n: int) -> list[Choice]:
        """Query the player and record its epoch."""
        choices = self.player.ask_batch(n)
        epoch = choices[-1].notes.get("epoch", 0)
        assert isinstance(epoch, int)
        self.epochs = epoch
        return choices


def _algorithm(
    name: str, write: Callable[[World, float], Recipe[Parts]], colour: str, batch: int = 1
) -> Algorithm:
    def build(world: World, problem: Tabulated, budget: float) -> Learner:
        return Learner(problem.domain, write(world, budget))

    return Algorithm(name, build, colour, batch=batch)


_LATER = ", attacked later"
# RGP-UCB with C = 0: the enlargement is the only difference (section 4)
GP_UCB = _algorithm(
    "GP-UCB", lambda of, C: rgp_ucb(prior=of.prior, confidence=of.round_width), BLACK
)
RGP_UCB = _algorithm(
    "RGP-UCB", lambda of, C: rgp_ucb(prior=of.prior, budget=C, confidence=of.round_width), BLUE
)
# An epoch is planned before its first result, so a batch changes nothing
RGP_PE = _algorithm(
    "RGP-PE",
    lambda of, C: rgp_pe(prior=of.prior, budget=C, confidence=of.epoch_width),
    VERMILION,
    batch=256,
)
RGP_UCB_LATER = replace(RGP_UCB, name=RGP_UCB.name + _LATER, line="--", later=True)
RGP_PE_LATER = replace(RGP_PE, name=RGP_PE.name + _LATER, line="--", later=True)

ALGORITHMS = {a.name: a for a in (GP_UCB, RGP_UCB, RGP_PE, RGP_UCB_LATER, RGP_PE_LATER)}
