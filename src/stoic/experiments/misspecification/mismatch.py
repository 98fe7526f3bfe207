"""Too smooth a kernel: a squared exponential one for a draw of a Matern 1/2 process.

Such a draw is in no space of a squared exponential kernel. For each norm B there is a least eps,
the distance to the nearest function of norm B, which is computed here from both sides. The
assumptions are therefore true, for any trade of norm against error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from stoic.data import Array
from stoic.domains import Finite
from stoic.experiments import pictures
from stoic.experiments.claims import LINEAR
from stoic.experiments.figure import Cell, Claim, Figure, Table, crossed, tabulate
from stoic.experiments.misspecification.algorithms import (
    ALGORITHMS,
    EC,
    GP,
    PHASED,
    RIGHT,
    THEOREMS,
    Assumed,
)
from stoic.experiments.misspecification.trials import Row, average, late, measured, paired, play
from stoic.experiments.statistics import Estimate
from stoic.experiments.trials import Trials, grouped, names
from stoic.kernels import RBF, Matern12
from stoic.posteriors.information import information_bounds
from stoic.posteriors.prior import Prior
from stoic.problems.draws import gaussian_draw
from stoic.problems.misspecified import Approximated, nearest
from stoic.problems.tabulated import Tabulated


@dataclass(frozen=True, slots=True)
class Settings:
    """Draws of a rough process on a line, modelled by a smooth one.

    Attributes
    ----------
    norms:
        B, the assumed norm, with the least true eps for it; a panel each.
    methods:
        Names of those with the smooth kernel; GP-UCB with the right one is the reference.
    points:
        N, evenly spaced on [0, 1].
    lengthscale, true_lengthscale:
        Those of the squared exponential kernel, and of the Matern 1/2 process. Draws are divided by
        max |f|.
    noise_sd:
        sigma; lambda = sigma^2.
    """

    trials: int = 20
    rounds: int = 10_000
    seed: int = 0
    norms: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    methods: tuple[str, ...] = names(GP, EC, PHASED)
    points: int = 100
    lengthscale: float = 0.1
    true_lengthscale: float = 0.5
    noise_sd: float = 0.1


def panel(norm: float) -> str:
    """Name of an assumption."""
    return f"B = {norm:g}"


REFERENCE = "right kernel"


def cells(settings: Settings) -> list[Cell]:
    """Every method on every draw, assuming every norm; and the reference."""
    seeds = settings.seed, settings.trials
    return [
        *crossed(map(panel, settings.norms), settings.methods, *seeds),
        *crossed([REFERENCE], [RIGHT.name], *seeds),
    ]


def truth(settings: Settings, seed: int) -> Tabulated:
    """Draw f, scaled to max |f| = 1."""
    points = Finite(np.linspace(0.0, 1.0, settings.points))
    drawn = gaussian_draw(points, Matern12(settings.true_lengthscale), seed)
    return Tabulated("rough draw", points, drawn.values / np.abs(drawn.values).max())


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one draw under one assumption."""
    f, noise = truth(settings, cell.seed), settings.noise_sd**2
    if cell.panel == REFERENCE:
        # On N points f is in the space of its own kernel: eps = 0, and its least norm is known
        kernel = Matern12(settings.true_lengthscale)
        K = kernel(f.domain.points, f.domain.points)
        norm = float(np.sqrt(f.values @ np.linalg.solve(K, f.values)))
        problem, prior = Approximated(f, f.values, norm), Prior(kernel, noise)
    else:
        smooth = RBF(settings.lengthscale)
        norm = next(norm for norm in settings.norms if panel(norm) == cell.panel)
        problem, prior = nearest(f, smooth, norm), Prior(smooth, noise)
    assumed = Assumed(prior, problem.norm, problem.error, settings.rounds)
    return [play(cell, problem, ALGORITHMS[cell.method], assumed, settings.noise_sd)]


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot eps and mean R_T / T by B, with bands of one standard error."""
    groups, norms = grouped(rows), np.array(settings.norms)
    picture = pictures.blank(9.2, 3.6)
    left, right = picture.subplots(1, 2)

    def over_norms(method: str, of: Callable[[Trials[Row]], Array]) -> Array:
        return np.stack([of(groups[panel(norm), method]) for norm in settings.norms], axis=1)

    errors = over_norms(settings.methods[0], lambda trials: trials.final("error"))
    pictures.curve(left, replace(GP, name="eps"), norms, errors)
    for method in settings.methods:
        pictures.curve(right, ALGORITHMS[method], norms, over_norms(method, average))
    flat = np.repeat(average(groups[REFERENCE, RIGHT.name])[:, None], len(norms), axis=1)
    pictures.curve(right, RIGHT, norms, flat)
    left.set_ylabel("least eps (units of max |f|)")
    right.set_ylabel(f"$R_T / T$ at T = {settings.rounds:,}")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(norms, [f"{norm:g}" for norm in norms])
        axes.set_xlabel("assumed norm B")
        axes.set_ylim(bottom=0.0)
        axes.grid(alpha=0.3, lw=0.5)
    pictures.legend(picture, [right], fontsize=8)
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """R_T / T, also in units of eps, and whether the best point was lost."""

    def in_errors(trials: Trials[Row]) -> str:
        if trials.ends[0].panel == REFERENCE:
            return ""
        return str(Estimate.of(average(trials) / trials.final("error")))

    return tabulate(
        f"T = {settings.rounds}, {settings.trials} draws, units of max |f|: mean ± one standard "
        "error. Late: the share of the regret that fell in the second half; 0.5 is linear. Lost: "
        "trials in which the best point was ruled out.",
        ("assumed", "method"),
        (
            ("eps", lambda trials: str(Estimate.of(trials.final("error")))),
            ("R_T / T", lambda trials: str(Estimate.of(average(trials)))),
            ("R_T / (eps T)", in_errors),
            ("late", lambda trials: f"{late(trials):.2f}"),
            ("lost", lambda trials: str(sum(not row.best_left for row in trials.ends))),
        ),
        grouped(rows),
    )


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Certificate of eps, and the cost of too smooth a kernel for each method."""
    groups = grouped(rows)
    reference = groups[REFERENCE, RIGHT.name]
    by_method = {
        method: [groups[panel(norm), method] for norm in settings.norms]
        for method in settings.methods
    }
    lates = [late(trials) for trials in by_method[GP.name]]
    not_linear = f"With the right kernel the regret of GP-UCB is not linear: less than {LINEAR:g} "
    linear = "With the smooth kernel the regret of GP-UCB is linear, for every norm."
    right = "GP-UCB with the right kernel has less regret than with the smooth one"
    return (
        certified(rows),
        Claim(
            f"{not_linear}of it falls in the second half.",
            late(reference) < LINEAR,
            measured(reference),
        ),
        Claim(
            linear,
            all(each >= LINEAR for each in lates),
            by_norm(settings, "share_in_second_half", lates),
        ),
        *(at_most(settings, method, trials) for method, trials in by_method.items()),
        less(
            settings, f"{EC.name} has less regret than {GP.name}",
            by_method[EC.name], by_method[GP.name],
        ),
        less(
            settings, f"Not in the paper: {PHASED.name} has less regret than {EC.name}",
            by_method[PHASED.name], by_method[EC.name],
        ),
        more_norm(settings, by_method[EC.name]),
        less(settings, right, [reference] * len(settings.norms), by_method[GP.name]),
    )  # fmt: skip


