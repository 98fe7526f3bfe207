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

from stoic.experiments import pictures
from stoic.experiments.contest import comparison, contenders, scores
from stoic.experiments.contest.cases import CASES
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED
from stoic.experiments.contest.scenes import World
from stoic.experiments.contest.scores import BETWEEN, HONEST
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table, crossed, tabulate
from stoic.experiments.statistics import Interval, bootstrap, share
from stoic.experiments.trials import Groups, Trials

FOUND = 0.5  # score below which the needle is found: half of its height
Measure = Callable[[Trials[Outcome]], Interval]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    trials, rounds:
        Number of independent studies of each case, but for slow ones; and the largest number of
        results of a study: cases have from 40 to 120.
    cases, methods:
        Names of the cases; and contenders: peers, ``default``, and recipes by their texts.
    """

    trials: int = 20
    rounds: int = 120
    seed: int = 0
    cases: tuple[str, ...] = tuple(CASES)
    methods: tuple[str, ...] = (
        DEFAULT, "loo_gp_ucb", "gp_ucb", *contenders.installed(contenders.FAST),
    )  # fmt: skip

    def results(self, case: str) -> int:
        """Return the number of results of a study."""
        return min(CASES[case].trials, self.rounds)

    @property
    def titles(self) -> dict[str, str]:
        """Title of each case."""
        return {name: f"{CASES[name].title}, {self.results(name)} trials" for name in self.cases}


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


def _found(studies: Trials[Outcome]) -> Interval:
    return share([score < FOUND for score in studies.final("score")])


def _tried(studies: Trials[Outcome]) -> Interval:
    return scores.score(studies, "tried")


def _settings(studies: Trials[Outcome]) -> Interval:
    return bootstrap(studies.by_panel("settings"), np.mean)


def _failed(studies: Trials[Outcome]) -> Interval:
    return bootstrap(studies.by_panel("failed"), np.mean)


def _rejected(studies: Trials[Outcome]) -> Interval:
    """Median; nan of a peer's own recommendations, which reject nothing."""
    if not studies.known("rejected"):
        return Interval(np.nan)
    return bootstrap(studies.by_panel("rejected"), np.median)


_TRIED = Number("best true score tried", _tried, log=True)
_VALUE = Number("value recommended (best: 0)", scores.score, log=True)
_CATEGORIES = Number("categories tried", _settings)
NUMBERS: dict[str, Number] = {
    "needle": Number("share of studies that recommend it", _found),
    "quadratic": _VALUE,
    "30": _CATEGORIES,
    "100": _CATEGORIES,
    "region": Number("runs that crashed", _failed),
    "random": _VALUE,
    "levy20": _TRIED,
    "bowl40": _TRIED,
    "hart6in20": _TRIED,
}


