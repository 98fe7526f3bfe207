"""Optuna's own suites for third-party samplers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler

from stoic.integrations.optuna import StoicSampler

suites = pytest.importorskip("optuna.testing.pytest_samplers", reason="since Optuna 4.8")


class TestStoicSampler(
    suites.BasicSamplerTestCase,
    suites.RelativeSamplerTestCase,
    suites.MultiObjectiveSamplerTestCase,
):
    """With a model from the second trial on, so that the suites exercise it."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: StoicSampler(seed=0, n_startup_trials=1)


class TestStartup(
    suites.BasicSamplerTestCase,
    suites.RelativeSamplerTestCase,
    suites.MultiObjectiveSamplerTestCase,
):
    """With the default number of startup trials."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: StoicSampler(seed=0)
