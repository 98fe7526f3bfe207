"""Explanations while a study runs."""

from __future__ import annotations

import optuna
import pytest

from stoic.tuning import explaining
from stoic.tuning.explaining import Explainer

SPACE = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}


@pytest.mark.parametrize(("seconds", "explained"), [(0.1, 18), (4.0, 5)])
def test_slow_explanations_take_at_most_half_of_the_time_and_the_last_is_complete(
    monkeypatch, seconds, explained
):
    """Eighteen trials of a second; the clock is a number."""
    clock, calls = [0.0], []

    class Known:
        def __init__(self, number):
            self.rows, self.number = (), number

    def explain(study, recipe):
        clock[0] += seconds
        calls.append(trial)
        return Known(trial)

    monkeypatch.setattr(explaining.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(explaining, "explanation", explain)
    explainer = Explainer(optuna.create_study(), None)
    monkeypatch.setattr(explainer.recorder, "record", lambda known: None)
    for trial in range(18):
        clock[0] += 1.0
        known = explainer()
        assert known.number <= trial
    assert len(calls) == explained
    explainer.catch_up()
    assert calls[-1] == 17
    assert explainer.spent <= clock[0] / 2.0 + 2.0 * seconds


def test_before_there_is_a_value_nothing_is_known():
    study = optuna.create_study()
    explainer = Explainer(study, None)
    assert explainer() is None
    study.add_trial(optuna.create_trial(params={"x": 0.5}, distributions=SPACE, value=1.0))
    assert explainer().recommended.number == 0
