"""Positive definite systems: Cholesky factors, their extensions, distances.

Jitter, and the error that is raised when it does not help, are nowhere else.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack
from scipy.spatial.distance import cdist

from stoic.data import Array

# Added to the diagonal, relative to its mean or another unit, until the factorisation succeeds.
_JITTERS = (0.0, 1e-10, 1e-8, 1e-6)


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """Error of a covariance matrix that could not be factorised, even with jitter."""


def cholesky(A: Array, unit: float | None = None) -> Array:
    """Lower Cholesky factor of ``A`` (n, n), with as little jitter as makes it exist.

    Jitter is a multiple of ``unit``, by default of the mean of the diagonal.

    Raises
    ------
    NotPositiveDefiniteError
        If ``A`` has nan or infinite entries, or stays indefinite with a jitter of 1e-6.
    """
    for jitter in _JITTERS:
        B = A
        if jitter:
            B = A.copy()
            B.flat[:: len(A) + 1] += jitter * (np.mean(np.diagonal(A)) if unit is None else unit)
        L, info = lapack.dpotrf(B, lower=1, clean=1)
        # With a nan or an infinity info may be 0, too: it then is in a pivot, and in their sum
        if info == 0 and np.isfinite(np.diagonal(L).sum()):
            return np.asarray(L)
    raise NotPositiveDefiniteError(
        f"A {len(A)} x {len(A)} covariance is not positive definite even with a jitter of "
        f"{_JITTERS[-1]:g}: its smallest diagonal entry is {np.min(np.diagonal(A)):.3g}. "
        "Use a larger noise variance, or a valid kernel."
    )


def solve_lower(L: Array, b: Array) -> Array:
    """L^-1 b for a lower triangular ``L`` (n, n) and ``b`` of shape (n,) or (n, m)."""
    return np.asarray(lapack.dtrtrs(L, b, lower=1)[0])


def solve_upper(L: Array, b: Array) -> Array:
    """L^-T b for a lower triangular ``L`` (n, n) and ``b`` of shape (n,) or (n, m)."""
    return np.asarray(lapack.dtrtrs(L, b, lower=1, trans=1)[0])


def cholesky_solve(L: Array, b: Array) -> Array:
    """(L L')^-1 b for ``b`` of shape (n,) or (n, m)."""
    return np.asarray(lapack.dpotrs(L, b, lower=1)[0])


def cholesky_inverse(L: Array) -> Array:
    """(L L')^-1, symmetric to the last bit, shape (n, n)."""
    inverse = np.asarray(lapack.dpotri(L, lower=1)[0])
    # Only the lower triangle was written; the upper one of L is zero.
    full: Array = inverse + inverse.T
    full.flat[:: len(L) + 1] *= 0.5  # the diagonal is in both
    return full


def extend_cholesky(L: Array, B: Array, C: Array) -> Array:
    """Lower factor of [[A, B], [B', C]] from the factor ``L`` of A, in O(n^2 m).

    ``L`` is (n, n), ``B`` (n, m), ``C`` (m, m).
    """
    n, m = B.shape
    # Fortran order: LAPACK copies any other matrix before every solve with it
    extended = np.zeros((n + m, n + m), order="F")
    W = solve_lower(L, B)  # (n, m)
    extended[:n, :n] = L
    extended[n:, :n] = W.T
    # The Schur complement of a duplicate row is rounding, which gives no unit for jitter.
    extended[n:, n:] = cholesky(C - W.T @ W, float(np.mean(np.diagonal(C))))
    return extended


def subtract_outer(S: Array, row: Array, column: Array, scale: float) -> None:
    """S -= scale * outer(row, column), in place, for a C-ordered ``S`` (u, n)."""
    # S.T is Fortran-ordered, which is what dger updates without a copy.
    blas.dger(-scale, column, row, a=S.T, overwrite_a=1)


def subtract_product(S: Array, left: Array, right: Array) -> None:
    """S -= left' right, in place, for C-ordered ``S`` (u, n), ``left`` (k, u), ``right`` (k, n)."""
    # As S' -= right' left: the transposes are Fortran-ordered, so that nothing is copied
    blas.dgemm(-1.0, right.T, left.T, beta=1.0, c=S.T, trans_b=1, overwrite_c=1)


def squared_distances(x: Array, z: Array) -> Array:
    """||x_i - z_j||^2, shape (n, m), never negative, wherever the origin is.

    Exact differences up to 8 coordinates; beyond, one matrix product of centred points, which is
    faster, less an allowance for its rounding, so that equal rows are at distance zero there too.
    """
    if x.shape[1] <= 8 or not len(x) or not len(z):
        return np.asarray(cdist(x, z, "sqeuclidean"))
    centre = z.mean(axis=0)
    # |x|^2 - 2 x'z + |z|^2 cancels where the points are far from the origin
    x, z = x - centre, z - centre
    from_x, from_z = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", z, z)
    # Allowance for rounding: equal rows were off by up to 5 units of it, in 9 to 400 dimensions.
    from_x -= 8.0 * np.finfo(float).eps * (from_x.max() + from_z.max())
    squares: Array = x @ z.T
    squares *= -2.0
    squares += from_x[:, None]
    squares += from_z
    return np.maximum(squares, 0.0, out=squares)
