"""Pictures: trajectories with bands in panels, points with intervals, and legends.

Matplotlib is imported when the first picture is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from stoic.data import Array, Integers
from stoic.experiments.contender import Contender
from stoic.experiments.statistics import Interval

if TYPE_CHECKING:  # importing it takes longer than most of the library
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Picture = Figure


Place = Literal[
    "outside right upper", "outside upper right", "outside lower center", "outside upper center"
]
Band = Literal["error", "deviation", "half"]


def blank(width: float, height: float) -> Picture:
    """Empty picture whose panels and legends make room for each other; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend(
    picture: Picture,
    panels: Iterable[Axes],
    place: Place = "outside right upper",
    named: Callable[[str], str] = lambda name: name,
    **style: Any,
) -> None:
    """Draw one legend outside of the panels, with each name once.

    Parameters
    ----------
    picture:
        Picture to draw on.
    panels:
        Panels whose curves are named.
    place:
        As matplotlib's ``loc``.
    named:
        Function from the name of a curve to its text.
    style:
        As of matplotlib's ``legend``.
    """
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    picture.legend(
        handles.values(), [named(name) for name in handles], loc=place, frameon=False, **style
    )


def curve(
    axes: Axes,
    x: Array | Integers,
    values: Array,
    line: Contender[..., Any],
    band: Band = "error",
) -> None:
    """Draw a mean over trials with a band; no band for a single trial.

    Parameters
    ----------
    axes:
        Axes to draw on.
    x:
        Shape (n,).
    values:
        Shape (trials, n).
    line:
        Name, colour and style.
    band:
        One standard error of the mean, or one or half a standard deviation over the trials.
    """
    mean = values.mean(axis=0)
    above = 2.0 if line.line == "-" else 2.5  # a broken line shows what it covers
    axes.plot(x, mean, line.line, color=line.colour, label=line.name, lw=1.6, zorder=above)
    if len(values) > 1:
        half = values.std(axis=0, ddof=1)
        if band == "error":
            half = half / math.sqrt(len(values))
        elif band == "half":
            half = 0.5 * half
        axes.fill_between(x, mean - half, mean + half, color=line.colour, alpha=0.15, lw=0)


class Panel(NamedTuple):
    """Title of a panel, and its curves: each a look, its x (n,) and its values (trials, n)."""

    title: str
    curves: Sequence[tuple[Contender[..., Any], Array | Integers, Array]]


def trajectories(
    panels: Sequence[Panel],
    rounds: int,
    regrets: Sequence[str],
    size: tuple[float, float],
    columns: int,
    band: Band,
    place: Place = "outside lower center",
    title: str = "",
    small: bool = False,
    one_scale: bool = True,
    scientific: bool = False,
    **style: Any,
) -> Picture:
    """Plot means over the trials with bands by round, a panel each, with one legend.

    Parameters
    ----------
    panels:
        Panels, line by line.
    rounds:
        T, the end of the horizontal axes.
    regrets:
        Label of the vertical axis of each line.
    size, columns:
        Size of the picture in inches, and its number of columns.
    band:
        As of :func:`curve`.
    place, style:
        Of the legend.
    title:
        Title above all panels.
    small:
        True for small titles of panels.
    one_scale:
        True if all panels have the same vertical axis.
    scientific:
        True for powers of ten beside the axes.
    """
    picture = blank(*size)
    grid = picture.subplots(len(regrets), columns, sharex=True, sharey=one_scale, squeeze=False)
    for panel, axes in zip(panels, grid.flat, strict=False):  # the last line may have free places
        for look, x, values in panel.curves:
            curve(axes, x, values, look, band)
        axes.set_title(panel.title, fontsize=9 if small else 10)
    for axes in grid.flat:  # once everything is drawn, as a limit ends the search for the others
        axes.set_xlim(0, rounds)
        axes.set_ylim(bottom=0.0)
        if scientific:
            axes.ticklabel_format(axis="both", style="sci", scilimits=(-3, 4), useMathText=True)
        axes.grid(alpha=0.3, lw=0.5)
    for axes in grid[-1]:
        axes.set_xlabel("round t")
    for axes, label in zip(grid[:, 0], regrets, strict=True):
        axes.set_ylabel(label)
    legend(picture, grid.flat, place, **style)
    if title:
        picture.suptitle(title, fontsize=10)
    return picture


def points(
    axes: Axes,
    heights: Sequence[float],
    numbers: Sequence[Interval],
    colour: str,
    style: Mapping[str, Any],
    scale: float = 1.0,
) -> None:
    """Draw numbers with their intervals beside one another; none where there is no interval.

    Parameters
    ----------
    axes:
        Axes to draw on.
    heights:
        Height of each number.
    numbers:
        The numbers.
    colour, style:
        As of matplotlib's ``errorbar``.
    scale:
        Factor of the numbers.
    """
    value, lower, upper = scale * np.array(numbers, dtype=float).reshape(-1, 3).T  # (n,) each
    # A bootstrap interval may miss its number, and matplotlib refuses negative lengths
    error = np.maximum([value - lower, upper - value], 0.0)
    axes.errorbar(value, heights, xerr=error, color=colour, **style)


def lines(axes: Axes, names: Sequence[str], size: float = 8) -> None:
    """Name the lines of such points, the first one at the top."""
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="x", which="both", labelsize=7)
    axes.grid(alpha=0.3, lw=0.5, axis="x")


def plain_numbers(axes: Axes) -> None:
    """Put plain numbers on a short logarithmic axis, where powers of ten would be one or two."""
    from matplotlib import ticker

    lower, upper = axes.get_xlim()
    few = upper < 4.0 * lower  # of 1, 2, 5, 10, ... it has two at most
    steps = ticker.MaxNLocator(4) if few else ticker.LogLocator(subs=(1.0, 2.0, 5.0))
    axes.xaxis.set_major_locator(steps)
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
