"""Sources of a warm start: the kernel against a literal one, its gradients, and the policy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic import linalg, testing
from stoic.data import Observations
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.posteriors import Prior
from stoic.posteriors.base import as_observed
from stoic.posteriors.exact import Exact
from stoic.recipes import robust
from stoic.sources import Source, informed

BOX = Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
KERNEL = Scaled(Matern52(np.array([0.3, 0.4])), 1.7)
NOISE = 0.01


def source(name="earlier", n=9, **changes):
    """Posterior of a function of the last coordinate, and of the first one on half of its range."""
    rng = np.random.default_rng(0)
    z = rng.random((n, 2))
    y = np.sin(6.0 * z[:, 0]) + z[:, 1]
    L = linalg.cholesky(KERNEL(z, z) + NOISE * np.eye(n))
    tables = np.array([np.linspace(0.0, 1.0, 5), np.linspace(0.5, 1.0, 5)])
    arguments = {"best": np.array([0.2, 0.5, 0.9]), "centre": 0.3, "unit": 1.2} | changes
    a = linalg.cholesky_solve(L, y)
    return Source(name, kernel=KERNEL, z=z, L=L, a=a, columns=np.array([2, 0]), tables=tables,
                  **arguments), z, y  # fmt: skip


def points(m, seed=1):
    return np.random.default_rng(seed).random((m, 3))


def test_moments_are_those_of_the_posterior_of_the_source():
    found, z, y = source()
    x = points(6)
    at = np.stack([x[:, 2], 0.5 + 0.5 * x[:, 0]], axis=1)
    A = np.linalg.inv(KERNEL(z, z) + NOISE * np.eye(len(z)))
    mean = (KERNEL(at, z) @ A @ y - 0.3) / 1.2
    covariance = (KERNEL(at, at) - KERNEL(at, z) @ A @ KERNEL(z, at)) / 1.2**2
    expected = 1.0 + np.outer(mean, mean) + covariance
    assert_allclose(found(x, x), expected, atol=1e-10)
    assert_allclose(found(x[:2], x[2:]), expected[:2, 2:], atol=1e-10)
    assert_allclose(found.diagonal(x), np.diagonal(expected), atol=1e-10)


def test_the_kernel_is_the_sum_and_its_gradients_are_right():
    own = Scaled(Matern52(np.array([0.3, 0.4, 0.5])), 0.7)
    sources = [source()[0], source("another", 4, unit=0.8)[0]]
    kernel = informed(own, sources).with_theta(np.log([0.7, 0.3, 0.4, 0.5, 0.9, 0.2]))
    assert [label for label, _ in kernel.labels[-2:]] == ["source", "source"]
    x, z = points(4), points(5, 2)
    expected = own(x, z) + 0.9 * sources[0](x, z) + 0.2 * sources[1](x, z)
    assert_allclose(kernel(x, z), expected, atol=1e-12)
    testing.check_kernel(kernel, 0.2 + 0.6 * points(9))  # where no table ends


def test_without_sources_the_kernel_is_the_kernel_and_a_tiny_weight_is_none():
    assert informed(KERNEL, ()) is KERNEL
    own = Scaled(Matern52(np.full(3, 0.4)), 0.7)
    none = informed(own, [source()[0]]).with_theta(np.log([0.7, 0.4, 0.4, 0.4, 1e-12]))
    assert_allclose(none(points(5), points(5)), own(points(5), points(5)), atol=1e-10)


def test_the_weight_of_a_source_is_that_of_a_linear_regression():
    found, *_ = source(n=40)  # so many rows that next to nothing is left of its covariance
    x = points(60)
    means = found.moments(x)[1]
    for slope in (2.0, -2.0):
        y = 5.0 + slope * means
        kernel = informed(Scaled(Matern52(np.ones(3)), 1e-6), [found])
        kernel = kernel.with_theta(np.append(kernel.theta[:-1], np.log(9.0)))
        prior = Prior(kernel, 1e-4, 5.0)
        rows = Observations(x, y, np.full(len(x), np.nan))
        posterior = Exact.condition(prior, as_observed, rows, as_observed(rows, prior))
        assert kernel.slopes(posterior.x, posterior.alpha)[0] == pytest.approx(slope, abs=0.3)
        assert np.std(posterior.predict(points(30, 5))[0]) > 1.0


def test_the_first_queries_are_those_of_the_sources_each_once():
    first, second = source()[0], source("another", best=np.array([0.7, 0.1, 0.1]))[0]
    learner = Learner(BOX, robust(sources=(first, second)), seed=0)
    batch = Learner(BOX, robust(sources=(first, second)), seed=0).ask_batch(3)
    for asked in ([learner.ask() for _ in range(3)], batch):
        assert_array_equal([choice.x for choice in asked[:2]], [first.best, second.best])
        assert np.abs(asked[2].x - [first.best, second.best]).max(axis=1).min() > 0.01
    known = Learner(BOX, robust(sources=(first, second)), seed=0)
    known.tell(first.best, failed="infeasible")
    known.tell(second.best + 0.001, 1.0)
    assert np.abs(known.ask().x - [first.best, second.best]).max(axis=1).min() > 0.01


def test_a_given_prior_has_no_weight_to_learn():
    with pytest.raises(ValueError, match="give a prior or sources"):
        Learner(BOX, robust(sources=(source()[0],), prior=Prior(Matern52(1.0), 0.1)))
