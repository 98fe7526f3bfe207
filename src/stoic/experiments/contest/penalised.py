"""Not in a paper: settings that do not work, which have a value all the same.

Three functions in boxes of half or a tenth of the cube, with the optimum somewhere inside. Beyond
the box a run fails, which is reported, or has a value that stands for it: one range below the
worst, or -1e6. A recommendation there counts as the median of random settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stoic.data import Array
from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.contenders import DEFAULT, FAST, installed
from stoic.experiments.contest.functions import FUNCTIONS, CubeFunction
from stoic.experiments.contest.scenes import ORDINARY, Draws, Params, Scene, ordinary

# Where their maxima are in the cube
_OPTIMA = {
    "branin": ((math.pi + 5.0) / 15.0, 2.275 / 15.0),
    "levy4": (0.55,) * 4,
    "hart6": (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Penalised(CubeFunction):
    """Function that has no values outside of a box: there it counts as its median.

    Attributes
    ----------
    low, high:
        Corners of the box, (d,).
    penalty:
        What a run outside of it has as its value; nan for a failure.
    """

    low: Array
    high: Array
    penalty: float

    def works(self, params: Params) -> bool:
        """Return True inside of the box."""
        u = self._point(params)
        return bool((self.low <= u).all() and (u <= self.high).all())

    def truth(self, params: Params) -> float:
        return super().truth(params) if self.works(params) else self.median

    def run(self, params: Params, t: int, draws: Draws) -> float:
        return super().run(params, t, draws) if self.works(params) else self.penalty


# Share of the cube that has values, and the penalty
_SPACES: dict[str, tuple[float, Callable[[CubeFunction], float]]] = {
    "reported": (0.5, lambda function: math.nan),
    "near": (0.5, lambda function: function.best - 2.0 * function.span),
    "far": (0.5, lambda function: -1e6),
    "most": (0.1, lambda function: -1e6),
    "wrong": (0.5, lambda function: -1e6),
}
SCENES: dict[str, Scene] = {
    "reported": Scene("penalised", "half fail, and say so", honest=True),
    "near": Scene("penalised", "half are a range below the worst", honest=True),
    "far": Scene("penalised", "half are -1e6", honest=True),
    "most": Scene("penalised", "nine tenths are -1e6", honest=True),
    "wrong": replace(
        ordinary(0.05, *ORDINARY, noise=0.0),
        title="half are -1e6, 5 % too good by 0.5 to 3 ranges",
    ),
}


def ground(scene: str, problem: str, seed: int) -> Penalised:
    """Return the function of this name in a box of the seed."""
    share, penalty = _SPACES[scene]
    function, optimum = FUNCTIONS[problem], np.array(_OPTIMA[problem])
    width = share ** (1.0 / function.dim)
    least, most = np.maximum(optimum - width, 0.0), np.minimum(optimum, 1.0 - width)
    rng = np.random.default_rng([seed, function.dim])
    low = least + (most - least) * rng.random(function.dim)
    return Penalised(**vars(function), low=low, high=low + width, penalty=penalty(function))


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
