"""Cumulative regret: rows of every observation, curves over the observations, and their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stoic.experiments import pictures
from stoic.experiments.contender import Contender
from stoic.experiments.figure import Cell, Table, tabulate
from stoic.experiments.statistics import Estimate
from stoic.experiments.trials import Groups, Trials, comparison, grouped
from stoic.refusal import RefusalError
from stoic.simulate import Trace

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
    groups: Groups[Any],
    shown: Sequence[Sequence[Panel]],
    size: tuple[float, float],
    labels: Sequence[str],
    initial: int,
    few: Mapping[str, str] | None = None,
    one_scale: bool = True,
    title_size: float = 9,
) -> tuple[pictures.Picture, pictures.Grid]:
    """Plot mean cumulative regret with one standard error; return picture and panels.

    Parameters
    ----------
    groups:
        The trials.
    shown, size, labels, title_size:
        Lines of panels, and the others as of :func:`stoic.experiments.pictures.panels`.
    initial:
        Number of observations before the first round, where a line is drawn.
    few:
        Name of a method -> what its name is followed by in the legend.
    one_scale:
        True if all panels have the same vertical axis.
    """
    made = []
    for panel in (panel for line in shown for panel in line):
        names, there = [one.name for one in panel.methods], {m for p, m in groups if p == panel.key}
        if there.difference(names) and (missing := [name for name in names if name not in there]):
            raise RefusalError(
                f"The panel {panel.key!r} has rows of {', '.join(sorted(there))}, and none of "
                f"{', '.join(missing)}: a contender has the name that is its method in the rows."
            )
        run = [
            (one, groups[key]) for one in panel.methods if (key := (panel.key, one.name)) in groups
        ]
        curves = [(one, np.arange(1, 1 + len(of.runs[0])), of.curves()) for one, of in run]
        made.append(pictures.Panel(panel.title, curves, (1, initial + panel.rounds)))
    columns = len(shown[0])
    whole, grid = pictures.panels(
        made, labels, size, columns, title_size=title_size, sharey=one_scale
    )
    for axes in grid.flat:
        axes.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
        axes.set_xlabel(f"observations (the first {initial}: initial design)")
    suffix = few or {}
    pictures.legend(whole, grid.flat, named=lambda name: name + suffix.get(name, ""), fontsize=8)
    return whole, grid


def against(reference: str) -> Callable[[Any, Sequence[Step]], Table]:
    """Table of final regrets, with paired differences to the ``reference`` method."""

    def table(settings: Any, rows: Sequence[Step]) -> Table:
        groups = grouped(rows)

        def difference(trials: Trials[Step]) -> str:
            panel, method, *_ = trials.ends[0]
            if method == reference:
                return ""
            paired = comparison(trials, groups[panel, reference])
            return str(Estimate(paired["paired_difference"], paired["paired_standard_error"]))

        return tabulate(
            "Mean over the trials ± one standard error, in units of f; differences over the seeds "
            "that both were run on.",
            ("panel", "method"),
            (
                ("trials", lambda trials: str(len(trials))),
                ("cumulative regret", lambda trials: str(Estimate.of(trials.final()))),
                (f"less {reference}", difference),
                ("inference regret", lambda trials: str(Estimate.of(trials.final(INFERENCE)))),
            ),
            groups,
        )

    return table
