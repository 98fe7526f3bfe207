"""Shared by figures 4 and 5 of [Ezzerg2026]_: a program, some of whose results are replaced.

The adversary knows nothing: it reports the same bad value whatever was queried, as early as its
budget of floor(T^(1/3)) allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from stoic.adversaries import Adversary, Always, Frequency, cube_root
from stoic.adversaries.budgets import cubic_releases
from stoic.environment import Environment
from stoic.experiments import methods, pictures, regret
from stoic.experiments.claims import Beside, not_above
from stoic.experiments.figure import Cell, Table
from stoic.experiments.regret import Step
from stoic.experiments.trials import grouped, names
from stoic.problems import Problem
from stoic.problems.programs import Program, Runs, mean_of_runs
from stoic.simulate import run as simulate

# Schedules of corruption: that of the paper's text, and that of its authors' code.
SWIFT = "from the first round on"
RELEASED = "released at rounds 1, 8, 27, ..."
NEVER = "never"
PANELS = (SWIFT, RELEASED, NEVER)
METHODS = names(
    methods.GP, methods.GP_LOO, methods.FC, methods.A2, methods.LOO, methods.ROBUST,
    methods.STUDENT, methods.STUDENT_LOO, methods.DIAGNOSTICS, methods.DIAGNOSTICS_LOO,
    methods.RANDOM,
)  # fmt: skip


# That A2 has the weaker bound is "a limitation of the proof technique" (section 4.2)
NO_WORSE = Beside(
    (methods.A2,),
    (methods.FC,),
    "",
    "{0.name} ends at most one standard error above {1.name}.",
    partial(not_above, errors=1.0),
)


class Play(NamedTuple):
    """One observation of one run: a row of the CSV file, as :class:`~.regret.Step`, but for these.

    Attributes
    ----------
    value:
        f(x) where it is known; otherwise the result before the adversary changed it, whose mean is
        f(x).
    best:
        f(x*); nan where it is not known.
    recommended:
        f at the point recommended at the end, or the mean of fresh results there; repeated in each
        row of the run.
    """

    panel: str
    method: str
    seed: int
    round: int
    x: str
    value: float
    observed: float
    corrupted: bool
    best: float
    recommended: float


def adversary(panel: str, rounds: int, reported: float) -> Adversary:
    """Adversary of a panel, one of ``PANELS``."""
    if panel not in PANELS:
        raise ValueError(f"Corruptions come {', '.join(map(repr, PANELS))}, got {panel!r}.")
    count = 0 if panel == NEVER else cube_root(rounds)
    releases = cubic_releases(count) if panel == RELEASED else ()
    return Adversary(Always(reported), Frequency(count, releases))


def play(
    cell: Cell,
    program: Program,
    truth: Problem | None,
    settings: Any,
    reported: float,
    checks: int,
) -> list[Play]:
    """Play one method with one seed.

    Parameters
    ----------
    cell, program:
        Panel, method and seed; and the program to run.
    truth:
        f, if it is known.
    settings:
        Have ``rounds``, T, and ``initial``, the number of clean points that come first.
    reported:
        Value that the adversary reports.
    checks:
        Number of fresh runs that judge the recommended point if f is not known.
    """
    rounds, against = settings.rounds, adversary(cell.panel, settings.rounds, reported)
    environment = Environment(Runs(program, cell.seed), adversary=against, seed=cell.seed)
    assert isinstance(against.budget, Frequency)
    threat = methods.Threat(against.budget.count, horizon=rounds)
    learner = methods.method(cell.method).build(program.domain, threat, cell.seed)
    # Without ``recommend``, which would take a single run for f
    trace = simulate(learner, environment, rounds, initial=settings.initial)
    x = learner.recommend().x
    if truth is None:
        recommended = mean_of_runs(program, x, checks, cell.seed)
    else:
        recommended = float(truth.value(x[None])[0])
        # Regret in f itself, where it is known, instead of single results
        best = truth.optimum.value
        trace = replace(trace, value=truth.value(trace.executed), best=best)
    last = float(trace.best), recommended
    return [Play(*(*first, *last)) for first in regret.observations(cell, trace)]


def steps(rows: Sequence[Play]) -> list[Step]:
    """Rows with their regrets.

    If f(x*) is not known, the best value of all runs of all methods stands for it, as in
    [Ezzerg2026]_. It is the same number for every method, and too high by the luck of one result.
    """
    best = max(row.value for row in rows)
    found, cumulative, before = [], 0.0, None
    for row in rows:
        if row[:3] != before:  # the next run begins
            cumulative, before = 0.0, row[:3]
        top = best if math.isnan(row.best) else row.best
        cumulative += top - row.value
        found.append(Step(*row[:8], top - row.value, cumulative, top - row.recommended))
    return found


def plot(settings: Any, rows: Sequence[Play], unit: str) -> pictures.Picture:
    """Plot mean cumulative regret with one standard error, and the corrupted rounds, by panel."""
    initial, rounds = settings.initial, settings.rounds
    shown = [methods.method(name) for name in settings.methods]
    whole, (grid,) = regret.picture(
        grouped(steps(rows)),
        [[regret.Panel(k, f"corruptions (|) {k}", rounds, shown) for k in settings.panels]],
        (4.2 * len(settings.panels) + 3.0, 4.4),
        [f"cumulative regret ({unit})"],
        initial,
    )
    for panel, axes in zip(settings.panels, grid, strict=True):
        hit = {row.round + initial for row in rows if row.panel == panel and row.corrupted}
        ticks = axes.get_xaxis_transform()  # x in observations, y in shares of the height
        axes.plot(sorted(hit), np.full(len(hit), 0.01), "k|", ms=7, transform=ticks)
    return whole


def table(settings: Any, rows: Sequence[Play]) -> Table:
    """Regrets at the end."""
    return regret.against(methods.GP.name)(settings, steps(rows))
