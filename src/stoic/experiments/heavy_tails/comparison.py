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
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from stoic.experiments import pictures
from stoic.experiments.claims import Beside, judge, not_above
from stoic.experiments.figure import OURS, Claim, Figure, Table, tabulate
from stoic.experiments.heavy_tails import algorithms
from stoic.experiments.heavy_tails.algorithms import ALGORITHMS, GP, NYSTROEM, PRINCIPAL, QFF, TGP
from stoic.experiments.heavy_tails.trials import Row, Settings, average, cells, paired, run
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
    return pictures.trajectories(
        [pictures.Panel(title, curves, (0, settings.rounds))],
        ["time-average regret $R_t / t$\n(units of max |f|)"],
        (8.6, 4.2),
        1,
        "deviation",
        place="outside right upper",
        fontsize=8,
    )


def by_method(rows: Sequence[Row]) -> dict[str, Trials[Row]]:
    """Trials of each method, in the order of the rows."""
    return {method: trials for (_, method), trials in grouped(rows).items()}


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """R_T / T of each method, and the paired difference to TGP-UCB."""
    groups = by_method(rows)

    def final(trials: Trials[Row]) -> str:
        ends = average(trials)[:, -1]
        spread = deviation(ends)
        return f"{ends.mean():.4f}" + ("" if np.isnan(spread) else f" ± {spread:.3f}")

    def less(trials: Trials[Row]) -> tuple[str, str]:
        if trials is groups[TGP.name]:
            return "", ""
        numbers = paired(trials, groups[TGP.name])
        difference = Estimate(numbers["paired_difference"], numbers["paired_standard_error"])
        return str(difference), f"{numbers['trials_with_less_regret']:.0f}"

    def truncated(trials: Trials[Row]) -> str:
        return f"{100.0 * np.mean(trials.final('distrusted') / trials.rounds[-1]):.2g} %"

    return tabulate(
        f"R_T / T at T = {settings.rounds}, in units of max |f|: mean ± standard deviation. "
        "Paired difference ± standard error. GP-UCB's width: 1.7 sqrt(2 ln(t + 2)), which the "
        "median of means has, too.",
        ("method",),
        (
            ("trials", lambda trials: str(len(trials))),
            ("R_T / T", final),
            (f"less {TGP.name}", lambda trials: less(trials)[0]),
            ("trials below it", lambda trials: less(trials)[1]),
            ("truncated", truncated),
        ),
        {(method,): trials for method, trials in groups.items()},
    )


_LESS = "{0.name} ends with less time-average regret than {1.name}."
_KINDS = ((NYSTROEM, QFF, ""), (algorithms.NYSTROEM_PLAYS, algorithms.QFF_HALVED, OURS),
          (PRINCIPAL, algorithms.QFF_HALVED, OURS))  # fmt: skip
OF_THE_PAPER = (
    Beside((QFF, NYSTROEM), (TGP,), "", _LESS),
    Beside((algorithms.QFF_HALVED, algorithms.NYSTROEM_PLAYS, PRINCIPAL), (TGP,), OURS, _LESS),
    # Features of one kind each: the authors', then ours
    *(
        Beside((ours,), (theirs,), source, f"{{0.name}} ends {where} {{1.name}}.", holds)
        for ours, theirs, said in _KINDS
        for where, holds, source in (
            ("no worse than", not_above, said),
            ("at most one standard error above", partial(not_above, errors=1.0), OURS),
        )
    ),
)
LEFT_OUT = (
    # Each with its own width
    Beside((TGP, QFF, NYSTROEM, PRINCIPAL), (GP,), OURS, _LESS),
    # Truncation alone: both have TGP-UCB's width
    Beside((TGP,), (algorithms.GP_WIDE,), OURS, _LESS),
    # The defences alone: all have GP-UCB's width
    Beside((*algorithms.SAME_WIDTH, algorithms.MOM), (GP,), OURS, _LESS),
)


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims of the paper, then comparisons that it leaves out."""
    groups, world = grouped(rows), settings.world
    return (
        *judge(groups, world, OF_THE_PAPER, "", paired),
        *about_records(settings),
        *judge(groups, world, LEFT_OUT, "Not in the paper: ", paired),
    )


def about_records(settings: Settings) -> list[Claim]:
    """Claims of section 6 about records: not Gaussian, by the test that it names, and heavy tails.

    Stocks are "mostly correlated", too.
    """
    recorded = WORLDS[settings.world](settings.seed, settings.data).recorded
    if recorded is None:
        return []
    tests = [
        float(stats.kstest((column - column.mean()) / column.std(ddof=1), "norm").pvalue)
        for column in recorded.T
    ]
    rejected = sum(p < 0.05 for p in tests)
    kurtosis = np.asarray(stats.kurtosis(recorded))
    claims = [
        Claim(
            "A Kolmogorov-Smirnov test at 5 % rejects that records are Gaussian, for every arm.",
            rejected == len(tests),
            {"arms": float(len(tests)), "rejected": float(rejected), "largest_p": max(tests)},
        ),
        Claim(
            "In favour of heavy tails: the records of every arm have an excess kurtosis above 0.",
            bool(np.all(kurtosis > 0.0)),
            {
                "arms": float(len(kurtosis)),
                "above_0": float(np.sum(kurtosis > 0.0)),
                "least": float(kurtosis.min()),
                "median": float(np.median(kurtosis)),
            },
        ),
    ]
    if settings.world == STOCKS:
        r = np.abs(np.asarray(np.corrcoef(recorded.T))[np.triu_indices(len(tests), 1)])
        shares = {"share_of_pairs": float(np.mean(r >= 0.5)), "mean_size": float(r.mean())}
        sentence = "Most pairs of stocks are correlated (at least 0.5 in size)."
        claims.append(Claim(sentence, shares["share_of_pairs"] > 0.5, shares))
    return claims


def figure(letter: str, title: str, settings: Settings) -> Figure[Settings, Row]:
    """Figure 1 of this letter."""
    name, source = f"heavy-tails/figure-1{letter}", f"Chowdhury2019, Fig. 1 ({letter})"
    title = f"Time-average regret {title}"
    return Figure(name, title, settings, cells, run, plot, table, claims, source)


def _known(world: str, formula: bool, **others: Any) -> Settings:
    """Leave out the methods that need a formula if there is none."""
    groups = algorithms.METHODS, algorithms.SAME_WIDTH
    first, second = ([one for one in group if formula or not one.formula] for group in groups)
    return Settings(world, names(*first), names(*second), **others)


FIGURES = (
    figure("a", "under Student's t noise, squared exponential kernel", _known(STUDENT, True)),
    figure("b", "of Pareto rewards, squared exponential kernel", _known(PARETO, True)),
    # QFF has no theory for Matern (c), and no formula where the kernel is a table (d): section 6.
    figure(
        "c", "under Student's t noise, Matern kernel", _known(MATERN, False, same_width_trials=5)
    ),
    # Section 6 has 10 trials of the stocks, and no T for records; m = 16^2 of the sensors
    figure("d", "on the prices of stocks", _known(STOCKS, False, trials=10, rounds=10_000)),
    figure(
        "e",
        "on the readings of light sensors",
        _known(SENSORS, True, trials=10, rounds=10_000, nodes=16),
    ),
)
