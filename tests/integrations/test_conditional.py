"""Parameters that only some trials have are modelled where a trial has them."""

from __future__ import annotations

import logging

import numpy as np
import optuna
import pytest
from numpy.testing import assert_array_equal
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import TrialState

from stoic import Learner, recipes
from stoic.domains import Box, Lattice, Tree
from stoic.integrations.optuna import StoicSampler, confirm, explain
from stoic.integrations.optuna.confirming import standing
from stoic.integrations.optuna.encoding import Encoding
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.unmodelled import Parameters, branches_of, modelled_space
from stoic.integrations.optuna.warm_start import learned as learned_from
from stoic.refusal import RefusalError
from stoic.tuning.views.report import Report
from stoic.tuning.views.summary import Summary
from studies import add

UNIT = FloatDistribution(0.0, 1.0)
OWN = {"a": {"a_x", "a_y"}, "b": {"b_x", "b_kind"}, "c": {"c_n"}}


def branches(trial):
    """0 at b_x = 0.7 with kind q; at best 0.2 in a, 0.3 in c; b_kind has a parameter of its own."""
    method = trial.suggest_categorical("method", ["a", "b", "c"])
    if method == "a":
        x, y = trial.suggest_float("a_x", 0.0, 1.0), trial.suggest_float("a_y", 0.0, 1.0)
        return 0.2 + (x - 0.2) ** 2 + (y - 0.8) ** 2
    if method == "b":
        value = (trial.suggest_float("b_x", 0.0, 1.0) - 0.7) ** 2
        if trial.suggest_categorical("b_kind", ["p", "q"]) == "q":
            return value + (trial.suggest_float("q_z", 0.0, 1.0) - 0.4) ** 2
        return value + 0.5
    return 0.3 + (trial.suggest_int("c_n", 1, 9) - 3) ** 2 / 50.0


def names_of(params):
    """Names that a setting of ``branches`` has."""
    return {"method"} | OWN[params["method"]] | ({"q_z"} if params.get("b_kind") == "q" else set())


class Counting(RandomSampler):
    """Random sampler that records which parameters it was asked for, by trial."""

    def __init__(self):
        super().__init__(seed=0)
        self.drawn = []

    def sample_independent(self, study, trial, param_name, param_distribution):
        self.drawn.append((trial.number, param_name))
        return super().sample_independent(study, trial, param_name, param_distribution)


def searched_study(n=40, objective=branches, **options):
    study = optuna.create_study(sampler=StoicSampler(seed=0, **options))
    study.optimize(objective, n_trials=n)
    return study


@pytest.fixture(scope="module")
def study():
    return searched_study(independent_sampler=Counting())


def again(study, **options):
    """Another study with the same trials."""
    other = optuna.create_study(sampler=StoicSampler(seed=0, **options))
    other.add_trials(study.trials)
    return other


def drawn_once(independent):
    drawn = [name for _, name in independent.drawn]
    return len(drawn) == len(set(drawn))


# The rule


def learned(space, settings):
    return Encoding(space).learned(settings)


def test_a_rule_is_learned_from_choices_and_integers():
    space = {
        "kernel": CategoricalDistribution(["rbf", "poly", "linear"]),
        "degree": IntDistribution(2, 5),
        "layers": IntDistribution(1, 9),
        "width": UNIT,
    }
    encoding = learned(
        space,
        [
            {"kernel": "rbf", "layers": 1},
            {"kernel": "poly", "degree": 3, "layers": 5, "width": 0.2},
            {"kernel": "linear", "layers": 2},
            {"kernel": "rbf", "layers": 6, "width": 0.9},
            {"kernel": "poly", "degree": 3, "layers": 1},
        ],
    )
    for kernel in ("rbf", "poly", "linear"):
        for layers in (1, 2, 4, 9):
            point = encoding.encode({"kernel": kernel, "layers": layers, "degree": 5, "width": 0.1})
            expected = {"kernel", "layers"} | ({"degree"} if kernel == "poly" else set())
            assert encoding.decode(point).keys() == expected | ({"width"} if layers > 3 else set())


