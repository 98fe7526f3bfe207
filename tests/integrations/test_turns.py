"""Turns of workers on one study, with a clock that the test moves."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution

from stoic.integrations.optuna import StoicSampler, turns
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.turns import Turns, announce
from stoic.integrations.recipe import DEFAULT

SPACE = {"x": FloatDistribution(0.0, 1.0)}


class Others:
    """A study whose trials choose one after the other, while somebody waits for them."""

    def __init__(self, monkeypatch, count, seconds, dead=()):
        self.study = optuna.create_study()
        self.trials = [
            self.study._storage.create_new_trial(self.study._study_id) for _ in range(count)
        ]
        self.left = [number for number in range(count) if number not in dead]
        self.seconds, self.now, self.looks, self.chosen_at = seconds, 0.0, 0, 0.0
        monkeypatch.setattr(turns.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(turns.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds
        self.looks += 1
        while self.left and self.now >= self.chosen_at + self.seconds:
            number = self.left.pop(0)
            self.chosen_at += self.seconds
            announce(self.study, self.study.get_trials()[number], {"x": 0.5}, SPACE)

    def wait(self, turn=None):
        newest = self.study.get_trials()[-1]
        self.prepared_at = []
        prepared = (turn or Turns()).wait(
            self.study, newest, lambda: self.prepared_at.append(len(self.left))
        )
        assert prepared is bool(self.prepared_at)
        return self.now


def test_nobody_waits_alone(monkeypatch):
    others = Others(monkeypatch, 1, 1.0)
    assert others.wait() == others.looks == 0
    assert others.prepared_at == []


def test_a_row_that_moves_is_waited_for_however_long_it_takes(monkeypatch):
    others = Others(monkeypatch, 65, 0.3)  # 64 before the one that waits
    others.left.remove(64)
    assert others.wait() == pytest.approx(64 * 0.3, abs=0.1)
    assert not others.left
    assert others.looks < 64 * 0.3 / 0.1  # and not each hundredth of a second
    assert others.prepared_at == [64, 8]


def test_the_dead_are_waited_for_once_and_cost_no_more_than_two_of_them(monkeypatch):
    others = Others(monkeypatch, 10, 1.0, dead=range(10))
    turn = Turns()
    assert 5.0 < others.wait(turn) < 10.0 + 9 * 0.25
    now = others.now
    assert others.wait(turn) == now


def test_who_is_behind_a_dead_one_is_not_taken_for_dead(monkeypatch):
    others = Others(monkeypatch, 4, 1.0, dead=(0, 3))
    others.chosen_at = 5.5  # 1 and 2 wait for 0 as well
    assert others.wait() == pytest.approx(5.5 + 2 * 1.0, abs=0.3)
    assert not others.left


def test_what_ended_since_the_model_was_prepared_is_pending_for_it():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=3))
    study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2, n_trials=8)
    synced = SyncedLearner(study, SPACE, DEFAULT)
    synced.prepare(study.trials)
    assert len(synced.observed) == 8
    for y in (-1e3, 1e3):  # whatever came out, and near to where the search would go
        study.enqueue_trial({"x": 0.3})
        study.tell(study.ask(SPACE), y)
    rng = np.random.default_rng(0)
    choice = synced.ask(study.trials, 10, {}, rng, prepared=True)
    assert len(synced.observed) == 8
    assert abs(choice.x[0] - 0.3) > 1e-3
    synced.ask(study.trials, 10, {}, rng)
    assert len(synced.observed) == 10
    anew = SyncedLearner(study, SPACE, DEFAULT)  # was prepared for another space, say
    anew.ask(study.trials, 10, {}, rng, prepared=True)
    assert len(anew.observed) == 10
