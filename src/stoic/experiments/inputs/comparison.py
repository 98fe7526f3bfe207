"""Figures 3, 4 and 6 to 10 of [Saday2025]_: AdveRS and StableOpt while inputs are moved.

What is claimed
---------------
*Linear* and *flat* are judged by the share of a mean curve's regret that falls in the second half
of the rounds: at least 0.4, and at most 0.1. One half is a straight line; no regret at all is flat.
*Less* is the mean at the end, on the same trials. A threshold is *consistently* met if in the
second half f is below it in at most one round of twenty. Figures 3, 4, 6 and 9 are of lenient
regret, figures 7, 8 and 10 of robust satisficing regret, figure 6 has both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.claims import (
    LINEAR,
    Beside,
    flattens,
    grows_linearly,
    judge,
    late,
    second_half,
)
from stoic.experiments.figure import OURS, Claim, Figure, Table, tabulate
from stoic.experiments.inputs import algorithms
from stoic.experiments.inputs.algorithms import ADVERS_1, ADVERS_2, ADVERS_G, STABLE, Algorithm
from stoic.experiments.inputs.trials import Row, Settings, cells, run, share_below
from stoic.experiments.inputs.worlds import GAUSSIAN, INSULIN, MISSPECIFIED, PENDULUM, world
from stoic.experiments.statistics import Estimate, deviation
from stoic.experiments.trials import Groups, Trials, comparison, grouped, names

Kind = Literal["lenient", "robust satisficing"]
LENIENT: Kind = "lenient"
SATISFICING: Kind = "robust satisficing"
COLUMNS: dict[Kind, str] = {LENIENT: "lenient_regret", SATISFICING: "satisficing_regret"}
Rule = Callable[[Groups[Row], str], list[Claim]]  # claims about a panel
MISSED = 0.05  # of the rounds of the second half, for a threshold that is met consistently


def growth(trials: Trials[Row], kind: Kind) -> dict[str, float]:
    """Compute the numbers behind *linear* and *flat*."""
    final, share = Estimate.of(trials.final(COLUMNS[kind])), late(trials, COLUMNS[kind])
    return {
        "share_in_second_half": 0.0 if math.isnan(share) else share,
        "mean": final.mean,
        "standard_error": final.error,
        "rounds_below_the_threshold": float(share_below(trials).mean()),
        "trials": float(len(trials)),
    }


def start(panel: str) -> str:
    """Begin a claim about a panel."""
    return f"{panel[0].upper()}{panel[1:]}"


def flat(*methods: Algorithm, kind: Kind = LENIENT, source: str = "") -> Rule:
    """Claim that mean curves are flat."""
    return _growing(flattens, methods, kind, source)


def linear(*methods: Algorithm) -> Rule:
    """Claim that mean curves of lenient regret are linear."""
    return _growing(grows_linearly, methods, LENIENT, "")


def _growing(
    judged: Callable[..., Claim], methods: Sequence[Algorithm], kind: Kind, source: str
) -> Rule:
    def rule(groups: Groups[Row], panel: str) -> list[Claim]:
        regret = f"{start(panel)}: the {kind} regret of"
        found = ((one.name, growth(groups[panel, one.name], kind)) for one in methods)
        return [judged(f"{regret} {name}", numbers, source) for name, numbers in found]

    return rule


def less(ours: Algorithm, *theirs: Algorithm) -> Rule:
    """Claim that one final mean of lenient regret is below others, on the same trials."""
    pair = Beside((ours,), theirs, "", "{0.name} ends with less lenient regret than {1.name}.")
    compare = partial(comparison, column=COLUMNS[LENIENT])
    return lambda groups, panel: judge(groups, panel, [pair], f"{start(panel)}: ", compare)


def meets(method: Algorithm, always: bool = True) -> Rule:
    """Claim that a method consistently meets the threshold in the second half, or does not."""

    def rule(groups: Groups[Row], panel: str) -> list[Claim]:
        trials = groups[panel, method.name]
        T = int(trials.rounds[-1])
        below = second_half(trials.curves("below"), trials.rounds)
        missed = Estimate.of(below / (T - T // 2))
        verb = "consistently meets" if always else "does not always meet"
        sentence = f"{start(panel)}: {method.name} {verb} the threshold ("
        sentence += f"{'at most' if always else 'more than'} {MISSED:.0%} of the rounds of the "
        numbers = {"rounds_below_the_threshold": missed.mean, "standard_error": missed.error}
        holds = (missed.mean <= MISSED) == always
        return [Claim(f"{sentence}second half are below it).", holds, numbers)]

    return rule


def all_less(ours: Sequence[Algorithm], theirs: Sequence[Algorithm]) -> Rule:
    """Claim that every one of some final means of lenient regret is below all of others."""

    def rule(groups: Groups[Row], panel: str) -> list[Claim]:
        ends = {
            one: float(groups[panel, one.name].final(COLUMNS[LENIENT]).mean())
            for one in (*ours, *theirs)
        }
        holds = max(ends[one] for one in ours) < min(ends[one] for one in theirs)
        sentence = f"{start(panel)}: every AdveRS ends with less lenient regret than StableOpt with"
        sentence += " a wrong radius."
        return [Claim(sentence, holds, {f"mean_of_{k.name}": v for k, v in ends.items()})]

    return rule


def all_linear(groups: Groups[Row], panel: str) -> list[Claim]:
    """Claim that every mean curve of lenient regret is linear."""
    shares = {
        f"share_in_second_half_of_{name}": growth(trials, LENIENT)["share_in_second_half"]
        for (where, name), trials in groups.items()
        if where == panel
    }
    sentence = f"{start(panel)}: the lenient regret of every method grows linearly (at least "
    sentence += f"{LINEAR:g} of it in the second half)."
    return [Claim(sentence, min(shares.values()) >= LINEAR, shares)]


def least(ours: Algorithm) -> Rule:
    """Claim that one final mean of lenient regret is below all others."""

    def rule(groups: Groups[Row], panel: str) -> list[Claim]:
        ends = {
            f"mean_of_{name}": float(trials.final(COLUMNS[LENIENT]).mean())
            for (where, name), trials in groups.items()
            if where == panel
        }
        own = f"mean_of_{ours.name}"
        holds = all(ends[own] < end for name, end in ends.items() if name != own)
        sentence = f"{start(panel)}: {ours.name} ends with the least lenient regret of all."
        return [Claim(sentence, holds, ends)]

    return rule


def somewhere_linear(settings: Settings, groups: Groups[Row]) -> Claim:
    """Claim that StableOpt with a wrong radius *can* have linear robust satisficing regret."""
    numbers = {
        f"share_in_second_half_of_{wrong.name}, {panel}": growth(
            groups[panel, wrong.name], SATISFICING
        )["share_in_second_half"]
        for panel in settings.panels
        for wrong in _WRONG
    }
    return Claim(
        "Somewhere StableOpt with a wrong radius has linear robust satisficing regret (at least "
        f"{LINEAR:g} of it in the second half).",
        max(numbers.values()) >= LINEAR,
        numbers,
    )


def low_threshold(settings: Settings, groups: Groups[Row]) -> Claim:
    """Claim that the threshold is about the 25th percentile of f (appendix E.1)."""
    values = world(settings.world, settings.side, settings.data).problem.values
    below = float(np.mean(values < settings.threshold))
    sentence = f"tau = {settings.threshold:g} is about the 25th percentile of f (20th to 30th)."
    return Claim(sentence, 0.2 <= below <= 0.3, {"share_of_points_below": below})


def plot(settings: Settings, rows: Sequence[Row], kinds: Sequence[Kind]) -> pictures.Picture:
    """Plot mean cumulative regret with half a standard deviation, by attack and radius."""
    groups, keys = grouped(rows), {key: name for name, key in settings.panels.items()}
    shown = [(kind, radius) for kind in kinds for radius in settings.radii]
    panels = [
        panel_of(groups, keys[attack, radius], settings, algorithms.ALGORITHMS, kind)
        for kind, radius in shown
        for attack in settings.attacks
    ]
    lines, columns = len(shown), len(settings.attacks)
    return pictures.trajectories(
        panels,
        [f"{kind} regret\n(units of f)" for kind, _ in shown],
        (3.1 * columns + 1.2 + 1.6 * (columns == 1), 2.5 * lines + 1.2),
        columns,
        "half",
        f"{start(settings.world)}, tau = {settings.threshold:g}: mean of {settings.trials} runs, "
        "band: sd / 2",
        title_size=9,
        one_scale=False,
        ncols=3,
        fontsize=8,
    )


def panel_of(
    groups: Groups[Row], panel: str, settings: Any, looks: Mapping[str, Algorithm], kind: Kind
) -> pictures.Panel:
    """Curves of the methods in one panel."""
    found = [(looks[name], groups[panel, name]) for name in settings.methods]
    curves = [(look, trials.rounds, trials.curves(COLUMNS[kind])) for look, trials in found]
    return pictures.Panel(panel, curves, (0, settings.rounds))


def table(settings: Any, rows: Sequence[Row]) -> Table:
    """Table of both regrets of each method in each panel, and of their shares."""

    def regret(kind: Kind) -> Callable[[Trials[Row]], str]:
        def entry(trials: Trials[Row]) -> str:
            final = trials.final(COLUMNS[kind])
            spread = deviation(final) / 2.0
            return f"{final.mean():.2f}" + ("" if math.isnan(spread) else f" ± {spread:.2f}")

        return entry

    def share(kind: Kind) -> Callable[[Trials[Row]], str]:
        return lambda trials: f"{growth(trials, kind)['share_in_second_half']:.2f}"

    return tabulate(
        f"Mean over {settings.trials} runs ± sd / 2 at T = {settings.rounds}, in units of f. Share:"
        " of the mean curve, in the second half of the rounds. Below: rounds with f < tau.",
        ("moves", "method"),
        (
            ("lenient regret", regret(LENIENT)),
            ("share", share(LENIENT)),
            ("satisficing regret", regret(SATISFICING)),
            ("share", share(SATISFICING)),
            ("below", lambda trials: f"{100.0 * np.mean(share_below(trials)):.0f} %"),
        ),
        grouped(rows),
    )


def figure(
    number: int,
    title: str,
    settings: Settings,
    kinds: Sequence[Kind],
    *rules: Sequence[Rule],
    reading: str = "",
    last: Callable[[Settings, Groups[Row]], Claim] | None = None,
) -> Figure[Settings, Row]:
    """Figure of this number.

    Parameters
    ----------
    number, title, settings, kinds:
        Of the figure; and the regrets in its picture.
    rules:
        Claims about each panel, for each of the radii.
    reading:
        Name of a reading of our own.
    last:
        Claim about all panels together.
    """

    def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
        groups, by_radius = grouped(rows), dict(zip(settings.radii, rules, strict=False))
        found: list[Claim] = []
        for panel, (_, radius) in settings.panels.items():
            for rule in by_radius.get(radius, ()):
                found += rule(groups, panel)
        return (*found, *([last(settings, groups)] if last else []))

    name = f"inputs/figure-{number}{reading}"
    source = OURS if reading else f"Saday2025, Fig. {number}"
    picture = partial(plot, kinds=kinds)
    return Figure(name, title, settings, cells, run, picture, table, claims, source)


_ADVERS = (ADVERS_1, ADVERS_2, ADVERS_G)
_WRONG = algorithms.STABLE_4, algorithms.STABLE_HALF
_OF_INSULIN = algorithms.STABLE_3, algorithms.STABLE_THIRD
_OF_THE_PENDULUM = algorithms.STABLE_3, algorithms.STABLE_03
# After 100 rounds what StableOpt lost while it learned is still most of its regret.
_SYNTHETIC = Settings(methods=names(*_ADVERS, STABLE, *_WRONG), rounds=400)
_INSULIN = Settings(
    INSULIN,
    radii=(32.0,),  # sigma_s, in grams (section 5)
    attacks=(GAUSSIAN,),
    methods=names(*_ADVERS[:2], STABLE, *_OF_INSULIN),
)
_PENDULUM = Settings(
    PENDULUM,
    0.0,  # tau (appendix E.1)
    (2.5,),
    methods=names(*_ADVERS[:2], STABLE, *_OF_THE_PENDULUM),
    rounds=250,  # appendix E.1
    side=8,  # 8^4 = 4096 points (appendix E.1)
)
# The caption says eps = 2.5, the text 2.
_PENDULUM_TEXT = replace(_PENDULUM, radii=(2.0,))
_MISSPECIFIED = replace(_SYNTHETIC, world=MISSPECIFIED)  # "the same parameters"

_IN_REACH = (  # Assumption 3.8 holds: figure 3 (a)
    flat(ADVERS_2),
    linear(*_WRONG),
    less(ADVERS_1, *_WRONG),
    # AdveRS-2 "again" outperforms it, even with the right radius (appendix E.1)
    less(ADVERS_2, STABLE, *_WRONG),
    # AdveRS-2 "consistently meets the threshold", AdveRS-1 is "not always reaching" it (section 5)
    meets(ADVERS_2),
    meets(ADVERS_1, always=False),
)
# It fails: all are linear (Remark 3.9), RS-G with p = 2 has the least, and AdveRS "maintain
# robustness towards the goal" (section 5)
_OUT_OF_REACH = (all_linear, least(ADVERS_G), all_less(_ADVERS, _WRONG))
# Section 5: none is sublinear, AdveRS beats the wrong radii, the right one is best
_FOUR = (all_linear, less(ADVERS_1, *_OF_INSULIN), less(ADVERS_2, *_OF_INSULIN), least(STABLE))
_SIX = (  # Appendix E.1: AdveRS-2 beats StableOpt even with the right radius; AdveRS-1 is linear
    flat(ADVERS_2, source=OURS),
    less(ADVERS_2, STABLE, *_OF_THE_PENDULUM),
    linear(ADVERS_1),
    less(ADVERS_1, *_OF_THE_PENDULUM),
    flat(*_ADVERS[:2], kind=SATISFICING, source=OURS),
)
_SEVEN = (flat(*_ADVERS, kind=SATISFICING, source=OURS),)  # which the paper only shows
_EIGHT = (flat(*_ADVERS[:2], kind=SATISFICING, source=OURS),)
# Appendix E.3: AdveRS-2 "maintains strong performance", AdveRS-1 is below a wrong radius
_NINE = (flat(ADVERS_2), less(ADVERS_1, *_WRONG), less(ADVERS_2, STABLE, *_WRONG))
_TEN = (flat(*_ADVERS, kind=SATISFICING),)  # "our algorithms achieve sublinear results"
_POLYNOMIAL = "regret on the polynomial"
_LEARNED = "Lenient and robust satisficing regret of controllers of a pendulum"
_BOTH = (LENIENT, SATISFICING)

FIGURES = (
    figure(
        3,
        f"Lenient {_POLYNOMIAL}, with tau in reach of the moves and out of it",
        replace(_SYNTHETIC, radii=(0.5, 1.5)),
        (LENIENT,),
        _IN_REACH,
        _OUT_OF_REACH,
    ),
    figure(4, "Lenient regret of doses of insulin", _INSULIN, (LENIENT,), _FOUR),
    figure(6, _LEARNED, _PENDULUM, _BOTH, _SIX, last=low_threshold),
    figure(6, f"{_LEARNED}, moved by less", _PENDULUM_TEXT, _BOTH, _SIX, reading="-text"),
    figure(
        7,
        f"Robust satisficing {_POLYNOMIAL}, with tau in reach",
        _SYNTHETIC,
        (SATISFICING,),
        _SEVEN,
    ),
    figure(8, "Robust satisficing regret of doses of insulin", _INSULIN, (SATISFICING,), _EIGHT),
    figure(
        9,
        f"Lenient {_POLYNOMIAL} with a kernel that does not suit it",
        _MISSPECIFIED,
        (LENIENT,),
        _NINE,
    ),
    figure(
        10,
        f"Robust satisficing {_POLYNOMIAL} with a kernel that does not suit it",
        _MISSPECIFIED,
        (SATISFICING,),
        _TEN,
        last=somewhere_linear,
    ),
)
