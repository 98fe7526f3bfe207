"""Figures 2 and 5 of [Saday2025]_: optimal solutions for known f.

The polynomial is that of [Bogunovic2018]_, not the paper's modification of it, on a grid of
100 x 100; tau is -10. RO has the radii eps / 2, eps and 4 eps for eps = 0.5, as StableOpt in
figure 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from stoic.experiments import contender, pictures
from stoic.experiments.figure import OURS, Cell, Claim, Figure, Table, tabulate
from stoic.experiments.inputs.worlds import polynomial_on
from stoic.experiments.trials import grouped
from stoic.satisficing import (
    critical_radius,
    fragility,
    guaranteed,
    highest_worst,
    least_fragile,
    most_robust,
    worst_value,
)

RS_1, RS_2, RS_G = "RS-1", "RS-2", "RS-G, p = 2"


def robust(radius: float) -> str:
    """Name of RO with this radius."""
    return f"RO, r = {radius:.2f}"


def radius_of(name: str) -> float:
    """Parse the radius in such a name."""
    return float(name.rpartition(" ")[2])


@cache
def solution(name: str, threshold: float, side: int) -> int:
    """Row of the grid that is optimal for an objective with known f."""
    problem = polynomial_on(side)
    f, points = problem.values, problem.domain.points
    if name == RS_2:
        return most_robust(f, threshold, points).row
    if name in (RS_1, RS_G):
        return least_fragile(f, threshold, points, p=1.0 if name == RS_1 else 2.0).row
    return highest_worst(f, radius_of(name), points).row


_LOOKS = {
    RS_1: (contender.BLUE, "-", "o"),
    RS_2: (contender.VERMILION, "-", "D"),
    RS_G: (contender.PURPLE, "-", "s"),
}
_ROBUST = (
    (contender.ORANGE, "--", "v"), (contender.BLACK, "-", "^"), (contender.GREY, "--", "<"),
    (contender.GREEN, "-.", ">"), (contender.SKY, ":", "P"),
)  # fmt: skip


def looks(names: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """Colour, line and marker of each objective."""
    others = (name for name in names if name not in _LOOKS)
    return {**_LOOKS, **dict(zip(others, _ROBUST, strict=False))}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the objectives.

    Attributes
    ----------
    threshold, radius:
        tau, in units of f; and eps, the true radius.
    radii:
        Radii of RO: less, the same, and more.
    side, largest:
        Points of the grid in each coordinate; and the largest move considered.
    """

    threshold: float = -10.0
    radius: float = 0.5
    radii: tuple[float, ...] = (0.25, 0.5, 2.0)
    side: int = 100
    largest: float = 2.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the objectives."""
        return (RS_1, RS_2, RS_G, *(robust(radius) for radius in self.radii))


class Solution(NamedTuple):
    """Solution of one objective: a row of the CSV file of figure 2.

    Attributes
    ----------
    x1, x2, value:
        The point and f there.
    worst:
        The least f within eps of it.
    fragility, critical_radius:
        Those of the solution.
    """

    panel: str
    method: str
    seed: int
    x1: float
    x2: float
    value: float
    worst: float
    fragility: float
    critical_radius: float


def cells(settings: Settings) -> list[Cell]:
    """One cell per objective."""
    return [Cell("polynomial", name, 0) for name in settings.names]


def run(settings: Settings, cell: Cell) -> list[Solution]:
    """Solve one objective."""
    problem = polynomial_on(settings.side)
    f, points, tau = problem.values, problem.domain.points, settings.threshold
    row = np.array([solution(cell.method, tau, settings.side)])
    found = (
        *points[row].T,
        f[row],
        worst_value(f, settings.radius, points, rows=row),
        fragility(f, tau, points, rows=row),
        critical_radius(f, tau, points, rows=row),
    )
    return [Solution(*cell, *(float(each[0]) for each in found))]


def plot(settings: Settings, rows: Sequence[Solution]) -> pictures.Picture:
    """Plot a map of f, the threshold as a line, and the solutions with their radii."""
    from matplotlib.patches import Circle

    problem, tau = polynomial_on(settings.side), settings.threshold
    # f is (x1, x2); contours have rows of x2, hence f.T below
    points, f = problem.domain.points, problem.values.reshape(settings.side, settings.side)
    x1, x2 = np.unique(points[:, 0]), np.unique(points[:, 1])
    picture = pictures.blank(7.4, 5.6)
    axes = picture.add_subplot()
    colours = axes.contourf(x1, x2, f.T, levels=30, cmap="cividis")
    line = axes.contour(x1, x2, f.T, [tau], colors="white", linewidths=1.8, linestyles="solid")
    axes.clabel(line, fmt=f"tau = {tau:g}", fontsize=8)
    styles = looks(settings.names)
    for row in rows:
        colour, style, marker = styles[row.method]
        axes.plot(row.x1, row.x2, marker, color=colour, mec="white", ms=9, ls="", label=row.method)
        own = {RS_2: row.critical_radius, robust(settings.radius): settings.radius}
        if row.method in own:
            ring = Circle((row.x1, row.x2), own[row.method], fill=False, color=colour, ls=style)
            axes.add_patch(ring)
    axes.set_aspect("equal")
    axes.set_xlabel("x1")
    axes.set_ylabel("x2")
    axes.set_title("Rings: the critical radius of RS-2, and the radius of RO = eps", fontsize=9)
    picture.colorbar(colours, ax=axes, label="f", shrink=0.8)
    picture.legend(loc="outside right upper", frameon=False, fontsize=8)
    return picture


def table(settings: Settings, rows: Sequence[Solution]) -> Table:
    """Table of the solutions."""
    return tabulate(
        f"tau = {settings.threshold:g}.",
        ("objective",),
        (
            ("point", lambda row: f"({row.x1:.3f}, {row.x2:.3f})"),
            ("f", lambda row: f"{row.value:.2f}"),
            (f"worst f within {settings.radius:g}", lambda row: f"{row.worst:.2f}"),
            ("fragility", lambda row: f"{row.fragility:.2f}"),
            ("critical radius", lambda row: f"{row.critical_radius:.3f}"),
        ),
        [((row.method,), row) for row in rows],
    )


def claims(settings: Settings, rows: Sequence[Solution]) -> tuple[Claim, ...]:
    """Claims of the paper about the three radii of RO, and that tau is in reach."""
    by_name = {row.method: row for row in rows}
    tau, eps = settings.threshold, settings.radius
    small, right, large = (by_name[robust(radius)] for radius in settings.radii)
    most = by_name[RS_2].critical_radius
    reach = f"Moves of {eps:g} are less than the largest critical radius, moves of {3 * eps:g} are "
    reach += "not: tau is in reach of the first and out of reach of the second."
    judged = (
        # Section 2.1: the radius decides, too large or too small
        (small, small.worst < tau, f"risks too much: f falls below tau within {eps:g}.", ""),
        (large, large.value < tau, "is too careful: f is below tau even where it is not moved.",
         ""),
        *((row, row.worst >= tau, f"keeps f above tau within {eps:g}.", OURS)
          for row in (right, by_name[RS_2])),
    )  # fmt: skip
    return (
        Claim(reach, eps < most < 3.0 * eps, {"largest_critical_radius": most}),
        *(
            Claim(f"{row.method} {said}", holds, _numbers(row), by)
            for row, holds, said, by in judged
        ),
    )


def _numbers(row: Solution) -> dict[str, float]:
    return {
        "value": row.value,
        "worst_within_eps": row.worst,
        "fragility": row.fragility,
        "critical_radius": row.critical_radius,
    }


class Guaranteed(NamedTuple):
    """Worst f after a move of some size: a row of the CSV file of figure 5.

    Attributes
    ----------
    size, worst:
        eps, and the least f within eps of the solution.
    area:
        The integral of (tau - worst)^+ from 0 to eps.
    """

    panel: str
    method: str
    seed: int
    size: float
    worst: float
    area: float


def run_sizes(settings: Settings, cell: Cell) -> list[Guaranteed]:
    """Evaluate one objective under moves of every size, in steps of a hundredth."""
    problem = polynomial_on(settings.side)
    row = solution(cell.method, settings.threshold, settings.side)
    at, left = guaranteed(problem.values, problem.domain.points, row)
    sizes = np.linspace(0.0, settings.largest, round(100 * settings.largest) + 1)
    # A step is taken at its own distance, whatever the last digit of the size is
    worst = left[np.searchsorted(at, sizes * (1.0 + 1e-9), side="right") - 1]
    short = np.maximum(settings.threshold - worst, 0.0)
    # A staircase, of which the step to the left of each size counts.
    area = np.r_[0.0, np.cumsum(short[1:] * np.diff(sizes))]
    columns = (column.tolist() for column in (sizes, worst, area))
    return [Guaranteed(*cell, *values) for values in zip(*columns, strict=True)]


def plot_sizes(settings: Settings, rows: Sequence[Guaranteed]) -> pictures.Picture:
    """Plot worst values, and the areas below tau."""
    picture = pictures.blank(8.6, 3.9)
    left, right = picture.subplots(1, 2, sharex=True)
    styles, tau = looks(settings.names), settings.threshold
    for name, own in _by_method(rows).items():
        colour, line, _ = styles[name]
        sizes = [row.size for row in own]
        for axes, values in ((left, [r.worst for r in own]), (right, [r.area for r in own])):
            axes.plot(sizes, values, line, color=colour, lw=1.6, label=name)
    left.axhline(tau, color="0.5", lw=0.8, ls=":")
    left.annotate("tau", (settings.largest, tau), fontsize=8, va="bottom", ha="right")
    left.set_ylabel("worst f within eps")
    right.set_ylabel("area below tau up to eps")
    right.set_ylim(bottom=0.0)
    for axes in (left, right):
        axes.set_xlabel("size of the move, eps")
        axes.set_xlim(0.0, settings.largest)
        axes.grid(alpha=0.3, lw=0.5)
    pictures.legend(picture, [left], "outside lower center", ncols=3, fontsize=8)
    return picture


def _by_method(rows: Sequence[Guaranteed]) -> dict[str, Sequence[Guaranteed]]:
    return {method: trials.runs[0] for (_, method), trials in grouped(rows).items()}


def kept(settings: Settings, own: Sequence[Guaranteed]) -> float:
    """Find the largest size up to which f stays at tau or above; nan if it never does."""
    fine = [row.size for row in own if row.worst >= settings.threshold]
    return max(fine, default=math.nan)


def table_sizes(settings: Settings, rows: Sequence[Guaranteed]) -> Table:
    """Table of sizes and areas."""
    half = settings.largest / 2.0

    def reach(own: Sequence[Guaranteed]) -> str:
        size = kept(settings, own)
        return "never" if math.isnan(size) else f"{size:.2f}"

    def middle(own: Sequence[Guaranteed]) -> str:
        return f"{min(own, key=lambda row: abs(row.size - half)).area:.2f}"

    return tabulate(
        f"tau = {settings.threshold:g}.",
        ("objective",),
        (
            ("f >= tau up to", reach),
            (f"area up to {half:g}", middle),
            (f"area up to {settings.largest:g}", lambda own: f"{own[-1].area:.2f}"),
        ),
        {(name,): own for name, own in _by_method(rows).items()},
    )


def claims_sizes(settings: Settings, rows: Sequence[Guaranteed]) -> tuple[Claim, ...]:
    """Claims on RS against RO, and RS-1 against RS-2."""
    by_name = _by_method(rows)
    area = {name: own[-1].area for name, own in by_name.items()}
    size = {name: kept(settings, own) for name, own in by_name.items()}
    farther = [value for name, value in size.items() if name != RS_2 and not math.isnan(value)]

    def less(ours: str, theirs: str, end: str) -> Claim:
        sentence = f"The area of {ours} up to {settings.largest:g} is less than that of {theirs}"
        numbers = {"area": area[ours], "reference_area": area[theirs]}
        return Claim(sentence + end, area[ours] < area[theirs], numbers)

    others = [robust(radius) for radius in settings.radii]
    return (
        *(less(ours, theirs, ".") for ours in (RS_1, RS_2) for theirs in others),
        Claim(
            "RS-2 reaches tau under larger moves than any other.",
            size[RS_2] > max(farther),
            {f"largest_move_of_{name}": value for name, value in size.items()},
        ),
        less(RS_1, RS_2, ": it loses less where tau cannot be reached."),
    )


FIGURE_2 = Figure(
    "inputs/figure-2",
    "Where robust satisficing and robust optimization settle on the polynomial",
    Settings(), cells, run, plot, table, claims, "Saday2025, Fig. 2",
)  # fmt: skip
FIGURE_5 = Figure(
    "inputs/figure-5",
    "What is left of f after the worst move of each size",
    Settings(), cells, run_sizes, plot_sizes, table_sizes, claims_sizes, "Saday2025, Fig. 5",
)  # fmt: skip