def test_settings_that_lack_a_parameter_are_at_one_place():
    space = {"kernel": CategoricalDistribution(["rbf", "poly"]), "degree": UNIT}
    settings = [{"kernel": "poly", "degree": 0.9}, {"kernel": "rbf"}]
    encoding = learned(space, settings)
    lacking = encoding.encode({"kernel": "rbf"})
    np.testing.assert_array_equal(lacking, encoding.encode({"kernel": "rbf", "degree": 0.1}))
    for setting in settings:
        assert encoding.decode(encoding.encode(setting)) == setting
    assert encoding.box.contains(lacking[None])[0]


def test_a_parameter_without_a_rule_is_searched_in_all_settings():
    rng = np.random.default_rng(0)
    settings = [{"x": x} | ({"y": 0.3} if k % 2 else {}) for k, x in enumerate(rng.random(20))]
    encoding = learned({"x": UNIT, "y": UNIT}, settings)
    assert all(encoding.explains(setting) for setting in settings)
    assert encoding.decode(np.array([0.2, 0.8])) == {"x": 0.2, "y": 0.8}


def test_the_rule_does_not_depend_on_how_often_a_setting_was_tried():
    rng = np.random.default_rng(1)
    kinds = [(k, {"k": k} | ({f"x{k}": 0.5} if k != "d" else {})) for k in "abcd"]
    space = {"k": CategoricalDistribution("abcd"), "xa": UNIT, "xb": UNIT, "xc": UNIT}
    points = rng.random((50, 7))
    masks = []
    for counts in rng.integers(1, 9, size=(3, 4)):
        settings = [s for (_, s), n in zip(kinds, counts, strict=True) for _ in range(n)]
        masks.append(learned(space, settings).tree.has(points))
    for mask in masks[1:]:
        np.testing.assert_array_equal(mask, masks[0])


class Hill:
    """Highest at (1, 0.25) with the coordinate, and lower without it."""

    def __call__(self, x):
        return -np.where(x[:, 0] > 0.5, (x[:, 1] - 0.25) ** 2, 0.3)

    def with_gradient(self, x):
        slope = np.zeros_like(x)
        slope[:, 1] = np.where(x[:, 0] > 0.5, -2.0 * (x[:, 1] - 0.25), 5.0)
        return self(x), slope


def test_a_box_is_searched_at_points_of_the_rule():
    x = np.array([[0.0, 0.5], [1.0, 0.2]])
    tree = Tree.learned(
        x, np.array([[True, False], [True, True]]), np.array([True, False]), np.array([0.0, 0.5])
    )
    box = Box(
        [0.0, 0.0], [1.0, 1.0], (Lattice(np.array([0]), np.array([[0.0], [1.0]])),), tree=tree
    )
    points = box.spread(64, np.random.default_rng(0))
    assert (points[points[:, 0] == 0.0, 1] == 0.5).all()
    assert len(np.unique(points[points[:, 0] == 1.0, 1])) > 20
    np.testing.assert_allclose(
        box.maximise(Hill(), np.random.default_rng(0), x[:1]).x, [1.0, 0.25], atol=1e-6
    )
    without = box.having({0: 0.0}).maximise(Hill(), np.random.default_rng(0), x[:1]).x
    np.testing.assert_array_equal(without, [0.0, 0.5])
    assert len(box.grid(5)) == 1 + 5


# Studies


def test_the_best_branch_is_found_and_refined(study):
    known = explain(study)
    best = known.recommended
    assert best.params.keys() == names_of(best.params) == {"method", "b_x", "b_kind", "q_z"}
    assert best.value < 0.01  # the best of the other branches is 0.2; of 40 random trials 0.05
    assert known.model_optimum.keys() == names_of(known.model_optimum)
    assert {trial.params["method"] for trial in study.trials} == {"a", "b", "c"}


def test_each_parameter_is_drawn_independently_once(study):
    independent = study.sampler._independent
    assert drawn_once(independent)
    assert {"a_x", "b_x", "c_n", "q_z"} <= {name for _, name in independent.drawn}
    for number, name in independent.drawn:
        assert all(name not in trial.params for trial in study.trials[:number])


