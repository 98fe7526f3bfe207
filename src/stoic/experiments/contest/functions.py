"""Test functions of the contest on the unit cube, with their maxima and typical values.

All are *maximised*. The maximum is known; the median and the range are those of 200,000 uniform
points (20,000 from 20 dimensions on), and normalise the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from stoic.data import Array
from stoic.experiments.contest.scenes import Draws, Ground, Params
from stoic.problems import forrester_negative, hartmann3


@dataclass(frozen=True, eq=False)
class CubeFunction(Ground):
    """Formula on [0, 1]^d as a ground truth of the contest.

    Attributes
    ----------
    name, dim:
        As in tables; it also seeds the stream of random numbers; and d.
    formula:
        f: (m, d) to (m,).
    best, median:
        Maximum of f, and its median at uniform points.
    span:
        The maximum less the least value at uniform points: the range.
    observe:
        Function from a point to a result, if results are not f.
    """

    name: str
    dim: int
    formula: Callable[[Array], Array]
    best: float
    median: float
    span: float
    observe: Callable[[Array], float] | None = None

    @property
    def space(self) -> dict[str, BaseDistribution]:
        return {f"x{k}": FloatDistribution(0.0, 1.0) for k in range(self.dim)}

    def truth(self, params: Params) -> float:
        return float(self.formula(self._point(params)[None])[0])

    def run(self, params: Params, t: int, draws: Draws) -> float:
        return self.observe(self._point(params)) if self.observe else self.truth(params)

    def at(self, u: Array) -> Params:
        return dict(zip(self.space, u.tolist(), strict=True))

    def score(self, params: Params) -> float:
        return (self.best - self.truth(params)) / (self.best - self.median)

    def _point(self, params: Params) -> Array:
        return np.array([params[f"x{k}"] for k in range(self.dim)])


def _branin(u: Array) -> Array:
    x, y = 15 * u[:, 0] - 5, 15 * u[:, 1]
    parabola = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return np.asarray(-(parabola**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10))


def _camel(u: Array) -> Array:
    x, y = 4 * u[:, 0] - 2, 2 * u[:, 1] - 1
    return np.asarray(-((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2))


_HARTMANN_HEIGHT = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_SHARPNESS = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_CENTRE = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann6(u: Array) -> Array:
    """Hartmann function of the first six coordinates; others do not matter."""
    distance = ((u[:, None, :6] - _HARTMANN_CENTRE) ** 2 * _HARTMANN_SHARPNESS).sum(axis=2)
    return np.asarray(np.exp(-distance) @ _HARTMANN_HEIGHT)


def _levy(u: Array) -> Array:
    w = 1 + (20 * u - 11) / 4  # 1 + (x - 1) / 4 of x in [-10, 10]; x = 1 at the optimum
    body = (w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return np.asarray(-(np.sin(np.pi * w[:, 0]) ** 2 + body.sum(axis=1) + last))


_CENTRE = np.array([0.3, 0.62, 0.45, 0.81, 0.2])
_WEIGHT = np.array([1.0, 4.0, 0.5, 2.0, 1.0])


def _ackley(u: Array) -> Array:
    x = 15 * u - 5  # [-5, 10]^d
    distance, waves = np.sqrt((x**2).mean(axis=1)), np.cos(2 * np.pi * x).mean(axis=1)
    return np.asarray(20 * np.exp(-0.2 * distance) + np.exp(waves) - 20 - np.e)


def _bowl(u: Array) -> Array:
    d = u.shape[1]
    return np.asarray(-(_WEIGHT[:d] * (u - _CENTRE[:d]) ** 2).sum(axis=1))


# Multiples of the golden ratio: no two coordinates of the optimum agree, none is near an edge.
_CENTRE_40 = 0.2 + 0.6 * ((0.6180339887498949 * np.arange(1, 41)) % 1)


def _bowl40(u: Array) -> Array:
    return np.asarray(-((u - _CENTRE_40) ** 2).sum(axis=1))


_BRANIN = -0.39788735772973816  # at (pi, 2.275) and two more points
_HARTMANN6 = 3.322368011415512

_FORRESTER = 6.020740055767083, 0.004987726674, 21.85040877  # maximum, median and range of -f

FUNCTIONS: dict[str, CubeFunction] = {
    f.name: f
    for f in (
        CubeFunction("branin", 2, _branin, _BRANIN, -35.0140056, 304.1300894),
        CubeFunction("camel", 2, _camel, 1.0316284534898774, -1.028157992, 6.643114497),
        CubeFunction("hart3", 3, hartmann3().formula, 3.8627797873326, 0.5521349745, 3.862734456),
        CubeFunction("levy4", 4, _levy, 0.0, -37.25883878, 214.4641433),
        CubeFunction("bowl5", 5, _bowl, 0.0, -1.007612571, 3.995215945),
        CubeFunction("hart6", 6, _hartmann6, _HARTMANN6, 0.1027877134, 3.32236746),
        CubeFunction("bowl3", 3, _bowl, 0.0, -0.4467839067, 2.132375812),
        CubeFunction("forrester", 1, forrester_negative().formula, *_FORRESTER),
        CubeFunction("ackley10", 10, _ackley, 0.0, -14.24596806, 18.07583605),
        CubeFunction("levy20", 20, _levy, 0.0, -244.9839233, 605.9703875),
        CubeFunction("bowl40", 40, _bowl40, 0.0, -4.479043764, 7.918281294),
        CubeFunction("hart6in20", 20, _hartmann6, _HARTMANN6, 0.1018664680, 3.322365667),
    )
}
