"""Not in a paper: two or three objectives, clean and with outliers in each of them.

Three problems of known fronts [Zitzler2000]_, [Deb2002]_, a truss of four bars [Tanabe2020]_, and a
classifier of digits by its error and its size. A study is scored by the true hypervolume of the
front that is recommended: the share that is missing of the largest one known. A peer recommends
``study.best_trials``, which is the observed front; ``explain`` judges the same trials.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from stoic.data import SDS_95, Array
from stoic.experiments import pictures
from stoic.experiments.contest import comparison, outputs, scores
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED, contender, installed
from stoic.experiments.contest.digits import error_and_size
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import quiet
from stoic.experiments.figure import Cell, Claim, Figure, Table
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
    return error_and_size(
        float(10 ** (6 * u[0] - 2)), float(10 ** (5 * u[1] - 4)), round(2 ** (1 + 5 * u[2]))
    )


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

    Attributes
    ----------
    panel, method, seed:
        Key of the study; a peer has a second row, with "+ explain" in its name.
    score:
        Share of the largest hypervolume that the recommended front lacks in truth.
    tried:
        The same of all queried settings.
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
    scene, name = cell.panel.split(BETWEEN)
    problem = PROBLEMS[name]
    # crc32, since hash() of a text differs between processes
    rng = np.random.default_rng([zlib.crc32(cell.panel.encode()), cell.seed])
    shape = settings.rounds, len(problem.units)
    added = outputs.outliers(rng, shape, problem.units, scene == "outliers")
    names = [f"x{k}" for k in range(problem.dim)]
    space = {each: optuna.distributions.FloatDistribution(0.0, 1.0) for each in names}

    def objective(trial: optuna.Trial) -> tuple[float, ...]:
        u = np.array([trial.suggest_float(each, 0.0, 1.0) for each in names])
        return tuple(np.array(problem.formula(u)) + added[trial.number])

    with quiet():
        one = contender(cell.method)
        sampler = one.sampler(space, cell.seed, settings.rounds)
        study = optuna.create_study(directions=["minimize"] * shape[1], sampler=sampler)
        study.optimize(objective, n_trials=settings.rounds)
        known = explain(study)
    trials = study.get_trials(deepcopy=False)
    truths = np.array([problem.formula(np.array(list(t.params.values()))) for t in trials])
    tried = problem.missing(truths)
    inside = [_inside(point, truths) for point in known.front]
    explained = Outcome(
        *cell,
        _score(problem, truths, [point.trial for point in known.front]),
        tried,
        len(known.front),
        float(np.mean(inside)) if inside else None,
    )
    if not one.peer:
        return [explained]
    own = study.best_trials
    score = _score(problem, truths, own)
    return [
        Outcome(*cell, score, tried, len(own), None),
        explained._replace(method=cell.method + EXPLAINED),
    ]


def _inside(point: FrontPoint, truths: Array) -> float:
    """Share of the objectives whose true value is in the 95 % interval of a point."""
    truth = truths[point.trial.number]
    return float((np.abs(truth - point.mean) <= SDS_95 * point.std).mean())


def _score(problem: Problem, truths: Array, front: Sequence[FrozenTrial]) -> float:
    return problem.missing(truths[[trial.number for trial in front]])


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each scene and contender."""
    lines = []
    for scene, method, here, values in outputs.by_scene(settings, SCENES, rows):
        tried = np.array([[row.tried for row in here]])
        covered = [row.covered for row in here if row.covered is not None]
        lines.append(
            (
                SCENES[scene],
                method,
                str(values.size),
                str(scores.geometric(values)),
                *(f"{scores.geometric(one[None]).value:.2g}" for one in values),
                f"{scores.geometric(tried).value:.2g}",
                f"{np.mean([row.points for row in here]):.1f}",
                f"{np.mean(covered):.2f}" if covered else "",
            )
        )
    caption = (
        "Share of the largest hypervolume that the recommended front lacks in truth, a geometric "
        "mean with its 95 % interval, and for each problem; the same of all settings tried; points "
        "on the front; share of the stated 95 % intervals that hold the truth."
    )
    headings = ("scene", "contender", "studies", "score", *settings.problems, "tried", "points")
    return Table(caption, (*headings, "covered"), tuple(lines))


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot the scores, a column per scene."""
    picture = pictures.blank(3.6 * len(SCENES) + 1.0, 0.35 * len(settings.methods) + 1.4)
    grid = picture.subplots(1, len(SCENES), sharex=True, sharey=True, squeeze=False)[0]
    for scene, method, _, values in outputs.by_scene(settings, SCENES, rows):
        name, hollow = method.removesuffix(EXPLAINED), method.endswith(EXPLAINED)
        line, axes = settings.methods.index(name), grid[list(SCENES).index(scene)]
        comparison.point(axes, line, contender(name), scores.geometric(values), hollow)
    for axes, title in zip(grid, SCENES.values(), strict=True):
        axes.set_xscale("log")
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("share of the hypervolume that is missing", fontsize=8)
        pictures.lines(axes, settings.methods)
        pictures.plain_numbers(axes)
    comparison.explain_marks(picture)
    return picture


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: scores against the best peer's, and the coverage of the stated intervals."""
    made = []
    found = outputs.by_scene(settings, SCENES, rows)
    for scene, title in SCENES.items():
        claimed = outputs.against_the_best_peer(settings, scene, title, found)
        if claimed is None:
            continue
        made.append(claimed[0])
        here = {method: of for place, method, of, _ in found if place == scene}
        # A study without a front covers nothing
        mean = float(np.mean([row.covered or 0.0 for row in here[DEFAULT]]))
        made.append(
            Claim(
                f"{title}: of the default's 95 % intervals on the front 0.9 hold the truth (ours).",
                mean >= 0.9,
                {"covered": mean},
            )
        )
    return tuple(made)


FIGURE: Figure[Any, Any] = Figure(
    "contest/objectives",
    "Two and three objectives, clean and with outliers in each",
    Settings(),
    cells,
    run,
    plot,
    table,
    claims,
)
