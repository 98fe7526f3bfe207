"""Where there is a result at all: a Gaussian process classifier.

A latent g ~ GP(m, k) with P(feasible at x) = Phi(g(x)), conditioned by Laplace's approximation
[Rasmussen2006]_ (algorithms 3.1 and 3.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from stoic import linalg
from stoic.data import Array
from stoic.domains import Domain, Finite
from stoic.kernels import Kernel, Matern52, Scaled

_LENGTHSCALES = (0.05, 0.1, 0.2, 0.4, 0.8)  # of the domain's widths, times sqrt(d)
_VARIANCES = (1.0, 4.0, 16.0)
_STEPS = 100  # of Newton; it takes about 8


@dataclass(frozen=True, eq=False)
class Feasibility:
    """The probability that an input gives a result.

    Attributes
    ----------
    kernel, mean:
        Of the latent g; the mean is the one that expects the share of feasible inputs seen so far.
    x:
        All labelled inputs, shape (n, d).
    slope:
        d log Phi(s g) / dg at the mode, shape (n,).
    root:
        Square roots of the curvatures there, shape (n,).
    L:
        Lower Cholesky factor of I + W^1/2 K W^1/2, shape (n, n).
    evidence:
        Laplace's approximation of the log marginal likelihood.
    """

    kernel: Kernel
    mean: float
    x: Array
    slope: Array
    root: Array
    L: Array
    evidence: float

    @staticmethod
    def learned(domain: Domain, feasible: Array, infeasible: Array) -> Feasibility:
        """From inputs with a result (k, d) and without (l, d); the likeliest of 15 kernels.

        Costs O((k + l)^3) for each of them, about 1 ms at 30 inputs.
        """
        scale = math.sqrt(domain.dim) * domain.widths
        candidates = [
            Feasibility.condition(Scaled(Matern52(l * scale), v), feasible, infeasible)
            for l in _LENGTHSCALES  # noqa: E741
            for v in _VARIANCES
        ]
        return max(candidates, key=lambda candidate: candidate.evidence)

    @staticmethod
    def condition(kernel: Kernel, feasible: Array, infeasible: Array) -> Feasibility:
        """Given the kernel of g: Newton's iteration to the mode, and the curvature there."""
        x = np.concatenate([feasible, infeasible])
        s = np.repeat([1.0, -1.0], [len(feasible), len(infeasible)])
        share = (len(feasible) + 1.0) / (len(x) + 2.0)
        variance = float(kernel.diagonal(x[:1])[0])
        mean = float(ndtri(share)) * math.sqrt(1.0 + variance)
        K = kernel(x, x)
        a, objective = np.zeros(len(x)), -np.inf
        for _ in range(_STEPS):
            # a = K^-1 (g - mean) is what the iteration is about: K itself is never inverted.
            g = mean + K @ a
            slope, curvature = _derivatives(s, g)
            previous = objective
            objective = float(log_ndtr(s * g).sum() - 0.5 * a @ (g - mean))
            root = np.sqrt(curvature)
            L = linalg.cholesky(np.eye(len(x)) + root[:, None] * K * root)
            if objective - previous < 1e-10:
                break
            b = curvature * (g - mean) + slope
            a = b - root * linalg.cholesky_solve(L, root * (K @ b))
        evidence = objective - float(np.log(np.diagonal(L)).sum())
        return Feasibility(kernel, mean, x, slope, root, L, evidence)

    def __call__(self, x: Array) -> Array:
        """P(feasible) at ``x`` (m, d), shape (m,)."""
        K = self.kernel(x, self.x)
        V = linalg.solve_lower(self.L, (K * self.root).T)
        variance = self.kernel.diagonal(x) - np.einsum("ij,ij->j", V, V)
        p: Array = ndtr((self.mean + K @ self.slope) / np.sqrt(1.0 + np.maximum(variance, 0.0)))
        return p

    def on(self, points: Finite) -> Array:
        """P(feasible) on all rows of a finite domain, shape (N,)."""
        return self(points.points)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """P(feasible) at ``x`` (m, d), shape (m,), and its gradients, shape (m, d)."""
        K, pull = self.kernel.wrt_x(x, self.x)
        V = linalg.solve_lower(self.L, (K * self.root).T)
        variance = np.maximum(self.kernel.diagonal(x) - np.einsum("ij,ij->j", V, V), 0.0)
        spread = 1.0 / np.sqrt(1.0 + variance)
        g = self.mean + K @ self.slope
        g_slope = pull(np.broadcast_to(self.slope, K.shape))
        weights = linalg.solve_upper(self.L, V).T * self.root
        variance_slope = self.kernel.diagonal_wrt_x(x) - 2.0 * pull(weights)
        z = g * spread
        z_slope = g_slope * spread[:, None] - 0.5 * (z * spread**2)[:, None] * variance_slope
        density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
        return ndtr(z), density[:, None] * z_slope


def _derivatives(s: Array, g: Array) -> tuple[Array, Array]:
    """d log Phi(s g) / dg and minus its second derivative, both (n,)."""
    ratio = np.exp(-0.5 * g**2 - log_ndtr(s * g)) / math.sqrt(2.0 * math.pi)
    return s * ratio, ratio * (ratio + s * g)
