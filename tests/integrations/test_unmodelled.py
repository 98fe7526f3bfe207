"""What a study asks for and the model does not know is said, and an infeasible optimum avoided."""

from __future__ import annotations

import math

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import PartialFixedSampler
from optuna.trial import Trial, TrialState, create_trial

from stoic import recipes
from stoic.integrations.optuna import FAILED, StoicSampler, explain
from stoic.integrations.optuna.internals import constraints
from stoic.integrations.optuna.unmodelled import unmodelled, violates

X = {"x": FloatDistribution(0.0, 1.0)}
LOG = "stoic.integrations.optuna.sampler"

needs_set_constraint = pytest.mark.skipif(
    not hasattr(Trial, "set_constraint"), reason="Optuna 5 has trial.set_constraint"
)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def excess(params):
    """Above 0 where it is not allowed, as at the best of all settings, (2, 0.3)."""
    return params["x"] + 2.0 * params["y"] - 1.0


def bowl(trial):
    x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_float("y", 0.0, 1.0)
    return (x - 2.0) ** 2 + 20.0 * (y - 0.3) ** 2  # where it is allowed, 2.13 or more


def bowl_that_says_so(trial):
    value = bowl(trial)
    trial.set_constraint("excess", excess(trial.params))
    return value


def check_searched_where_it_is_allowed(study):
    late = study.trials[-15:]
    # 7 to 13 in 20 runs with other last digits. Without constraints it is 0: all near (2, 0.3).
    assert sum(excess(trial.params) <= 0.0 for trial in late) >= 4
    thoughts = explain(study)
    for best in (thoughts.observed_best, thoughts.recommended):
        assert excess(best.params) <= 0.0
        assert 2.13 < best.value < 6.0  # of values up to 59
    violating = [trial.number for trial in study.trials if excess(trial.params) > 0.0]
    assert list(thoughts.infeasible) == violating != []
    assert not set(violating) & {row.number for row in thoughts.rows}


def test_a_constraints_func_keeps_the_search_where_it_is_allowed():
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [excess(trial.params)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=35)
    assert [constraints(trial) for trial in study.trials] == [
        [excess(trial.params)] for trial in study.trials
    ]
    check_searched_where_it_is_allowed(study)


@needs_set_constraint
def test_constraints_of_trials_are_the_same_as_those_of_a_constraints_func():
    known = []
    for objective, how in (
        (bowl, {"constraints_func": lambda trial: [excess(trial.params)]}),
        (bowl_that_says_so, {}),
    ):
        study = optuna.create_study(sampler=StoicSampler(seed=1, **how))
        study.optimize(objective, n_trials=14)
        known.append((explain(study).infeasible, [trial.params for trial in study.trials]))
    assert known[0] == known[1]
    assert known[0][0]
    assert explain(study).observed_best.number == study.best_trial.number


def stored(*trials, state=TrialState.COMPLETE):
    """A study with trials, each an x, its value, and what its attribute says of constraints."""
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=0))
    for x, value, said in trials:
        study.add_trial(
            create_trial(
                state=state, value=value, params={"x": x}, distributions=X, system_attrs=said
            )
        )
    return study


@pytest.mark.parametrize(
    "said",
    [
        {"constraints": [-1.0, 0.1]},
        {"constraints:a": -1.0, "constraints:b": 0.1},
        {"constraints": [math.inf]},
        {"constraints": None},  # as Optuna stores it when a constraints_func raises
    ],
)
@pytest.mark.parametrize("recipe", [None, recipes.gp_ucb()])
def test_what_violates_a_constraint_is_never_recommended(said, recipe):
    allowed = {"constraints": [0.0]}
    study = stored((0.2, 3.0, allowed), (0.5, 1.0, said), (0.8, 2.0, {}), (0.9, 2.5, allowed))
    assert [violates(trial) for trial in study.trials] == [False, True, False, False]
    thoughts = explain(study, recipe=recipe)
    assert thoughts.observed_best.number == thoughts.recommended.number == 2
    assert thoughts.infeasible == (1,)
    assert [row.number for row in thoughts.rows] == [0, 2, 3]


