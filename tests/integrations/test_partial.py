"""Trials that ended without a final value: what they teach, and that none is asked again for it."""

from __future__ import annotations

import json
import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic import Learner, recipes
from stoic.integrations.optuna import StoicSampler, confirm, explain
from stoic.integrations.optuna.partial import Partial, PartialResults
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.kernels import RBF
from stoic.posteriors import Prior
from stoic.tuning.views.summary import Summary
from stoic.tuning.views.trust import Trust
from studies import add

X = {"x": FloatDistribution(0.0, 1.0)}
STEPS = np.arange(1, 11)


def curve(x, end=10):
    """A loss that falls to (x - 0.3)^2."""
    return {int(s): (x - 0.3) ** 2 + 1.0 / s for s in STEPS[:end]}


def ended(x, end=10, state=TrialState.COMPLETE, value=None, **attrs):
    values = curve(x, end) if end else {}
    if state == TrialState.COMPLETE and value is None:
        value = values[10]
    return create_trial(
        state=state,
        value=value,
        params={"x": x},
        distributions=X,
        intermediate_values=values,
        user_attrs={name.replace("_", ":"): each for name, each in attrs.items()},
    )


def study_of(*trials, direction="minimize", **options):
    study = optuna.create_study(direction=direction, **options)
    study.add_trials(trials)
    return study


_PRIOR = Prior(RBF(0.3), 0.01)
RULED = {"state": TrialState.PRUNED, "system": {"constraints": [1.0]}}
COMPLETE = [ended(x) for x in (0.05, 0.2, 0.4, 0.55, 0.7, 0.85)]


def synced(study, recipe=None):
    found = SyncedLearner(study, X, recipe or recipes.robust())
    found.follow(study.trials)
    return found


def test_a_pruned_trial_counts_as_its_curve_predicts():
    study = study_of(*COMPLETE, ended(0.6, 4, TrialState.PRUNED))
    (row,) = explain(study).partial
    assert (row.number, row.state, row.source) == (6, "pruned", "curve")
    assert row.value == pytest.approx(0.09 + 0.1)
    assert row.sentence() == "0.19 by its intermediate values"
    assert explain(study).unmodelled == ()
    without = explain(study_of(*COMPLETE)).predict({"x": 0.6})[1][0]
    assert explain(study).predict({"x": 0.6})[1][0] < without  # something was learned


def test_without_enough_curves_a_pruned_trial_is_no_better_than_the_second_best():
    study = study_of(*COMPLETE[:3], ended(0.9, 4, TrialState.PRUNED))
    values = sorted(trial.value for trial in COMPLETE[:3])
    (row,) = explain(study).partial
    assert (row.source, row.value) == ("pruned", pytest.approx(values[1]))
    found = synced(study)
    np.testing.assert_array_equal(found.learner.observations.censored, [False] * 3 + [True])
    study.add_trials(COMPLETE[3:])
    found.follow(study.trials)  # now there are enough
    assert found.learner.observations.censored[3]  # worse than all of them at that step
    assert found.unfinished.partial[3].source == "curve"
    fresh = synced(study)
    np.testing.assert_array_equal(
        found.learner.observations.observed, fresh.learner.observations.observed
    )


def test_a_pruned_trial_waits_until_there_is_a_value_to_compare_with():
    study = study_of(ended(0.9, 4, TrialState.PRUNED), ended(0.8, 0, TrialState.PRUNED))
    found = synced(study)
    assert len(found.learner.observations) == 0
    study.add_trials(COMPLETE[:2])
    found.follow(study.trials)
    assert sorted(found.observed) == [0, 1, 2, 3]
    assert [found.unfinished.partial[n].source for n in (0, 1)] == ["pruned"] * 2


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("state", [TrialState.PRUNED, TrialState.FAIL])
def test_a_bound_that_a_trial_tells_is_used(direction, state):
    study = study_of(*COMPLETE, ended(0.95, 0, state, stoic_censored=0.5), direction=direction)
    found = synced(study)
    sign = -1.0 if direction == "minimize" else 1.0
    assert found.unfinished.partial[6] == Partial(sign * 0.5, None, "bound")
    summary = Summary.of(study)
    assert [row["number"] for row in summary.record()["unfinished"]] == [6]
    json.dumps(summary.record(), allow_nan=False)
    assert "1 as at least as bad as a bound" in summary.text()


def test_a_complete_trial_whose_value_is_a_bound_is_never_the_best():
    best = ended(0.31, 0, value=-5.0, stoic_censored=True)
    study = study_of(*COMPLETE, best)
    known = explain(study)
    assert known.observed_best.number != 6
    assert known.recommended.number != 6
    assert 6 not in [row.number for row in known.rows]
    (row,) = known.partial
    assert (row.value, row.state) == (-5.0, "complete")
    assert confirm(study, lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2, 3)


def test_a_bound_far_from_what_the_others_say_is_distrusted():
    study = study_of(
        *[ended(x, 0, value=(x - 0.3) ** 2) for x in np.linspace(0.0, 1.0, 14)],
        ended(0.32, 0, TrialState.PRUNED, stoic_censored=3.0),
    )
    (row,) = explain(study).partial
    assert row.trust < 0.5
    assert "trial 14: 3 or worse, which others contradict" in str(explain(study))


@pytest.mark.parametrize("nonsense", ["a", math.nan, math.inf, [1.0], {"v": 1}])
def test_nonsense_as_a_bound_gets_a_sentence(nonsense):
    study = study_of(*COMPLETE, ended(0.9, 0, TrialState.PRUNED, stoic_censored=nonsense))
    assert "stoic:censored is not used" in " ".join(explain(study).unmodelled)
    assert explain(study).partial[0].source == "pruned"


