"""The pruner: what it prunes, and that no single intermediate value decides."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic.curves import Curve, FinishedCurves
from stoic.integrations.optuna import StoicPruner, StoicSampler, explain
from stoic.refusal import RefusalError

X = {"x": FloatDistribution(0.0, 1.0)}
LIES = [-1e300, -10.0, 0.0, 10.0, 1e300, math.inf, -math.inf, math.nan]


def trial_of(values, state=TrialState.RUNNING, x=1.0):
    value = values[-1] if state == TrialState.COMPLETE else None
    return create_trial(
        state=state, value=value, params={"x": x}, distributions=X,
        intermediate_values=dict(enumerate(values, 1)),
    )  # fmt: skip


def drawn(seed, n=20, steps=15):
    """Losses that fall to asymptotes between 0 and 1, at rates of their own, with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(1, steps + 1)
    end, rate = rng.random((n, 1)), 0.5 + rng.random((n, 1))
    return end + t**-rate + 0.01 * rng.standard_normal((n, steps))


def study_of(values):
    study = optuna.create_study(pruner=StoicPruner())
    study.add_trials([trial_of(row, TrialState.COMPLETE, k / 100) for k, row in enumerate(values)])
    return study


def prunes(study, values):
    return StoicPruner().prune(study, trial_of(values))


def test_a_hopeless_trial_is_pruned_and_a_good_one_never():
    values = drawn(0)
    study = study_of(values)
    bad = 3.0 + values.min(axis=0)
    good = values[np.argmin(values[:, -1])]
    assert not prunes(study, bad[:1])  # one value alone is never enough
    assert all(prunes(study, bad[:k]) for k in range(2, 16))
    assert not any(prunes(study, good[:k]) for k in range(1, 16))


def test_nothing_is_pruned_before_nine_trials_have_finished():
    bad = np.full(15, 9.0)
    assert not prunes(study_of(drawn(0, n=8)), bad)
    assert prunes(study_of(drawn(0, n=9)), bad)
    assert not prunes(optuna.create_study(), bad)


def test_what_it_says_is_a_count():
    """Of n finished runs, those that gained enough, literally."""
    values = -drawn(3)
    finals = values[:, -1]
    curves = FinishedCurves([Curve.of(dict(enumerate(row, 1))) for row in values], finals)
    target = np.sort(finals)[-4]
    for own in np.linspace(-3.0, 1.0, 41):
        gained = [
            own + final - np.median(row[3:6]) >= target
            for row, final in zip(values, finals, strict=True)
        ]
        assert curves.hopeless(6, own, target, 0.2) == (sum(gained) <= 3)  # 0.2 * 21 - 1
    assert curves.hopeless(16, 0.0, target, 0.2) is None  # none went so far


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 6))]
)
def test_one_lie_of_any_size_changes_no_decision_that_the_others_agree_on(seed):
    values = drawn(seed)
    study, rng, agreed = study_of(values), np.random.default_rng(seed), 0
    finals = -values[:, -1]
    curves = FinishedCurves([Curve.of(dict(enumerate(-row, 1))) for row in values], finals)
    target = np.sort(finals)[-4]  # the best fifth of 20
    for own in drawn(seed + 100, 12) + rng.choice([0.0, 0.5, 2.0], (12, 1)):
        for k in (4, 8, 14):
            votes = [curves.hopeless(j, -own[j - 1], target, 0.2) for j in (k - 2, k - 1, k)]
            if len(set(votes)) > 1:
                continue
            agreed += 1
            assert prunes(study, own[:k]) == votes[0]
            for lying in (k - 3, k - 2, k - 1):
                for lie in LIES:
                    told = own[:k].copy()
                    told[lying] = lie
                    assert prunes(study, told) == votes[0]
    assert agreed > 10


@pytest.mark.parametrize("lie", LIES)
def test_one_lie_in_a_finished_trial_changes_no_clear_decision(lie):
    values = drawn(1)
    good, bad = values.min(axis=0) - 0.05, values.min(axis=0) + 2.0
    for row in (0, 7, 19):
        for step in (3, 4, 5, 14):
            told = values.copy()
            told[row, step] = lie
            if step == 14 and math.isnan(lie):
                continue  # not a finished trial
            study = study_of(told)
            assert not prunes(study, good[:6])
            assert prunes(study, bad[:6])


