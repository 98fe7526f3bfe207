"""Not in a paper: latencies, of which less is better and which differ by factors.

A setting takes 10 ms at the optimum and 10 or 10,000 times as much at the worst one, by a function
of the cube. Noise is a factor, 10 % of the latency. A wrong result is 3 to 20 times too slow, as
beside a noisy neighbour, or 5 to 150 times too fast, as of requests that were refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.contenders import DEFAULT, FAST, installed
from stoic.experiments.contest.functions import FUNCTIONS, CubeFunction
from stoic.experiments.contest.scenes import Draws, Ground, Params, Scene

PROBLEMS = ("branin", "levy4", "hart6")
LEAST = 10.0  # milliseconds


@dataclass(frozen=True, eq=False, kw_only=True)
class Latency(CubeFunction):
    """Latency in milliseconds, minimised; its score is that of the function.

    Attributes
    ----------
    orders:
        Orders of magnitude between the maximum of the function and its least value.
    noise:
        Standard deviation of the logarithm of a result.
    logarithm:
        True if a result is the decimal logarithm of the latency.
    """

    orders: float
    noise: float
    logarithm: bool = False
    sign = -1.0

    def truth(self, params: Params) -> float:
        return -self._said(self._exponent(params))

    def run(self, params: Params, t: int, draws: Draws) -> float:
        noise = self.noise * float(draws.gauss[t]) / math.log(10.0)
        return -self._said(self._exponent(params) + noise)

    def score(self, params: Params) -> float:
        return (self.best - super().truth(params)) / (self.best - self.median)

    def _exponent(self, params: Params) -> float:
        level = (self.best - super().truth(params)) / self.span
        return math.log10(LEAST) + self.orders * level

    def _said(self, exponent: float) -> float:
        return exponent if self.logarithm else math.pow(10.0, exponent)


def slower(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Multiply a latency, -y, by 3 to 20."""
    return y * 3.0 * math.pow(20.0 / 3.0, draws.size[t])


def faster(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Divide a latency, -y, by 5 to 150."""
    return y / (5.0 * math.pow(30.0, draws.size[t]))


# Orders of magnitude, noise, and whether the logarithm is reported
_KINDS = {
    "one": (1.0, 0.1, False),
    "exact": (4.0, 0.0, False),
    "four": (4.0, 0.1, False),
    "logarithm": (4.0, 0.1, True),
    "wrong": (4.0, 0.1, False),
}
SCENES: dict[str, Scene] = {
    "one": Scene("latency", "10 to 100 ms, noise 10 %", honest=True),
    "exact": Scene("latency", "10 to 100,000 ms, no noise", honest=True),
    "four": Scene("latency", "10 to 100,000 ms, noise 10 %", honest=True),
    "logarithm": Scene("latency", "their logarithm, noise 10 %", honest=True),
    "wrong": Scene(
        "latency",
        "10 to 100,000 ms, 6 % too slow, 4 % too fast",
        outliers=((0.06, slower), (0.04, faster)),
    ),
}


def ground(scene: str, problem: str, seed: int) -> Latency:
    """Return the latencies of this function in the scene."""
    orders, noise, logarithm = _KINDS[scene]
    function = vars(FUNCTIONS[problem])
    return Latency(**function, orders=orders, noise=noise, logarithm=logarithm)


FIGURE = figure(
    "contest/latency",
    "Latencies over orders of magnitude",
    Settings(
        trials=10,
        rounds=40,
        games=dict.fromkeys(SCENES, PROBLEMS),
        methods=(DEFAULT, *installed(FAST)),
        few=(),
    ),
    ground,
    SCENES,
    "true score of what is recommended (0: the optimum, 1: the median of random settings)",
)
