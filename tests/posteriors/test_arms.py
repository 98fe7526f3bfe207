import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import literal
from stoic.data import Observations, Targets
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Linear, Matern12, Matern32, Matern52, Precomputed, Scaled
from stoic.posteriors import Arms, Exact, Prior, as_observed
from stoic.posteriors import arms as arms_module

GRID = Box([-3.0], [7.0]).grid(100)


@pytest.fixture(params=["at once", "waiting"], scope="module", autouse=True)
def updates(request):
    """Every test with each way to update the covariance."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "waiting":
            patch.setattr(arms_module, "_CACHE", 0)
        yield


def told(domain, arms, observed, noise=None):
    noise = np.full(len(arms), np.nan) if noise is None else noise
    arms = np.asarray(arms, dtype=np.intp)
    return Observations(domain.points[arms], np.asarray(observed, dtype=float), noise, arms)


def conditioned(prior, domain, observations):
    targets = as_observed(observations, prior)
    return Arms.condition(prior, as_observed, domain, observations, targets)


def observed_one_by_one(prior, domain, observations):
    posterior = Arms(prior, as_observed, domain)
    targets = as_observed(observations, prior)
    for arm, value, noise in zip(observations.arms, targets.values, targets.noise, strict=True):
        posterior.observe(int(arm), float(value), float(noise))
    return posterior


def campaign(prior, domain, rounds, how, seed=0):
    """A bandit run of its own making: arms chosen greedily, at random, or crowded at first."""
    rng = np.random.default_rng(seed)
    K = prior.kernel(domain.points, domain.points)
    f = np.linalg.cholesky(K + 1e-9 * np.eye(len(K))) @ rng.standard_normal(len(K))
    posterior = Arms(prior, as_observed, domain)
    arms, observed = np.empty(rounds, dtype=np.intp), np.empty(rounds)
    for t in range(rounds):
        if how == "greedy":
            mean, std = posterior.predict(domain.points)
            arms[t] = np.argmax(mean + 2.5 * std)
        else:
            crowded = how == "crowded" and t < rounds // 2
            arms[t] = rng.integers(5 if crowded else len(domain))
        observed[t] = f[arms[t]] + np.sqrt(prior.noise) * rng.standard_normal()
        posterior.observe(int(arms[t]), float(observed[t]), prior.noise)
    return posterior, told(domain, arms, observed)


# The smoothest and the roughest kernel with the least noise, where rounding is worst; the rest is
# slow.
@pytest.mark.parametrize(
    "how", ["greedy", "crowded", pytest.param("random", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("kernel", "noise"),
    [
        pytest.param(
            kernel, noise, id=f"{kernel!r}-{noise}", marks=() if first else pytest.mark.slow
        )
        for kernel in (RBF(2.0), Matern52(2.0), Matern12(3.0))
        for noise in (1.0, 1e-2, 1e-4, 1e-6)
        for first in [not isinstance(kernel, Matern52) and noise == 1e-6]
    ],
)
def test_ten_thousand_updates_equal_conditioning_on_all_at_once(kernel, noise, how):
    # "crowded" is the worst case known: neighbours measured to a millionth, then 95 new arms.
    prior = Prior(kernel, noise, 0.5)
    posterior, observations = campaign(prior, GRID, 10_000, how)
    whole = conditioned(prior, GRID, observations)
    # One rounding in a variance of noise / plays moves its root by sqrt(condition) roundings; there
    # are N of them in a sum. On four kinds of processor the error was at most 0.04 of this, without
    # any fresh start 250 to 140,000 times it.
    root = np.sqrt(whole.counts / noise)
    K = kernel(GRID.points, GRID.points)
    condition = np.linalg.eigvalsh(np.eye(len(K)) + root[:, None] * K * root)[-1]
    rounding = np.finfo(float).eps
    allowed = len(GRID) * rounding * np.sqrt(condition)
    assert_allclose(posterior.mean, whole.mean, rtol=0, atol=allowed)
    assert_allclose(posterior.std, whole.std, rtol=0, atol=allowed)
    assert_array_equal(posterior.counts, whole.counts)
    # Each of the plays adds log(1 + variance / noise) / 2; at most 0.16 of this was seen.
    allowed = len(observations) * rounding / noise
    assert_allclose(posterior.information, whole.information, rtol=0, atol=allowed)


def test_the_whole_is_the_exact_posterior():
    # Arms.condition against Exact on a thousand rows, repetitions included.
    prior = Prior(Scaled(Matern32(2.0), 4.0), 0.3, -1.0)
    posterior, observations = campaign(prior, GRID, 1000, "random")
    exact = Exact.condition(prior, as_observed, observations, as_observed(observations, prior))
    for each in (posterior, conditioned(prior, GRID, observations)):
        mean, std = each.predict(GRID.points)
        exact_mean, exact_std = exact.predict(GRID.points)
        assert_allclose(mean, exact_mean, rtol=0, atol=1e-9)
        assert_allclose(std, exact_std, rtol=0, atol=1e-9)
    assert_allclose(posterior.information, exact.information, rtol=1e-9)
    assert posterior.max_variance == exact.max_variance == 4.0


@given(seed=st.integers(0, 10**6), n=st.integers(0, 40))
def test_one_by_one_equals_together_equals_the_textbook(seed, n):
    rng = np.random.default_rng(seed)
    domain = Finite(20.0 + rng.standard_normal((12, 2)))
    prior = Prior(Scaled(RBF(np.array([1.0, 0.5])), 2.0), 0.4, 3.0)
    noise = np.where(rng.random(n) < 0.5, np.nan, rng.uniform(0.01, 2.0, n))
    observed = rng.standard_normal(n)
    observed[rng.random(n) < 0.2] = np.nan
    observations = told(domain, rng.integers(12, size=n), observed, noise)
    kept = np.isfinite(observed)
    mean, covariance = literal.posterior(
        prior.kernel, observations.x[kept], observed[kept], observations.own_noise(0.4)[kept],
        domain.points, 3.0,
    )  # fmt: skip
    for posterior in (
        observed_one_by_one(prior, domain, observations),
        conditioned(prior, domain, observations),
    ):
        assert_allclose(posterior.mean, mean, rtol=0, atol=1e-9)
        assert_allclose(posterior.variance, np.diagonal(covariance), rtol=0, atol=1e-9)
        assert posterior.n == n
        assert posterior.counts.sum() == kept.sum()
        if kept.any():
            gain = literal.information(
                prior.kernel, observations.x[kept], observations.own_noise(0.4)[kept]
            )
            assert_allclose(posterior.information, gain, rtol=1e-8)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 50))
def test_a_play_repeated_is_one_play_with_less_noise(seed, k):
    rng = np.random.default_rng(seed)
    domain, prior = Finite(rng.standard_normal((8, 1))), Prior(Matern52(0.7), 0.5)
    values = rng.standard_normal(k)
    many, once = Arms(prior, as_observed, domain), Arms(prior, as_observed, domain)
    for posterior in (many, once):
        posterior.observe(1, 0.3, 0.5)
    for value in values:
        many.observe(4, float(value), 0.5)
    once.observe(4, float(values.mean()), 0.5 / k)
    assert_allclose(many.mean, once.mean, atol=1e-10)
    assert_allclose(many.variance, once.variance, atol=1e-10)
    assert_allclose(many.information, once.information, rtol=1e-9)


def test_updates_after_conditioning_continue_it():
    prior = Prior(Matern52(2.0), 0.1)
    _, observations = campaign(prior, GRID, 300, "random")
    posterior = conditioned(prior, GRID, observations.until(37))
    for row in range(37, 300):
        posterior.observe(int(observations.arms[row]), float(observations.observed[row]), 0.1)
    whole = conditioned(prior, GRID, observations)
    assert_allclose(posterior.mean, whole.mean, atol=1e-10)
    assert_allclose(posterior.std, whole.std, atol=1e-10)


def test_more_arms_than_a_block_and_more_plays_than_the_first_room():
    domain = Box([0.0], [1.0]).grid(2500)
    prior = Prior(Matern32(0.1), 0.01)
    rng = np.random.default_rng(0)
    observations = told(domain, rng.integers(2500, size=60), rng.standard_normal(60))
    exact = Exact.condition(prior, as_observed, observations, as_observed(observations, prior))
    for posterior in (
        conditioned(prior, domain, observations),
        observed_one_by_one(prior, domain, observations),
    ):
        assert_allclose(posterior.mean, exact.predict(domain.points)[0], atol=1e-9)
        assert_allclose(posterior.std, exact.predict(domain.points)[1], atol=1e-9)


def test_rows_with_infinite_noise_are_counted_and_not_used():
    prior = Prior(Matern52(2.0), 0.1)
    observations = told(GRID, [1, 5, 5], [0.3, np.nan, np.inf])
    alone = conditioned(prior, GRID, observations.until(1))
    for posterior in (
        conditioned(prior, GRID, observations),
        observed_one_by_one(prior, GRID, observations),
    ):
        assert_allclose(posterior.mean, alone.mean, atol=1e-14)
        assert posterior.n == 3
        assert posterior.counts.sum() == 1
    assert conditioned(prior, GRID, observations).distrusted == 2


def test_nothing_but_infinite_noise_is_the_prior():
    prior = Prior(Matern52(2.0), 0.1, 2.0)
    observations = told(GRID, [1, 5], [np.nan, np.inf])
    posterior = conditioned(prior, GRID, observations)
    assert_array_equal(posterior.mean, np.full(100, 2.0))
    assert_array_equal(posterior.std, np.ones(100))
    assert posterior.information == 0.0


def test_a_kernel_that_knows_nothing_about_an_arm_with_certainty():
    # Linear at 0: prior variance 0; and repeated exact duplicates through Precomputed.
    domain = Finite(np.array([0.0, 1.0, 2.0]))
    posterior = Arms(Prior(Linear(1.0), 0.1), as_observed, domain)
    for arm in (0, 1, 2, 0):
        posterior.observe(arm, 1.0, 0.1)
    assert posterior.mean[0] == 0.0
    assert posterior.std[0] == 0.0
    twins = Finite(np.arange(2.0))
    posterior = Arms(Prior(Precomputed(np.ones((2, 2))), 1e-4), as_observed, twins)
    posterior.observe(0, 1.0, 1e-4)
    posterior.observe(1, 3.0, 1e-4)
    assert_allclose(posterior.mean, 4.0 / (2.0 + 1e-4), rtol=1e-9)


def test_sums_are_of_residuals_so_that_a_location_of_1e300_is_one_like_any():
    prior = Prior(Matern52(2.0), 0.1, 1e300)
    observations = told(GRID, [1, 5, 5], [1e300, 1e300, 1e300], np.full(3, 1e-9))
    for posterior in (
        conditioned(prior, GRID, observations),
        observed_one_by_one(prior, GRID, observations),
    ):
        assert_array_equal(posterior.mean, np.full(100, 1e300))
        assert posterior.std[5] < 1e-4


def test_predictions_are_at_the_rows_asked_for():
    prior = Prior(Matern52(2.0), 0.1)
    posterior, _ = campaign(prior, GRID, 50, "random")
    mean, std = posterior.predict(GRID.points[[7, 3, 7]])
    assert_array_equal(mean, posterior.mean[[7, 3, 7]])
    assert_array_equal(std, posterior.std[[7, 3, 7]])
    with pytest.raises(ValueError, match="not one of the 100 points"):
        posterior.predict(np.array([[0.123]]))
    with pytest.raises(ValueError, match="no gradient"):
        posterior.predict_with_gradient(GRID.points[[0]])


def test_fantasies_hold_the_mean_and_shrink_the_deviation():
    prior = Prior(Matern52(2.0), 0.1)
    posterior, observations = campaign(prior, GRID, 50, "random")
    before = posterior.mean.copy(), posterior.std.copy()
    arms = np.array([3, 50, 3])
    fantasy = posterior.fantasise(GRID.points[arms], arms)
    assert_array_equal(posterior.mean, before[0])
    assert_array_equal(posterior.std, before[1])
    assert_allclose(fantasy.mean, before[0], atol=1e-12)
    all_x = np.concatenate([observations.x, GRID.points[arms]])
    _, covariance = literal.posterior(
        prior.kernel, all_x, np.zeros(53), np.full(53, 0.1), GRID.points
    )
    assert_allclose(fantasy.std**2, np.diagonal(covariance), atol=1e-9)
    assert_allclose(posterior.fantasise(GRID.points[arms], None).std, fantasy.std, atol=0)


def test_what_is_told_is_not_altered():
    prior = Prior(Matern52(2.0), 0.1)
    observations = told(GRID, [1, 5, 5], [0.3, 1.0, 2.0])
    targets = Targets(np.array([0.3, 1.0, 2.0]), np.array([0.1, np.inf, 0.2]), np.ones(3))
    copies = [a.copy() for a in (targets.values, targets.noise, observations.x)]
    Arms.condition(prior, as_observed, GRID, observations, targets)
    for copy, array in zip(copies, (targets.values, targets.noise, observations.x), strict=True):
        assert_array_equal(copy, array)
