"""Explanations while a study runs."""

from __future__ import annotations

import optuna
import pytest

from stoic.integrations.optuna import FAILED, explain
from stoic.tuning import explaining
from stoic.tuning.campaign import Settling
from stoic.tuning.ending import Ending
from stoic.tuning.explaining import Explainer, Half

FAIL = optuna.trial.TrialState.FAIL
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

    def explain(study, recipe, fixed, trials):
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
    assert explainer.half.spent <= clock[0] / 2.0 + 2.0 * seconds


def test_whether_a_search_is_settled_takes_half_of_its_time(monkeypatch):
    clock, looked = [0.0], []

    def settled(self, study, trials):
        clock[0] += 2.0
        looked.append(len(trials))
        return len(looked) > 2

    monkeypatch.setattr(explaining.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(Ending, "settled", settled)
    settling = Settling(Ending(until_settled=0.1), Half())
    assert not Settling(Ending(), Half())(None, [])
    assert not looked
    answers = []
    for trial in range(8):
        clock[0] += 1.0
        answers.append(settling(None, [None] * trial))
    # Each time once it is: confirming may unsettle it
    assert looked == [0, 1, 3, 4, 5, 6, 7]
    assert answers == [False] * 3 + [True] * 5


def test_before_there_is_a_value_nothing_is_known():
    study = optuna.create_study()
    explainer = Explainer(study, None)
    assert explainer() is None
    study.add_trial(optuna.create_trial(params={"x": 0.5}, distributions=SPACE, value=1.0))
    assert explainer().recommended.number == 0


def test_it_says_how_often_the_recommended_setting_failed():
    study = optuna.create_study()
    failures = (None, "bad", "infeasible", "transient")
    for x, failed in [*((x, "") for x in (0.1, 0.3, 0.5, 0.7, 0.9)), *((0.5, f) for f in failures)]:
        trial = optuna.trial.create_trial(
            params={"x": x},
            distributions=SPACE,
            value=(x - 0.5) ** 2 if failed == "" else None,
            state=optuna.trial.TrialState.COMPLETE if failed == "" else FAIL,
            user_attrs={FAILED: failed} if failed else {},
        )
        study.add_trial(trial)
    known = explain(study)
    assert known.recommended.params == {"x": 0.5}
    assert known.failures == 3
    assert "once: not confirmed, failed 3 times there" in str(known)


def test_settings_that_differ_in_their_last_digits_confirm_each_other():
    for off, said in ((1e-4, True), (1e-10, False)):
        study = optuna.create_study()
        for x in (0.1, 0.3, 0.5, 0.5 + off, 0.7, 0.9):
            study.add_trial(
                optuna.create_trial(params={"x": x}, distributions=SPACE, value=abs(x - 0.5))
            )
        known = explain(study)
        assert known.recommended.params["x"] == pytest.approx(0.5, abs=2e-4)
        assert ("once: not confirmed" in str(known)) is said
