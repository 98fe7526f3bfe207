"""The example for Lightning: its best trial is wrong, and the recommended one is not."""

from __future__ import annotations

import warnings

import optuna
import pytest
from optuna.trial import TrialState

from pages import ROOT
from scripts import load


@pytest.mark.long  # trains twenty small models
def test_lightning_runs_our_sampler_and_our_pruner(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own
        pytest.importorskip("lightning", reason="pip install lightning optuna-integration")
        pytest.importorskip("optuna_integration", reason="pip install lightning optuna-integration")
        study, found = load(ROOT / "examples/lightning/fit.py").main()
    assert len(study.trials) == 20
    assert study.best_value == -10.0  # what the broken validation logs
    assert 6 in {row.number for row in found.rows if row.trust < 0.5}
    assert found.recommended.value < 0.15  # a constant has 0.5
    assert all(len(trial.intermediate_values) >= 2 for trial in study.trials)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert [*tmp_path.iterdir()] == []  # it leaves nothing behind
