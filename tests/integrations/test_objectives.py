"""Studies with two or three objectives: each is an output with a trust of its own."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic import recipes
from stoic.integrations.optuna import FAILED, NOISE, VALUES, StoicSampler, explain
from stoic.integrations.optuna.internals import storage_of, trial_id
from stoic.pareto import hypervolume
from stoic.printable import probability
from stoic.refusal import RefusalError
from studies import add

X = {"x": FloatDistribution(0.0, 1.0)}
DIRECTIONS = ["minimize", "maximize"]


def cost(x):
    return (x - 0.2) ** 2


def gain(x):
    return 100.0 - 100.0 * (x - 0.8) ** 2


def stored(values, directions=DIRECTIONS, **said):
    """A study with trials at even x, each with its values."""
    study = optuna.create_study(
        directions=directions, sampler=StoicSampler(seed=0, n_startup_trials=0)
    )
    for x, each in zip(np.linspace(0.0, 1.0, len(values)), values, strict=True):
        add(study, {"x": float(x)}, X, list(each), **said)
    return study


def even(n, lies=None):
    """Values of n trials at even x, some of them replaced."""
    values = [[cost(x), gain(x)] for x in np.linspace(0.0, 1.0, n)]
    for (trial, objective), value in (lies or {}).items():
        values[trial][objective] = value
    return values


def test_a_study_with_two_directions_is_optimized():
    study = optuna.create_study(directions=DIRECTIONS, sampler=StoicSampler(seed=0))

    def objective(trial):
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", -2.0, 2.0)
        return cost(x) + y**2, gain(x) - 50.0 * y**2

    study.optimize(objective, n_trials=24)
    reached = np.array([[-t.values[0], t.values[1]] for t in study.trials])
    reference = np.array([-1.0, 0.0])
    u = np.linspace(0.2, 0.8, 500)
    truth = np.stack([-cost(u), gain(u)], axis=1)
    assert hypervolume(reached, reference) > 0.97 * hypervolume(truth, reference)
    known = explain(study)
    assert len(known.front) >= 5
    for point in known.front:
        assert 0.1 < point.trial.params["x"] < 0.9
        assert abs(point.trial.params["y"]) < 0.3
    assert (known.front[0].mean < known.front[-1].mean).all()  # the smallest cost first


def test_an_outlier_in_one_objective_is_distrusted_there_alone():
    study = stored(even(15, {(7, 0): 40.0, (10, 1): 900.0}))
    known = explain(study)
    assert known.objectives == ("objective 0", "objective 1")
    low = {n: each for n, each in known.trust.items() if min(each.values()) < 0.5}
    assert {n: [k for k, t in each.items() if t < 0.5] for n, each in low.items()} == {
        7: ["objective 0"],
        10: ["objective 1"],
    }
    assert 10 in [trial.number for trial in known.observed_front]
    assert not {7, 10} & {point.trial.number for point in known.front}
    assert known.recommended is known.observed_best is None
    assert "trial 10, objective 1: observed 900" in str(known)
    mean, std = known.predict({"x": 0.5})
    assert mean.shape == std.shape == (1, 2)
    assert mean[0, 0] == pytest.approx(cost(0.5), abs=0.05)
    assert mean[0, 1] == pytest.approx(gain(0.5), abs=5.0)


def test_an_objective_whose_differences_are_taken_for_noise_is_named():
    """A robot that hardly ever walks, whose few good runs others contradict."""
    rng = np.random.default_rng(3)
    said = {}
    for height in (0.0, 1.0):
        study = optuna.create_study(directions=["minimize", "maximize"])
        study.set_metric_names(["energy", "speed"])
        space = {name: FloatDistribution(0.0, 1.0) for name in ("x", "y")}
        for k in range(24):
            x, y = rng.random(2)
            speed = 0.9 if k in (4, 9) and not height else height * x
            values = [x + y, speed + 0.04 * rng.normal()]
            study.add_trial(
                create_trial(params={"x": x, "y": y}, distributions=space, values=values)
            )
        said[height] = explain(study)
    assert said[1.0].undecided is None
    assert "undecided" not in str(said[1.0])
    assert said[0.0].undecided.startswith("of speed, the results of similar settings differ")
    assert f"undecided      {said[0.0].undecided}" in str(said[0.0]).splitlines()


def test_a_hill_in_a_plain_is_named_with_its_objective():
    rng = np.random.default_rng(0)
    speeds = [math.exp(-(((x - 0.52) / 0.05) ** 2)) for x in np.linspace(0.0, 1.0, 20)]
    found = explain(stored([[k / 19.0, s + 1e-4 * rng.normal()] for k, s in enumerate(speeds)]))
    assert found.undecided.startswith("of objective 1, 5 distrusted results are side by side")
    assert "what a hill in a plain looks like. Measure those of the observed" in found.undecided


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_worse_than_all_of_the_front_decides_nothing(turned):
    """A third of the gains is lost."""
    values = even(24)
    for k in range(0, 24, 3):
        values[k][1] = -900.0 - k
    if turned:  # and all of them negative
        values = [[-a, -b - 3000.0] for a, b in values]
    found = explain(stored(values, ["maximize", "minimize"] if turned else DIRECTIONS))
    assert sum(row.trust < 0.5 for row in found.rows) >= 8
    assert found.undecided is None


@pytest.mark.parametrize(
    "asked",
    [{"possible": (0, 1)}, {"recipe": "gp_ucb"}, {"tolerance": {"x": 0.1}, "threshold": 1.0}],
)
def test_what_needs_one_objective_is_refused_before_the_objective_runs(asked):
    study = optuna.create_study(directions=["minimize"] * 2, sampler=StoicSampler(**asked))
    with pytest.raises(RefusalError, match="needs a study with one"):
        study.optimize(lambda trial: pytest.fail("it runs"), 3, catch=(Exception,))
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


def test_a_front_of_one_setting_is_decided():
    rng, study = np.random.default_rng(0), optuna.create_study(directions=DIRECTIONS)
    for _ in range(16):
        add(study, {"x": 0.5}, X, [cost(0.5) + rng.normal(), gain(0.5) + rng.normal()])
    assert explain(study).undecided is None


def test_names_of_the_objectives_are_those_of_the_study():
    study = stored(even(9))
    study.set_metric_names(["cost", "gain"])
    known = explain(study)
    assert known.objectives == tuple(known.trust[3]) == ("cost", "gain")
    assert f"observed front {len(known.observed_front)} trials: " in str(known)
    for point in known.front:
        low, high = point.interval.T
        assert ((low <= point.mean) & (point.mean <= high)).all()


def test_directions_only_turn_the_axes():
    turned = stored([[-a, -b] for a, b in even(11)], DIRECTIONS[::-1])
    fronts = [
        [point.trial.number for point in explain(study).front]
        for study in (stored(even(11)), turned)
    ]
    assert fronts[0] == fronts[1]


def test_only_settings_with_the_given_values_are_compared():
    study = optuna.create_study(directions=DIRECTIONS)
    space = X | {"c": optuna.distributions.CategoricalDistribution(["a", "b"])}
    for k, x in enumerate(np.linspace(0.0, 1.0, 12)):
        add(study, {"x": float(x), "c": "ab"[k % 2]}, space, [cost(x), gain(x)])
    known = explain(study, fixed={"c": "b"})
    assert {point.trial.params["c"] for point in known.front} == {"b"}
    assert {trial.params["c"] for trial in known.observed_front} == {"b"}


def test_constraints_hold_on_the_recommended_front():
    study = optuna.create_study(
        directions=DIRECTIONS,
        sampler=StoicSampler(seed=0, constraints_func=lambda t: [t.params["x"] - 0.6]),
    )

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return cost(x), gain(x)

    study.optimize(objective, n_trials=20)
    known = explain(study)
    assert known.front
    assert max(point.trial.params["x"] for point in known.front) <= 0.6
    assert max(trial.params["x"] for trial in known.observed_front) <= 0.6
    assert sum(trial.params["x"] <= 0.65 for trial in study.trials[10:]) >= 7


def test_one_false_value_of_a_constraint_is_not_on_the_recommended_front():
    study = stored(even(20))
    limits = [0.6 - x for x in np.linspace(0.0, 1.0, 20)]
    limits[5] = -1.0
    other = optuna.create_study(directions=["minimize", "minimize"])
    for trial, limit in zip(study.trials, limits, strict=True):
        x = trial.params["x"]
        add(other, trial.params, X, [x, (x - 0.8) ** 2], system={"constraints": [limit]})
    known = explain(other)
    assert known.distrusted_constraints == {"0": (5,)}
    assert [point.trial.number for point in known.front] == [12, 13, 14, 15]
    assert min(point.feasible for point in known.front) == known.feasible >= 0.9
    assert "each with probability" in str(known)
    one = optuna.create_study()
    for k, x in enumerate(np.linspace(0.0, 1.0, 20)):
        add(one, {"x": float(x)}, X, x, system={"constraints": [-1.0 if k == 5 else 1.0 + x]})
    known = explain(one)
    assert known.recommended is None
    assert "no setting is known to be feasible" in str(known)


def test_failures_keep_the_search_away():
    study = optuna.create_study(directions=DIRECTIONS, sampler=StoicSampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if x > 0.5:
            trial.set_user_attr(FAILED, "infeasible")
            raise ValueError
        return cost(x), gain(x)

    study.optimize(objective, n_trials=24, catch=(ValueError,))
    assert sum(trial.state == TrialState.FAIL for trial in study.trials[12:]) <= 4
    assert max(point.trial.params["x"] for point in explain(study).front) <= 0.5


def failed(study, x, values, **said):
    """Add a failed trial with what it has of values."""
    add(study, {"x": x}, X, attrs={VALUES: values, **said})


def test_values_of_a_failed_trial_count_where_there_are_any():
    study = stored(even(9))
    failed(study, 0.45, [cost(0.45), None])
    known = explain(study)
    assert known.trust[9] == {"objective 0": 1.0}
    assert 9 not in [trial.number for trial in known.observed_front]
    assert 9 not in [point.trial.number for point in known.front]
    study.ask(X)
    assert np.isnan(study.sampler._synced.learner.results[9]).tolist() == [False, True]


def test_halves_of_results_are_a_front_before_any_trial_has_all_values():
    study = optuna.create_study(directions=DIRECTIONS, sampler=StoicSampler(seed=0))
    for x in np.linspace(0.0, 1.0, 9):
        failed(study, x, [cost(x), None])
        failed(study, x, [None, gain(x)])
    known = explain(study)
    assert len(known.trust) == 18
    assert known.observed_front == ()
    assert len(known.front) > 2
    best = known.front[0].trial.params["x"]
    assert 0.0 <= study.ask(X).params["x"] <= 1.0
    assert study.sampler._synced.learner.results.shape == (18, 2)
    add(study, {"x": best}, X, [cost(best), gain(best)])
    assert explain(study).front[0].trial.state == TrialState.COMPLETE  # of those that are there


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_of_nothing_by_a_smooth_model_is_no_trade_off(seed):
    """A price that a category decides: two settings of one price are as cheap as each other."""
    worse, price = {"a": 0.2, "b": 0.0, "c": 0.5}, {"a": 2, "b": 6, "c": 1}

    def objective(trial):
        kind, x = trial.suggest_categorical("kind", [*"abc"]), trial.suggest_float("x", 0.0, 1.0)
        return (x - 0.3) ** 2 + worse[kind], price[kind]

    study = optuna.create_study(directions=["minimize"] * 2, sampler=StoicSampler(seed=seed))
    study.optimize(objective, n_trials=25)
    front = [point.trial for point in explain(study).front]
    assert sorted(trial.params["kind"] for trial in front) == [*"abc"]
    assert all(abs(trial.params["x"] - 0.3) < 0.05 for trial in front)


def test_an_objective_that_is_constant_decides_nothing():
    study = optuna.create_study(directions=["minimize"] * 2)
    for x in np.linspace(0.0, 1.0, 11):
        add(study, {"x": x}, X, [(x - 0.3) ** 2, 7.3])
    (point,) = explain(study).front
    assert point.trial.params["x"] == pytest.approx(0.3)
    assert point.estimates[1].endswith("(unknown)")


@pytest.mark.parametrize("kind", ["infeasible", "bad", "transient"])
def test_a_failure_of_a_kind_and_a_value_both_count(kind):
    study = stored(even(9))
    failed(study, 0.45, [None, gain(0.45)], **{FAILED: kind})
    study.ask(X)
    learner = study.sampler._synced.learner
    assert learner.failures.kinds == (() if kind == "transient" else (kind,))
    assert np.isfinite(learner.results[9]).tolist() == [False, True]


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0], "ab", [None, None], [True, "x"], 3.0])
def test_what_is_no_value_of_each_objective_is_no_result(values):
    study = stored(even(9))
    failed(study, 0.45, values)
    known = explain(study)
    assert 9 not in known.trust
    assert 0.0 <= study.ask(X).params["x"] <= 1.0


def test_a_complete_trial_with_another_number_of_values_is_no_result():
    """A storage may hold what Optuna would refuse."""
    study = stored(even(9))
    trial = study.ask(X)
    storage_of(study).set_trial_state_values(trial_id(trial), TrialState.COMPLETE, [1.0])
    known = explain(study)
    assert 9 not in known.trust
    assert 0.0 <= study.ask(X).params["x"] <= 1.0


@pytest.mark.parametrize("bound", [True, 0.5, 0.0])
def test_a_bound_is_no_values_and_said(bound):
    study = stored(even(12))
    add(study, {"x": 0.5}, X, [-9.0, 999.0], {"stoic:censored": bound})
    known = explain(study)
    numbers = [t.number for t in known.observed_front] + [p.trial.number for p in known.front]
    assert 12 not in numbers
    assert any("bounds are not modelled" in each for each in known.unmodelled)
    study.optimize(lambda t: (cost(t.suggest_float("x", 0.0, 1.0)), 0.0), n_trials=1)


def test_a_setting_that_cannot_be_run_is_not_on_the_front():
    study = stored(even(12))
    failed(study, 0.45, [-9.0, 999.0], **{FAILED: "infeasible"})
    assert 12 not in [point.trial.number for point in explain(study).front]


def test_infinite_values_are_rejected_where_they_are():
    known = explain(stored(even(9, {(4, 1): math.inf})))
    assert known.trust[4] == {"objective 0": 1.0, "objective 1": 0.0}
    assert 4 not in [trial.number for trial in known.observed_front]


def test_noise_is_one_variance_for_each_value():
    study = stored(even(9), attrs={NOISE: [0.01, 4.0]})
    study.ask(X)
    outputs = study.sampler._synced.learner.outputs
    assert [float(output.observations.noise[0]) for output in outputs] == [0.01, 4.0]


def test_without_a_model_no_front_is_recommended():
    study = optuna.create_study(directions=DIRECTIONS)
    for values in ([1.0, 1.0], [2.0, 3.0], [3.0, 2.0]):
        study.add_trial(create_trial(values=values))
    known = explain(study)
    assert [trial.number for trial in known.observed_front] == [0, 1]
    assert known.front == ()
    assert explain(optuna.create_study(directions=DIRECTIONS)).front == ()


def test_three_objectives():
    study = optuna.create_study(
        directions=["minimize"] * 3, sampler=StoicSampler(seed=0, n_startup_trials=6)
    )

    def objective(trial):
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return x**2 + y**2, (x - 1.0) ** 2 + y**2, x**2 + (y - 1.0) ** 2

    study.optimize(objective, n_trials=14)
    known = explain(study)
    assert len(known.front) >= 6
    assert len(known.trust[0]) == 3


@pytest.mark.parametrize(
    "given",
    [
        {"recipe": "gp_ucb"},
        {"recipe": recipes.gp_ucb()},
        {"possible": (0.0, 1.0)},
        {"tolerance": {"x": 0.1}},
    ],
)
def test_what_needs_one_objective_is_refused_in_a_sentence(given):
    study, (word,) = stored(even(5)), given
    study.sampler = StoicSampler(seed=0, **given)
    with pytest.raises(ValueError, match=f"has 2 objectives, and {word} needs a study with one"):
        study.ask(X)
    if word != "tolerance":
        with pytest.raises(ValueError, match=f"{word} needs a study with one"):
            explain(study, **given)


def test_more_than_three_objectives_are_refused_in_a_sentence():
    study = optuna.create_study(directions=["minimize"] * 4, sampler=StoicSampler(seed=0))
    with pytest.raises(ValueError, match="at most 3 can be optimized together"):
        study.ask(X)
    with pytest.raises(ValueError, match="at most 3"):
        explain(study)


def test_another_sampler_of_the_same_storage_goes_on_with_what_is_stored(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    study = optuna.create_study(storage=url, study_name="s", directions=DIRECTIONS)
    for x in np.linspace(0.0, 1.0, 9):
        add(study, {"x": x}, X, [cost(x), gain(x)])
    again = optuna.load_study(storage=url, study_name="s")
    for each in (study, again):
        each.sampler = StoicSampler(seed=5, n_startup_trials=0)
    first, second = study.ask(X).params["x"], again.ask(X).params["x"]
    assert abs(first - second) > 1e-3  # the first one is pending
    numbers = [[p.trial.number for p in explain(each).front] for each in (study, again)]
    assert numbers[0] == numbers[1]


def test_the_noise_of_each_value_is_used_and_nothing_is_said_of_it(caplog):
    study = optuna.create_study(directions=DIRECTIONS, sampler=StoicSampler(seed=0))
    for noise in ([0.01, 0.04], 0.01):
        trial = study.ask(X)
        trial.set_user_attr(NOISE, noise)
        study.tell(trial, [1.0, 2.0])
    said = [record.getMessage() for record in caplog.records if "not used" in record.getMessage()]
    assert len(said) == 1
    assert "one for each of the 2 objectives, got 0.01" in said[0]
    assert any("Trial 1: stoic:noise" in each for each in explain(study).unmodelled)


def test_a_front_with_a_given_value_has_what_was_run_with_it():
    study = stored(even(9))
    add(study, {"x": 0.2}, X, [0.0, 9.0], {"stoic:executed": {"x": 0.123}})
    known = explain(study, fixed={"x": 0.123})
    assert [trial.number for trial in known.observed_front] == [9]


@pytest.mark.parametrize(
    ("of", "text"), [(1.0, "1.00"), (0.99999, "0.99"), (0.29, "0.29"), (0, "0.00")]
)
def test_only_what_is_certain_has_the_probability_1(of, text):
    assert probability(of) == text
