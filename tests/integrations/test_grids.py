"""The sampler with a recipe that makes a grid of the search space, phased ones above all."""

from __future__ import annotations

import logging

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler
from optuna.trial import TrialState

from stoic import Box, Finite, Prior, recipes
from stoic.confidence import Theory
from stoic.integrations.optuna import EXECUTED, FAILED, StoicSampler, explain
from stoic.integrations.optuna.encoding import Encoding
from stoic.integrations.optuna.points import Points
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.turns import CHOSEN
from stoic.kernels import RBF
from stoic.learner import Learner
from stoic.refusal import RefusalError
from studies import add

X = {"x": FloatDistribution(-1.0, 1.0)}
MIXED = {
    "kind": CategoricalDistribution(["u", "v"]),
    "lr": FloatDistribution(1e-3, 1.0, log=True),
    "n": IntDistribution(1, 3),
}
PRIOR = Prior(RBF(0.4), 0.05)


def phased(box):
    """13 points; epochs of 5 plays, then twice as many."""
    return Learner(box.grid(13), recipes.rgp_pe(prior=PRIOR, budget=0.1))


def episodes(box):
    return Learner(box.grid(3), recipes.phased_gp_us(prior=PRIOR))


def value(params):
    """Of a trial; the lowest is 0."""
    if "lr" not in params:
        return (params["x"] - 0.3) ** 2
    slow = (np.log10(params["lr"]) + 1.5) ** 2
    return slow + 0.1 * (params["n"] - 2) ** 2 + 0.2 * (params["kind"] == "u")


def uninterrupted(recipe, space, noise):
    """The settings that a learner asks for, one after another, and the epoch of each."""
    encoding, asked, epochs = Encoding(space), [], []
    learner = recipe(encoding.box)
    for lie in noise:
        choice = learner.ask()
        asked.append(encoding.decode(choice.x))
        epochs.append(choice.notes["epoch"])
        learner.tell(choice.x, -(value(asked[-1]) + lie))
    return asked, epochs


def begun(url):
    return optuna.create_study(study_name="s", storage=url)


def worker(url, recipe, space, **more):
    """What another process has: a study and a sampler of its own."""
    sampler = StoicSampler(seed=0, recipe=recipe, search_space=space, **more)
    return optuna.load_study(study_name="s", storage=url, sampler=sampler)


def stand(learner):
    """Number of the epoch, what may still be the best, what is played of it and what is missing."""
    learner.ask(pending=[])  # which looks at what was told
    epoch, _, told, _ = learner._state
    missing = np.maximum(epoch.owed - told, 0)
    return epoch.number, epoch.active.tolist(), epoch.owed.tolist(), missing.tolist()


@pytest.mark.parametrize(
    ("recipe", "space", "rounds"),
    [
        pytest.param(phased, X, 28, id="rgp_pe", marks=pytest.mark.long),
        pytest.param(episodes, MIXED, 24, id="us"),
    ],
)
def test_three_samplers_after_one_another_are_one_learner(tmp_path, recipe, space, rounds):
    noise = 0.2 * np.random.default_rng(0).standard_normal(rounds)
    asked, epochs = uninterrupted(recipe, space, noise)
    assert epochs[-1] >= 2  # the pieces end in the middle of some
    url = f"sqlite:///{tmp_path}/s.db"
    begun(url)
    for piece in (4, 14, rounds - 18):
        study = worker(url, recipe, space)
        for _ in range(piece):
            trial = study.ask(space)
            study.tell(trial, value(trial.params) + noise[trial.number])
    assert [trial.params for trial in study.trials] == asked
    known = explain(study, recipe=recipe)
    assert len(known.rows) == rounds
    assert known.left_out == {}
    assert value(known.recommended.params) < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_two_workers_share_one_epoch(seed):
    """Results come in any order; whoever finds all plays handed out runs the oldest once more."""
    storage = optuna.storages.InMemoryStorage()
    begun(storage)
    workers = [worker(storage, phased, X) for _ in range(2)]
    rng, running = np.random.default_rng(seed), []
    for _ in range(120):
        if len(running) < 4:
            running.append(workers[rng.integers(2)].ask(X))
        if rng.random() < 0.6:
            trial = running.pop(rng.integers(len(running)))
            workers[rng.integers(2)].tell(trial.number, value(trial.params))
    trials = workers[0].trials
    fresh = SyncedLearner(workers[0], X, phased)
    fresh.follow(trials)
    found = stand(fresh.learner)
    for study in workers:
        study.sampler._synced.follow(trials)
        assert stand(study.sampler._synced.learner) == found
    # A point always has the same value here, so every epoch is that of a learner that is alone.
    alone = phased(Encoding(X).box)
    plays = 0
    while (now := stand(alone))[0] < found[0]:
        choice = alone.ask()
        alone.tell(choice.x, -value(Encoding(X).decode(choice.x)))
        plays += 1
    assert now[:3] == found[:3]
    assert found[0] >= 3
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    twice = len(complete) - plays - (sum(found[2]) - sum(found[3]))
    assert 0 <= twice <= 4 * found[0]  # four at once, at the end of an epoch


