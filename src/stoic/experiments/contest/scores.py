"""Scores of the contest: means with 95 % intervals, and ratios over the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from stoic.data import Array
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED, PEERS, SLOW, contender
from stoic.experiments.figure import Claim
from stoic.experiments.statistics import Interval, bootstrap
from stoic.experiments.trials import Groups, Trials, grouped

R = TypeVar("R")
Found = Groups[Any]  # studies of each scene and contender
BETWEEN = " / "  # of scene and problem in the name of a panel
FLOOR = 1e-5  # better scores count as this: users need no more, and a logarithm needs a floor
# What was asked of the default before it was written
HONEST = 1.1  # largest allowed ratio of the default's score to the best peer's, no outliers
WITH_OUTLIERS = 0.5  # and with them


def by_scene(rows: Iterable[R]) -> Groups[R]:
    """Group studies by scene and contender, all problems together."""
    return grouped(rows, lambda panel: panel.split(BETWEEN)[0])


def geometric(scores: Array) -> Interval:
    """Geometric mean over problems and seeds (problems, seeds)."""
    return Interval(*map(math.exp, bootstrap(np.log(np.maximum(scores, FLOOR)), np.mean)))


def score(studies: Trials[Any], column: str = "score") -> Interval:
    """Geometric mean of a column of studies."""
    return geometric(studies.by_panel(column))


def ratio(ours: Array, theirs: Array) -> Interval:
    """Ratio of two geometric means over the seeds that both have: the first ones."""
    seeds = min(ours.shape[1], theirs.shape[1])
    logs = [np.log(np.maximum(one[:, :seeds], FLOOR)) for one in (ours, theirs)]
    return Interval(*map(math.exp, bootstrap(logs[0] - logs[1], np.mean)))


def best_peer(found: Found, scene: str, column: str = "score") -> str | None:
    """Find the peer with the least geometric mean in a scene, by its own recommendations.

    Only peers that play all seeds count; None if there is none.
    """
    there = [name for name in PEERS if name not in SLOW and (scene, name) in found]
    return min(there, key=lambda name: score(found[scene, name], column).value, default=None)


def near_the_best_peer(
    found: Found,
    scene: str,
    title: str,
    most: float,
    measured: Mapping[str, float],
    column: str = "score",
    number: str = "score",
) -> list[Claim]:
    """Claim a ratio to the best peer's of at most ``most``; none without the default or a peer.

    Parameters
    ----------
    found, scene, title:
        The studies, and the scene that is judged.
    most, column, number:
        Largest ratio, of which column, and its name in the sentence.
    measured:
        Other numbers of the claim.
    """
    best = best_peer(found, scene, column)
    # Runs of a few methods have nobody to compare with
    if best is None or (scene, DEFAULT) not in found:
        return []
    against = ratio(*(found[scene, name].by_panel(column) for name in (DEFAULT, best)))
    sentence = f"{title}: the default's {number} is at most {most:g} of the best peer's, {best}"
    numbers = {**measured, **against.limits("ratio")}
    return [Claim(f"{sentence} (ours).", against.value <= most, numbers)]


def order(methods: Iterable[str]) -> list[str]:
    """List row names for contenders: after each peer, ``explain`` on its trials."""
    names = []
    for name in methods:
        names += [name, name + EXPLAINED] if contender(name).peer else [name]
    return names


def lines(
    found: Found, titles: Mapping[str, str], methods: Sequence[str]
) -> dict[tuple[str, str], Trials[Any]]:
    """Lines of a table: the studies of each contender that are there, by the scene's title."""
    return {
        (title, name): found[scene, name]
        for scene, title in titles.items()
        for name in order(methods)
        if (scene, name) in found
    }
