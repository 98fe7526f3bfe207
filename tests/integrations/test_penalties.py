"""Values that stand for a failure: repeated exactly, and far worse than nearly all others."""

from __future__ import annotations

import json
import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic import recipes
from stoic.integrations.optuna import StoicSampler, confirm, explain
from stoic.integrations.optuna.penalties import penalties
from stoic.integrations.optuna.possible import PossibleValues
from stoic.integrations.recipe import DEFAULT
from stoic.tuning.views.summary import Summary
from stoic.tuning.views.trust import Trust

SPACE = {f"x{k}": FloatDistribution(0.0, 1.0) for k in range(3)}


def bowl(params):
    return sum((x - 0.4) ** 2 for x in params.values())


def penalised(params, penalty=1e6):
    """Half of the cube has no value."""
    return bowl(params) if params["x0"] + params["x1"] < 1.0 else penalty


def study_of(values, direction="minimize", settings=None):
    study = optuna.create_study(direction=direction)
    rng = np.random.default_rng(0)
    drawn = (dict(zip(SPACE, rng.random(3).tolist(), strict=True)) for _ in values)
    for value, params in zip(values, settings or drawn, strict=True):
        study.add_trial(create_trial(params=params, distributions=SPACE, value=float(value)))
    return study


def found(values, sign=-1.0, recipe=DEFAULT, possible=None):
    return penalties(study_of(values).trials, recipe, None, possible, sign)


RNG = np.random.default_rng(1)
GOOD = RNG.random(30)


def mixed(penalty, share, n=40, good=GOOD):
    rng = np.random.default_rng(2)
    return np.where(rng.random(n) < share, penalty, np.resize(good, n))


def test_what_is_repeated_and_far_worse_is_a_penalty():
    assert found(mixed(1e6, 0.5)) == {1e6}
    assert found(mixed(1e6, 0.8)) == {1e6}
    assert found(-mixed(0.0, 0.5, good=GOOD + 9.0), sign=1.0) == frozenset()  # best, not worst
    assert found(mixed(0.0, 0.5, good=GOOD + 9.0), sign=1.0) == {0.0}
    two = np.where(np.arange(60) % 3 == 0, 1e9, mixed(1e6, 0.5, 60))
    assert found(two) == {1e6, 1e9}
    # One wrong result is worse still
    assert found([1e12, *mixed(1e6, 0.5)]) == {1e6}


@pytest.mark.parametrize(
    "values",
    [
        mixed(1e6, 0.1),  # wrong results that are constant
        mixed(3.0, 0.5),  # the model is as good with these
        np.full(40, 1e6),  # nothing to compare with
        RNG.random(40) < 0.5,  # success or not
        RNG.poisson(3.0, 40),  # a count
        mixed(1e6, 0.5, good=np.full(30, 0.5)),
        [*GOOD, np.inf, np.inf, np.inf, np.inf, np.inf],
    ],
)
def test_what_may_be_a_result_is_none(values):
    assert found(values) == frozenset()


def test_repeats_of_one_setting_and_what_is_not_nearly_the_worst_are_none():
    study = study_of(mixed(1e6, 0.5))
    trials = study.trials
    for trial in trials:
        if trial.value == 1e6:
            trial.params = trials[0].params
    assert penalties(trials, DEFAULT, None, None, -1.0) == frozenset()
    worse = mixed(1e6, 0.5)
    worse = np.where((np.arange(40) % 5 == 0) & (worse < 1e6), 1e9, worse)
    assert found(worse) == frozenset()


def test_what_was_found_stays_found_and_other_methods_look_at_values():
    first = mixed(1e6, 0.5, 20)
    assert found([*first, *np.resize(GOOD, 200)]) == {1e6}
    assert found(first, recipe=recipes.rgp_ucb(budget=1.0)) == frozenset()
    assert found(first, recipe=recipes.robust()) == {1e6}
    assert found(first, possible=PossibleValues(0.0, 9.0)) == frozenset()  # impossible anyway


@pytest.mark.parametrize("wrong", [False, True])
def test_a_penalty_costs_no_more_than_a_failure_that_is_reported(wrong, caplog):
    losses = {}
    for told in ("value", "infeasible"):
        study = optuna.create_study(sampler=StoicSampler(seed=0))
        for t in range(40):
            trial = study.ask(SPACE)
            value = penalised(trial.params)
            if wrong and t % 12 == 7:
                value = -1.0
            if value == 1e6 and told == "infeasible":
                trial.set_user_attr("stoic:failed", "infeasible")
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, value)
        known = explain(study)
        losses[told] = penalised(known.recommended.params)
        if told == "value":
            assert set(known.penalties.values()) == {1e6}
            assert known.penalties.keys().isdisjoint(row.number for row in known.rows)
            assert len(known.penalties) < 15
            assert "of 1e+06, far worse than nearly all others, count as infeasible" in str(known)
    assert max(losses.values()) < 1e-3
    said = [m for m in caplog.messages if "far worse than nearly all others" in m]
    assert len(said) == 1  # once for a study


