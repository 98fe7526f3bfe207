"""Not in a paper: pruners, at the same number of epochs, with honest intermediate values and lies.

Learning curves of three problems: power laws with noise; curves that cross, since what learns
faster ends worse; and a small network on scikit-learn's digits. A study ends when it has spent the
epochs of ``rounds`` trials that run to their end. In the scene with lies 5 % of the intermediate
values are wrong, by one to a hundred times the range of values, half of them too good; final values
are honest. The loss is that of the recommended setting, at the end of its curve, over the least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner, WilcoxonPruner
from optuna.samplers import TPESampler

from stoic.data import Array
from stoic.experiments import pictures
from stoic.experiments.contender import BLUE, GREEN, VERMILION
from stoic.experiments.contest.libraries import load
from stoic.experiments.contest.studies import quiet
from stoic.experiments.figure import Cell, Claim, Figure, Table, every, tabulate
from stoic.experiments.statistics import mean, mean_ratio
from stoic.experiments.trials import Trials, grouped
from stoic.integrations.optuna import StoicPruner, StoicSampler, explain

BETWEEN = ": "
_OURS, _TPE = "stoic", "TPE"
_PRUNERS: Mapping[str, Callable[[], BasePruner]] = {
    "StoicPruner": StoicPruner,
    "none": NopPruner,
    "Median": MedianPruner,
    "Hyperband": HyperbandPruner,
    "Wilcoxon": WilcoxonPruner,
}
_METHODS = (
    *(f"{_OURS}, {name}" for name in _PRUNERS),
    *(f"{_TPE}, {name}" for name in ("none", "Median", "Hyperband")),
)
_NO_MORE = 1.1  # largest ratio of losses that is no more


class Problem(NamedTuple):
    """Learning curves over the unit square, to minimise.

    Attributes
    ----------
    epochs:
        Length of a curve.
    curve:
        From a setting, (2,), to its noiseless values, shape (epochs,).
    noise:
        Standard deviation of each reported value.
    least:
        The least final value; 0 for an error, which is its own loss.
    """

    epochs: int
    curve: Callable[[float, float], Array]
    noise: float
    least: float = 0.0


def _power(x: float, y: float) -> Array:
    """Every curve falls alike; the last epoch has 0.07 more than the asymptote."""
    t = np.arange(1, 28)
    return np.asarray((x - 0.3) ** 2 + (y - 0.7) ** 2 + t**-0.8 - 27.0**-0.8)


def _crossing(x: float, y: float) -> Array:
    """Curves that cross: the faster one learns (y), the worse it ends."""
    t = np.arange(1, 28)
    return np.asarray((x - 0.3) ** 2 + 0.6 * y**2 + np.exp(-(0.08 + 0.6 * y) * t))


@cache
def _digits(x: float, y: float) -> Array:
    """Error of a network on 500 images after each of 15 passes over 300 others."""
    modules = ("sklearn.neural_network", "sklearn.datasets")
    networks, datasets = load("The error of a network", "scikit-learn", *modules)
    images, digits = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    train, rest, scaled = order[:300], order[300:800], images / 16.0
    # 1e-4 to 1, and 4 to 64
    rate, width = 10.0 ** (4.0 * x - 4.0), round(4.0 * 16.0**y)
    known = {"learning_rate_init": rate, "batch_size": 50, "random_state": 0}
    model, errors = networks.MLPClassifier((width,), **known), []
    for _ in range(15):
        model.partial_fit(scaled[train], digits[train], classes=np.arange(10))
        errors.append(1.0 - float(model.score(scaled[rest], digits[rest])))
    return np.array(errors)


PROBLEMS = {
    "power laws": Problem(27, _power, 0.005),
    "crossing": Problem(27, _crossing, 0.005, 0.0236),  # on a grid of 400
    "digits": Problem(15, _digits, 0.01),  # of which the error itself is the loss
}
SCENES = {"honest": 0.0, "lies": 0.05}  # rates of wrong values


class Outcome(NamedTuple):
    """One study: a row of the CSV file.

    Attributes
    ----------
    loss:
        Of the recommended setting at the end of its curve, over the least.
    trials, complete, epochs:
        Numbers of the trials that were begun and finished, and of the epochs they took.
    """

    panel: str
    method: str
    seed: int
    loss: float
    trials: int
    complete: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    rounds:
        Full trials whose epochs a study may spend.
    methods, problems:
        A sampler and a pruner each, ours first; and names of problems.
    """

    trials: int = 10
    rounds: int = 25
    seed: int = 0
    methods: tuple[str, ...] = _METHODS
    problems: tuple[str, ...] = tuple(PROBLEMS)


