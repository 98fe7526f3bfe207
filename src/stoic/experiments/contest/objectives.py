"""Not in a paper: two or three objectives, clean and with outliers in each of them.

Three problems of known fronts [Zitzler2000]_, [Deb2002]_, a truss of four bars [Tanabe2020]_, and a
classifier of digits by its error and its size. A study is scored by the true hypervolume of the
front that is recommended: the share that is missing of the largest one known. A peer recommends
``study.best_trials``, which is the observed front; ``explain`` judges the same trials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial

from stoic.data import SDS_95, Array
from stoic.experiments import pictures
from stoic.experiments.contest import digits, outputs, scores
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED, contender, installed
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import quiet
from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.trials import Trials
from stoic.integrations.optuna import explain
from stoic.integrations.optuna.explanation import FrontPoint
from stoic.pareto import hypervolume


@dataclass(frozen=True, slots=True)
class Problem:
    """Objectives to minimise on the unit cube.

    Attributes
    ----------
    dim:
        d.
    formula:
        From a point (d,) to the objectives, (k,).
    ideal, nadir:
        Best and worst value of each objective on the front, (k,).
    volume:
        Largest hypervolume known, in ranges of the front, up to a tenth beyond the nadir.
    """

    dim: int
    formula: Callable[[Array], Sequence[float]]
    ideal: tuple[float, ...]
    nadir: tuple[float, ...]
    volume: float

    @property
    def units(self) -> Array:
        """Range of the front in each objective, (k,)."""
        return np.asarray(np.subtract(self.nadir, self.ideal))

    def missing(self, values: Array) -> float:
        """Share of the largest hypervolume that true values (n, k) do not dominate."""
        scaled = (np.array(self.ideal) - values.reshape(-1, len(self.ideal))) / self.units
        reached = hypervolume(scaled, np.full(len(self.ideal), -1.1))
        return max(1.0 - reached / self.volume, 0.0)


def _zdt(power: float, u: Array) -> Sequence[float]:
    """ZDT1 with the power 0.5 and ZDT2 with 2."""
    g = 1.0 + 9.0 * float(u[1:].mean())
    return float(u[0]), g * (1.0 - (float(u[0]) / g) ** power)


def _dtlz2(u: Array) -> Sequence[float]:
    """DTLZ2 with three objectives: an eighth of a sphere."""
    g = 1.0 + float(((u[2:] - 0.5) ** 2).sum())
    a, b = 0.5 * np.pi * u[:2]
    return g * np.cos(a) * np.cos(b), g * np.cos(a) * np.sin(b), g * np.sin(a)


def _truss(u: Array) -> Sequence[float]:
    """Volume of a truss of four bars, and its deflection: RE21."""
    length, force, modulus, root = 200.0, 10.0, 2e5, np.sqrt(2.0)
    lower = np.array([1.0, root, root, 1.0])
    a, b, c, d = lower + (3.0 - lower) * u
    volume = length * (2.0 * a + root * b + np.sqrt(c) + d)
    bend = 2.0 / a + 2.0 * root / b - 2.0 * root / c + 2.0 / d
    return volume, force * length / modulus * bend


def _digits(u: Array) -> Sequence[float]:
    """Error and size of a support vector machine with three parameters."""
    return digits.error_and_size(*digits.parameters(u))


PROBLEMS: dict[str, Problem] = {
    # Volumes of ZDT and DTLZ2: 1.1^k less what lies below the front, 1/3, 2/3 and pi / 6
    "ZDT1": Problem(4, partial(_zdt, 0.5), (0.0, 0.0), (1.0, 1.0), 0.21 + 2.0 / 3.0),
    "ZDT2": Problem(4, partial(_zdt, 2.0), (0.0, 0.0), (1.0, 1.0), 0.21 + 1.0 / 3.0),
    "DTLZ2": Problem(5, _dtlz2, (0.0,) * 3, (1.0,) * 3, 1.331 - np.pi / 6.0),
    # Ends as published; the volume by SLSQP for 500 deflections.
    "truss": Problem(
        4, _truss, (1237.8414230005, 0.0027614237), (2886.3695604236, 0.04), 0.8850112761
    ),
    # Of 2000 Sobol points and 1680 mutations of the best.
    "digits": Problem(3, _digits, (0.0266, 8.965), (0.437, 12.853), 0.9858201747),
}
SCENES = {"clean": "clean", "outliers": "5 % of outliers in each objective"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies; contenders are the default and peers."""

    trials: int = 10
    rounds: int = 40
    seed: int = 0
    problems: tuple[str, ...] = tuple(PROBLEMS)
    methods: tuple[str, ...] = (DEFAULT, *installed(("GPSampler", "TPE", "NSGA-II", "random")))


