import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import literal
from stoic.data import Observations, Targets
from stoic.domains import Box
from stoic.kernels import RBF, Linear, Matern32, Matern52, Polynomial, Product, Scaled, Sum
from stoic.posteriors import Exact, Prior, as_observed
from stoic.posteriors.exact import Covariances

KERNELS = (
    Scaled(RBF(np.array([0.7, 2.0])), 3.0),
    Scaled(Matern52(1.3), 0.5),
    Sum(Scaled(Matern32(np.array([0.4, 5.0])), 2.0), Linear(3.0)),
    Product(RBF(2.0), Polynomial(2, 1.5, Linear(np.array([4.0, 2.0])))),
)


def some(n, seed=0, d=2, told=False):
    """Observations away from the origin, two of them at one place."""
    rng = np.random.default_rng(seed)
    x = 50.0 + 2.0 * rng.standard_normal((n, d))
    if n > 1:
        x[-1] = x[0]
    noise = rng.uniform(0.05, 0.8, n) if told else np.full(n, np.nan)
    return Observations(x, 3.0 + rng.standard_normal(n), noise)


def conditioned(prior, observations):
    return Exact.condition(prior, as_observed, observations, as_observed(observations, prior))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("told", [False, True])
def test_mean_and_deviation_are_the_textbook_formulas(kernel, told):
    prior, observations = Prior(kernel, 0.3, 2.0), some(20, told=told)
    z = 50.0 + 3.0 * np.random.default_rng(1).standard_normal((15, 2))
    posterior = conditioned(prior, observations)
    noise = np.where(np.isnan(observations.noise), 0.3, observations.noise)
    mean, covariance = literal.posterior(
        kernel, observations.x, observations.observed, noise, z, 2.0
    )
    fast_mean, fast_std = posterior.predict(z)
    assert_allclose(fast_mean, mean, rtol=0, atol=1e-9 * np.abs(mean).max())
    assert_allclose(
        fast_std**2, np.diagonal(covariance), rtol=0, atol=1e-9 * kernel.diagonal(z).max()
    )
    assert_allclose(
        posterior.information, literal.information(kernel, observations.x, noise), rtol=1e-9
    )


def test_without_data_it_is_the_prior():
    prior = Prior(Scaled(RBF(0.5), 4.0), 0.1, -1.0)
    posterior = conditioned(prior, some(0))
    mean, std, mean_slope, std_slope = posterior.predict_with_gradient(np.ones((3, 2)))
    assert_array_equal(mean, [-1.0] * 3)
    assert_array_equal(std, [2.0] * 3)
    assert_array_equal(mean_slope, np.zeros((3, 2)))
    assert_array_equal(std_slope, np.zeros((3, 2)))
    assert (posterior.n, posterior.information, posterior.max_variance) == (0, 0.0, 4.0)


def test_rows_with_infinite_noise_equal_rows_removed_bit_for_bit():
    prior, observations = Prior(KERNELS[0], 0.3), some(12)
    targets = as_observed(observations, prior)
    out = np.array([2, 5, 11])
    noise, trust = targets.noise.copy(), targets.trust.copy()
    noise[out], trust[out] = np.inf, 0.0
    with_them = Exact.condition(
        prior, as_observed, observations, Targets(targets.values, noise, trust)
    )
    kept = np.delete(np.arange(12), out)
    without = conditioned(
        prior, Observations(observations.x[kept], observations.observed[kept], np.full(9, np.nan))
    )
    z = some(30, 3).x
    for a, b in zip(with_them.predict(z), without.predict(z), strict=True):
        assert_array_equal(a, b)
    assert with_them.information == without.information
    assert (with_them.n, with_them.distrusted, without.n) == (12, 3, 9)


def test_only_infinite_noise_is_the_prior_again_and_can_be_extended():
    prior, observations = Prior(KERNELS[0], 0.3, 1.0), some(4)
    dropped = Targets(np.full(4, 1.0), np.full(4, np.inf), np.zeros(4))
    posterior = Exact.condition(prior, as_observed, observations, dropped)
    z = some(5, 9).x
    assert_array_equal(posterior.predict(z)[0], np.ones(5))
    later = some(6, 4)
    extended = posterior.extend(as_observed, later, as_observed(later, prior))
    assert_allclose(extended.predict(z)[0], conditioned(prior, later).predict(z)[0], rtol=1e-12)
    assert extended.n == 10


