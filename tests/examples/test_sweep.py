"""The example for sweeps of Weights & Biases: each trial is a run; no wrong one is recommended."""

from __future__ import annotations

import json
import os

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from offline_wandb import isolated, logged
from pages import ROOT
from scripts import load
from stoic.integrations.optuna import StoicSampler, explain

SCRIPT = ROOT / "examples/wandb/sweep.py"
METRIC = {"name": "loss", "goal": "minimize"}

offline = pytest.fixture(isolated)


@pytest.fixture
def sweep(offline, monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return load(SCRIPT)


def runs(offline, tmp_path):
    """Settings, history and summary of each run, in order."""
    offline.teardown()  # its own process has written everything then
    found = [logged(path) for path in (tmp_path / "DIR").rglob("*.wandb")]
    return sorted(found, key=lambda each: each[0].start_time.ToNanoseconds())


def config_of(run):
    return {item.key: json.loads(item.value_json) for item in run.config.update}


def test_each_trial_of_a_sweep_is_a_run(sweep, offline, tmp_path):
    study, found = sweep.main()
    assert [trial.number for trial in study.trials if trial.state == TrialState.FAIL] == [4]
    assert study.trials[4].user_attrs["failure"] == "MemoryError: the batch is too large"
    assert study.best_value == -1e3
    # The others are right, one where the function is steep: it was distrusted, too, until results
    # over orders of magnitude were compressed
    assert {row.number for row in found.rows if row.trust < 0.5} == {7, 13}
    assert found.recommended.params["layers"] in (2, 3, 4)
    assert 1e-4 < found.recommended.params["lr"] < 1e-2
    *of_trials, (run, _, last) = runs(offline, tmp_path)
    for (each, history, summary), trial in zip(of_trials, study.trials, strict=True):
        assert each.run_group == "robot"
        assert config_of(each).items() >= trial.params.items()
        assert summary.get("loss") == trial.value
        assert len(history) == (0 if trial.number == 4 else 3)
    assert run.run_group == "robot"
    assert last["stoic/recommended"] == found.recommended.params
    assert last["stoic/failed"] == 1
    assert not any("SWEEP" in name or "GROUP" in name for name in os.environ if "WANDB" in name)


def test_a_training_function_needs_no_with(sweep, offline, tmp_path):
    def train():
        offline.init(config={"x": 3.0, "kept": 4})
        seen.append(dict(offline.config))
        offline.log({"loss": offline.config.x})
        if len(seen) == 2:
            offline.run.summary["loss"] = -2.0  # the summary counts, not what was logged last

    seen = []
    tiny = {"distribution": "log_uniform_values", "min": 1e-9, "max": 1e-7}  # 1e-08 in YAML is text
    study = sweep.agent({"metric": METRIC, "parameters": {"x": tiny}}, train, count=3)
    assert seen == [{**trial.params, "kept": 4} for trial in study.trials]
    assert study.trials[1].value == -2.0
    assert study.trials[2].value == study.trials[2].params["x"]


def test_a_run_without_the_metric_is_a_failed_trial(sweep):
    def train():
        with sweep.wandb.init() as run:
            run.log({"accuracy": 1.0})

    study = sweep.agent({"metric": METRIC, "parameters": {"x": {"values": [1, 2]}}}, train, 1)
    assert study.trials[0].state == TrialState.FAIL
    assert study.trials[0].user_attrs["failure"] == "KeyError: 'loss'"


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ({"value": 3}, CategoricalDistribution([3])),
        ({"distribution": "constant", "value": "a"}, CategoricalDistribution(["a"])),
        ({"values": [16, 64]}, CategoricalDistribution([16, 64])),
        ({"distribution": "categorical", "values": ["a"]}, CategoricalDistribution(["a"])),
        ({"min": 1, "max": 8}, IntDistribution(1, 8)),
        ({"distribution": "int_uniform", "min": 1, "max": 8}, IntDistribution(1, 8)),
        ({"min": 0, "max": 0.5}, FloatDistribution(0, 0.5)),
        ({"distribution": "uniform", "min": 0, "max": 1}, FloatDistribution(0, 1)),
        ({"distribution": "q_uniform", "min": 2, "max": 8, "q": 2}, IntDistribution(2, 8, step=2)),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.25},
         FloatDistribution(0, 1, step=0.25)),
        ({"distribution": "log_uniform_values", "min": 1e-5, "max": 0.1},
         FloatDistribution(1e-5, 0.1, log=True)),
    ],
)  # fmt: skip
def test_a_parameter_is_a_distribution_of_optuna(sweep, parameter, expected):
    assert sweep.distribution("x", parameter) == expected


@pytest.mark.parametrize(
    "parameter",
    [
        {"distribution": "normal", "mu": 0, "sigma": 1},
        {"distribution": "log_uniform", "min": -3, "max": 0},  # of exponents
        {"values": [1, 2], "probabilities": [0.1, 0.9]},
        {"parameters": {"y": {"value": 1}}},
        {"min": 1},
        {},
    ],
)
def test_another_parameter_is_refused(sweep, parameter):
    with pytest.raises(ValueError, match=r"Parameter 'x' is \{.*It must be a value, values, or"):
        sweep.distribution("x", parameter)


def test_the_scheduler_of_wandb_takes_the_study(sweep):
    reason = "pip install 'wandb>=0.31'"
    scheduler = pytest.importorskip("wandb.sdk.sweeps.scheduler.optuna", reason=reason)
    from wandb.sdk.sweeps.run_state import RunState
    from wandb.sdk.sweeps.scheduler.optimizer import RunWithMetrics, make_optimizer
    from wandb.sdk.sweeps.sweep_info import SweepInfo

    config = {
        "metric": {"name": "score", "goal": "maximize"},
        "parameters": {"x": {"min": 0.0, "max": 1.0}},
        "scheduler": {"engine": "optuna", "source": str(SCRIPT), "optimizer": "study_of"},
    }
    optimizer = make_optimizer(SweepInfo("id", "robot", "me", "mine", config, "run"))
    assert isinstance(optimizer, scheduler.OptunaOptimizer)
    assert isinstance(optimizer.study.sampler, StoicSampler)
    for number in range(20):
        (asked,) = optimizer.ask_n_runs(1)
        x = asked.config["x"].value
        score = 1e3 if number == 9 else -((x - 0.3) ** 2)
        state = RunState.CRASHED if number == 5 else RunState.FINISHED
        ended = RunWithMetrics(asked.config, state, f"run-{number}", {"score": score}, [])
        optimizer.tell_run(asked.run_id, ended)
    found = explain(optimizer.study)
    assert found.observed_best.number == 9
    assert found.recommended.params["x"] == pytest.approx(0.3, abs=0.15)
