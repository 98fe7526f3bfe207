"""The classifier against a literal Laplace approximation, sampling, and finite differences."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from stoic import Box
from stoic.kernels import RBF, Matern52, Scaled
from stoic.posteriors.feasibility import Feasibility

RNG = np.random.default_rng(0)
YES = RNG.uniform([0.0, 0.0], [0.6, 1.0], (9, 2))
NO = RNG.uniform([0.5, 0.0], [1.0, 1.0], (6, 2))
KERNEL = Scaled(Matern52(np.array([0.3, 0.5])), 3.0)


def literal():
    """Mode by a general optimiser over K^-1/2 (g - m), and minus the Hessian there."""
    x = np.concatenate([YES, NO])
    s = np.repeat([1.0, -1.0], [9, 6])
    K = KERNEL(x, x)
    mean = norm.ppf(10.0 / 17.0) * 2.0  # sqrt(1 + 3)
    root = np.linalg.cholesky(K)

    def loss(z):
        return 0.5 * z @ z - norm.logcdf(s * (mean + root @ z)).sum()

    g = mean + root @ minimize(loss, np.zeros(15), tol=1e-12).x
    ratio = norm.pdf(g) / norm.cdf(s * g)
    W = ratio**2 + s * g * ratio
    return x, s, K, mean, g, W


def test_the_mode_and_the_prediction_are_the_literal_ones():
    x, s, K, mean, g, W = literal()
    model = Feasibility.condition(KERNEL, YES, NO)
    assert model.mean == pytest.approx(mean)
    np.testing.assert_allclose(mean + K @ model.slope, g, atol=1e-4)
    np.testing.assert_allclose(model.root**2, W, atol=1e-4)
    at = RNG.uniform(size=(20, 2))
    k = KERNEL(at, x)
    centre = mean + k @ np.linalg.solve(K, g - mean)
    variance = 3.0 - np.einsum("ij,ji->i", k, np.linalg.solve(K + np.diag(1.0 / W), k.T))
    np.testing.assert_allclose(model(at), norm.cdf(centre / np.sqrt(1.0 + variance)), atol=1e-4)
    B = np.eye(15) + np.sqrt(W)[:, None] * K * np.sqrt(W)
    evidence = norm.logcdf(s * g).sum() - 0.5 * (g - mean) @ np.linalg.solve(K, g - mean)
    evidence -= 0.5 * np.linalg.slogdet(B)[1]
    assert model.evidence == pytest.approx(evidence, abs=1e-6)


def test_gradients_are_those_of_finite_differences():
    model = Feasibility.condition(Scaled(RBF(np.array([0.3, 0.5])), 3.0), YES, NO)
    at, h = RNG.uniform(size=(7, 2)), 1e-6
    p, slope = model.with_gradient(at)
    np.testing.assert_allclose(p, model(at), rtol=1e-12)
    for j in range(2):
        step = h * np.eye(2)[j]
        difference = (model(at + step) - model(at - step)) / (2.0 * h)
        np.testing.assert_allclose(slope[:, j], difference, atol=1e-7)


def test_a_half_plane_is_learned():
    box = Box([0.0, -5.0], [1.0, 5.0])
    x = box.spread(64, np.random.default_rng(1))
    feasible = x[:, 0] < 0.5
    model = Feasibility.learned(box, x[feasible], x[~feasible])
    at = box.sample(500, np.random.default_rng(2))
    p, truth = model(at), at[:, 0] < 0.5
    assert np.mean((p > 0.5) == truth) > 0.95
    assert p[truth].mean() > 0.85
    assert p[~truth].mean() < 0.15


def test_far_from_everything_the_share_seen_so_far_is_expected():
    model = Feasibility.condition(KERNEL, YES, NO)
    assert model(np.array([[1e3, 1e3]]))[0] == pytest.approx(10.0 / 17.0)


@pytest.mark.parametrize("n", [0, 1, 30])
def test_the_same_place_may_fail_many_times(n):
    x = np.zeros((n, 2))
    model = Feasibility.learned(Box([-1.0, -1.0], [1.0, 1.0]), x, np.zeros((25, 2)))
    p = model(np.array([[0.0, 0.0], [0.9, 0.9]]))
    assert np.isfinite(p).all()
    assert p[0] <= 0.6
