"""Threat matrix: the relative regret of each recipe under every threat, and under none.

A cell is regret relative to the row's best. On each function, each of the trials is divided by the
smallest of all methods' median regrets there, after as many rounds; the median is over the trials
of all functions. So 1 is the best that any recipe of this library does, on every function at once,
and 2 is twice the regret of that. The interval holds the median with 95 %: a bootstrap over the
trials of each function.

Methods that are slow play fewer rounds against the same adversary, which spends its corruptions
early, and are compared with the best after so many rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.contender import BLUE
from stoic.experiments.figure import Cell, Claim, Figure, Table, every, tabulate
from stoic.experiments.matrix.columns import COLUMNS
from stoic.experiments.matrix.worlds import GAMES, THREATS
from stoic.experiments.statistics import Interval, bootstrap
from stoic.simulate import run as simulate

_BETWEEN = " / "


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the runs.

    Attributes
    ----------
    rounds, short:
        T, which also decides the number of outliers; and rounds of the slow methods.
    games, threats, methods:
        Functions, rows and columns, by name.
    """

    trials: int = 20
    rounds: int = 300
    short: int = 60
    seed: int = 0
    games: tuple[str, ...] = tuple(GAMES)
    threats: tuple[str, ...] = tuple(THREATS)
    methods: tuple[str, ...] = tuple(COLUMNS)


class Row(NamedTuple):
    """State after some round of one run: a row of the CSV file.

    Attributes
    ----------
    panel, round:
        The threat and the function; and the round number, from 1.
    cumulative_regret:
        Regret in units of the deviation of f, as the row of the matrix defines it.
    """

    panel: str
    method: str
    seed: int
    round: int
    cumulative_regret: float


def _panels(threats: Iterable[str], games: Sequence[str]) -> list[str]:
    return [threat + _BETWEEN + game for threat in threats for game in games]


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method under one threat on one function."""
    threat, game = cell.panel.split(_BETWEEN)
    column = COLUMNS[cell.method]
    world = THREATS[threat].world(game, cell.seed, settings.rounds)
    player = column.build(world.game, settings.rounds, cell.seed)
    rows, total, played = [], 0.0, 0
    for mark in _marks(settings, cell.method):
        trace = simulate(player, world.environment, mark - played, batch=column.batch)
        total += float((world.best - trace.value).sum())
        played = mark
        rows.append(Row(*cell, mark, total))
    return rows


def _marks(settings: Settings, method: str) -> list[int]:
    short = min(settings.short, settings.rounds)
    return [short] if COLUMNS[method].slow else sorted({short, settings.rounds})


class Entry(NamedTuple):
    """Cell of the matrix: median regret relative to the row's best, and the rounds played."""

    number: Interval
    rounds: int

    @property
    def median(self) -> float:
        """Median over all trials."""
        return self.number.value

    def __str__(self) -> str:
        return "{} [{}, {}]".format(*map(_short, self.number))


def _short(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}"


Matrix = dict[tuple[str, str], Entry]


def matrix(settings: Settings, rows: Sequence[Row], until: int | None = None) -> Matrix:
    """Entries by threat and method, after ``until`` rounds of all methods if that is given."""
    regret: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        regret.setdefault((row.panel, row.method, row.round), []).append(row.cumulative_regret)
    best: dict[tuple[str, int], float] = {}
    for (panel, _, mark), values in regret.items():
        median = float(np.median(values))
        best[panel, mark] = min(best.get((panel, mark), math.inf), median)
    entries = {}
    for threat, method in product(settings.threats, settings.methods):
        mark = until or _marks(settings, method)[-1]
        panels = _panels([threat], settings.games)
        ratios = [np.array(regret[panel, method, mark]) / best[panel, mark] for panel in panels]
        # One trial has an interval without length, where nan would be printed
        number = bootstrap(np.array(ratios), np.median, fewest=1)
        entries[threat, method] = Entry(number, mark)
    return entries


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot a heat map of threats by methods; a frame where a method is made for the row."""
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    entries, threats, methods = matrix(settings, rows), settings.threats, settings.methods
    values = np.array([[entries[threat, m].median for m in methods] for threat in threats])
    picture = pictures.blank(0.58 * len(methods) + 2.6, 0.46 * len(threats) + 2.8)
    axes = picture.subplots()
    image = axes.imshow(values, norm=LogNorm(1.0, 100.0), cmap="YlOrRd", aspect="auto")
    for (i, threat), (j, method) in product(enumerate(threats), enumerate(methods)):
        shade = "white" if values[i, j] > 20.0 else "black"  # on a dark place
        text = axes.text(j, i, _short(float(values[i, j])), color=shade, fontsize=8)
        text.set(ha="center", va="center")
        if threat in COLUMNS[method].made_for:
            corner = (j - 0.46, i - 0.44)
            axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, lw=1.4, ec=BLUE))
    names = [name + (" *" if COLUMNS[name].slow else "") for name in methods]
    axes.set_xticks(range(len(names)), names, rotation=50, ha="right", fontsize=8)
    axes.set_yticks(range(len(threats)), threats, fontsize=9)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    picture.colorbar(image, ax=axes, label="regret / best of the row (median)", shrink=0.9)
    picture.suptitle(
        f"T = {settings.rounds}, {settings.trials} trials on each of {', '.join(settings.games)}; "
        f"frame: what it is made for; *: after {min(settings.short, settings.rounds)} rounds",
        fontsize=9,
    )
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """Table of the same numbers, a line for each method."""
    entries, first = matrix(settings, rows), settings.threats[0]
    return tabulate(
        "Regret relative to the row's best: median over all trials and functions, with a 95 % "
        "interval.",
        ("method",),
        (
            ("rounds", lambda method: str(entries[first, method].rounds)),
            *(
                (THREATS[threat].short, lambda method, row=threat: str(entries[row, method]))
                for threat in settings.threats
            ),
        ),
        [((method,), method) for method in settings.methods],
    )


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims that a method pays off in its rows; its price elsewhere is in the numbers."""
    entries = matrix(settings, rows)
    early = matrix(settings, rows, min(settings.short, settings.rounds))
    found = [
        _column(settings, entries, early if COLUMNS[method].slow else entries, method)
        for method in settings.methods
    ]
    return tuple(found + _balanced(settings, entries))