def test_penalties_teach_nothing_about_pruned_trials():
    estimates = []
    for told in ("value", "infeasible"):
        study, rng = optuna.create_study(), np.random.default_rng(0)
        for k in range(40):
            params = dict(zip(SPACE, rng.random(3).tolist(), strict=True))
            value, reached = penalised(params), {s: bowl(params) + 1.0 / (s + 1) for s in range(6)}
            state, said = TrialState.COMPLETE, {}
            if value == 1e6 and told == "infeasible":
                state, value, said = TrialState.FAIL, None, {"stoic:failed": "infeasible"}
            elif value != 1e6 and k % 4 == 3:
                state, reached = TrialState.PRUNED, dict(list(reached.items())[:2])
                value = reached[1]
            study.add_trial(
                create_trial(
                    params=params,
                    distributions=SPACE,
                    value=value,
                    state=state,
                    intermediate_values=reached,
                    user_attrs=said,
                )
            )
        known = explain(study)
        assert known.partial
        estimates.append([known.recommended_mean, *(row.value for row in known.partial)])
    assert estimates[0] == pytest.approx(estimates[1], rel=1e-6)


def test_another_process_and_those_who_look_see_the_same():
    study = study_of([])
    rng = np.random.default_rng(3)
    for _ in range(30):
        params = dict(zip(SPACE, rng.random(3).tolist(), strict=True))
        value = penalised(params)
        study.add_trial(create_trial(params=params, distributions=SPACE, value=value))
    copy = optuna.create_study()
    copy.add_trials(study.trials)
    study.sampler = StoicSampler(seed=0)
    for _ in range(3):  # a sampler that goes on, and a new one for each trial
        copy.sampler = StoicSampler(seed=0)
        params = []
        for each in (study, copy):
            trial = each.ask(SPACE)
            each.tell(trial, penalised(trial.params))
            params.append(list(trial.params.values()))
        assert params[0] == pytest.approx(params[1], abs=0.01)  # as well as fits agree
    summary = json.loads(json.dumps(Summary.of(study).record()))
    bad = {str(t.number): 1e6 for t in study.trials if t.value == 1e6}
    assert summary["penalties"] == bad
    assert penalised(summary["recommended"]["params"]) < 1e6
    assert {int(n) for n in bad} <= Trust.of(study).failed.keys()


def repeated(values, direction="minimize", possible=None, params=None):
    return explain(study_of(values, direction, params), possible=possible).repeated


def test_a_repeated_value_that_is_better_than_nearly_all_others_is_said():
    values = GOOD[:24] + 0.2
    values[[2, 6, 10, 14, 22]] = 0.0
    said = repeated(values)
    assert said == (
        "5 values are 0 exactly, and better than nearly all others: trials 2, 6, 10, 14, 22. If a "
        "run that failed reports it, let it fail instead, or say which values are possible."
    )
    assert repeated(-values, "maximize") == said
    assert repeated(values, "maximize") is None
    assert repeated(values, possible=(0.0, 2.0)) is None
    assert repeated(np.round(values, 1)) is None  # all of them are repeated
    better = values.copy()
    better[23] = -3.0  # wrong in another way
    assert repeated(better) == said
    better[20:22] = -1.0, -2.0
    assert repeated(better) is None
    assert repeated(np.where(values == 0.0, -1e308, 1e308 * values)) is not None
    values[22] = 0.9
    assert repeated(values) is None


def test_a_bound_and_a_plateau_are_not_said_to_be_failures():
    rng = np.random.default_rng(4)
    points = [dict(zip(SPACE, x, strict=True)) for x in rng.random((40, 3)).tolist()]
    plateau = [max(0.0, bowl(params) - 0.2) for params in points]
    assert plateau.count(0.0) >= 5
    assert repeated(plateau, params=points) is None
    for params in points[:10]:
        params["x0"] = 0.0
    bound = [params["x0"] + 1.0 if params["x0"] else 0.0 for params in points]
    assert repeated(bound, params=points) is None
    for params, x0 in zip(points, rng.random(10), strict=False):
        params["x0"] = x0
    assert repeated(bound, params=points) is not None


def test_a_confirming_measurement_that_is_penalised_failed():
    study = study_of([])
    rng = np.random.default_rng(3)
    for _ in range(30):
        params = dict(zip(SPACE, rng.random(3).tolist(), strict=True))
        value = penalised(params) + 0.01 * (penalised(params) < 1e6) * rng.standard_normal()
        study.add_trial(create_trial(params=params, distributions=SPACE, value=value))
    leader = explain(study).recommended.params

    def again(trial):
        params = {name: trial.suggest_float(name, 0.0, 1.0) for name in SPACE}
        return 1e6 if params == leader else penalised(params)

    copy = optuna.create_study()
    copy.add_trials(study.trials)
    done = confirm(study, again, 4)
    assert (done.failed, done.uncounted) == (1, 0)
    assert study.trials[done.left_out[0]].params == leader != explain(study).recommended.params

    def broken(trial):
        [trial.suggest_float(name, 0.0, 1.0) for name in SPACE]
        return next(values)

    values = iter([1e6, math.inf])  # two settings before it has worked: the program
    done = confirm(copy, broken, 2)
    assert (done.failed, done.uncounted, done.left_out) == (2, 2, ())
