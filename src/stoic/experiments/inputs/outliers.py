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

import numpy as np

from stoic.adversaries import Adversary, Always, Frequency, Gaussian, WorstCase, cube_root
from stoic.adversaries.budgets import cubic_releases
from stoic.environment import Environment
from stoic.experiments import pictures
from stoic.experiments.contender import BLACK, VERMILION
from stoic.experiments.figure import Cell, Claim, Figure, Table, crossed
from stoic.experiments.inputs.algorithms import Algorithm, Build
from stoic.experiments.inputs.comparison import LENIENT, curves, grows, less, summary
from stoic.experiments.inputs.trials import Groups, Row, grouped
from stoic.experiments.inputs.worlds import MISSPECIFIED, World, world
from stoic.experiments.regret import compared, curve, marks
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
    threshold:
        tau.
    radius:
        eps, which StableOpt knows.
    initial:
        Clean results at random points before the first round, the same for all methods.
    side:
        Points of the grid in each coordinate.
    panels:
        Kinds of outliers.
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


def cells(settings: Settings) -> list[Cell]:
    """Every method on every trial in every panel."""
    return crossed(settings.panels, settings.methods, seed=settings.seed, trials=settings.trials)


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one trial."""
    here = world(MISSPECIFIED, settings.side)  # its prior is not used
    tau, eps = settings.threshold, settings.radius
    adversary = None
    if cell.panel in REPORTED:
        count = cube_root(settings.rounds)
        adversary = Adversary(Always(REPORTED[cell.panel]), Frequency(count, cubic_releases(count)))
    environment = Environment(
        here.problem,
        Gaussian(here.noise_sd),
        adversary,
        cell.seed,
        perturbation=WorstCase(eps, here.distance),
    )
    learner = ALGORITHMS[cell.method].build(here, tau, eps, cell.seed)
    trace = simulate(learner, environment, settings.rounds, initial=settings.initial)
    value = trace.value[trace.initial :]
    kappa = here.fragility(tau)
    lenient = lenient_regret(value, tau)
    satisficing = satisficing_regret(value, tau, kappa, eps)
    below = np.cumsum(value < tau)
    return [
        Row(*cell, t, float(lenient[t - 1]), float(satisficing[t - 1]), int(below[t - 1]))
        for t in marks(settings.rounds)
    ]


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot mean lenient regret with half a standard deviation, a panel per kind of outlier."""
    groups = grouped(rows)
    columns = len(settings.panels)
    picture = pictures.blank(3.3 * columns + 0.6, 3.8)
    panels = picture.subplots(1, columns, sharex=True, sharey=True, squeeze=False)[0]
    for axes, panel in zip(panels, settings.panels, strict=True):
        for name in settings.methods:
            trials = groups[panel, name]
            curve(axes, trials.rounds, trials.lenient, ALGORITHMS[name], band="half")
        axes.set_title(panel, fontsize=10)
        axes.set_xlabel("round t")
        axes.set_xlim(0, settings.rounds)
        axes.grid(alpha=0.3, lw=0.5)
    panels[0].set_ylim(bottom=0.0)  # of all, once everything is drawn
    panels[0].set_ylabel("lenient regret\n(units of f)")
    pictures.legend(picture, [panels[0]], "outside lower center", ncols=2, fontsize=8)
    picture.suptitle(
        f"Polynomial, tau = {settings.threshold:g}, moved to the worst place within "
        f"{settings.radius:g}: mean of {settings.trials} runs, band: sd / 2",
        fontsize=10,
    )
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """Table of the final regrets of each method."""
    return summary(rows, settings.trials, settings.rounds)


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims that the defence pays with outliers, and costs little without them."""
    groups, found = grouped(rows), []
    for panel in settings.panels:
        for defended, plain in PAIRS:
            if panel == CLEAN:
                found.append(no_dearer(groups, panel, defended, plain))
            else:
                found.append(less(groups, panel, defended, plain, LENIENT))
            found.append(grows(groups, panel, defended, LENIENT, linear=False))
    return tuple(found)


def no_dearer(groups: Groups, panel: str, defended: Algorithm, plain: Algorithm) -> Claim:
    """Claim a mean at most two standard errors of the paired difference above another."""
    mine, other = (curves(groups[panel, a.name], LENIENT)[:, -1] for a in (defended, plain))
    numbers = compared(mine, other)
    return Claim(
        f"{panel[0].upper()}{panel[1:]}: {defended.name} ends at most two standard errors of the "
        f"paired difference above {plain.name} in lenient regret.",
        numbers["paired_difference"] <= 2.0 * numbers["paired_standard_error"],
        numbers,
    )


FIGURE = Figure(
    "inputs/with-outliers",
    "AdveRS-2 and StableOpt while inputs are moved and some results are outliers",
    Settings(),
    cells,
    run,
    plot,
    table,
    claims,
)
