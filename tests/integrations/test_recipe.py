"""Recipes as texts: names, names with arguments, functions in a file."""

from __future__ import annotations

import logging
import math
from functools import partial

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from stoic import Prior, recipes
from stoic.confidence import Fixed, Theory
from stoic.domains import Box
from stoic.integrations.optuna import RECIPE, StoicSampler, explain, robust
from stoic.integrations.recipe import (
    InFile,
    build_learner,
    load,
    parse,
    record_recipe,
    stored_recipe,
    text_of,
)
from stoic.kernels import RBF
from stoic.learner import Learner
from stoic.policies import UCB, Initial, Requery, VerifiedImprovement
from stoic.posteriors.features import Nystroem
from stoic.recipes import ActingPlateau, Anchor, Threats
from stoic.refusal import RefusalError

X = {"x": FloatDistribution(-1.0, 1.0)}
BOX = Box([0.0], [1.0])

FILE = """
from dataclasses import dataclass

from stoic import Learner, Prior, recipes
from stoic.kernels import RBF


@dataclass
class Settings:
    budget: "float" = 0.5


def phased(box):
    prior = Prior(RBF(0.4), 0.05)
    return Learner(box.grid(9), recipes.rgp_pe(prior=prior, budget=Settings().budget))


value = recipes.gp_ucb(prior=Prior(RBF(0.4), 0.05))


def nothing(box):
    pass


def wrong(box):
    raise KeyError("prior")


number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "methods.py"
    path.write_text(FILE)
    return path


def without_needs(recipe):
    try:
        parse(recipe.__name__)
    except RefusalError:
        return False
    return True


def test_every_recipe_is_a_name_or_says_what_it_needs():
    plain = {recipe for recipe in recipes.RECIPES if without_needs(recipe)}
    assert plain >= {*recipes.SEQUENTIAL, recipes.any_threat}
    assert not plain & {*recipes.PHASED, recipes.contextual_ec_gp_ucb, recipes.stable_opt}
    for recipe in plain:
        assert parse(recipe.__name__) == recipe()
        assert build_learner(recipe(), BOX).domain is BOX


SAYABLE = [
    "robust",
    "stable_opt(radius=0.1)",
    *(recipe.__name__ for recipe in recipes.RECIPES if without_needs(recipe)),
]


@pytest.mark.parametrize("grid", [False, True], ids=["box", "grid"])
@pytest.mark.parametrize("text", SAYABLE)
def test_every_name_works_in_a_study(text, grid):
    named = parse(text)

    def recipe(box):
        return build_learner(named, box.grid(5) if grid else box)

    space = X | {"n": IntDistribution(1, 3)}
    sampler = StoicSampler(seed=0, recipe=recipe, search_space=space, n_startup_trials=3)
    study = optuna.create_study(sampler=sampler)
    for _ in range(6):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"] ** 2 + 0.1 * trial.params["n"])
    known = explain(study, recipe=recipe)
    assert [row.number for row in known.rows] == list(range(6))
    assert known.recommended.params in [trial.params for trial in study.trials]
    if grid:
        assert {trial.params["x"] for trial in study.trials} <= {-1.0, -0.5, 0.0, 0.5, 1.0}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("gp_ucb", "gp_ucb()"),
        (" gp_ucb( ) ", "gp_ucb()"),
        ("rgp_ucb(budget=5)", "rgp_ucb(budget=5)"),
        ("rgp_ucb( budget = 5.5 )", "rgp_ucb(budget=5.5)"),
        ("gp_ucb(confidence=Fixed(width=3.0))", "gp_ucb(confidence=Fixed(width=3.0))"),
        ("stable_opt(radius=0.1)", "stable_opt(radius=0.1)"),
        ("some where/methods.py:phased", "some where/methods.py:phased"),
    ],
)  # fmt: skip
def test_what_can_be_said(text, canonical):
    recipe = parse(text)
    assert repr(recipe) == text_of(recipe) == canonical
    assert parse(canonical) == recipe


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("rgp_ucb(budget=5, norm=2.0, delta=0.2)",
         recipes.rgp_ucb(budget=5, theory=Theory("practice", norm=2.0, delta=0.2))),
        ("rgp_ucb(constants='theory', norm=2.0)", recipes.rgp_ucb(theory=Theory(norm=2.0))),
        ("gp_ucb(initial=2)", recipes.gp_ucb(policy=Initial(UCB(), 2))),
        ("fc_rcgp_ucb(half_width='quantile', retries=None)",
         recipes.fc_rcgp_ucb(half_width="quantile", policy=UCB())),
        ("loo_gp_ucb(retries=1)", recipes.loo_gp_ucb(policy=Requery(UCB(1)))),
        ("loo_gp_ucb(second_look=None)", recipes.loo_gp_ucb(policy=UCB())),
        ("robust(initial=5)", recipes.robust(policy=Initial(VerifiedImprovement(), 5))),
        ("a2_rcgp_ucb(prequential=True, anchor_shape=1.0, shape=0.5, seed=3)",
         recipes.a2_rcgp_ucb(
             plateau=ActingPlateau(shape=0.5), anchor=Anchor(shape=1.0, prequential=True))),
        ("ata_gp_ucb(seed=3)", recipes.ata_gp_ucb(features=Nystroem(seed=3))),
        ("any_threat(corruptions=2, horizon=50)",
         recipes.any_threat(
             threats=Threats(corruptions=2), theory=Theory("practice", horizon=50))),
        ("stable_opt(radius=0.1, initial=3)", recipes.stable_opt(radius=0.1)),
    ],
)  # fmt: skip
def test_arguments_of_a_value_stand_for_it(text, recipe):
    read = parse(text)
    assert read == recipe == parse(repr(recipe))


def test_what_a_text_cannot_express_has_none():
    assert text_of(recipes.gp_ucb(prior=Prior(RBF(0.4), 0.05))) is None
    assert text_of(recipes.fc_rcgp_ucb(half_width=math.inf)) is None
    assert text_of(lambda box: Learner(box)) is None


def test_arguments_arrive():
    learner = build_learner(parse("rgp_ucb(budget=5, initial=3)"), BOX)
    assert learner.confidence.budget == 5
    assert learner.policy == Initial(UCB(), 3)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("rgp_ubc", "no recipe 'rgp_ubc': did you mean 'rgp_ucb'"),
        ("zzz", "there are robust, gp_ucb, "),
        ("rgp_ucb(bugdet=5)", "rgp_ucb has no argument 'bugdet': did you mean 'budget'"),
        ("rgp_ucb(5)", "need their names"),
        ("rgp_ucb(**{'budget': 5})", "need their names"),
        ("rgp_ucb(budget='five')", "budget of rgp_ucb must be a number, got 'five'"),
        ("rgp_ucb(budget=True)", "must be a number, got True"),
        ("rgp_ucb(constants='best')", "must be 'practice' or 'theory' or 'tight', got 'best'"),
        ("rgp_ucb(delta=2.0)", "Theory cannot be used: The theory needs 0 < delta < 1"),
        ("rgp_ucb(theory=Theory(nrom=2.0))", "Theory has no argument 'nrom': did you mean 'norm'"),
        ("gp_ucb(policy=Initial(then=3, n=2))", r"then of Initial must be UCB\(...\) or"),
        ("gp_ucb(policy=open('x'))", "Cannot read the recipe"),
        ("rgp_ucb(initial=1.5)", "must be a whole number, got 1.5"),
        ("a2_rcgp_ucb(prequential=1)", "must be True or False, got 1"),
        ("rgp_ucb(budget=open('x'))", "Cannot read the recipe"),
        ("rgp_ucb(budget=", "Cannot read the recipe"),
        ("recipes.gp_ucb", "Cannot read the recipe"),
        ("", "Cannot read the recipe"),
        ("gp_ucb(scale='mean')", "cannot say the argument scale of gp_ucb.*FILE.py:FUNCTION"),
        ("gp_ucb(prior=3)", "cannot say the argument prior"),
        ("rgp_pe(budget=5)", "rgp_pe needs a prior and a grid, which a text cannot say.*FILE.py"),
        ("contextual_ec_gp_ucb", "needs a prior, which a text cannot say"),
        ("stable_opt", "stable_opt needs its argument radius, a number"),
        ("gp_ucb(...)", "has what no text can express: give the recipe itself"),
        ("methods.py", "Which function is missing"),
        ("methods.py:", "Which function is missing"),
        ("methods.py:a.b", "Which function is missing"),
        ("methods.py:mine(c=2)", "gets no arguments.*FILE.py:FUNCTION"),
    ],
)
def test_what_cannot_be_said_is_refused(text, match):
    with pytest.raises(RefusalError, match=match):
        parse(text)


def test_a_number_out_of_range_is_found_when_the_learner_is_made():
    with pytest.raises(RefusalError, match=r"rgp_ucb\(budget=-5\) cannot be used: A total"):
        build_learner(parse("rgp_ucb(budget=-5)"), BOX)


def test_a_function_in_a_file(file):
    learner = build_learner(parse("methods.py:phased", file.parent), BOX)
    assert isinstance(learner, Learner)
    assert len(learner.domain) == 9
    value = build_learner(parse("methods.py:value", file.parent), BOX)
    assert value.model.prior.noise == 0.05


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("method.py:phased", "There is no file .*method.py'"),
        ("methods.py:phase", "no function 'phase' in .*methods.py: did you mean 'phased'"),
        ("methods.py:number", "no function 'number'"),
        ("methods.py:nothing", "methods.py:nothing returned None: a function from a domain to a"),
        ("methods.py:wrong", "methods.py:wrong cannot be used: KeyError: 'prior'"),
        ("broken.py:phased", "broken.py raised SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(file, text, match):
    (file.parent / "broken.py").write_text("def phased(:")
    with pytest.raises(RefusalError, match=match):
        build_learner(load(parse(text, file.parent)), BOX)


def tuned(**more):
    study = optuna.create_study(sampler=StoicSampler(seed=0, search_space=X, **more))
    for _ in range(6):
        trial = study.ask(X)
        study.tell(trial, trial.params["x"] ** 2)
    return study


def test_a_text_is_recorded_and_explained():
    study = tuned(recipe="gp_ucb(initial=2)", n_startup_trials=2)
    text = "gp_ucb(policy=Initial(then=UCB(retries=None), n=2))"
    assert study.user_attrs[RECIPE] == stored_recipe(study) == text
    assert tuned(recipe=recipes.gp_ucb(policy=Initial(UCB(), 2))).user_attrs == study.user_attrs
    mine, by_name = explain(study), explain(study, recipe=recipes.gp_ucb())
    assert mine.rows == by_name.rows
    assert mine.rows != explain(study, recipe=robust()).rows
    record_recipe(study, recipes.robust())
    assert explain(study).rows == explain(study, recipe=robust()).rows


def test_the_same_recipe_in_other_words_is_not_recorded_again():
    study = tuned(recipe="gp_ucb")
    study.set_user_attr(RECIPE, "gp_ucb( seed=7 )")  # as an earlier version stored it
    record_recipe(study, recipes.gp_ucb())
    assert stored_recipe(study) == "gp_ucb( seed=7 )"
    record_recipe(study, InFile("methods.py:f"))
    assert stored_recipe(study) == "methods.py:f"


def phased(box):
    return Learner(box, recipes.gp_ucb())


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        (phased, "phased(...)"),
        (recipes.gp_ucb(prior=Prior(RBF(0.4), 0.05)), "gp_ucb(...)"),
    ],
)
def test_what_has_no_text_is_recorded_by_its_name(recipe, name, caplog):
    study = tuned(recipe=recipe)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "stoic"):
        known = explain(study)
    assert stored_recipe(study) == name
    (said,) = caplog.messages
    assert f"as robust judges, not the study's recipe: {name} has what no text" in said
    assert known.rows == explain(study, recipe=robust()).rows
    assert known.rows != explain(study, recipe=recipe).rows


@pytest.mark.parametrize("text", ["own.py:mine", "own.py:mine()", "own.py:value"])
def test_a_recipe_of_ones_own_and_what_is_beside_its_file(tmp_path, text):
    (tmp_path / "beside_own.py").write_text("WIDTH = 3.0\n")
    (tmp_path / "own.py").write_text(
        "from dataclasses import replace\n"
        "from beside_own import WIDTH\n"
        "from stoic import recipes\n"
        "from stoic.confidence import Fixed\n"
        "@recipes.recipe\n"
        "def mine(domain):\n"
        "    return replace(recipes.gp_ucb()(domain), confidence=Fixed(WIDTH))\n"
        "value = mine()\n"
    )
    recipe = parse(text, tmp_path)
    assert build_learner(load(recipe), BOX).confidence == Fixed(3.0)
    assert parse(repr(recipe)) == recipe


def test_a_recipe_without_brackets_is_the_one_without_arguments():
    assert load(recipes.gp_ucb) == recipes.gp_ucb()


def test_a_file_named_by_a_storage_is_not_run(file, monkeypatch, caplog):
    monkeypatch.chdir(file.parent)
    study = tuned(recipe="methods.py:phased")
    assert stored_recipe(study) == "methods.py:phased"
    file.write_text("raise SystemExit('this was run')")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "stoic"):
        assert explain(study).rows == explain(study, recipe=robust()).rows
    (said,) = caplog.messages
    assert "recipe is methods.py:phased, and a file is not run" in said


@pytest.mark.parametrize("recorded", ["a_later_one(x=1)", "gp_ucb(prior=3)", 7, None, ["gp_ucb"]])
def test_a_record_that_makes_no_sense_here_is_not_used(recorded, caplog):
    study = tuned()
    study.set_user_attr(RECIPE, recorded)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "stoic"):
        assert explain(study).rows == explain(study, recipe=robust()).rows
    assert len(caplog.messages) == isinstance(recorded, str)


def test_a_sampler_without_a_recipe_goes_on_with_the_recorded_one(caplog):
    caplog.set_level(logging.INFO)

    def chosen(**asked):
        study = optuna.create_study(sampler=StoicSampler(seed=0, recipe="gp_ucb"))
        study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2, 12)
        study.sampler = StoicSampler(seed=0, **asked)
        return study.ask({"x": FloatDistribution(0.0, 1.0)}).params, study

    said = "Trials are chosen by the study's recipe, gp_ucb()."
    named, _ = chosen(recipe="gp_ucb")
    assert said not in caplog.messages
    recorded, study = chosen()
    assert recorded == named
    assert caplog.messages.count(said) == 1
    assert "judged by      gp_ucb()" in str(explain(study))
    assert explain(study).recipe == "gp_ucb()"
    other, study = chosen(recipe="robust")
    assert other != named
    assert explain(study).recipe is None
    # With several objectives a recipe has no meaning, whoever recorded it
    study = optuna.create_study(directions=["minimize"] * 2, sampler=StoicSampler(seed=0))
    study.set_user_attr(RECIPE, "gp_ucb()")
    study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0), 1.0), 12)
    assert len(study.best_trials) > 0


def test_a_recorded_recipe_that_cannot_be_used_ends_no_study(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.set_user_attr(RECIPE, "rgp_pe(budget=1)")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), 12)
    (said,) = [m for m in caplog.messages if "What" in m]
    assert "rgp_pe" in said


def test_what_is_no_recipe_and_no_study_is_refused_at_once():
    with pytest.raises(RefusalError, match="or a function of the domain, got 3"):
        StoicSampler(recipe=3)
    with pytest.raises(RefusalError, match=r"aim is a RobustObjective, .* got {'threshold': 0.5}"):
        explain(optuna.create_study(), aim={"threshold": 0.5})
    with pytest.raises(RefusalError, match="explain needs an Optuna study, got 'old'"):
        explain("old")


def test_the_threshold_of_a_recipe_is_in_the_direction_of_the_study(caplog):
    def loss(sign, trial):
        return sign * (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2

    found = []
    for sign, direction in ((1.0, "minimize"), (-1.0, "maximize")):
        recipe = recipes.advers_2(threshold=sign * 0.4)
        study = optuna.create_study(
            sampler=StoicSampler(seed=0, recipe=recipe, n_startup_trials=4), direction=direction
        )
        study.optimize(partial(loss, sign), 9)
        found.append([trial.params["x"] for trial in study.trials])
    assert found[0] == found[1]
    assert not caplog.records
