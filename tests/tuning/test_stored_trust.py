"""Trust of each trial, in attributes of the study."""

from __future__ import annotations

import json
import logging
import math

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages.journal import JournalFileBackend

from stoic.integrations.optuna import Explanation, Row
from stoic.tuning.campaign import Observer, Stop, run
from stoic.tuning.explaining import TrustRecorder
from stoic.tuning.program import Result
from stoic.tuning.search import Search, StudyMethod
from stoic.tuning.space import parse_space
from stoic.tuning.study import open_study


def all_trusted(trust: list[float]) -> Explanation:
    rows = tuple(Row(number, 0.0, 0.0, 1.0, each) for number, each in enumerate(trust))
    return Explanation(None, None, 0.0, 0.0, {}, 0.0, rows)


def test_only_what_has_changed_is_written(monkeypatch):
    study = optuna.create_study()
    written = []
    write = study.set_user_attr
    monkeypatch.setattr(
        study, "set_user_attr", lambda name, value: (written.append(name), write(name, value))
    )
    believed, trust = TrustRecorder(study), [1.0] * 450
    believed.record(all_trusted(trust))
    assert written == ["stoic:trust:0-199", "stoic:trust:200-399", "stoic:trust:400-599"]
    held = study.user_attrs
    assert sum(len(held[name]) for name in written) == 450
    assert set(held["stoic:trust:200-399"]) == {str(number) for number in range(200, 400)}
    written.clear()
    believed.record(all_trusted(trust))
    assert written == []
    trust[7] = 0.996  # which nobody would see
    believed.record(all_trusted(trust))
    assert written == []
    trust[203] = 0.123456
    believed.record(all_trusted(trust))
    assert written == ["stoic:trust:200-399"]
    assert study.user_attrs["stoic:trust:200-399"]["203"] == 0.123
    written.clear()
    TrustRecorder(study).record(all_trusted([*trust, 1.0]))  # another worker has one trial more
    assert written == ["stoic:trust:400-599"]
    assert study.user_attrs["stoic:trust:400-599"]["450"] == 1.0
    study.set_user_attr("stoic:trust:400-599", "something else")
    written.clear()
    believed.record(all_trusted(trust))
    assert written == ["stoic:trust:400-599"]
    for name in study.user_attrs:
        assert len(json.dumps(study.user_attrs[name])) < 4_000


def test_a_long_campaign_writes_little(tmp_path):
    """The journal of 500 trials: with all of it after every trial it would be 1.8 MB."""
    path = tmp_path / "journal"
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    )
    believed = TrustRecorder(study)
    for n in range(1, 501):
        believed.record(all_trusted([1.0] * n))
    assert path.stat().st_size < 0.9e6


@pytest.mark.parametrize(
    "error", [StorageInternalError("data too long"), TypeError("no JSON"), ValueError("no space")]
)
def test_a_record_that_cannot_be_written_ends_nothing(monkeypatch, caplog, error):
    space = parse_space({"x": "float(0, 1)"})
    storage, sampler = optuna.storages.InMemoryStorage(), optuna.samplers.RandomSampler(seed=0)
    study = open_study(storage, "s", "minimize", space, sampler)
    known = []

    class LeaveOneOutGP(Observer):
        def ended(self, trial, result, explain):
            known.append(explain())

    def refuse(study_id, key, value):
        raise error

    monkeypatch.setattr(storage, "set_study_user_attr", refuse)
    # However slow the machine is: every trial is explained
    monkeypatch.setattr("stoic.tuning.explaining._QUICK", math.inf)
    with caplog.at_level(logging.WARNING, logger="stoic"):
        run(
            study,
            Search(space=space, trials=5),
            lambda trial, repeat: Result(trial.params["x"], None, "", 0.0),
            LeaveOneOutGP(),
            Stop(),
            StudyMethod(),
        )
    assert [trial.value for trial in study.trials] == [t.params["x"] for t in study.trials]
    assert [len(each.rows) for each in known] == [1, 2, 3, 4, 5]
    [said] = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert str(error) in said
    assert "results are not affected" in said
