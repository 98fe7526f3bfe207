import numpy as np
import pytest
from scipy.linalg import sqrtm

import literal
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Matern12, Matern52, Precomputed, Scaled
from stoic.problems import KernelSum, Problem, f1, gaussian_draw, kernel_sum

LINE = Finite(np.linspace(20.0, 21.0, 12))
FINE = Finite(np.linspace(0.0, 1.0, 100))


def test_a_draw_is_the_symmetric_root_times_white_noise():
    kernel = Scaled(Matern12(0.3), 4.0)
    z = np.random.default_rng(8).standard_normal(12)
    expected = sqrtm(kernel(LINE.points, LINE.points)) @ z
    np.testing.assert_allclose(gaussian_draw(LINE, kernel, 8).values, expected, rtol=1e-9)


def test_draws_have_the_covariance_of_the_kernel():
    kernel = Scaled(RBF(0.2), 2.0)
    K = kernel(LINE.points, LINE.points)
    draws = np.array([gaussian_draw(LINE, kernel, seed).values for seed in range(3000)])
    # 78 entries, 5 standard errors each: a false alarm in about 20,000 choices of the seeds
    error = np.sqrt((K**2 + np.outer(K.diagonal(), K.diagonal())) / 3000)
    assert (np.abs(draws.T @ draws / 3000 - K) < 5.0 * error).all()


def test_a_covariance_without_full_rank_needs_no_jitter():
    # Smooth on a fine grid: most of the 100 eigenvalues are rounding.
    values = gaussian_draw(FINE, RBF(0.5), 1).values
    K = RBF(0.5)(FINE.points, FINE.points)
    outside = np.linalg.eigh(K)[1][:, :60].T @ values
    assert np.abs(outside).max() < 1e-6 * np.abs(values).max()
    pair = Precomputed(np.ones((2, 2)))
    first, second = gaussian_draw(Finite(np.arange(2.0)), pair, 3).values
    assert first == pytest.approx(second, abs=1e-12)


def test_a_draw_does_not_depend_on_where_the_points_are():
    # The points of a square grid have equal eigenvalues: only a symmetric root is unique there.
    grid = Box(np.array([0.0, 0.0]), np.array([1.0, 1.0])).grid(7)
    moved = Finite(grid.points + 1000.0)
    here, there = (gaussian_draw(points, RBF(0.3), 5).values for points in (grid, moved))
    np.testing.assert_allclose(here, there, atol=1e-5)


def test_an_indefinite_kernel_is_refused():
    with pytest.raises(ValueError, match="eigenvalue -1 on these 2 points"):
        gaussian_draw(Finite(np.arange(2.0)), Precomputed(np.array([[0.0, 1.0], [1.0, 0.0]])), 0)


def test_f1_is_the_setting_of_the_paper():
    problem = f1(0)
    assert isinstance(problem, Problem)
    points = problem.domain.points
    assert points.shape == (100, 2)
    assert np.unique(points[:, 0]).tolist() == np.unique(points[:, 1]).tolist()
    np.testing.assert_allclose(np.unique(points[:, 0]), -5.0 + np.arange(10) * 10.0 / 9.0)
    # f' K^-1 f is the squared length of the white noise it was made of.
    z = np.random.default_rng(0).standard_normal(100)
    K = literal.rbf(points, points, 0.5)
    assert problem.values @ np.linalg.solve(K, problem.values) == pytest.approx(z @ z, rel=1e-9)
    assert problem.optimum.value == problem.values.max()
    assert not np.allclose(problem.values, f1(1).values)
    assert problem.values.tolist() == f1(0).values.tolist()


def test_the_norm_of_a_sum_by_hand():
    k = np.exp(-0.5)
    f = KernelSum("two", LINE, RBF(1.0), np.array([[20.0], [21.0]]), np.array([3.0, -2.0]))
    assert f.norm == pytest.approx(np.sqrt(9.0 + 4.0 - 12.0 * k), rel=1e-12)
    np.testing.assert_allclose(f.value(np.array([[20.0]])), [3.0 - 2.0 * k])
    assert f.optimum.x.tolist() == [20.0]


def test_a_sum_is_evaluated_off_its_grid_and_bounded_by_its_norm():
    f = kernel_sum(FINE, Matern52(0.2), 4)
    x = np.random.default_rng(0).uniform(-1.0, 2.0, (200, 1))
    literally = sum(
        w * Matern52(0.2)(x, s[None])[:, 0] for w, s in zip(f.weights, f.centres, strict=True)
    )
    np.testing.assert_allclose(f.value(x), literally, rtol=1e-9, atol=1e-12)
    # |f(x)| <= ||f|| k(x, x)^(1/2), and between two points by the kernel metric.
    assert np.abs(f.value(x)).max() <= f.norm
    metric = np.sqrt(2.0 - 2.0 * Matern52(0.2)(x, x))
    assert (np.abs(np.subtract.outer(f.value(x), f.value(x))) <= f.norm * metric + 1e-9).all()


@pytest.mark.parametrize("coefficients", [(-1.0, 1.0), (0.0, 1.0)])
def test_normalised_draws_of_the_heavy_tailed_experiments(coefficients):
    raw = kernel_sum(FINE, RBF(0.2), 7, coefficients=coefficients)
    f = kernel_sum(FINE, RBF(0.2), 7, coefficients=coefficients, normalise=True)
    assert isinstance(f, Problem)
    values, scale = f.value(FINE.points), np.abs(raw.value(FINE.points)).max()
    assert np.abs(values).max() == pytest.approx(1.0, rel=1e-12)
    assert f.norm == pytest.approx(raw.norm / scale, rel=1e-12)
    assert f.norm >= 1.0  # |f| <= norm, and |f| reaches 1
    assert f.optimum.value == values.max()
    assert len(f.weights) == 100
    assert np.isin(f.centres, FINE.points).all()
    assert raw.weights.min() >= coefficients[0]
    assert raw.weights.max() <= coefficients[1]
    assert np.ptp(raw.weights) > 0.9 * (coefficients[1] - coefficients[0])
    if coefficients[0] == 0.0:
        assert values.min() > 0.0


def test_a_seed_fixes_a_sum():
    first, again, other = (kernel_sum(FINE, RBF(0.2), seed, terms=5) for seed in (3, 3, 4))
    assert first.weights.tolist() == again.weights.tolist()
    assert first.centres.tolist() == again.centres.tolist()
    assert first.weights.tolist() != other.weights.tolist()


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="at least one term"):
        kernel_sum(FINE, RBF(0.2), 0, terms=0)
    with pytest.raises(ValueError, match="a range of coefficients"):
        kernel_sum(FINE, RBF(0.2), 0, coefficients=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"points of shape \(m, 1\)"):
        kernel_sum(FINE, RBF(0.2), 0).value(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"shapes \(2, 1\) and \(3,\)"):
        KernelSum("bad", FINE, RBF(0.2), np.zeros((2, 1)), np.zeros(3))
