"""Trials that were added with times in a zone, beside Optuna's own, which have none."""

import datetime

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from stoic import Learner, Prior, recipes
from stoic.integrations.optuna import StoicPruner, StoicSampler, explain
from stoic.integrations.optuna.times import end_of, start_of
from stoic.kernels import RBF

ZONE = datetime.timezone(datetime.timedelta(hours=7))


def trial(x, at, state=TrialState.COMPLETE):
    added = create_trial(
        state=state,
        params={"x": x},
        distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)},
        value=None if state == TrialState.RUNNING else x,
        intermediate_values={0: 1.0, 1: x},
    )
    added.datetime_start = at
    added.datetime_complete = None if state == TrialState.RUNNING else at
    return added


def test_a_time_in_a_zone_is_local():
    noon = datetime.datetime(2026, 7, 1, 12)
    there = trial(0.5, noon.astimezone(ZONE))
    assert end_of(there) == (noon, there.number)
    assert start_of(there) == noon
    assert end_of(trial(0.5, noon))[0] == noon
    assert end_of(None) <= end_of(trial(0.5, None)) < end_of(there)


def planned(box):
    return Learner(box.grid(13), recipes.rgp_pe(prior=Prior(RBF(0.3), 1e-3), budget=0.1))


@pytest.mark.parametrize("recipe", [recipes.robust(), planned])  # a plan goes by who ended first
def test_a_study_has_trials_with_times_in_a_zone(recipe):
    sampler = StoicSampler(seed=0, recipe=recipe)
    study = optuna.create_study(sampler=sampler, pruner=StoicPruner())
    now = datetime.datetime.now()
    for k in range(12):
        study.add_trial(trial(k / 12, now.astimezone(ZONE) if k % 2 else now))
    study.add_trial(trial(0.2, now.astimezone(ZONE), TrialState.RUNNING))

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(3):
            trial.report(x + 1.0, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    study.optimize(objective, n_trials=3)
    assert len(explain(study, recipe=recipe).rows) >= 12
