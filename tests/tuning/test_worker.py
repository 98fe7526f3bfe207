"""Who runs a trial, and whether it is alive."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from dataclasses import replace

import pytest

from stoic.tuning.worker import Worker, _started


def test_we_are_alive_and_survive_being_recorded():
    me = Worker.current()
    assert me.pid == os.getpid()
    assert me.alive is True
    assert Worker.from_record(json.loads(json.dumps(me.record()))) == me


def test_a_process_that_has_ended_is_dead_also_while_it_is_a_corpse():
    process = subprocess.Popen(["sleep", "300"])
    worker = Worker.of(process.pid, Worker.current())
    assert worker.alive is True
    process.kill()
    until = time.monotonic() + 60
    while worker.alive and time.monotonic() < until:  # not waited for: it stays a corpse
        time.sleep(0.01)
    assert worker.alive is False
    process.wait()
    assert worker.alive is False


def test_another_process_with_our_number_is_not_us():
    me = Worker.current()
    assert replace(me, started="0").alive is False
    assert replace(me, started="").alive is False
    assert replace(me, boot="another").alive is False
    assert replace(me, host="elsewhere//").alive is None


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_without_proc_a_worker_is_the_same_in_another_time_zone(monkeypatch):
    monkeypatch.setattr("stoic.tuning.worker._content", lambda path: "")
    monkeypatch.setattr("os.path.exists", lambda path: False)
    started = []
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        monkeypatch.setenv("TZ", zone)
        started.append(_started(os.getpid()))
    assert started[0]
    assert started == started[:1] * 3


def test_where_no_process_is_seen_nobody_is_dead(monkeypatch):
    monkeypatch.setattr("stoic.tuning.worker._started", lambda pid: "")
    assert Worker.current().alive is None


@pytest.mark.parametrize("record", [None, 3, "x", [], {}, {"host": "a", "boot": "", "pid": "x"}])
def test_what_is_no_record_is_nobody(record):
    assert Worker.from_record(record) is None


def test_a_worker_is_named_for_people():
    assert str(Worker("there/id/ns", "", 7, "1")) == "process 7 on there"
