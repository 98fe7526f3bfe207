"""Tuning loop: a study in Optuna storage, and an external program or a function to tune.

What a user gives wrongly raises ``stoic.refusal.RefusalError``, with one sentence.
"""

from stoic.tuning.failure import Failed
from stoic.tuning.function import FrontResult, TuningResult, tune, tune_front
from stoic.tuning.measured import Measured

__all__ = ["Failed", "FrontResult", "Measured", "TuningResult", "tune", "tune_front"]
