"""What trackers of experiments are given: recommendation, trust and failures of a study."""

from __future__ import annotations

import json
import logging
import math
import warnings

import optuna
import pytest

import stoic
from offline_wandb import isolated, logged
from stoic.integrations.tracking import COLUMNS, Tracker, snapshot

LIE, CRASH, INFEASIBLE = 8, 5, 6


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.suggest_categorical("kind", ["a", "b"])
    if trial.number == CRASH:
        return math.nan
    if trial.number == INFEASIBLE:
        trial.set_user_attr("stoic:failed", "infeasible")
        trial.set_user_attr("failure", "the parts collide")
        return math.nan
    return -1e6 if trial.number == LIE else (x - 0.3) ** 2


def played(*callbacks, n_trials=16):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=n_trials, callbacks=[*callbacks])
    return study


class Kept(Tracker):
    """A tracker that keeps what it is given."""

    def __init__(self, every=1, broken=()):
        super().__init__(every)
        self.taken, self.broken, self.ended = [], broken, None

    def write(self, taken):
        if taken.number in self.broken:
            raise OSError("the server is away")
        self.taken.append(taken)

    def finish(self, failed):
        self.ended = failed


def test_a_snapshot_has_recommendation_trust_and_failures():
    study = played()
    taken = snapshot(study, study.trials[-1])
    assert taken.number == 15
    expected = {"observed_best": -1e6, "failed": 2, "failed_infeasible": 1, "failed_transient": 0}
    assert expected.items() <= taken.metrics.items()
    assert taken.metrics["distrusted"] == 1
    assert abs(taken.metrics["recommended_mean"]) < 0.1
    assert taken.metrics["recommended_trial"] != LIE
    assert taken.recommended.keys() == {"x", "kind"}
    table = [dict(zip(COLUMNS, row, strict=True)) for row in taken.rows]
    assert [row["number"] for row in table] == list(range(16))
    assert table[LIE]["trust"] < 0.01
    assert table[CRASH]["state"] == "fail"
    assert table[CRASH]["failed"] is table[CRASH]["value"] is None
    assert table[INFEASIBLE]["failed"] == "infeasible"
    assert table[INFEASIBLE]["reason"] == "the parts collide"


def test_several_objectives_have_a_row_each():
    def two(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return (-1e6 if trial.number == LIE else (x - 0.3) ** 2), (x - 0.6) ** 2

    tracker = Kept()
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=optuna.samplers.RandomSampler(seed=1)
    )
    study.set_metric_names(["loss", "size"])
    study.optimize(two, n_trials=16, callbacks=[tracker])
    taken, last = tracker.taken[-1], study.trials[-1]
    expected = {"value.loss": last.values[0], "value.size": last.values[1], "distrusted": 1.0}
    assert expected.items() <= taken.metrics.items()
    assert taken.metrics["trust.loss"] > 0.9
    assert taken.metrics["recommended_front"] >= 2.0
    assert taken.recommended == {}
    table = [dict(zip(taken.columns, row, strict=True)) for row in taken.rows]
    assert [(row["number"], row["objective"]) for row in table[:3]] == [
        (0, "loss"), (0, "size"), (1, "loss"),
    ]  # fmt: skip
    assert table[2 * LIE]["trust"] < 0.01 < table[2 * LIE + 1]["trust"]


def test_an_infinite_value_is_no_metric():
    study = optuna.create_study()
    study.optimize(lambda trial: math.inf * (1 + trial.suggest_int("n", 0, 3)), n_trials=1)
    taken = snapshot(study, study.trials[0])
    assert all(math.isfinite(value) for value in taken.metrics.values())
    assert "value" not in taken.metrics
    assert taken.rows[0][COLUMNS.index("value")] is None


def test_snapshots_are_taken_every_few_trials_and_at_the_end():
    with Kept(every=6) as tracker:
        played(tracker)
    assert [taken.number for taken in tracker.taken] == [5, 11, 15]
    assert tracker.ended is False


def test_no_trial_of_several_threads_is_left_out():
    tracker = Kept()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(
        lambda trial: trial.suggest_float("x", 0.0, 1.0), 8, n_jobs=4, callbacks=[tracker]
    )
    assert sorted(taken.number for taken in tracker.taken) == list(range(8))


def test_a_tracker_that_is_away_ends_no_study(caplog):
    tracker = Kept(broken=(3, 4))
    with caplog.at_level(logging.WARNING, "stoic"):
        study = played(tracker, n_trials=8)
    assert len(study.trials) == 8
    assert [taken.number for taken in tracker.taken] == [0, 1, 2, 5, 6, 7]
    assert "Trial 3 could not be logged: OSError: the server is away" in caplog.messages


def test_a_tracker_knows_that_the_study_ended_with_an_error():
    tracker = Kept()
    with pytest.raises(ZeroDivisionError), tracker:
        raise ZeroDivisionError
    assert tracker.ended is True