def cells(settings: Settings) -> list[Cell]:
    """Every contender in every case."""
    contenders.report_skipped((*settings.methods, *contenders.SLOW))

    def trials(panel: str, method: str) -> int:
        most = CASES[panel.split(BETWEEN)[0]].seeds
        return min(most or settings.trials, settings.trials)

    panels = [name + BETWEEN + name for name in settings.cases]
    return crossed(panels, settings.methods, settings.seed, trials)


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one contender in one case."""
    name = cell.panel.split(BETWEEN)[0]
    world = World.of(CASES[name].ground(cell.seed), CASES[name].scene, cell.seed)
    return play(world, cell, settings.results(name))


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each case and contender."""

    def number(studies: Trials[Outcome]) -> Number:
        return NUMBERS[studies.ends[0].panel.split(BETWEEN)[0]]

    return tabulate(
        "The number that a case is judged by; the score of what is recommended, geometric mean; "
        "and honest results that are not trusted, median. All with 95 % intervals.",
        ("case", "contender"),
        (
            ("studies", lambda studies: str(len(studies))),
            ("number", lambda studies: number(studies).label),
            ("", lambda studies: str(number(studies).of(studies))),
            ("score", lambda studies: str(scores.score(studies))),
            ("rejected", lambda studies: str(_rejected(studies))),
        ),
        scores.lines(scores.by_scene(rows), settings.titles, settings.methods),
    )


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot a panel per case, a line per contender: its own answer filled, ``explain``'s hollow."""
    found, down = scores.by_scene(rows), -(-len(settings.cases) // 3)
    picture = pictures.blank(10.0, 2.3 * down + 0.3)
    grid = picture.subplots(down, 3, sharey=True, squeeze=False)
    for axes in grid.flat[len(settings.cases) :]:
        axes.set_axis_off()
    for name, axes in zip(settings.cases, grid.flat, strict=False):
        number = NUMBERS[name]
        # ``explain`` changes neither the queried settings nor the crashes.
        own = number.of in (_settings, _failed, _tried)
        shown = {
            method: number.of(studies)
            for (case, method), studies in found.items()
            if case == name and not (own and method.endswith(EXPLAINED))
        }
        comparison.panel(axes, shown, settings.methods, settings.titles[name], number.log)
        lower, upper = axes.get_xlim()
        if number.log and upper < 100.0 * lower:
            pictures.plain_numbers(axes)
        axes.set_xlabel(number.label, fontsize=8)
    return picture


def _every(holds: Callable[[Outcome], bool]) -> Callable[[Trials[Outcome]], bool]:
    return lambda studies: all(map(holds, studies.ends))


def _mostly_found(studies: Trials[Outcome]) -> bool:
    # 19 of 20, and all of fewer
    return bool((studies.final("score") < FOUND).sum() >= 0.95 * len(studies))


def _few_rejected(studies: Trials[Outcome]) -> bool:
    return _rejected(studies).value <= 2


_ALL = "every study tries all of them"
_CHEAP = "every study recommends a value below 0.01"
_SAFE = "no study loses more than 5 trials"
_REJECTS = "in the median at most two honest results are rejected"
# A case, the claim about the default's studies, its predicate, and the number behind it.
JUDGED: tuple[tuple[str, str, Callable[[Trials[Outcome]], bool], Measure], ...] = (
    ("needle", "the default finds it in at least 19 of 20 studies", _mostly_found, _found),
    ("needle", _REJECTS, _few_rejected, _rejected),
    ("quadratic", _CHEAP, _every(lambda row: row.score < 0.01), scores.score),
    ("30", _ALL, _every(lambda row: row.settings == 30), _settings),
    ("100", _ALL, _every(lambda row: row.settings == 100), _settings),
    ("region", _SAFE, _every(lambda row: row.failed <= 5), _failed),
)
AGAINST_PEERS = {"random": "score", "levy20": "tried", "bowl40": "tried", "hart6in20": "tried"}


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: one or two for each case."""
    found, made = scores.by_scene(rows), []
    for name, said, holds, number in JUDGED:
        if (name, DEFAULT) in found:
            sentence = f"{settings.titles[name]}: {said} (ours)."
            verdict = holds(found[name, DEFAULT])
            made.append(Claim(sentence, verdict, _measured(settings, found, name, number)))
    for name, column in AGAINST_PEERS.items():
        if (name, DEFAULT) in found:
            numbers = _measured(settings, found, name, NUMBERS[name].of)
            judged = HONEST, numbers, column, "number"
            made += scores.near_the_best_peer(found, name, settings.titles[name], *judged)
    return tuple(made)


def _measured(
    settings: Settings, found: Groups[Outcome], name: str, number: Measure
) -> dict[str, float]:
    """Collect the number of each contender, and the interval of the default's."""
    of = {m: number(found[name, m]) for m in settings.methods if (name, m) in found}
    known = {m: each.value for m, each in of.items() if not np.isnan(each.value)}
    return {"lower": of[DEFAULT].lower, "upper": of[DEFAULT].upper, **known}


FIGURE = Figure(
    "contest/narrow",
    "Narrow truths, easy ground, many choices, crashes and many dimensions",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
