"""Tuning a Python function."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from stoic import Prior, recipes
from stoic.integrations.optuna import EXECUTED, FAILED, NOISE, RECIPE, explain, robust
from stoic.integrations.optuna.objective import RobustObjective, stored_aim
from stoic.kernels import RBF
from stoic.learner import Learner
from stoic.refusal import RefusalError
from stoic.tuning import Failed, Measured, tune, tune_front
from stoic.tuning.views.summary import Summary

SPACE = {"x": "float(-2, 2)", "kind": ["good", "bad"]}


def valley(params):
    return (params["x"] - 1) ** 2 + (params["kind"] == "bad")


def test_the_result_says_what_was_found():
    result = tune(valley, SPACE, n_trials=25, seed=1, n_startup_trials=8)
    assert len(result.x_iters) == len(result.func_vals) == len(result.trust) == 25
    assert result.x == result.params == result.recommended.params
    assert result.x in result.x_iters
    assert [valley(x) for x in result.x_iters] == pytest.approx(result.func_vals)
    assert result.observed_best.value == result.func_vals.min()
    assert valley(result.x) < 0.1
    assert result.fun == pytest.approx(valley(result.x), abs=0.1)
    assert np.all((result.trust >= 0) & (result.trust <= 1))


def test_an_array_of_one_number_is_that_number():
    result = tune(lambda p: np.array([p["x"]]), {"x": "float(0, 1)"}, n_trials=3)
    assert result.func_vals == pytest.approx([params["x"] for params in result.x_iters])


def test_what_is_masked_is_no_number():
    for masked in (np.ma.masked, np.ma.array([1.0], mask=True)):
        result = tune(
            lambda p, m=masked: m if p["x"] > 0.5 else Measured(p["x"]),
            {"x": "float(0, 1)"}, n_trials=4, seed=0,
        )  # fmt: skip
        assert [math.isnan(y) for y in result.func_vals] == [x["x"] > 0.5 for x in result.x_iters]
        assert 0 < np.isnan(result.func_vals).sum() < 4


def test_a_search_begins_with_settings_that_are_given_and_results_that_are_known(tmp_path):
    given = [{"x": x, "kind": "good"} for x in (np.float64(-2.0), -1, np.int64(0), 0.5, 1, 2)]
    first = tune(valley, SPACE, n_trials=4, x0=given[:3])
    assert first.x_iters[:3] == given[:3]
    assert len(first.x_iters) == 4
    known = [valley(x) for x in given]
    known[1], known[2] = math.nan, -50.0
    where = {"storage": f"sqlite:///{tmp_path}/s.db", "study_name": "s", "seed": 0}
    for trials in (6, 8):  # the second time they are there
        result = tune(valley, SPACE, n_trials=trials, x0=given, y0=known, **where)
        assert len(result.x_iters) == 6 + trials
        assert result.x_iters[:6] == given
        assert result.func_vals[:6] == pytest.approx(known, nan_ok=True)
    assert result.trust[2] < 0.5 < result.trust[0]
    assert valley(result.x) < 0.2
    # Killed while they were added, one of them is there twice
    study = optuna.create_study(storage=where["storage"], study_name="t")
    for trial in result.study.get_trials()[:2]:
        study.add_trial(trial)
    twice = [*given, given[0]]
    result = tune(
        valley, SPACE, n_trials=1, x0=twice, y0=[*known, 9.0], **where | {"study_name": "t"}
    )
    assert [result.x_iters.count(x) for x in given] == [2, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y0": [1.0]}, "got 1 for 0"),
        ({"x0": [{"x": 3.0, "kind": "good"}]}, "x cannot be 3"),
        ({"x0": [{"x": 1.0}]}, "each of x, kind"),
        ({"x0": [[1.0, "good"]]}, "each of x, kind"),
        ({"x0": {"x": 1.0, "kind": "good"}, "y0": "low"}, "y0 is a number"),
        ({"x0": [{"x": 1.0, "kind": "good"}], "fixed": {"kind": "bad"}}, "than is fixed"),
        ({"callback": [print]}, "one function that takes the study and a trial"),
        ({"callback": lambda study: None}, "one function that takes the study and a trial"),
        ({"study_name": "mine"}, "kept in a storage"),
        ({"warm_start": "mine"}, "a list of Optuna studies"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_first_trial(given, said):
    with pytest.raises(ValueError, match=said):
        tune(lambda p: pytest.fail("was called"), SPACE, n_trials=2, **given)


def test_some_parameters_may_be_fixed():
    result = tune(valley, SPACE, n_trials=20, seed=0, fixed={"kind": "bad"})
    assert {x["kind"] for x in result.x_iters} == {"bad"}
    assert result.x["kind"] == "bad"
    assert abs(result.x["x"] - 1.0) < 0.1
    for wrong, said in ({"kind": "worse"}, "cannot be worse"), ({"k": 1}, "no parameter 'k'"):
        with pytest.raises(RefusalError, match=said):
            tune(valley, SPACE, fixed=wrong)
    with pytest.raises(RefusalError, match="leave out one"):
        tune(valley, SPACE, fixed={"x": 1}, confirm=5)


def test_an_error_has_the_study():
    def limited(params):
        return Measured(valley(params), constraints={"size": 1.0})

    with pytest.raises(RuntimeError, match="feasible") as nothing:
        tune(limited, SPACE, n_trials=3)
    assert len(nothing.value.study.trials) == 3

    def interrupted(params):
        calls.append(params)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return valley(params)

    calls = []
    with pytest.raises(KeyboardInterrupt) as stopped:
        tune(interrupted, SPACE, n_trials=9)
    assert [trial.params for trial in stopped.value.study.trials] == calls
    assert "study" in stopped.value.__notes__[0]


def test_no_exception_is_masked():
    @dataclass(frozen=True)
    class FrozenError(Exception):
        number: int

    def fails(params):
        raise FrozenError(3)

    with pytest.raises(FrozenError):
        tune(fails, SPACE, n_trials=2, catch=())


def test_a_result_warms_the_next_one():
    first = tune(valley, SPACE, n_trials=10, seed=0)
    again = tune(valley, SPACE, n_trials=10, seed=0, warm_start=[first])
    assert again.x_iters == tune(valley, SPACE, n_trials=10, seed=0, warm_start=first.study).x_iters
    assert again.x_iters != first.x_iters


def test_maximising_is_minimising_the_negative():
    down = tune(valley, SPACE, n_trials=12, seed=3)
    up = tune(lambda p: -valley(p), SPACE, n_trials=12, seed=3, direction="maximize")
    assert up.x_iters == down.x_iters
    assert up.x == down.x
    assert up.fun == pytest.approx(-down.fun)


def test_failures_and_lies_are_data():
    def sometimes(params):
        sometimes.calls += 1
        if sometimes.calls == 3:
            raise OSError("disk full")
        if sometimes.calls == 5:
            return math.nan
        if sometimes.calls == 7:
            return None
        if sometimes.calls == 9:
            return -math.inf
        if sometimes.calls == 11:
            return -1e6
        return valley(params)

    sometimes.calls = 0
    result = tune(sometimes, SPACE, n_trials=20, seed=0)
    assert [key.split(":")[0] for key in result.failures] == [
        "OSError",
        "the value is nan",
        "TypeError",
    ]
    assert np.flatnonzero(np.isnan(result.func_vals)).tolist() == [2, 4, 6]
    assert np.isnan(result.trust[[2, 4, 6]]).all()
    assert result.func_vals[8] == -math.inf
    assert result.trust[8] < 0.5
    assert result.trust[10] < 0.5
    assert result.observed_best.number == 10
    assert result.recommended.number not in (8, 10)


@pytest.mark.long
def test_an_objective_says_what_kind_of_failure_it_is():
    """And so only the border of what is infeasible is looked for, not what lies behind it."""

    def limited(params):
        limited.calls += 1
        if limited.calls == 4:
            raise Failed("transient")
        if params["x"] > 0.5:
            raise Failed("infeasible", "out of memory")
        return valley(params)

    limited.calls = 0
    result = tune(limited, SPACE, n_trials=30, seed=3)
    assert result.failures.keys() == {"out of memory", "said that it failed"}
    infeasible = [n for n, kind in result.failure_kinds.items() if kind == "infeasible"]
    assert infeasible == result.failures["out of memory"]
    assert [n for n, kind in result.failure_kinds.items() if kind == "transient"] == [3]
    assert sum(number >= 10 for number in infeasible) <= 8
    assert 0.0 < result.x["x"] <= 0.5
    assert result.x["kind"] == "good"


def test_saying_so_needs_no_permission():
    def failing(params):
        raise Failed("bad") if params["x"] > 0 else ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tune(failing, SPACE, catch=(), seed=0)


def test_an_interrupted_trial_did_nothing_wrong():
    storage = optuna.storages.InMemoryStorage()

    def interrupted(params):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(interrupted, SPACE, storage=storage, study_name="s")
    (trial,) = optuna.load_study(study_name="s", storage=storage).trials
    assert trial.user_attrs == {"failure": "KeyboardInterrupt", FAILED: "transient"}


def test_a_study_is_taken_up_again_to_the_total(tmp_path):
    where = {"storage": f"sqlite:///{tmp_path}/x.db", "study_name": "s", "seed": 0}
    first = tune(valley, SPACE, n_trials=4, **where)
    second = tune(valley, SPACE, n_trials=7, **where)
    assert second.x_iters[:4] == first.x_iters
    assert len(second.x_iters) == 7
    assert len({trial.number for trial in second.study.trials}) == 7


def test_an_exception_that_is_not_caught_ends_the_campaign_and_fails_its_trial():
    study = optuna.storages.InMemoryStorage()
    with pytest.raises(KeyError):
        tune(lambda p: p["typo"], SPACE, storage=study, study_name="s", catch=(OSError,))
    trials = optuna.load_study(study_name="s", storage=study).trials
    assert [trial.state for trial in trials] == [TrialState.FAIL]
    assert trials[0].user_attrs == {"failure": "KeyError"}


def test_a_campaign_in_which_everything_fails_says_why():
    with pytest.raises(RuntimeError, match="None of the 3 trials has a usable value: KeyError"):
        tune(lambda p: p["typo"], SPACE, n_trials=3)


def test_a_function_that_raises_from_the_start_is_stopped_after_five_trials():
    seen = []

    def typo(params):
        seen.append(params)
        return params["typo"]

    with pytest.raises(RuntimeError, match=r"first 5 trials failed.*KeyError.*keep_going") as said:
        tune(typo, SPACE, n_trials=9)
    assert len(seen) == 5
    assert isinstance(said.value.__cause__, KeyError)
    with pytest.raises(RuntimeError, match="None of the 9 trials has a usable value: KeyError"):
        tune(typo, SPACE, n_trials=9, keep_going=True)
    with pytest.raises(RuntimeError, match="first 5 trials failed"):
        tune_front(typo, SPACE, {"a": "minimize", "b": "minimize"}, n_trials=9)


def test_what_says_where_not_to_search_goes_on_after_five_trials(tmp_path):
    def told(kind):
        trials = iter(range(20))

        def objective(params):
            if next(trials) < 6:
                raise Failed(kind)
            return params["x"] ** 2

        return objective

    assert len(tune(told("infeasible"), SPACE, n_trials=8, seed=0).x_iters) == 8
    with pytest.raises(RuntimeError, match="first 5 trials failed"):
        tune(told("bad"), SPACE, n_trials=8, seed=0)
    where = {"storage": f"sqlite:///{tmp_path}/x.db", "study_name": "s"}
    tune(valley, SPACE, n_trials=2, **where)
    assert len(tune(told("bad"), SPACE, n_trials=9, **where).x_iters) == 9


def test_a_campaign_without_a_value_but_bounds_says_so():
    with pytest.raises(RuntimeError, match="3 trials has a usable value: all results are bounds"):
        tune(lambda p: Measured(0.5, censored=True), SPACE, n_trials=3)


def test_wrong_requests_are_value_errors():
    for wrong in (
        {"space": {}},
        {"space": {"x": "float(1, 0)"}},
        {"space": SPACE, "n_trials": 0},
        {"space": SPACE, "direction": "up"},
        {"space": SPACE, "storage": "sqlite:////nowhere/at/all.db"},
    ):
        with pytest.raises(RefusalError):
            tune(valley, **wrong)
    assert issubclass(RefusalError, ValueError)


def test_a_callback_sees_every_trial_and_the_space_is_not_changed():
    seen = []
    space = {"x": FloatDistribution(0, 1)}
    tune(
        lambda p: p["x"],
        space,
        n_trials=5,
        callback=lambda study, trial: seen.append((trial.number, trial.value)),
    )
    assert [number for number, _ in seen] == [0, 1, 2, 3, 4]
    assert space == {"x": FloatDistribution(0, 1)}


def test_a_callback_ends_the_campaign_by_true():
    result = tune(
        valley, SPACE, n_trials=9, callback=lambda study, trial: np.bool_(trial.number == 4)
    )
    assert len(result.x_iters) == 5


def test_a_callback_may_end_the_campaign_as_in_optuna():
    def enough(study, trial):
        if trial.number == 3:
            study.stop()

    result = tune(valley, SPACE, n_trials=9, callback=enough)
    assert len(result.x_iters) == 4
    with pytest.raises(RuntimeError, match="supposed to be invoked inside"):
        result.study.stop()


def test_what_was_executed_never_costs_a_result(tmp_path):
    said = [np.array([0.25]), np.float32(0.25), np.array([0.1, 0.2]), object(), 0.25, {"a": 1}]
    storage = f"sqlite:///{tmp_path}/x.db"
    told = iter(said)
    result = tune(
        lambda p: Measured(p["x"], executed={"x": next(told)}),
        {"x": "float(0, 1)"},
        n_trials=len(said),
        storage=storage,
    )
    assert np.isfinite(result.func_vals).all()
    rows = result.explanation.rows
    assert [row.executed["x"] for row in rows if not row.refused] == [0.25, 0.25, 0.25]
    assert all("a finite number is needed" in row.refused[0] for row in rows if row.refused)


def test_a_noise_in_the_place_of_what_was_run_is_refused():
    with pytest.raises(ValueError, match=r"got 0.1; the noise is standard_error="):
        Measured(1.0, 0.1)


def test_an_objective_may_say_what_it_measured():
    def measured(params):
        run = np.float32(min(params["x"] + 0.5, 2.0))  # half a unit off
        return Measured(float((run - 1) ** 2), {"x": run}, np.float64(0.1))

    result = tune(measured, {"x": "float(-2, 2)"}, n_trials=14, seed=0, n_startup_trials=5)
    for trial in result.study.trials:
        assert trial.user_attrs[EXECUTED] == {"x": pytest.approx(min(trial.params["x"] + 0.5, 2.0))}
        assert trial.user_attrs[NOISE] == pytest.approx(0.01)
    assert result.explanation.model_optimum["x"] == pytest.approx(1.0, abs=0.1)
    nan = tune(
        lambda p: Measured(math.nan if p["x"] > 0 else 1.0, {"x": 0.5}),
        {"x": "float(-2, 2)"},
        n_trials=4,
        seed=0,
    )
    failed = [t for t in nan.study.trials if t.state == TrialState.FAIL]
    assert failed
    assert failed[0].user_attrs[EXECUTED] == {"x": 0.5}


def test_a_value_with_an_infinite_standard_error_says_nothing():
    def loss(params):
        worthless = abs(params["x"] - 0.8) < 0.05
        return Measured(-9.0 if worthless else (params["x"] - 0.3) ** 2, None, math.inf * worthless)

    given = [{"x": x} for x in (0.79, 0.8, 0.81)]
    result = tune(loss, {"x": "float(0, 1)"}, n_trials=14, seed=0, x0=given)
    assert [t.state.name for t in result.study.trials[:3]] == ["FAIL"] * 3
    assert abs(result.x["x"] - 0.3) < 0.05


@pytest.mark.parametrize("wrong", [0.0, math.nan, None])
def test_a_standard_error_that_is_none_is_not_used(wrong):
    result = tune(lambda p: Measured(p["x"], None, wrong), {"x": "float(0, 1)"}, n_trials=2, seed=0)
    assert all(NOISE not in trial.user_attrs for trial in result.study.trials)


@pytest.mark.parametrize("error", [0.1, [0.1], [0.1, 0.2, 0.3]])
def test_each_of_several_values_needs_a_standard_error(error):
    with pytest.raises(RefusalError, match="one for each of the 2 values, got"):
        Measured(values=(1.0, 2.0), standard_error=error)
    if isinstance(error, list):
        with pytest.raises(RefusalError, match="a number, got"):
            Measured(1.0, standard_error=error)
    assert Measured(values=(1.0, 2.0), standard_error=np.array([0.1, 0.2])).value is None


def test_a_standard_error_is_not_negative():
    for given in (
        {"value": 1.0, "standard_error": -1.0},
        {"values": (1, 2), "standard_error": (1, -1)},
    ):
        with pytest.raises(RefusalError, match="A standard error is not negative, got"):
            Measured(**given)


def test_an_empty_recipe_is_no_default():
    with pytest.raises(RefusalError, match="Cannot read the recipe ''"):
        tune(lambda p: 0.0, SPACE, recipe="")


def test_directions_have_names():
    with pytest.raises(RefusalError, match="directions has one for each name, as in"):
        tune_front(lambda p: (1.0, 2.0), SPACE, ["minimize", "minimize"])


@pytest.mark.long
@pytest.mark.parametrize("wrong", [100.0, 1000.0])
def test_one_result_in_eight_is_wrong_where_inputs_move(wrong):
    """A sensor that sticks at the end of its range, and one far beyond; the maximum is 90."""

    def yields(heat, speed):
        return max(0.0, 90.0 - 4.0 * ((heat - 120.0) / 8.0) ** 2 - 8.0 * (speed - 2.5) ** 2)

    rng = np.random.default_rng(0)

    def measured(params):
        heat = np.clip(params["heat"] + rng.uniform(-3.0, 3.0), 80.0, 160.0)
        value = yields(heat, params["speed"]) + rng.normal(0.0, 0.4)
        return Measured(wrong if rng.random() < 0.12 else value, executed={"heat": heat})

    space = {"heat": "float(80, 160)", "speed": "float(0.5, 5)"}
    said = {"threshold": 80.0, "tolerance": {"heat": 3.0}}
    found = tune(measured, space, n_trials=30, direction="maximize", seed=1, **said)
    certified = found.explanation.certified
    heat, speed, within = *certified.params.values(), certified.within["heat"]
    assert within > 2.0
    assert min(yields(heat + within, speed), yields(heat - within, speed)) > 79.0


def test_tolerances_and_their_certificate(tmp_path):
    said = {"threshold": 0.5, "tolerance": {"x": 0.2}}
    result = tune(valley, SPACE, n_trials=20, seed=0, n_startup_trials=8, **said)
    certified = result.explanation.certified
    assert certified.params == result.x
    assert 0.2 < certified.within["x"] <= math.sqrt(0.5)
    assert stored_aim(result.study).threshold == 0.5
    # Taken up again without a word about it.
    more = tune(
        valley,
        SPACE,
        n_trials=21,
        storage=result.study._storage,
        study_name=result.study.study_name,
    )
    assert more.explanation.certified.aim == certified.aim
    # With another threshold, which is said without the tolerances.
    again = {"storage": result.study._storage, "study_name": result.study.study_name}
    stricter = tune(valley, SPACE, n_trials=22, threshold=0.25, **again)
    assert stricter.explanation.certified.aim == RobustObjective(
        threshold=0.25, tolerance={"x": 0.2}
    )
    assert stored_aim(result.study) == stricter.explanation.certified.aim
    with pytest.raises(RefusalError, match="no parameter 'z'"):
        tune(valley, SPACE, threshold=0.5, tolerance={"z": 1.0})
    with pytest.raises(RefusalError, match="Which parameters may be moved"):
        tune(valley, SPACE, threshold=0.5)
    with pytest.raises(RefusalError, match="Which parameters may be moved"):
        tune(valley, SPACE, threshold=0.5, storage=f"sqlite:///{tmp_path}/new.db")
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_is_recorded_and_kept():
    result = tune(valley, SPACE, n_trials=4, seed=0, recipe="gp_ucb( )", n_startup_trials=2)
    assert result.study.user_attrs[RECIPE] == "gp_ucb()"
    again = {"storage": result.study._storage, "study_name": result.study.study_name}
    more = tune(valley, SPACE, n_trials=6, n_startup_trials=2, **again)
    assert more.explanation.rows == explain(more.study, recipe=recipes.gp_ucb()).rows
    other = tune(valley, SPACE, n_trials=7, recipe="robust", **again)
    assert other.explanation.rows == explain(other.study, recipe=robust()).rows
    with pytest.raises(RefusalError, match="no recipe 'gp'"):
        tune(valley, SPACE, recipe="gp")
    with pytest.raises(RefusalError, match=r"rgp_ucb\(budget=-1\) cannot be used"):
        tune(valley, SPACE, recipe="rgp_ucb(budget=-1)", study_name="new", storage=again["storage"])
    assert len(optuna.get_all_study_names(again["storage"])) == 1


def test_a_function_makes_a_grid():
    def phased(box):
        return Learner(box.grid(5), recipes.rgp_pe(prior=Prior(RBF(0.5), 0.01), budget=0.1))

    result = tune(valley, SPACE, n_trials=12, recipe=phased)
    assert {round(10.0 * x["x"]) / 10.0 == x["x"] for x in result.x_iters} == {True}
    assert result.explanation.left_out == {}
    assert result.study.user_attrs[RECIPE] == "phased(...)"


def test_a_result_prints_what_show_prints():
    result = tune(lambda p: p["x"] ** 2, {"x": "float(-1, 1)"}, n_trials=6, seed=0)
    assert str(result) == Summary.of(result.study).text()
    assert repr(result) == str(result)
    assert "recommended    trial" in result._repr_html_()


def test_of_repeats_impossible_values_count_as_failed():
    seen: list[float] = []

    def value(params):
        seen.append(params["x"])
        trial = len(set(seen))
        if trial in (2, 3) or seen.count(params["x"]) == 1:  # two whole trials, and each first run
            return 1.7
        return 0.5 - 0.1 * params["x"] ** 2

    result = tune(
        value, {"x": "float(-1, 1)"}, n_trials=8, seed=0, direction="maximize", repeats=8,
        possible=(0.0, 1.0),
    )  # fmt: skip
    impossible = set(result.explanation.impossible)
    assert impossible == {1, 2}
    assert all(0.3 < row.value <= 0.5 for row in result.explanation.rows)
    assert 8 in [seen.count(x) for x in set(seen)]  # none is worse than what is impossible


def test_repeats_that_are_inf_and_minus_inf_fail_with_a_reason():
    infinite = iter([math.inf, -math.inf, 0.5, 0.6, 0.5, 0.6])
    result = tune(lambda params: next(infinite), SPACE, n_trials=3, seed=0, repeats=2)
    assert [row.value for row in result.explanation.rows] == [0.55, 0.55]
    assert "no median" in str(result)