def _column(settings: Settings, entries: Matrix, others: Matrix, method: str) -> Claim:
    """Claim of no more regret than GP-UCB in each row it is made for; with the whole column.

    ``others`` are the entries after as many rounds.
    """
    clean = settings.threats[0]
    measured: dict[str, float] = {}
    for threat in settings.threats:
        measured |= entries[threat, method].number.named(threat)
    measured["rounds"] = float(entries[clean, method].rounds)
    made_for = [threat for threat in COLUMNS[method].made_for if threat in settings.threats]
    there = "gp_ucb" in settings.methods
    reference = {threat: others[threat, "gp_ucb"].median for threat in made_for if there}
    measured |= {f"gp_ucb, {threat}": median for threat, median in reference.items()}
    # The reference, and methods that are made for no row
    if method == "gp_ucb" or not reference:
        sentence = f"{method}: less than twice the regret of the best, {clean}."
        return Claim(sentence, entries[clean, method].median < 2.0, measured)
    return Claim(
        f"{method}: in every row that it is made for ({'; '.join(made_for)}) no more regret, "
        "relative to the row's best, than gp_ucb after as many rounds.",
        all(entries[threat, method].median <= median for threat, median in reference.items()),
        measured,
    )


_BASES = ("a2_rcgp_ucb", "tgp_ucb", "gp_ucb", "rgp_ucb", "ec_gp_ucb")  # of any_threat


def _balanced(settings: Settings, entries: Matrix) -> list[Claim]:
    """Claims that balancing is worth its cost."""
    if not {*_BASES, "any_threat"} <= set(settings.methods):
        return []
    threats = settings.threats
    worsts = {m: max(entries[threat, m].median for threat in threats) for m in settings.methods}
    ratios = {
        threat: entries[threat, "any_threat"].median
        / min(entries[threat, base].median for base in _BASES)
        for threat in threats
    }
    better = "any_threat: its worst row is better than the worst row of each of its five learners."
    near = "any_threat: in every row at most five times the regret of the best of its five "
    near += "learners, which is not known in advance."
    return [
        Claim(better, worsts["any_threat"] < min(worsts[base] for base in _BASES), worsts),
        Claim(near, max(ratios.values()) <= float(len(_BASES)), ratios),
    ]


def markdown(summary: Mapping[str, Any]) -> str:
    """Format the table for a page from the content of the JSON file: medians, a line a method."""
    settings = summary["settings"]
    columns: dict[str, Mapping[str, float]] = {}
    for claim in summary["claims"]:
        name = claim["claim"].split(":")[0]
        # The first claim of a method has its whole column
        columns.setdefault(name, claim["measured"])
    threats = settings["threats"]
    lines = [
        "| recipe | " + " | ".join(THREATS[threat].short for threat in threats) + " |",
        "|---|" + "--:|" * len(threats),
    ]
    for method in settings["methods"]:
        measured, column = columns[method], COLUMNS[method]
        label = method if method == "random search" else f"`{method}`"
        label += " \\*" if column.slow else ""
        numbers = [
            f"**{_short(measured[threat])}**"
            if threat in column.made_for and method != "any_threat"
            else _short(measured[threat])
            for threat in threats
        ]
        lines.append(f"| {label} | " + " | ".join(numbers) + " |")
    return "\n".join(lines) + "\n"


FIGURE = Figure(
    "matrix",
    "What each recipe pays for every lie, and where there is none",
    Settings(), every(lambda settings: _panels(settings.threats, settings.games)), run, plot,
    table, claims,
)  # fmt: skip