def test_what_is_owed_for_longest_is_run_once_more():
    asked, epochs = uninterrupted(phased, X, [0.0] * 40)
    study = optuna.create_study(
        sampler=StoicSampler(seed=0, recipe=phased, search_space=X, n_startup_trials=10)
    )
    before, whole = epochs.index(2), epochs.count(2)
    for _ in range(before):
        trial = study.ask(X)
        study.tell(trial, value(trial.params))
    first = [study.ask(X) for _ in range(whole)]
    assert [trial.params for trial in study.trials] == asked[: before + whole]
    again = [study.ask(X) for _ in range(2)]
    assert [trial.params for trial in again] == [trial.params for trial in first[:2]]
    for trial in [*first[2:], *again]:  # whoever had the first two has died
        study.tell(trial, value(trial.params))
    study.ask(X)
    learner = study.sampler._synced.learner
    assert stand(learner)[0] == 3
    # They have not: of a point that this epoch plays, their results count for it.
    _, _, owed, missing = stand(learner)
    late = [learner.domain.nearest(Encoding(X).encode(t.params)[None])[0] for t in first[:2]]
    for trial in first[:2]:
        study.tell(trial, value(trial.params))
    study.ask(X)
    number, _, _, after = stand(learner)
    assert number == 3
    used = np.minimum(np.bincount(late, minlength=len(owed)), missing)
    assert after == (np.array(missing) - used).tolist()


def test_a_result_that_ended_earlier_is_told_earlier():
    """As from a worker whose clock is slow, or whose result was seen late."""
    study = optuna.create_study()
    for number, x in enumerate(np.linspace(-1.0, 1.0, 13)):
        add(study, {"x": float(x)}, X, number)
    trials = study.trials
    late = [t for t in trials if t.number != 4]
    for recipe, order in (
        (phased, list(range(13))),
        (recipes.gp_ucb(), [*range(4), *range(5, 13), 4]),
    ):
        campaign = SyncedLearner(study, X, recipe)
        campaign.follow(late)
        campaign.follow(trials)
        assert campaign.observed == order
        assert len(campaign.learner) == 13


def test_trials_at_no_point_of_the_grid_are_left_out_and_said_once(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0, recipe=phased))
    study.enqueue_trial({"x": 0.123})
    study.enqueue_trial({"x": -0.5})  # which is on it
    with caplog.at_level(logging.WARNING, "stoic"):
        for _ in range(8):
            trial = study.ask(X)
            study.tell(trial, value(trial.params))
            explain(study, recipe=phased)
    (said,) = [message for message in caplog.messages if "left out" in message]
    assert "Trial 0" in said
    assert "x=0.123" in said
    known = explain(study, recipe=phased)
    assert known.left_out == {0: "x=0.123"}
    assert [row.number for row in known.rows] == list(range(1, 8))
    assert len(study.trials) == 8
    mean, std = known.predict([{"x": 0.3}, {"x": 1 / 3}])
    assert mean[0] == mean[1]  # of the nearest point
    assert np.all(std > 0.0)


