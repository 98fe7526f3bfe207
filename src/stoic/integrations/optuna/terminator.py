"""Evaluators for ``optuna.terminator``, which Optuna deprecates from 4.9 on.

``Terminator(RemainingGainEvaluator(), NoiseEvaluator())`` ends a study when further trials can gain
less than the noise, with ``StaticErrorEvaluator(0.01)`` instead when they can gain less than 0.01.
"""

from __future__ import annotations

from collections.abc import Sequence

import optuna
from optuna.study import StudyDirection
from optuna.terminator import BaseErrorEvaluator, BaseImprovementEvaluator
from optuna.trial import FrozenTrial

from stoic.integrations.optuna.settling import RemainingGain, remaining_gain


class RemainingGainEvaluator(BaseImprovementEvaluator):
    """Expected gain of all further trials together."""

    def evaluate(self, trials: list[FrozenTrial], study_direction: StudyDirection) -> float:
        return _of(trials, study_direction).gain


class NoiseEvaluator(BaseErrorEvaluator):
    """Standard deviation of the noise of one result."""

    def evaluate(self, trials: list[FrozenTrial], study_direction: StudyDirection) -> float:
        return _of(trials, study_direction).noise_sd


def _of(trials: Sequence[FrozenTrial], direction: StudyDirection) -> RemainingGain:
    """Evaluate trials without their study, as a Terminator has them."""
    return remaining_gain(
        optuna.create_study(
            storage=optuna.storages.InMemoryStorage(),
            study_name="terminator",  # without a name it would be random
            direction=direction,
        ),
        trials,
    )
