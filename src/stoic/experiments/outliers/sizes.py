"""Not in a paper: regret by the size and the sign of the outliers.

The robust methods should discount an outlier the more the larger it is, so that regret does not
change once outliers are far out of the ordinary. They come where the clairvoyant adversary of the
appendix of [Ezzerg2026]_ puts them: near the maximum and far from it. One version lowers the
maximum and raises what is far; the other does the opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stoic.adversaries import ClairvoyantSetting
from stoic.adversaries.frequency import AT_ONCE
from stoic.experiments import pictures, regret
from stoic.experiments.claims import Beside, judge
from stoic.experiments.figure import Claim, Figure, every
from stoic.experiments.methods import A2, FC, GP, ROBUST, method
from stoic.experiments.outliers import functions
from stoic.experiments.outliers.functions import Game, playing
from stoic.experiments.regret import Step
from stoic.experiments.trials import comparison, grouped, names
from stoic.problems import forrester

SIGNS = {"low near the maximum, high far from it": -1.0, "high near, low far": 1.0}
STEADY = 0.15  # allowed relative change of regret once outliers are large
_ROBUST = (A2, FC, ROBUST)


@dataclass(frozen=True, slots=True)
class Settings(functions.Settings):
    """Experiment of section 5.3 of [Ezzerg2026]_, with outliers of several sizes.

    Attributes
    ----------
    sizes:
        The outliers are plus and minus a size, in units of f, rising; f has values from -6 to 16.
    large:
        The size from which on regret is to stay the same.
    adversary:
        Decides where outliers come; its values are not used.
    """

    sizes: tuple[float, ...] = (1e1, 1e3, 1e6, 1e12)
    large: float = 1e3
    adversary: ClairvoyantSetting = AT_ONCE
    methods: tuple[str, ...] = names(GP, FC, A2, ROBUST)


def games(settings: Settings) -> dict[str, Game]:
    """Panels by name: all sizes of the one sign, then of the other."""
    f, where, rounds = forrester(), settings.adversary, settings.rounds
    return {
        _panel(signs, size): Game(
            f,
            rounds,
            replace(where, low=sign * size, high=-sign * size).against(f.optimum, rounds),
        )
        for signs, sign in SIGNS.items()
        for size in settings.sizes
    }


def _panel(signs: str, size: float) -> str:
    return f"{signs}: {size:.0e}"


def plot(settings: Settings, rows: Sequence[Step]) -> pictures.Picture:
    """Plot mean final cumulative regret by the size of the outliers, one panel per sign."""
    groups, exponents = grouped(rows), np.log10(np.array(settings.sizes))
    picture = pictures.blank(9.6, 4.0)
    line = picture.subplots(1, len(SIGNS), sharey=True)
    for signs, axes in zip(SIGNS, line, strict=True):
        for name in settings.methods:
            finals = np.stack([groups[_panel(signs, s), name].final() for s in settings.sizes])
            one = method(name)
            axes.plot(exponents, finals.mean(axis=1), one.line, color=one.colour, marker="o", ms=4)
            pictures.curve(axes, one, exponents, finals.T)
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
    groups, large = grouped(rows), settings.large
    found = []
    for one in _ROBUST:
        for signs in SIGNS:
            for size in (size for size in settings.sizes if size > large):
                big, usual = (groups[_panel(signs, each), one.name] for each in (size, large))
                measured = comparison(big, usual)
                change = measured["paired_difference"] / measured["reference_mean"]
                sentence = (
                    f"{signs}: from lies of {large:.0e} to lies of {size:.0e} the mean cumulative "
                    f"regret of {one.name} changes by less than {100 * STEADY:g} %."
                )
                numbers = {"relative_change": change, **measured}
                found.append(Claim(sentence, abs(change) < STEADY, numbers))
    for panel in games(settings):
        found += judge(groups, panel, [Beside(_ROBUST, (GP,))], f"{panel}: ")
    return tuple(found)


FIGURE = Figure(
    "outliers/sizes",
    "Cumulative regret on the Forrester function by the size of the lies",
    Settings(), every(games), playing(games), plot, regret.against(GP.name), claims,
)  # fmt: skip