def certified(rows: Sequence[Row]) -> Claim:
    """Claim that eps is the least one."""
    gaps = [1.0 - row.error_at_least / row.error for row in rows if row.panel != REFERENCE]
    return Claim(
        "eps is known from both sides, within a thousandth.",
        max(gaps) <= 1e-3,
        {"largest_relative_gap": max(gaps)},
    )


def at_most(settings: Settings, method: str, trials: list[Trials[Row]]) -> Claim:
    """Claim that R_T / (eps T) is at most sqrt(gamma_T), without constants; 2 for GP-UCB.

    2 eps is lost where the best point stands out by eps and all others are too low by eps.
    """
    plain = method == GP.name
    most = 2.0 if plain else math.sqrt(gain(settings))
    ratios = [float((average(t) / t.final("error")).mean()) for t in trials]
    return Claim(
        f"{'Not in the paper: ' if plain else ''}{method} with the smooth kernel loses at most "
        f"{'2 eps' if plain else 'eps sqrt(gamma_T)'} a round, for every norm.",
        all(ratio <= most for ratio in ratios),
        {**by_norm(settings, "regret_per_round_over_eps", ratios), "most": most},
        THEOREMS.get(method, ""),
    )


@cache
def gain(settings: Settings) -> float:
    """Upper bound on gamma_T of the smooth kernel."""
    points = Finite(np.linspace(0.0, 1.0, settings.points))
    prior = Prior(RBF(settings.lengthscale), settings.noise_sd**2)
    return information_bounds(prior, points, settings.rounds).upper


def less(
    settings: Settings, said: str, ours: Sequence[Trials[Row]], theirs: Sequence[Trials[Row]]
) -> Claim:
    """Claim that one method is below another, for every norm."""
    pairs = zip(ours, theirs, strict=True)
    differences = [paired(*pair)["paired_difference"] for pair in pairs]
    numbers = by_norm(settings, "paired_difference", differences)
    return Claim(f"{said}, for every norm.", all(each < 0.0 for each in differences), numbers)


def more_norm(settings: Settings, trials: list[Trials[Row]]) -> Claim:
    """Claim that a smaller eps is worth its larger norm."""
    low, high = settings.norms[0], settings.norms[-1]
    numbers = paired(trials[-1], trials[0])
    return Claim(
        f"Not in the paper: EC-GP-UCB has less regret with B = {high:g} and its eps than with "
        f"B = {low:g}.",
        numbers["paired_difference"] < 0.0,
        numbers,
    )


def by_norm(settings: Settings, name: str, values: Sequence[float]) -> dict[str, float]:
    """Label the numbers, one for each norm."""
    pairs = zip(settings.norms, values, strict=True)
    return {f"{name}_for_norm_{norm:g}": value for norm, value in pairs}


FIGURE = Figure(
    "misspecification/kernel-mismatch",
    "Regret of a model that is too smooth, by the norm that is assumed",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
