"""Figures 1 (a) to (e) of [Chowdhury2019]_: truncation once, and in each feature.

The paper compares TGP-UCB and ATA-GP-UCB and leaves out GP-UCB, whose theory does not cover heavy
tails. It is shown, with its own narrow width and with TGP-UCB's wide one; so is the median of
means, which the paper names in closing. The defences are compared with one width in the table.

What is claimed
---------------
Everything is judged by the mean of R_T / T over the trials, and paired over them: both methods meet
the same functions and the same noise. *No worse* is claimed twice: literally, and up to one
standard error of the paired difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoic.experiments import claims as vocabulary
from stoic.experiments import pictures, regret
from stoic.experiments.figure import OURS, Claim, Figure, Table
from stoic.experiments.heavy_tails.algorithms import (
    ALGORITHMS,
    GP,
    GP_WIDE,
    METHODS,
    MOM,
    NYSTROEM,
    NYSTROEM_NARROW,
    PRINCIPAL,
    PRINCIPAL_NARROW,
    QFF,
    QFF_NARROW,
    SAME_WIDTH,
    TGP,
    TGP_NARROW,
    Algorithm,
)
from stoic.experiments.heavy_tails.settings import Settings
from stoic.experiments.heavy_tails.trials import Row, Trials, cells, grouped, paired, run
from stoic.experiments.heavy_tails.worlds import MATERN, PARETO, SENSORS, STOCKS, STUDENT


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot mean R_t / t of each method with a band of one standard deviation over the trials."""
    picture = pictures.blank(8.6, 4.2)
    axes = picture.add_subplot()
    by_method = grouped(rows)
    for name in settings.methods:
        trials = by_method[name]
        regret.curve(axes, trials.rounds, trials.average, ALGORITHMS[name], band="deviation")
    axes.set_xlim(0, settings.rounds)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("round t")
    axes.set_ylabel("time-average regret $R_t / t$\n(units of max |f|)")
    axes.grid(alpha=0.3, lw=0.5)
    axes.set_title(
        f"{settings.world}: mean of {settings.trials} trials, band: one standard deviation",
        fontsize=10,
    )
    picture.legend(loc="outside right upper", frameon=False, fontsize=8)
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """R_T / T of each method, and the paired difference to TGP-UCB."""
    by_method = grouped(rows)
    reference = by_method[TGP.name]
    lines = []
    for name, trials in by_method.items():
        run = trials.among(trials.seeds)
        numbers = paired(trials, reference)
        same = name == TGP.name
        error = numbers["paired_standard_error"]
        difference = regret.Estimate(numbers["paired_difference"], error)
        deviation = f" ± {run.final.std(ddof=1):.3f}" if len(run.final) > 1 else ""
        lines.append(
            (
                name,
                str(len(run.final)),
                f"{run.final.mean():.4f}{deviation}",
                "" if same else str(difference),
                "" if same else f"{numbers['trials_with_less_regret']:.0f}",
                f"{100.0 * trials.distrusted.mean():.2g} %",
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
    by_method = grouped(rows)
    return (*of_the_paper(by_method), *left_out(by_method))


def of_the_paper(by_method: dict[str, Trials]) -> list[Claim]:
    """Claim ATA-GP-UCB below TGP-UCB, and Nystroem features no worse than quadrature."""
    found = [
        less(by_method, ours, TGP, source)
        for ours, source in ((QFF, ""), (NYSTROEM, ""), (PRINCIPAL, OURS))
        if ours.name in by_method
    ]
    if QFF.name in by_method:
        for ours in (NYSTROEM, PRINCIPAL):
            numbers = paired(by_method[ours.name], by_method[QFF.name])
            gap, error = numbers["paired_difference"], numbers["paired_standard_error"]
            found += [
                Claim(
                    f"{ours.name} ends no worse than {QFF.name}.",
                    gap <= 0.0,
                    numbers,
                    "" if ours is NYSTROEM else OURS,
                ),
                Claim(
                    f"{ours.name} ends at most one standard error above {QFF.name}.",
                    gap <= error,
                    numbers,
                    OURS,
                ),
            ]
    return found


def left_out(by_method: dict[str, Trials]) -> list[Claim]:
    """Claims about GP-UCB, and about defences with one width."""
    pairs = (
        *((ours, GP) for ours in (TGP, QFF, NYSTROEM, PRINCIPAL)),
        (TGP, GP_WIDE),
        *((ours, GP) for ours in (TGP_NARROW, QFF_NARROW, NYSTROEM_NARROW, PRINCIPAL_NARROW, MOM)),
    )
    return [
        less(by_method, ours, theirs, OURS, "Not in the paper: ")
        for ours, theirs in pairs
        if ours.name in by_method and theirs.name in by_method
    ]


def less(
    by_method: dict[str, Trials], ours: Algorithm, theirs: Algorithm, source: str, start: str = ""
) -> Claim:
    """Claim that one final mean is below another."""
    numbers = paired(by_method[ours.name], by_method[theirs.name])
    sentence = f"{start}{ours.name} ends with less time-average regret than {theirs.name}."
    return vocabulary.less(sentence, numbers, source)


def figure(letter: str, title: str, settings: Settings) -> Figure[Settings, Row]:
    """Figure 1 of this letter."""
    source = f"Chowdhury2019, Fig. 1 ({letter})"
    name = f"heavy-tails/figure-1{letter}"
    return Figure(name, title, settings, cells, run, plot, table, claims, source)


_ALL = tuple(algorithm.name for algorithm in METHODS)
_SAME_WIDTH = tuple(algorithm.name for algorithm in SAME_WIDTH)
_NO_FORMULA = tuple(a.name for a in METHODS if not a.formula)
_SAME_WIDTH_NO_FORMULA = tuple(a.name for a in SAME_WIDTH if not a.formula)

FIGURES = (
    figure(
        "a",
        "Time-average regret under Student's t noise, squared exponential kernel",
        Settings(STUDENT, _ALL, _SAME_WIDTH),
    ),
    figure(
        "b",
        "Time-average regret of Pareto rewards, squared exponential kernel",
        Settings(PARETO, _ALL, _SAME_WIDTH),
    ),
    figure(
        "c",
        "Time-average regret under Student's t noise, Matern kernel",
        Settings(MATERN, _NO_FORMULA, _SAME_WIDTH_NO_FORMULA, same_width_trials=5),
    ),
    figure(
        "d",
        "Time-average regret on the prices of stocks",
        Settings(STOCKS, _NO_FORMULA, _SAME_WIDTH_NO_FORMULA, trials=10, rounds=10_000),
    ),
    figure(
        "e",
        "Time-average regret on the readings of light sensors",
        Settings(SENSORS, _ALL, _SAME_WIDTH, trials=10, rounds=10_000, nodes=16),
    ),
)