def test_where_all_violate_a_constraint_nothing_is_recommended():
    study = stored((0.2, 3.0, {"constraints": [1.0]}), (0.4, 1.0, {"constraints": [2.0]}))
    thoughts = explain(study)
    assert thoughts.observed_best is thoughts.recommended is None
    assert (thoughts.infeasible, thoughts.rows) == ((0, 1), ())
    assert 0.0 <= study.ask(X).params["x"] <= 1.0


def test_without_shared_parameters_what_violates_a_constraint_is_not_recommended():
    study = optuna.create_study()
    for name, value, said in (("a", 1.0, [1.0]), ("b", 2.0, [-1.0])):
        study.add_trial(
            create_trial(
                value=value,
                params={name: 0.5},
                distributions={name: X["x"]},
                system_attrs={"constraints": said},
            )
        )
    assert explain(study).recommended.number == 1


def test_a_transient_failure_that_violates_a_constraint_stays_transient():
    study = stored((0.2, 3.0, {}), (0.8, 2.0, {}))
    for kind in ("transient", None):
        study.add_trial(
            create_trial(
                state=TrialState.FAIL,
                params={"x": 0.5},
                distributions=X,
                system_attrs={"constraints": [1.0]},
                user_attrs={} if kind is None else {FAILED: kind},
            )
        )
    study.ask(X)
    assert study.sampler._synced.learner.failures.kinds == ("transient", "infeasible")


def test_a_constraints_func_that_fails_loses_no_result():
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [math.nan])
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match="NaN"):
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    assert study.trials[0].state == TrialState.COMPLETE
    assert explain(study).recommended is None


def said_of(caplog):
    return [record.message for record in caplog.records if record.name == LOG]


@pytest.mark.parametrize("inside", [False, True])
def test_constraints_are_said_to_be_half_modelled_once_for_a_study(caplog, inside):
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [excess(trial.params)])
    for _ in range(2):
        caplog.clear()
        outer = PartialFixedSampler({"y": 0.5}, sampler) if inside else sampler
        optuna.create_study(sampler=outer).optimize(bowl, n_trials=4)
        (said,) = said_of(caplog)
        assert "constraint" in said
        assert "not modelled" in said


def test_parameters_whose_range_changes_are_said_to_be_drawn_at_random(caplog):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number % 2:
            trial.suggest_float("momentum", 0.0, 1.0)
        if trial.number > 3:
            trial.suggest_float("decay", 0.0, float(trial.number))
        trial.suggest_int("units", 1, 2 + trial.number)  # a range of its own
        return x

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=8)
    said = said_of(caplog)
    assert len(said) == len(set(said)) == 2  # units; decay, too
    assert all("drawn at random" in each for each in said)
    assert "have decay, units in" in said[-1]
    assert explain(study).unmodelled == unmodelled(study.trials) == (said[-1],)


def test_trials_that_share_nothing_are_modelled(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float(f"x{trial.number % 2}", 0, 1), n_trials=6)
    assert said_of(caplog) == []
    assert len(explain(study).rows) == 6


def test_parameters_outside_of_a_given_search_space_are_said_to_be_drawn_at_random(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0, search_space=X))
    study.optimize(
        lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1), n_trials=3
    )
    (said,) = said_of(caplog)
    assert "have y in the same range" in said


def test_intermediate_values_of_pruned_trials_are_said_not_to_be_used(caplog):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.report(x, 0)
        if trial.number in (1, 2):
            raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=5)
    (said,) = said_of(caplog)
    assert "pruned" in said
    assert explain(study).unmodelled == (said,)


def test_nothing_is_said_of_a_study_that_is_modelled_entirely(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(bowl, n_trials=4)
    study.tell(study.ask(), state=TrialState.FAIL)  # before it had any parameter
    study.ask()
    assert said_of(caplog) == []
    assert explain(study).unmodelled == ()


def test_a_trial_without_parameters_never_shrinks_the_space(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))

    def objective(trial):
        if trial.number in (3, 12):
            return 1e9  # before any parameter: the data could not be loaded
        return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2

    study.optimize(objective, n_trials=20)
    known = explain(study)
    assert [row.number for row in known.rows] == [n for n in range(20) if n not in (3, 12)]
    assert abs(known.recommended.params["x"] - 0.3) < 0.05
    assert known.unmodelled == ("Trials without parameters are not modelled: 3, 12.",)
    said = [record.message for record in caplog.records if "without parameters" in record.message]
    assert len(said) == len(set(said)) == 2
