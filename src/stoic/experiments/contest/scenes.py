"""Scenes of the contest: noise and outliers, independent of the queries.

The noise of result number t is drawn before a study begins, from a stream of its own for each
problem and seed. So every method meets the same noise and the same outliers in the same trials.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import BaseTrial

from stoic.data import Array
from stoic.refusal import RefusalError

LENGTH = 2000  # results for which random numbers are drawn, if nothing else is said
ORDINARY = (0.5, 3.0)  # ranges by which an ordinary outlier is too good
RATE = 0.1  # of outliers in the development scenes
Params = Mapping[str, Any]


class Draws(NamedTuple):
    """Random numbers for each result of one study, each of shape (length,).

    Attributes
    ----------
    gauss, cauchy:
        Standard variates.
    chance:
        Uniform; decides whether the result is an outlier. A smaller rate hits a subset of the
        results that a larger one hits.
    size:
        Uniform; the size of an outlier, or which of several recorded runs a result is.
    point:
        Uniform points of the unit cube, (length, d).
    """

    gauss: Array
    chance: Array
    size: Array
    cauchy: Array
    point: Array

    @classmethod
    def of(cls, key: str, seed: int, dim: int, length: int = LENGTH) -> Draws:
        """Draw the numbers that belong to a key and a seed."""
        # crc32, since hash() of a text differs between processes
        rng = np.random.default_rng([zlib.crc32(key.encode()), seed])
        return cls(
            rng.standard_normal(length),
            rng.random(length),
            rng.random(length),
            rng.standard_cauchy(length),
            rng.random((length, dim)),
        )


class Ground(ABC):
    """Ground truth: an objective whose noiseless values are known. Inside, higher is better.

    Attributes
    ----------
    name, space:
        As in tables, and the search space.
    dim:
        Number of uniform numbers that make a random configuration.
    sign:
        1.0 if the user maximises, -1.0 if the user minimises.
    best, span:
        Largest noiseless value, and the unit of noise and of outliers.
    """

    sign: float = 1.0
    if TYPE_CHECKING:  # at run time these are fields of some, and properties of others

        @property
        def name(self) -> str: ...
        @property
        def space(self) -> Mapping[str, BaseDistribution]: ...
        @property
        def dim(self) -> int: ...
        @property
        def best(self) -> float: ...
        @property
        def span(self) -> float: ...

    @abstractmethod
    def truth(self, params: Params) -> float:
        """Return the noiseless value."""

    @abstractmethod
    def at(self, u: Array) -> Params:
        """Return the configuration at a uniform point (d,)."""

    def run(self, params: Params, t: int, draws: Draws) -> float:
        """Evaluate result number t without outliers or scene noise; nan for a failed run."""
        return self.truth(params)

    def elsewhere(self, t: int, draws: Draws) -> float:
        """Evaluate another, random configuration, without outliers."""
        return self.run(self.at(draws.point[t]), t, draws)

    def score(self, params: Params) -> float:
        """Score the true worth of a configuration: 0 is the optimum."""
        return self.best - self.truth(params)

    def suggest(self, trial: BaseTrial) -> None:  # noqa: B027
        """Suggest what only some configurations have, besides the parameters of its space."""


Outlier = Callable[[Ground, float, int, Draws], float]


@dataclass(frozen=True, slots=True)
class Scene:
    """Noise and outliers.

    Attributes
    ----------
    key:
        Seeds the stream of random numbers: scenes of one key share it.
    title:
        As in tables and pictures.
    honest:
        True if there are no outliers: results are noisy or missing, not wrong.
    noise, tails:
        Standard deviation of Gaussian, and scale of Cauchy noise, in ranges.
    outliers:
        Pairs of a rate and a function that replaces the result.
    marked:
        True if outliers are distinct from noise: heavy tails have no border.
    """

    key: str
    title: str
    honest: bool = False
    noise: float = 0.0
    tails: float = 0.0
    outliers: tuple[tuple[float, Outlier], ...] = ()
    marked: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Ground truth in a scene, for one seed.

    Raises
    ------
    RefusalError
        If a result beyond the last one drawn is requested.
    """

    ground: Ground
    scene: Scene
    draws: Draws

    @classmethod
    def of(cls, ground: Ground, scene: Scene, seed: int, length: int = LENGTH) -> World:
        """Build the world with draws paired by problem, scene, seed and length."""
        return cls(ground, scene, Draws.of(f"{ground.name}/{scene.key}", seed, ground.dim, length))

    def observe(self, params: Params, t: int) -> float:
        """Observe result number t, from 0, in the user's direction; nan for a failed run."""
        if t >= (length := len(self.draws.gauss)):
            raise RefusalError(
                f"A study of the contest has at most {length} results: ask for fewer."
            )
        ground, scene, draws = self.ground, self.scene, self.draws
        y = ground.run(params, t, draws)
        y += ground.span * (scene.noise * draws.gauss[t] + scene.tails * draws.cauchy[t])
        outlier = self._outlier(t)
        return float(ground.sign * (outlier(ground, y, t, draws) if outlier else y))

    def is_outlier(self, t: int) -> bool:
        """Return True if result number t is not f plus noise."""
        return self._outlier(t) is not None

    def _outlier(self, t: int) -> Outlier | None:
        rest = self.draws.chance[t]
        for rate, outlier in self.scene.outliers:
            if rest < rate:
                return outlier
            rest -= rate  # the next outlier has the next stretch of [0, 1)
        return None


def shifted(amount: float) -> Outlier:
    """Shift the result by an amount in units of f."""
    return lambda ground, y, t, draws: y + amount


def shifted_by_ranges(least: float, most: float) -> Outlier:
    """Shift the result by a uniform number of ranges."""
    width = most - least
    return lambda ground, y, t, draws: y + (least + width * float(draws.size[t])) * ground.span


def another(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Replace the result by that of another, random configuration."""
    return ground.elsewhere(t, draws)


def slightly_better(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Replace the result by a constant, 5 % of the range better than the optimum."""
    return ground.best + 0.05 * ground.span


def missing(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Replace the result by nan."""
    return math.nan


SCENES: dict[str, Scene] = {
    scene.key: scene
    for scene in (
        Scene("clean", "clean", honest=True),
        Scene("noise", "noise, 5 % of the range", honest=True, noise=0.05),
        Scene("good", "1e6 too good", outliers=((RATE, shifted(1e6)),)),
        Scene("bad", "1e6 too bad", outliers=((RATE, shifted(-1e6)),)),
        Scene("other", "another point's value", outliers=((RATE, another),)),
        Scene("const", "a constant above the optimum", outliers=((RATE, slightly_better),)),
        Scene("cauchy", "Cauchy noise", tails=0.02, marked=False),
        Scene("nan", "nan", honest=True, outliers=((RATE, missing),)),
    )
}


def ordinary(rate: float, least: float, most: float, noise: float = 0.05) -> Scene:
    """Scene with noise, and results that are too good by a few ranges."""
    size = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    title = f"{100 * rate:g} % too good by {size} ranges" if rate else "no outliers"
    outliers = ((rate, shifted_by_ranges(least, most)),)
    # One key for all conditions: a smaller rate hits a subset of the same trials
    return Scene("ordinary", f"{title}, noise {100 * noise:g} %", not rate, noise, 0.0, outliers)
