"""The slow twin of the truncation in feature space: Algorithm 2 with its double sum, and QFF.

Nothing here imports the code it is the twin of.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg


def truncated_regression(Phi, y, noise, b):
    """theta, V and the kept parts (n, m) of Algorithm 2 of Chowdhury and Gopalan.

    The features of the n results are the rows of ``Phi``; the root of V is the symmetric one, by
    its Schur form.
    """
    n, m = Phi.shape
    V = noise * np.eye(m)
    for phi in Phi:
        V += np.outer(phi, phi)
    inverse_root = np.linalg.inv(np.real(linalg.sqrtm(V)))
    u = inverse_root @ Phi.T  # rows u_i
    r = np.zeros(m)
    kept = np.zeros((n, m), dtype=bool)
    for i in range(m):
        parts = []
        for tau in range(n):
            if math.isfinite(y[tau]) and abs(u[i, tau] * y[tau]) <= b:
                parts.append(u[i, tau] * y[tau])
                kept[tau, i] = True
        r[i] = math.fsum(parts)
    return inverse_root @ r, V, kept, u.T


def closest_call(u, y, b):
    """How near any |u y| comes to b, relatively: below rounding no one can say what is right."""
    finite = np.isfinite(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.abs(np.abs(u[finite] * y[finite, None]) - b) / b
    return float(np.min(gaps, initial=np.inf))


def variance(phi, V, noise, k=None):
    """noise phi'V^-1 phi, and k - phi'phi more where k(x, x) is given."""
    known = noise * phi @ np.linalg.inv(V) @ phi
    return known if k is None else k - phi @ phi + known


def fourier(x, lengthscale, nodes):
    """All 2 M^d features of eq. (1) of the same paper, for x in [0, 1]^d and one lengthscale."""
    d = x.shape[1]
    z, _ = np.polynomial.hermite.hermgauss(nodes)
    H = np.polynomial.hermite.Hermite.basis(nodes - 1)(z)
    weight = 2.0 ** (nodes - 1) * math.factorial(nodes) / (nodes**2 * H**2)
    grids = np.array(np.meshgrid(*[np.arange(nodes)] * d, indexing="ij")).reshape(d, -1).T
    features = []
    for index in grids:
        nu = np.prod(weight[index])
        features.append((nu, math.sqrt(2.0) / lengthscale * x @ z[index]))
    cos = [math.sqrt(nu) * np.cos(a) for nu, a in features]
    sin = [math.sqrt(nu) * np.sin(a) for nu, a in features]
    return np.array(cos + sin).T