def test_all_complete_trials_are_explained(study):
    known = explain(study)
    assert [row.number for row in known.rows] == list(range(40))
    assert known.unmodelled == ()
    assert set(known.conditional) == {"a_x", "a_y", "b_x", "b_kind", "q_z", "c_n"}
    mean, sd = known.predict([known.recommended.params, {"method": "a", "a_x": 0.2, "a_y": 0.8}])
    assert mean[0] < 0.05 < mean[1]
    assert (sd > 0.0).all()


def test_a_setting_is_predicted_with_the_parameters_that_it_has_alone(study):
    known, whole = explain(study), {"method": "a", "a_x": 0.1, "a_y": 0.2}
    assert known.predict(whole)[0][0] == pytest.approx(0.57, abs=0.1)
    for wrong, said in (
        ({"method": "a"}, "and a_x has none"),
        ({"b_x": 0.3}, "and method has none"),
        ({**whole, "c_n": 3}, "has no c_n: leave it out"),
    ):
        with pytest.raises(RefusalError, match=said):
            known.predict(wrong)


def test_given_values_of_conditional_parameters(study):
    number = next(t.number for t in study.trials if t.params["method"] == "c")
    n = study.trials[number].params["c_n"]
    known = explain(study, fixed={"c_n": n})
    assert known.recommended.params == {"method": "c", "c_n": n}
    # The best of all has no b_x: then the best that was run with it is the answer
    worst = max((t for t in study.trials if "b_x" in t.params), key=lambda t: t.value)
    known = explain(study, fixed={"b_x": worst.params["b_x"]})
    assert known.recommended.params["b_x"] == worst.params["b_x"]
    tried = {t.params.get("c_n") for t in study.trials}
    untried = next(n for n in range(1, 10) if n not in tried)
    whole = explain(study, fixed={"method": "c", "c_n": untried})
    assert whole.untried == {"method": "c", "c_n": untried}
    # A value brings the choices that it needs, as in the best trial that has the parameter
    alone = explain(study, fixed={"c_n": untried})
    assert alone.untried == whole.untried
    assert alone.model_optimum == whole.model_optimum == {"method": "c", "c_n": untried}
    assert alone.model_optimum_mean == whole.model_optimum_mean
    with pytest.raises(RefusalError, match="no parameter 'd'"):
        explain(study, fixed={"d": 1})


def test_reports_show_a_conditional_study(study, tmp_path):
    text = Summary.of(study).text()
    assert "conditional    modelled in the trials that have them: a_x" in text
    assert "not modelled" not in text
    assert Summary.of(study).record()["conditional"]
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    report = Report.of(study)
    assert report.space.keys() == explain(study).recommended.params.keys()
    report.write(tmp_path / "report.html")
    frame = explain(study).to_frame()
    assert frame["params_c_n"].isna().sum() == sum("c_n" not in t.params for t in study.trials)


def test_an_outlier_in_a_branch_is_distrusted():
    study = optuna.create_study(sampler=RandomSampler(seed=0))  # of another sampler
    study.optimize(lambda t: branches(t) - 3.0 * (t.number in (6, 14, 22)), n_trials=60)
    known = explain(study)
    assert len(known.rows) == 60
    assert not known.unmodelled
    assert known.model_optimum.keys() == names_of(known.model_optimum)
    assert {6, 14, 22} <= {row.number for row in known.rows if row.trust < 0.5}
    assert known.recommended.number not in (6, 14, 22)
    assert known.recommended_mean > -0.5


def test_a_branch_where_everything_fails_is_left():
    def objective(trial):
        value = branches(trial)
        return float("nan") if trial.params["method"] == "b" else value

    study = optuna.create_study(sampler=StoicSampler(seed=1))
    study.optimize(objective, n_trials=26)
    failed = [t for t in study.trials if t.state == TrialState.FAIL]
    assert {"b_x", "b_kind"} <= modelled_space(study.trials).keys()
    assert failed
    assert sum(t.number >= 15 for t in failed) <= 2  # of 11, and a third of them at random
    assert explain(study).recommended.params["method"] == "a"


def test_a_branch_that_was_never_tried_is_tried():
    space = {"method": CategoricalDistribution(["a", "b", "c"]), "c_n": IntDistribution(1, 9)}
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=0))
    for n in (2, 5, 8):
        add(study, {"method": "c", "c_n": n}, space, 0.3 + (n - 3) ** 2 / 50.0)
    study.optimize(branches, n_trials=12)
    assert {trial.params["method"] for trial in study.trials} == {"a", "b", "c"}


