"""Not in a paper: problems without outliers on which a robust method may fail.

A rare good region, an easy quadratic, many categories without order, crashes in half of the domain
and crashes anywhere in half of all runs, and 20 to 40 dimensions. There are no outliers. Each case
has a number of its own: the share of studies that find the needle, the recommended value, the
number of categories tried, the number of crashes, the best score tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.data import Array
from stoic.experiments import pictures
from stoic.experiments.contest import comparison, scores
from stoic.experiments.contest.cases import CASES
from stoic.experiments.contest.comparison import HONEST
from stoic.experiments.contest.contenders import (
    DEFAULT,
    EXPLAINED,
    FAST,
    SLOW,
    contender,
    installed,
    report_skipped,
)
from stoic.experiments.contest.ordinary import Measure
from stoic.experiments.contest.scenes import World
from stoic.experiments.contest.scores import BETWEEN, select
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table, crossed
from stoic.experiments.statistics import Interval, bootstrap, share

FOUND = 0.5  # score below which the needle is found: half of its height


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    trials:
        Number of independent studies of each case, but for slow ones; seeds start at ``seed``.
    rounds:
        Largest number of results of a study; cases have from 40 to 120.
    cases:
        Names of the cases.
    methods:
        Contenders: peers, ``default``, and recipes by their texts.
    """

    trials: int = 20
    rounds: int = 120
    seed: int = 0
    cases: tuple[str, ...] = tuple(CASES)
    methods: tuple[str, ...] = (DEFAULT, "loo_gp_ucb", "gp_ucb", *installed(FAST))


class Number(NamedTuple):
    """Statistic that judges a case.

    Attributes
    ----------
    label:
        As on the axis of the picture.
    of:
        Function from the studies of a contender to the number.
    log:
        True if its axis is logarithmic.
    """

    label: str
    of: Measure
    log: bool = False


def _array(rows: Sequence[Outcome], measure: Callable[[Outcome], float]) -> Array:
    return np.array([[measure(row) for row in rows]], dtype=float)


def _found(rows: Sequence[Outcome]) -> Interval:
    return share([row.score < FOUND for row in rows])


def _value(rows: Sequence[Outcome]) -> Interval:
    return scores.geometric(_array(rows, scores.score))


def _tried(rows: Sequence[Outcome]) -> Interval:
    return scores.geometric(_array(rows, scores.tried))


def _settings(rows: Sequence[Outcome]) -> Interval:
    return bootstrap(_array(rows, lambda row: row.settings), np.mean)


def _failed(rows: Sequence[Outcome]) -> Interval:
    return bootstrap(_array(rows, lambda row: row.failed), np.mean)


def _rejected(rows: Sequence[Outcome]) -> Interval:
    return bootstrap(_array(rows, lambda row: row.rejected or 0), np.median)


NUMBERS: dict[str, Number] = {
    "needle": Number("share of studies that recommend it", _found),
    "quadratic": Number("value recommended (best: 0)", _value, log=True),
    "30": Number("categories tried", _settings),
    "100": Number("categories tried", _settings),
    "region": Number("runs that crashed", _failed),
    "random": Number("value recommended (best: 0)", _value, log=True),
    "levy20": Number("best true score tried", _tried, log=True),
    "bowl40": Number("best true score tried", _tried, log=True),
    "hart6in20": Number("best true score tried", _tried, log=True),
}


