"""Figures of the contest whose problems have several outputs: ``constraints``, ``objectives``.

Settings have ``trials``, ``rounds``, ``seed``, ``problems`` and ``methods``; rows have a ``score``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from stoic.data import Array
from stoic.experiments import pictures
from stoic.experiments.contest import comparison, scores
from stoic.experiments.contest.scores import BETWEEN, HONEST, WITH_OUTLIERS, Found
from stoic.experiments.figure import Cell, Claim, Table, crossed, tabulate
from stoic.experiments.trials import Trials

_RATE = 0.05  # of outliers, in each output
_SIZES = 1.0, 10.0  # of outliers, in units of the output
_NOISE = 0.05  # standard deviation, in units of each output
Column = tuple[str, Callable[[Trials[Any]], str]]


class Problem(Protocol):
    """Function of the unit cube with several outputs.

    Attributes
    ----------
    dim, units:
        d; and unit of each output, (k,).
    """

    @property
    def dim(self) -> int: ...
    @property
    def units(self) -> Array: ...
    @property
    def formula(self) -> Callable[[Array], Sequence[float]]:
        """From a point (d,) to the outputs, (k,)."""


def cells(settings: Any, scenes: Mapping[str, str]) -> list[Cell]:
    """Every contender on every problem in every scene."""
    panels = [scene + BETWEEN + name for scene in scenes for name in settings.problems]
    return crossed(panels, settings.methods, settings.seed, settings.trials)


def observing(problem: Problem, cell: Cell, rounds: int) -> Callable[[optuna.Trial], Array]:
    """Observe trials with noise or outliers that are the same for every contender."""
    # crc32, since hash() of a text differs between processes
    rng = np.random.default_rng([zlib.crc32(cell.panel.encode()), cell.seed])
    scene, shape = cell.panel.split(BETWEEN)[0], (rounds, len(problem.units))
    if scene == "noise":
        added = _NOISE * problem.units * rng.standard_normal(shape)
    else:  # sizes ~ +- U(1, 10), none in the clean scene
        size = rng.uniform(*_SIZES, shape) * rng.choice([-1.0, 1.0], shape)
        hit = rng.random(shape) < _RATE * (scene == "outliers")
        added = np.where(hit, size * problem.units, 0.0)

    def observe(trial: optuna.Trial) -> Array:
        u = [trial.suggest_float(f"x{k}", 0.0, 1.0) for k in range(problem.dim)]
        return np.asarray(np.array(problem.formula(np.array(u))) + added[trial.number])

    return observe


def truths(problem: Problem, trials: Sequence[FrozenTrial]) -> Array:
    """Noiseless outputs of trials, (n, k)."""
    return np.array([problem.formula(np.array(list(t.params.values()))) for t in trials])


def table(
    settings: Any,
    scenes: Mapping[str, str],
    found: Found,
    caption: str,
    columns: Sequence[Column],
) -> Table:
    """Table with a line for each scene and contender: its scores, and then other columns."""

    def of(k: int) -> Callable[[Trials[Any]], str]:
        return lambda studies: f"{scores.geometric(studies.by_panel('score')[[k]]).value:.2g}"

    return tabulate(
        caption,
        ("scene", "contender"),
        (
            ("studies", lambda studies: str(len(studies))),
            ("score", lambda studies: str(scores.score(studies))),
            *((name, of(k)) for k, name in enumerate(settings.problems)),
            *columns,
        ),
        scores.lines(found, scenes, settings.methods),
    )


def plot(
    settings: Any,
    scenes: Mapping[str, str],
    found: Found,
    size: tuple[float, float],
    numbers: Mapping[str, Callable[[Trials[Any]], Any]],
) -> tuple[pictures.Picture, pictures.Grid]:
    """Plot a column of panels per scene, a line of them per number, the first one logarithmic."""
    picture = pictures.blank(*size)
    grid = picture.subplots(len(numbers), len(scenes), sharex="row", sharey=True, squeeze=False)
    for row, ((label, number), line) in enumerate(zip(numbers.items(), grid, strict=True)):
        for (scene, title), axes in zip(scenes.items(), line, strict=True):
            here = {name: number(of) for (each, name), of in found.items() if each == scene}
            comparison.panel(axes, here, settings.methods, "" if row else title, log=not row)
            axes.set_xlabel(label, fontsize=8)
    comparison.explain_marks(picture)
    return picture, grid


def claims(
    scenes: Mapping[str, str], found: Found, others: Callable[[str, str], Claim]
) -> tuple[Claim, ...]:
    """Claims on the default's score in each scene, each followed by another one."""
    judged = []
    for scene, title in scenes.items():
        most = WITH_OUTLIERS if scene == "outliers" else HONEST
        here = {name: scores.score(of).value for (each, name), of in found.items() if each == scene}
        near = scores.near_the_best_peer(found, scene, title, most, here)
        judged += [*near, others(scene, title)] if near else []
    return tuple(judged)
