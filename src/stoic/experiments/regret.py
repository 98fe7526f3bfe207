"""Cumulative regret: rows of every observation, curves over the observations, and their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.contender import Contender
from stoic.experiments.figure import Cell, Table
from stoic.experiments.statistics import Estimate
from stoic.experiments.trials import Groups, comparison, grouped
from stoic.simulate import Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

INFERENCE = "inference_regret"


class Step(NamedTuple):
    """One observation of one run: a row of the CSV file.

    Attributes
    ----------
    round:
        Round number, from 1; 0 for the clean initial points.
    x:
        The executed point, coordinates separated by spaces.
    value, observed, corrupted:
        f(x), the observation, and whether an adversary changed it.
    regret, cumulative_regret:
        f(x*) - f(x), noiseless, and its running sum, initial points included.
    inference_regret:
        f(x*) - f(recommended point) at the end of the run, repeated in each of its rows.
    """

    panel: str
    method: str
    seed: int
    round: int
    x: str
    value: float
    observed: float
    corrupted: bool
    regret: float
    cumulative_regret: float
    inference_regret: float


def observations(cell: Cell, trace: Trace) -> list[tuple[Any, ...]]:
    """First eight columns of the rows of one run: the cell, the round and its observation."""
    return [
        (
            *cell,
            max(0, row - trace.initial + 1),
            # All digits, so that the point can be read back
            " ".join(map(repr, trace.executed[row].tolist())),
            float(trace.value[row]),
            float(trace.observed[row]),
            bool(trace.corrupted[row]),
        )
        for row in range(len(trace))
    ]


def steps(cell: Cell, trace: Trace) -> list[Step]:
    """Rows of one run."""
    regrets = zip(trace.regret.tolist(), trace.cumulative_regret.tolist(), strict=True)
    return [
        Step(*(*first, *regret, trace.inference_regret))
        for first, regret in zip(observations(cell, trace), regrets, strict=True)
    ]


class Panel(NamedTuple):
    """Panel of a picture: its key, its title, T, and the methods, of which some were run."""

    key: str
    title: str
    rounds: int
    methods: Sequence[Contender[..., Any]]


def picture(
    groups: Groups[Step],
    panels: Sequence[Sequence[Panel]],
    size: tuple[float, float],
    labels: Sequence[str],
    initial: int,
    few: Mapping[str, str] | None = None,
    one_scale: bool = True,
    title_size: float = 9,
) -> tuple[pictures.Picture, NDArray[Any]]:
    """Plot mean cumulative regret with one standard error; return picture and panels.

    Parameters
    ----------
    groups:
        The trials.
    panels:
        Lines of panels.
    size:
        Of the picture, in inches.
    labels:
        Label of the vertical axis of each line.
    initial:
        Number of observations before the first round, where a line is drawn.
    few:
        Name of a method -> what its name is followed by in the legend.
    one_scale:
        True if all panels have the same vertical axis.
    title_size:
        Of the panels.
    """
    whole = pictures.blank(*size)
    grid = whole.subplots(len(panels), len(panels[0]), sharey=one_scale, squeeze=False)
    for line, label, across in zip(panels, labels, grid, strict=True):
        for panel, axes in zip(line, across, strict=True):
            for one in panel.methods:
                if (panel.key, one.name) in groups:
                    values = groups[panel.key, one.name].curves()
                    pictures.curve(axes, np.arange(1, values.shape[1] + 1), values, one)
            axes.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
            axes.set_xlabel(f"observations (the first {initial}: initial design)")
            axes.set_xlim(1, initial + panel.rounds)
            axes.set_ylim(bottom=0.0)
            axes.grid(alpha=0.3, lw=0.5)
            axes.set_title(panel.title, fontsize=title_size)
        across[0].set_ylabel(label)
    suffix = few or {}
    pictures.legend(whole, grid.flat, named=lambda name: name + suffix.get(name, ""), fontsize=8)
    return whole, grid


def against(reference: str) -> Callable[[Any, Sequence[Step]], Table]:
    """Table of final regrets, with paired differences to the ``reference`` method."""

    def table(settings: Any, rows: Sequence[Step]) -> Table:
        groups = grouped(rows)
        lines = []
        for (panel, method), trials in groups.items():
            paired = comparison(trials, groups[panel, reference])
            difference = Estimate(paired["paired_difference"], paired["paired_standard_error"])
            final, inference = Estimate.of(trials.final()), Estimate.of(trials.final(INFERENCE))
            less = "" if method == reference else str(difference)
            count = str(len(trials.runs))
            lines.append((panel, method, count, str(final), less, str(inference)))
        caption = (
            "Mean over the trials ± one standard error, in units of f; differences over the seeds "
            "that both were run on."
        )
        regrets = ("cumulative regret", f"less {reference}", "inference regret")
        return Table(caption, ("panel", "method", "trials", *regrets), tuple(lines))

    return table
