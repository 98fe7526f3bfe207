"""Comparison of contenders by scene: settings, cells, table, picture and claims.

Shared by the figures of the contest whose number is a score: ``development``, ``tables``,
``final`` and ``held-out``. A scene is judged by the geometric mean of the scores, over its problems
and all seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.contest import contenders, scores
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED, Contender, contender, installed
from stoic.experiments.contest.networks import TABLES
from stoic.experiments.contest.scenes import Ground, Scene, World
from stoic.experiments.contest.scores import BETWEEN, HONEST, WITH_OUTLIERS
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table, crossed, tabulate
from stoic.experiments.statistics import Interval, bootstrap, share
from stoic.experiments.trials import Trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACROSS = 36  # letters of a title that a panel is wide enough for
_SHORT = 50.0  # ratio of the ends of an axis on which powers of ten are two at most


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    games:
        Name of a scene -> names of its problems.
    methods:
        Contenders: peers, ``default``, and recipes by their texts.
    few, few_trials:
        Contenders that take seconds a trial, none if their libraries are not installed; and their
        studies, the first of the ``trials``.
    """

    trials: int = 20
    rounds: int = 60
    seed: int = 0
    games: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    methods: tuple[str, ...] = (DEFAULT, "loo_gp_ucb", "gp_ucb", *installed(contenders.FAST))
    few: tuple[str, ...] = installed(contenders.SLOW)
    few_trials: int = 2


def figure(
    name: str,
    title: str,
    settings: Settings,
    ground: Callable[[str, str, int], Ground],
    scenes: Mapping[str, Scene],
    label: str,
    early: bool = False,
) -> Figure[Settings, Outcome]:
    """Figure of contenders by scene.

    Parameters
    ----------
    name, title, settings:
        Of the figure.
    ground, scenes:
        Function from a scene, a problem and a seed to a ground truth; and scenes by name.
    label:
        Label of the scores.
    early:
        Build each problem once before the first run: a missing library is said now and not hours
        later.
    """

    def prepared(settings: Settings) -> list[Cell]:
        for scene, played in settings.games.items() if early else ():
            for problem in played:
                ground(scene, problem, settings.seed)
        return cells(settings)

    def run(settings: Settings, cell: Cell) -> list[Outcome]:
        scene, problem = cell.panel.split(BETWEEN)
        world = World.of(ground(scene, problem, cell.seed), scenes[scene], cell.seed)
        return play(world, cell, settings.rounds)

    return Figure(
        name,
        title,
        settings,
        prepared,
        run,
        lambda settings, rows: plot(settings, rows, scenes, label),
        lambda settings, rows: table(settings, rows, scenes),
        lambda settings, rows: claims(settings, rows, scenes),
    )


def cells(settings: Settings) -> list[Cell]:
    """Every contender in every scene on every problem, the slow ones on fewer seeds.

    Contenders that need numbers skip the tables, which have words, too. A line on standard error
    names the peers that are left out.
    """
    contenders.report_skipped((*settings.methods, *settings.few))
    games = settings.games.items()
    panels = [scene + BETWEEN + problem for scene, played in games for problem in played]

    def trials(panel: str, name: str) -> int:
        if contender(name).numbers_only and panel.split(BETWEEN)[1] in TABLES:
            return 0
        few = name in settings.few
        return min(settings.few_trials, settings.trials) if few else settings.trials

    return [
        *crossed(panels, settings.methods, settings.seed, trials),
        *crossed(panels, settings.few, settings.seed, trials),
    ]


def table(settings: Settings, rows: Sequence[Outcome], scenes: Mapping[str, Scene]) -> Table:
    """Table with a line for each scene and contender."""
    found = scores.by_scene(rows)
    titles = {scene: scenes[scene].title for scene in settings.games}

    def ratio(studies: Trials[Outcome]) -> str:
        scene, name = studies.ends[0].panel.split(BETWEEN)[0], studies.ends[0].method
        best = scores.best_peer(found, scene)
        if best is None or name == best:
            return "best peer" if name == best else ""
        return str(scores.ratio(*(of.by_panel("score") for of in (studies, found[scene, best]))))

    def how_often(studies: Trials[Outcome], happened: str) -> str:
        often = share(studies.final(happened)).value
        return "" if math.isnan(often) else f"{often:.0%}"

    return tabulate(
        "True score of what is recommended: geometric mean and median, with 95 % intervals; its "
        "ratio to the best peer's own answers, over the same seeds; the best that was tried; and "
        "the shares of the studies that recommend a setting with no result but outliers, and whose "
        "95 % interval covers the truth.",
        ("scene", "contender"),
        (
            ("studies", lambda studies: str(len(studies))),
            ("score", lambda studies: str(scores.score(studies))),
            ("median", lambda studies: str(bootstrap(studies.by_panel("score"), np.median))),
            ("ratio", ratio),
            ("tried", lambda studies: f"{scores.score(studies, 'tried').value:.2g}"),
            ("outlier", lambda studies: how_often(studies, "outlier")),
            ("covered", lambda studies: how_often(studies, "covered")),
        ),
        scores.lines(found, titles, (*settings.methods, *settings.few)),
    )


