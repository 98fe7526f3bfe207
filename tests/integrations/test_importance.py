"""Importances: against functions whose total effects are known, and with outliers."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from stoic.integrations.optuna import RobustImportanceEvaluator, explain
from stoic.integrations.optuna.effects import total_effects
from stoic.integrations.optuna.encoding import Encoding

ANGLE = FloatDistribution(-math.pi, math.pi)


def test_the_effects_of_ishigamis_function():
    """Exact values: [Saltelli2010]_'s reference function, a = 7, b = 0.1."""
    encoding = Encoding({"a": ANGLE, "b": ANGLE, "c": ANGLE})

    def mean(u):
        x = (2.0 * u - 1.0) * math.pi
        return np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])

    first = 0.5 * (1.0 + 0.1 * math.pi**4 / 5.0) ** 2
    both = 0.1**2 * math.pi**8 * 8.0 / 225.0
    second = 49.0 / 8.0
    whole = first + second + both
    exact = {"a": (first + both) / whole, "b": second / whole, "c": both / whole}
    assert total_effects(encoding, mean) == pytest.approx(exact, abs=0.03)


def test_a_choice_moves_all_its_coordinates():
    encoding = Encoding(
        {"kind": CategoricalDistribution("xyz"), "rate": FloatDistribution(0.0, 1.0)}
    )
    effects = total_effects(encoding, lambda u: u[:, :3] @ [0.0, 1.0, 2.0] + u[:, 3])
    assert effects == pytest.approx({"kind": 8.0 / 9.0, "rate": 1.0 / 9.0}, abs=0.03)
    constant = total_effects(encoding, lambda u: np.ones(len(u)))
    assert constant == {"kind": 0.0, "rate": 0.0}


@pytest.fixture(scope="module")
def study():
    """Only ``a`` matters, and two outliers where ``b`` is large."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial):
        a, b = trial.suggest_float("a", 0.0, 1.0), trial.suggest_float("b", 0.0, 1.0)
        trial.suggest_int("c", 2, 2)
        return 1e4 if b > 0.5 and trial.number in (12, 17, 18, 19, 20) else (a - 0.3) ** 2

    study.optimize(objective, n_trials=40)
    return study


def test_outliers_have_no_part_in_it(study):
    found = optuna.importance.get_param_importances(study, evaluator=RobustImportanceEvaluator())
    assert list(found) == ["a", "b"]
    assert found["a"] > 0.95
    known = explain(study)
    assert known.importances()["a"] == pytest.approx(1.0, abs=0.05)
    assert known.model_optimum["c"] == 2  # a setting that can be run


def test_what_has_no_importance_is_said(study):
    evaluator = RobustImportanceEvaluator()
    assert list(evaluator.evaluate(study, ["b"])) == ["b"]
    with pytest.raises(ValueError, match="c: not modelled"):
        evaluator.evaluate(study, ["a", "c"])
    with pytest.raises(ValueError, match="leave target out"):
        evaluator.evaluate(study, target=lambda trial: 1.0)
    own = evaluator.evaluate(study, target=lambda trial: trial.value)
    assert own == evaluator.evaluate(study)
    assert RobustImportanceEvaluator().evaluate(optuna.create_study()) == {}


def test_of_several_objectives_each_has_its_own():
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.sampler = optuna.samplers.RandomSampler(seed=0)

    def objective(trial):
        a, b = trial.suggest_float("a", 0.0, 1.0), trial.suggest_float("b", 0.0, 1.0)
        return (a - 0.3) ** 2, 1e4 if trial.number == 15 else 7.0 * (b - 0.5) ** 2

    study.optimize(objective, n_trials=30)
    known = explain(study)
    assert known.importances("objective 0")["a"] == pytest.approx(1.0, abs=0.05)
    assert known.importances("objective 1")["b"] == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ValueError, match="objective 0 or objective 1: give its name"):
        known.importances()
    found = optuna.importance.get_param_importances(
        study, evaluator=RobustImportanceEvaluator(), target=lambda trial: trial.values[1]
    )
    assert list(found) == ["b", "a"]
    with pytest.raises(ValueError, match="with several give one"):
        RobustImportanceEvaluator().evaluate(study)
