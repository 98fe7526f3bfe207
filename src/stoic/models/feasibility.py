"""Probability of feasibility: a Gaussian process classifier of failures.

A latent g ~ GP(m, k) is regressed on labels, 1 where there was a result and -1 where there was
none, with noise: P(feasible at x) is the probability that a noisy g(x) is positive. Kernel and
noise are those that predict each label best from all others ([Rasmussen2006]_, sections 5.4.2 and
6.5, probabilistic least-squares classification). Unlike under a probit likelihood, two labels that
are near to each other and differ leave no doubt about those around them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from stoic import linalg
from stoic.data import Array
from stoic.domains import Domain
from stoic.kernels import Kernel, Matern12

_LENGTHSCALES = (0.05, 0.1, 0.2, 0.4, 0.8)  # of the domain's widths, times sqrt(d)
_NOISES = (0.01, 0.1, 1.0)  # variances; that of g is 1
# Lengthscale and noise where one coordinate decides alone: 20 labels of half of five dimensions
# are 10 nats likelier with it, and 3 without.
_ALONE = (0.4, 0.01)
# Share of labels that have the overall rate, wherever they are: it bounds how much a pair of labels
# that differ counts where the border is between them.
_ANYWAY = 0.05
_ALL = 1e4  # lengthscale of an irrelevant coordinate
_MOST = 256  # inputs of a kind that it learns from


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Probability of feasibility: that an evaluation at an input does not fail.

    Attributes
    ----------
    kernel, noise:
        Of the latent g.
    share:
        Of feasible inputs seen so far, with one of each kind added: P far from all of them.
    mean:
        The prior mean of g that gives this share.
    x:
        All labelled inputs, shape (n, d).
    weights:
        (K + noise I)^-1 (labels - mean), shape (n,).
    L:
        Lower Cholesky factor of K + noise I, shape (n, n).
    evidence:
        Log probability of the labels, each given all others, less that under one rate of failure
        everywhere.
    """

    kernel: Kernel
    noise: float
    share: float
    mean: float
    x: Array
    weights: Array
    L: Array
    evidence: float

    @staticmethod
    def learned(domain: Domain, feasible: Array, infeasible: Array) -> Feasibility:
        """Fit to inputs with a result (k, d) and without (l, d): the likeliest of 15 + d models.

        Its ``evidence`` is that of all models together: half of the prior is for kernels of one
        lengthscale, half for those of one coordinate. Costs O((k + l)^3) for each, about 0.1 ms at
        30 inputs; of more than 256 inputs of one kind it learns from 256, evenly in time.
        """
        widths, d = domain.widths, domain.dim
        feasible, infeasible = (
            x[np.linspace(0, len(x) - 1, min(len(x), _MOST)).round().astype(int)]
            for x in (feasible, infeasible)
        )
        alike = [
            (length * math.sqrt(d) * widths, noise) for length in _LENGTHSCALES for noise in _NOISES
        ]
        only = np.where(np.eye(d) > 0.0, _ALONE[0], _ALL) * widths
        alone = [(lengths, _ALONE[1]) for lengths in only] if d > 1 else []
        models, evidence = [], []
        for kind in filter(None, (alike, alone)):
            fits = [
                Feasibility.condition(Matern12(lengths), noise, feasible, infeasible)
                for lengths, noise in kind
            ]
            models += fits
            each = [fit.evidence for fit in fits]
            evidence.append(float(logsumexp(each)) - math.log(len(each)))
        together = float(logsumexp(evidence)) - math.log(len(evidence))
        return replace(max(models, key=lambda fit: fit.evidence), evidence=together)

    @staticmethod
    def condition(kernel: Kernel, noise: float, feasible: Array, infeasible: Array) -> Feasibility:
        """Condition on the labels, given the kernel of g and their noise."""
        k, l = len(feasible), len(infeasible)  # noqa: E741
        x = np.concatenate([feasible, infeasible])
        y = np.repeat([1.0, -1.0], [k, l])
        share = (k + 1.0) / (k + l + 2.0)
        mean = float(ndtri(share)) * math.sqrt(float(kernel.diagonal(x[:1])[0]) + noise)
        K = kernel(x, x)
        K.flat[:: len(x) + 1] += noise
        L = linalg.cholesky(K)
        weights = linalg.cholesky_solve(L, y - mean)
        precision = np.diagonal(linalg.cholesky_inverse(L))
        # eqs. (5.12), (6.48): leave-one-out, of each label
        z = (1.0 - y * weights / precision) * np.sqrt(precision)
        anyway = np.where(y > 0.0, share, 1.0 - share)
        evidence = np.log(_ANYWAY + (1.0 - _ANYWAY) * ndtr(z) / anyway).sum()
        return Feasibility(kernel, noise, share, mean, x, weights, L, float(evidence))

    def _spread(self, variance: Array) -> Array:
        """Return the standard deviations of a label where g has such variances."""
        deviations: Array = np.sqrt(np.maximum(variance, 0.0) + self.noise)
        return deviations

    def __call__(self, x: Array) -> Array:
        """P(feasible) at ``x`` (m, d), shape (m,)."""
        K = self.kernel(x, self.x)
        V = linalg.solve_lower(self.L, K.T)
        variance = self.kernel.diagonal(x) - np.einsum("ij,ij->j", V, V)
        p: Array = ndtr((self.mean + K @ self.weights) / self._spread(variance))
        return _ANYWAY * self.share + (1.0 - _ANYWAY) * p

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """P(feasible) at ``x`` (m, d), shape (m,), and its gradients, shape (m, d)."""
        K, pull = self.kernel.wrt_x(x, self.x)
        V = linalg.solve_lower(self.L, K.T)
        spread = self._spread(self.kernel.diagonal(x) - np.einsum("ij,ij->j", V, V))
        z = (self.mean + K @ self.weights) / spread
        z_slope = pull(np.broadcast_to(self.weights, K.shape)) / spread[:, None]
        variance_slope = self.kernel.diagonal_wrt_x(x) - 2.0 * pull(linalg.solve_upper(self.L, V).T)
        z_slope -= 0.5 * (z / spread**2)[:, None] * variance_slope  # d (1 / spread)
        density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
        p = _ANYWAY * self.share + (1.0 - _ANYWAY) * ndtr(z)
        return p, (1.0 - _ANYWAY) * density[:, None] * z_slope
