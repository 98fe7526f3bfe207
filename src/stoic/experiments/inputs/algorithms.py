"""Methods that [Saday2025]_ compares: AdveRS, and StableOpt with a right and a wrong radius."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoic.experiments.inputs.worlds import World
from stoic.experiments.methods import BLACK, BLUE, GREY, ORANGE, PURPLE, VERMILION
from stoic.learner import Learner
from stoic.recipes import advers_1, advers_2, advers_g, stable_opt


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Learner with its colour and line style.

    Attributes
    ----------
    name:
        As in tables and legends.
    build:
        Function from a world, the threshold, the true radius and a seed to a learner.
    colour, line:
        As matplotlib knows them.
    factor:
        Radius of StableOpt in units of the true one; None for learners without a radius.
    """

    name: str
    build: Callable[[World, float, float, int], Learner]
    colour: str
    line: str = "-"
    factor: float | None = None


def _advers_1(world: World, threshold: float, radius: float, seed: int) -> Learner:
    domain, prior, distance = world.problem.domain, world.prior, world.distance
    return Learner(domain, advers_1(prior=prior, threshold=threshold, distance=distance), seed=seed)


def _advers_2(world: World, threshold: float, radius: float, seed: int) -> Learner:
    domain, prior, distance = world.problem.domain, world.prior, world.distance
    return Learner(domain, advers_2(prior=prior, threshold=threshold, distance=distance), seed=seed)


def _advers_g(world: World, threshold: float, radius: float, seed: int) -> Learner:
    domain, prior, distance = world.problem.domain, world.prior, world.distance
    return Learner(
        domain, advers_g(prior=prior, p=2.0, threshold=threshold, distance=distance), seed=seed
    )


def _stable(name: str, factor: float, colour: str, line: str) -> Algorithm:
    def build(world: World, threshold: float, radius: float, seed: int) -> Learner:
        domain, prior, distance = world.problem.domain, world.prior, world.distance
        return Learner(
            domain, stable_opt(prior=prior, radius=factor * radius, distance=distance), seed=seed
        )

    return Algorithm(f"StableOpt, r = {name}", build, colour, line, factor)


ADVERS_1 = Algorithm("AdveRS-1", _advers_1, BLUE)
ADVERS_2 = Algorithm("AdveRS-2", _advers_2, VERMILION)
ADVERS_G = Algorithm("AdveRS-G, p = 2", _advers_g, PURPLE)
STABLE = _stable("eps", 1.0, BLACK, "-")
STABLE_4 = _stable("4 eps", 4.0, GREY, "--")
STABLE_3 = _stable("3 eps", 3.0, GREY, "--")
STABLE_HALF = _stable("eps / 2", 0.5, ORANGE, "--")
STABLE_THIRD = _stable("eps / 3", 1.0 / 3.0, ORANGE, "--")
STABLE_03 = _stable("0.3 eps", 0.3, ORANGE, "--")

ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        ADVERS_1,
        ADVERS_2,
        ADVERS_G,
        STABLE,
        STABLE_4,
        STABLE_3,
        STABLE_HALF,
        STABLE_THIRD,
        STABLE_03,
    )
}
