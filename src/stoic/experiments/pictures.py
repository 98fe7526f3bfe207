"""Pictures: curves with bands in panels, points with intervals, and legends.

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
    from numpy.typing import NDArray

    Picture = Figure
    Grid = NDArray[Any]


Place = Literal[
    "outside right upper", "outside upper right", "outside lower center", "outside upper center"
]
Band = Literal["error", "deviation", "half"]
Curve = tuple[Contender[..., Any], Array | Integers, Array]  # a look, x (n,), values (trials, n)


def blank(width: float, height: float) -> Picture:
    """Empty picture whose panels and legends make room for each other; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend(
    picture: Picture,
    panels: Iterable[Axes],
    place: Place = "outside right upper",
    named: Callable[[str], str] = str,
    **style: Any,
) -> None:
    """Draw one legend outside of the panels, with each name once.

    Parameters
    ----------
    picture, panels:
        Picture to draw on, and the panels whose curves are named.
    place, style:
        As ``loc``, and others, of matplotlib's ``legend``.
    named:
        Function from the name of a curve to its text.
    """
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    texts = [named(name) for name in handles]
    picture.legend(handles.values(), texts, loc=place, frameon=False, **style)


def curve(
    axes: Axes,
    look: Contender[..., Any],
    x: Array | Integers,
    values: Array,
    band: Band = "error",
) -> None:
    """Draw a mean over trials with a band; no band for a single trial.

    Parameters
    ----------
    axes:
        Axes to draw on.
    look:
        Name, colour and style.
    x, values:
        Shapes (n,) and (trials, n).
    band:
        One standard error of the mean, or one or half a standard deviation over the trials.
    """
    mean = values.mean(axis=0)
    above = 2.0 if look.line == "-" else 2.5  # a broken line shows what it covers
    axes.plot(x, mean, look.line, color=look.colour, label=look.name, lw=1.6, zorder=above)
    if len(values) > 1:
        part = {"error": 1.0 / math.sqrt(len(values)), "deviation": 1.0, "half": 0.5}[band]
        half = part * values.std(axis=0, ddof=1)
        axes.fill_between(x, mean - half, mean + half, color=look.colour, alpha=0.15, lw=0)


class Panel(NamedTuple):
    """Title of a panel, its curves, and the ends of its horizontal axis if they are given."""

    title: str
    curves: Sequence[Curve]
    ends: tuple[float, float] | None = None


def panels(
    shown: Sequence[Panel],
    labels: Sequence[str],
    size: tuple[float, float],
    columns: int,
    band: Band = "error",
    title_size: float = 10,
    **axes: Any,
) -> tuple[Picture, Grid]:
    """Plot means with bands, and return the picture and its axes.

    Parameters
    ----------
    shown:
        Panels, line by line.
    labels:
        Label of the vertical axis of each line.
    size, columns:
        Size of the picture in inches, and its number of columns.
    band:
        As of :func:`curve`.
    title_size, axes:
        Of the panels, and as of matplotlib's ``subplots``.
    """
    picture = blank(*size)
    grid = picture.subplots(len(labels), columns, squeeze=False, **axes)
    for panel, one in zip(shown, grid.flat, strict=False):  # the last line may have free places
        for each in panel.curves:
            curve(one, *each, band)
        one.set_title(panel.title, fontsize=title_size)
        one.grid(alpha=0.3, lw=0.5)
    for panel, one in zip(shown, grid.flat, strict=False):
        # Once everything is drawn, as a limit ends the search for the others
        one.set_xlim(panel.ends)
        one.set_ylim(bottom=0.0)
    for one, label in zip(grid[:, 0], labels, strict=True):
        one.set_ylabel(label)
    return picture, grid


def trajectories(
    shown: Sequence[Panel],
    labels: Sequence[str],
    size: tuple[float, float],
    columns: int,
    band: Band,
    title: str = "",
    place: Place = "outside lower center",
    title_size: float = 10,
    one_scale: bool = True,
    **style: Any,
) -> Picture:
    """Plot panels by round, with one legend, of that ``style``, and a title above all of them."""
    axes = {"sharex": True, "sharey": one_scale}
    picture, grid = panels(shown, labels, size, columns, band, title_size, **axes)
    for one in grid[-1]:
        one.set_xlabel("round t")
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
    """Draw numbers, times ``scale``, with intervals; none where there is no interval.

    ``colour`` and ``style`` are as of matplotlib's ``errorbar``.
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


def plain_numbers(axes: Axes, vertical: bool = False) -> None:
    """Put plain numbers on a short logarithmic axis, where powers of ten would be one or two."""
    from matplotlib import ticker

    axis = axes.yaxis if vertical else axes.xaxis
    lower, upper = axis.get_view_interval()
    few = upper < 4.0 * lower  # of 1, 2, 5, 10, ... it has two at most
    steps = ticker.MaxNLocator(4) if few else ticker.LogLocator(subs=(1.0, 2.0, 5.0))
    axis.set_major_locator(steps)
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())
