"""Studies whose values span orders of magnitude: everything is said in the units of the values."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from stoic.integrations.optuna import explain
from stoic.integrations.optuna.confirming import standing
from stoic.integrations.optuna.settling import remaining_gain
from stoic.models.rescaling import CompressedTail

SPACE = {name: FloatDistribution(0.0, 1.0) for name in "xy"}


def latency(params):
    """Milliseconds, from 10 to 10,000."""
    return 10.0 * math.exp(10.0 * ((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2))


def study_of(seed, noise, n=40, sign=1.0, excess=None):
    rng = np.random.default_rng(seed)
    study = optuna.create_study(direction="minimize" if sign > 0.0 else "maximize")
    for x, y in rng.random((n, 2)).tolist():
        params = {"x": x, "y": y}
        value = sign * latency(params) * math.exp(noise * rng.standard_normal())
        system = {} if excess is None else {"constraints": [excess(params)]}
        study.add_trial(
            create_trial(params=params, distributions=SPACE, value=value, system_attrs=system)
        )
    return study


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["minimize", "maximize"])
def test_rows_and_estimates_are_in_the_units_of_the_values(sign):
    study = study_of(0, 0.05, sign=sign)
    known = explain(study)
    assert known.recommended_mean == pytest.approx(
        sign * latency(known.recommended.params), rel=0.3
    )
    assert all(row.value == study.trials[row.number].value for row in known.rows)
    expected = np.array([sign * row.expected for row in known.rows])
    truth = np.array([latency(row.params) for row in known.rows])
    assert np.median(np.abs(np.log(expected / truth))) < 0.3
    # In deviations of a poor value, too, it is as far from what is expected as in the model
    poor = [row for row in known.rows if abs(row.value) > 300.0 and not row.distrusted]
    assert len(poor) > 5
    assert all(abs(row.residual) < 4.0 for row in poor)
    at = {"x": 0.95, "y": 0.05}
    mean, _ = known.predict([at])
    assert 0.2 < sign * mean[0] / latency(at) < 5.0


def test_noise_of_a_factor_is_no_doubt():
    assert [explain(study_of(seed, 0.7)).undecided for seed in range(3)] == [None] * 3


def test_where_only_poor_settings_are_feasible_they_are_compared_in_their_units():
    study = study_of(1, 0.05, excess=lambda params: 1.5 - params["x"] - params["y"])
    known = explain(study)
    truth = latency(known.recommended.params)
    found = standing(study, study.trials)
    assert isinstance(found.scale, CompressedTail)
    assert known.recommended_mean == pytest.approx(truth, rel=0.3)
    outcome = found.outcome()
    assert outcome.candidates[0].mean == pytest.approx(truth, rel=0.3)
    assert outcome.lower < truth < outcome.upper
    assert np.median(-found.comparison.draws[:, found.leader]) == pytest.approx(truth, rel=0.3)
    assert remaining_gain(study).gain < truth
