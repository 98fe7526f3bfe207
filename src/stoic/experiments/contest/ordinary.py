"""Not in a paper: ordinary outliers, which are too good by half a range to three ranges.

Four small functions, noise of 5 % of the range, 30 trials. The numbers are the shares of studies
that recommend an outlier, whose printed 95 % interval covers the truth, and, if a third or more of
the results are outliers, that report being undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stoic.experiments import pictures
from stoic.experiments.contest import scores
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED, contender
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.scenes import ORDINARY, Scene, World, ordinary
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import Outcome, play
from stoic.experiments.figure import Cell, Claim, Figure, Table, every, tabulate
from stoic.experiments.statistics import Interval, share

SIZES = (0.5, 1.5, 3.0)  # in ranges; each hits the same trials
COVERS = (0.90, 0.98)  # of studies, for a 95 % interval
Measure = Callable[[Sequence[Outcome]], Interval]


class Condition(NamedTuple):
    """Noise and outliers, and the number of trials in units of ``rounds``."""

    scene: Scene
    longer: int = 1


_SIZED = {f"10 %, {size:g}": Condition(ordinary(0.1, size, size)) for size in SIZES}
CONDITIONS: dict[str, Condition] = {
    "none": Condition(ordinary(0.0, *ORDINARY)),
    **_SIZED,
    "10 %": Condition(ordinary(0.1, *ORDINARY)),
    "20 %, longer": Condition(ordinary(0.2, *ORDINARY), longer=2),
    "30 %": Condition(ordinary(0.3, *ORDINARY)),
    "60 %": Condition(ordinary(0.6, *ORDINARY)),
    "none, little noise": Condition(ordinary(0.0, *ORDINARY, noise=0.01)),
    "10 %, little noise": Condition(ordinary(0.1, *ORDINARY, noise=0.01)),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    rounds:
        Number of results of a study, but for longer ones.
    conditions, problems:
        Names of conditions and of functions.
    methods:
        Contenders: peers, ``default``, and recipes by their texts.
    """

    trials: int = 40
    rounds: int = 30
    seed: int = 0
    conditions: tuple[str, ...] = tuple(CONDITIONS)
    problems: tuple[str, ...] = ("branin", "bowl3", "hart3", "forrester")
    # The claims are about the default; six contenders took three and a half hours
    methods: tuple[str, ...] = (DEFAULT, "TPE")

    @property
    def titles(self) -> dict[str, str]:
        """Title of each condition."""
        played = {name: CONDITIONS[name] for name in self.conditions}
        return {
            name: f"{one.scene.title}, {one.longer * self.rounds} trials"
            for name, one in played.items()
        }