@given(seed=st.integers(0, 10**6), n=st.integers(1, 25), k=st.integers(1, 6))
def test_extension_equals_conditioning_on_everything(seed, n, k):
    prior, observations = Prior(KERNELS[seed % 4], 0.2, 3.0), some(n + k, seed, told=bool(seed % 2))
    whole = conditioned(prior, observations)
    head, tail = observations.until(n), observations.since(n)
    extended = conditioned(prior, head).extend(as_observed, tail, as_observed(tail, prior))
    z = some(10, seed + 1).x
    for a, b in zip(extended.predict(z), whole.predict(z), strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    assert_allclose(extended.information, whole.information, rtol=1e-9)
    assert extended.n == whole.n


def test_gradients_are_finite_at_the_rows_themselves():
    observations = some(10)
    posterior = conditioned(Prior(KERNELS[1], 1e-6), observations)
    for part in posterior.predict_with_gradient(observations.x):
        assert np.isfinite(part).all()


def test_fantasies_hold_the_mean_and_shrink_the_deviation():
    prior, observations = Prior(KERNELS[0], 0.3, 2.0), some(15)
    posterior = conditioned(prior, observations)
    x = some(4, 7).x
    z = some(20, 8).x
    held, narrower = posterior.fantasise(x).predict(z)
    assert_allclose(held, posterior.predict(z)[0], atol=1e-10)
    all_x = np.concatenate([observations.x, x])
    _, covariance = literal.posterior(
        prior.kernel, all_x, np.zeros(19), np.full(19, 0.3), z, prior.mean
    )
    assert_allclose(narrower**2, np.diagonal(covariance), atol=1e-9)


def test_a_domain_far_from_the_origin_is_no_worse():
    # Targets and kernel in units of the domain: only the rounding of x itself may show.
    near, far = Box([0.0, 0.0], [1.0, 1.0]), Box([1e6, -1e6], [1e6 + 8.0, -1e6 + 8.0])
    rng = np.random.default_rng(0)
    u, v, y = rng.random((20, 2)), rng.random((10, 2)), rng.standard_normal(20)
    means = []
    for box in (near, far):
        prior = Prior(Scaled(Matern52(0.3 * box.widths), 1.0), 0.05)
        observations = Observations(box.lower + box.widths * u, y, np.full(20, np.nan))
        means.append(conditioned(prior, observations).predict(box.lower + box.widths * v)[0])
    assert_allclose(means[0], means[1], atol=1e-7)


@pytest.mark.parametrize("d", [2, 12])  # distances one by one, and by a product
@pytest.mark.parametrize("kernel", [Scaled(Matern52(1.3), 0.5), Linear(3.0)], ids=repr)
def test_remembered_covariances_change_no_bit(kernel, d):
    observations, covariances = some(20, d=d), Covariances(some(20, d=d).x)
    rng = np.random.default_rng(0)
    for noise in (0.3, 0.3, 0.1):
        prior = Prior(kernel, noise, 2.0)
        for _ in range(2):  # some rows are left out, others than before
            targets = as_observed(observations, prior)
            kept = rng.random(20) < 0.8
            targets = Targets(targets.values, np.where(kept, noise, np.inf), targets.trust)
            mine, plain = (
                Exact.condition(prior, as_observed, observations, targets, remembered)
                for remembered in (covariances, None)
            )
            assert_array_equal(mine.L, plain.L)
            assert_array_equal(mine.alpha, plain.alpha)
            everywhere = np.ones(20, dtype=bool)
            K = covariances(prior, everywhere, kept)
            assert covariances(prior, everywhere, kept) is K
            for got, expected in zip(
                mine.given(kernel.diagonal(observations.x), K),
                plain.predict(observations.x),
                strict=True,
            ):
                assert_array_equal(got, expected)
