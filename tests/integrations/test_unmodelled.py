"""What a study asks for and the model does not know is said."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic.integrations.optuna import (
    AIM,
    FAILED,
    NOISE,
    POSSIBLE,
    RECIPE,
    VALUES,
    StoicSampler,
    explain,
)
from stoic.integrations.optuna.unmodelled import Parameters, unmodelled
from stoic.tuning.views.trust import verdict
from studies import add

UNIT = FloatDistribution(0.0, 1.0)
X = {"x": FloatDistribution(0.0, 1.0)}
LOG = "stoic.integrations.optuna.sampler"


def bowl(trial):
    x, y = trial.suggest_float("x", -5.0, 5.0), trial.suggest_float("y", 0.0, 1.0)
    return (x - 2.0) ** 2 + 20.0 * (y - 0.3) ** 2


def said_of(caplog):
    return [record.message for record in caplog.records if record.name == LOG]


def test_parameters_whose_step_changes_are_said_to_be_drawn_at_random(caplog):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number % 2:
            trial.suggest_float("momentum", 0.0, 1.0)
        if trial.number > 3:
            trial.suggest_float("decay", 1.0, 2.0, step=[None, 0.5][trial.number % 2])
        trial.suggest_int("units", 1, 9, step=1 + trial.number % 2)
        return x

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=8)
    said = said_of(caplog)
    assert len(said) == len(set(said)) == 2  # units; decay, too
    assert all("drawn at random" in each for each in said)
    assert "have decay, units, with the same step" in said[-1]
    assert explain(study).unmodelled == unmodelled(study.trials) == (said[-1],)


def test_a_recommended_value_that_trials_cannot_have_any_more_is_said():
    narrow = {"x": FloatDistribution(0.0, 0.5)}
    study = optuna.create_study()
    for x in np.linspace(0.0, 1.0, 12):
        add(study, {"x": x}, X, (x - 0.8) ** 2)
    assert explain(study).unmodelled == ()
    for x in (0.3, 0.5):
        add(study, {"x": x}, narrow, (x - 0.8) ** 2)
    (said,) = explain(study).unmodelled
    assert said.startswith("The recommended x, 0.81")
    assert "outside of the range that the latest trials have, float(0, 0.5)" in said
    assert explain(study, fixed={"x": 0.9}).unmodelled == ()  # which was asked for
    # A range of another choice is no later one, and a choice that went is named elsewhere
    other = optuna.create_study()
    for kind, low in (("a", 0.0), ("b", 5.0)):
        branch = {"k": CategoricalDistribution(["a", "b"]), "x": FloatDistribution(low, low + 1.0)}
        for x in np.linspace(low, low + 1.0, 8):
            add(other, {"k": kind, "x": x}, branch, (x - 0.3) ** 2)
    assert explain(other).recommended.params["k"] == "a"
    assert explain(other).unmodelled == ()
    changed = optuna.create_study()
    for choices in ("ab", "bc"):
        for k in choices:
            for x in (0.1, 0.3, 0.7):
                kinds = {**X, "k": CategoricalDistribution(choices)}
                add(changed, {"k": k, "x": x}, kinds, x + (k != "a"))
    (said,) = explain(changed).unmodelled
    assert "Not all trials have k" in said
    # Where ranges go back and forth none is the latest
    add(study, {"x": 0.9}, X, 0.01)
    add(study, {"x": 0.4}, narrow, 0.16)
    assert explain(study).unmodelled == ()


def test_a_sentence_is_said_once_however_many_trials_it_lists(caplog):
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [-1.0] * (1 + trial.number % 2))
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=15)
    (said,) = said_of(caplog)
    assert said.startswith("Trials without a value of the constraint 1")


def test_parameters_outside_of_a_given_search_space_are_said_to_be_drawn_at_random(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0, search_space=X))
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("y", 0, 1), n_trials=3)
    (said,) = said_of(caplog)
    assert "search_space does not have y" in said


def test_pruned_trials_are_modelled_and_nothing_is_said(caplog):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.report(x, 0)
        if trial.number in (1, 2):
            raise optuna.TrialPruned
        return x

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=5)
    assert said_of(caplog) == []
    assert explain(study).unmodelled == ()
    assert [row.number for row in explain(study).partial] == [1, 2]


def test_nothing_is_said_of_a_study_that_is_modelled_entirely(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(bowl, n_trials=4)
    study.tell(study.ask(), state=TrialState.FAIL)  # before it had any parameter
    study.ask()
    assert said_of(caplog) == []
    assert explain(study).unmodelled == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (POSSIBLE, [2, 1]),
        (POSSIBLE, "0,1"),
        (AIM, {"treshold": 0.5, "tolerance": {"x": 0.1}}),
        (AIM, {"threshold": "high"}),
        (RECIPE, 5),
    ],
)
def test_what_is_recorded_with_a_study_and_makes_no_sense_is_said(name, value, caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.set_user_attr(name, value)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), 12)
    said = f"{name} of the study is not used: {value!r} is nothing that stoic records."
    assert caplog.messages == [said]
    assert explain(study).unmodelled == (said,)


def test_what_is_used_in_part_is_said():
    study, space = optuna.create_study(directions=["minimize"] * 2), {"x": UNIT}
    for noise in ([0.1, "a"], [0.1, None], [-1.0, 0.1]):
        add(study, {"x": 0.5}, space, [1.0, 2.0], {NOISE: noise})
    add(study, {"x": 0.5}, space, attrs={VALUES: [0.1, "b"]})
    add(study, {"x": 0.5}, space, attrs={VALUES: [0.1, None]})
    assert explain(study).unmodelled == (
        "Trial 0: stoic:noise is used in part: 'a' is no variance above 0. Likewise trial 2.",
        "Trial 3: stoic:values is used in part: 'b' is no number.",
    )


def test_a_kind_of_failure_of_a_trial_with_a_value_is_said():
    study = optuna.create_study()
    add(study, {"x": 0.5}, {"x": UNIT}, 1e9, {FAILED: "infeasible"})
    (said,) = explain(study).unmodelled
    assert "stoic:failed is not used: the trial has a value" in said


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
    said = [each for each in said_of(caplog) if "without parameters" in each]
    assert said == ["Trials without parameters are not modelled: 3."]


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]])
def test_where_nothing_is_modelled_nothing_is_judged_or_recommended(directions):
    """The step of x is another one in every other trial."""
    study = optuna.create_study(directions=directions)
    for number in range(6):
        trial = study.ask()
        trial.suggest_float("x", 1.0, 9.0, step=[None, 0.5][number % 2])
        study.tell(trial, [-100.0 if number == 3 else 1.0 + number] * len(directions))
    known = explain(study)
    assert len(known.rows) == 6 * len(directions)
    assert all(math.isnan(row.trust) and not row.distrusted for row in known.rows)
    assert known.recommended is None
    assert known.front == ()
    assert "no parameter is modelled" in str(known)
    assert "distrusted     none" in str(known)
    assert {verdict(row) for row in known.rows} == {"not judged"}


@pytest.mark.parametrize("directions", [["minimize"], ["minimize", "maximize"]])
def test_a_single_trial_is_modelled_and_not_judged(directions):
    """Where it violates a constraint that is why nothing is recommended."""
    for limit in (-1.0, 1.0):
        study = optuna.create_study(directions=directions)
        add(study, {"x": 0.5}, X, [2.0] * len(directions), system={"constraints": [limit]})
        known = explain(study)
        assert all(math.isnan(row.trust) for row in known.rows)
        assert known.judged
        assert ("recommended    none" in str(known)) == (limit > 0.0)
        assert "no parameter is modelled" not in str(known)


def test_where_all_have_one_setting_it_is_said_that_no_result_is_judged():
    study = optuna.create_study()
    for value in (3.0, 5.0, 4.5):
        add(study, {"x": 0.5}, {"x": FloatDistribution(0.5, 0.5)}, value)
    known = explain(study)
    assert (known.recommended.number, known.recommended_mean) == (0, 4.5)
    assert "no parameter is modelled, so no result is judged" in str(known)


def literal_space(trials):
    """All at once: complete trials, and others after a parameter that no complete one has."""
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.distributions]
    names = {name for trial in complete for name in trial.distributions}
    others = [
        t
        for t in trials
        if t.state in (TrialState.FAIL, TrialState.PRUNED) and t.distributions.keys() - names
    ]
    shown = complete + others * bool(complete)
    ranges = {}
    for trial in shown:
        for name, distribution in trial.distributions.items():
            ranges.setdefault(name, []).append(distribution)
    return shown, {
        name: FloatDistribution(min(d.low for d in of), max(d.high for d in of), log=of[0].log)
        for name, of in ranges.items()
        if len({d.log for d in of}) == 1
    }


@pytest.mark.parametrize("seed", range(40))
def test_parameters_of_a_study_that_grows_are_those_of_all_trials_at_once(seed):
    rng = np.random.default_rng(seed)
    states = [TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED]
    odds = rng.dirichlet(np.ones(3))
    trials = []
    for number in range(rng.integers(1, 30)):
        names = [name for name in "cabed" if rng.random() < (0.9 if name < "d" else 0.2)]
        ranges = {}
        for name in names:
            low, high = rng.choice([0.1, 0.4], p=[0.1, 0.9]), rng.choice([0.6, 1.0])
            ranges[name] = FloatDistribution(low, high, log=name == "b" and rng.random() < 0.1)
        state = states[rng.choice(3, p=odds)]
        value = 1.0 if state == TrialState.COMPLETE else None
        trial = create_trial(
            state=state, value=value, params=dict.fromkeys(names, 0.5), distributions=ranges
        )
        trial.number = number
        trials.append(trial)
    parameters, ended = Parameters(), list(rng.permutation(len(trials)))
    while ended:  # not in the order of their numbers, some of them twice
        ended, now = ended[3:], ended[:3]
        parameters.follow([trials[i] for i in sorted([*now, now[0]])])
        parameters.modelled()
    shown, space = literal_space(trials)
    assert list(parameters.modelled().items()) == list(space.items())
    complete = [t for t in shown if t.state == TrialState.COMPLETE]
    _, alone = literal_space(complete)
    shared = {n: d for n, d in alone.items() if all(n in trial.params for trial in complete)}
    assert parameters.modelled(shared=True) == shared
    assert parameters.conditional(space) == tuple(
        name for name in space if any(name not in trial.params for trial in complete)
    )
    assert [t for t in trials if parameters.shown_by(t)] == sorted(shown, key=lambda t: t.number)
