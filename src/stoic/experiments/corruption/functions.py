"""Figure 4 of [Bogunovic2022]_: maps of f1, in the draws of the figures of ten draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.corruption.worlds import F1, draw
from stoic.experiments.figure import OURS, Cell, Claim, Figure, Table, tabulate


@dataclass(frozen=True, slots=True)
class Settings:
    """Number of the draws, and that of the first trial, as in the other figures."""

    trials: int = 10
    seed: int = 0


class Row(NamedTuple):
    """One point of one draw: a row of the CSV file.

    Attributes
    ----------
    seed, draw:
        The trial, and the seed of its function.
    x1, x2, value:
        The point and f there.
    inside:
        True if the point is in the target region.
    """

    seed: int
    draw: int
    x1: float
    x2: float
    value: float
    inside: bool


def cells(settings: Settings) -> list[Cell]:
    """One cell per draw."""
    return [Cell("f1", "exact", settings.seed + trial) for trial in range(settings.trials)]


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Evaluate all points of one draw."""
    # The k-th draw that is accepted, as in the figures with a draw for each trial
    seed, problem = draw(F1.name, cell.seed)
    columns = *problem.domain.points.T, problem.values, F1.region(problem)
    points = zip(*(column.tolist() for column in columns), strict=True)
    return [Row(cell.seed, seed, *point) for point in points]


class Draw(NamedTuple):
    """Points of one draw."""

    points: tuple[Row, ...]

    @property
    def best(self) -> Row:
        """Maximum of f."""
        return max(self.points, key=lambda p: p.value)

    @property
    def inside(self) -> Row:
        """Maximum in the target region."""
        return max((p for p in self.points if p.inside), key=lambda p: p.value)


def by_trial(rows: Sequence[Row]) -> list[Draw]:
    """Draws in the order of the rows."""
    seeds = dict.fromkeys(row.seed for row in rows)
    return [Draw(tuple(row for row in rows if row.seed == seed)) for seed in seeds]


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot a map of each draw, with its maximum and the points of the target region."""
    draws = by_trial(rows)
    columns = min(5, len(draws))
    lines = -(-len(draws) // columns)
    picture = pictures.blank(2.1 * columns + 1.2, 2.3 * lines + 0.8)
    panels = picture.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    reach = max(abs(row.value) for row in rows)
    for axes, one in zip(panels.flat, draws, strict=False):
        x1, x2 = sorted({p.x1 for p in one.points}), sorted({p.x2 for p in one.points})
        grid = np.empty((len(x2), len(x1)))
        for p in one.points:
            grid[x2.index(p.x2), x1.index(p.x1)] = p.value
        image = axes.pcolormesh(x1, x2, grid, cmap="PuOr", vmin=-reach, vmax=reach)
        region = zip(*((p.x1, p.x2) for p in one.points if p.inside), strict=True)
        axes.plot(*region, "k.", ms=2.5, label="target region of the attacks")
        axes.plot(one.best.x1, one.best.x2, "k*", mfc="white", ms=11, label="maximum of f")
        axes.set_title(f"seed {one.best.draw}", fontsize=9)
        axes.set_aspect("equal")
    for axes in list(panels.flat)[len(draws) :]:
        axes.set_visible(False)
    for axes in panels[-1]:
        axes.set_xlabel("x1")
    for axes in panels[:, 0]:
        axes.set_ylabel("x2")
    picture.colorbar(image, ax=panels, label="f (its prior sd is 1)", shrink=0.8)
    pictures.legend(picture, [panels[0, 0]], "outside lower center", ncols=2)
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """Table of the maxima of each draw."""
    return tabulate(
        "The functions of ten draws, in units of f.",
        ("trial", "seed of the draw"),
        (
            (
                "maximum of f",
                lambda of: f"{of.best.value:.3f} at ({of.best.x1:.2f}, {of.best.x2:.2f})",
            ),
            ("maximum in the target region", lambda of: f"{of.inside.value:.3f}"),
        ),
        [((str(of.best.seed), str(of.best.draw)), of) for of in by_trial(rows)],
    )


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims that every draw meets the assumptions of the attacks on f, by which it was chosen."""
    draws = by_trial(rows)
    gaps = [one.best.value - one.inside.value for one in draws]
    numbers = {
        "draws": float(len(draws)),
        "smallest_gap": min(gaps),
        "largest_gap": max(gaps),
        # Draws before the last one that ``can_be_misled`` refused
        "seeds_passed_over": float(draws[-1].best.draw + 1 - (settings.seed + len(draws))),
    }
    misled = "In every draw the target region does not contain x*."
    deep = f"In every draw h_max = {F1.depth:g} exceeds f(x*) less the maximum of the region."
    return (
        Claim(misled, min(gaps) > 0.0, numbers, OURS),
        Claim(deep, max(gaps) < F1.depth, numbers, OURS),
    )


FIGURE = Figure(
    "corruption/figure-4",
    "The draws of f1 that the attacks can mislead about",
    Settings(), cells, run, plot, table, claims, "Bogunovic2022, Fig. 4",
)  # fmt: skip
