"""Constraints are outputs with a model each: one outlier in one is no violation."""

from __future__ import annotations

import logging
import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import Trial, TrialState

from stoic import recipes
from stoic.integrations.optuna import FAILED, StoicSampler, explain
from stoic.integrations.optuna.internals import constraints, store_constraints
from stoic.integrations.optuna.unmodelled import unmodelled, violates
from stoic.printable import probability
from stoic.refusal import RefusalError
from studies import add

X = {"x": FloatDistribution(0.0, 1.0)}
XY = {"x": FloatDistribution(-5.0, 5.0), "y": FloatDistribution(0.0, 1.0)}
LOG = "stoic.integrations.optuna.sampler"
BEST = 2.13  # of what is allowed; 0 of all

needs_set_constraint = pytest.mark.skipif(
    not hasattr(Trial, "set_constraint"), reason="Optuna 5 has trial.set_constraint"
)


def excess(params):
    """Above 0 where it is not allowed, as at the best of all settings, (2, 0.3)."""
    return params["x"] + 2.0 * params["y"] - 1.0


def value(params):
    return (params["x"] - 2.0) ** 2 + 20.0 * (params["y"] - 0.3) ** 2


def bowl(trial):
    return value({name: trial.suggest_float(name, d.low, d.high) for name, d in XY.items()})


def bowl_that_says_so(trial):
    found = bowl(trial)
    trial.set_constraint("excess", excess(trial.params))
    return found


def check_best(study, most=2.6):
    known = explain(study)
    assert excess(known.recommended.params) <= 0.0
    assert BEST < value(known.recommended.params) < most  # of values up to 59
    assert known.feasible >= 0.9
    assert f"with probability {probability(known.feasible)}" in str(known)
    return known


def test_a_constraints_func_leads_to_the_best_that_is_allowed():
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [excess(trial.params)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=35)
    assert [constraints(trial) for trial in study.trials] == [
        {"0": excess(trial.params)} for trial in study.trials
    ]
    known = check_best(study)
    violating = [trial.number for trial in study.trials if excess(trial.params) > 0.0]
    assert list(known.infeasible) == violating != []
    assert len(known.rows) == 35  # their values count for the objective
    assert known.observed_best.number not in violating
    assert known.unmodelled == ()


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


def test_outliers_in_a_constraint_and_in_the_objective_are_no_reason():
    def limits(trial):
        return [excess(trial.params) + (40.0 if trial.number % 9 == 4 else 0.0)]

    def objective(trial):
        return bowl(trial) - (300.0 if trial.number % 11 == 6 else 0.0)

    study = optuna.create_study(sampler=StoicSampler(seed=0, constraints_func=limits))
    study.optimize(objective, n_trials=40)
    check_best(study, most=3.0)


@pytest.mark.parametrize("returned", [0.3, None, ["a"]])
def test_a_constraints_func_that_returns_no_list_of_numbers_is_refused(returned):
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: returned)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(RefusalError, match=r"constraints_func must return a list of numbers.*got"):
        study.optimize(bowl, n_trials=2)


def test_an_outlier_in_a_constraint_is_no_violation():
    grid = np.linspace(0.0, 1.0, 15)
    limits = [{"constraints": [x - 0.8]} for x in grid]
    limits[7] = {"constraints": [100.0]}  # at the best of all
    study = stored(*((x, (x - 0.5) ** 2, said) for x, said in zip(grid, limits, strict=True)))
    known = explain(study)
    assert known.infeasible == (7, 12, 13, 14)
    assert known.recommended.number == 7
    assert known.feasible > 0.9
    assert known.observed_best.number in (6, 8)
    assert known.distrusted_constraints == {"0": (7,)}
    assert "values of 0 that are distrusted: 7" in str(known)
    add(study, {"x": 0.31}, X, attrs={"stoic:failed": "bad"}, system={"constraints": [-90.0]})
    assert explain(study).distrusted_constraints == {"0": (7, 15)}


def test_noise_in_a_constraint_keeps_the_recommended_setting_away_from_the_limit():
    noise = 0.1 * np.random.default_rng(0).standard_normal(40)
    known = explain(line(np.linspace(-0.5, 0.5, 40) + noise))
    assert 0.2 < known.recommended.params["x"] < 0.5 < known.model_optimum["x"] + 0.2
    assert 0.9 <= known.feasible < 1.0


