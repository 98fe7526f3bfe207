import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from stoic import linalg


def positive(n, seed=0):
    root = np.random.default_rng(seed).standard_normal((n, n))
    return root @ root.T + n * np.eye(n)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), m=st.integers(1, 8))
def test_extending_a_factor_equals_factorising_the_whole(seed, n, m):
    A = positive(n + m, seed)
    L = linalg.cholesky(A[:n, :n])
    extended = linalg.extend_cholesky(L, A[:n, n:], A[n:, n:])
    assert_allclose(extended, np.linalg.cholesky(A), atol=1e-10)
    assert_allclose(extended @ extended.T, A, rtol=1e-10)


def test_a_row_that_is_there_already_extends_a_factor_with_the_jitter_of_the_whole():
    A = 3.0 * np.exp(-(np.subtract.outer(np.arange(5.0), np.arange(5.0)) ** 2) / 8.0)
    L = linalg.cholesky(A)
    for row in range(5):
        extended = linalg.extend_cholesky(L, A[:, [row]], A[[row]][:, [row]])
        twice = A[np.ix_([*range(5), row], [*range(5), row])]
        assert_allclose(extended @ extended.T, twice, atol=1e-5)
    with pytest.raises(linalg.NotPositiveDefiniteError):
        linalg.extend_cholesky(L, A[:, [0]], np.array([[2.0]]))


def test_solves_and_inverse_are_numpys():
    A, b, B = positive(9), np.arange(9.0), np.random.default_rng(1).standard_normal((9, 4))
    L = linalg.cholesky(A)
    assert_allclose(L, np.linalg.cholesky(A), rtol=1e-12)
    for right in (b, B):
        assert_allclose(linalg.solve_lower(L, right), np.linalg.solve(L, right), rtol=1e-10)
        assert_allclose(linalg.solve_upper(L, right), np.linalg.solve(L.T, right), rtol=1e-10)
        assert_allclose(linalg.cholesky_solve(L, right), np.linalg.solve(A, right), rtol=1e-10)
    inverse = linalg.cholesky_inverse(L)
    assert_allclose(inverse, np.linalg.inv(A), rtol=1e-9, atol=1e-12)
    assert_array_equal(inverse, inverse.T)


def test_nothing_is_altered():
    A, b = positive(6), np.arange(6.0)
    copies = A.copy(), b.copy()
    L = linalg.cholesky(A)
    linalg.cholesky_solve(L, b)
    linalg.solve_lower(L, b)
    before = L.copy()
    linalg.cholesky_inverse(L)
    linalg.extend_cholesky(L, np.zeros((6, 1)), np.eye(1))
    assert_array_equal(A, copies[0])
    assert_array_equal(b, copies[1])
    assert_array_equal(L, before)


def test_a_singular_matrix_is_jittered_and_an_indefinite_one_is_an_error():
    singular = np.ones((4, 4))
    L = linalg.cholesky(singular)
    assert_allclose(L @ L.T, singular, atol=1e-5)
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(linalg.NotPositiveDefiniteError, match=r"2 x 2 covariance.*larger noise"):
        linalg.cholesky(indefinite)
    assert issubclass(linalg.NotPositiveDefiniteError, np.linalg.LinAlgError)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_numbers_are_an_error(bad):
    A = positive(4)
    A[2, 2] = bad
    with pytest.raises(linalg.NotPositiveDefiniteError):
        linalg.cholesky(A)
    A = positive(4)
    A[3, 1] = A[1, 3] = bad
    with pytest.raises(linalg.NotPositiveDefiniteError):
        linalg.cholesky(A)


def test_subtract_outer_works_in_place():
    S, row, column = np.ones((3, 5)), np.array([1.0, -1.0, 2.0]), np.arange(5.0)
    expected = S - 0.5 * np.outer(row, column)
    linalg.subtract_outer(S, row, column, 0.5)
    assert_allclose(S, expected)
    whole = np.ones((6, 5))  # a view of the first rows of a larger array, as it is used
    linalg.subtract_outer(whole[:3], row, column, 0.5)
    assert_allclose(whole[:3], expected)
    assert_array_equal(whole[3:], np.ones((3, 5)))


def test_subtract_product_works_in_place():
    rng = np.random.default_rng(0)
    whole, left, right = np.ones((6, 5)), rng.standard_normal((2, 3)), rng.standard_normal((2, 5))
    linalg.subtract_product(whole[:3], left, right)
    assert_allclose(whole[:3], 1.0 - left.T @ right)
    assert_array_equal(whole[3:], np.ones((3, 5)))


@pytest.mark.parametrize("d", [1, 8, 9, 40])
def test_squared_distances(d):
    rng = np.random.default_rng(0)
    x, z = 30.0 + rng.standard_normal((7, d)), 30.0 + rng.standard_normal((5, d))
    z[0] = x[3]
    literal = ((x[:, None] - z[None]) ** 2).sum(axis=2)
    squares = linalg.squared_distances(x, z)
    assert_allclose(squares, literal, atol=1e-12)
    assert (squares >= 0.0).all()
    assert_array_equal(np.diagonal(linalg.squared_distances(x, x)), np.zeros(7))
    assert squares[3, 0] == 0.0
    assert linalg.squared_distances(x[:0], z).shape == (0, 5)
    assert linalg.squared_distances(x, z[:0]).shape == (7, 0)
