"""Plot of a study's observed values over time, with their predictions and their trust."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stoic.data import Array
from stoic.integrations.optuna import Row
from stoic.printable import printable
from stoic.tuning.views.pictures import EXPECTED, REJECTED, TRUSTED
from stoic.tuning.views.trust import Trust

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


_MARKS = {"transient": "2", "infeasible": "x", "bad": "v", None: "|"}
_MARGIN = 0.35  # of the range of trusted values, above and below it
LARGEST = 1e300  # number that can be drawn
_FIRST, _DEEPEST = 8.0, 120.0  # points from the edge where a label may begin


def draw(trust: Trust) -> Figure:
    """Plot observed values over the number of the trial, coloured by trust, and their predictions.

    The axis shows trusted values and leave-one-out predictions. A value beyond its edge is an arrow
    there, with the value beside it: an outlier of 1e6 leaves the rest as it is.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = sorted(trust.explanation.rows, key=lambda row: row.number)
    low, high = limits(rows)
    last = max([row.number for row in rows] + list(trust.failed))
    picture = Figure(figsize=(9.0, 4.6), layout="constrained")
    axes = picture.add_subplot()
    axes.set_ylim(low, high)
    axes.set_xlim(-0.02 * last - 0.7, 1.02 * last + 0.7)
    colours = LinearSegmentedColormap.from_list("trust", [REJECTED, "#c9c9c9", TRUSTED])
    axes.errorbar(
        [row.number for row in rows],
        [row.expected for row in rows],
        [row.sd for row in rows],
        fmt="_", color=EXPECTED, elinewidth=1.0, zorder=1,
        label="expected from all others, +- sd",
    )  # fmt: skip
    shown = None
    for doubted, marker, label in ((False, "o", "trusted"), (True, "D", "distrusted")):
        part = [row for row in rows if row.distrusted == doubted]
        inside = [row for row in part if low <= row.value <= high]
        shown = axes.scatter(
            [row.number for row in inside],
            [row.value for row in inside],
            c=[shown_trust(row) for row in inside],
            s=[22.0 + 40.0 * (1.0 - shown_trust(row)) for row in inside],
            cmap=colours, vmin=0.0, vmax=1.0, marker=marker, zorder=3,
            edgecolors="black", linewidths=0.4,
        )  # fmt: skip
        axes.plot(
            [], [], marker, color=REJECTED if doubted else TRUSTED, markeredgecolor="black",
            markeredgewidth=0.4, label=f"{label} ({len(part)})",
        )  # fmt: skip
    outside = [row for row in rows if not low <= row.value <= high]
    _arrows(axes, outside, colours, (low, high), 0.018 * (last + 2))
    _failures(axes, trust)
    best = trust.explanation.recommended
    if best is not None and best.value is not None and low <= best.value <= high:
        axes.scatter(
            [best.number], [best.value], s=170, marker="o", facecolors="none",
            edgecolors="black", linewidths=1.4, zorder=4,
            label=f"recommended (trial {best.number})",
        )  # fmt: skip
    axes.set_xlabel("number of the trial")
    axes.set_ylabel(f"observed value ({trust.direction})")
    axes.set_title(f"{printable(trust.name)}: trust in each result", loc="left", parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25, lw=0.5)
    assert shown is not None
    picture.colorbar(shown, ax=axes, label="trust, from 0 (left out) to 1", pad=0.01)
    picture.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return picture


def shown_trust(row: Row) -> float:
    """Return the trust, in the middle where nothing was judged."""
    return 0.5 if math.isnan(row.trust) else row.trust


def limits(rows: list[Row]) -> tuple[float, float]:
    """Return the axis limits: trusted values and predictions, with room for what is near them."""
    values = [row.value for row in rows if not row.distrusted]
    values += [row.expected + side * row.sd for row in rows for side in (-1.0, 1.0)]
    finite: Array = np.array([value for value in values if math.isfinite(value)])
    if not len(finite):
        return -1.0, 1.0
    low, high = np.clip([finite.min(), finite.max()], -LARGEST, LARGEST).tolist()
    room = _MARGIN * (high - low) or abs(high) or 1.0
    return low - room, high + room


def _arrows(
    axes: Axes, rows: list[Row], colours: Colormap, limits: tuple[float, float], crowded: float
) -> None:
    """Mark values beyond the edges; stack labels that are less than ``crowded`` trials apart."""
    for edge, up in zip(limits, (False, True), strict=True):
        last, end = -math.inf, 0.0  # number of the trial labelled last, and where its label ends
        for row in rows:
            if (row.value > edge) != up:
                continue
            label = f"{row.value:.3g}"
            start = end if row.number - last < crowded and end < _DEEPEST else _FIRST
            last, end = row.number, start + 5.5 * len(label) + 4.0
            axes.scatter(
                [row.number], [edge], c=[shown_trust(row)], cmap=colours, vmin=0.0, vmax=1.0,
                s=60.0, marker="^" if up else "v", edgecolors="black", linewidths=0.4,
                clip_on=False, zorder=5,
            )  # fmt: skip
            axes.annotate(
                label, (row.number, edge), xytext=(0, -start if up else start),
                textcoords="offset points", rotation=90, fontsize=8, ha="center",
                va="top" if up else "bottom", zorder=5,
            )  # fmt: skip


def _failures(axes: Axes, trust: Trust) -> None:
    """Mark trials without a value, just above the lower edge, by their kinds of failure."""
    for kind, mark in _MARKS.items():
        numbers = [failed for failed, known in trust.failed.items() if known == kind]
        if numbers:
            axes.scatter(
                numbers, [0.03] * len(numbers), transform=axes.get_xaxis_transform(),
                marker=mark, s=45.0, color="black", linewidths=1.2, zorder=2,
                label=f"failed{'' if kind is None else ': ' + kind} ({len(numbers)})",
            )  # fmt: skip
