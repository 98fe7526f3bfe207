"""The example for Ray Tune: its best result is wrong, and the recommended one is not."""

from __future__ import annotations

import warnings

import optuna
import pytest

from pages import ROOT
from scripts import load


@pytest.mark.slow  # Ray starts processes for a minute or two
def test_ray_tune_runs_our_sampler(tmp_path, monkeypatch):
    pytest.importorskip("ray.tune", reason="pip install 'ray[tune]'")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own
        best, recommended = load(ROOT / "examples/ray/tune.py").main(tmp_path)
    assert (best["x"] - 0.3) ** 2 + (best["y"] + 1.0) ** 2 > 0.02
    assert recommended["x"] == pytest.approx(0.3, abs=0.15)
    assert recommended["y"] == pytest.approx(-1.0, abs=0.3)
