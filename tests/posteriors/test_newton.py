import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import lapack

from stoic.domains import Box, Finite
from stoic.kernels import RBF, Linear, Matern12, Matern52, Precomputed, Scaled
from stoic.posteriors.newton import NewtonBasis

RNG = np.random.default_rng(3)
DOMAINS = {
    "line": Finite(np.linspace(7.0, 9.0, 50)),
    "grid": Box([-5, -5], [5, 5]).grid(7),
    "scattered": Finite(RNG.uniform(20.0, 23.0, (60, 3))),
}
KERNELS = [RBF(0.8), Scaled(Matern52(1.2), 3.0), Matern12(2.0), Linear(2.0)]

on_domains = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
with_kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
to_errors = pytest.mark.parametrize("error", [0.5, 0.05, 1e-3])


@on_domains
@with_kernels
@to_errors
def test_the_functions_are_orthonormal(kernel, domain, error):
    # N_i = sum_j A_ij k(., s_j): A K_ss A' = I, with A from N on the selected points alone.
    basis = NewtonBasis.of(kernel, domain, error)
    selected = domain.points[basis.arms]
    at_selected = basis.features[basis.arms]  # (s_j, N_i)
    K = kernel(selected, selected)
    A = np.linalg.solve(K, at_selected).T
    assert_allclose(A @ K @ A.T, np.eye(len(A)), atol=1e-5)
    # And they are these functions on the whole domain.
    assert_allclose(kernel(domain.points, selected) @ A.T, basis.features, atol=1e-5)


@on_domains
@with_kernels
@to_errors
def test_projections_interpolate_and_are_as_near_as_promised(kernel, domain, error):
    basis = NewtonBasis.of(kernel, domain, error)
    assert basis.error < error
    rng = np.random.default_rng(0)
    for _ in range(20):
        centres = domain.points[rng.integers(len(domain), size=5)] + rng.normal(size=domain.dim)
        weights = rng.normal(size=5)
        f = kernel(domain.points, centres) @ weights
        norm = np.sqrt(weights @ kernel(centres, centres) @ weights)
        # <f, N_i> by solving for f on the selected points, where the features are triangular.
        theta = np.linalg.solve(basis.features[basis.arms], f[basis.arms])
        projected = basis.features @ theta
        assert np.linalg.norm(theta) <= norm * (1.0 + 1e-6)
        assert_allclose(projected[basis.arms], f[basis.arms], atol=1e-9 * norm)
        missed = np.abs(f - projected)
        assert np.all(missed <= norm * np.sqrt(basis.power) + 1e-6 * norm)
        assert missed.max() <= norm * error


@on_domains
@with_kernels
@to_errors
def test_it_is_a_pivoted_cholesky_factorisation(kernel, domain, error):
    basis = NewtonBasis.of(kernel, domain, error)
    K = kernel(domain.points, domain.points)
    factor, pivots, rank, _ = lapack.dpstrf(K, lower=1, tol=error**2)
    D = len(basis.arms)
    assert rank == D
    # Up to the first tie the pivots are the same, and the trace that is left is, in any case.
    order, lower = pivots - 1, np.tril(factor)[:, :rank]
    left = np.diagonal(K)[order] - np.sum(lower**2, axis=1)
    assert_allclose(basis.power.max(), left.max(), rtol=0.5, atol=error**2)
    if kernel is KERNELS[0] and domain is DOMAINS["scattered"]:  # no ties here, but the first
        literal = pivoted(K, D)
        assert_array_equal(basis.arms, literal[0])
        assert_allclose(basis.features, literal[1], atol=1e-8)


def pivoted(K, D):
    """Gram-Schmidt by explicit projections: residual kernel matrices, one rank at a time."""
    K, arms, columns = K.copy(), [], []
    for _ in range(D):
        s = int(np.argmax(np.diagonal(K)))
        arms.append(s)
        columns.append(K[:, s] / np.sqrt(K[s, s]))
        K = K - np.outer(columns[-1], columns[-1])
    return arms, np.column_stack(columns)


@on_domains
@with_kernels
@to_errors
def test_the_power_falls_to_below_the_error_and_not_before(kernel, domain, error):
    basis = NewtonBasis.of(kernel, domain, error)
    assert np.all(np.diff(basis.peaks) <= 0.0)
    assert len(basis.peaks) == len(basis.arms) + 1
    assert basis.peaks[-1] < error**2
    assert np.all(basis.peaks[1:-1] >= error**2)
    assert len(set(basis.arms)) == len(basis.arms)
    K = kernel.diagonal(domain.points)
    assert_allclose(basis.power, K - np.sum(basis.features**2, axis=1), atol=1e-9 * K.max())


def test_a_linear_kernel_needs_as_many_functions_as_dimensions():
    basis = NewtonBasis.of(Linear(), DOMAINS["scattered"], 1e-4)
    assert len(basis.arms) == 3


def test_an_error_below_rounding_ends_all_the_same():
    basis = NewtonBasis.of(RBF(5.0), DOMAINS["line"], 1e-30)
    assert len(basis.arms) < 20
    assert 0.0 <= basis.error < 1e-6
    everything = NewtonBasis.of(Matern12(0.1), DOMAINS["line"], 1e-30)
    assert len(everything.arms) == 50
    assert everything.error == 0.0


def test_a_great_error_takes_one_point():
    assert NewtonBasis.of(RBF(), DOMAINS["line"], 10.0).arms.tolist() == [0]


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"above 0, got 0\.0"):
        NewtonBasis.of(RBF(), DOMAINS["line"], 0.0)
    with pytest.raises(ValueError, match="not zero on all"):
        NewtonBasis.of(Precomputed(np.zeros((2, 2))), Finite(np.arange(2.0)), 0.1)
