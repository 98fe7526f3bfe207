import numpy as np
import pytest

import literal
from stoic.data import Observations
from stoic.defences import Plateau
from stoic.domains import Finite
from stoic.kernels import RBF, Matern52, Scaled
from stoic.posteriors import Arms, Exact, Prior, as_told
from stoic.posteriors.cavity import given_the_others


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize(
    "stance", [as_told, Plateau(0.5, 0.7, 2.0), Plateau(0.1, 1.0, 2.0, "noise")]
)
def test_it_equals_refits_without_each_row(stance, finite):
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
        posterior = Arms.condition(prior, stance, domain, observations, stance(observations, prior))
    else:
        observations = Observations(x, observed, noise)
        posterior = Exact.condition(prior, stance, observations, stance(observations, prior))
    targets = stance(observations, prior)
    mean, std = given_the_others(posterior, observations)
    for i in range(15):
        others = (np.arange(15) != i) & np.isfinite(targets.noise)
        mu, covariance = literal.posterior(
            prior.kernel, x[others], targets.values[others], targets.noise[others], x[[i]], 1.0
        )
        assert abs(mean[i] - mu[0]) < 1e-9
        assert abs(std[i] - np.sqrt(covariance[0, 0])) < 1e-9


def test_a_single_row_is_expected_where_the_prior_says():
    observations = Observations(np.zeros((1, 1)), np.array([5.0]), np.array([np.nan]))
    prior = Prior(RBF(1.0), 0.25, 2.0)
    posterior = Exact.condition(prior, as_told, observations, as_told(observations, prior))
    mean, std = given_the_others(posterior, observations)
    np.testing.assert_allclose([mean[0], std[0]], [2.0, 1.0], rtol=1e-12)
