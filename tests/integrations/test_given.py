"""What is best for parameters that are given."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from stoic import Prior, recipes
from stoic.balancing import build
from stoic.confidence import Theory
from stoic.integrations.optuna import EXECUTED, explain
from stoic.integrations.optuna.objective import RobustObjective
from stoic.kernels import RBF
from stoic.learner import Learner
from stoic.refusal import RefusalError
from stoic.tuning.views.records import best_records
from studies import add

SPACE = {
    "kind": CategoricalDistribution(["a", "b"]),
    "n": IntDistribution(1, 5),
    "x": FloatDistribution(-3.0, 7.0),
}


def value(params):
    """Best at x = n; of kind b 2 worse, and 1 to the left of that."""
    b = params["kind"] == "b"
    return (params["x"] - params["n"] + b) ** 2 + 2.0 * b


def study_of(settings, values=None, space=SPACE, sign=1.0, executed=None):
    study = optuna.create_study(direction="minimize" if sign > 0.0 else "maximize")
    for i, params in enumerate(settings):
        found = value(params) if values is None else values[i]
        add(study, params, space, sign * found, {EXECUTED: executed[i]} if executed else {})
    return study


def drawn(count, seed=0, n=(1, 2, 4, 5)):
    rng = np.random.default_rng(seed)
    return [
        {"kind": "ab"[i % 2], "n": int(rng.choice(n)), "x": float(rng.uniform(-3.0, 7.0))}
        for i in range(count)
    ]


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["minimize", "maximize"])
def test_what_is_recommended_has_what_is_given(sign):
    settings = drawn(60)
    study = study_of(settings, sign=sign)
    overall = explain(study)
    assert overall.recommended.params["kind"] == "a"
    assert overall.fixed == {}
    for fixed in ({"kind": "b"}, {"n": 4}, {"n": 2, "kind": "b"}):
        known = explain(study, fixed=fixed)
        own = [s for s in settings if fixed.items() <= s.items()]
        assert known.fixed == fixed
        assert known.untried is None
        assert known.observed_best.params == min(own, key=value)
        assert known.recommended.params in own
        assert value(known.recommended.params) <= value(min(own, key=value)) + 0.1
        assert known.recommended_mean == pytest.approx(
            sign * value(known.recommended.params), abs=0.1
        )
        assert fixed.items() <= known.model_optimum.items()
        assert sign * known.model_optimum_mean <= sign * known.recommended_mean
        assert [row.trust for row in known.rows] == [row.trust for row in overall.rows]
    # What the best has anyway changes nothing.
    same = explain(study, fixed={"kind": "a"})
    assert same.recommended.number == overall.recommended.number
    assert same.recommended_mean == overall.recommended_mean


def test_where_nothing_was_run_the_model_says_what_is_best():
    study = study_of(drawn(60))
    known = explain(study, fixed={"n": 3})
    assert known.observed_best is known.recommended is None
    assert known.untried["n"] == 3
    assert known.untried["kind"] == "a"
    assert abs(known.untried["x"] - 3.0) < 0.5
    assert abs(known.recommended_mean - value(known.untried)) < 3.0 * known.recommended_std + 0.1
    number = explain(study, fixed={"x": 0.123})
    assert number.untried["x"] == number.model_optimum["x"] == 0.123
    assert number.untried["kind"] == "a"
    assert number.untried["n"] == 1


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["minimize", "maximize"])
def test_a_bad_trial_alone_is_not_the_answer_for_what_it_was_run_with(sign):
    settings = [*drawn(60), {"kind": "b", "n": 3, "x": -2.0}]
    study = study_of(settings, sign=sign)
    known = explain(study, fixed={"n": 3})
    assert known.observed_best.number == known.instead_of == 60
    assert known.recommended is None
    assert value(known.untried) < 0.5
    assert "by the model alone, clearly better than trial 60: estimated " in str(known)
    listed = best_records(study, "json", None, {"n": 3})
    assert (listed["number"], listed["recommended"]["number"]) == (60, None)
    assert listed["recommended"]["params"] == known.untried
    assert explain(study).instead_of is None


def test_a_lie_alone_is_not_recommended():
    settings = [*drawn(40), {"kind": "b", "n": 3, "x": 6.0}]
    study = study_of(settings, [*map(value, settings[:-1]), -1e6])
    known = explain(study, fixed={"n": 3})
    assert known.rows[-1].trust == 0.0
    assert known.observed_best.number == 40
    assert known.recommended is None
    assert known.untried["kind"] == "a"
    assert abs(known.untried["x"] - 3.0) < 0.5


def test_a_value_is_given_up_to_rounding():
    steps, rates = FloatDistribution(0.0, 1.0, step=0.1), FloatDistribution(1e-4, 1.0, log=True)
    space = {"s": steps, "r": rates}
    settings = [{"s": 0.1 * i, "r": 10.0 ** (-j)} for i in range(11) for j in (1, 2, 3)]
    study = study_of(settings, [s["s"] + math.log10(s["r"]) ** 2 for s in settings], space)
    assert 0.1 * 3 != 0.3
    assert explain(study, fixed={"s": 0.3}).recommended.params["s"] == 0.1 * 3
    assert explain(study, fixed={"r": 0.001}).recommended.params["r"] == 10.0**-3
    given = explain(study, fixed={"s": np.float64(0.3), "r": 0.01})
    assert given.recommended.params == {"s": 0.1 * 3, "r": 0.01}


def test_a_trial_has_what_it_was_run_with():
    settings = drawn(30)
    executed = [{} for _ in settings]
    executed[12] = {"x": 1.25}
    study = study_of(settings, [value(s | run) for s, run in zip(settings, executed, strict=True)],
                     executed=executed)  # fmt: skip
    known = explain(study, fixed={"x": 1.25})
    assert known.recommended.number == known.observed_best.number == 12
    assert explain(study, fixed={"x": settings[12]["x"]}).untried is not None


def test_a_grid_has_only_some_values():
    def gridded(box):
        return Learner(box.grid(11), recipes.gp_ucb(prior=Prior(RBF(0.3), 1e-3)))

    settings = [s | {"x": round(s["x"])} for s in drawn(50)]
    study = study_of(settings)
    known = explain(study, recipe=gridded, fixed={"x": 2})
    assert known.untried == {"kind": "a", "n": 2, "x": 2}
    assert known.model_optimum["x"] == 2
    with pytest.raises(RefusalError, match=r"x=2\.25: the nearest has x=2\.0"):
        explain(study, recipe=gridded, fixed={"x": 2.25})
    never = explain(study, recipe=gridded, fixed={"n": 3})
    assert never.recommended is None
    assert never.untried == {"kind": "a", "n": 3, "x": pytest.approx(3.0)}


def phased(box):
    return Learner(box.grid(11), recipes.rgp_pe(prior=Prior(RBF(0.3), 1e-3), budget=0.1))


def balanced(box):
    return build(box, recipes.any_threat(theory=Theory("practice", horizon=60)))


@pytest.mark.parametrize("recipe", [phased, balanced, recipes.loo_gp_ucb()])
def test_any_recipe_is_asked_for_what_is_given(recipe):
    settings = [s | {"x": float(round(s["x"]))} for s in drawn(60)]
    for fixed in ({"kind": "b"}, {"n": 3, "kind": "b"}):
        known = explain(study_of(settings), recipe=recipe, fixed=fixed)
        params = known.untried or known.recommended.params
        assert fixed.items() <= params.items()
        assert "n" not in fixed or known.recommended is None
        assert fixed.items() <= known.model_optimum.items()


@pytest.mark.long
def test_tolerances_hold_for_what_is_given():
    aim = RobustObjective(threshold=2.5, tolerance={"x": 0.5})
    study = study_of(drawn(80))
    free = explain(study, aim=aim, recipe=recipes.gp_ucb())
    known = explain(study, aim=aim, recipe=recipes.gp_ucb(), fixed={"kind": "b"})
    assert free.certified.params["kind"] == "a"
    assert known.certified.params == known.recommended.params
    assert known.certified.params["kind"] == "b"
    # valley of kind b: 2 + d^2 <= 2.5
    assert 0.0 < known.certified.within["x"] <= math.sqrt(0.5)
    never = explain(study, aim=aim, recipe=recipes.gp_ucb(), fixed={"n": 3})
    assert never.recommended is None
    assert never.certified.params == never.untried
    assert never.untried["n"] == 3
    assert 0.0 < never.certified.within["x"] <= math.sqrt(2.5)
    aim = RobustObjective(threshold=1.0, tolerance={"x": 0.5})
    hopeless = explain(study, aim=aim, recipe=recipes.gp_ucb(), fixed={"kind": "b"})
    assert hopeless.certified.reached == pytest.approx(2.0, abs=0.5)
    adaptive = RobustObjective(threshold="adaptive", margin=1.0, tolerance={"x": 0.5})
    found = explain(study, aim=adaptive, recipe=recipes.gp_ucb(), fixed={"kind": "b"}).certified
    assert 3.0 <= found.certificate.value < 3.5  # of the best of this kind, not of all


def test_what_cannot_be_given_is_refused():
    study = study_of([*drawn(10), {"kind": "a", "x": 1.0}], [*map(value, drawn(10)), 0.0])
    for fixed, said in (
        ({"kid": "a"}, "did you mean 'kind'"),
        ({"none": 1}, "no parameter 'none'.*those that complete trials have in the same range"),
        ({"kind": "c"}, "kind cannot be c"),
        ({"x": 7.5}, "x cannot be 7.5"),
        ({"x": "much"}, "x cannot be much"),
    ):
        with pytest.raises(RefusalError, match=said):
            explain(study, fixed=fixed)
    for trials in ([1, 2], study.best_trial.number, ["number", "value"], object()):
        with pytest.raises(RefusalError, match="trials are trials of the study"):
            explain(study, trials=trials)
    one = {"x": FloatDistribution(0.5, 0.5)}
    alike = study_of([{"x": 0.5}, {"x": 0.5}], [2.0, 1.0], one)
    assert explain(alike, fixed={"x": 0.5}).recommended.number == 1
    with pytest.raises(RefusalError, match="cannot be 1"):
        explain(alike, fixed={"x": 1})
    assert explain(optuna.create_study(), fixed={"x": 1}).recommended is None


def test_a_study_is_explained_as_it_was():
    study = study_of(drawn(20))
    earlier = study.trials[:8]
    known = explain(study, trials=earlier)
    assert [row.number for row in known.rows] == list(range(8))
    assert known.recommended.number < 8


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"kind": "a", "n": 2, "x": 1.0, "lr": 3}, "There is no parameter 'lr'"),
        ({"kind": "a", "n": 2, "x": 200.0}, r"x cannot be 200.0: it is float\(-3, 7\)"),
        ({"kind": "a", "n": 2.5, "x": 1.0}, "n cannot be 2.5"),
        ({"kind": "a", "n": 2, "x": math.nan}, "x cannot be nan"),
        ([{"kind": "a", "x": 1.0}], "n has none"),
        (5, "A setting has a value for each parameter, .* got 5"),
        ("ab", "A setting has a value for each parameter, .* got 'ab'"),
    ],
)
def test_settings_that_cannot_be_are_not_predicted(settings, match):
    with pytest.raises(RefusalError, match=match):
        explain(study_of(drawn(12))).predict(settings)


def test_parameters_that_are_not_modelled_are_left_out_of_a_prediction():
    study, params = study_of(drawn(12)), drawn(1, seed=1)[0]
    for step in (None, 0.25):  # a step that changes is not modelled
        space = SPACE | {"s": FloatDistribution(0.0, 1.0, step=step)}
        add(study, params | {"s": 0.5}, space, value(params))
    known = explain(study)
    assert known.predict(params | {"s": 0.5})[0] == known.predict(params)[0]
    assert known.predict([])[0].shape == (0,)


def test_values_are_fixed_by_name():
    with pytest.raises(RefusalError, match=r"fixed has a value for each name.*got 'n=7'"):
        explain(study_of(drawn(12)), fixed="n=7")
