"""The example for Hugging Face: its best run is wrong, and the recommended one is not."""

from __future__ import annotations

import warnings

import optuna
import pytest
from optuna.trial import TrialState

from pages import ROOT
from scripts import load


@pytest.mark.long  # trains twenty small models
def test_the_trainer_runs_our_sampler_and_our_pruner(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own
        pytest.importorskip("transformers", reason="pip install transformers accelerate")
        pytest.importorskip("accelerate", reason="pip install transformers accelerate")
        study, found = load(ROOT / "examples/hugging_face/trainer.py").main(tmp_path)
    assert len(study.trials) == 20
    assert study.best_value == 0.0  # what the broken evaluation returns
    assert 6 in {row.number for row in found.rows if row.trust < 0.5}
    assert found.recommended.value < 0.4  # guessing has 0.69
    assert all(len(trial.intermediate_values) >= 2 for trial in study.trials)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
