"""A study whose sampler balances several learners."""

import math

import optuna
import pytest

from stoic.confidence import Theory
from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.recipes import any_threat


@pytest.mark.parametrize("kind", ["transient", "infeasible", "bad"])
def test_a_study_is_searched_by_all_of_the_learners(kind):
    def value(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 3:
            trial.set_user_attr("stoic:failed", kind)
            raise RuntimeError("crashed")
        return math.nan if trial.number == 5 else (x - 0.3) ** 2

    sampler = StoicSampler(recipe=any_threat(theory=Theory("practice", horizon=30)), seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(value, n_trials=24, catch=RuntimeError)
    (campaign,) = (part for part in vars(sampler).values() if isinstance(part, SyncedLearner))
    campaign.follow(study.trials)
    balanced = campaign.learner
    assert balanced.failures.kinds == (kind,)
    assert len(balanced) == 23
    # After ten trials at random it is asked, and whoever asked is given the result.
    assert balanced.plays.sum() == 14
    assert min(balanced.plays) > 0
    explained = explain(study, recipe=any_threat(theory=Theory("practice", horizon=30)))
    assert abs(explained.recommended.params["x"] - 0.3) < 0.15


def test_tolerances_are_refused_by_who_balances():
    sampler = StoicSampler(recipe=any_threat(), threshold=0.1, tolerance={"x": 0.1}, seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match="balances several learners"):
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=12)
