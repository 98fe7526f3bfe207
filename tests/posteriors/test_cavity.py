from types import SimpleNamespace

import numpy as np
import pytest

import literal
from stoic.data import Observations
from stoic.defences import Plateau
from stoic.domains import Finite
from stoic.kernels import RBF, Matern52, Scaled
from stoic.posteriors import Arms, Exact, Prior, as_observed
from stoic.posteriors.cavity import given_the_others


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize(
    "fitted_defence", [as_observed, Plateau(0.5, 0.7, 2.0), Plateau(0.1, 1.0, 2.0, "noise")]
)
def test_it_equals_refits_without_each_row(fitted_defence, finite):
    rng = np.random.default_rng(3)
    x = 10.0 + 2.0 * rng.standard_normal((15, 2))
    x[14] = x[0]
    observed = 2.0 + rng.standard_normal(15)
    observed[4] = np.nan
    noise = np.where(np.arange(15) % 2, np.nan, rng.uniform(0.1, 0.5, 15))
    prior = Prior(Scaled(Matern52(np.array([2.0, 1.0])), 1.5), 0.3, 1.0)
    if finite:
        domain = Finite(x[:14])
        observations = Observations(x, observed, noise, domain.locate(x))
        posterior = Arms.condition(
            prior, fitted_defence, domain, observations, fitted_defence(observations, prior)
        )
    else:
        observations = Observations(x, observed, noise)
        posterior = Exact.condition(
            prior, fitted_defence, observations, fitted_defence(observations, prior)
        )
    targets = fitted_defence(observations, prior)
    mean, std = given_the_others(posterior, observations)
    for i in range(15):
        others = (np.arange(15) != i) & np.isfinite(targets.noise)
        mu, covariance = literal.posterior(
            prior.kernel, x[others], targets.values[others], targets.noise[others], x[[i]], 1.0
        )
        assert abs(mean[i] - mu[0]) < 1e-9
        assert abs(std[i] - np.sqrt(covariance[0, 0])) < 1e-9


@pytest.mark.parametrize("noise", [1e-9, 1e-11, 1e-14, 1e-30])
def test_results_without_noise_to_speak_of_are_judged_by_refits_too(noise):
    x = np.linspace(0.0, 8.0, 15)[:, None]
    observed = 2.0 + np.sin(x[:, 0])
    observed[[4, 9]] = np.nan, 50.0
    own = np.where(np.arange(15) % 3 == 1, np.nan, noise)
    observations = Observations(x, observed, own)
    prior = Prior(Scaled(Matern52(1.5), 1.5), 0.3, 1.0)
    targets = as_observed(observations, prior)
    posterior = Exact.condition(prior, as_observed, observations, targets)
    mean, std = given_the_others(posterior, observations)
    for i in range(15):
        others = (np.arange(15) != i) & np.isfinite(targets.noise)
        mu, covariance = literal.posterior(
            prior.kernel, x[others], targets.values[others], targets.noise[others], x[[i]], 1.0
        )
        assert mean[i] == pytest.approx(mu[0], rel=1e-4)
        assert std[i] == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-4)


def test_a_single_row_is_expected_where_the_prior_says():
    observations = Observations(np.zeros((1, 1)), np.array([5.0]), np.array([np.nan]))
    prior = Prior(RBF(1.0), 0.25, 2.0)
    posterior = Exact.condition(prior, as_observed, observations, as_observed(observations, prior))
    mean, std = given_the_others(posterior, observations)
    np.testing.assert_allclose([mean[0], std[0]], [2.0, 1.0], rtol=1e-12)


def test_rows_of_other_orders_of_magnitude_do_not_overflow():
    # As hyperparameters fitted to 1e300 have it: the noise of the rows from the third is 0.3, of
    # which a prior variance of 1e140 leaves no digit. Their computed variance is rounding, often
    # far above 0.3, and their computed residual not 1e-140 of the distance to the prior mean.
    x = np.linspace(0.0, 8.0, 22)[:, None]
    own = np.append([np.nan, np.nan], np.full(20, 0.3))
    observations = Observations(x, np.append([1e300, 1.2], np.full(20, 0.3)), own)
    prior = Prior(Scaled(Matern52(1.0), 1e140), 1e138, 5e299)
    posterior = Exact.condition(prior, as_observed, observations, as_observed(observations, prior))
    assert (posterior.predict(x[2:])[1] ** 2 > 1e100).any()
    mean, std = given_the_others(posterior, observations)
    assert np.isfinite(mean).all()
    noise = np.append([1e138, 1e138], own[2:])
    for i in (0, 2, 9, 21):
        others = np.arange(22) != i
        mu, covariance = literal.posterior(
            prior.kernel, x[others], observations.observed[others], noise[others], x[[i]], 5e299
        )
        assert mean[i] == pytest.approx(mu[0], rel=1e-6, abs=1e293)
        assert std[i] == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-6)
    assert np.isfinite(std).all()
    assert (std > 0.0).all()


def test_a_pull_that_no_float_can_hold_is_a_large_one():
    # A mean without a correct digit, at a row that decides it alone.
    observations = Observations(np.zeros((1, 1)), np.array([1e300]), np.array([0.3]))
    lost = SimpleNamespace(
        fitted_defence=as_observed,
        prior=Prior(RBF(1.0), 0.25),
        predict=lambda x: (np.array([-1e300]), np.array([1e60])),
    )
    mean, std = given_the_others(lost, observations)
    assert -np.inf < mean[0] < -1e300
    assert std[0] == pytest.approx(np.sqrt(0.3e12), rel=1e-12)
