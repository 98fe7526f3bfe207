"""Figures 1 (a) to (e) of [Chowdhury2019]_: truncation once, and in each feature.

The paper compares TGP-UCB and ATA-GP-UCB and leaves out GP-UCB, whose theory does not cover heavy
tails. It is shown, with its own narrow width and with TGP-UCB's wide one; so is the median of
means, which the paper names in closing. The defences are compared with one width in the table.

What is claimed
---------------
Everything is judged by the mean of R_T / T over the trials, and paired over them: both methods meet
the same functions and the same noise. *No worse* is claimed twice: literally, and up to one
standard error of the paired difference. The features of the paper's claims are those that the
authors ran: 2 M^d of the quadrature, eq. (1), and a dictionary that draws once for each place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from stoic.experiments import claims as vocabulary
from stoic.experiments import pictures
from stoic.experiments.figure import OURS, Claim, Figure, Table
from stoic.experiments.heavy_tails.algorithms import (
    ALGORITHMS,
    GP,
    GP_WIDE,
    METHODS,
    MOM,
    NYSTROEM,
    NYSTROEM_NARROW,
    NYSTROEM_PLAYS,
    PRINCIPAL,
    PRINCIPAL_NARROW,
    QFF,
    QFF_HALVED,
    QFF_NARROW,
    SAME_WIDTH,
    TGP,
    TGP_NARROW,
    Algorithm,
)
from stoic.experiments.heavy_tails.settings import Settings
from stoic.experiments.heavy_tails.trials import Row, average, cells, paired, run
from stoic.experiments.heavy_tails.worlds import MATERN, PARETO, SENSORS, STOCKS, STUDENT, WORLDS
from stoic.experiments.statistics import Estimate, deviation
from stoic.experiments.trials import Trials, grouped, names


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot mean R_t / t of each method with a band of one standard deviation over the trials."""
    groups = by_method(rows)
    curves = [
        (ALGORITHMS[name], groups[name].rounds, average(groups[name])) for name in settings.methods
    ]
    title = f"{settings.world}: mean of {settings.trials} trials, band: one standard deviation"
    label = "time-average regret $R_t / t$\n(units of max |f|)"
    return pictures.trajectories(
        [pictures.Panel(title, curves)],
        settings.rounds,
        [label],
        (8.6, 4.2),
        1,
        "deviation",
        "outside right upper",
        fontsize=8,
    )


