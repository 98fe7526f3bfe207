"""Worst value against the size of a move: figure 5, left, of the satisficing paper."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR
from typing import TYPE_CHECKING

import numpy as np

from stoic.integrations.optuna.certified import Certified
from stoic.printable import printable
from stoic.satisficing import rounded
from stoic.tuning.views.certificate import Certificates
from stoic.tuning.views.pictures import REJECTED, TRUSTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"recommended": TRUSTED, "observed best": REJECTED}
_STYLES = {"recommended": "-", "observed best": "--"}


def draw(certificates: Certificates) -> Figure:
    """Plot the worst value within a distance, for the recommended setting and the observed best.

    A line shows the pessimistic bound [Saday2025]_, 2 sd from the mean, a thin one the posterior
    mean, and a shade the range between the two bounds. A mark shows where the pessimistic bound
    crosses the threshold.
    """
    from matplotlib.figure import Figure

    both = certificates.both
    picture = Figure(figsize=(7.6, 4.8), layout="constrained")
    axes = picture.add_subplot()
    for which, (trial, found) in both.items():
        curve, colour = found.curve, _COLOURS[which]
        axes.fill_between(
            curve.sizes, curve.pessimistic, curve.optimistic, color=colour, alpha=0.12, lw=0.0
        )
        axes.plot(curve.sizes, curve.expected, _STYLES[which], color=colour, lw=1.0, alpha=0.7)
        axes.plot(
            curve.sizes, curve.pessimistic, _STYLES[which], color=colour, lw=2.2,
            label=f"{which} (trial {trial.number}): guaranteed; thin: expected",
        )  # fmt: skip
        _mark(axes, found, colour, above=found.minimise != (which == "recommended"))
    first = both["recommended"][1]
    if not first.aim.stable:
        value = first.certificate.value
        axes.axhline(value, color="black", lw=1.0, ls=":", label=f"threshold {value:.6g}")
    axes.set_xlim(0.0, max(found.curve.sizes[-1] for _, found in both.values()))
    axes.set_xlabel(
        f"moved by at most, in tolerances (1 is {printable(_tolerances(first))})", parse_math=False
    )
    axes.set_ylabel(f"worst value ({certificates.direction})")
    axes.set_title(
        f"{printable(certificates.name)}: how far a setting may be moved",
        loc="left",
        parse_math=False,
    )
    axes.grid(alpha=0.25, lw=0.5)
    picture.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=9)
    return picture


def _mark(axes: Axes, found: Certified, colour: str, above: bool) -> None:
    """Mark the certified distance; one setting has its label above the mark, the other below."""
    held = found.certificate
    if not math.isfinite(held.radius):
        return
    height = held.value
    left = above == found.minimise  # the side that the curve does not go to
    axes.plot([held.radius], [height], "o", color=colour, markeredgecolor="black", zorder=4)
    far = printable(", ".join(_far(found, name, size) for name, size in found.within.items()))
    axes.annotate(
        far, (held.radius, height), xytext=(-7 if left else 7, 8 if above else -8),
        textcoords="offset points", fontsize=8, color=colour, parse_math=False,
        ha="right" if left else "left",
        va="bottom" if above else "top", zorder=5,
        bbox={"facecolor": "white", "alpha": 0.8, "lw": 0.0, "pad": 1.0},
    )  # fmt: skip


def _far(found: Certified, name: str, size: float) -> str:
    factor = "a factor of " if found.encoding.scaled(name) else ""
    return f"{name} {factor}{rounded(size, ROUND_FLOOR, 3)}"


def _tolerances(found: Certified) -> str:
    given = found.aim.tolerance or {}
    return ", ".join(f"{name} {np.float64(size):g}" for name, size in given.items() if size)
