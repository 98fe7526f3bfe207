"""Not in a paper: the report that is run once, after the default is frozen.

No problem here was used while the default was developed: six other tables of trained networks;
COCO's bbob-noisy in two and five dimensions, where a noise-free twin exists; and Hartmann's
function as BoTorch corrupts it. 60 trials each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stoic.experiments.contest import comparison, networks, noisy
from stoic.experiments.contest.comparison import Settings
from stoic.experiments.contest.networks import trained
from stoic.experiments.contest.scenes import Ground, Scene, World
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table

if TYPE_CHECKING:
    import matplotlib.figure

_DIMENSIONS = (2, 5)
_BBOB = {
    "gauss": Scene("gauss", "bbob-noisy, Gaussian noise", honest=True),
    "uniform": Scene("uniform", "bbob-noisy, uniform noise", honest=True),
    "cauchy": Scene("cauchy", "bbob-noisy, seldom Cauchy noise", marked=False),
}
_BOTORCH = {
    "constant": Scene("constant", "BoTorch's Hartmann 6, 10 % are 100", marked=False),
    "elsewhere": Scene("elsewhere", "BoTorch's Hartmann 6, 10 % of a random point", marked=False),
}
SCENES: dict[str, Scene] = {**networks.SCENES, **_BBOB, **_BOTORCH}
TITLES = {key: scene.title for key, scene in SCENES.items()}
HONEST = {key: scene.honest for key, scene in SCENES.items()}
LABEL = (
    "tables: fraction of all configurations truly better than the recommended one; others: true "
    "score of what is recommended (0: the optimum, 1: the median of random settings)"
)
GAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(networks.SCENES, networks.FINAL),
    **{
        kind: tuple(f"f{f} d{d}" for f in noisy.functions(kind) for d in _DIMENSIONS)
        for kind in _BBOB
    },
    **dict.fromkeys(_BOTORCH, ("hart6",)),
}


def ground(scene: str, problem: str, seed: int) -> Ground:
    """Build the ground truth of a panel; its library is loaded now."""
    if scene in _BBOB:
        function, dim = problem.split()
        return noisy.bbob_noisy(int(function[1:]), int(dim[1:]), seed)
    if scene in _BOTORCH:
        return noisy.corrupted_hartmann6(scene, seed)
    return trained(problem)


def cells(settings: Settings) -> list[Cell]:
    """Every contender in every scene; a library that is missing is said now and not hours later."""
    for scene, played in settings.games.items():
        for problem in played:
            ground(scene, problem, settings.seed)
    return comparison.cells(settings)


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one contender in one scene on one problem."""
    scene, problem = cell.panel.split(BETWEEN)
    world = World.of(ground(scene, problem, cell.seed), SCENES[scene], cell.seed)
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
    "contest/final",
    "The default against other optimizers on scenes that it was not made on",
    Settings(games=GAMES),
    cells,
    run,
    plot,
    table,
    claims,
)
