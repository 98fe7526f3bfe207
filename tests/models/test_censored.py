"""Censored results against quadrature, sampling and a literal twin."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from stoic import Box, Finite, Learner, recipes
from stoic.data import Observations
from stoic.kernels import RBF
from stoic.models import GaussianProcess
from stoic.models.censored import censored_site, given_censored
from stoic.posteriors import Prior

LINE = Box([0.0], [1.0])
PRIOR = Prior(RBF(0.3), 0.01)
SEEN = np.array([[0.1], [0.45], [0.9]]), np.array([0.3, -0.4, 0.8])


def with_bounds(x, bounds, noise=None):
    """Three measured rows, and further ones with a bound."""
    n, k = len(SEEN[1]), len(bounds)
    variances = np.full(n + k, np.nan)
    if noise is not None:
        variances[n:] = noise
    return Observations(
        np.concatenate([SEEN[0], np.reshape(x, (k, 1))]),
        np.concatenate([SEEN[1], bounds]),
        variances,
        censored=np.repeat([False, True], [n, k]),
    )


def by_sampling(observations, at, draws=100_000):
    """Mean and deviation of f at ``at`` by weighted draws from the Gaussian process, literally."""
    rows = observations.censored
    measured = observations.only(~rows)
    x = np.concatenate([observations.x[rows], at])
    mean, covariance = GaussianProcess(PRIOR)(LINE, measured).jointly(x)
    f = np.random.default_rng(0).multivariate_normal(mean, covariance, draws, check_valid="ignore")
    k = int(rows.sum())
    sd = np.sqrt(observations.own_noise(PRIOR.noise)[rows])
    weights = np.prod(norm.cdf((observations.observed[rows] - f[:, :k]) / sd), axis=1)
    weights /= weights.sum()
    means = weights @ f[:, k:]
    return means, np.sqrt(weights @ (f[:, k:] - means) ** 2)


@pytest.mark.parametrize("bound", [-2.0, -0.5, 0.0, 0.7, 3.0])
@pytest.mark.parametrize("v", [0.01, 1.0])
def test_a_site_matches_the_moments_of_the_likelihood(bound, v):
    mu, noise = 0.2, 0.05
    f = mu + np.sqrt(v) * np.linspace(-12.0, 12.0, 200_001)
    density = norm.pdf(f, mu, np.sqrt(v)) * norm.cdf((bound - f) / np.sqrt(noise))
    density /= density.sum()
    mean = density @ f
    variance = density @ (f - mean) ** 2
    found = censored_site(*(np.array([a]) for a in (bound, mu, v, noise)))
    value, site = (float(of[0]) for of in found)
    if site < 1e5:  # else the bound says nothing
        assert 1.0 / (1.0 / v + 1.0 / site) == pytest.approx(variance, rel=1e-6)
        assert (mu / v + value / site) / (1.0 / v + 1.0 / site) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("z", [-1e9, -1e6, -300.0, -40.0, 40.0, 1e3, 1e12])
def test_a_site_is_finite_far_from_its_bound(z):
    value, noise = censored_site(*(np.array([a]) for a in (z, 0.0, 1.0, 0.5)))
    assert np.isfinite(value)[0]
    assert 0.5 <= noise[0] <= 1e7
    if -1e5 < z < -30.0:
        assert value[0] == pytest.approx(z, rel=2e-3)  # as an observation of the bound
        assert noise[0] == pytest.approx(0.5, rel=2e-2)
    if z > 0.0:
        assert abs(value[0] / (1.0 + noise[0])) < 1e-6  # no pull


@pytest.mark.parametrize(
    ("x", "bounds", "noise"),
    [
        ([0.7], [0.0], None),
        ([0.7], [0.0], 0.2),
        ([0.7, 0.72], [0.1, -0.2], None),
        ([0.2, 0.6, 0.65, 0.7, 0.95], [0.0, -0.5, 0.0, 0.3, 0.6], None),
    ],
)
def test_the_posterior_is_that_of_sampling(x, bounds, noise):
    observations = with_bounds(x, bounds, noise)
    at = np.array([[0.3], [0.55], [0.7], [0.8]])
    posterior, _ = given_censored(GaussianProcess(PRIOR), LINE, observations)
    mean, std = posterior.predict(at)
    expected, spread = by_sampling(observations, at)
    np.testing.assert_allclose(mean, expected, atol=0.02)
    np.testing.assert_allclose(std, spread, atol=0.02)


def test_sites_are_those_of_the_literal_twin():
    """One site after another, each from the joint posterior without it, by plain inverses."""
    x, bounds = np.array([0.2, 0.6, 0.7]), np.array([0.0, -0.5, 0.2])
    observations = with_bounds(x, bounds)
    _, found = given_censored(GaussianProcess(PRIOR), LINE, observations)
    K = PRIOR.kernel(observations.x, observations.x)
    y, noise = observations.observed.copy(), np.full(6, PRIOR.noise)
    noise[3:], y[3:] = 1e6, 0.0
    for _ in range(200):
        for i in (3, 4, 5):
            others = [j for j in range(6) if j != i]
            A = np.linalg.inv(K[np.ix_(others, others)] + np.diag(noise[others]))
            mu = K[i, others] @ A @ y[others]
            v = K[i, i] - K[i, others] @ A @ K[others, i]
            z = (bounds[i - 3] - mu) / np.sqrt(v + PRIOR.noise)
            pull = norm.pdf(z) / norm.cdf(z)
            mean = mu - v * pull / np.sqrt(v + PRIOR.noise)
            variance = v - v**2 * pull * (z + pull) / (v + PRIOR.noise)
            noise[i] = 1.0 / (1.0 / variance - 1.0 / v)
            y[i] = noise[i] * (mean / variance - mu / v)
    twin = Observations(observations.x, y, noise)
    at = LINE.spread(20, np.random.default_rng(0))
    expected, spread = GaussianProcess(PRIOR)(LINE, twin).predict(at)
    mean, std = GaussianProcess(PRIOR)(LINE, found.observations).predict(at)
    np.testing.assert_allclose(mean, expected, atol=2e-3)
    np.testing.assert_allclose(std, spread, atol=2e-3)


def test_a_bound_that_says_nothing_changes_nothing():
    observations = with_bounds([0.6, 0.7], [50.0, 1e9])
    posterior, _ = given_censored(GaussianProcess(PRIOR), LINE, observations)
    at = LINE.spread(20, np.random.default_rng(0))
    without = GaussianProcess(PRIOR)(LINE, observations.only(slice(3)))
    for one, other in zip(posterior.predict(at), without.predict(at), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def bowl(x):
    return -4.0 * (x[:, 0] - 0.3) ** 2


def begun(domain=LINE, recipe=None):
    learner = Learner(domain, recipe, seed=0)
    x = domain.spread(16, np.random.default_rng(3))
    noise = 0.02 * np.random.default_rng(4).standard_normal(len(x))
    learner.tell(x, bowl(x) + noise)
    return learner


def test_a_bound_that_all_others_contradict_is_distrusted():
    learner = begun()
    without = learner.posterior.predict(np.array([[0.3]]))[0][0]
    learner.tell([0.3], -1.5, censored=True)  # they say 0: 'at least this bad' is a lie
    learner.tell([0.9], -0.5, censored=True)  # they say -1.44
    assert learner.trust[16] < 0.5
    assert learner.trust[17] > 0.9
    assert abs(learner.posterior.predict(np.array([[0.3]]))[0][0] - without) < 0.1


def test_bounds_keep_the_search_away_and_are_not_recommended():
    learner = Learner(LINE, seed=0)
    learner.tell([[0.1], [0.2], [0.3]], [0.1, 0.2, 0.3])
    learner.tell([[0.6], [0.75], [0.9]], [0.2] * 3, censored=True)
    mean = learner.posterior.predict(np.array([[0.75]]))[0][0]
    assert mean < 0.4  # the line would go on to 0.75
    assert learner.recommend().x[0] <= 0.3
    for _ in range(5):
        x = learner.ask().x
        assert np.abs(x - np.array([0.6, 0.75, 0.9])).min() > 1e-6
        learner.tell(x, -1.0, censored=True)


@pytest.mark.parametrize(
    "recipe",
    [recipes.gp_ucb(), recipes.fc_rcgp_ucb(), recipes.loo_gp_ucb(), recipes.tp_ucb()],
    ids=lambda recipe: type(recipe).__name__,
)
@pytest.mark.parametrize("domain", [LINE, LINE.grid(30)], ids=["box", "grid"])
def test_every_model_takes_bounds(recipe, domain):
    learner = begun(domain, recipe)
    far = domain.points[-1] if isinstance(domain, Finite) else np.array([0.97])
    before = learner.posterior.predict(far[None])[0][0]
    learner.tell(far, before - 1.0, censored=True)
    assert learner.posterior.predict(far[None])[0][0] < before
    assert np.isfinite(learner.ask().x).all()
    learner.tell(far, before)
    assert len(learner.trust) == 18


def test_a_revised_observation_is_as_if_it_had_been_told_so():
    revised, told = begun(), begun()
    revised.tell([0.8], -1.0, censored=True)
    revised.ask()
    revised.revise(16, -0.9, 0.01)
    told.tell([0.8], -0.9, 0.01)
    assert revised.observations.censored is None
    np.testing.assert_array_equal(revised.observations.observed, told.observations.observed)
    np.testing.assert_array_equal(revised.observations.noise, told.observations.noise)
    at = LINE.spread(20, np.random.default_rng(0))
    one, other = revised.posterior.predict(at), told.posterior.predict(at)
    np.testing.assert_allclose(one[0], other[0], atol=0.02)  # up to the warm start


def test_nonsense_is_refused_and_nothing_is_stored():
    learner = begun()
    with pytest.raises(ValueError, match="bound of a censored result is a finite number"):
        learner.tell([0.5], np.nan, censored=True)
    with pytest.raises(ValueError, match="no number 16"):
        learner.revise(16, 0.0)
    with pytest.raises(ValueError, match="positive number"):
        learner.revise(3, 0.0, -1.0)
    assert len(learner) == 16
    planning = Learner(LINE.grid(10), recipes.rgp_pe(prior=PRIOR), seed=0)
    with pytest.raises(ValueError, match="plans by results"):
        planning.revise(0, 0.0)


@pytest.mark.parametrize("rows", [280, 500])  # all in the window, and only some
def test_bounds_among_more_rows_than_the_exact_model_takes(rows):
    learner, rng = Learner(LINE, seed=0), np.random.default_rng(0)
    x = rng.random((rows, 1))
    censored = np.arange(rows) % 7 == 0
    y = bowl(x) + 0.02 * rng.standard_normal(rows)
    learner.tell(x[~censored], y[~censored])
    learner.tell(x[censored], bowl(x[censored]) + 0.3, censored=True)  # true, and loose
    assert abs(learner.recommend().x[0] - 0.3) < 0.05
    assert learner.trust.min() > 0.5
    mean, _ = learner.posterior.predict(np.array([[0.3], [0.9]]))
    np.testing.assert_allclose(mean, bowl(np.array([[0.3], [0.9]])), atol=0.02)


def test_a_grid_has_the_sites_of_its_box():
    box, grid = (Learner(d, recipes.gp_ucb(prior=PRIOR), seed=0) for d in (LINE, LINE.grid(11)))
    at = LINE.grid(11).points
    for one in (box, grid):
        one.tell(at[2], 0.4)
        one.tell(at[6], -0.5, censored=True)
    for mine, its in zip(grid.posterior.predict(at), box.posterior.predict(at), strict=True):
        np.testing.assert_allclose(mine, its, atol=1e-8)
