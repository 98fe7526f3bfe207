"""Outliers on top of moved inputs: AdveRS-2 and StableOpt behind A2-RCGP, and undefended.

No paper has both corruptions. [Saday2025]_ lets every input be moved: here to the worst place
within eps = 0.5, which AdveRS-2 withstands. [Ezzerg2026]_ lets floor(T^(1/3)) results be replaced
by anything: here those of rounds 1, 8, 27 and 64 become 200 or -200, far outside of f's range,
[-68, 21].

All four learners fit a Matern kernel to their observations, after the same ten clean results at
random points. The defence is another ``model`` of the same recipe, which also fits and scales in
ways of its own. 25 runs, not 100: hyperparameters are fitted in every round, and the differences
are many times their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from stoic.adversaries import Adversary, Always, Frequency, Gaussian, WorstCase, cube_root
from stoic.adversaries.budgets import cubic_releases
from stoic.environment import Environment
from stoic.experiments import pictures
from stoic.experiments.claims import Beside, judge, not_above
from stoic.experiments.contender import BLACK, VERMILION
from stoic.experiments.figure import Cell, Claim, Figure, every
from stoic.experiments.inputs.algorithms import Algorithm, Build
from stoic.experiments.inputs.comparison import (
    COLUMNS,
    LENIENT,
    flat,
    less,
    panel_of,
    start,
    table,
)
from stoic.experiments.inputs.trials import Curves, Row, kept
from stoic.experiments.inputs.worlds import MISSPECIFIED, World, world
from stoic.experiments.trials import comparison, grouped
from stoic.learner import Learner
from stoic.recipes import Parts, Recipe, a2_rcgp_ucb, advers_2, stable_opt
from stoic.satisficing import lenient_regret, satisficing_regret
from stoic.simulate import run as simulate

CLEAN, HIGH, LOW = "no outliers", "outliers of 200", "outliers of -200"
REPORTED = {HIGH: 200.0, LOW: -200.0}


def _plain(write: Callable[..., Recipe[Parts]], defended: bool = False) -> Build:
    """Build with fitted hyperparameters, and behind A2-RCGP if ``defended``."""

    def build(world: World, threshold: float, radius: float, seed: int) -> Learner:
        model = a2_rcgp_ucb() if defended else None
        known = {"threshold": threshold} if write is advers_2 else {"radius": radius}
        return Learner(world.problem.domain, write(model=model, **known), seed=seed)

    return build


ADVERS = Algorithm("AdveRS-2", _plain(advers_2), VERMILION, "--")
ADVERS_A2 = Algorithm("AdveRS-2 behind A2-RCGP", _plain(advers_2, defended=True), VERMILION)
STABLE = Algorithm("StableOpt, r = eps", _plain(stable_opt), BLACK, "--", factor=1.0)
STABLE_A2 = Algorithm(
    "StableOpt, r = eps, behind A2-RCGP", _plain(stable_opt, defended=True), BLACK, "-", factor=1.0
)
PAIRS = ((ADVERS_A2, ADVERS), (STABLE_A2, STABLE))
ALGORITHMS = {algorithm.name: algorithm for pair in PAIRS for algorithm in pair}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the runs. Trial k has design, noise and learner of seed k for all methods.

    Attributes
    ----------
    threshold, radius:
        tau; and eps, which StableOpt knows.
    initial:
        Clean results at random points before the first round, the same for all methods.
    side, panels:
        Points of the grid in each coordinate; and kinds of outliers.
    """

    threshold: float = -10.0
    radius: float = 0.5
    initial: int = 10
    trials: int = 25
    rounds: int = 100
    seed: int = 0
    side: int = 30
    panels: tuple[str, ...] = (CLEAN, HIGH, LOW)
    methods: tuple[str, ...] = tuple(ALGORITHMS)


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one trial."""
    here = world(MISSPECIFIED, settings.side)  # its prior is not used
    tau, eps = settings.threshold, settings.radius
    adversary = None
    if cell.panel in REPORTED:
        count = cube_root(settings.rounds)
        adversary = Adversary(Always(REPORTED[cell.panel]), Frequency(count, cubic_releases(count)))
    noise, moved = Gaussian(here.noise_sd), WorstCase(eps, here.distance)
    environment = Environment(here.problem, noise, adversary, cell.seed, perturbation=moved)
    learner = ALGORITHMS[cell.method].build(here, tau, eps, cell.seed)
    trace = simulate(learner, environment, settings.rounds, initial=settings.initial)
    value = trace.value[trace.initial :]  # (T,): initial results are no rounds
    satisficing = satisficing_regret(value, tau, here.fragility(tau), eps)
    return kept(cell, Curves(lenient_regret(value, tau), satisficing, np.cumsum(value < tau)))


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot mean lenient regret with half a standard deviation, a panel per kind of outlier."""
    groups, columns = grouped(rows), len(settings.panels)
    return pictures.trajectories(
        [panel_of(groups, panel, settings, ALGORITHMS, LENIENT) for panel in settings.panels],
        ["lenient regret\n(units of f)"],
        (3.3 * columns + 0.6, 3.8),
        columns,
        "half",
        f"Polynomial, tau = {settings.threshold:g}, moved to the worst place within "
        f"{settings.radius:g}: mean of {settings.trials} runs, band: sd / 2",
        ncols=2,
        fontsize=8,
    )


_NO_DEARER = Beside(
    (),
    (),
    "",
    "{0.name} ends at most two standard errors of the paired difference above {1.name} in lenient "
    "regret.",
    partial(not_above, errors=2.0),
)


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims that the defence pays with outliers, and costs little without them."""
    groups, found = grouped(rows), []
    compare = partial(comparison, column=COLUMNS[LENIENT])
    for panel in settings.panels:
        for defended, plain in PAIRS:
            if panel == CLEAN:
                pair = _NO_DEARER._replace(ours=(defended,), theirs=(plain,))
                found += judge(groups, panel, [pair], f"{start(panel)}: ", compare)
            else:
                found += less(defended, plain)(groups, panel)
            found += flat(defended)(groups, panel)
    return tuple(found)


FIGURE = Figure(
    "inputs/with-outliers",
    "AdveRS-2 and StableOpt while inputs are moved and some results are outliers",
    Settings(), every(lambda settings: settings.panels), run, plot, table, claims,
)  # fmt: skip