def test_enqueued_and_fixed_parameters():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=4))
    study.optimize(branches, n_trials=12)
    study.enqueue_trial({"method": "c"})
    study.enqueue_trial({"b_x": 0.125})
    study.enqueue_trial({"method": "b", "b_kind": "q", "q_z": 0.5})
    study.optimize(branches, n_trials=3)
    first, second, third = study.trials[12:]
    assert first.params["method"] == "c"
    assert (second.params["method"], second.params["b_x"]) == ("b", 0.125)
    assert (third.params["b_kind"], third.params["q_z"]) == ("q", 0.5)
    study.sampler = PartialFixedSampler({"method": "a"}, study.sampler)
    study.optimize(branches, n_trials=3)
    assert [set(trial.params) for trial in study.trials[15:]] == [{"method"} | OWN["a"]] * 3


def test_the_design_has_the_branch_of_what_was_enqueued():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=20))
    study.optimize(branches, n_trials=12)
    for given in ({"q_z": 0.5}, {"a_x": 0.5}, {"c_n": 4}):
        study.enqueue_trial(given)
        study.optimize(branches, n_trials=1)
        assert given.items() <= study.trials[-1].params.items()
    study.enqueue_trial({"method": "c", "q_z": 0.5})  # no setting has both
    study.optimize(branches, n_trials=1)
    assert study.trials[-1].params["method"] == "c"


def one_name(trial):
    """At best 0.5 by b, whose range of lr is another one, and 0 at lr = 0.3 by a."""
    if trial.suggest_categorical("by", ["a", "b"]) == "a":
        return (trial.suggest_float("lr", 0.0, 1.0) - 0.3) ** 2
    return (trial.suggest_float("lr", 10.0, 11.0) - 10.7) ** 2 + 0.5


@pytest.mark.parametrize("seed", [0, 1])
def test_a_range_that_depends_on_a_choice_is_that_of_the_branch(seed):
    independent = Counting()
    study = optuna.create_study(sampler=StoicSampler(seed=seed, independent_sampler=independent))
    study.optimize(one_name, n_trials=30)
    known = explain(study)
    assert known.recommended.params["by"] == "a"
    assert known.recommended.value < 1e-5  # with one range for both 5e-3 and 3e-5 after 40
    assert sum(trial.params["by"] == "b" for trial in study.trials[10:]) <= 10
    assert not [number for number, _ in independent.drawn if number >= 10]
    synced = SyncedLearner(study, modelled_space(study.trials), recipes.robust())
    synced.follow(study.trials)
    encoding = synced.encoding
    assert encoding.branches["lr"].by == "by"
    for trial in study.trials:
        x = encoding.encode(trial.params)
        assert 0.0 <= x.min() <= x.max() <= 1.0
        found = encoding.decode(x)
        assert found == {"by": trial.params["by"], "lr": pytest.approx(trial.params["lr"])}
    given = explain(study, fixed={"lr": 10.25})
    assert given.untried["by"] == "b"
    mean, _ = known.predict([{"by": "a", "lr": 0.3}, {"by": "b", "lr": 10.7}])
    assert mean == pytest.approx([0.0, 0.5], abs=0.05)
    assert set(known.importances()) == {"by", "lr"}
    assert sum(known.importances().values()) > 0.5
    study.enqueue_trial({"lr": 10.5})
    study.optimize(one_name, n_trials=1)
    assert study.trials[-1].params == {"by": "b", "lr": 10.5}
    with pytest.raises(RefusalError, match=r"10.5 where by is a: it is float\(0, 1\)"):
        known.predict({"by": "a", "lr": 10.5})
    with pytest.raises(RefusalError, match=r"lr cannot be 0.5 where by is b"):
        explain(study, fixed={"by": "b", "lr": 0.5})


def test_a_report_shows_each_number_in_the_range_of_its_branch(tmp_path):
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    report = Report.of(searched_study(20, one_name))
    report.write(tmp_path / "report.html")  # a prediction out of a branch is refused