class Outcome(NamedTuple):
    """Outcome of one study and one recommended front: a row of the CSV file.

    A peer has a second row, with "+ explain" in its name.

    Attributes
    ----------
    score, tried:
        Share of the largest hypervolume that the recommended front lacks in truth, and the same of
        all queried settings.
    points:
        Number of settings on the recommended front.
    covered:
        Share of the intervals on it that have the true value; None for a peer's own.
    """

    panel: str
    method: str
    seed: int
    score: float
    tried: float
    points: int
    covered: float | None


def cells(settings: Settings) -> list[Cell]:
    """Every contender on every problem in every scene."""
    return outputs.cells(settings, SCENES)


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one study; outliers of a trial are the same for every contender."""
    problem = PROBLEMS[cell.panel.split(BETWEEN)[1]]
    observe = outputs.observing(problem, cell, settings.rounds)
    space = {f"x{k}": FloatDistribution(0.0, 1.0) for k in range(problem.dim)}
    with quiet():
        one = contender(cell.method)
        sampler = one.sampler(space, cell.seed, settings.rounds)
        study = optuna.create_study(directions=["minimize"] * len(problem.units), sampler=sampler)
        study.optimize(lambda trial: tuple(observe(trial)), n_trials=settings.rounds)
        known = explain(study)
    truths = outputs.truths(problem, study.get_trials(deepcopy=False))
    tried = problem.missing(truths)

    def outcome(front: Sequence[FrozenTrial], covered: float | None) -> Outcome:
        score = problem.missing(truths[[trial.number for trial in front]])
        return Outcome(*cell, score, tried, len(front), covered)

    inside = [_inside(point, truths) for point in known.front]
    covered = float(np.mean(inside)) if inside else None
    explained = outcome([point.trial for point in known.front], covered)
    if not one.peer:
        return [explained]
    own = outcome(study.best_trials, None)
    return [own, explained._replace(method=cell.method + EXPLAINED)]


def _inside(point: FrontPoint, truths: Array) -> float:
    """Share of the objectives whose true value is in the 95 % interval of a point."""
    truth = truths[point.trial.number]
    return float((np.abs(truth - point.mean) <= SDS_95 * point.std).mean())


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each scene and contender."""

    def tried(studies: Trials[Outcome]) -> str:
        return f"{scores.geometric(studies.final('tried')[None]).value:.2g}"

    def covered(studies: Trials[Outcome]) -> str:
        known = studies.known("covered")
        return f"{np.mean(known):.2f}" if known else ""

    return outputs.table(
        settings,
        SCENES,
        scores.by_scene(rows),
        "Share of the largest hypervolume that the recommended front lacks in truth, a geometric "
        "mean with its 95 % interval, and for each problem; the same of all settings tried; points "
        "on the front; share of the stated 95 % intervals that hold the truth.",
        (
            ("tried", tried),
            ("points", lambda studies: f"{studies.final('points').mean():.1f}"),
            ("covered", covered),
        ),
    )


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot the scores, a column per scene."""
    size = (3.6 * len(SCENES) + 1.0, 0.35 * len(settings.methods) + 1.4)
    numbers = {"share of the hypervolume that is missing": scores.score}
    picture, grid = outputs.plot(settings, SCENES, scores.by_scene(rows), size, numbers)
    for axes in grid.flat:
        pictures.plain_numbers(axes)
    return picture


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: scores against the best peer's, and the coverage of the stated intervals."""
    found = scores.by_scene(rows)

    def covering(scene: str, title: str) -> Claim:
        # A study without a front covers nothing
        mean = float(np.mean([row.covered or 0.0 for row in found[scene, DEFAULT].ends]))
        sentence = "of the default's 95 % intervals on the front 0.9 hold the truth (ours)."
        return Claim(f"{title}: {sentence}", mean >= 0.9, {"covered": mean})

    return outputs.claims(SCENES, found, covering)


FIGURE = Figure(
    "contest/objectives",
    "Two and three objectives, clean and with outliers in each",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
