import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic.data import Observations
from stoic.defences import Diagnostics
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting, marginal_likelihood
from stoic.posteriors.scales import median_and_mad
from stoic.posteriors.student_t_noise import StudentTNoise, settled

BOX = Box([0.0], [1.0])
GRID = BOX.grid(41)
PRIOR = Prior(Scaled(Matern52(0.3), 1.5), 0.04, 0.8)
FITTING = Fitting(marginal_likelihood, median_and_mad)


def some(n, seed=0, lies=()):
    rng = np.random.default_rng(seed)
    x = GRID.points[rng.integers(41, size=n)]
    y = 1.0 + np.sin(6.0 * x[:, 0]) + 0.2 * rng.standard_normal(n)
    y[list(lies)] += 5.0
    return Observations(x, y, np.full(n, np.nan))


def kept(observations, **settings):
    defence = Diagnostics(StudentTNoise(PRIOR), **settings)
    return defence.fit(BOX, observations)(observations, PRIOR).trust == 1.0


def test_the_test_is_the_definition_by_simulation():
    # P(|f + e - mean| >= |y - mean|) under the judge, by 10^5 draws: 4 standard errors are 0.003.
    observations = some(25, lies=(4, 9))
    judge = StudentTNoise(PRIOR)(BOX, observations)
    probabilities = Diagnostics(StudentTNoise(PRIOR)).probabilities(judge, observations)
    mean, std = judge.predict(observations.x)
    rng = np.random.default_rng(0)
    for row in range(25):
        noise = math.sqrt(PRIOR.noise) * rng.standard_t(4.0, 100_000)
        draws = std[row] * rng.standard_normal(100_000) + noise
        share = np.mean(np.abs(draws) >= abs(observations.observed[row] - mean[row]))
        assert probabilities[row] == pytest.approx(share, abs=0.007)


def test_lies_are_left_out_and_most_honest_results_are_not():
    lies = (4, 9, 17, 30)
    flags = kept(some(40, lies=lies))
    assert not flags[list(lies)].any()
    assert np.count_nonzero(flags) >= 33  # 36 are honest, and 5 % of them may be left out


def test_the_posterior_is_that_of_the_rows_it_keeps():
    observations = some(30, lies=(4, 9))
    observations.observed[[2, 20]] = [math.nan, 1e300]
    defence = Diagnostics(StudentTNoise(PRIOR))
    posterior = GaussianProcess(PRIOR, defence)(BOX, observations)
    flags = posterior.trust(observations) == 1.0
    assert not flags[[2, 4, 9, 20]].any()
    expected = GaussianProcess(PRIOR)(BOX, observations.only(np.flatnonzero(flags)))
    for a, b in zip(posterior.predict(GRID.points), expected.predict(GRID.points), strict=True):
        assert_array_equal(a, b)


def test_if_more_than_half_would_go_all_that_is_a_number_stays():
    observations = some(12, lies=(3,))
    observations.observed[5] = math.inf
    strict = kept(observations, level=0.999)
    assert_array_equal(strict, np.isfinite(observations.observed))
    assert not kept(observations)[3]


def test_a_smaller_level_keeps_more():
    observations = some(40, lies=(3, 11))
    counts = [np.count_nonzero(kept(observations, level=p)) for p in (0.3, 0.05, 1e-4)]
    assert counts[0] < counts[1] <= counts[2]


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, math.nan])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Diagnostics(StudentTNoise(PRIOR), level)


def test_it_revises_what_it_thought():
    # One result looks wrong until others at the same place say the same.
    x = np.array([[0.1], [0.3], [0.5], [0.7], [0.9], [0.5], [0.5], [0.5]])
    y = np.array([0.8, 0.9, 4.0, 0.8, 0.7, 4.1, 3.9, 4.0])
    observations = Observations(x, y, np.full(8, np.nan))
    defence = Diagnostics(StudentTNoise(PRIOR))
    assert defence.revises
    early, late = (kept(observations.until(n)) for n in (5, 8))
    assert not early[2]
    assert late[2]
    with pytest.raises(TypeError, match="must be fitted"):
        defence(observations, PRIOR)


def test_with_everything_fitted_lies_of_any_size_change_nothing_else():
    family = Prior(Scaled(Matern52(np.ones(1))), 0.1)
    model = GaussianProcess(family, Diagnostics(StudentTNoise(family, 4.0, FITTING)), FITTING)
    means = []
    for lie in (1e2, 1e6, 1e12, math.inf):
        observations = some(30)
        observations.observed[[4, 9]] = [lie, -lie]
        posterior = model(BOX, observations)
        assert not posterior.trust(observations)[[4, 9]].any()
        means.append(posterior.predict(GRID.points)[0])
    for mean in means[1:]:
        assert_allclose(mean, means[0], atol=0.05)


def test_the_judge_is_warm_started():
    family = Prior(Scaled(Matern52(np.ones(1))), 0.1)
    defence = Diagnostics(StudentTNoise(family, 4.0, FITTING))
    observations = some(30, lies=(4, 9))
    earlier = defence.fit(BOX, observations.until(29))
    warm, cold = defence.fit(BOX, observations, earlier), defence.fit(BOX, observations)
    assert_array_equal(warm.kept, cold.kept)
    # The judge of the rows is at the fixed point of its own hyperparameters.
    prior = warm.judge.prior
    t = settled(observations, prior, 4.0)
    assert_allclose(warm.judge.trust(observations), 1.0 / np.maximum(t, 1.0))