def ranges_of(by, **said):
    """A study in which ``by`` says the range, of trials that come in turns."""
    study = optuna.create_study()
    kinds = CategoricalDistribution(sorted(by))
    for k in range(24):
        choice = sorted(by)[k % len(by)]
        space = {"by": kinds, "lr": by[choice], **{n: of(k) for n, of in said.items()}}
        params = {"by": choice, "lr": by[choice].low}
        params |= {name: space[name].choices[k] for name in said}
        add(study, params, space, 0.1 * k)
    return study


def test_the_choice_with_the_fewest_values_decides():
    by = {"a": UNIT, "b": FloatDistribution(10.0, 11.0)}
    study = ranges_of(by, a_name=lambda k: CategoricalDistribution(list(range(100))))
    found = branches_of(study.trials)
    assert found["lr"].by == "by"
    assert found["lr"].ranges == {0: by["a"], 1: by["b"]}
    # A narrower space has no branches in it
    space = modelled_space(study.trials) | {"lr": FloatDistribution(0.2, 0.5)}
    assert Parameters.of(study.trials).branches(space) == {}


def test_a_branch_may_be_widened_and_may_have_one_value():
    by = {"a": UNIT, "b": FloatDistribution(10.0, 10.0)}
    study = ranges_of(by)
    wide = {"by": CategoricalDistribution(["a", "b"]), "lr": FloatDistribution(0.0, 2.0)}
    for _ in range(3):
        add(study, {"by": "a", "lr": 1.5}, wide, 1.0)
        add(study, {"by": "b", "lr": 10.0}, wide | {"lr": by["b"]}, 1.0)
    found = branches_of(study.trials)
    assert found["lr"].ranges == {0: wide["lr"], 1: by["b"]}
    encoding = Encoding(modelled_space(study.trials), branches=found)
    for trial in study.trials:
        assert encoding.decode(encoding.encode(trial.params)) == trial.params


def test_every_integer_of_a_branch_can_be_chosen():
    by = {"a": IntDistribution(1, 8, log=True), "b": IntDistribution(32, 512, log=True)}
    study = ranges_of(by)
    encoding = Encoding(modelled_space(study.trials), branches=branches_of(study.trials))
    for choice, distribution in by.items():
        for value in range(distribution.low, distribution.high + 1):
            params = {"by": choice, "lr": value}
            x = encoding.encode(params)
            assert encoding.decode(encoding.box.snap(x[None])[0]) == params


def test_what_is_given_locks_no_branch():
    """x is in two of three branches, and at 0.8 better in the one that the design hardly had."""

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        if kind == "c":
            return 3.0
        return {"a": 2.0, "b": 0.5}[kind] + 0.1 * (trial.suggest_float("x", 0.0, 1.0) - 0.8) ** 2

    study = searched_study(12, objective)
    for _ in range(12):
        study.enqueue_trial({"x": 0.8})
    study.optimize(objective, n_trials=12)
    later = [trial.params for trial in study.trials[12:]]
    assert {params.get("x") for params in later} == {0.8}
    assert sum(params["kind"] == "b" for params in later) >= 6


def test_a_range_that_changed_on_the_way_depends_on_no_choice():
    wide = {"by": CategoricalDistribution(["a", "b"]), "lr": FloatDistribution(0.0, 2.0)}
    study = optuna.create_study()
    for k in range(20):
        space = wide | ({} if k >= 10 else {"lr": UNIT})
        add(study, {"by": "ab"[k >= 10], "lr": 0.05 * k}, space, 0.1 * k)
    assert Parameters.of(study.trials).branches(wide) == {}
    for k, by in enumerate("aabb"):
        add(study, {"by": by, "lr": 0.5}, wide | {"lr": UNIT} if k % 2 else wide, 0.1 * k)
    assert Parameters.of(study.trials).branches(wide) == {}


def test_changing_steps_stay_out_of_the_model_and_are_said(caplog):
    caplog.set_level(logging.INFO)

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.suggest_categorical("more", [True, False]):
            trial.suggest_float("y", 0.0, 1.0)
            trial.suggest_int("units", 1, 9, step=1 + trial.number % 2)
        return (x - 0.3) ** 2

    study = searched_study(20, objective)
    assert modelled_space(study.trials).keys() == {"x", "more", "y"}
    (sentence,) = explain(study).unmodelled
    assert "have units, with the same step" in sentence
    assert {sentence, "Modelled where a trial has them: y."} <= set(caplog.messages)
    assert abs(explain(study).recommended.params["x"] - 0.3) < 0.05


