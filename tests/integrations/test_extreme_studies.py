"""Studies whose ranges or results are at an edge: no crash, and no interval out of nothing."""

import math
import zlib

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler

from stoic import recipes
from stoic.integrations.optuna import CENSORED, NOISE, RobustObjective, StoicSampler, explain
from stoic.kernels import Matern52
from stoic.learner import Learner
from stoic.posteriors import Prior
from stoic.tuning.views.summary import Summary
from studies import add

X = {"x": FloatDistribution(-5.0, 5.0)}


def stored(values, xs, distributions=X):
    """A study with these values at these x."""
    study = optuna.create_study()
    for x, value in zip(xs, values, strict=True):
        add(study, {"x": x}, distributions, value)
    return study


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(-1e308, 1e308),
        FloatDistribution(-1.7e308, 1.7e308),
        FloatDistribution(0.0, 5e-324),
        FloatDistribution(1e100, math.nextafter(1e100, math.inf), log=True),
        IntDistribution(-(2**62), 2**62),
        IntDistribution(2**62, 2**62 + 10),
        IntDistribution(2**62, 2**62 + 10, log=True),
    ],
    ids=str,
)
def test_a_range_at_the_ends_of_what_floats_hold(distribution):
    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=3))
    for _ in range(7):
        trial = study.ask({"x": distribution})
        study.tell(trial, trial.params["x"] / distribution.high)
    known = explain(study)
    assert math.isfinite(known.recommended_mean)
    assert distribution.low <= known.model_optimum["x"] <= distribution.high


def test_an_independent_draw_is_what_it_would_be_in_optuna():
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    distributions = FloatDistribution(-7.0, 5.0), FloatDistribution(0.1, 1.0, step=0.3)
    for number, distribution in enumerate(distributions):
        drawn = study.ask({"x": distribution}).params["x"]
        state = [study.sampler._seed, number, zlib.crc32(b"x")]
        random = RandomSampler(int(np.random.SeedSequence(state).generate_state(1)[0]))
        assert drawn == random.sample_independent(study, None, "x", distribution)


def test_a_value_beside_a_bound_has_no_interval_either():
    study = stored([1e5], [0.2])
    study.add_trial(
        optuna.create_trial(
            state=optuna.trial.TrialState.PRUNED,
            params={"x": 0.9},
            distributions=study.trials[0].distributions,
            user_attrs={CENSORED: 4.0},
        )
    )
    known = explain(study)
    assert known.recommended_std == math.inf
    assert known.recommended_mean == pytest.approx(1e5)


def test_a_setting_that_is_the_only_one_has_the_median_of_its_results():
    study = optuna.create_study()
    for value in (3.1, 2.9, 1e6, 3.0, 3.2):
        trial = study.ask()
        trial.suggest_int("x", 3, 3)
        study.tell(trial, value)
    known = explain(study)
    assert (known.recommended_mean, known.repeats) == (3.1, 5)


@pytest.mark.parametrize("values", [[5.0], [1e308], [5.0, 5.0, 5.0], [5.0, math.inf]])
def test_no_interval_where_no_two_results_differ(values):
    study = stored(values, np.linspace(0.1, 0.9, len(values)))
    known = explain(study)
    assert known.recommended_std == math.inf
    assert math.isfinite(known.recommended_mean)
    assert {row.sd for row in known.rows} == {math.inf}
    assert {row.residual for row in known.rows if math.isfinite(row.value)} <= {0.0, -0.0}
    assert np.isinf(known.predict([{"x": 0.3}])[1]).all()
    assert "+- unknown" in Summary.of(study).text()
    aim = RobustObjective(threshold=7.0, tolerance={"x": 0.1})
    assert explain(study, aim=aim).certified is None


@pytest.mark.parametrize("values", [[math.inf], [math.inf, -math.inf] * 10])
def test_nothing_is_recommended_where_no_result_is_finite(values):
    known = explain(stored(values, np.linspace(0.1, 0.9, len(values))))
    assert known.recommended is None
    assert "recommended    none" in str(known)


@pytest.mark.parametrize(
    ("unit", "said"), [(1e-87, True), (1.0, False), (1e-60, False), (1e120, True)]
)
def test_values_that_the_model_cannot_square_are_named(unit, said):
    x = np.linspace(0.1, 0.9, 12)
    known = explain(stored((unit * (x - 0.3) ** 2).tolist(), x))
    assert ("take the logarithm of the values" in str(known)) == said


def test_one_setting_is_never_undecided():
    study = stored(np.random.default_rng(0).standard_normal(40), np.full(40, 0.5))
    assert explain(study).undecided is None


def test_an_estimate_of_zero_has_no_sign():
    known = explain(stored([0.0] * 5, np.linspace(0.1, 0.9, 5)))
    assert "estimated 0 " in str(known)


def test_a_standard_error_or_a_prior_or_a_second_result_gives_an_interval():
    told = optuna.create_study()
    add(told, {"x": 0.5}, X, 5.0, {NOISE: 0.04})
    assert explain(told).recommended_std == pytest.approx(0.2)

    def with_prior(box):
        return Learner(box, recipes.gp_ucb(prior=Prior(Matern52(0.2), 0.01)))

    assert 0.05 < explain(stored([5.0], [0.5]), recipe=with_prior).recommended_std < 0.1
    assert math.isfinite(explain(stored([5.0, 6.0], [0.2, 0.8])).recommended_std)


def test_values_of_settings_that_are_all_the_same_have_no_interval():
    one = {"x": FloatDistribution(1.0, 1.0)}
    known = explain(stored([1.0, 9.0, 5.0], [1.0, 1.0, 1.0], one))
    assert known.recommended_std == math.inf