def test_without_the_search_space_only_the_first_trial_is_left_out():
    study = optuna.create_study(sampler=StoicSampler(seed=0, recipe=phased))
    study.optimize(lambda trial: value({"x": trial.suggest_float("x", -1.0, 1.0)}), n_trials=1)
    known = explain(study, recipe=phased)  # all that there is
    assert known.left_out.keys() == {0}
    assert known.recommended.number == known.observed_best.number == 0
    study.optimize(lambda trial: value({"x": trial.suggest_float("x", -1.0, 1.0)}), n_trials=6)
    assert explain(study, recipe=phased).left_out.keys() == {0}


def test_what_was_executed_decides():
    study = optuna.create_study(sampler=StoicSampler(seed=0, recipe=phased, search_space=X))
    for run in (0.5, 0.51):
        trial = study.ask(X)
        trial.set_user_attr(EXECUTED, {"x": run})
        study.tell(trial, 1.0)
    study.ask(X)
    campaign = study.sampler._synced
    np.testing.assert_allclose(campaign.learner.observations.x, [[0.75]])
    assert campaign.left_out == {1: "x=0.51"}


def test_failures_count_as_what_they_are():
    study = optuna.create_study(sampler=StoicSampler(seed=0, recipe=phased, search_space=X))
    trial = study.ask(X)
    for kind in ("transient", "transient", "transient"):  # the third in a row is infeasible
        trial.set_user_attr(FAILED, kind)
        study.tell(trial, state=TrialState.FAIL)
        last, trial = trial, study.ask(X)
    assert [t.params for t in study.trials[:3]] == [last.params] * 3
    assert trial.params != last.params
    trial.set_user_attr(FAILED, "infeasible")
    study.tell(trial, state=TrialState.FAIL)
    for _ in range(20):
        other = study.ask(X)
        study.tell(other, value(other.params))
        assert other.params != trial.params


def test_given_parameters_take_what_the_plan_has_there():
    space = {name: MIXED[name] for name in ("kind", "n")}

    def recipe(box):
        return Learner(box.grid(3), recipes.rgp_pe(prior=PRIOR, budget=0.1))

    study = optuna.create_study(sampler=StoicSampler(seed=0, recipe=recipe, search_space=space))
    inner = study.sampler
    study.sampler = PartialFixedSampler({"kind": "u"}, inner)
    counted = []
    for _ in range(8):  # more than the epoch has there
        trial = study.ask(space)
        assert trial.params["kind"] == "u"
        counted.append(study.sampler._base_sampler._synced.asking[trial.number].notes)
        study.tell(trial, 1.0)
    assert counted[0] == {"epoch": 0, "active": 6}
    assert counted[-1] == {}  # nothing is owed there
    study.sampler = inner
    before = stand(inner._synced.learner)
    study.enqueue_trial({"kind": "v"})
    trial = study.ask(space)
    assert trial.params["kind"] == "v"
    assert inner._synced.asking[trial.number].notes["epoch"] == before[0] == 0


def test_a_given_value_off_the_grid_is_taken_for_the_nearest():
    space = {"x": X["x"], "y": X["x"]}

    def recipe(box):
        return Learner(box.grid(5), recipes.rgp_pe(prior=PRIOR, budget=0.1))

    study = optuna.create_study(sampler=StoicSampler(recipe=recipe, search_space=space))
    study.enqueue_trial({"x": 0.3})
    trial = study.ask(space)
    assert trial.params["x"] == 0.3
    assert study.sampler._synced.asking[0].x[0] == 0.75  # 0.5 is nearer than 0
    assert trial.params["y"] in np.linspace(-1.0, 1.0, 5)
    assert study.trials[0].system_attrs[CHOSEN] == trial.params  # so that nobody counts on it
    study.tell(trial, 0.0)
    study.ask(space)
    assert study.sampler._synced.left_out.keys() == {0}