def test_where_inputs_move_what_all_trials_share_is_modelled():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return x + (trial.suggest_float("y", 0.0, 1.0) if trial.number % 2 else 0.5)

    study = searched_study(14, objective, tolerance={"x": 0.1}, radius=1.0)
    known = explain(study)
    assert known.certified is not None
    assert set(known.model_optimum) == {"x"}
    assert "have y, with the same step" in known.unmodelled[0]


def test_new_samplers_on_one_storage_go_on(tmp_path):
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
    storage = optuna.storages.JournalStorage(backend)
    optuna.create_study(storage=storage, study_name="s")
    independent = Counting()
    for seed in range(30):
        sampler = StoicSampler(seed=seed, n_startup_trials=8, independent_sampler=independent)
        resumed = optuna.load_study(storage=storage, study_name="s", sampler=sampler)
        resumed.optimize(branches, n_trials=1)
    assert drawn_once(independent)
    assert explain(resumed).recommended.value < 0.1


def test_pending_trials_of_other_workers_count(study):
    study = again(study)
    trials = [study.ask() for _ in range(3)]
    values = [branches(trial) for trial in trials]  # all suggested before any ends
    settings = [tuple(sorted(trial.params.items())) for trial in trials]
    assert len(set(settings)) == 3
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, value)
    assert [row.number for row in explain(study).rows] == list(range(43))


def test_confirmation_of_a_conditional_study(study):
    rng = np.random.default_rng(0)
    outcome = confirm(again(study), lambda t: branches(t) + 0.02 * rng.standard_normal(), 4)
    assert outcome.measurements >= 1
    assert outcome.recommended.params.keys() == names_of(outcome.recommended.params)


@pytest.mark.parametrize(
    "recipe", [recipes.gp_ucb(), recipes.loo_gp_ucb(), recipes.fc_rcgp_ucb()], ids=str
)
def test_other_recipes_have_the_same_rule(recipe):
    study = searched_study(16, recipe=recipe)
    assert [row.number for row in explain(study).rows] == list(range(16))
    for trial in study.trials:
        assert trial.params.keys() == names_of(trial.params)


def test_a_grid_has_each_setting_once():
    def recipe(box):
        return Learner(box.grid(4), recipes.gp_ucb())

    study = searched_study(16, recipe=recipe, n_startup_trials=4)
    synced = study.sampler._synced
    settings = [synced.encoding.decode(x) for x in synced.learner.domain.points]
    assert len(settings) == len({tuple(sorted(each.items())) for each in settings})
    assert all(each.keys() == names_of(each) for each in settings)


def test_failed_trials_without_all_of_their_parameters_do_not_change_the_rule():
    def objective(trial):
        if trial.number % 4 == 3:
            trial.suggest_categorical("method", ["a", "b", "c"])
            raise ValueError("out of memory")
        return branches(trial)

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=30, catch=(ValueError,))
    tree = study.sampler._synced.encoding.tree
    assert not tree.loose.any()
    for trial in study.trials:
        if trial.state == TrialState.COMPLETE:
            assert trial.params.keys() == names_of(trial.params)


def test_a_parameter_that_was_added_on_the_way_depends_on_nothing():
    """Of few trials that lack it, a choice in common is chance."""
    space = {"k": CategoricalDistribution(["a", "b"]), "x": UNIT, "y": UNIT}
    study = optuna.create_study()

    def follows(k, *names):
        params = {"k": k} | dict.fromkeys(names, 0.5)
        add(study, params, {name: space[name] for name in params}, 1.0)
        synced = SyncedLearner(study, space, recipes.robust())
        synced.follow(study.trials)
        tree = synced.encoding.tree
        return {
            choice: set(synced.encoding.decode(tree.fill(synced.encoding.encode(setting)[None])[0]))
            for choice in "ab"
            for setting in [{"k": choice, "x": 0.5, "y": 0.5}]
        }

    both, rule = (
        {"a": {"k", "x", "y"}, "b": {"k", "x", "y"}},
        {"a": {"k", "x", "y"}, "b": {"k", "x"}},
    )
    for _ in range(4):
        follows("b", "x")
    for _ in range(6):
        assert follows("a", "x", "y") == both
    # A later one without it shows that it depends on the choice
    assert follows("b", "x") == rule
    study = optuna.create_study()
    for _ in range(5):
        follows("b", "x")
    assert follows("a", "x", "y") == rule


