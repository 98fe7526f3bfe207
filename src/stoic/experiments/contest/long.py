"""Not in a paper: thousands of trials, without outliers and with one result in ten too good.

Five problems with 6 to 60 parameters: Hartmann's, Ackley's and Levy's functions, the constants of a
lunar lander's controller, and the way of a rover. Results have no noise. A wrong one is too good by
half of the range to three ranges. The loss is that of the best setting tried, which wrong results
cannot improve, and at the end that of the recommended one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import optuna

from stoic.experiments import pictures
from stoic.experiments.contest import contenders, scores
from stoic.experiments.contest.contenders import DEFAULT, contender
from stoic.experiments.contest.control import CONTROL
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.scenes import ORDINARY, SCENES, World, ordinary
from stoic.experiments.contest.scores import BETWEEN, FLOOR
from stoic.experiments.contest.studies import quiet, value_of
from stoic.experiments.figure import Cell, Claim, Figure, Table, every, tabulate
from stoic.experiments.trials import Groups, Trials, grouped, marks
from stoic.integrations.optuna import explain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GROUNDS = FUNCTIONS | CONTROL
_SCENES = {"clean": SCENES["clean"], "wrong": ordinary(0.1, *ORDINARY, noise=0.0)}
_TITLES = {"clean": "no wrong results", "wrong": "10 % wrong results"}
_NAMES = {
    "hart6": "Hartmann, 6", "lander12": "lunar lander, 12", "ackley10": "Ackley, 10",
    "levy20": "Levy, 20", "rover60": "rover, 60",
}  # fmt: skip
_MOST = 3  # of five problems, on which the default is to be better than every peer


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies."""

    trials: int = 5
    rounds: int = 5000
    seed: int = 0
    problems: tuple[str, ...] = tuple(_NAMES)
    methods: tuple[str, ...] = (DEFAULT, *contenders.installed(("TPE", "CMA-ES")))


class Row(NamedTuple):
    """State of a study after some trials: a row of the CSV file.

    Attributes
    ----------
    round:
        Number of trials.
    tried:
        Least true score of the settings tried; the median of the function has 1, its maximum 0.
    recommended:
        Score of the recommended setting, a peer's own or the default's; None before the end.
    """

    panel: str
    method: str
    seed: int
    round: int
    tried: float
    recommended: float | None


def _panels(settings: Settings) -> list[str]:
    return [scene + BETWEEN + name for scene in _SCENES for name in settings.problems]


def cells(settings: Settings) -> list[Cell]:
    """Every contender on every problem in both scenes."""
    for name in settings.problems:  # a missing simulator is said now and not hours later
        ground = _GROUNDS[name]
        ground.truth(ground.at(np.full(ground.dim, 0.5)))
    return every(_panels)(settings)


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one study; a row for each of a few dozen numbers of trials."""
    scene, name = cell.panel.split(BETWEEN)
    ground, method = _GROUNDS[name], contender(cell.method)
    world = World.of(ground, _SCENES[scene], cell.seed, settings.rounds)
    kept, rows, tried = set(marks(settings.rounds, 50)), [], np.inf
    with quiet():
        sampler = method.sampler(ground.space, cell.seed, settings.rounds)
        study = optuna.create_study(sampler=sampler, direction="maximize")
        for t in range(settings.rounds):
            trial = study.ask(ground.space)
            tried = min(tried, ground.score(trial.params))
            study.tell(trial, world.observe(trial.params, t))
            if t + 1 in kept:
                rows.append(Row(*cell, t + 1, tried, None))
        played = study.get_trials(deepcopy=False)
        best = explain(study).recommended if not method.peer else max(played, key=value_of)
        best = best or played[0]
    return [*rows[:-1], rows[-1]._replace(recommended=ground.score(best.params))]


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """Table with a line for each problem, scene and contender."""
    return tabulate(
        f"Loss after {settings.rounds:,} trials, the median of the function being 1 and its "
        "maximum 0: geometric means with 95 % intervals.",
        ("results", "problem", "contender"),
        (
            ("studies", lambda studies: str(len(studies))),
            ("best tried", lambda studies: str(scores.score(studies, "tried"))),
            ("recommended", lambda studies: str(scores.score(studies, "recommended"))),
        ),
        {
            (_TITLES[scene], _NAMES[name], method): studies
            for (panel, method), studies in grouped(rows).items()
            for scene, name in [panel.split(BETWEEN)]
        },
    )


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claim that the default is better than every peer on three of five problems."""
    found: Groups[Row] = grouped(rows)
    made = []
    for scene in _SCENES:
        for column, what in (("tried", "best setting tried"), ("recommended", "recommended one")):
            measured: dict[str, float] = {}
            better = 0
            for name in settings.problems:
                panel = scene + BETWEEN + name
                losses = {
                    method: scores.score(found[panel, method], column).value
                    for method in settings.methods
                }
                peers = [loss for method, loss in losses.items() if method != DEFAULT]
                better += losses[DEFAULT] < min(peers, default=np.inf)
                measured |= {f"{name}, {method}": loss for method, loss in losses.items()}
            sentence = (
                f"{_TITLES[scene]}: after {settings.rounds:,} trials the loss of the default's "
                f"{what} is below every peer's on {_MOST} of {len(_NAMES)} problems (ours)."
            )
            made.append(Claim(sentence, better >= _MOST, {"problems": float(better)} | measured))
    return tuple(made)


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot a line of panels per problem, a curve per contender: the loss of the best tried."""
    found, problems = grouped(rows), settings.problems
    picture = pictures.blank(6.4, 2.1 * len(problems) + 0.7)
    grid = picture.subplots(len(problems), 2, sharex=True, sharey="row", squeeze=False)
    for panel, axes in zip(_panels(settings), grid.T.flat, strict=True):
        for method in settings.methods:
            if (panel, method) in found:
                _curve(axes, found[panel, method], method)
        scene, name = panel.split(BETWEEN)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{_NAMES[name]}: {_TITLES[scene]}", fontsize=10)
        axes.grid(alpha=0.3, lw=0.5)
    for axes in grid[:, 0]:
        lower, upper = axes.get_ylim()
        if upper < 100.0 * lower:
            pictures.plain_numbers(axes, vertical=True)
    for axes in grid[-1]:
        pictures.plain_numbers(axes)
    picture.supxlabel("trials", fontsize=10)
    picture.supylabel("loss of the best setting tried", fontsize=10)
    pictures.legend(picture, grid.flat, "outside upper center", ncols=len(settings.methods))
    return picture


def _curve(axes: Axes, studies: Trials[Row], method: str) -> None:
    """Draw the geometric mean of the studies, and each of them."""
    losses, colour = np.maximum(studies.curves("tried"), FLOOR), contender(method).colour
    axes.plot(studies.rounds, np.exp(np.log(losses).mean(axis=0)), c=colour, label=method)
    if len(losses) > 1:
        axes.plot(studies.rounds, losses.T, c=colour, lw=0.6, alpha=0.4)


FIGURE = Figure(
    "contest/long",
    "Thousands of trials, with wrong results and without",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