def claims(
    settings: Settings, rows: Sequence[Outcome], scenes: Mapping[str, Scene]
) -> tuple[Claim, ...]:
    """Our claims: near the best peer without outliers, at most half of its score with them."""
    found, judged = scores.by_scene(rows), []
    for scene in settings.games:
        title, most = scenes[scene].title, HONEST if scenes[scene].honest else WITH_OUTLIERS
        measured: dict[str, float] = {}
        for name in scores.order((*settings.methods, *settings.few)):
            if (scene, name) in found:
                measured |= scores.score(found[scene, name]).named(name)
        judged += scores.near_the_best_peer(found, scene, title, most, measured)
    return tuple(judged)


def plot(
    settings: Settings, rows: Sequence[Outcome], scenes: Mapping[str, Scene], label: str
) -> pictures.Picture:
    """Plot a panel per scene, a line per contender: its own answer filled, ``explain``'s hollow."""
    found = scores.by_scene(rows)
    # One that cannot play any of these has no line
    names = [name for name in (*settings.methods, *settings.few) if any(name in k for k in found)]
    # Four in a line, or three where fewer places stay empty
    across = min(len(settings.games), min((4, 3), key=lambda most: -len(settings.games) % most))
    down = math.ceil(len(settings.games) / across)
    picture = pictures.blank(2.6 * across + 1.4, (0.24 * len(names) + 0.75) * down + 0.6)
    grid = picture.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(settings.games) :]:
        axes.set_axis_off()
    for axes in grid.flat[: len(settings.games)][-across:]:
        axes.tick_params(labelbottom=True)  # also above a place without a panel
    for scene, axes in zip(settings.games, grid.flat, strict=False):
        numbers = {name: scores.score(of) for (each, name), of in found.items() if each == scene}
        panel(axes, numbers, names, fill(scenes[scene].title, _ACROSS))
    lower, upper = grid[0, 0].get_xlim()
    if upper < _SHORT * lower:
        pictures.plain_numbers(grid[0, 0])  # of all, which share the axis
    picture.supxlabel(label, fontsize=9)
    explain_marks(picture)
    return picture


def explain_marks(picture: pictures.Picture) -> None:
    """Say above a picture what its filled and hollow marks are."""
    picture.suptitle(
        "filled: the contender's own answer; hollow: what stoic's explain recommends on its trials",
        fontsize=8,
    )


def panel(
    axes: Axes,
    numbers: Mapping[str, Interval],
    names: Sequence[str],
    title: str = "",
    log: bool = True,
) -> None:
    """Draw a line per contender: its own number filled, that of ``explain`` hollow.

    Parameters
    ----------
    axes, names, title:
        Axes to draw on, contenders, and title of the panel.
    numbers:
        Name of a contender, or of ``explain`` on its trials -> number.
    log:
        True for a logarithmic axis.
    """
    for line, name in enumerate(names):
        for key, hollow in ((name, False), (name + EXPLAINED, True)):
            if key in numbers:
                one = contender(name)
                heights, shown = [line + 0.25 * hollow], [numbers[key]]
                pictures.points(axes, heights, shown, one.colour, _look(one, hollow))
    if log:
        axes.set_xscale("log")
    axes.set_title(title, fontsize=9)
    pictures.lines(axes, names)


def _look(one: Contender, hollow: bool) -> dict[str, Any]:
    return {
        "fmt": "s" if one.peer else "o",
        "mfc": "white" if hollow else one.colour,
        "ms": 4 if hollow else 5 + 2 * (one.name == DEFAULT),
        "lw": 1.1,
        "capsize": 2,
    }
