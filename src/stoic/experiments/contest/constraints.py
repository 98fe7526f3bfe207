"""Not in a paper: constrained problems, with noise or outliers in each output.

Four problems with known optima, clean, with 5 % noise and with 5 % of outliers in every output, the
objective and each constraint. A study is scored by the true value of what it recommends: 0 is the
constrained optimum and 1 the median of all feasible settings, which an infeasible recommendation
counts as, too. A peer recommends its best trial that was observed to be feasible, or the one with
the least violation; ``explain`` judges the same trials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from stoic.data import Array
from stoic.experiments import pictures
from stoic.experiments.contest import outputs, scores
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED, contender, installed
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.contest.studies import quiet, value_of
from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.statistics import Interval, share
from stoic.experiments.trials import Trials
from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.optuna.internals import store_constraints

_CONSTRAINTS = "c"  # user attribute of a trial: the observed values


@dataclass(frozen=True, slots=True)
class Problem:
    """Objective to minimise, and constraints that hold up to 0, on the unit cube.

    Attributes
    ----------
    dim:
        d.
    formula:
        From a point (d,) to the objective and the constraints, (1 + k,).
    best, median:
        The constrained minimum, and the median objective of feasible points.
    limits:
        Unit of each constraint, (k,): what it limits by. That of the objective is median - best.
    """

    dim: int
    formula: Callable[[Array], Sequence[float]]
    best: float
    median: float
    limits: tuple[float, ...]

    @property
    def units(self) -> Array:
        """Unit of each output, (1 + k,)."""
        return np.array([self.median - self.best, *self.limits])


def _gardner(u: Array) -> Sequence[float]:
    """Second simulation of [Gardner2014]_, on [0, 6]^2: 1.8 % are feasible."""
    x, y = 6.0 * u
    return np.sin(x) + y, np.sin(x) * np.sin(y) + 0.95


def _gramacy(u: Array) -> Sequence[float]:
    """Toy problem of [Gramacy2016]_: 46 % are feasible."""
    x, y = u
    wave = 0.5 * np.sin(2.0 * np.pi * (x**2 - 2.0 * y))
    return x + y, 1.5 - x - 2.0 * y - wave, x**2 + y**2 - 1.5


def _hartmann(u: Array) -> Sequence[float]:
    """Hartmann 6 in the unit ball, as in [Letham2019]_: 8 % are feasible."""
    return -float(FUNCTIONS["hart6"].formula(u[None])[0]), float(np.linalg.norm(u)) - 1.0


def _beam(u: Array) -> Sequence[float]:
    """Welded beam [Coello2002]_, with six constraints: 0.1 % are feasible, five are active."""
    h, l, t, b = 0.1 + 9.9 * u  # noqa: E741
    # 0.125 <= h, a constraint of the original, is a bound here
    h = 0.125 + 9.875 * u[0]
    load, length, E, G = 6000.0, 14.0, 30e6, 12e6
    R = np.sqrt(0.25 * (l**2 + (h + t) ** 2))
    J = 2.0 * np.sqrt(2.0) * h * l * (l**2 / 12.0 + 0.25 * (h + t) ** 2)
    direct, bending = load / (np.sqrt(2.0) * h * l), load * (length + 0.5 * l) * R / J
    stress = np.sqrt(direct**2 + direct * bending * l / R + bending**2)
    buckling = 4.013 * E * t * b**3 / 6.0 / length**2 * (1.0 - t / length / 4.0 * np.sqrt(E / G))
    return (
        1.10471 * h**2 * l + 0.04811 * t * b * (14.0 + l),
        stress - 13600.0,
        6.0 * load * length / (b * t**2) - 30000.0,
        h - b,
        0.10471 * h**2 + 0.04811 * t * b * (14.0 + l) - 5.0,
        4.0 * load * length**3 / (E * t**3 * b) - 0.25,
        load - buckling,
    )


# Minima by SLSQP from the 30 best of 131,072 Sobol points, whose feasible ones give the medians.
PROBLEMS: dict[str, Problem] = {
    "Gardner": Problem(2, _gardner, 0.2532358975, 5.4018774767, (0.95,)),
    "Gramacy": Problem(2, _gramacy, 0.5997880520, 1.2515088012, (1.5, 1.5)),
    "Hartmann 6": Problem(6, _hartmann, -3.3223680114, -0.3056230483, (1.0,)),
    "welded beam": Problem(
        4, _beam, 1.7248523078, 5.4311353644, (13600.0, 30000.0, 1.0, 5.0, 0.25, 6000.0)
    ),
}
SCENES = {
    "clean": "clean",
    "noise": "noise, 5 % in each output",
    "outliers": "5 % of outliers in each output",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies; contenders are the default and peers."""

    trials: int = 5  # a study of the welded beam takes GPSampler minutes
    rounds: int = 60
    seed: int = 0
    problems: tuple[str, ...] = tuple(PROBLEMS)
    methods: tuple[str, ...] = (DEFAULT, *installed(("GPSampler", "TPE", "random")))