def test_curves_that_cross_are_learned_from():
    """One finished trial in three starts late, and ends as the best ones."""
    t = np.arange(15)
    late = np.where(t < 10, 5.0, 0.1)
    values = np.array([late if i % 3 == 0 else 1.0 / (1 + t) + 0.2 for i in range(18)])
    values = values + 1e-3 * np.random.default_rng(0).standard_normal(values.shape)
    study = study_of(values)
    assert not prunes(study, late[:6])
    assert prunes(study, np.full(13, 5.0))


def test_a_setting_that_has_finished_before_runs_to_its_end():
    values = drawn(0)
    study, bad = study_of(values), 3.0 + values.min(axis=0)
    assert StoicPruner().prune(study, trial_of(bad, x=0.5))
    assert not StoicPruner().prune(study, trial_of(bad, x=0.07))


def test_after_four_pruned_trials_one_runs_to_its_end():
    values = drawn(0)
    study, bad = study_of(values), 3.0 + values.min(axis=0)
    for k in range(4):
        assert prunes(study, bad)
        study.add_trial(trial_of(bad[:3], TrialState.PRUNED, 0.5 + k / 100))
    assert not prunes(study, bad)
    study.add_trial(trial_of(bad, TrialState.COMPLETE, 0.6))
    assert prunes(study, bad)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_two_wrong_trials_that_nothing_can_reach_do_not_prune_all_others(seed):
    def objective(trial):
        x = trial.suggest_float("x", -5.0, 5.0)
        for step in range(1, 9):
            value = -10.0 if trial.number in (6, 13) else 0.1 * (x - 1.0) ** 2 + 1.0 / step
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study = optuna.create_study(sampler=StoicSampler(seed=seed), pruner=StoicPruner())
    study.optimize(objective, n_trials=32)
    pruned = [trial.state == TrialState.PRUNED for trial in study.trials]
    assert sum(pruned[14:]) <= 13  # 18 if nothing were done about it
    assert explain(study).recommended.params["x"] == pytest.approx(1.0, abs=0.1)


def test_it_maximises_and_waits_for_its_first_step():
    study = optuna.create_study(direction="maximize")
    study.add_trials([trial_of(-row, TrialState.COMPLETE, x=0.0) for row in drawn(0)])
    assert prunes(study, [-9.0] * 5)
    assert not prunes(study, [9.0] * 5)
    assert not StoicPruner(n_warmup_steps=6).prune(study, trial_of([-9.0] * 5))
    wrongs = {"chance": (0.0, 1.0, "a"), "n_warmup_steps": (-1, 1.5)}
    for wrong in ({name: value} for name, values in wrongs.items() for value in values):
        with pytest.raises(ValueError, match="got"):
            StoicPruner(**wrong)


def test_a_study_with_it_finds_the_best_in_fewer_steps():
    rng, spent = np.random.default_rng(0), [0]

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(1, 21):
            spent[0] += 1
            lie = 50.0 if rng.random() < 0.05 else 0.0
            trial.report((x - 0.3) ** 2 + 1.0 / step + lie, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return (x - 0.3) ** 2 + 0.05

    sampler = StoicSampler(seed=0, n_startup_trials=8)
    study = optuna.create_study(sampler=sampler, pruner=StoicPruner())
    study.optimize(objective, n_trials=40)
    assert spent[0] < 40 * 20
    assert any(t.state == TrialState.PRUNED for t in study.trials)
    assert abs(explain(study).recommended.params["x"] - 0.3) < 0.05


def test_a_chance_is_a_number_of_any_library():
    assert StoicPruner(chance=np.float32(0.25))._chance == 0.25
    for chance in (np.float64(1.0), math.nan, "0.2", None):
        with pytest.raises(RefusalError, match="chance is a probability"):
            StoicPruner(chance=chance)
