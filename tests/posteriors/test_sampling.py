"""Draws of hyperparameters against densities that are known or integrated on a grid."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stoic.data import Observations
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess, LeaveOneOutGP
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors import Prior
from stoic.posteriors.fitting import (
    BROAD_NOISE_PRIOR,
    Fitting,
    FixedHyperparameters,
    Problem,
    marginal_likelihood,
)
from stoic.posteriors.mixture import Averaged
from stoic.posteriors.sampling import (
    LogDensity,
    Mode,
    chain,
    climb,
    elliptical_slice,
    find_modes,
    sample_hyperparameters,
)
from stoic.posteriors.scales import mean_and_sd
from stoic.recipes import robust

BOX = Box([0.0], [1.0])
FAMILY = Prior(Scaled(Matern52(0.3), 1.0), 0.01)


def wave(n, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    y = np.sin(6.0 * x[:, 0]) + noise * rng.standard_normal(n)
    return Observations(x, y, np.full(n, np.nan))


def normal(centre, deviations, log_mass=0.0):
    deviations = np.array(deviations)
    height = -float(np.log(deviations).sum())
    return Mode(np.array(centre), np.diag(deviations), np.diag(1.0 / deviations), height, log_mass)


def test_slices_draw_from_a_conjugate_posterior():
    # N(m, s^2) times N(data; u, r^2) is normal, and sliced on the ellipses of N(m, s^2). The
    # tolerance is five standard errors of 400 draws that are as good as independent.
    mean, sd, data, spread = np.array([1.0, -2.0]), np.array([2.0, 0.5]), np.array([3.0, 0.0]), 0.7

    def log_density(v):
        return float(-0.5 * np.sum(((v - mean) / sd) ** 2 + ((v - data) / spread) ** 2))

    mode, rng, v, draws = normal(mean, sd), np.random.default_rng(0), mean, []
    here = log_density(v)
    for _ in range(8100):
        v, here = elliptical_slice(log_density, v, here, mode, rng)
        draws.append(v)
    draws = np.array(draws[100::20])
    precision = 1.0 / sd**2 + 1.0 / spread**2
    expected = (mean / sd**2 + data / spread**2) / precision
    assert np.all(np.abs(draws.mean(axis=0) - expected) < 5.0 / np.sqrt(400.0 * precision))
    assert_allclose(draws.std(axis=0) * np.sqrt(precision), 1.0, atol=5.0 / np.sqrt(800.0))


def test_where_the_density_is_zero_a_chain_stays():
    steps = chain(lambda v: -np.inf, [normal([3.0, 3.0], [1.0, 1.0])], np.random.default_rng(0))
    assert_allclose(list(itertools.islice(steps, 3)), 3.0)


def test_a_chain_goes_between_modes_that_are_far_apart():
    # Two normal densities, of shares .2 and .8, nine deviations apart; the approximations are
    # wrong about both widths and shares.
    def log_density(v):
        near, far = -0.5 * v[0] ** 2, -0.5 * ((v[0] - 9.0) / 0.5) ** 2
        return float(np.logaddexp(np.log(0.2) + near, np.log(0.8 / 0.5) + far))

    modes = [normal([0.0], [1.3], np.log(0.5)), normal([9.0], [0.8], np.log(0.5))]
    steps = chain(log_density, modes, np.random.default_rng(0))
    draws = np.array(list(itertools.islice(steps, 10, 4010, 4)))[:, 0]
    far = draws > 5.0
    assert abs(far.mean() - 0.8) < 5.0 * np.sqrt(0.16 / 500.0)  # half are independent
    assert abs(draws[far].std() - 0.5) < 5.0 * 0.5 / np.sqrt(800.0)


def test_hyperparameters_have_the_density_that_a_fit_maximises():
    # Two free ones, lengthscale and noise, on a grid of their whole range.
    observations = wave(8)
    fitting = Fitting(marginal_likelihood, mean_and_sd, None, BROAD_NOISE_PRIOR)
    fitted_defence = Hypothesis(np.zeros(8))
    problem = Problem.of(fitting, BOX, observations, fitted_defence, FAMILY)
    (low_l, high_l), _, (low_n, high_n) = problem.bounds
    grid = [(a, b) for a in np.linspace(low_l, high_l, 60) for b in np.linspace(low_n, high_n, 60)]
    points = np.array([[a, 0.0, b] for a, b in grid])
    if problem.kinds[0] == "variance":
        points = points[:, [1, 0, 2]]
    # A fit maximises the density of the hyperparameters; that of their logarithms has a Jacobian.
    log_density = [-problem(u)[0] + u[problem.free].sum() for u in points]
    weights = np.exp(np.array(log_density) - max(log_density))
    weights /= weights.sum()
    expected = weights @ points
    spread = np.sqrt(weights @ (points - expected) ** 2)
    drawn = sample_hyperparameters(
        fitting,
        BOX,
        observations,
        fitted_defence,
        problem.prior(problem.typical),
        500,
        np.random.default_rng(0),
    )
    u = np.array([problem.coordinates(prior) for prior in drawn])
    # At least half of the draws are as good as independent.
    assert np.all(np.abs(u.mean(axis=0) - expected) <= 5.0 * spread / np.sqrt(250.0) + 1e-9)
    assert_allclose(u.std(axis=0)[problem.free], spread[problem.free], rtol=0.3)


@pytest.mark.parametrize("n", [10, pytest.param(25, marks=pytest.mark.slow)])
def test_where_noise_and_a_short_lengthscale_compete_both_are_drawn(n):
    # Pure noise. From the mode of the fit alone the means were up to 7 deviations off.
    rng = np.random.default_rng([0, n])
    observations = Observations(rng.random((n, 1)), rng.standard_normal(n), np.full(n, np.nan))
    fitting = Fitting(marginal_likelihood, mean_and_sd, None, BROAD_NOISE_PRIOR)
    fitted_defence = Hypothesis(np.zeros(n))
    start = fitting(BOX, observations, fitted_defence, FAMILY)
    problem = Problem.of(fitting, BOX, observations, fitted_defence, FAMILY)
    density = LogDensity(problem, start)
    axes = [np.linspace(max(low, -4.0), min(high, 4.0), 60) for low, high in density.bounds]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = np.array([density(v) for v in points])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    expected = weights @ points
    spread = np.sqrt(weights @ (points - expected) ** 2)
    steps = chain(density, find_modes(density), np.random.default_rng(0))
    drawn = np.array(list(itertools.islice(steps, 10, 6010, 3)))
    # An autocorrelation time of 40 steps where the tails are longest.
    assert np.all(np.abs(drawn.mean(axis=0) - expected) <= 5.0 * spread / np.sqrt(150.0))
    assert_allclose(drawn.std(axis=0), spread, rtol=0.3)


@pytest.mark.parametrize("given", [np.nan, 0.3])
def test_the_gradient_of_the_density_is_that_of_finite_differences(given):
    observations = wave(9)
    observations.noise[::2] = given
    fitted_defence = Hypothesis(np.where(np.arange(9) == 4, 0.5, 0.0))
    fitting = Fitting(marginal_likelihood, mean_and_sd, noise=BROAD_NOISE_PRIOR)
    problem = Problem.of(fitting, BOX, observations, fitted_defence, FAMILY)
    density, h = LogDensity(problem, FAMILY), 1e-5
    for v in np.random.default_rng(0).standard_normal((5, len(density.starts[0]))):
        value, gradient = density.with_gradient(v)
        assert_allclose(value, density(v), rtol=1e-12)
        for side, slope in zip(h * np.eye(len(v)), gradient, strict=True):
            difference = (density(v + side) - density(v - side)) / (2.0 * h)
            assert_allclose(slope, difference, rtol=1e-5, atol=1e-6)


def test_the_approximation_is_the_density_where_that_is_normal():
    # Results that say nothing leave the density of the priors, whose mode is their centre.
    observations = wave(4)
    nothing = Observations(observations.x, observations.observed, np.full(4, 1e12))
    fitting = Fitting(marginal_likelihood, mean_and_sd, noise=BROAD_NOISE_PRIOR)
    fitted_defence = Hypothesis(np.zeros(4))
    problem = Problem.of(fitting, BOX, nothing, fitted_defence, FAMILY)
    density = LogDensity(problem, FAMILY)
    centre = climb(density, np.full(3, 0.5))
    mode = Mode.at(density, centre)
    assert_allclose(centre, 0.0, atol=1e-4)
    assert_allclose(mode.root @ mode.root.T, 1.3**2 * np.eye(3), atol=1e-3)
    assert_allclose(mode.root @ mode.inverse, np.eye(3), atol=1e-12)
    assert len(find_modes(density)) == 2  # and the prior


def test_an_average_has_the_moments_of_the_mixture():
    observations, x = wave(12), np.linspace(0.0, 1.0, 7)[:, None]
    parts = tuple(
        GaussianProcess(Prior(Matern52(lengthscale), 0.05))(BOX, observations)
        for lengthscale in (0.1, 0.3, 0.8)
    )
    weights = np.array([0.5, 0.3, 0.2])
    average = Averaged(parts, weights, parts[0].fitted_defence, widening=1.5)
    mean, std = average.predict(x)
    means, stds = (np.array(of) for of in zip(*(part.predict(x) for part in parts), strict=True))
    expected = weights @ means
    assert_allclose(mean, expected)
    assert_allclose(std, 1.5 * np.sqrt(weights @ (stds**2 + means**2) - expected**2))
    step = 1e-6
    _, _, slope, std_slope = average.predict_with_gradient(x)
    above, below = average.predict(x + step), average.predict(x - step)
    assert_allclose(slope[:, 0], (above[0] - below[0]) / (2.0 * step), rtol=1e-5, atol=1e-7)
    assert_allclose(std_slope[:, 0], (above[1] - below[1]) / (2.0 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("n", [0, 1])
def test_without_two_results_there_is_nothing_to_integrate(n):
    learner = Learner(BOX, robust(), seed=0)
    for x, y in zip(np.linspace(0.2, 0.8, n), np.arange(n), strict=True):
        learner.tell([x], y)
    for one, other in zip(
        learner.estimate.predict([[0.5]]), learner.posterior.predict([[0.5]]), strict=True
    ):
        assert_allclose(one, other)


def test_given_hyperparameters_are_known():
    learner = Learner(BOX, robust(prior=FAMILY), seed=0)
    observations = wave(6)
    learner.tell(observations.x, observations.observed)
    for one, other in zip(
        learner.estimate.predict([[0.5]]), learner.posterior.predict([[0.5]]), strict=True
    ):
        assert_allclose(one, other, rtol=1e-4)  # odds are settled to that, each time
    assert isinstance(learner.model.fitting, FixedHyperparameters)


def test_what_is_reported_is_the_same_however_often_it_is_asked_and_wider():
    observations, wider = wave(10, noise=0.4), []
    for _ in range(2):
        model = LeaveOneOutGP(FAMILY, Fitting(marginal_likelihood))
        posterior = model(BOX, observations)
        average = model.integrated(BOX, observations, posterior)
        wider.append(average.predict(observations.x)[1] / posterior.predict(observations.x)[1])
    assert_allclose(wider[0], wider[1])
    assert np.median(wider[0]) > 1.0
