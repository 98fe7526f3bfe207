"""Values that cannot be: they count as nan, and are kept where they are."""

import math

import optuna
import pytest
from optuna.trial import TrialState

from stoic import tune
from stoic.integrations.optuna import POSSIBLE, PossibleValues, StoicSampler, explain
from stoic.integrations.optuna.possible import stored_possible
from stoic.refusal import RefusalError
from stoic.tuning.views.summary import Summary
from stoic.tuning.views.trust import Trust
from studies import add

IMPOSSIBLE = {4: 1.7, 9: -2.0, 14: math.inf}


def accuracy(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    return IMPOSSIBLE.get(trial.number, 1.0 - (x - 0.3) ** 2)


@pytest.fixture(scope="module")
def study():
    sampler = StoicSampler(seed=0, possible=(0, 1))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(accuracy, n_trials=20)
    return study


def test_they_are_no_observations_and_are_kept(study):
    assert study.user_attrs[POSSIBLE] == [0.0, 1.0]
    known = explain(study)
    assert known.impossible == IMPOSSIBLE
    assert [row.number for row in known.rows] == [n for n in range(20) if n not in IMPOSSIBLE]
    assert known.observed_best.number not in IMPOSSIBLE
    assert study.trials[4].value == 1.7
    synced = study.sampler._synced
    seen = dict(zip(synced.observed, synced.learner.observations.observed, strict=True))
    assert all(math.isnan(seen[number]) for number in IMPOSSIBLE)
    assert abs(known.recommended.params["x"] - 0.3) < 0.05


def test_they_are_shown(study):
    summary = Summary.of(study)
    assert "impossible     3 outside of 0 to 1\n  trial 4: observed 1.7\n" in summary.text()
    assert summary.record()["impossible"] == {"4": 1.7, "9": -2.0, "14": "inf"}
    assert dict.fromkeys(IMPOSSIBLE).items() <= Trust.of(study).failed.items()


def test_any_study_can_be_explained_with_a_range():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(accuracy, n_trials=20)
    assert explain(study).impossible == {}
    assert explain(study, possible=(0, 1)).impossible == IMPOSSIBLE
    assert explain(study, possible=(-math.inf, 1)).impossible == {4: 1.7, 14: math.inf}


def test_one_setting_that_never_gives_a_possible_value_is_not_observed():
    study = optuna.create_study(sampler=StoicSampler(seed=0, possible=(0, 1)))
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    for value in (0.3, 0.4, 5.0, 5.0, 5.0, 5.0):
        add(study, {"x": value if value < 1 else 0.9}, space, value)
    known = explain(study, possible=(0, 1))
    assert [row.value for row in known.rows] == [0.3, 0.4]
    assert len(known.impossible) == 4


def test_a_region_without_possible_values_is_left():
    """A gauge reads 9 wherever x is below 0.4; the best is at the border."""

    def gauge(trial):
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return 9.0 if x < 0.4 else 1.0 - (x - 0.38) ** 2 - (y - 0.5) ** 2

    study = optuna.create_study(
        direction="maximize", sampler=StoicSampler(seed=0, possible=(-2, 2))
    )
    study.optimize(gauge, n_trials=30)
    assert sum(trial.value == 9.0 for trial in study.trials[10:]) <= 5
    assert explain(study).recommended.params["x"] < 0.45


def test_it_is_said_once_a_trial(caplog):
    study = optuna.create_study(sampler=StoicSampler(seed=0, possible=(0, 1)))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + 2 * trial.number, n_trials=2)
    said = [record.message for record in caplog.records if "counts as nan" in record.message]
    assert len(said) == 1
    assert said[0].startswith("Trial 1: 2.")


def test_a_function_and_a_resumed_study_have_it(tmp_path):
    options = {"storage": f"sqlite:///{tmp_path}/s.db", "study_name": "s", "seed": 0}
    found = tune(
        lambda p: 7.0 * p["x"], {"x": "float(0, 1)"}, n_trials=6, possible=(0, 3), **options
    )
    more = tune(lambda p: 7.0 * p["x"], {"x": "float(0, 1)"}, n_trials=8, **options)
    assert stored_possible(more.study) == PossibleValues(0.0, 3.0)
    for result in (found, more):
        values = {t.number: t.value for t in result.study.trials if t.value > 3.0}
        assert dict(result.explanation.impossible).items() <= values.items()
    assert more.explanation.impossible == values
    assert all(trial.state == TrialState.COMPLETE for trial in more.study.trials)


@pytest.mark.parametrize("given", [(1, 0), (0, 0), (0,), 1, "01", (0, "1"), (0, math.nan), {0, 1}])
def test_what_is_no_range_is_refused(given):
    with pytest.raises(RefusalError, match="possible needs"):
        StoicSampler(possible=given)


@pytest.mark.parametrize("stored", [None, 3, [1, 0], ["a", 1], [0, 1, 2]])
def test_a_record_of_something_else_is_none(stored):
    study = optuna.create_study()
    study.set_user_attr(POSSIBLE, stored)
    assert stored_possible(study) is None