def cells(settings: Settings) -> list[Cell]:
    """Every contender in every case."""
    report_skipped((*settings.methods, *SLOW))
    made: list[Cell] = []
    for name in settings.cases:
        trials = min(CASES[name].seeds or settings.trials, settings.trials)
        panel = name + BETWEEN + name
        made += crossed([panel], settings.methods, seed=settings.seed, trials=trials)
    return made


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one contender in one case."""
    name = cell.panel.split(BETWEEN)[0]
    case = CASES[name]
    world = World.of(case.ground(cell.seed), case.scene, cell.seed)
    return play(world, cell, _trials(settings, name))


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each case and contender."""
    lines = []
    for name in settings.cases:
        for method in scores.order(settings.methods):
            if here := select(rows, method, (name,)):
                lines.append(
                    (
                        _title(settings, name),
                        method,
                        str(len(here)),
                        NUMBERS[name].label,
                        str(NUMBERS[name].of(here)),
                        str(_value(here)),
                        str(_rejected(here)) if here[0].rejected is not None else "",
                    )
                )
    caption = (
        "The number that a case is judged by; the score of what is recommended, geometric mean; "
        "and honest results that are not trusted, median. All with 95 % intervals."
    )
    headings = ("case", "contender", "studies", "number", "", "score", "rejected")
    return Table(caption, headings, tuple(lines))


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot a panel per case, a line per contender: its own answer filled, ``explain``'s hollow."""
    down = -(-len(settings.cases) // 3)
    picture = pictures.blank(10.0, 2.3 * down + 0.3)
    grid = picture.subplots(down, 3, sharey=True, squeeze=False)
    for axes in grid.flat[len(settings.cases) :]:
        axes.set_axis_off()
    for name, axes in zip(settings.cases, grid.flat, strict=False):
        number = NUMBERS[name]
        for line, method in enumerate(settings.methods):
            one = contender(method)
            for key, hollow in ((method, False), (method + EXPLAINED, True)):
                here = select(rows, key, (name,))
                # ``explain`` changes neither the queried settings nor the crashes.
                if not here or (hollow and number.of in (_settings, _failed, _tried)):
                    continue
                comparison.point(axes, line, one, number.of(here), hollow)
        if number.log:
            axes.set_xscale("log")
            lower, upper = axes.get_xlim()
            if upper < 100.0 * lower:
                pictures.plain_numbers(axes)
        axes.set_title(_title(settings, name), fontsize=9)
        axes.set_xlabel(number.label, fontsize=8)
        pictures.lines(axes, settings.methods)
    return picture


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: one or two for each case."""
    made = []
    for name, sentence, holds, number in JUDGED:
        if here := select(rows, DEFAULT, (name,)):
            sentence = f"{_title(settings, name)}: {sentence} (ours)."
            made.append(Claim(sentence, holds(here), _measured(settings, rows, name, number)))
    for name, measure in AGAINST_PEERS:
        collected = scores.collect(rows, measure)
        best = scores.best_peer(collected, name)
        if best is None or (name, DEFAULT) not in collected:
            continue
        against = scores.ratio(collected[name, DEFAULT], collected[name, best])
        sentence = f"the default's number is at most {HONEST:g} of the best peer's, {best}"
        measured = _measured(settings, rows, name, NUMBERS[name].of)
        measured |= zip(("ratio", "lower", "upper"), against, strict=True)
        sentence = f"{_title(settings, name)}: {sentence} (ours)."
        made.append(Claim(sentence, against.value <= HONEST, measured))
    return tuple(made)


def _measured(
    settings: Settings, rows: Sequence[Outcome], name: str, number: Measure
) -> dict[str, float]:
    """Collect the number of each contender, and the interval of the default's."""
    of_default = number(select(rows, DEFAULT, (name,)))
    measured = {"lower": of_default.lower, "upper": of_default.upper}
    for method in settings.methods:
        here = select(rows, method, (name,))
        if here and (number is not _rejected or here[0].rejected is not None):
            measured[method] = number(here).value
    return measured


def _every(holds: Callable[[Outcome], bool]) -> Callable[[Sequence[Outcome]], bool]:
    return lambda rows: all(map(holds, rows))


def _mostly_found(rows: Sequence[Outcome]) -> bool:
    return sum(row.score < FOUND for row in rows) >= 0.95 * len(rows)  # 19 of 20, and all of fewer


def _few_rejected(rows: Sequence[Outcome]) -> bool:
    return _rejected(rows).value <= 2


_ALL = "every study tries all of them"
_CHEAP = "every study recommends a value below 0.01"
_SAFE = "no study loses more than 5 trials"
_REJECTS = "in the median at most two honest results are rejected"
# A case, the claim about the default's studies, its predicate, and the number behind it.
JUDGED: tuple[tuple[str, str, Callable[[Sequence[Outcome]], bool], Measure], ...] = (
    ("needle", "the default finds it in at least 19 of 20 studies", _mostly_found, _found),
    ("needle", _REJECTS, _few_rejected, _rejected),
    ("quadratic", _CHEAP, _every(lambda row: row.score < 0.01), _value),
    ("30", _ALL, _every(lambda row: row.settings == 30), _settings),
    ("100", _ALL, _every(lambda row: row.settings == 100), _settings),
    ("region", _SAFE, _every(lambda row: row.failed <= 5), _failed),
)
AGAINST_PEERS = (
    ("random", scores.score),
    ("levy20", scores.tried),
    ("bowl40", scores.tried),
    ("hart6in20", scores.tried),
)


def _title(settings: Settings, name: str) -> str:
    return f"{CASES[name].title}, {_trials(settings, name)} trials"


def _trials(settings: Settings, name: str) -> int:
    return min(CASES[name].trials, settings.rounds)


FIGURE = Figure(
    "contest/narrow",
    "Narrow truths, easy ground, many choices, crashes and many dimensions",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
