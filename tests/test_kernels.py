import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import literal
from stoic import testing
from stoic.domains import Finite
from stoic.kernels import (
    RBF,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sum,
    at_one_place,
    kernel_metric,
)

STATIONARY = (RBF, Matern12, Matern32, Matern52)


def away_from_the_origin(n, d=2, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    return 20.0 + spread * rng.standard_normal((n, d))


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (RBF, lambda r: np.exp(-(r**2) / 2)),
        (Matern12, lambda r: np.exp(-r)),
        (Matern32, lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)),
        (Matern52, lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)),
    ],
)
def test_stationary_kernels_are_their_formulas(kernel, formula):
    x, z = away_from_the_origin(6), away_from_the_origin(5, seed=1)
    lengthscale = np.array([0.7, 4.0])
    for i in range(6):
        for j in range(5):
            r = np.sqrt(sum(((x[i] - z[j]) / lengthscale) ** 2))
            assert_allclose(kernel(lengthscale)(x, z)[i, j], formula(r), rtol=1e-10)
    assert_array_equal(np.diagonal(kernel(lengthscale)(x, x)), np.ones(6))
    assert kernel(2.0)(np.zeros((1, 1)), np.full((1, 1), 1e9))[0, 0] == 0.0


def test_the_literal_kernel_of_these_tests_is_the_kernel():
    x = away_from_the_origin(6)
    assert_allclose(literal.rbf(x, x, 1.7), RBF(1.7)(x, x), rtol=1e-12)


def test_linear_and_polynomial_are_their_formulas():
    x, z = away_from_the_origin(4), away_from_the_origin(3, seed=1)
    lengthscale = np.array([2.0, 5.0])
    inner = (x / lengthscale) @ (z / lengthscale).T
    assert_allclose(Linear(lengthscale)(x, z), inner, rtol=1e-13)
    polynomial = Polynomial(3, 0.5, Linear(lengthscale))
    assert_allclose(polynomial(x, z), (0.5 + inner) ** 3, rtol=1e-12)
    assert_allclose(polynomial.diagonal(x), np.diagonal(polynomial(x, x)), rtol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(STATIONARY),
    d=st.integers(1, 12),
    each=st.booleans(),
)
def test_stationary_kernels_keep_the_contract(seed, kind, d, each):
    # Beyond eight coordinates distances are computed in another way.
    rng = np.random.default_rng(seed)
    x = away_from_the_origin(7, d, seed)
    lengthscale = rng.uniform(1.0, 9.0, d) if each else float(rng.uniform(1.0, 9.0))
    testing.check_kernel(kind(lengthscale), x)


@given(seed=st.integers(0, 10**6))
def test_composed_kernels_keep_the_contract(seed):
    rng = np.random.default_rng(seed)
    parts = [
        RBF(rng.uniform(1.0, 5.0, 2)),
        Matern52(float(rng.uniform(1.0, 5.0))),
        Scaled(Linear(30.0), float(rng.uniform(0.1, 3.0))),
        Polynomial(2, 1.0, Linear(np.array([25.0, 40.0]))),
    ]
    a, b, c = (parts[i] for i in rng.integers(4, size=3))
    testing.check_kernel(Sum(Product(a, b), Scaled(c, 0.3)), away_from_the_origin(7, seed=seed))


def test_sums_products_and_scales_are_what_they_say():
    x, z = away_from_the_origin(6), away_from_the_origin(4, seed=1)
    a, b = RBF(np.array([1.0, 2.0])), Scaled(Linear(9.0), 2.0)
    assert_array_equal(Sum(a, b)(x, z), a(x, z) + b(x, z))
    assert_array_equal(Product(a, b)(x, z), a(x, z) * b(x, z))
    assert_array_equal(Scaled(a, 3.0)(x, z), 3.0 * a(x, z))
    assert Product(a, b).labels == (
        ("lengthscale", 0), ("lengthscale", 1), ("variance", None), ("lengthscale", None),
    )  # fmt: skip
    assert_allclose(Sum(a, b).theta, [0.0, np.log(2.0), np.log(2.0), np.log(9.0)])
    theta = np.array([0.1, -0.2, 0.3, 2.0])
    changed = Sum(a, b).with_theta(theta)
    assert_allclose(changed.theta, theta)
    assert_allclose(a.theta, [0.0, np.log(2.0)])  # the original is untouched


@pytest.mark.parametrize("kernel", [k(np.array([1.0, 3.0])) for k in STATIONARY], ids=repr)
def test_gradients_at_equal_rows_are_zero_and_finite(kernel):
    x = away_from_the_origin(5)
    _, pull = kernel.wrt_x(x, x)
    W = np.eye(5)  # each row against itself
    assert_allclose(pull(W), np.zeros((5, 2)), atol=1e-12)
    _, pull_theta = kernel.wrt_theta(np.concatenate([x, x]))
    assert np.isfinite(pull_theta(np.ones((10, 10)))).all()


