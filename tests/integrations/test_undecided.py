"""A study says when its results do not tell which setting is best."""

from dataclasses import dataclass

import numpy as np
import optuna
import pytest

from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.undecided import undecided


@dataclass(frozen=True)
class Result:
    value: float
    expected: float
    trust: float = 1.0


def results(n=24, error=0.1, rejected=0, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n)
    return [
        Result(value, value + error * rng.standard_normal(), float(i >= rejected))
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(("rejected", "said"), [(7, False), (8, True), (20, True)])
def test_a_third_of_the_results_contradicts_the_others(rejected, said):
    assert (undecided(results(rejected=rejected)) is not None) == said


@pytest.mark.parametrize(("error", "said"), [(0.3, False), (3.0, True)])
def test_results_that_do_not_predict_each_other(error, said):
    assert (undecided(results(error=error)) is not None) == said


def test_nothing_is_said_of_few_equal_or_infinite_results():
    assert undecided(results(9, error=3.0)) is None
    assert undecided([Result(1.0, 1.0)] * 20) is None
    assert undecided([Result(np.inf, 0.0), Result(np.nan, 0.0)] * 20) is None
    assert undecided([Result(1e300, -1e300), Result(-1e300, 1e300)] * 20) is None


@pytest.mark.parametrize(
    ("outliers", "said"),
    [pytest.param(0.0, False, marks=pytest.mark.slow), (0.1, False), (0.6, True)],
)
def test_a_study_where_most_results_are_outliers_says_so(outliers, said):
    rng = np.random.default_rng(1)

    def objective(trial):
        x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_float("y", 0.0, 3.0)
        value = (x - 2.0) ** 2 + (y - 1.0) ** 2
        return value - rng.uniform(25.0, 150.0) if rng.random() < outliers else value

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=30)
    assert (explain(study).undecided is not None) == said
