"""A study that several workers share."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import Trial, TrialState, create_trial

from stoic.integrations.optuna import EXECUTED, FAILED, NOISE
from stoic.integrations.optuna.unmodelled import FAILURE
from stoic.refusal import RefusalError
from stoic.tuning import mark
from stoic.tuning.by_hand import tell_number
from stoic.tuning.mark import RUN, new_mark
from stoic.tuning.program import Result
from stoic.tuning.space import Space
from stoic.tuning.storage import open_storage
from stoic.tuning.stored import known_space
from stoic.tuning.study import load_study, open_study
from stoic.tuning.trials import (
    SEAL,
    WORKER,
    claim,
    fail_orphans,
    failure_kinds,
    failures,
    finish,
    record_program,
    record_run,
)
from stoic.tuning.worker import Worker

SPACE: Space = {"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)}
ME = Worker.current()


def sqlite(tmp_path):
    return open_storage(f"sqlite:///{tmp_path}/x.db", create=True)


def journal(tmp_path):
    return open_storage(f"{tmp_path}/x.log", create=True, kind="JournalFileBackend")


def memory(tmp_path):
    return optuna.storages.InMemoryStorage()


@pytest.fixture(params=[sqlite, journal, memory], ids=lambda make: make.__name__)
def study(request, tmp_path) -> optuna.Study:
    return open_study(request.param(tmp_path), "s", "maximize", SPACE, RandomSampler(seed=0))


def dead() -> Worker:
    process = subprocess.Popen(["true"])
    worker = Worker.of(process.pid, ME)
    process.wait()
    return worker


def running(study: optuna.Study, worker: Worker | None = ME) -> Trial:
    trial = claim(study, SPACE, 1000, worker or ME)
    assert trial is not None
    if worker is None:
        trial.storage.set_trial_system_attr(trial._trial_id, WORKER, None)
    return trial


def test_a_claim_numbers_trials_and_names_their_worker(study):
    trials = [claim(study, SPACE, 3, ME) for _ in range(4)]
    assert trials[3] is None
    assert [trial.number for trial in trials[:3]] == [0, 1, 2]
    for stored in study.get_trials():
        assert stored.state == TrialState.RUNNING
        assert Worker.from_record(stored.system_attrs[WORKER]) == ME
        assert stored.params.keys() == SPACE.keys()
        assert stored.distributions == SPACE


def test_queued_trials_come_first_and_keep_their_parameters(study):
    study.enqueue_trial({"x": 0.125, "n": 2})
    trial = claim(study, SPACE, 5, ME)
    assert trial.params == {"x": 0.125, "n": 2}
    assert study.get_trials()[0].system_attrs[WORKER] == ME.record()


def test_a_trial_too_many_goes_back_into_the_queue(study, monkeypatch):
    """Two workers that look at the same time both see room for one."""
    running(study)
    before = study.get_trials()
    monkeypatch.setattr(study, "get_trials", lambda **_: before)  # as the slower one saw it
    assert claim(study, SPACE, 2, ME) is not None
    assert claim(study, SPACE, 2, ME) is None
    monkeypatch.undo()
    assert [trial.state.name for trial in study.get_trials()] == ["RUNNING", "RUNNING", "WAITING"]
    assert study.get_trials()[2].system_attrs[WORKER] is None  # or it would seem abandoned
    later = claim(study, SPACE, 3, ME)
    assert later is not None
    assert later.number == 2
    assert later.params.keys() == SPACE.keys()


@pytest.mark.parametrize("value", [0.25, -math.inf, math.inf, 1e300, -1e300, 5e-324])
def test_a_value_is_stored_as_it_is(study, value):
    trial = running(study)
    stored = finish(study, trial, Result(value, None, "", 0.1))
    assert stored.state == TrialState.COMPLETE
    assert study.get_trials()[0].values == [value]


def test_a_failure_is_stored_with_its_reason_and_without_a_value(study):
    trial = running(study)
    finish(study, trial, Result(None, "exit code 1", "a\nno space left\n", 0.1))
    stored = study.get_trials()[0]
    assert stored.state == TrialState.FAIL
    assert stored.values is None
    assert stored.user_attrs == {FAILURE: "exit code 1", "stderr": "a\nno space left"}
    assert failures(study.get_trials()) == {"exit code 1": [0]}
    assert failure_kinds(study.get_trials()) == {}
    finish(study, running(study), Result(None, "exit code 3", "", 0.1, "infeasible"))
    assert study.get_trials()[1].user_attrs == {FAILURE: "exit code 3", FAILED: "infeasible"}
    assert failure_kinds(study.get_trials()) == {1: "infeasible"}


def test_a_trial_that_somebody_else_ended_is_not_changed(study):
    trial = running(study)
    study.tell(trial.number, state=TrialState.FAIL)
    assert finish(study, trial, Result(3.0, None, "", 0.1)).state == TrialState.FAIL
    assert finish(study, trial, Result(None, "timeout", "", 0.1)).state == TrialState.FAIL
    assert study.get_trials()[0].values is None


def test_only_the_dead_are_buried(study):
    finished = running(study, dead())
    finish(study, finished, Result(1.0, None, "", 0.1))
    lost = running(study, dead())
    kept = [running(study, worker) for worker in (ME, replace(ME, host="elsewhere//"), None)]
    assert fail_orphans(study) == [lost.number]
    assert fail_orphans(study) == []
    stored = study.get_trials()
    assert stored[finished.number].values == [1.0]
    assert stored[lost.number].state == TrialState.FAIL
    assert stored[lost.number].user_attrs[FAILURE] == "its worker died"
    assert failure_kinds(stored) == {lost.number: "transient"}
    assert all(stored[trial.number].state == TrialState.RUNNING for trial in kept)


@contextmanager
def sleeping(mark: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, with a mark in its environment or without one."""
    environment = {name: value for name, value in os.environ.items() if name != RUN}
    if mark is not None:
        environment[RUN] = mark
    process = subprocess.Popen(["sleep", "300"], start_new_session=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@needs_proc
def test_what_a_dead_worker_left_running_is_stopped_in_whichever_session(study):
    worker, own = dead(), new_mark()
    trial = running(study, worker)
    record_run(trial, own, worker)
    with sleeping(own) as program, sleeping(f"{own} {new_mark()}") as inner:
        assert fail_orphans(study) == [trial.number]
        assert program.wait(timeout=30) == -signal.SIGKILL
        assert inner.wait(timeout=30) == -signal.SIGKILL


def test_no_process_is_stopped_because_a_storage_names_it(study):
    """Numbers, start times and hosts of processes are there for everybody to see."""
    trial = running(study, dead())
    with sleeping() as other, sleeping(new_mark()) as of_another_run:
        for process in (other, of_another_run):
            record_program(trial, process.pid, ME)
            assert fail_orphans(study) == [trial.number]
            assert process.poll() is None
            trial = running(study, dead())


@needs_proc
def test_a_copied_record_stops_nothing(study):
    """Whoever writes to a storage may have read that of another study, whose run goes on."""
    worker, own = dead(), new_mark()
    theirs, forged, known = (running(study, each) for each in (ME, worker, worker))
    record_run(theirs, own, ME)
    copied = study.get_trials()[theirs.number].system_attrs[SEAL]
    assert own not in str(study.get_trials()[theirs.number].system_attrs)
    for value in (copied, own, "", None, [copied], {}):
        forged.storage.set_trial_system_attr(forged._trial_id, SEAL, value)
        known.storage.set_trial_system_attr(known._trial_id, SEAL, value)
        with sleeping(own) as program:
            fail_orphans(study)
            assert program.poll() is None
        forged, known = (running(study, worker) for _ in range(2))


@needs_proc
def test_a_number_that_has_become_another_process_is_not_stopped(monkeypatch):
    with sleeping() as other:
        monkeypatch.setattr(mark, "_processes", lambda: [other.pid])
        looks = iter([["ours"]])  # once it was ours; when its handle is held, it is not
        monkeypatch.setattr(mark, "_marks", lambda pid: next(looks, []))
        mark.kill_marked(lambda found: found == "ours")
        assert other.poll() is None


def test_where_nothing_is_to_be_seen_it_is_left_alone_and_said_so(study, monkeypatch, caplog):
    monkeypatch.setattr("stoic.tuning.trials.visible", lambda: False)
    worker, own = dead(), new_mark()
    trial = running(study, worker)
    record_run(trial, own, worker)
    with sleeping(own) as program:
        record_program(trial, program.pid, ME)
        assert fail_orphans(study) == [trial.number]
        assert program.poll() is None
        assert f"process {program.pid}" in caplog.text
        assert "stop it yourself" in caplog.text


@pytest.mark.parametrize("make", [sqlite, journal])
def test_a_study_is_taken_up_only_as_what_it_is(make, tmp_path):
    sampler = RandomSampler()
    open_study(make(tmp_path), "s", "maximize", SPACE, sampler, ("run", "{x}"))
    again = open_study(make(tmp_path), "s", "maximize", dict(reversed(SPACE.items())), sampler)
    assert known_space(again) == SPACE
    with pytest.raises(RefusalError, match="is to maximize, not to minimize"):
        open_study(make(tmp_path), "s", "minimize", SPACE, sampler)
    wider = SPACE | {"x": FloatDistribution(0, 2)}
    for other in (wider, {"x": SPACE["x"]}, SPACE | {"y": SPACE["x"]}):
        with pytest.raises(RefusalError, match="another search space"):
            open_study(make(tmp_path), "s", "maximize", other, sampler)


def test_a_study_made_by_optuna_is_known_by_its_trials(tmp_path):
    storage = sqlite(tmp_path)
    theirs = optuna.create_study(storage=storage, study_name="s")
    assert known_space(theirs) is None
    theirs.add_trial(create_trial(value=1, params={"x": 0.5}, distributions={"x": SPACE["x"]}))
    with pytest.raises(RefusalError, match="it has no 'n'"):
        open_study(storage, "s", "minimize", SPACE, RandomSampler())
    open_study(storage, "s", "minimize", {"x": SPACE["x"]}, RandomSampler())


def test_other_objectives_and_too_many_are_refused(tmp_path):
    storage = sqlite(tmp_path)
    optuna.create_study(storage=storage, study_name="two", directions=["minimize", "maximize"])
    with pytest.raises(RefusalError, match="is to minimize objective 0 and maximize objective 1"):
        open_study(storage, "two", "minimize", SPACE, RandomSampler())
    assert len(load_study(storage, "two").directions) == 2
    optuna.create_study(storage=storage, study_name="four", directions=["minimize"] * 4)
    with pytest.raises(RefusalError, match="4 objectives, and at most 3"):
        load_study(storage, "four")


def test_the_only_study_needs_no_name(tmp_path):
    storage = sqlite(tmp_path)
    with pytest.raises(RefusalError, match="holds no study"):
        load_study(storage, None)
    optuna.create_study(storage=storage, study_name="a")
    assert load_study(storage, None).study_name == "a"
    optuna.create_study(storage=storage, study_name="b")
    with pytest.raises(RefusalError, match=r"2 studies \(a, b\)"):
        load_study(storage, None)
    with pytest.raises(RefusalError, match="no study 'c' in the storage; it holds a, b"):
        load_study(storage, "c")


def test_what_is_refused_leaves_no_note(study):
    number = running(study).number
    with pytest.raises(RefusalError, match="nosuch"):
        tell_number(study, number, 0.5, None, False, executed=["nosuch=1"], censored=True)
    with pytest.raises(RefusalError, match="does not go with"):
        tell_number(study, number, 0.5, None, False, kind="bad")
    for value, state in ((0.5, "fail"), (0.5, "pruned"), (math.nan, "complete")):
        with pytest.raises(RefusalError, match="does not go with the state"):
            tell_number(study, number, value, state, False, noise=0.01)
    assert study.trials[number].user_attrs == {}
    assert tell_number(study, number, 0.4, None, False).state == TrialState.COMPLETE


def test_telling_by_number(study):
    numbers = [running(study).number for _ in range(4)]
    assert tell_number(study, numbers[0], 2.5, None, False).value == 2.5
    assert tell_number(study, numbers[1], math.nan, None, False).state == TrialState.FAIL
    assert tell_number(study, numbers[2], None, "fail", False).state == TrialState.FAIL
    assert tell_number(study, numbers[3], math.inf, "complete", False).value == math.inf
    assert tell_number(study, numbers[0], 9.0, None, True).value == 2.5
    for number, value, state in (
        (99, 1.0, None),
        (numbers[0], 9.0, None),
        (running(study).number, None, "complete"),
        (running(study).number, 1.0, "fail"),
        (running(study).number, math.nan, "complete"),
    ):
        with pytest.raises(RefusalError, match=f"Cannot tell trial {number}"):
            tell_number(study, number, value, state, False)


def test_telling_a_kind_of_failure(study):
    numbers = [running(study).number for _ in range(4)]
    ways = ((None, None), (math.nan, None), (None, "fail"))
    for number, (value, state) in zip(numbers[:3], ways, strict=True):
        told = tell_number(study, number, value, state, False, "infeasible")
        assert told.state == TrialState.FAIL
    assert failure_kinds(study.get_trials()) == dict.fromkeys(numbers[:3], "infeasible")
    for value, state, said in (
        (1.0, None, "does not go with the value 1.0"),
        (1.0, "fail", "does not go with the value 1.0"),
        (None, "complete", "does not go with the state complete"),
        (None, "pruned", "does not go with the state pruned"),
    ):
        with pytest.raises(RefusalError, match=said):
            tell_number(study, numbers[3], value, state, False, "bad")
    tell_number(study, numbers[3], 2.0, None, False)
    assert tell_number(study, numbers[3], None, None, True, "bad").value == 2.0
    study.enqueue_trial({"x": 0.5})
    for number in (numbers[3], numbers[3] + 1, 99):  # has ended, has not begun, is not there
        with pytest.raises(RefusalError, match=f"Cannot tell trial {number}"):
            tell_number(study, number, None, None, False, "bad")
    assert all(FAILED not in trial.user_attrs for trial in study.get_trials()[3:])


def test_what_stands_beside_a_value_is_stored_before_it_is_told(study):
    result = Result(1.5, None, "", 0.1, None, {"x": 0.3}, 0.25)
    told = finish(study, running(study), result)
    assert (told.value, told.user_attrs[EXECUTED], told.user_attrs[NOISE]) == (
        1.5,
        {"x": 0.3},
        0.25,
    )
    failed = finish(study, running(study), Result(None, "exit code 3", "", 0.1, None, {"x": 0.4}))
    assert failed.user_attrs[EXECUTED] == {"x": 0.4}
    assert NOISE not in failed.user_attrs
    # Somebody else was quicker: what was stored stays.
    late = running(study)
    study.tell(late.number, 2.0)
    assert EXECUTED not in finish(study, late, result).user_attrs


def test_a_claimed_trial_has_what_is_fixed(study):
    trial = claim(study, SPACE, 9, ME, {"x": 0.25})
    assert trial.params["x"] == 0.25
    study.enqueue_trial({"x": 0.75})
    assert claim(study, SPACE, 9, ME, {"x": 0.25}).params["x"] == 0.75  # it has its own


def test_telling_what_was_executed(study):
    for _ in range(3):
        study.ask(SPACE)
    told = tell_number(study, 0, 1.0, None, False, None, ["x=0.5"], 0.04)
    assert told.user_attrs == {EXECUTED: {"x": 0.5}, NOISE: 0.04}
    for wrong, reason in (
        (["x=7"], "outside of its range, 0 to 1"),
        (["x=hot"], "a finite number is needed"),
        (["y=1"], "There is no parameter 'y'"),
        (["x"], "not NAME=VALUE"),
    ):
        with pytest.raises(RefusalError, match=reason):
            tell_number(study, 1, 1.0, None, False, None, wrong)
    assert study.trials[1].state == TrialState.RUNNING
    assert EXECUTED not in study.trials[1].user_attrs
    with pytest.raises(RefusalError, match="no parameter 'x'"):
        tell_number(study, 7, 1.0, None, False, None, ["x=0.5"])
