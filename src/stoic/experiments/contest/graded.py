"""Not in a paper: results that have few values, as success and failure, or a rating.

Each says how good a setting is by its score s, which is 0 at the optimum and 1 at the median of
random settings: a run succeeds with the probability .95 - .6 s, and a rating is 5 - 2.5 s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.contenders import DEFAULT, FAST, installed
from stoic.experiments.contest.functions import FUNCTIONS, CubeFunction
from stoic.experiments.contest.scenes import RATE, Draws, Params, Scene

PROBLEMS = ("branin", "levy4", "hart6")
BEST = 5.0  # of the ratings from 1 on
Grade = Callable[[float, Draws, int], float]


@dataclass(frozen=True, eq=False, kw_only=True)
class Graded(CubeFunction):
    """Function whose result number t is a grade of the score.

    Attributes
    ----------
    grade:
        Function from a score, the draws and t to a result.
    """

    grade: Grade

    def run(self, params: Params, t: int, draws: Draws) -> float:
        return self.grade(self.score(params), draws, t)


def _successes(runs: int) -> Grade:
    """Grade by the share of runs that succeed."""

    def grade(score: float, draws: Draws, t: int) -> float:
        chance = float(np.clip(0.95 - 0.6 * score, 0.05, 0.95))
        return float(stats.binom.ppf(draws.size[t], runs, chance)) / runs

    return grade


def _rating(noise: float) -> Grade:
    """Grade by a rating of 1 to 5, whose noise has this standard deviation."""

    def grade(score: float, draws: Draws, t: int) -> float:
        exact = BEST - 2.5 * score + noise * float(draws.gauss[t])
        return float(np.clip(np.rint(exact), 1.0, BEST))

    return grade


_GRADES = {
    "success": _successes(1),
    "share": _successes(10),
    "rating": _rating(0.5),
    "exact": _rating(0.0),
    "wrong": _rating(0.5),
}
SCENES: dict[str, Scene] = {
    "success": Scene("graded", "a success, 1, or a failure, 0", honest=True),
    "share": Scene("graded", "the share of ten runs that succeed", honest=True),
    "rating": Scene("graded", "a rating of 1 to 5, with noise", honest=True),
    "exact": Scene("graded", "a rating of 1 to 5, without noise", honest=True),
    "wrong": Scene(
        "graded",
        "a rating with noise, one in ten 5 instead",
        outliers=((RATE, lambda ground, y, t, draws: BEST),),
    ),
}


def ground(scene: str, problem: str, seed: int) -> Graded:
    """Return the function of this name with the grades of the scene."""
    return Graded(**vars(FUNCTIONS[problem]), grade=_GRADES[scene])


FIGURE = figure(
    "contest/few-values",
    "Results that have few values: success or failure, and ratings",
    Settings(
        trials=10,
        games=dict.fromkeys(SCENES, PROBLEMS),
        methods=(DEFAULT, *installed(FAST)),
        few=(),
    ),
    ground,
    SCENES,
    "true score of what is recommended (0: the optimum, 1: the median of random settings)",
)
