"""Figure 2 of [Ezzerg2026]_: weight of an observation by the size of its residual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.data import Array, Observations
from stoic.defences import Plateau
from stoic.experiments import pictures
from stoic.experiments.contender import BLUE, VERMILION
from stoic.experiments.figure import OURS, Cell, Claim, Figure, Table
from stoic.kernels import RBF
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of the figure, all in units of y.

    Attributes
    ----------
    weight:
        W = sigma / sqrt(2), the weight of a trusted observation.
    shape:
        c.
    centre:
        g.
    half_width:
        L of the plateau; the IMQ weight is the one with L = 0.
    reach, step:
        The residuals shown are -reach, -reach + step, ..., reach.
    """

    # The caption of figure 2, but for the reach and the step
    weight: float = 1.0
    shape: float = 1.0
    centre: float = 0.0
    half_width: float = 2.0
    reach: float = 8.0
    step: float = 0.02


class Row(NamedTuple):
    """Weights of one observed value: a row of the CSV file."""

    y: float
    imq: float
    plateau_imq: float


def weights(settings: Settings, half_width: float, y: Array) -> Array:
    """Weights that the library's own defence gives to observations ``y`` (n,), shape (n,).

    The defence reports trust = 1/J = (w / W)^2.
    """
    # 0: no weight is cut off
    defence = Plateau(half_width, settings.shape, settings.centre, negligible=0.0)
    observations = Observations(np.zeros((len(y), 1)), y, np.full(len(y), np.nan))
    prior = Prior(RBF(np.ones(1)), noise=2.0 * settings.weight**2)  # sigma^2 of W = sigma / sqrt(2)
    return settings.weight * np.sqrt(defence(observations, prior).trust)


def cells(settings: Settings) -> list[Cell]:
    """One cell, as nothing is random."""
    return [Cell("weights", "exact", 0)]


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Compute both weights on the grid of residuals."""
    count = round(settings.reach / settings.step)
    y = settings.centre + settings.step * np.arange(-count, count + 1, dtype=np.float64)
    columns = (y, weights(settings, 0.0, y), weights(settings, settings.half_width, y))
    return [Row(*row) for row in np.stack(columns, axis=1).tolist()]


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot both curves, with the plateau marked."""
    y, imq, plateau = np.array(rows).T
    picture = pictures.blank(7.0, 3.2)
    axes = picture.add_subplot()
    L, g = settings.half_width, settings.centre
    axes.axvspan(g - L, g + L, color="0.93", lw=0)
    axes.plot(y, plateau, color=BLUE, lw=2.0, label=f"plateau-IMQ (L = {L:g})")
    axes.plot(y, imq, "--", color=VERMILION, lw=2.0, label="IMQ")
    axes.set_xlabel("residual y - g(x) (units of y)" if g == 0 else "observation y (units of y)")
    axes.set_ylabel("weight w(x, y)")
    axes.set_xlim(y[0], y[-1])
    axes.set_ylim(0.0, 1.08 * settings.weight)
    axes.grid(alpha=0.3, lw=0.5)
    picture.legend(loc="outside right upper", frameon=False)
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """Table of weights at a few residuals."""
    residuals = np.array([0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 1e3, 1e6])
    columns = (
        weights(settings, L, settings.centre + residuals) for L in (0.0, settings.half_width)
    )
    lines = zip(residuals, *columns, strict=True)
    rows_ = tuple((f"{r:g}", f"{imq:.4g}", f"{plateau:.4g}") for r, imq, plateau in lines)
    return Table("Weight by residual.", ("residual", "IMQ", "plateau-IMQ"), rows_)


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Properties by definition of the weight, checked on the library's own numbers."""
    y, imq, plateau = np.array(rows).T
    W, L, g = settings.weight, settings.half_width, settings.centre
    residual = np.abs(y - g)
    outside = residual > L
    inside = float(np.abs(plateau[~outside] - W).max())
    off_centre = float(imq[residual > 0].max())
    shifted = weights(settings, 0.0, g + residual[outside] - L)
    moved = float(np.abs(plateau[outside] - shifted).max())
    far = g + np.array([1e4, 1e8])
    rates = {
        f"{name}_log_log_slope": float(np.diff(np.log(weights(settings, width, far)))[0])
        / math.log(1e4)
        for name, width in (("imq", 0.0), ("plateau_imq", L))
    }
    away = L * np.linspace(0.0, 20.0, 2001)
    right, left = (weights(settings, L, g + side * away) for side in (1.0, -1.0))
    uneven, falls = float(np.abs(right - left).max()), np.diff(right[away > L]) < 0.0
    # sup |y| w^2 < infinity is the condition for bounded influence (section 2.3).
    sizes = np.logspace(-3, 12, 3001)
    influence = sizes * weights(settings, L, g + sizes) ** 2
    peak, last = int(np.argmax(influence)), float(influence[-1])
    largest = float(influence[peak])
    judged = (
        ("Inside the plateau every weight is exactly W.",
         inside == 0.0, {"largest_difference": inside}),
        ("The IMQ weight is below W everywhere but at the centre.",
         off_centre < W, {"largest_weight_off_centre": off_centre}, OURS),
        ("Beyond the plateau the weight is the IMQ weight of what exceeds it.",
         moved <= 1e-12, {"largest_difference": moved}),
        ("Both weights fall off as 1/|y|.",
         all(abs(rate + 1.0) < 1e-3 for rate in rates.values()), rates, OURS),
        ("The plateau-IMQ weight is symmetric, and decreases beyond the plateau.",
         bool(uneven <= 1e-12 and falls.all()), {"largest_difference_of_the_sides": uneven}),
        ("The influence |y| w^2 is bounded, and vanishes as |y| grows.",
         0 < peak < len(sizes) - 1 and last < 1e-6 * largest,
         {"largest": largest, "at": float(sizes[peak]), "at_1e12": last}, "Ezzerg2026, Sec. 2.3"),
    )  # fmt: skip
    return tuple(Claim(*each) for each in judged)


FIGURE = Figure(
    "outliers/weights",
    "IMQ and plateau-IMQ weights of an observation by its residual",
    Settings(), cells, run, plot, table, claims, "Ezzerg2026, Fig. 2",
)  # fmt: skip