def test_a_failure_says_nothing_by_its_curve():
    study = study_of(*COMPLETE, ended(0.6, 6, TrialState.FAIL), ended(0.9, 0, TrialState.FAIL))
    found = synced(study)
    assert found.unfinished.partial == {}
    assert np.isnan(found.learner.observations.observed[6:]).all()
    known = study_of(*COMPLETE, ended(0.6, 6, TrialState.FAIL, stoic_failed="transient"))
    assert synced(known).unfinished.partial == {}
    assert len(synced(known).learner.failures) == 1


@pytest.mark.parametrize("last", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("state", [TrialState.PRUNED, TrialState.FAIL])
def test_a_curve_that_ends_in_no_number_is_a_failure_of_the_setting(state, last):
    trial = ended(0.6, 6, state)
    trial.intermediate_values[7] = last
    study = study_of(*COMPLETE, trial)
    found = synced(study)
    assert found.unfinished.partial == {}
    assert found.learner.failures.kinds == ("bad",)
    assert Trust.of(study).failed == {6: "bad"}


@pytest.mark.parametrize("ending", ["nan", "raises", "pruned"])
def test_a_region_that_learns_fast_and_always_diverges_is_left(ending):
    def training(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for epoch in range(1, 11):
            value = math.exp(-(0.1 + x) * epoch) + 0.3 * (1.0 - x)
            if x > 0.6 and epoch > 5:
                if ending == "raises":
                    raise RuntimeError("diverged")
                trial.report(math.nan, epoch)
                if ending == "pruned":
                    raise optuna.TrialPruned
                return math.nan
            trial.report(value, epoch)
        return value

    diverged = []
    for seed in range(4):
        study = optuna.create_study(sampler=StoicSampler(seed=seed))
        study.optimize(training, n_trials=25, catch=(RuntimeError,))
        diverged += [trial.params["x"] > 0.6 for trial in study.trials[10:]]
        assert explain(study).recommended.params["x"] > 0.5
    assert sum(diverged) <= 4 * 4  # all 15 of each study, by its curves


@pytest.mark.parametrize("last", [-1e2, -1e12, -1e300])
def test_how_far_a_run_diverged_says_nothing_more(last):
    trial = ended(0.32, 6, TrialState.PRUNED)
    trial.intermediate_values.update({7: last, 8: last})
    study = study_of(*COMPLETE, trial, direction="maximize")
    less = ended(0.32, 6, TrialState.PRUNED)
    less.intermediate_values.update({7: -50.0, 8: -50.0})
    known, same = explain(study), explain(study_of(*COMPLETE, less, direction="maximize"))
    assert known.recommended_mean == pytest.approx(same.recommended_mean)
    assert known.partial[0].censored


def test_values_that_are_lies_are_not_compared_with():
    lie = ended(0.5, 0, value=-1e9)  # of five values one is a lie
    study = study_of(*COMPLETE[:3], lie, ended(0.9, 0, TrialState.PRUNED))
    (row,) = explain(study).partial
    assert row.value == pytest.approx(min(trial.value for trial in COMPLETE[:3]))


def test_a_recipe_that_plans_says_that_it_does_not_use_them():
    study = study_of(*COMPLETE, ended(0.6, 4, TrialState.PRUNED))

    def planning(box):
        return Learner(box.grid(21), recipes.rgp_pe(prior=_PRIOR))

    found = SyncedLearner(study, X, planning)
    assert not found.takes_partial
    (sentence,) = explain(study, recipe=planning).unmodelled
    assert "counts as a result that is not a number" in sentence
    add(study := study_of(*COMPLETE), {"x": 0.6}, X, **RULED)
    (sentence,) = explain(study, recipe=planning).unmodelled  # of which nothing is used anyway
    assert "avoided as infeasible" in sentence


def test_trials_given_to_a_pruner_of_brackets_are_modelled_together():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step, value in curve(x).items():
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(1, 10, 3)
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=6), pruner=pruner)
    study.optimize(objective, n_trials=20)
    assert len(study.sampler._synced.observed) >= 18  # those of all brackets
    assert {t.state for t in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}


def test_a_pruned_setting_is_not_asked_again():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step, value in curve(x).items():
            trial.report(value, step)
            if step == 3 and x > 0.45:
                raise optuna.TrialPruned
        return value

    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=6))
    study.optimize(objective, n_trials=25)
    pruned = sorted(t.params["x"] for t in study.trials if t.state == TrialState.PRUNED)
    assert np.diff(pruned).min(initial=1.0) > 1e-3
    assert abs(explain(study).recommended.params["x"] - 0.3) < 0.05


def test_results_are_compared_with_what_was_known_when_a_trial_was_pruned():
    study = optuna.create_study()
    for x in (0.9, 0.8):
        study.tell(study.ask(X), (x - 0.3) ** 2)
    pruned = study.ask(X)
    study.tell(pruned, state=TrialState.PRUNED)
    study.tell(study.ask(X), 0.0)
    study.tell(study.ask(X), 0.0)
    found = PartialResults(study.trials, -1.0)(study.trials[2])
    assert found.value == pytest.approx(-0.36)


def test_huge_final_values_are_no_error():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for epoch in range(1, 5):
            trial.report(1e160 * (x + 1.0 / epoch), epoch)
        if trial.number == 8:
            raise optuna.TrialPruned
        return 1e160 * x

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=12)
    assert [trial.state for trial in study.trials].count(TrialState.COMPLETE) == 11
