"""Figure 5 of [Ezzerg2026]_: a policy with 36 parameters, and some returns that are not true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stoic.experiments import methods, pictures
from stoic.experiments.claims import FLAT, Beside, Numbers, judge, late
from stoic.experiments.figure import OURS, Cell, Claim, Figure, every
from stoic.experiments.methods import A2, FC, GP, GP_LOO, LOO, RANDOM, ROBUST, Method
from stoic.experiments.outliers import programs
from stoic.experiments.outliers.programs import SWIFT, Play
from stoic.experiments.regret import Step
from stoic.experiments.trials import Groups, grouped
from stoic.problems.lunar_lander import LunarLander


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiment of section 5.5.

    Attributes
    ----------
    rounds:
        T; floor(T^(1/3)) results are replaced.
    initial:
        Clean scrambled Sobol points, common to all methods; the paper does not say how many.
    episodes, steps:
        A result is the mean return of so many episodes of at most so many steps.
    reported:
        Value that the adversary reports.
    panels:
        Schedules of corruption: ``programs.SWIFT``, ``RELEASED`` or ``NEVER``.
    checks:
        Fresh results, of ``episodes`` each, that the recommended policy is judged by.
    """

    trials: int = 10
    rounds: int = 300
    seed: int = 0
    initial: int = 10
    episodes: int = 4
    steps: int = 1000
    reported: float = -1000.0
    panels: tuple[str, ...] = (SWIFT,)
    checks: int = 10
    methods: tuple[str, ...] = programs.METHODS


def run(settings: Settings, cell: Cell) -> list[Play]:
    """Play one method with one seed."""
    lander = LunarLander(settings.episodes, settings.steps)
    return programs.play(cell, lander, None, settings, settings.reported, settings.checks)


def plot(settings: Settings, rows: Sequence[Play]) -> pictures.Picture:
    """Mean cumulative regret of each method."""
    return programs.plot(settings, rows, "return")


def _significantly(numbers: Numbers) -> bool:
    return numbers["paired_difference"] > 2.0 * numbers["paired_standard_error"]


_MORE = "{0.name} has significantly more mean cumulative regret than {1.name}."
_BASELINES = (methods.STUDENT_LOO, methods.DIAGNOSTICS_LOO)
PAPERS = (
    Beside((A2, FC), (GP_LOO,)),
    programs.NO_WORSE,
    # "Significantly underperform, even relative to GP-UCB" (section 5.5)
    Beside(_BASELINES, (GP_LOO,), "", _MORE, _significantly),
)
OTHERS = (
    Beside((methods.STUDENT, methods.DIAGNOSTICS), (GP,), OURS, _MORE, _significantly),
    Beside((LOO, ROBUST), (GP,), OURS),
    Beside((A2, FC), (GP,), OURS),
    Beside((GP, A2, FC), (RANDOM,), OURS),
)


def claims(settings: Settings, rows: Sequence[Play]) -> tuple[Claim, ...]:
    """RCGP below GP-UCB and the baselines above it, as in the paper; and comparisons of ours."""
    groups = grouped(programs.steps(rows))
    found: list[Claim] = []
    for panel in settings.panels:
        start = f"Corruptions {panel}: "
        found += judge(groups, panel, PAPERS, start)
        found.append(none_settles(groups, panel, (GP_LOO, A2, FC, *_BASELINES), start))
        found += judge(groups, panel, OTHERS, start)
    return tuple(found)


def none_settles(groups: Groups[Step], panel: str, compared: Sequence[Method], start: str) -> Claim:
    """Claim that the regret of none of these methods has flattened (section 5.5)."""
    shares = {each.name: late(groups[panel, each.name]) for each in compared}
    sentence = f"no method has stabilised (more than {FLAT:g} of the regret of each in the second "
    return Claim(f"{start}{sentence}half).", all(each > FLAT for each in shares.values()), shares)


FIGURE = Figure(
    "outliers/lunar-lander",
    "Cumulative regret of a linear policy on LunarLander while T^(1/3) returns are not true",
    Settings(), every(lambda settings: settings.panels), run, plot, programs.table, claims,
    "Ezzerg2026, Fig. 5",
)  # fmt: skip
