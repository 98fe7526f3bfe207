"""Figure 4 of [Bogunovic2022]_: maps of f1, in the draws of the figures of ten draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.corruption.worlds import F1, draw
from stoic.experiments.figure import OURS, Cell, Claim, Figure, Table


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers of the draws.

    Attributes
    ----------
    trials:
        Number of draws.
    seed:
        Number of the first trial, as in the other figures.
    """

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
    points = problem.domain.points.tolist()
    region = F1.region(problem).tolist()
    return [
        Row(cell.seed, seed, x1, x2, value, inside)
        for (x1, x2), value, inside in zip(points, problem.values.tolist(), region, strict=True)
    ]


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot a map of each draw, with its maximum and the points of the target region."""
    draws = _by_trial(rows)
    columns = min(5, len(draws))
    lines = -(-len(draws) // columns)
    picture = pictures.blank(2.1 * columns + 1.2, 2.3 * lines + 0.8)
    panels = picture.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    reach = max(abs(row.value) for row in rows)
    for axes, points in zip(panels.flat, draws, strict=False):
        x1, x2 = sorted({p.x1 for p in points}), sorted({p.x2 for p in points})
        grid = np.empty((len(x2), len(x1)))
        for p in points:
            grid[x2.index(p.x2), x1.index(p.x1)] = p.value
        image = axes.pcolormesh(x1, x2, grid, cmap="PuOr", vmin=-reach, vmax=reach)
        axes.plot(
            *zip(*((p.x1, p.x2) for p in points if p.inside), strict=True),
            "k.",
            ms=2.5,
            label="target region of the attacks",
        )
        best = max(points, key=lambda p: p.value)
        axes.plot(best.x1, best.x2, "k*", mfc="white", ms=11, label="maximum of f")
        axes.set_title(f"seed {points[0].draw}", fontsize=9)
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
    lines = []
    for points in _by_trial(rows):
        best = max(points, key=lambda p: p.value)
        inside = max(p.value for p in points if p.inside)
        at = f"{best.value:.3f} at ({best.x1:.2f}, {best.x2:.2f})"
        lines.append((str(best.seed), str(best.draw), at, f"{inside:.3f}"))
    headings = ("trial", "seed of the draw", "maximum of f", "maximum in the target region")
    return Table("The functions of ten draws, in units of f.", headings, tuple(lines))


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims that every draw meets the assumptions of the attacks on f, by which it was chosen."""
    draws = _by_trial(rows)
    gaps = np.array([max(p.value for p in d) - max(p.value for p in d if p.inside) for d in draws])
    numbers = {
        "draws": float(len(draws)),
        "smallest_gap": float(gaps.min()),
        "largest_gap": float(gaps.max()),
        # Draws before the last one that ``can_be_misled`` refused
        "seeds_passed_over": float(draws[-1][0].draw + 1 - (settings.seed + len(draws))),
    }
    return (
        Claim(
            "In every draw the target region does not contain x*.",
            bool(gaps.min() > 0),
            numbers,
            OURS,
        ),
        Claim(
            f"In every draw h_max = {F1.depth:g} exceeds f(x*) less the maximum of the region.",
            bool(gaps.max() < F1.depth),
            numbers,
            OURS,
        ),
    )


def _by_trial(rows: Sequence[Row]) -> list[list[Row]]:
    draws: dict[int, list[Row]] = {}
    for row in rows:
        draws.setdefault(row.seed, []).append(row)
    return list(draws.values())


FIGURE = Figure(
    "corruption/figure-4",
    "The draws of f1 that the attacks can mislead about",
    Settings(), cells, run, plot, table, claims, "Bogunovic2022, Fig. 4",
)  # fmt: skip
