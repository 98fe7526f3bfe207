"""The user's loop: a study in Optuna storage, and an external program or a function to tune."""

from stoic.tuning.function import TuningResult, tune

__all__ = ["TuningResult", "tune"]