class Outcome(NamedTuple):
    """Outcome of one study and one recommendation: a row of the CSV file.

    A peer has a second row, with "+ explain" in its name.

    Attributes
    ----------
    score:
        True value of the recommended setting, 0 at the optimum; 1 if it is infeasible.
    feasible, stated:
        True if it is feasible in truth; and its stated probability, None for a peer's own.
    tried:
        Number of queries that are feasible in truth.
    """

    panel: str
    method: str
    seed: int
    score: float
    feasible: bool
    stated: float | None
    tried: int


def cells(settings: Settings) -> list[Cell]:
    """Every contender on every problem in every scene."""
    return outputs.cells(settings, SCENES)


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one study; noise and outliers of a trial are the same for every contender."""
    problem = PROBLEMS[cell.panel.split(BETWEEN)[1]]
    observe = outputs.observing(problem, cell, settings.rounds)
    with quiet():
        study = optuna.create_study(sampler=_sampler(cell.method, cell.seed))

        def objective(trial: optuna.Trial) -> float:
            value, *values = observe(trial)
            trial.set_user_attr(_CONSTRAINTS, list(values))
            if cell.method == "random":  # which has no constraints_func
                store_constraints(study, trial, {str(k): each for k, each in enumerate(values)})
            return float(value)

        study.optimize(objective, n_trials=settings.rounds)
        known = explain(study)
    trials = study.get_trials(deepcopy=False)
    truths = outputs.truths(problem, trials)
    tried = int((truths[:, 1:] <= 0.0).all(axis=1).sum())

    def outcome(chosen: FrozenTrial, stated: float | None) -> Outcome:
        value, *values = truths[chosen.number]
        feasible = max(values) <= 0.0
        score = (value - problem.best) / (problem.median - problem.best) if feasible else 1.0
        return Outcome(*cell, float(min(score, 1.0)), feasible, stated, tried)

    best = min(trials, key=_violation)
    explained = outcome(known.recommended or known.observed_best or best, known.feasible)
    if not contender(cell.method).peer:
        return [explained]
    return [outcome(best, None), explained._replace(method=cell.method + EXPLAINED)]


def _sampler(method: str, seed: int) -> BaseSampler:
    def constraints(trial: FrozenTrial) -> Sequence[float]:
        return list(trial.user_attrs[_CONSTRAINTS])

    if method == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    samplers: dict[str, Any] = {"TPE": optuna.samplers.TPESampler, DEFAULT: StoicSampler}
    sampler = samplers.get(method) or getattr(optuna.samplers, method)
    found: BaseSampler = sampler(seed=seed, constraints_func=constraints)
    return found


def _violation(trial: FrozenTrial) -> tuple[float, float]:
    """Order trials by their observed violation, and feasible ones by their value."""
    values = trial.user_attrs[_CONSTRAINTS]
    return sum(max(value, 0.0) for value in values), value_of(trial)


def _infeasible(studies: Trials[Outcome]) -> Interval:
    return share([not feasible for feasible in studies.final("feasible")])


def _expected(studies: Trials[Outcome]) -> str:
    stated = studies.known("stated")
    return f"{1.0 - np.mean(stated):.2f}" if stated else ""


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each scene and contender."""
    return outputs.table(
        settings,
        SCENES,
        scores.by_scene(rows),
        "True score of what is recommended, geometric mean with its 95 % interval, and for each "
        "problem; share of infeasible recommendations, and the share that explain expects; queries "
        "that are feasible.",
        (
            ("infeasible", lambda studies: str(_infeasible(studies))),
            ("expected", _expected),
            ("tried", lambda studies: f"{studies.final('tried').mean():.1f}"),
        ),
    )


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot a column per scene: scores above, shares of infeasible recommendations below."""
    numbers: dict[str, Any] = {
        "score of what is recommended (best: 0)": scores.score,
        "share of infeasible recommendations": _infeasible,
    }
    size = (3.0 * len(SCENES) + 1.0, 0.5 * len(settings.methods) + 2.0)
    return outputs.plot(settings, SCENES, scores.by_scene(rows), size, numbers)[0]


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: scores against the best peer's, and infeasible recommendations."""
    found = scores.by_scene(rows)

    def seldom(scene: str, title: str) -> Claim:
        wrong = {name: _infeasible(of) for (each, name), of in found.items() if each == scene}
        ours, shares = wrong[DEFAULT], {name: each.value for name, each in wrong.items()}
        peers = [share for name, share in shares.items() if name in settings.methods]
        return Claim(
            f"{title}: the default recommends an infeasible setting no more often than any peer "
            "(ours).",
            ours.value <= min(peers),
            {**shares, "lower": ours.lower, "upper": ours.upper},
        )

    return outputs.claims(SCENES, found, seldom)


FIGURE = Figure(
    "contest/constraints",
    "Constrained problems, with noise or outliers in each output",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
