"""Scores of the contest: means with 95 % intervals, and ratios over the same seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from stoic.data import Array
from stoic.experiments.contest.contenders import EXPLAINED, PEERS, SLOW, contender
from stoic.experiments.contest.studies import Outcome

BETWEEN = " / "  # of scene and problem in the name of a panel
FLOOR = 1e-5  # better scores count as this: users need no more, and a logarithm needs a floor
_RESAMPLES = 2000
_Z = 1.959963984540054

Measure = Callable[[Outcome], float]


class Estimate(NamedTuple):
    """Estimate with its 95 % interval; nan limits for a single seed."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        if math.isnan(self.lower):
            return f"{self.value:.2g}"
        return f"{self.value:.2g} [{self.lower:.2g}, {self.upper:.2g}]"


Scores = dict[tuple[str, str], Array]


def score(row: Outcome) -> float:
    """Return the true score of the recommended setting."""
    return row.score


def tried(row: Outcome) -> float:
    """Return the best true score of all queried settings."""
    return row.tried


def collect(rows: Iterable[Outcome], measure: Measure = score) -> Scores:
    """Map scene and method to a measure per study, shape (problems, seeds), seeds in order."""
    studies: dict[tuple[str, str], dict[str, list[tuple[int, float]]]] = {}
    for row in rows:
        scene, problem = row.panel.split(BETWEEN)
        problems = studies.setdefault((scene, row.method), {})
        problems.setdefault(problem, []).append((row.seed, measure(row)))
    return {
        key: np.array([[value for _, value in sorted(one)] for one in problems.values()])
        for key, problems in studies.items()
    }


def geometric(scores: Array) -> Estimate:
    """Geometric mean over problems and seeds (problems, seeds)."""
    logs = np.log(np.maximum(scores, FLOOR))
    return Estimate(*(math.exp(v) for v in bootstrap(logs, np.mean)))


def median(scores: Array) -> Estimate:
    """Median over problems and seeds (problems, seeds)."""
    return Estimate(*bootstrap(scores, np.median))


def ratio(ours: Array, theirs: Array) -> Estimate:
    """Ratio of two geometric means over the seeds that both have: the first ones."""
    seeds = min(ours.shape[1], theirs.shape[1])
    logs = [np.log(np.maximum(one[:, :seeds], FLOOR)) for one in (ours, theirs)]
    return Estimate(*(math.exp(v) for v in bootstrap(logs[0] - logs[1], np.mean)))


def bootstrap(values: Array, statistic: Callable[..., Array]) -> tuple[float, float, float]:
    """Bootstrap a statistic of (problems, seeds): the seeds of each problem are resampled."""
    centre = float(statistic(values))
    problems, seeds = values.shape
    if seeds < 2:
        return centre, math.nan, math.nan
    drawn = np.random.default_rng(0).integers(seeds, size=(_RESAMPLES, problems, seeds))
    resampled = np.take_along_axis(values[None], drawn, axis=2).reshape(_RESAMPLES, -1)
    lower, upper = np.quantile(statistic(resampled, axis=1), (0.025, 0.975))
    return centre, float(lower), float(upper)


def share(happened: Sequence[bool | None] | Array) -> Estimate:
    """Share of the studies in which an event happened, with Wilson's interval.

    None, not known, does not count; the share of no study is nan.
    """
    known = [bool(each) for each in happened if each is not None]
    n = len(known)
    if not n:
        return Estimate(math.nan, math.nan, math.nan)
    p, z = sum(known) / n, _Z
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Estimate(p, max(0.0, centre - half), min(1.0, centre + half))


def best_peer(scores: Scores, scene: str) -> str | None:
    """Find the peer with the least geometric mean in a scene, by its own recommendations.

    Only peers that play all seeds count; None if there is none.
    """
    there = [name for name in PEERS if name not in SLOW and (scene, name) in scores]
    return min(there, key=lambda name: geometric(scores[scene, name]).value, default=None)


def order(methods: Iterable[str]) -> list[str]:
    """List row names for contenders: after each peer, ``explain`` on its trials."""
    names = []
    for name in methods:
        names += [name, name + EXPLAINED] if contender(name).peer else [name]
    return names
