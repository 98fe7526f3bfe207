"""Scores of the contest: means with 95 % intervals, and ratios over the same seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from stoic.data import Array
from stoic.experiments.contest.contenders import EXPLAINED, PEERS, SLOW, contender
from stoic.experiments.contest.studies import Outcome
from stoic.experiments.statistics import Interval, bootstrap

BETWEEN = " / "  # of scene and problem in the name of a panel
FLOOR = 1e-5  # better scores count as this: users need no more, and a logarithm needs a floor
Measure = Callable[[Outcome], float]
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


def geometric(scores: Array) -> Interval:
    """Geometric mean over problems and seeds (problems, seeds)."""
    logs = np.log(np.maximum(scores, FLOOR))
    return Interval(*map(math.exp, bootstrap(logs, np.mean)))


def median(scores: Array) -> Interval:
    """Median over problems and seeds (problems, seeds)."""
    return bootstrap(scores, np.median)


def ratio(ours: Array, theirs: Array) -> Interval:
    """Ratio of two geometric means over the seeds that both have: the first ones."""
    seeds = min(ours.shape[1], theirs.shape[1])
    logs = [np.log(np.maximum(one[:, :seeds], FLOOR)) for one in (ours, theirs)]
    return Interval(*map(math.exp, bootstrap(logs[0] - logs[1], np.mean)))


def select(
    rows: Iterable[Outcome], method: str, scenes: Sequence[str] | None = None
) -> list[Outcome]:
    """Rows of one method, in all scenes or in some of them."""
    return [
        row
        for row in rows
        if row.method == method and (scenes is None or row.panel.split(BETWEEN)[0] in scenes)
    ]


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