def test_round_by_round_methods_start_on_the_grid_and_stay_there():
    def recipe(box):
        return Learner(box.grid(5), recipes.a2_rcgp_ucb())

    study = optuna.create_study(
        sampler=StoicSampler(seed=0, recipe=recipe, search_space=MIXED, n_startup_trials=6)
    )
    for _ in range(12):
        trial = study.ask(MIXED)
        study.tell(trial, value(trial.params))
    grid = Points(Encoding(MIXED), recipe(Encoding(MIXED).box).domain)
    settings = np.array([grid.encoding.encode(trial.params) for trial in study.trials])
    assert not np.isnan(grid.of(settings)).any()
    assert len(np.unique(settings[:6], axis=0)) >= 5
    assert explain(study, recipe=recipe).left_out == {}


MANY = {
    "a": IntDistribution(1, 10**6),  # no lattice: rounded to whole numbers on its way
    "b": FloatDistribution(0.0, 1e-12, step=1e-14),
    "c": IntDistribution(1, 700, log=True),
    "d": FloatDistribution(1e-300, 1e300, log=True),
    "e": CategoricalDistribution([None, 1, "one"]),
}


@pytest.mark.parametrize("n", [2, 3])
def test_every_point_is_found_again_from_its_parameters(n):
    encoding = Encoding(MANY)
    points = Points(encoding, encoding.box.grid(n))
    grid = points.domain.points
    study = optuna.create_study()
    study.add_trials(
        optuna.create_trial(params=encoding.decode(x), distributions=MANY, value=0.0) for x in grid
    )
    settings = np.array([encoding.encode(trial.params) for trial in study.trials])
    np.testing.assert_array_equal(points.of(settings), grid)
    np.testing.assert_array_equal(points.nearest(settings), grid)
    elsewhere = encoding.encode({**study.trials[0].params, "d": 1.7})
    assert np.isnan(points.of(elsewhere)).all()


def test_a_smaller_box_leaves_out_what_lies_outside():
    def half(box):
        return Learner(Box([0.5], [1.0]), recipes.gp_ucb())

    study = optuna.create_study(sampler=StoicSampler(recipe=half, n_startup_trials=0))
    for x in (-0.5, 0.1, 0.9):
        add(study, {"x": x}, X, x)
    study.enqueue_trial({"x": -1.0})
    study.tell(study.ask(X), 3.0)
    assert study.ask(X).params["x"] >= 0.0
    assert study.sampler._synced.observed == [1, 2]
    assert study.sampler._synced.left_out.keys() == {0, 3}


def ask_with(recipe, space=X, **more):
    study = optuna.create_study(sampler=StoicSampler(recipe=recipe, search_space=space, **more))
    study.ask(space)


def test_what_cannot_be_is_refused():
    aim = {"threshold": 0.5, "tolerance": {"x": 0.1}}
    for match, recipe, space, more in (
        ("grid of 13 points", phased, X, aim),
        ("has 2 coordinates and the search space has 1",
         lambda box: Learner(Box([0, 0], [1, 1]), recipes.gp_ucb()), X, {}),
        ("needs a finite domain", lambda box: Learner(box, recipes.rgp_pe(prior=PRIOR)), X, {}),
        ("21 points of the recipe's grid are only 3 settings",
         lambda box: Learner(Finite(np.linspace(0, 1, 21)), recipes.gp_ucb()),
         {"n": MIXED["n"]}, {}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            ask_with(recipe, space, **more)
    with pytest.raises(RefusalError, match="grid of 13"):
        ask_with(phased, X, **aim)


def test_a_reduction_to_a_linear_bandit_is_explained():
    def recipe(box):
        reduction = recipes.linear_reduction(prior=PRIOR, theory=Theory(horizon=100))
        return Learner(box.grid(7), reduction)

    study = optuna.create_study(sampler=StoicSampler(recipe=recipe, search_space=X))
    for _ in range(12):
        trial = study.ask(X)
        study.tell(trial, value(trial.params))
    known = explain(study, recipe=recipe)
    assert [row.trust for row in known.rows] == [1.0] * 12
    assert known.recommended.params.keys() == {"x"}
