"""Methods that [Saday2025]_ compares: AdveRS, and StableOpt with a right and a wrong radius."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoic.experiments.contender import BLACK, BLUE, GREY, ORANGE, PURPLE, VERMILION, Contender
from stoic.experiments.inputs.worlds import World
from stoic.learner import Learner
from stoic.recipes import Parts, Recipe, advers_1, advers_2, advers_g, stable_opt

Build = Callable[[World, float, float, int], Learner]


@dataclass(frozen=True)
class Algorithm(Contender[[World, float, float, int], Learner]):
    """Contender that is built from a world, the threshold, the true radius and a seed.

    Attributes
    ----------
    factor:
        Radius of StableOpt in units of the true one; None for learners without a radius.
    """

    factor: float | None = None


def _advers(write: Callable[..., Recipe[Parts]], **settings: float) -> Build:
    def build(world: World, threshold: float, radius: float, seed: int) -> Learner:
        prior, distance = world.prior, world.distance
        recipe = write(prior=prior, threshold=threshold, distance=distance, **settings)
        return Learner(world.problem.domain, recipe, seed=seed)

    return build


def _stable(name: str, factor: float, colour: str, line: str) -> Algorithm:
    def build(world: World, threshold: float, radius: float, seed: int) -> Learner:
        domain, prior, distance = world.problem.domain, world.prior, world.distance
        return Learner(
            domain, stable_opt(prior=prior, radius=factor * radius, distance=distance), seed=seed
        )

    return Algorithm(f"StableOpt, r = {name}", build, colour, line, factor=factor)


ADVERS_1 = Algorithm("AdveRS-1", _advers(advers_1), BLUE)
ADVERS_2 = Algorithm("AdveRS-2", _advers(advers_2), VERMILION)
ADVERS_G = Algorithm("AdveRS-G, p = 2", _advers(advers_g, p=2.0), PURPLE)  # p of figure 3 (b)
STABLE = _stable("eps", 1.0, BLACK, "-")
STABLE_4 = _stable("4 eps", 4.0, GREY, "--")  # figures 3, 7, 9 and 10
STABLE_3 = _stable("3 eps", 3.0, GREY, "--")  # figures 4, 6 and 8
STABLE_HALF = _stable("eps / 2", 0.5, ORANGE, "--")  # figures 3, 7, 9 and 10
STABLE_THIRD = _stable("eps / 3", 1.0 / 3.0, ORANGE, "--")  # figures 4 and 8
STABLE_03 = _stable("0.3 eps", 0.3, ORANGE, "--")  # figure 6

_ADVERS = ADVERS_1, ADVERS_2, ADVERS_G
_STABLE = STABLE, STABLE_4, STABLE_3, STABLE_HALF, STABLE_THIRD, STABLE_03
ALGORITHMS = {algorithm.name: algorithm for algorithm in (*_ADVERS, *_STABLE)}
