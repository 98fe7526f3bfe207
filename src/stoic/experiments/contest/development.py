"""Not in a paper: the default against widely used optimizers, on ordinary scenes.

Six smooth functions of two to six dimensions, 60 trials. In scenes with outliers one result in ten
is one. The number is the true value of the final recommendation, as a user would judge it: 0 is the
optimum and 1 the median of random settings. Problems, seeds, noise and outliers are the same for
all contenders. The default is chosen on these scenes, so they are no test set: ``contest/final``
is, and is run once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stoic.experiments.contest import comparison
from stoic.experiments.contest.comparison import Settings, cells
from stoic.experiments.contest.contenders import DEFAULT, installed
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.scenes import SCENES, World
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table

if TYPE_CHECKING:
    import matplotlib.figure

TITLES = {key: scene.title for key, scene in SCENES.items()}
HONEST = {key: scene.honest for key, scene in SCENES.items()}
LABEL = "true score of what is recommended (0: the optimum, 1: the median of random settings)"


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one contender in one scene on one function."""
    scene, problem = cell.panel.split(BETWEEN)
    world = World.of(FUNCTIONS[problem], SCENES[scene], cell.seed)
    return play(world, cell, settings.rounds)


def plot(settings: Settings, rows: Sequence[Outcome]) -> matplotlib.figure.Figure:
    """Plot one panel per scene."""
    return comparison.plot(settings, rows, TITLES, LABEL)


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each scene and contender."""
    return comparison.table(settings, rows, TITLES)


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """One claim for each scene."""
    return comparison.claims(settings, rows, TITLES, HONEST)


PROBLEMS = ("branin", "camel", "hart3", "levy4", "bowl5", "hart6")
FIGURE = Figure(
    "contest/development",
    "The default against other optimizers, with outliers and without",
    Settings(games=dict.fromkeys(SCENES, PROBLEMS)),
    cells,
    run,
    plot,
    table,
    claims,
)
# The same in minutes: three functions, 30 trials, two seeds.
QUICK = Figure(
    "contest/quick",
    "The contest in minutes: three functions, 30 trials, two seeds",
    Settings(
        trials=2,
        rounds=30,
        games=dict.fromkeys(SCENES, ("branin", "hart3", "bowl5")),
        methods=(DEFAULT, *installed(("GPSampler", "TPE", "random"))),
        few=(),
    ),
    cells,
    run,
    plot,
    table,
    claims,
)