def test_before_anything_is_feasible_the_search_is_for_that():
    def limits(trial):  # 0.6 % of the square
        return [(trial.params["x"] - 3.0) ** 2 / 100.0 + (trial.params["y"] - 0.9) ** 2 - 0.002]

    study = optuna.create_study(sampler=StoicSampler(seed=3, constraints_func=limits))
    study.optimize(bowl, n_trials=30)
    assert sum(violates(trial) for trial in study.trials[:10]) >= 9
    assert sum(not violates(trial) for trial in study.trials[10:]) >= 5
    assert max(limits(explain(study).recommended)) <= 0.0


@pytest.mark.parametrize("satisfied", [0.0, -1.0])
def test_a_constraint_that_is_a_flag_is_learned(satisfied):
    """0 or 1, as of max(violation, 0), has no value that is safely below 0."""

    def limits(trial):
        return [1.0 if excess(trial.params) > 0.0 else satisfied]

    study = optuna.create_study(sampler=StoicSampler(seed=0, constraints_func=limits))
    study.optimize(bowl, n_trials=30)
    known = explain(study)
    assert excess(known.recommended.params) <= 0.0
    assert value(known.recommended.params) < 6.0
    assert known.feasible > 0.5


def disc(params):
    """At most 0 in a disc whose nearest point to (0.2, 0.2) is the best one that is allowed."""
    return (params["x"] - 0.7) ** 2 + (params["y"] - 0.7) ** 2 - 0.25**2


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))]
)
@pytest.mark.parametrize("form", [lambda v: float(v > 0.0), lambda v: max(v, 0.0)])
def test_constraints_that_say_no_more_of_what_satisfies_them(form, seed):
    unit = {name: FloatDistribution(0.0, 1.0) for name in "xy"}

    def far(trial):
        return sum((trial.suggest_float(name, 0.0, 1.0) - 0.2) ** 2 for name in unit)

    sampler = StoicSampler(seed=seed, constraints_func=lambda trial: [form(disc(trial.params))])
    study = optuna.create_study(sampler=sampler)
    study.optimize(far, n_trials=30)
    feasible = [trial for trial in study.trials if disc(trial.params) <= 0.0]
    assert len(feasible) >= 3  # a fifth of the square
    known = explain(study)
    assert known.recommended in feasible
    assert known.recommended.value < min(t.value for t in feasible) + 0.03
    assert known.recommended.value < 0.25  # the best is 0.208, the median of the disc 0.5


def test_a_violation_that_is_trusted_is_no_noise_where_none_can_be():
    rng = np.random.default_rng(0)
    study, unit = optuna.create_study(), {name: FloatDistribution(0.0, 1.0) for name in "xy"}
    for number in range(40):
        x, y = rng.random(2)
        violation = [max(disc({"x": x, "y": y}), 0.0)]
        if number in (5, 6):  # far inside, and told to violate by a lot
            x, y, violation = 0.65 + 0.05 * (number - 5), 0.62, [40.0]
        far = (x - 0.2) ** 2 + (y - 0.2) ** 2
        add(study, {"x": x, "y": y}, unit, far, system={"constraints": violation})
    known = explain(study)
    assert disc(known.recommended.params) <= 0.0
    assert {5, 6} <= set(known.distrusted_constraints["0"])
    assert known.recommended.number in (5, 6) or not violates(known.recommended)


def test_another_sampler_of_the_same_storage_goes_on_with_what_is_stored(tmp_path):
    """State is in the storage alone: a new process, or a worker, knows as much."""
    url = f"sqlite:///{tmp_path / 'x.db'}"

    def limits(trial):
        return [excess(trial.params)]

    def asked(study, seed):
        study.sampler = StoicSampler(seed=seed, constraints_func=limits)
        return study.ask(XY).params

    study = optuna.create_study(storage=url, study_name="s", sampler=StoicSampler(seed=0))
    study.sampler = StoicSampler(seed=0, constraints_func=limits)
    study.optimize(bowl, n_trials=14)
    again = optuna.load_study(storage=url, study_name="s")
    known = (explain(study), explain(again))
    assert known[0].recommended.number == known[1].recommended.number
    assert known[0].feasible == pytest.approx(known[1].feasible)
    first, second = asked(study, 5), asked(again, 5)  # the first one is pending now
    assert max(abs(first["x"] - second["x"]) / 10.0, abs(first["y"] - second["y"])) > 1e-3