def test_every_is_a_count():
    with pytest.raises(ValueError, match="every must be at least 1 trial, got 0"):
        Kept(every=0)


def test_a_tracker_is_a_callback_of_tune_too():
    tracker = Kept()
    found = stoic.tune(lambda p: p["x"] ** 2, {"x": "float(0, 1)"}, n_trials=4, callback=tracker)
    assert [taken.number for taken in tracker.taken] == [0, 1, 2, 3]
    assert tracker.taken[-1].recommended == found.x


@pytest.fixture
def store(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        pytest.importorskip("mlflow", reason="pip install 'stoic[mlflow]'")
    warnings.simplefilter("ignore")  # its file store announces its end
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "store").as_uri()


@pytest.mark.long  # a file for each metric
def test_mlflow_s_file_store_holds_it(store):
    from mlflow.tracking import MlflowClient

    from stoic.integrations.mlflow import MLflowCallback

    with MLflowCallback(store, experiment="robot", run_name="first") as tracker:
        study = played(tracker)
    client = MlflowClient(store)
    run = client.get_run(tracker.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "first"
    assert client.get_experiment_by_name("robot").experiment_id == run.info.experiment_id
    history = client.get_metric_history(tracker.run_id, "stoic.value")
    values = {entry.step: entry.value for entry in history}
    assert values == {t.number: t.value for t in study.trials if t.value is not None}
    trust = client.get_metric_history(tracker.run_id, "stoic.trust")
    assert {entry.step: entry.value < 0.5 for entry in trust}[LIE]
    assert run.data.metrics["stoic.failed"] == 2.0
    assert abs(run.data.metrics["stoic.recommended_mean"]) < 0.1
    taken = snapshot(study, study.trials[-1])
    assert run.data.tags["stoic.recommended.x"] == str(taken.recommended["x"])
    path = client.download_artifacts(tracker.run_id, "stoic/trials.json")
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    assert table["columns"] == list(COLUMNS)
    assert table["data"] == [list(row) for row in taken.rows]


def test_mlflow_takes_any_name_of_a_parameter(store):
    from mlflow.tracking import MlflowClient

    from stoic.integrations.mlflow import MLflowCallback

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    with MLflowCallback(store) as tracker:
        study.optimize(lambda t: t.suggest_float("layers[0]", 0.0, 1.0), 3, callbacks=[tracker])
    run = MlflowClient(store).get_run(tracker.run_id)
    assert float(run.data.tags["stoic.recommended.layers_0_"]) == study.best_params["layers[0]"]


def test_mlflow_goes_on_with_a_run(store):
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    from stoic.integrations.mlflow import MLflowCallback

    client = MlflowClient(store)
    run_id = client.create_run(client.create_experiment("mine")).info.run_id
    with MLflowCallback(store, run_id=run_id) as tracker:
        played(tracker, n_trials=3)
    assert client.get_run(run_id).info.status == "RUNNING"  # it is not ours to end
    assert "stoic.value" in client.get_run(run_id).data.metrics
    with pytest.raises(MlflowException):
        MLflowCallback(store, run_id="0" * 32)
    with pytest.raises(ValueError, match="leave out experiment and run_name"):
        MLflowCallback(store, run_id=run_id, run_name="second")


offline = pytest.fixture(isolated)


@pytest.mark.long  # starts a process of its own
def test_an_offline_run_of_wandb_holds_it(offline, tmp_path):
    from stoic.integrations.wandb import WandbCallback

    with WandbCallback(project="robot", mode="offline") as tracker:
        study = played(tracker)
    offline.teardown()  # its own process has written everything then
    (path,) = (tmp_path / "DIR").rglob("*.wandb")
    _, history, summary = logged(path)
    values = {row["stoic/trial"]: row["stoic/value"] for row in history if "stoic/value" in row}
    assert values == {t.number: t.value for t in study.trials if t.value is not None}
    assert {row["stoic/trial"]: row["stoic/trust"] for row in history if "stoic/trust" in row}[
        LIE
    ] < 0.5
    last = [row for row in history if "stoic/failed" in row][-1]
    assert last["stoic/failed"] == 2
    assert abs(last["stoic/recommended_mean"]) < 0.1
    assert summary["stoic/recommended"] == snapshot(study, study.trials[-1]).recommended
    (table,) = (tmp_path / "DIR").rglob("*.table.json")
    table = json.loads(table.read_text(encoding="utf-8"))
    assert table["columns"] == list(COLUMNS)
    assert [row[0] for row in table["data"]] == list(range(16))


def test_wandb_takes_a_run_or_arguments_of_one(offline):
    from stoic.integrations.wandb import WandbCallback

    with pytest.raises(ValueError, match="project would be for a new run"):
        WandbCallback(object(), project="robot")