def test_what_ended_before_a_number_was_added_is_apart():
    """Earlier trials had some value of it; with them in the middle the mean loss is .014."""

    def objective(trial, later):
        x = trial.suggest_float("x", 0.0, 2.0)
        z = trial.suggest_float("z", 0.0, 1.0) if later else 0.9
        n = trial.suggest_int("n", 1, 9) if later else 2
        return (x - 1.5) ** 2 + 4.0 * (z - 0.35) ** 2 + 0.1 * (n - 4) ** 2

    losses = []
    for seed in range(3):
        study = optuna.create_study(sampler=StoicSampler(seed=seed))
        study.optimize(lambda trial: objective(trial, False), n_trials=15)
        study.optimize(lambda trial: objective(trial, True), n_trials=20)
        losses.append(min(trial.value for trial in study.trials[15:]))
    assert np.exp(np.log(losses).mean()) < 3e-4
    learner = study.sampler._synced.learner
    x = learner.observations.x
    assert_array_equal(x[:15, [0, 2]], -0.5)  # n, x, z
    assert not learner.domain.contains(x[:15]).any()
    assert learner.domain.contains(x[15:]).all()
    found = explain(study)
    assert found.recommended.number >= 15
    earlier, later = found.predict([study.trials[0].params, study.trials[-1].params])[0]
    assert earlier == pytest.approx(study.trials[0].value, abs=0.1)
    assert later == pytest.approx(study.trials[-1].value, abs=0.1)
    assert 0.0 <= found.model_optimum["z"] <= 1.0


def test_what_ended_before_a_choice_was_added_has_none():
    space = {"x": UNIT, "k": CategoricalDistribution(["a", "b"])}
    earlier, later = [{"x": u} for u in np.linspace(0.0, 1.0, 6)], [{"x": 0.3, "k": "b"}]
    encoding = Encoding(space).learned(earlier + later)
    assert encoding.encode({"x": 0.3}).tolist() == [0.3, 0.0, 0.0]
    swapped = Encoding({"k": space["k"], "x": UNIT}).learned([{"k": "b"}] * 6 + later)
    assert swapped.encode({"k": "a"}).tolist() == [1.0, 0.0, -0.5]
    assert swapped.decode(swapped.encode({"k": "a"})) == {"k": "a"}
    # One that is lacking later, too, is at the middle, as wherever a setting has none
    mixed = Encoding(space | {"y": UNIT}).learned(
        [*earlier, {"x": 0.2, "y": 0.9}, {"x": 0.25}, {"x": 0.2, "k": "a", "y": 0.1}]
    )
    assert mixed.encode({"x": 0.3}).tolist() == [0.3, 0.0, 0.0, 0.5]


def added_later(*stages, sampler=None):
    """A study of trials at z = None, before it was added, or at a value of it."""
    study, space = optuna.create_study(sampler=sampler), {"x": UNIT, "z": UNIT}
    for k, z in enumerate(stages):
        params = {"x": 0.1 + 0.8 * k / len(stages)} | ({} if z is None else {"z": z})
        add(study, params, {name: space[name] for name in params}, (params["x"] - 0.3) ** 2)
    return study


@pytest.mark.parametrize("earlier", [2, 7])
def test_a_trial_that_lacks_it_again_shows_that_it_was_not_added(earlier):
    """A running study learns what a resumed one does."""
    study = added_later(*[None] * earlier, 0.2, 0.7, 0.5)
    running = SyncedLearner(study, {"x": UNIT, "z": UNIT}, recipes.robust())
    running.follow(study.trials)
    z = running.learner.observations.x[:, 1]
    assert_array_equal(z, [-0.5] * earlier + [0.2, 0.7, 0.5])
    digest = running._method()
    add(study, {"x": 0.9}, {"x": UNIT}, 0.36)
    running.follow(study.trials)
    resumed = SyncedLearner(study, {"x": UNIT, "z": UNIT}, recipes.robust())
    resumed.follow(study.trials)
    assert_array_equal(running.learner.observations.x, resumed.learner.observations.x)
    assert_array_equal(running.learner.observations.x[:earlier, 1], 0.5)
    assert running._method() == resumed._method() != digest


