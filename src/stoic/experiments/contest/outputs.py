"""Figures of the contest whose problems have several outputs: ``constraints``, ``objectives``.

Settings have ``trials``, ``seed``, ``problems`` and ``methods``, and rows ``panel``, ``method`` and
``score``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stoic.data import Array
from stoic.experiments.contest import scores
from stoic.experiments.contest.comparison import HONEST, WITH_OUTLIERS
from stoic.experiments.contest.contenders import DEFAULT
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.figure import Cell, Claim, crossed

_RATE = 0.05  # of outliers, in each output
_SIZES = 1.0, 10.0  # of outliers, in units of the output


Line = tuple[str, str, list[Any], Array]  # scene, contender, its rows and scores (problems, seeds)


def cells(settings: Any, scenes: Mapping[str, str]) -> list[Cell]:
    """Every contender on every problem in every scene."""
    panels = [scene + BETWEEN + name for scene in scenes for name in settings.problems]
    return crossed(panels, settings.methods, seed=settings.seed, trials=settings.trials)


def outliers(rng: np.random.Generator, shape: tuple[int, int], units: Array, among: bool) -> Array:
    """Draw what is added to the outputs of each trial, (rounds, k): 0 where it is no outlier."""
    # ~ +- U(1, 10)
    size = rng.uniform(*_SIZES, shape) * rng.choice([-1.0, 1.0], shape)
    hit = rng.random(shape) < _RATE * among
    return np.where(hit, size * units, 0.0)


def by_scene(settings: Any, scenes: Mapping[str, str], rows: Sequence[Any]) -> list[Line]:
    """List scene, contender, its rows and its scores (problems, seeds)."""
    found = []
    for scene in scenes:
        for method in scores.order(settings.methods):
            panels = [scene + BETWEEN + name for name in settings.problems]
            here = [row for row in rows if row.method == method and row.panel in panels]
            if here:
                of = [[row.score for row in here if row.panel == panel] for panel in panels]
                found.append((scene, method, here, np.array(of)))
    return found


def against_the_best_peer(
    settings: Any, scene: str, title: str, found: Sequence[Line]
) -> tuple[Claim, list[str]] | None:
    """Claim on the default's score in a scene, and the peers there; None without these."""
    here = {method: values for place, method, _, values in found if place == scene}
    # By their own recommendations: those of explain on their trials are ours
    peers = [name for name in here if name in settings.methods and name != DEFAULT]
    if DEFAULT not in here or not peers:
        return None
    best = min(peers, key=lambda name: scores.geometric(here[name]).value)
    most = WITH_OUTLIERS if scene == "outliers" else HONEST
    ratio = scores.ratio(here[DEFAULT], here[best])
    measured = {name: scores.geometric(values).value for name, values in here.items()}
    measured |= {"ratio": ratio.value, "lower": ratio.lower, "upper": ratio.upper}
    sentence = f"the default's score is at most {most:g} of the best peer's, {best}"
    return Claim(f"{title}: {sentence} (ours).", ratio.value <= most, measured), peers