def stored(*trials, state=TrialState.COMPLETE):
    """A study with trials, each an x, its value, and what its attribute says of constraints."""
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=0))
    for x, y, said in trials:
        add(study, {"x": x}, X, y, state=state, system=said)
    return study


def line(limits):
    """A study of -x at even x, with one constraint."""
    grid = np.linspace(0.0, 1.0, len(limits))
    return stored(*((x, -x, {"constraints": [c]}) for x, c in zip(grid, limits, strict=True)))


@pytest.mark.parametrize(
    "said",
    [
        {"constraints": [-1.0, 0.9]},
        {"constraints:0": -1.0, "constraints:1": 0.9},
        {"constraints": [math.inf, 0.0]},
        {"constraints": [math.nan, -1.0]},
        {"constraints": None},  # as Optuna stores it when a constraints_func raises
    ],
)
@pytest.mark.parametrize("recipe", [None, recipes.gp_ucb()])
def test_what_violates_a_constraint_is_never_recommended(said, recipe):
    allowed = {"constraints": [-1.0, -1.0]}
    study = stored((0.2, 3.0, allowed), (0.5, 1.0, said), (0.8, 2.0, allowed), (0.9, 2.5, allowed))
    assert [violates(trial) for trial in study.trials] == [False, True, False, False]
    known = explain(study, recipe=recipe)
    assert known.observed_best.number == known.recommended.number == 2
    assert known.infeasible == (1,)
    assert 0.0 <= study.ask(X).params["x"] <= 1.0


def test_a_recipe_that_does_not_model_constraints_says_so(caplog):
    sampler = StoicSampler(
        seed=0, recipe="gp_ucb", constraints_func=lambda trial: [excess(trial.params)]
    )
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=13)
    (said,) = [record.message for record in caplog.records if record.name == LOG]
    assert "avoided as infeasible" in said
    known = explain(study)
    assert known.feasible is None
    assert known.unmodelled == (said,)
    assert not set(known.infeasible) & {row.number for row in known.rows}


def test_where_all_violate_a_constraint_nothing_is_recommended():
    study = stored((0.2, 3.0, {"constraints": [1.0]}), (0.4, 1.0, {"constraints": [2.0]}))
    known = explain(study)
    assert known.observed_best is known.recommended is None
    assert "no setting is known to be feasible" in str(known)
    assert (known.infeasible, known.feasible) == ((0, 1), None)
    assert [row.number for row in known.rows] == [0, 1]
    assert 0.0 <= study.ask(X).params["x"] <= 1.0


def test_a_violation_that_may_be_real_is_not_recommended():
    """In noise as large as the limits, the best value of all has violated one."""
    known = explain(line(0.1 * np.random.default_rng(1).standard_normal(12)))
    assert known.infeasible
    assert known.recommended.number not in known.infeasible


def test_without_shared_parameters_what_violates_a_constraint_is_not_recommended():
    study = optuna.create_study()
    for name, y, said in (("a", 1.0, [1.0]), ("b", 2.0, [-1.0])):
        add(study, {name: 0.5}, {name: X["x"]}, y, system={"constraints": said})
    assert explain(study).recommended.number == 1


def test_failures_count_beside_constraints():
    study = stored((0.2, 3.0, {}), (0.8, 2.0, {"constraints": [-1.0]}))
    for kind in ("transient", None):
        attrs = {} if kind is None else {FAILED: kind}
        add(study, {"x": 0.5}, X, attrs=attrs, system={"constraints": [1.0]})
    study.ask(X)
    learner = study.sampler._synced.learner
    assert learner.failures.kinds == ("transient",)
    assert np.isnan(learner.observations.observed).sum() == 1
    assert learner.constraints()(np.array([[0.8], [0.5]])).round(1).tolist() == [1.0, 0.0]