@pytest.mark.parametrize("d", [2, 11])
@pytest.mark.parametrize("kind", STATIONARY)
def test_translation_changes_nothing_and_rescaling_belongs_to_the_lengthscale(kind, d):
    x, z = away_from_the_origin(6, d), away_from_the_origin(4, d, seed=1)
    here = kind(2.0)(x, z)
    assert_allclose(kind(2.0)(x + 1e4, z + 1e4), here, atol=1e-9)
    assert_allclose(kind(2e-3)(1e-3 * x, 1e-3 * z), here, atol=1e-12)


def test_a_kernel_matrix_is_positive_definite_up_to_rounding_in_many_dimensions():
    x = away_from_the_origin(60, 20, spread=0.3)
    for kind in STATIONARY:
        assert np.linalg.eigvalsh(kind(5.0)(x, x))[0] > -1e-12


def test_the_kernel_metric_is_a_distance_of_features():
    x, z = away_from_the_origin(8), away_from_the_origin(7, seed=1)
    linear = Linear(np.array([2.0, 5.0]))
    euclidean = np.linalg.norm((x[:, None] - z[None]) / [2.0, 5.0], axis=2)
    assert_allclose(kernel_metric(linear, x, z), euclidean, rtol=1e-6)
    kernel = Scaled(Matern32(2.0), 1.7)
    D = kernel_metric(kernel, x, x)
    assert_allclose(D, D.T)
    assert_array_equal(np.diagonal(D), np.zeros(8))
    for i in range(8):  # triangle inequality
        assert (D[:, [i]] + D[[i], :] + 1e-12 >= D).all()
    assert D.max() <= np.sqrt(2 * 1.7)


def test_precomputed_covariances_live_on_row_numbers():
    matrix = RBF(1.0)(away_from_the_origin(5), away_from_the_origin(5))
    kernel, rows = Precomputed(matrix), Finite(np.arange(5.0))
    assert_array_equal(kernel(rows.points, rows.points), matrix)
    assert_array_equal(kernel(rows.points[[3]], rows.points[[1, 2]]), matrix[[3]][:, [1, 2]])
    assert_array_equal(kernel.diagonal(rows.points[[4, 4]]), matrix[[4, 4], [4, 4]])
    assert kernel.with_theta(np.empty(0)) is kernel
    with pytest.raises(ValueError, match="no gradient in x"):
        kernel.wrt_x(rows.points, rows.points)
    with pytest.raises(ValueError, match="no gradient in x"):
        kernel.diagonal_wrt_x(rows.points)
    original = matrix.copy()
    matrix[0, 0] = 99.0
    assert_array_equal(kernel(rows.points, rows.points), original)  # a copy was taken


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RBF(0.0), "lengthscale"),
        (lambda: RBF(np.array([1.0, -1.0])), "lengthscale"),
        (lambda: Matern52(np.nan), "lengthscale"),
        (lambda: Linear(np.inf), "lengthscale"),
        (lambda: RBF(np.ones((2, 2))), "lengthscale"),
        (lambda: Polynomial(0), "degree >= 1"),
        (lambda: Polynomial(2, 0.0), "offset > 0"),
        (lambda: Scaled(RBF(), 0.0), "positive variance"),
        (lambda: Precomputed(np.ones((2, 3))), "square"),
        (lambda: Precomputed(np.array([[1.0, 0.5], [0.2, 1.0]])), "symmetric"),
    ],
)
def test_impossible_kernels_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    "kernel", [Matern52(0.3), Matern52(np.array([0.3, 2.0])), Scaled(RBF(), 2)]
)
@pytest.mark.parametrize("points", [np.zeros((5, 1)), np.zeros((5, 3)), np.zeros(2)])
def test_points_with_other_coordinates_are_refused(kernel, points):
    with pytest.raises(ValueError, match=r"same number of coordinates.*\(4, 2\)"):
        kernel(points, np.zeros((4, 2)))


def test_values_at_one_place_are_correlated_and_a_sure_one_is_with_its_like_alone():
    kernel = Scaled(Matern52(2.0), 7.0)
    x = away_from_the_origin(12, spread=1.0)
    correlation = kernel(x, x) / 7.0
    assert_array_equal(at_one_place(kernel, x, x[:5]), (correlation >= 0.9)[:, :5])
    assert 12 < np.count_nonzero(at_one_place(kernel, x, x)) < 144
    points = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.1], [0.0, 3.0]])
    expected = np.eye(4, dtype=bool)
    expected[1, 2] = expected[2, 1] = True  # nearly the same direction
    assert_array_equal(at_one_place(Linear(), points, points), expected)
    assert at_one_place(kernel, x, x[:0]).shape == (12, 0)
