"""Figures 3, 4 and 6 to 10 of [Saday2025]_: AdveRS and StableOpt while inputs are moved.

What is claimed
---------------
*Linear* and *flat* are judged by the share of a mean curve's regret that falls in the second half
of the rounds: at least 0.4, and at most 0.1. One half is a straight line; no regret at all is flat.
*Less* is the mean at the end, on the same trials. Figures 3, 4, 6 and 9 are of lenient regret,
figures 7, 8 and 10 of robust satisficing regret, figure 6 has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from stoic.data import Array
from stoic.experiments import claims as vocabulary
from stoic.experiments import pictures
from stoic.experiments.claims import LINEAR, flattens, grows_linearly, share
from stoic.experiments.figure import OURS, Claim, Figure, Table
from stoic.experiments.inputs.algorithms import (
    ADVERS_1,
    ADVERS_2,
    ADVERS_G,
    ALGORITHMS,
    STABLE,
    STABLE_03,
    STABLE_3,
    STABLE_4,
    STABLE_HALF,
    STABLE_THIRD,
    Algorithm,
)
from stoic.experiments.inputs.trials import Row, Settings, cells, run, share_below
from stoic.experiments.inputs.worlds import GAUSSIAN, INSULIN, MISSPECIFIED, PENDULUM
from stoic.experiments.statistics import Estimate, compared, deviation
from stoic.experiments.trials import Groups, Trials, grouped, names

Kind = Literal["lenient", "robust satisficing"]
LENIENT: Kind = "lenient"
SATISFICING: Kind = "robust satisficing"
COLUMNS: dict[Kind, str] = {LENIENT: "lenient_regret", SATISFICING: "satisficing_regret"}


def growth(trials: Trials[Row], kind: Kind) -> dict[str, float]:
    """Compute the numbers behind *linear* and *flat*."""
    cumulative = trials.curves(COLUMNS[kind])
    final = Estimate.of(cumulative[:, -1])
    fraction = float(share(cumulative.mean(axis=0), trials.rounds))
    return {
        "share_in_second_half": 0.0 if math.isnan(fraction) else fraction,
        "mean": final.mean,
        "standard_error": final.error,
        "rounds_below_the_threshold": float(share_below(trials).mean()),
        "trials": float(len(cumulative)),
    }


def grows(
    groups: Groups[Row],
    panel: str,
    algorithm: Algorithm,
    kind: Kind,
    linear: bool,
    source: str = "",
) -> Claim:
    """Claim that one mean curve is linear, or flat."""
    numbers = growth(groups[panel, algorithm.name], kind)
    judged = grows_linearly if linear else flattens
    return judged(f"{start(panel)}: the {kind} regret of {algorithm.name}", numbers, source)


def all_grow(groups: Groups[Row], panel: str, names: Sequence[str], kind: Kind) -> Claim:
    """Claim that every mean curve is linear."""
    shares = {name: growth(groups[panel, name], kind)["share_in_second_half"] for name in names}
    return Claim(
        f"{start(panel)}: the {kind} regret of every method grows linearly (at least {LINEAR:g} of "
        "it in the second half).",
        min(shares.values()) >= LINEAR,
        {f"share_in_second_half_of_{name}": value for name, value in shares.items()},
    )


def final(groups: Groups[Row], panel: str, name: str, kind: Kind) -> Array:
    """Regret of one method at the end, shape (trials,)."""
    return groups[panel, name].final(COLUMNS[kind])


def less(groups: Groups[Row], panel: str, ours: Algorithm, theirs: Algorithm, kind: Kind) -> Claim:
    """Claim that one final mean is below another, on the same trials."""
    mine, other = (final(groups, panel, a.name, kind) for a in (ours, theirs))
    sentence = f"{start(panel)}: {ours.name} ends with less {kind} regret than {theirs.name}."
    return vocabulary.less(sentence, compared(mine, other))


def least(
    groups: Groups[Row], panel: str, ours: Algorithm, names: Sequence[str], kind: Kind
) -> Claim:
    """Claim that one final mean is below all others."""
    ends = {name: float(final(groups, panel, name, kind).mean()) for name in names}
    return Claim(
        f"{start(panel)}: {ours.name} ends with the least {kind} regret of all.",
        all(ends[ours.name] < end for name, end in ends.items() if name != ours.name),
        {f"mean_of_{name}": end for name, end in ends.items()},
    )


def start(panel: str) -> str:
    """Begin a claim about a panel."""
    return f"{panel[0].upper()}{panel[1:]}"


def attainable(
    groups: Groups[Row], panel: str, wrong: Sequence[Algorithm], kind: Kind
) -> list[Claim]:
    """Claims where f can be kept above tau: figure 3 (a)."""
    return [
        grows(groups, panel, ADVERS_2, kind, linear=False),
        *(grows(groups, panel, one, kind, linear=True) for one in wrong),
        *(less(groups, panel, ADVERS_1, one, kind) for one in wrong),
        # AdveRS-2 "again" outperforms it, even with the right radius (appendix E.1)
        *(less(groups, panel, ADVERS_2, one, kind) for one in (STABLE, *wrong)),
    ]


def figure_3(settings: Settings, groups: Groups[Row]) -> list[Claim]:
    """Claims on lenient regret of the polynomial: tau in reach, then out of reach."""
    (first, second), found = settings.radii, []
    for panel, (_, radius) in settings.panels.items():
        # Assumption 3.8 holds: figure 3 (a)
        if radius == first:
            found += attainable(groups, panel, (STABLE_4, STABLE_HALF), LENIENT)
        # It fails: all are linear (Remark 3.9), and RS-G with p = 2 has the least (section 5)
        if radius == second:
            found += [
                all_grow(groups, panel, settings.methods, LENIENT),
                least(groups, panel, ADVERS_G, settings.methods, LENIENT),
            ]
    return found


def figure_4(settings: Settings, groups: Groups[Row]) -> list[Claim]:
    """Claims on lenient regret of insulin."""
    found = []
    for panel in settings.panels:
        # Section 5: none is sublinear, AdveRS beats the wrong radii, the right one is best
        found += [
            all_grow(groups, panel, settings.methods, LENIENT),
            *(
                less(groups, panel, ours, wrong, LENIENT)
                for ours in (ADVERS_1, ADVERS_2)
                for wrong in (STABLE_3, STABLE_THIRD)
            ),
            least(groups, panel, STABLE, settings.methods, LENIENT),
        ]
    return found


def figure_6(settings: Settings, groups: Groups[Row]) -> list[Claim]:
    """Claims on both regrets of the pendulum."""
    found = []
    for panel in settings.panels:
        # Appendix E.1: AdveRS-2 beats StableOpt even with the right radius; AdveRS-1 is linear
        found += [
            grows(groups, panel, ADVERS_2, LENIENT, linear=False, source=OURS),
            less(groups, panel, ADVERS_2, STABLE, LENIENT),
            grows(groups, panel, ADVERS_1, LENIENT, linear=True),
            *(less(groups, panel, ADVERS_1, one, LENIENT) for one in (STABLE_3, STABLE_03)),
            *satisficing(groups, panel, (ADVERS_1, ADVERS_2), OURS),
        ]
    return found


def figure_7_or_8(settings: Settings, groups: Groups[Row]) -> list[Claim]:
    """Claims that robust satisficing regret of all AdveRS flattens; the paper only shows it."""
    return all_satisficing(settings, groups, OURS)


def figure_9(settings: Settings, groups: Groups[Row]) -> list[Claim]:
    """Claims on lenient regret with a misspecified kernel."""
    found = []
    for panel in settings.panels:
        # Appendix E.3: AdveRS-2 as before, AdveRS-1 below StableOpt with a wrong radius
        found.append(grows(groups, panel, ADVERS_2, LENIENT, linear=False))
        found += [less(groups, panel, ADVERS_1, o, LENIENT) for o in (STABLE_4, STABLE_HALF)]
    return found


def figure_10(settings: Settings, groups: Groups[Row]) -> list[Claim]:
    """Claims on robust satisficing regret: StableOpt with a wrong radius *can* be linear."""
    numbers = {
        f"share_in_second_half_of_{wrong.name}, {panel}": growth(
            groups[panel, wrong.name], SATISFICING
        )["share_in_second_half"]
        for panel in settings.panels
        for wrong in (STABLE_4, STABLE_HALF)
    }
    can = Claim(
        "Somewhere StableOpt with a wrong radius has linear robust satisficing regret (at least "
        f"{LINEAR:g} of it in the second half).",
        max(numbers.values()) >= LINEAR,
        numbers,
    )
    # Appendix E.3: "our algorithms achieve sublinear results"
    return [*all_satisficing(settings, groups), can]


def all_satisficing(settings: Settings, groups: Groups[Row], source: str = "") -> list[Claim]:
    """Claims that robust satisficing regret of all AdveRS flattens."""
    robust = [ALGORITHMS[name] for name in settings.methods if name.startswith("AdveRS")]
    return [
        claim for panel in settings.panels for claim in satisficing(groups, panel, robust, source)
    ]


def satisficing(
    groups: Groups[Row], panel: str, robust: Sequence[Algorithm], source: str = ""
) -> list[Claim]:
    """Claims that robust satisficing regret of all of these flattens."""
    return [grows(groups, panel, one, SATISFICING, linear=False, source=source) for one in robust]


def plot(settings: Settings, rows: Sequence[Row], kinds: Sequence[Kind]) -> pictures.Picture:
    """Plot mean cumulative regret with half a standard deviation, by attack and radius."""
    groups, keys = grouped(rows), {key: name for name, key in settings.panels.items()}
    shown = [(kind, radius) for kind in kinds for radius in settings.radii]
    panels = [
        panel_of(groups, keys[attack, radius], settings.methods, ALGORITHMS, kind)
        for kind, radius in shown
        for attack in settings.attacks
    ]
    lines, columns = len(shown), len(settings.attacks)
    return pictures.trajectories(
        panels,
        settings.rounds,
        [f"{kind} regret\n(units of f)" for kind, _ in shown],
        (3.1 * columns + 1.2 + 1.6 * (columns == 1), 2.5 * lines + 1.2),
        columns,
        "half",
        title=f"{start(settings.world)}, tau = {settings.threshold:g}: mean of {settings.trials} "
        "runs, band: sd / 2",
        small=True,
        one_scale=False,
        ncols=3,
        fontsize=8,
    )


def panel_of(
    groups: Groups[Row],
    panel: str,
    methods: Sequence[str],
    looks: Mapping[str, Algorithm],
    kind: Kind = LENIENT,
) -> pictures.Panel:
    """Curves of the methods in one panel."""
    found = [(looks[name], groups[panel, name]) for name in methods]
    curves = [(look, trials.rounds, trials.curves(COLUMNS[kind])) for look, trials in found]
    return pictures.Panel(panel, curves)


def table(settings: Any, rows: Sequence[Row]) -> Table:
    """Table of both regrets of each method in each panel, and of their shares."""
    lines = []
    for (panel, name), trials in grouped(rows).items():
        regrets: list[str] = []
        for kind, column in COLUMNS.items():
            one, spread = growth(trials, kind), deviation(trials.final(column)) / 2.0
            band = "" if math.isnan(spread) else f" ± {spread:.2f}"
            regrets += [f"{one['mean']:.2f}{band}", f"{one['share_in_second_half']:.2f}"]
        lines.append((panel, name, *regrets, f"{100.0 * np.mean(share_below(trials)):.0f} %"))
    caption = (
        f"Mean over {settings.trials} runs ± sd / 2 at T = {settings.rounds}, in units of f. Share:"
        " of the mean curve, in the second half of the rounds. Below: rounds with f < tau."
    )
    headings = (
        "moves", "method", "lenient regret", "share", "satisficing regret", "share", "below",
    )  # fmt: skip
    return Table(caption, headings, tuple(lines))


def figure(
    number: int,
    title: str,
    settings: Settings,
    kinds: Sequence[Kind],
    judge: Callable[[Settings, Groups[Row]], list[Claim]],
    ours: str = "",
) -> Figure[Settings, Row]:
    """Figure of this number; ``ours`` names a reading of our own."""

    def picture(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
        return plot(settings, rows, kinds)

    def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
        return tuple(judge(settings, grouped(rows)))

    name = f"inputs/figure-{number}{ours}"
    source = OURS if ours else f"Saday2025, Fig. {number}"
    return Figure(name, title, settings, cells, run, picture, table, claims, source)


_ADVERS = (ADVERS_1, ADVERS_2, ADVERS_G)
# After 100 rounds what StableOpt lost while it learned is still most of its regret.
_SYNTHETIC = Settings(methods=names(*_ADVERS, STABLE, STABLE_4, STABLE_HALF), rounds=400)
_INSULIN = Settings(
    INSULIN,
    radii=(32.0,),  # sigma_s, in grams (section 5)
    attacks=(GAUSSIAN,),
    methods=names(*_ADVERS[:2], STABLE, STABLE_3, STABLE_THIRD),
)
_PENDULUM = Settings(
    PENDULUM,
    0.0,  # tau (appendix E.1)
    (2.5,),
    methods=names(*_ADVERS[:2], STABLE, STABLE_3, STABLE_03),
    rounds=250,  # appendix E.1
    side=8,  # 8^4 = 4096 points (appendix E.1)
)
# The caption says eps = 2.5, the text 2.
_PENDULUM_TEXT = replace(_PENDULUM, radii=(2.0,))
_MISSPECIFIED = replace(_SYNTHETIC, world=MISSPECIFIED, rounds=100)

FIGURES = (
    figure(
        3,
        "Lenient regret on the polynomial, with tau in reach of the moves and out of it",
        replace(_SYNTHETIC, radii=(0.5, 1.5)),
        (LENIENT,),
        figure_3,
    ),
    figure(4, "Lenient regret of doses of insulin", _INSULIN, (LENIENT,), figure_4),
    figure(
        6,
        "Lenient and robust satisficing regret of controllers of a pendulum",
        _PENDULUM,
        (LENIENT, SATISFICING),
        figure_6,
    ),
    figure(
        6,
        "Lenient and robust satisficing regret of controllers of a pendulum, moved by less",
        _PENDULUM_TEXT,
        (LENIENT, SATISFICING),
        figure_6,
        "-text",
    ),
    figure(
        7,
        "Robust satisficing regret on the polynomial, with tau in reach",
        _SYNTHETIC,
        (SATISFICING,),
        figure_7_or_8,
    ),
    figure(
        8, "Robust satisficing regret of doses of insulin", _INSULIN, (SATISFICING,), figure_7_or_8
    ),
    figure(
        9,
        "Lenient regret on the polynomial with a kernel that does not suit it",
        _MISSPECIFIED,
        (LENIENT,),
        figure_9,
    ),
    figure(
        10,
        "Robust satisficing regret on the polynomial with a kernel that does not suit it",
        _MISSPECIFIED,
        (SATISFICING,),
        figure_10,
    ),
)