@pytest.mark.parametrize(
    "recipe",
    [
        lambda box: Learner(Box(box.lower, box.upper), recipes.gp_ucb()),
        lambda box: Learner(box.grid(11), recipes.gp_ucb()),
    ],
    ids=["a box", "a grid"],
)
def test_a_domain_of_ones_own_has_earlier_trials_at_the_middle(recipe):
    study = added_later(*[None] * 6, 0.2, 0.7)
    synced = SyncedLearner(study, {"x": UNIT, "z": UNIT}, recipe)
    synced.follow(study.trials)
    assert set(synced.learner.observations.x[:, 1].round(6).tolist()) == {0.5, 0.2, 0.7}
    assert len(synced.learner) + len(synced.left_out) == 8


def test_what_is_learned_from_an_earlier_trial_has_no_value_of_what_was_added():
    study = added_later(*[None] * 7, 0.9, 0.1, 0.5)
    assert "z" not in learned_from(study).best
    # It cannot be measured again as it was
    found = standing(study)
    assert all("z" in candidate.params for candidate in found.outcome().candidates)


def test_what_decides_about_others_stays_at_the_middle():
    space = {
        "a": IntDistribution(1, 4), "k": CategoricalDistribution(["p", "q"]), "v": UNIT,
    }  # fmt: skip
    study = optuna.create_study()
    earlier = [{"k": "p", "v": 0.1 + 0.15 * n} for n in range(6)]
    later = [{"k": k, "a": a} | ({"v": v} if v else {}) for k, a, v in (
        ("q", 1, 0), ("p", 4, 0.2), ("q", 2, 0), ("p", 3, 0.47),
    )]  # fmt: skip
    for n, params in enumerate(earlier + later):
        add(study, params, {name: space[name] for name in params}, n / 10)
    synced = SyncedLearner(study, space, recipes.robust())
    synced.follow(study.trials)
    x = synced.learner._eligible(synced.learner.domain)
    assert len(np.unique(x, axis=0)) == 10
    with pytest.raises(RefusalError, match="give values also"):  # the best trial has no such a
        explain(study, fixed={"v": 0.7})


def test_a_space_without_conditions_has_no_rule():
    study = searched_study(12, lambda t: t.suggest_float("x", 0, 1) + t.suggest_int("n", 1, 3))
    assert study.sampler._synced.encoding.tree is None
    assert explain(study).conditional == ()


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_a_parameter_that_depends_on_a_float_does_not_hold_up_a_search(seed):
    """A result without a chosen parameter answers that choice, which else would be repeated."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y" if x > 0.5 else "z", 0.0, 1.0)
        return (x - 0.7) ** 2 + (y - 0.2) ** 2

    study = optuna.create_study(sampler=StoicSampler(seed=seed))
    study.optimize(objective, n_trials=60)
    assert study.best_value < 1e-4  # 3e-4 to 1e-2 where choices are repeated


@pytest.mark.parametrize("value", [0.3, 7.0, "z", None])
def test_what_was_chosen_counts_where_it_can_be_read(value):
    space = {name: FloatDistribution(0.0, 1.0) for name in "xyz"}
    study = optuna.create_study()
    for x in (0.1, 0.6, 0.2, 0.9):  # by turns: neither was added later
        params = {"x": x, ("y" if x > 0.5 else "z"): 0.5}
        lacking = ({"y", "z"} - params.keys()).pop()
        ranges = {name: space[name] for name in params}
        add(study, params, ranges, x, system={"stoic:chosen": {**params, lacking: value}})
    synced = SyncedLearner(study, space, recipes.robust())
    synced.follow(study.trials)
    expected = [value if value == 0.3 else 0.5] * 4
    lacks = ["z" if trial.params["x"] > 0.5 else "y" for trial in study.trials]
    runs = zip(study.trials, lacks, strict=True)
    assert [synced.run(trial)["xyz".index(name)] for trial, name in runs] == expected