def _panels(settings: Settings) -> list[str]:
    return [c + BETWEEN + p for c in settings.conditions for p in settings.problems]


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one contender in one condition on one function."""
    name, problem = cell.panel.split(BETWEEN)
    scene, longer = CONDITIONS[name]
    return play(World.of(FUNCTIONS[problem], scene, cell.seed), cell, longer * settings.rounds)


def _share(happened: Callable[[Outcome], bool | None]) -> Measure:
    return lambda rows: share([happened(row) for row in rows])


_outlier = _share(lambda row: row.outlier)
_covered = _share(lambda row: row.covered)
_undecided = _share(lambda row: row.undecided)
_confidently_wrong = _share(lambda row: bool(row.outlier) and not row.undecided)
MEASURES = {
    "recommends an outlier": _outlier,
    "interval covers the truth": _covered,
    "says it does not know": _undecided,
}


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each condition and contender."""
    shares = [
        (title, lambda studies, of=measure: of(studies.ends).text(".0f", 100.0, " %"))
        for title, measure in MEASURES.items()
    ]
    return tabulate(
        "Share of the studies, with 95 % intervals, whose recommended setting has no result but "
        "outliers, whose 95 % interval covers the truth, and that say that they do not know; and "
        "the true score of what is recommended, geometric mean.",
        ("results", "contender"),
        (
            ("studies", lambda studies: str(len(studies))),
            *shares,
            ("score", lambda studies: str(scores.score(studies))),
        ),
        scores.lines(scores.by_scene(rows), settings.titles, settings.methods),
    )


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot one panel per share; in each a group of points per condition."""
    found, count = scores.by_scene(rows), len(settings.conditions)
    there = {method for _, method in found}
    names = [method for method in scores.order(settings.methods) if method in there]
    picture = pictures.blank(11.5, (0.13 * len(names) + 0.12) * count + 1.3)
    line = picture.subplots(1, len(MEASURES), sharey=True)
    for (title, measure), axes in zip(MEASURES.items(), line, strict=True):
        for k, method in enumerate(names):
            one, hollow = contender(method.removesuffix(EXPLAINED)), method.endswith(EXPLAINED)
            shares = [measure(found[name, method].ends) for name in settings.conditions]
            heights = [i + 0.8 * (k + 0.5) / len(names) - 0.4 for i in range(count)]
            look: dict[str, Any] = {"fmt": "s" if one.peer else "o", "ms": 4.5, "lw": 0.9}
            look |= {"mfc": "white" if hollow else one.colour, "label": method}
            pictures.points(axes, heights, shares, one.colour, look, 100.0)
        axes.set_xlim(-3, 103)
        axes.set_xlabel(f"{title}, % of the studies", fontsize=9)
        axes.set_yticks(range(count), settings.titles.values())
        axes.tick_params(labelsize=8)
        axes.set_ylim(count - 0.5, -0.5)
        axes.grid(alpha=0.3, lw=0.5, axis="x")
        for border in range(count - 1):
            axes.axhline(border + 0.5, color="0.8", lw=0.6)
    line[1].axvspan(*(100 * end for end in COVERS), color="0.9", zorder=0)
    pictures.legend(picture, [line[0]], "outside upper center", ncols=5, fontsize=8)
    return picture


_SAID = "the default says that it does not know in"
_BELOW = "the default recommends an outlier in less than"
# "Less than" 2 and 5 %, where claims compare with <=
_UNDER_2, _UNDER_5 = (0.0, math.nextafter(0.02, 0.0)), (0.0, math.nextafter(0.05, 0.0))
# Sentence, conditions, share of the default's studies, and its limits.
JUDGED: tuple[tuple[str, Sequence[str], Measure, tuple[float, float]], ...] = (
    (f"10 % outliers, each size: {_BELOW} 2 % of the studies", [*_SIZED], _outlier, _UNDER_2),
    (f"20 % outliers: {_BELOW} 5 % of the studies", ["20 %, longer"], _outlier, _UNDER_5),
    (f"60 % outliers: {_SAID} at least 95 % of the studies", ["60 %"], _undecided, (0.95, 1.0)),
    (f"No outliers: {_SAID} at most 5 % of the studies", ["none"], _undecided, (0.0, 0.05)),
    (
        "30 % outliers: the default recommends an outlier, and does not say that it does not know, "
        "in at most 5 % of the studies",
        ["30 %"],
        _confidently_wrong,
        (0.0, 0.05),
    ),
    *(
        (
            "{title}: the default's 95 % interval covers the truth in 90 to 98 % of the studies",
            [name],
            _covered,
            COVERS,
        )
        for name in ("none", "10 %", "none, little noise", "10 %, little noise")
    ),
)


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: no recommended outliers, calibrated intervals, or a study that is undecided."""
    found, made = scores.by_scene(rows), []
    for sentence, conditions, measure, (least, most) in JUDGED:
        names = [name for name in conditions if name in settings.conditions]
        studies = {
            method: [row for name in names for row in found[name, method].ends]
            for method in scores.order(settings.methods)
            if all((name, method) in found for name in names)
        }
        if not names or DEFAULT not in studies:  # a run of other conditions
            continue
        of_default = measure(studies[DEFAULT])
        measured = of_default.limits("default") | {"studies": float(len(studies[DEFAULT]))}
        measured |= {
            method: measure(here).value for method, here in studies.items() if method != DEFAULT
        }
        said = sentence.format(title=settings.titles[names[0]])
        made.append(Claim(f"{said} (ours).", least <= of_default.value <= most, measured))
    return tuple(made)


FIGURE = Figure(
    "contest/ordinary",
    "Ordinary outliers: what is recommended, and what is said about it",
    Settings(), every(_panels), run, plot, table, claims,
)  # fmt: skip