def _panels(settings: Settings) -> list[str]:
    return [scene + BETWEEN + name for name in settings.problems for scene in SCENES]


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one study until its epochs are spent."""
    scene, name = cell.panel.split(BETWEEN)
    problem, rate = PROBLEMS[name], SCENES[scene]
    sampler, _, pruner = cell.method.partition(", ")
    budget, spent = settings.rounds * problem.epochs, 0

    def objective(trial: optuna.Trial) -> float:
        nonlocal spent
        # Of the trial, not of its setting: the same noise and lies for every method
        rng = np.random.default_rng([cell.seed, trial.number])
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        values = problem.curve(x, y) + problem.noise * rng.standard_normal(problem.epochs)
        size = rng.choice([-1.0, 1.0], problem.epochs) * 10.0 ** rng.uniform(0, 2, problem.epochs)
        reported = np.where(rng.random(problem.epochs) < rate, values + size, values)
        for epoch, value in enumerate(reported, 1):
            spent += 1
            trial.report(float(value), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(values[-1])

    ours = sampler == _OURS
    with quiet():
        made = StoicSampler(seed=cell.seed) if ours else TPESampler(seed=cell.seed)
        # Hyperband draws by the name of the study, which would be a random one
        study = optuna.create_study(
            sampler=made, pruner=_PRUNERS[pruner](), study_name=f"{cell.seed}"
        )
        # The last trial may go beyond the budget
        while spent < budget:
            study.optimize(objective, n_trials=1)
        chosen = explain(study).recommended if ours else study.best_trial
    assert chosen is not None
    trials = study.get_trials(deepcopy=False)
    complete = sum(trial.state == optuna.trial.TrialState.COMPLETE for trial in trials)
    loss = float(problem.curve(chosen.params["x"], chosen.params["y"])[-1]) - problem.least
    return [Outcome(*cell, loss, len(trials), complete, spent)]


def _mean(studies: Trials[Outcome], column: str) -> str:
    return f"{studies.final(column).mean():.1f}"


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each panel and method."""
    found = grouped(rows)
    keys = product(_panels(settings), settings.methods)
    return tabulate(
        f"Studies that spend the epochs of {settings.rounds} full trials: mean loss of the "
        "recommended setting with 95 % intervals, its median, trials begun and finished.",
        ("panel", "contender"),
        (
            ("studies", lambda studies: str(len(studies))),
            ("loss", lambda studies: mean(studies.final("loss")).text(".2g")),
            ("median", lambda studies: f"{np.median(studies.final('loss')):.2g}"),
            ("begun", lambda studies: _mean(studies, "trials")),
            ("finished", lambda studies: _mean(studies, "complete")),
        ),
        {key: found[key] for key in keys if key in found},
    )


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: no loss by pruning, more trials for the same epochs, and lies change little."""
    (first, *others), made, found = settings.methods, [], grouped(sorted(rows))
    for scene in SCENES:
        panels = {name: scene + BETWEEN + name for name in settings.problems}
        for other in others:
            losses = (
                [found[panel, one].final("loss") for one in (first, other)]
                for panel in panels.values()
            )
            ratios = [mean_ratio(*pair) for pair in losses]
            # A ratio of 0 has no logarithm
            logs = np.log(np.maximum([ratio.value for ratio in ratios], 1e-12))
            measured = {"geometric mean": math.exp(float(np.mean(logs)))}
            for name, ratio in zip(panels, ratios, strict=True):
                measured |= ratio.named(name)
            sentence = f"{scene}: the mean loss of {first!r} is at most {_NO_MORE:g} of that of "
            sentence += f"{other!r} after as many epochs, by the geometric mean of problems (ours)."
            made.append(Claim(sentence, measured["geometric mean"] <= _NO_MORE, measured))
        trials = [row.trials for panel in panels.values() for row in found[panel, first].ends]
        begun, full = float(np.mean(trials)), float(settings.rounds)
        sentence = f"{scene}: {first!r} begins at least 1.3 times as many trials as there would be "
        numbers = {"begun": begun, "without pruning": full}
        made.append(Claim(f"{sentence}without pruning (ours).", begun >= 1.3 * full, numbers))
    return tuple(made)


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot a panel per problem and scene, a line per contender."""
    panels, found, methods = _panels(settings), grouped(rows), settings.methods
    picture = pictures.blank(3.0 * len(panels) / len(SCENES) + 1.6, 5.2)
    grid = picture.subplots(len(SCENES), len(settings.problems), sharey=True, squeeze=False)
    for panel, axes in zip(panels, grid.T.flat, strict=True):
        for line, method in enumerate(methods):
            if (panel, method) in found:
                colour = VERMILION if not line else BLUE if method.startswith(_OURS) else GREEN
                number = mean(found[panel, method].final("loss"))
                pictures.points(axes, [line], [number], colour, {"fmt": "o", "ms": 5, "capsize": 2})
        axes.set_xscale("log")
        axes.set_title(panel, fontsize=9)
        pictures.lines(axes, methods)
        pictures.plain_numbers(axes)
    picture.supxlabel("mean loss of the recommended setting", fontsize=9)
    return picture


FIGURE = Figure(
    "contest/pruning",
    "Pruners at the same number of epochs, with honest intermediate values and with lies",
    Settings(), every(_panels), run, plot, table, claims,
)  # fmt: skip
