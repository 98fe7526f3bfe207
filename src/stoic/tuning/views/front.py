"""Fronts of a study with several objectives, as a plot."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from stoic.data import DISTRUSTED, Array
from stoic.integrations.optuna import Explanation
from stoic.printable import printable
from stoic.tuning.views.pictures import EXPECTED, REJECTED, TRUSTED
from stoic.tuning.views.timeline import limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_TRUSTED, _DISTRUSTED, _VIOLATING = "trusted", "a value distrusted", "violates a constraint"
# Mark and colour, in the order in which they are drawn
_KINDS = {_VIOLATING: ("X", EXPECTED), _TRUSTED: ("o", TRUSTED), _DISTRUSTED: ("D", REJECTED)}


def draw(known: Explanation) -> Figure:
    """Plot observed values, and the recommended front with its intervals, for each two objectives.

    Axes show trusted values and predictions. A value beyond an edge is drawn on it. The legend
    counts all trials with two values or more, of which a panel may lack some.
    """
    from matplotlib.figure import Figure

    pairs = list(combinations(range(len(known.objectives)), 2))
    picture = Figure(figsize=(5.2 * len(pairs) + 1.0, 4.6), layout="constrained")
    for axes, pair in zip(picture.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
        _panel(axes, known, pair)
    handles, labels = picture.axes[0].get_legend_handles_labels()
    picture.legend(
        handles, labels, loc="outside lower center", ncols=max(3, 2 * len(pairs)), frameon=False,
        fontsize=9,
    )  # fmt: skip
    return picture


def as_image(picture: Figure) -> str:
    """Return the plot as the address of an image that a page can hold."""
    file = io.BytesIO()
    picture.savefig(file, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def _kind(known: Explanation, number: int, values: Iterable[tuple[float, float]]) -> str:
    """Return the key in ``_KINDS`` of a trial with these values and trusts."""
    if min(trust for _, trust in values) < DISTRUSTED:
        return _DISTRUSTED
    return _VIOLATING if number in known.infeasible else _TRUSTED


def _panel(axes: Axes, known: Explanation, pair: tuple[int, int]) -> None:
    names = [known.objectives[k] for k in pair]
    ends = [limits([row for row in known.rows if row.objective == name]) for name in names]
    low, high = np.array(ends).T

    def inside(values: Array) -> Array:
        return np.clip(values, low, high)

    found: dict[int, dict[str, tuple[float, float]]] = {}
    for row in known.rows:
        found.setdefault(row.number, {})[row.objective or ""] = row.value, row.trust
    kinds = Counter(_kind(known, n, each.values()) for n, each in found.items() if len(each) > 1)
    # Of the trials with both values, by these two
    here = {n: [each[k] for k in names] for n, each in found.items() if {*names} <= each.keys()}
    # Without marks one that is not clipped has its place at the picture's corner
    for kind, (mark, colour) in _KINDS.items():
        if kind == _VIOLATING and not known.infeasible:
            continue
        part = [[v for v, _ in both] for n, both in here.items() if _kind(known, n, both) == kind]
        x, y = inside(np.array(part).reshape(-1, 2)).T
        axes.plot(
            x, y, mark, color=colour, markeredgecolor="black", markeredgewidth=0.4, alpha=0.8,
            markersize=6, label=f"{kind} ({kinds[kind]})", clip_on=not part,
        )  # fmt: skip
    observed = [[trial.values[k] for k in pair] for trial in known.observed_front]
    x, y = inside(np.array(observed).reshape(-1, 2)).T
    axes.plot(
        x, y, "s", color="black", fillstyle="none", markersize=10, clip_on=not observed,
        label=f"observed front ({len(observed)})",
    )  # fmt: skip
    means = np.array([point.mean[list(pair)] for point in known.front]).reshape(-1, 2)
    stds = np.array([point.interval[list(pair)] for point in known.front]).reshape(-1, 2, 2)
    # (p, 2, 2): how far each interval goes below and above its mean
    reach = np.clip(np.abs(stds - means[:, :, None]), 0.0, (high - low)[:, None])
    axes.errorbar(
        means[:, 0], means[:, 1], xerr=reach[:, 0].T, yerr=reach[:, 1].T,
        fmt="-" if len(known.objectives) == 2 else "none", color=EXPECTED, ecolor="black",
        elinewidth=1.2, capsize=2.0, zorder=5, label=f"recommended front ({len(known.front)})",
    )  # fmt: skip
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_xlabel(printable(names[0]), parse_math=False)
    axes.set_ylabel(printable(names[1]), parse_math=False)
    axes.grid(alpha=0.25, lw=0.5)
