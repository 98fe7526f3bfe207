"""Figure 3 of [Ezzerg2026]_: the cost of robustness without corruption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stoic.experiments import methods, pictures, regret
from stoic.experiments.claims import Beside, Numbers, judge
from stoic.experiments.figure import OURS, Claim, Figure, every
from stoic.experiments.methods import A2, FC, GP, GP_LOO, RANDOM
from stoic.experiments.outliers import functions
from stoic.experiments.outliers.functions import Game, playing
from stoic.experiments.regret import Step
from stoic.experiments.trials import grouped, names
from stoic.problems import forrester

_BASELINES = (methods.STUDENT_LOO, methods.DIAGNOSTICS_LOO)
METHODS = (
    GP, GP_LOO, FC, A2, methods.FC_THEORY, methods.A2_THEORY, methods.STUDENT,
    methods.STUDENT_LOO, methods.DIAGNOSTICS, methods.DIAGNOSTICS_LOO, RANDOM,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings(functions.Settings):
    """Experiment of section 5.3 without corruption."""

    rounds: int = 30  # and, of the 20 seeds, 10
    methods: tuple[str, ...] = names(*METHODS)


def games(settings: Settings) -> dict[str, Game]:
    """One panel."""
    return {"clean": Game(forrester(), settings.rounds)}


def plot(settings: Settings, rows: Sequence[Step]) -> pictures.Picture:
    """Mean cumulative regret of each method."""
    groups, shown = grouped(rows), [methods.method(name) for name in settings.methods]
    panel = regret.Panel("clean", "Forrester, no corruption", settings.rounds, shown)
    labels, size = ["cumulative regret (units of f)"], (8.0, 4.0)
    picture, grid = regret.picture(groups, [[panel]], size, labels, settings.initial, title_size=10)
    # Random search leaves the frame: with it inside, the other curves would be indistinguishable.
    inside = [groups["clean", n].curves() for n in settings.methods if n != RANDOM.name]
    grid[0, 0].set_ylim(top=1.3 * max(float(c.mean(axis=0).max()) for c in inside))
    return picture


def _above(numbers: Numbers) -> float:
    return numbers["mean"] - numbers["reference_mean"]


def _virtually_identical(numbers: Numbers) -> bool:
    return abs(_above(numbers)) <= numbers["reference_standard_error"]


def _at_no_cost(numbers: Numbers) -> bool:
    return _above(numbers) <= numbers["reference_standard_error"]  # less regret is no cost


_WITHIN = "{0.name} ends within one standard error of {1.name}."
_ABOVE = "{0.name} ends at most one standard error above {1.name}."
CLAIMS = (
    # "Virtually identical" (section 5.3), where methods share a fit; one-sided is ours
    *(
        Beside((robust,), (reference,), source, sentence, holds)
        for robust in (FC, A2)
        for reference, said in ((GP, OURS), (GP_LOO, ""))
        for sentence, holds, source in (
            (_WITHIN, _virtually_identical, said),
            (_ABOVE, _at_no_cost, OURS),
        )
    ),
    # "Seem to perform slightly better" than these (section 5.3)
    Beside((FC, A2), _BASELINES),
    Beside((FC, A2), (methods.STUDENT, methods.DIAGNOSTICS), OURS),
)


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """Zero-cost robustness (theorem 4.1), as the paper reads its figure, and with another fit."""
    return tuple(judge(grouped(rows), "clean", CLAIMS, "Clean: "))


FIGURE = Figure(
    "outliers/forrester-clean",
    "Cumulative regret on the Forrester function without corruption",
    Settings(), every(games), playing(games), plot, regret.against(GP.name), claims,
    "Ezzerg2026, Fig. 3",
)  # fmt: skip
