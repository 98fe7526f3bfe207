"""Comparison of contenders by scene: settings, cells, table, picture and claims.

Shared by the figures of the contest whose number is a score: ``development``, ``tables`` and
``final``. A scene is judged by the geometric mean of the scores, over its problems and all seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING

from stoic.experiments import pictures
from stoic.experiments.contest import scores
from stoic.experiments.contest.contenders import (
    DEFAULT,
    EXPLAINED,
    FAST,
    SLOW,
    Contender,
    contender,
    installed,
    report_skipped,
)
from stoic.experiments.contest.networks import TABLES
from stoic.experiments.contest.scenes import Ground, Scene, World
from stoic.experiments.contest.scores import BETWEEN, Scores, select
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table, crossed
from stoic.experiments.statistics import Interval, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What was asked of the default before it was written
HONEST = 1.1  # largest allowed ratio of the default's score to the best peer's, no outliers
WITH_OUTLIERS = 0.5  # and with them
_ACROSS = 36  # letters of a title that a panel is wide enough for


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    games:
        Name of a scene -> names of its problems.
    methods:
        Contenders: peers, ``default``, and recipes by their texts.
    few:
        Contenders that take seconds a trial; none if their libraries are not installed.
    few_trials:
        Their studies, the first of the ``trials``.
    """

    trials: int = 20
    rounds: int = 60
    seed: int = 0
    games: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    methods: tuple[str, ...] = (DEFAULT, "loo_gp_ucb", "gp_ucb", *installed(FAST))
    few: tuple[str, ...] = installed(SLOW)
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
    ground:
        Function from a scene, a problem and a seed to a ground truth.
    scenes:
        Scenes by name.
    label:
        Label of the scores.
    early:
        Build each problem once before the first run: a missing library is said now and not hours
        later.
    """
    titles = {key: scene.title for key, scene in scenes.items()}

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
        lambda settings, rows: plot(settings, rows, titles, label),
        lambda settings, rows: table(settings, rows, titles),
        lambda settings, rows: claims(settings, rows, scenes),
    )


def cells(settings: Settings) -> list[Cell]:
    """Every contender in every scene on every problem, the slow ones on fewer seeds.

    Contenders that need numbers skip the tables, which have words, too. A line on standard error
    names the peers that are left out.
    """
    report_skipped((*settings.methods, *settings.few))
    panels = [
        scene + BETWEEN + problem for scene, played in settings.games.items() for problem in played
    ]
    few = min(settings.few_trials, settings.trials)
    made = [
        *crossed(panels, settings.methods, seed=settings.seed, trials=settings.trials),
        *crossed(panels, settings.few, seed=settings.seed, trials=few),
    ]
    return [
        cell
        for cell in made
        if not contender(cell.method).numbers_only or cell.panel.split(BETWEEN)[1] not in TABLES
    ]


def table(settings: Settings, rows: Sequence[Outcome], titles: Mapping[str, str]) -> Table:
    """Table with a line for each scene and contender."""
    found, tried = scores.collect(rows), scores.collect(rows, scores.tried)
    lines = []
    for scene, best, names in _by_scene(settings, found):
        for name in names:
            here = found[scene, name]
            wrong = share([row.outlier for row in select(rows, name, (scene,))]).value
            lines.append(
                (
                    titles[scene],
                    name,
                    str(here.size),
                    str(scores.geometric(here)),
                    str(scores.median(here)),
                    _ratio(found, scene, name, best),
                    f"{scores.geometric(tried[scene, name]).value:.2g}",
                    "" if math.isnan(wrong) else f"{wrong:.0%}",
                )
            )
    caption = (
        "True score of what is recommended: geometric mean and median, with 95 % intervals; its "
        "ratio to the best peer's own answers, over the same seeds; the best that was tried; and "
        "the share of the studies that recommend a setting with no result but outliers."
    )
    headings = ("scene", "contender", "studies", "score", "median", "ratio", "tried", "outlier")
    return Table(caption, headings, tuple(lines))


def _ratio(found: Scores, scene: str, name: str, best: str | None) -> str:
    if best is None or name == best:
        return "best peer" if name == best else ""
    return str(scores.ratio(found[scene, name], found[scene, best]))


def claims(
    settings: Settings, rows: Sequence[Outcome], scenes: Mapping[str, Scene]
) -> tuple[Claim, ...]:
    """Our claims: near the best peer without outliers, at most half of its score with them."""
    found = scores.collect(rows)
    made = []
    for scene, best, names in _by_scene(settings, found):
        # Runs of a few methods have nobody to compare with
        if best is None or (scene, DEFAULT) not in found:
            continue
        most = HONEST if scenes[scene].honest else WITH_OUTLIERS
        against = scores.ratio(found[scene, DEFAULT], found[scene, best])
        measured = dict(zip(("ratio", "lower", "upper"), against, strict=True))
        for name in names:
            measured |= scores.geometric(found[scene, name]).named(name)
        sentence = f"the default's score is at most {most:g} of the best peer's, {best} (ours)."
        made.append(Claim(f"{scenes[scene].title}: {sentence}", against.value <= most, measured))
    return tuple(made)


def _by_scene(settings: Settings, found: Scores) -> list[tuple[str, str | None, list[str]]]:
    """List each scene with its best peer and its contenders, in the order of the settings."""
    names = scores.order((*settings.methods, *settings.few))
    return [
        (scene, scores.best_peer(found, scene), [n for n in names if (scene, n) in found])
        for scene in settings.games
    ]


def plot(
    settings: Settings, rows: Sequence[Outcome], titles: Mapping[str, str], label: str
) -> pictures.Picture:
    """Plot a panel per scene, a line per contender: its own answer filled, ``explain``'s hollow."""
    found = scores.collect(rows)
    names = (*settings.methods, *settings.few)
    across = min(4, len(settings.games))
    down = math.ceil(len(settings.games) / across)
    picture = pictures.blank(2.6 * across + 1.4, (0.24 * len(names) + 0.75) * down + 0.6)
    grid = picture.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(settings.games) :]:
        axes.set_axis_off()
    for scene, axes in zip(settings.games, grid.flat[: len(settings.games)], strict=True):
        panel(axes, found, scene, names)
        axes.set_title(fill(titles[scene], _ACROSS), fontsize=9)
    picture.supxlabel(label, fontsize=9)
    explain_marks(picture)
    return picture


def explain_marks(picture: pictures.Picture) -> None:
    """Say above a picture what its filled and hollow marks are."""
    picture.suptitle(
        "filled: the contender's own answer; hollow: what stoic's explain recommends on its trials",
        fontsize=8,
    )


def panel(axes: Axes, found: Scores, scene: str, names: Sequence[str]) -> None:
    """Draw geometric means with 95 % intervals, on a logarithmic axis."""
    for line, name in enumerate(names):
        for key, hollow in ((name, False), (name + EXPLAINED, True)):
            if (scene, key) in found:
                point(axes, line, contender(name), scores.geometric(found[scene, key]), hollow)
    axes.set_xscale("log")
    pictures.lines(axes, names)


def point(axes: Axes, line: int, one: Contender, number: Interval, hollow: bool) -> None:
    """Draw a number with its interval on the line of a contender."""
    look = {
        "fmt": "s" if one.peer else "o",
        "mfc": "white" if hollow else one.colour,
        "ms": 4 if hollow else 5 + 2 * (one.name == DEFAULT),
        "lw": 1.1,
        "capsize": 2,
    }
    pictures.points(axes, [line + 0.25 * hollow], [number], one.colour, look)
