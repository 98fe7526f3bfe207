"""Tuning loop: a study in Optuna storage, and an external program or a function to tune."""

from stoic.tuning.failure import Failed
from stoic.tuning.function import Measured, TuningResult, tune

__all__ = ["Failed", "Measured", "TuningResult", "tune"]
