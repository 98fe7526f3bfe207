"""Not in a paper: settings that do not work, which have a value all the same.

Three functions in boxes of half or a tenth of the cube, with the optimum somewhere inside. Beyond
the box a run fails, which is reported, or has a value that stands for it: one range below the
worst, or -1e6. A recommendation there counts as the median of random settings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from optuna.distributions import BaseDistribution

from stoic.data import Array
from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.contenders import DEFAULT, FAST, installed
from stoic.experiments.contest.functions import FUNCTIONS, CubeFunction
from stoic.experiments.contest.scenes import ORDINARY, Draws, Ground, Params, Scene, ordinary

# Where their maxima are in the cube
_OPTIMA = {
    "branin": ((math.pi + 5.0) / 15.0, 2.275 / 15.0),
    "levy4": (0.55,) * 4,
    "hart6": (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
}


@dataclass(frozen=True, eq=False)
class Penalised(Ground):
    """Function that has no values outside of a box.

    Attributes
    ----------
    function:
        Of the unit cube.
    low, high:
        Corners of the box, (d,).
    penalty:
        What a run outside of it has as its value; nan for a failure.
    """

    function: CubeFunction
    low: Array
    high: Array
    penalty: float

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def space(self) -> Mapping[str, BaseDistribution]:
        return self.function.space

    @property
    def dim(self) -> int:
        return self.function.dim

    @property
    def best(self) -> float:
        return self.function.best

    @property
    def span(self) -> float:
        return self.function.span

    def works(self, params: Params) -> bool:
        """Return True inside of the box."""
        u = np.array([params[name] for name in self.space])
        return bool((self.low <= u).all() and (u <= self.high).all())

    def truth(self, params: Params) -> float:
        return self.function.truth(params) if self.works(params) else self.function.median

    def run(self, params: Params, t: int, draws: Draws) -> float:
        return self.function.truth(params) if self.works(params) else self.penalty

    def at(self, u: Array) -> Params:
        return self.function.at(u)

    def score(self, params: Params) -> float:
        return self.function.score(params) if self.works(params) else 1.0


# Share of the cube that has values, and the penalty: in ranges below the least value, or as it is
_SPACES: dict[str, tuple[float, float, bool]] = {
    "reported": (0.5, math.nan, False),
    "near": (0.5, 1.0, True),
    "far": (0.5, -1e6, False),
    "most": (0.1, -1e6, False),
    "wrong": (0.5, -1e6, False),
}
_CLEAN = Scene("penalised", "", honest=True)
SCENES: dict[str, Scene] = {
    "reported": replace(_CLEAN, title="half fail, and say so"),
    "near": replace(_CLEAN, title="half are a range below the worst"),
    "far": replace(_CLEAN, title="half are -1e6"),
    "most": replace(_CLEAN, title="nine tenths are -1e6"),
    "wrong": replace(
        ordinary(0.05, *ORDINARY, noise=0.0),
        title="half are -1e6, 5 % too good by 0.5 to 3 ranges",
    ),
}


def ground(scene: str, problem: str, seed: int) -> Penalised:
    """Return the function of this name in a box of the seed."""
    share, penalty, ranges = _SPACES[scene]
    function, optimum = FUNCTIONS[problem], np.array(_OPTIMA[problem])
    width = share ** (1.0 / function.dim)
    least, most = np.maximum(optimum - width, 0.0), np.minimum(optimum, 1.0 - width)
    rng = np.random.default_rng([seed, function.dim])
    low = least + (most - least) * rng.random(function.dim)
    if ranges:
        penalty = function.best - (1.0 + penalty) * function.span
    return Penalised(function, low, low + width, penalty)


FIGURE = figure(
    "contest/penalties",
    "Settings that do not work, reported as failures or as values",
    Settings(
        trials=10,
        games=dict.fromkeys(SCENES, tuple(_OPTIMA)),
        methods=(DEFAULT, *installed(FAST)),
        few=(),
    ),
    ground,
    SCENES,
    "true score of what is recommended (0: the optimum, 1: the median of random settings)",
)
