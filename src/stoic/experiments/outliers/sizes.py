"""Not in a paper: regret by the size and the sign of the outliers.

The robust methods should discount an outlier the more the larger it is, so that regret does not
change once outliers are far out of the ordinary. They come where the clairvoyant adversary of the
appendix of [Ezzerg2026]_ puts them: near the maximum and far from it. One version lowers the
maximum and raises what is far; the other does the opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from stoic.adversaries import ClairvoyantSetting
from stoic.adversaries.frequency import AT_ONCE
from stoic.experiments import pictures, regret
from stoic.experiments.figure import Cell, Claim, Figure, every
from stoic.experiments.methods import A2, FC, GP, ROBUST, Method, method
from stoic.experiments.outliers import functions
from stoic.experiments.regret import Step
from stoic.experiments.trials import Groups, comparison, grouped, names
from stoic.problems import forrester

SIGNS = {"low near the maximum, high far from it": -1.0, "high near, low far": 1.0}
STEADY = 0.15  # allowed relative change of regret once outliers are large


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiment of section 5.3 of [Ezzerg2026]_, with outliers of several sizes.

    Attributes
    ----------
    rounds:
        T; floor(T^(1/3)) results are replaced.
    sizes:
        The outliers are plus and minus a size, in units of f, rising; f has values from -6 to 16.
    large:
        The size from which on regret is to stay the same.
    adversary:
        Decides where outliers come; its values are not used.
    """

    trials: int = 20
    rounds: int = 100
    seed: int = 0
    initial: int = 5
    noise_sd: float = 1.0
    sizes: tuple[float, ...] = (1e1, 1e3, 1e6, 1e12)
    large: float = 1e3
    adversary: ClairvoyantSetting = AT_ONCE
    methods: tuple[str, ...] = names(GP, FC, A2, ROBUST)


def panels(settings: Settings) -> dict[str, ClairvoyantSetting]:
    """Adversaries by name: all sizes of the one sign, then of the other."""
    return {
        _panel(signs, size): replace(settings.adversary, low=sign * size, high=-sign * size)
        for signs, sign in SIGNS.items()
        for size in settings.sizes
    }


cells = every(panels)


def run(settings: Settings, cell: Cell) -> list[Step]:
    """Play one method with one seed against one adversary."""
    problem = forrester()
    adversary = panels(settings)[cell.panel].against(problem.optimum, settings.rounds)
    return functions.play(settings, cell, problem, adversary, settings.rounds)


def plot(settings: Settings, rows: Sequence[Step]) -> pictures.Picture:
    """Plot mean final cumulative regret by the size of the outliers, one panel per sign."""
    groups = grouped(rows)
    picture = pictures.blank(9.6, 4.0)
    line = picture.subplots(1, len(SIGNS), sharey=True)
    exponents = np.log10(np.array(settings.sizes))
    for signs, axes in zip(SIGNS, line, strict=True):
        for name in settings.methods:
            finals = np.stack([groups[_panel(signs, s), name].final() for s in settings.sizes])
            one = method(name)
            axes.plot(exponents, finals.mean(axis=1), one.line, color=one.colour, marker="o", ms=4)
            pictures.curve(axes, exponents, finals.T, one)
        axes.set_title(signs, fontsize=9)
        axes.set_xticks(exponents, [f"$10^{{{e:g}}}$" for e in exponents])
        axes.set_xlabel("size of the lies (units of f)")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.3, lw=0.5)
    line[0].set_ylabel(f"cumulative regret at T = {settings.rounds}\n(units of f)")
    pictures.legend(picture, [line[0]], fontsize=8)
    return picture


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """Steady regret of the robust methods, below that of GP-UCB."""
    groups = grouped(rows)
    return tuple(
        chain(
            *(_steady(settings, groups, one, signs) for one in (A2, FC, ROBUST) for signs in SIGNS),
            *(
                functions.less(groups, panel, (A2, FC, ROBUST), (GP,), panel)
                for panel in panels(settings)
            ),
        )
    )


def _steady(settings: Settings, groups: Groups[Step], one: Method, signs: str) -> list[Claim]:
    large = groups[_panel(signs, settings.large), one.name]
    found = []
    for size in settings.sizes:
        if size > settings.large:
            measured = comparison(groups[_panel(signs, size), one.name], large)
            change = measured["paired_difference"] / measured["reference_mean"]
            sentence = f"{signs}: from lies of {settings.large:.0e} to lies of {size:.0e} the mean "
            sentence += f"cumulative regret of {one.name} changes by less than {100 * STEADY:g} %."
            numbers = {"relative_change": change, **measured}
            found.append(Claim(sentence, abs(change) < STEADY, numbers))
    return found


def _panel(signs: str, size: float) -> str:
    return f"{signs}: {size:.0e}"


FIGURE = Figure(
    "outliers/sizes",
    "Cumulative regret on the Forrester function by the size of the lies",
    Settings(), cells, run, plot, regret.against(GP.name), claims,
)  # fmt: skip
