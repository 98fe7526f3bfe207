"""Turns of workers on one study, with a clock that the test moves."""

from __future__ import annotations

import heapq
import threading

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution

from stoic.integrations.optuna import StoicSampler, turns
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.turns import CHOSEN, Turns, announce
from stoic.integrations.recipe import DEFAULT

SPACE = {"x": FloatDistribution(0.0, 1.0)}


def parabola(trial):
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2


class Clock:
    """Time of several threads, of which one runs while the others sleep."""

    def __init__(self, monkeypatch):
        self.now, self.asleep, self.turn = 0.0, [], None
        self.changed = threading.Condition()
        monkeypatch.setattr(turns.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(turns.time, "sleep", self.sleep)

    def sleep(self, seconds):
        me = threading.get_ident()
        with self.changed:
            heapq.heappush(self.asleep, (self.now + seconds, len(self.asleep), me))
            self.wake()
            self.changed.wait_for(lambda: self.turn == me)

    def wake(self):
        self.turn = None
        if self.asleep:
            then, _, self.turn = heapq.heappop(self.asleep)
            self.now = max(self.now, then)
        self.changed.notify_all()


def choose(monkeypatch, count, dead=(), seconds=0.3, prepare=0.0):
    """Let the trials choose, each by a worker of its own; when they did, and who saw whom."""
    clock, study = Clock(monkeypatch), optuna.create_study()
    for _ in range(count):
        study._storage.create_new_trial(study._study_id)
    living = [number for number in range(count) if number not in dead]
    chosen_at, unseen, prepared = {}, [], {number: [] for number in living}

    def work(number):
        clock.sleep(1e-6 * number)
        trial = study.get_trials()[number]

        def prepared_now():
            prepared[number].append(len(living) - len(chosen_at))
            clock.sleep(prepare)

        Turns().wait(study, trial, prepared_now)
        known = [t.number for t in study.get_trials() if CHOSEN in t.system_attrs]
        unseen.extend(other for other in living if other < number and other not in known)
        clock.sleep(seconds)
        announce(study, trial, {"x": 0.5}, SPACE)
        chosen_at[number] = clock.now
        with clock.changed:
            clock.wake()

    workers = [threading.Thread(target=work, args=(number,)) for number in living]
    hold, clock.wake = clock.wake, lambda: None
    for worker in workers:
        worker.start()
    while len(clock.asleep) < len(workers):
        pass
    clock.wake = hold
    with clock.changed:
        clock.wake()
    for worker in workers:
        worker.join()
    return chosen_at, unseen, prepared


def test_nobody_waits_alone(monkeypatch):
    chosen_at, _, prepared = choose(monkeypatch, 1)
    assert chosen_at == {0: 0.3}
    assert prepared == {0: []}


def test_a_row_that_moves_is_waited_for_however_long_it_takes(monkeypatch):
    chosen_at, unseen, prepared = choose(monkeypatch, 40)
    assert list(chosen_at) == list(range(40))
    assert not unseen
    assert chosen_at[39] == pytest.approx(40 * 0.3, rel=0.2)
    assert prepared[39][0] == 40
    assert prepared[39][1] <= 9  # and once more, when few are left before it


@pytest.mark.parametrize(
    ("dead", "seconds", "prepare", "longest"),
    [((0,), 0.3, 0.0, 10.0), ((0, 5, 6), 0.3, 0.2, 18.0), ((0, 1, 2), 1.0, 0.0, 23.0)],
)
def test_nobody_that_lives_is_taken_for_dead(monkeypatch, dead, seconds, prepare, longest):
    chosen_at, unseen, _ = choose(monkeypatch, 12 + len(dead), dead, seconds, prepare)
    assert list(chosen_at) == sorted(chosen_at)
    assert not unseen
    assert 5.0 < max(chosen_at.values()) < longest


def test_the_dead_are_waited_for_once_in_a_study(monkeypatch):
    monkeypatch.setattr(turns, "_LONGEST", 0.1)
    study = optuna.create_study()
    for _ in range(10):
        study._storage.create_new_trial(study._study_id)
    begun = turns.time.monotonic()
    Turns().wait(study, study.get_trials()[-1], lambda: None)
    waited = turns.time.monotonic() - begun
    assert 9 * 0.1 < waited < 9 * 0.1 + 2.0
    monkeypatch.setattr(turns.time, "sleep", None)  # which another worker does not need
    assert not Turns().wait(study, study.get_trials()[-1], lambda: None)


def test_what_ended_since_the_model_was_prepared_is_pending_for_it():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=3))
    study.optimize(parabola, n_trials=8)
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


def test_much_that_ended_since_is_no_longer_left_out():
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=30))
    study.optimize(parabola, n_trials=5)
    synced = SyncedLearner(study, SPACE, DEFAULT)
    synced.prepare(study.trials)
    study.optimize(parabola, n_trials=20)
    synced.ask(study.trials, 25, {}, np.random.default_rng(0), prepared=True)
    assert len(synced.observed) == 25


def test_trials_of_the_same_thread_are_not_waited_for(monkeypatch):
    """It could not choose their parameters meanwhile, in whatever order they are asked for."""

    def never(_):
        raise AssertionError

    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=4))
    study.optimize(parabola, n_trials=4)
    monkeypatch.setattr(turns.time, "sleep", never)
    trials = [study.ask() for _ in range(5)]
    study.optimize(parabola, n_trials=1)
    for trial in reversed(trials):
        study.tell(trial, parabola(trial))
    assert len({trial.params["x"] for trial in study.trials}) == 10
    assert not study.sampler._turns._begun


def test_a_point_of_the_design_waits_for_nobody(monkeypatch):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(parabola, n_trials=2)
    study._storage.create_new_trial(study._study_id)  # of a worker that is slow, or dead
    monkeypatch.setattr(Turns, "wait", None)
    study.optimize(parabola, n_trials=3)
    assert len({trial.params.get("x") for trial in study.trials}) == 6


def test_who_is_given_up_is_named(monkeypatch, caplog):
    choose(monkeypatch, 3, dead=[1])
    (record,) = caplog.records
    assert "Trial 1 " in record.message