def by_method(rows: Sequence[Row]) -> dict[str, Trials[Row]]:
    """Trials of each method, in the order of the rows."""
    return {method: trials for (_, method), trials in grouped(rows).items()}


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """R_T / T of each method, and the paired difference to TGP-UCB."""
    groups, lines = by_method(rows), []
    for name, trials in groups.items():
        numbers, final = paired(trials, groups[TGP.name]), average(trials)[:, -1]
        error, spread = numbers["paired_standard_error"], deviation(final)
        less = (
            str(Estimate(numbers["paired_difference"], error)),
            f"{numbers['trials_with_less_regret']:.0f}",
        )
        share = np.mean(trials.final("distrusted") / trials.rounds[-1])
        lines.append(
            (
                name,
                str(len(final)),
                f"{final.mean():.4f}" + ("" if np.isnan(spread) else f" ± {spread:.3f}"),
                *(("", "") if name == TGP.name else less),
                f"{100.0 * share:.2g} %",
            )
        )
    caption = (
        f"R_T / T at T = {settings.rounds}, in units of max |f|: mean ± standard deviation. "
        f"Paired difference ± standard error. GP-UCB's width: 1.7 sqrt(2 ln(t + 2)), which the "
        "median of means has, too."
    )
    headings = ("method", "trials", "R_T / T", f"less {TGP.name}", "trials below it", "truncated")
    return Table(caption, headings, tuple(lines))


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims of the paper, then comparisons that it leaves out."""
    groups = by_method(rows)
    return (*of_the_paper(groups), *not_gaussian(settings), *left_out(groups))


def not_gaussian(settings: Settings) -> list[Claim]:
    """Claim that the records of no arm are Gaussian, by the test that section 6 names."""
    recorded = WORLDS[settings.world](settings.seed, settings.data).recorded
    if recorded is None:
        return []
    tests = [
        float(stats.kstest((column - column.mean()) / column.std(ddof=1), "norm").pvalue)
        for column in recorded.T
    ]
    rejected = sum(p < 0.05 for p in tests)
    return [
        Claim(
            "A Kolmogorov-Smirnov test at 5 % rejects that records are Gaussian, for every arm.",
            rejected == len(tests),
            {"arms": float(len(tests)), "rejected": float(rejected), "largest_p": max(tests)},
        )
    ]


def of_the_paper(groups: dict[str, Trials[Row]]) -> list[Claim]:
    """Claim ATA-GP-UCB below TGP-UCB, and Nystroem features no worse than quadrature."""
    found = [
        less(groups, ours, TGP, "" if ours in (QFF, NYSTROEM) else OURS)
        for ours in (QFF, NYSTROEM, QFF_HALVED, NYSTROEM_PLAYS, PRINCIPAL)
        if ours.name in groups
    ]
    if QFF.name in groups:
        # Features of one kind each: the authors', then ours
        for ours, theirs in (
            (NYSTROEM, QFF),
            (NYSTROEM_PLAYS, QFF_HALVED),
            (PRINCIPAL, QFF_HALVED),
        ):
            numbers = paired(groups[ours.name], groups[theirs.name])
            gap, error = numbers["paired_difference"], numbers["paired_standard_error"]
            for holds, where, source in (
                (gap <= 0.0, "no worse than", "" if ours is NYSTROEM else OURS),
                (gap <= error, "at most one standard error above", OURS),
            ):
                sentence = f"{ours.name} ends {where} {theirs.name}."
                found.append(Claim(sentence, holds, numbers, source))
    return found


def left_out(groups: dict[str, Trials[Row]]) -> list[Claim]:
    """Claims about GP-UCB, and about defences with one width."""
    pairs = (
        # Each with its own width
        *((ours, GP) for ours in (TGP, QFF, NYSTROEM, PRINCIPAL)),
        # Truncation alone: both have TGP-UCB's width
        (TGP, GP_WIDE),
        # The defences alone: all have GP-UCB's width
        *((ours, GP) for ours in (TGP_NARROW, QFF_NARROW, NYSTROEM_NARROW, PRINCIPAL_NARROW, MOM)),
    )
    return [
        less(groups, ours, theirs, OURS, "Not in the paper: ")
        for ours, theirs in pairs
        if ours.name in groups and theirs.name in groups
    ]


def less(
    groups: dict[str, Trials[Row]],
    ours: Algorithm,
    theirs: Algorithm,
    source: str,
    start: str = "",
) -> Claim:
    """Claim that one final mean is below another."""
    sentence = f"{start}{ours.name} ends with less time-average regret than {theirs.name}."
    return vocabulary.less(sentence, paired(groups[ours.name], groups[theirs.name]), source)


def figure(letter: str, title: str, settings: Settings) -> Figure[Settings, Row]:
    """Figure 1 of this letter."""
    name, source = f"heavy-tails/figure-1{letter}", f"Chowdhury2019, Fig. 1 ({letter})"
    title = f"Time-average regret {title}"
    return Figure(name, title, settings, cells, run, plot, table, claims, source)


_ALL = names(*METHODS), names(*SAME_WIDTH)
# QFF has no theory for Matern (c), and no formula where the kernel is a table (d): section 6.
_NO_FORMULA = (
    names(*(a for a in METHODS if not a.formula)),
    names(*(a for a in SAME_WIDTH if not a.formula)),
)

FIGURES = (
    figure("a", "under Student's t noise, squared exponential kernel", Settings(STUDENT, *_ALL)),
    figure("b", "of Pareto rewards, squared exponential kernel", Settings(PARETO, *_ALL)),
    figure(
        "c",
        "under Student's t noise, Matern kernel",
        Settings(MATERN, *_NO_FORMULA, same_width_trials=5),
    ),
    # Section 6 has 10 trials of the stocks, and no T for records
    figure(
        "d", "on the prices of stocks", Settings(STOCKS, *_NO_FORMULA, trials=10, rounds=10_000)
    ),
    figure(
        "e",
        "on the readings of light sensors",
        Settings(SENSORS, *_ALL, trials=10, rounds=10_000, nodes=16),  # m = 16^2 (section 6)
    ),
)
