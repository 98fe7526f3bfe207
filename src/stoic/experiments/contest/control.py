"""Controllers with 12 and 60 parameters: a lunar lander's, and the way of a rover."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from scipy.interpolate import splev, splprep

from stoic.data import Array, Booleans
from stoic.experiments.contest.functions import CubeFunction
from stoic.problems.lunar_lander import episode

# Centres of the obstacles, in thousandths: those of the code of [Wang2018]_, three digits of each
# coordinate.
_OBSTACLES = """
431209 385392 030223 780345 937563 042236 280410 676709 019870 599633 578402 568755 354386
725600 276643 540255 309602 291296 785623 296084 875049 217961 926534 536451 999795 846419
394068 924722 955740 820539 224997 340910 650357 300336 432116 668521 454946 128336 193811
612719 452474 956742 173891 046530 425410 376880 670299 415773 558264 628532 927611 932421
639375 153574 821166 149352 717571 329893 744475 925210 570544 566025 848012 513739 588465
833986 002837 725048 073301 553239 512465 802934 916324 449534 677675 819884 482887 398993
867790 011692 343895 407862 263373 744848 556464 736128 281260 175955 542120 767884 613791
934863 487749 187581 104715 777015 764455 833347 383519 339828 021418 688964 470927 727632
485720 526816 714471 003304 355986 655035 106620 603871 050536
"""
_HALF_WIDTH = 0.025
_START, _GOAL = np.array([0.05, 0.05]), np.array([0.95, 0.95])
_EPISODES = 10


def way(u: Array) -> float:
    """Reward of a rover's way, at a point (60,) of the unit cube [Wang2018]_.

    Thirty points of [-0.1, 1.1]^2 are smoothed by a cubic spline, as SciPy does by default: that is
    what their code does. A unit of length costs 0.05, in an obstacle or outside of the unit square
    20 more; a start or an end elsewhere costs ten times the distance, a sum over coordinates. The
    points have a jitter of 1e-4, without which no two may be the same; here it is fixed.
    """
    points = (1.2 * u - 0.1).reshape(30, 2) + _jitter()
    spline: Any = splprep(points.T, k=3)[0]
    path: Array = np.stack(splev(np.linspace(0.0, 1.0, 1000), spline), axis=1)
    # (1000, obstacles)
    within = np.all(np.abs(path[:, None] - _centres()) <= _HALF_WIDTH, axis=2)
    hit: Booleans = np.any(within, axis=1) | np.any((path < 0.0) | (path > 1.0), axis=1)
    cost = np.where(hit, 20.05, 0.05)
    lengths: Array = np.hypot(*np.diff(path, axis=0).T)
    missed = np.abs(path[0] - _START).sum() + np.abs(path[-1] - _GOAL).sum()
    return float(5.0 - 0.5 * (cost[1:] + cost[:-1]) @ lengths - 10.0 * missed)


@cache
def _jitter() -> Array:
    return 1e-4 * np.random.default_rng(0).standard_normal((30, 2))


@cache
def _centres() -> Array:
    digits = [(int(word[:3]), int(word[3:])) for word in _OBSTACLES.split()]
    return np.array(digits) / 1000.0


def landing(u: Array) -> float:
    """Mean return of ten landings by gymnasium's own controller, at a point (12,) of the unit cube.

    Its twelve constants are parameters from 0 to 2, as in [Eriksson2019]_, where it is fifty
    landings. The episodes have the seeds 0 to 9: f has no noise.
    """
    engine = partial(_engine, 2.0 * u)
    return float(np.mean([episode(engine, seed) for seed in range(_EPISODES)]))


def _engine(w: Array, state: Array) -> int:
    x, y, across, up, angle, turning, left, right = state
    if left or right:  # a leg has contact
        turn, rise = w[8], -w[9] * up
    else:
        target = min(max(w[0] * x + w[1] * across, -w[2]), w[2])
        turn = w[4] * (target - angle) - w[5] * turning
        rise = w[6] * (w[3] * abs(x) - y) - w[7] * up
    if rise > abs(turn) and rise > w[10]:
        return 2
    return 3 if turn < -w[11] else 1 if turn > w[11] else 0


def _in_rows(value: Callable[[Array], float]) -> Callable[[Array], Array]:
    # A study wants each value twice: its result and its score
    known = lru_cache(maxsize=1)(lambda row: value(np.array(row)))
    return lambda u: np.array([known(tuple(row)) for row in u.tolist()])


# The median and the range of 20,000 points for the rover and of 600 for the lander. A way cannot
# get 5; no landing was seen to return 330.
CONTROL = {
    f.name: f
    for f in (
        CubeFunction("lander12", 12, _in_rows(landing), 330.0, -104.9, 632.7),
        CubeFunction("rover60", 60, _in_rows(way), 5.0, -18.62, 57.88),
    )
}