def test_a_trial_that_a_rule_excludes_before_it_runs_bounds_no_value():
    def ruled(trial):
        found = bowl(trial)
        if excess(trial.params) > 0.0:
            raise optuna.TrialPruned
        return found

    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [excess(trial.params)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(ruled, n_trials=30)
    pruned = [trial.number for trial in study.trials if trial.state == TrialState.PRUNED]
    assert 1 <= len(pruned) <= 15
    known = check_best(study, most=2.2)
    assert not known.partial
    assert study.sampler._synced.failed == []
    assert pruned[0] == 3
    assert len(pruned) <= 4  # the design, too, keeps away from what is excluded


def test_once_the_border_of_a_rule_is_found_what_it_excludes_is_not_explored():
    def in_a_disc(trial):
        x, y = (trial.suggest_float(name, -2.0, 2.0) for name in "xy")
        trial.set_user_attr("excess", x * x + y * y - 1.0)
        if x * x + y * y > 1.0:
            raise optuna.TrialPruned
        return (x - 1.2) ** 2 + 0.5 * (y - 1.0) ** 2

    sampler = StoicSampler(seed=3, constraints_func=lambda trial: [trial.user_attrs["excess"]])
    study = optuna.create_study(sampler=sampler)
    study.optimize(in_a_disc, n_trials=42)
    beyond = [t.number for t in study.trials if t.state == TrialState.PRUNED]
    assert sum(number >= 10 for number in beyond) <= 8  # 16 where it ended beyond the border
    angles = np.linspace(0.0, 0.5 * np.pi, 100_000)
    least = ((np.cos(angles) - 1.2) ** 2 + 0.5 * (np.sin(angles) - 1.0) ** 2).min()
    assert explain(study).recommended.value < least + 1e-4


def test_wrong_values_of_a_constraint_that_prunes_are_not_believed():
    """It may be measured, and not computed: one in ten is far off here."""
    rng = np.random.default_rng(52)

    def measured(trial):
        x, y = (trial.suggest_float(name, -2.0, 2.0) for name in "xy")
        found = x * x + y * y - 1.0 + 0.05 * rng.standard_normal()
        found = rng.choice([-3.0, 3.0]) if rng.random() < 0.1 else found
        trial.set_user_attr("excess", found)
        if found > 0.0:
            raise optuna.TrialPruned
        return (x - 1.2) ** 2 + 0.5 * (y - 1.0) ** 2

    sampler = StoicSampler(seed=2, constraints_func=lambda trial: [trial.user_attrs["excess"]])
    study = optuna.create_study(sampler=sampler)
    study.optimize(measured, n_trials=40)
    best = explain(study).recommended.params  # beyond by 3.9 where it was taken for exact
    assert -0.1 < best["x"] ** 2 + best["y"] ** 2 - 1.0 < 0.1


@pytest.mark.parametrize("several", [False, True])
def test_a_rule_is_learned_before_any_trial_is_complete(several):
    def sum_of_five(trial):
        found = [trial.suggest_float(name, 0.0, 1.0) for name in "abcde"]
        trial.set_user_attr("excess", sum(found) - 1.0)
        if sum(found) > 1.0:  # of 120 settings one is not
            raise optuna.TrialPruned
        value = sum((x - 0.2) ** 2 for x in found)
        return (value, found[0]) if several else value

    sampler = StoicSampler(seed=1, constraints_func=lambda trial: [trial.user_attrs["excess"]])
    study = optuna.create_study(directions=["minimize"] * (1 + several), sampler=sampler)
    study.optimize(sum_of_five, n_trials=24)
    excluded = [t.number for t in study.trials if t.state == TrialState.PRUNED]
    assert excluded[:4] == list(range(4))
    assert len(excluded) <= 12
    assert explain(study).unmodelled == ()
    if not several:
        assert explain(study).recommended.value < 0.1


def test_what_excludes_a_trial_without_a_size_is_a_failure():
    """nan, or infinity: nothing says how near the limit is. Others are not measured then."""
    study = stored((0.2, 3.0, {"constraints": [-1.0, -2.0]}))
    for excess in ([math.nan, -1.0], [math.inf, 1.0], [1.0, math.nan], [2.0, 3.0]):
        add(study, {"x": 0.5}, X, None, state=TrialState.PRUNED, system={"constraints": excess})
    bound = {"stoic:censored": 4.0}
    state = TrialState.PRUNED
    add(study, {"x": 0.6}, X, None, state=state, attrs=bound, system={"constraints": [1.0, 1.0]})
    assert explain(study).infeasible == (1, 2, 3, 4, 5)
    study.ask(X)
    synced = study.sampler._synced
    assert synced.learner.failures.kinds == ("infeasible", "infeasible")
    assert [values for _, values in synced.learner.surrogate.outputs._results.values()] == [
        pytest.approx([-1.0, math.nan, math.inf, 1.0, 2.0, 1.0], nan_ok=True),
        [-2.0, -1.0, 1.0, 3.0, 1.0],
    ]
    assert synced.observed == [0, 5]  # which states a bound


def test_nan_in_a_constraint_is_said_and_ends_nothing(caplog):
    def limits(trial):
        return [excess(trial.params), math.nan if trial.number in (2, 12) else -1.0]

    study = optuna.create_study(sampler=StoicSampler(seed=0, constraints_func=limits))
    study.optimize(bowl, n_trials=16)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    known = explain(study)
    assert "constraint 1 is not a number" in known.unmodelled[0]
    assert known.unmodelled[0].endswith(": 2, 12.")
    assert {2, 12} <= set(known.infeasible)
    assert len(known.rows) == 16
    assert any("constraint 1 is not a number" in record.message for record in caplog.records)
    assert known.recommended.number not in (2, 12)


def test_nan_in_a_constraint_keeps_away_from_where_it_is_nan():
    def limits(trial):
        return [math.nan if trial.params["x"] > 0.0 else -1.0]

    study = optuna.create_study(sampler=StoicSampler(seed=0, constraints_func=limits))
    study.optimize(bowl, n_trials=30)  # whose best is at 2
    assert sum(trial.params["x"] > 0.0 for trial in study.trials[10:]) <= 8  # 18 if it is ignored
    assert explain(study).recommended.params["x"] <= 0.0


def test_a_constraint_that_some_trials_do_not_have_is_said(caplog):
    grid = np.linspace(0.0, 1.0, 16)
    said = [{"constraints": [x - 0.6]} if k % 3 else {} for k, x in enumerate(grid)]
    study = stored(*((x, -x, each) for x, each in zip(grid, said, strict=True)))
    known = explain(study)
    assert 0.5 < known.recommended.params["x"] <= 0.6
    assert "without a value of the constraint 0" in known.unmodelled[0]
    assert len(known.rows) == 16
    study.ask(X)
    assert known.unmodelled[0] in caplog.messages


def test_a_number_of_constraints_that_changes_is_said():
    study = stored((0.2, 3.0, {"constraints": [-1.0]}), (0.4, 1.0, {"constraints": [-1.0, -2.0]}))
    (said,) = unmodelled(study.trials)
    assert "constraint 1 count for the objective and not for it: 0." in said
    assert explain(study).recommended.number == 1


@pytest.mark.parametrize("satisfied", [-math.inf, -1.0])
def test_a_constraint_that_is_satisfied_by_any_amount_is_satisfied(satisfied):
    known = explain(line(np.where(np.linspace(0.0, 1.0, 12) < 0.6, satisfied, 0.5)))
    assert known.recommended.params["x"] < 0.6
    assert known.feasible > 0.5
    assert known.distrusted_constraints == {}


@pytest.mark.parametrize("beyond", [math.nan, math.inf, 10**400])
def test_what_is_no_finite_value_of_a_constraint_is_infeasible_and_not_called_distrusted(beyond):
    limits = [x - 0.6 for x in np.linspace(0.0, 1.0, 12)]
    limits[3] = beyond
    known = explain(line(limits))
    assert 3 in known.infeasible
    assert known.distrusted_constraints == {}


def test_constraints_are_stored_so_that_optuna_reads_them():
    study = optuna.create_study()
    trial = study.ask(X)
    store_constraints(study, trial, {"latency": -0.5})
    study.tell(trial, 1.0)
    assert list(constraints(study.trials[0]).values()) == [-0.5]
    if hasattr(Trial, "set_constraint"):
        assert study.trials[0].constraints == {"latency": -0.5}


def test_without_constraints_nothing_is_said_or_logged(caplog):
    caplog.set_level(logging.WARNING)
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(bowl, n_trials=12)
    assert explain(study).feasible is None
    assert not caplog.records
