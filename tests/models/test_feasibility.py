"""The classifier against a literal regression of labels, and finite differences."""

import numpy as np
import pytest
from scipy.stats import norm

from stoic import Box
from stoic.kernels import RBF, Matern52, Scaled
from stoic.models.feasibility import Feasibility

RNG = np.random.default_rng(0)
YES = RNG.uniform([0.0, 0.0], [0.6, 1.0], (9, 2))
NO = RNG.uniform([0.5, 0.0], [1.0, 1.0], (6, 2))
KERNEL = Scaled(Matern52(np.array([0.3, 0.5])), 3.0)


def test_a_prediction_is_the_literal_one():
    model = Feasibility.condition(KERNEL, 0.1, YES, NO)
    x, y = np.concatenate([YES, NO]), np.repeat([1.0, -1.0], [9, 6])
    mean = norm.ppf(10.0 / 17.0) * np.sqrt(3.1)
    assert model.mean == pytest.approx(mean)
    inverse = np.linalg.inv(KERNEL(x, x) + 0.1 * np.eye(15))
    at = RNG.uniform(size=(20, 2))
    k = KERNEL(at, x)
    centre = mean + k @ inverse @ (y - mean)
    variance = 3.1 - np.einsum("ij,jk,ik->i", k, inverse, k)
    literal = 0.05 * 10.0 / 17.0 + 0.95 * norm.cdf(centre / np.sqrt(variance))
    np.testing.assert_allclose(model(at), literal, atol=1e-10)


def test_the_evidence_is_that_of_each_label_by_all_others():
    model = Feasibility.condition(KERNEL, 0.1, YES, NO)
    x, y = np.concatenate([YES, NO]), np.repeat([1.0, -1.0], [9, 6])
    evidence = -9.0 * np.log(10.0 / 17.0) - 6.0 * np.log(7.0 / 17.0)
    for i in range(15):
        others = np.arange(15) != i
        K = KERNEL(x[others], x[others]) + 0.1 * np.eye(14)
        k = KERNEL(x[i : i + 1], x[others])[0]
        centre = model.mean + k @ np.linalg.solve(K, y[others] - model.mean)
        variance = 3.1 - k @ np.linalg.solve(K, k)
        p = 0.05 * 10.0 / 17.0 + 0.95 * norm.cdf(centre / np.sqrt(variance))
        evidence += np.log(p if y[i] > 0.0 else 1.0 - p)
    assert model.evidence == pytest.approx(evidence, rel=1e-10)


def test_gradients_are_those_of_finite_differences():
    model = Feasibility.condition(Scaled(RBF(np.array([0.3, 0.5])), 3.0), 0.1, YES, NO)
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
    model = Feasibility.condition(KERNEL, 0.1, YES, NO)
    assert model(np.array([[1e3, 1e3]]))[0] == pytest.approx(10.0 / 17.0)
    assert model.share == pytest.approx(10.0 / 17.0)


@pytest.mark.parametrize("n", [0, 1, 30])
def test_the_same_place_may_fail_many_times(n):
    x = np.zeros((n, 2))
    model = Feasibility.learned(Box([-1.0, -1.0], [1.0, 1.0]), x, np.zeros((25, 2)))
    p = model(np.array([[0.0, 0.0], [0.9, 0.9]]))
    assert np.isfinite(p).all()
    assert p[0] <= 0.6


LABELLED = {  # of points of a square, or of five coordinates: whether there is no result
    "half": lambda x, rng: x[:, 0] > 0.5,
    "diagonal": lambda x, rng: x.mean(axis=1) > 0.5,
    "a fifth": lambda x, rng: x[:, -1] > 0.8,
    "one of two": lambda x, rng: rng.random(len(x)) < 0.5,
    "one of ten": lambda x, rng: rng.random(len(x)) < 0.1,
}


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("where", LABELLED)
def test_a_region_is_told_from_chance(where, d):
    """By 40 labels, 20 seeds each: medians are 12 nats and more for a region, -1 at random."""
    box, evidence = Box([0.0] * d, [1.0] * d), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = box.spread(40, rng)
        failed = LABELLED[where](x, rng)
        if failed.any():
            evidence.append(Feasibility.learned(box, x[~failed], x[failed]).evidence)
    if where.startswith("one of"):
        assert np.quantile(evidence, 0.75) < 0.0
    else:
        assert np.quantile(evidence, 0.25) > 5.0
