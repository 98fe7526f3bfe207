"""Blank pictures and legends; matplotlib is imported when the first picture is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # importing it takes longer than most of the library
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Picture = Figure


Place = Literal["outside right upper", "outside lower center", "outside upper center"]


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
