"""Exact posterior of some rows that has absorbed the information of all others.

Notation: u is f at m inducing inputs, plus a noise so small that it does not matter, so that its
covariance K_uu has a good factor L: u = L w, w ~ N(0, I). Another row is v = L^-1 k(u, x): given u,
f(x) has the variance c = k(x, x) - v'v. If these parts of f that u does not determine count as
independent (FITC, [Snelson2006]_), an observation there is one of v'w with noise c + row noise, and
all of them together are a likelihood exp(-w'G w / 2 + g'w). A pseudo-observation of u with a joint
noise covariance has the same one, and is all that a posterior has to remember of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stoic import linalg
from stoic.data import Array, Integers, Observations, Targets
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior
from stoic.posteriors.prior import Prior

_SLACK = 0.01  # variance of u beside f, in the least noise variances of its rows
_ROWS = 2048  # per block
_DISTRUSTED = 1e6  # noise variances of the prior: a row with more noise than that says nothing


@dataclass(frozen=True, eq=False, slots=True)
class Sparse(Exact):
    """Posterior whose factor is of K + N, where N is no diagonal; else as ``Exact``."""


@dataclass(frozen=True, eq=False, slots=True)
class Absorbed:
    """Information of rows about f at inducing inputs, see the head of this file.

    Attributes
    ----------
    prior:
        The prior that it holds for.
    x:
        Inducing inputs, shape (m, d).
    L:
        Lower Cholesky factor of the covariance of u, shape (m, m).
    slack:
        Variance of u beside f.
    G, g:
        Precision (m, m) and pull (m,) of the rows, in coordinates w.
    """

    prior: Prior
    x: Array
    L: Array
    slack: float
    G: Array
    g: Array

    @staticmethod
    def at(prior: Prior, x: Array, noise: Array) -> Absorbed:
        """Nothing absorbed yet, at inputs (m, d) of rows with such noise variances (m,)."""
        K = prior.kernel(x, x)
        slack = _SLACK * float(noise.min(initial=prior.noise))
        K.flat[:: len(x) + 1] += slack
        L = linalg.cholesky(K) if len(x) else K
        return Absorbed(prior, x, L, slack, np.zeros_like(K), np.zeros(len(x)))

    def _blocks(self, x: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Rows of ``x`` in blocks, with v (m, b) and c (b,) of each."""
        for first in range(0, max(len(x), 1), _ROWS):  # one block of none, too
            rows = slice(first, first + _ROWS)
            v = self.prior.kernel(self.x, x[rows])  # (m, b)
            v = linalg.solve_lower(self.L, v) if len(v) else v
            c = self.prior.kernel.diagonal(x[rows]) - np.einsum("ij,ij->j", v, v)
            yield rows, v, np.maximum(c, 0.0)  # at an inducing input c is rounding

    def absorb(self, observations: Observations, noise: Array) -> Absorbed:
        """Absorb rows with noise variances (k,), infinite ones without any information."""
        kept = np.flatnonzero(np.isfinite(noise))
        x, centred = observations.x[kept], observations.observed[kept] - self.prior.mean
        G, g = self.G.copy(), self.g.copy()
        for rows, v, c in self._blocks(x):
            # The row is an observation of v'w with the noise c + its own
            weighted = v / (noise[kept[rows]] + c)
            G += weighted @ v.T
            g += weighted @ centred[rows]
        return replace(self, G=G, g=g)

    def given_the_others(
        self, posterior: Exact, observations: Observations, noise: Array
    ) -> tuple[Array, Array]:
        """Leave-one-out mean and standard deviation of f at absorbed rows, both (k,).

        ``posterior`` has absorbed them with the noise variances ``noise`` (k,). It takes a row for
        an observation of v'w, of which it has the cavity, and c is the rest of f.
        """
        mean, std = posterior.predict(observations.x)
        c = np.concatenate([c for _, _, c in self._blocks(observations.x)])
        own, finite = noise + c, np.isfinite(noise)
        # Of v'w, at most the noise of its own observation; then as in `cavity`
        variance = np.clip(std**2 - c, 0.0, own)
        share = np.maximum(1.0 - variance / own, 1e-12)
        pull = np.where(finite, variance / own, 0.0) / share
        apart = np.where(finite, mean - observations.observed, 0.0)
        # The cavity of v'w, and the rest of f again
        return mean + pull * apart, np.sqrt(variance / share + c)

    def without_each(
        self, window: Observations, targets: Targets, inducing: Integers
    ) -> tuple[Array, Array]:
        """Leave-one-out mean and standard deviation of what rows of a window observe, both (k,).

        That is u at ``inducing`` ones, and f at the others. Given what is absorbed these are a
        Gaussian with observations, so that eqs. (5.12) of [Rasmussen2006]_ hold, without rounding
        where a row is far from all others. A row that says next to nothing is predicted.
        """
        x, kernel = window.x, self.prior.kernel
        late = np.delete(np.arange(len(x)), inducing)
        mean, covariance = np.full(len(x), self.prior.mean), np.zeros((len(x), len(x)))
        covariance[np.ix_(late, late)] = kernel(x[late], x[late])
        if len(inducing):
            V = np.empty((len(inducing), len(x)))
            V[:, inducing] = self.L.T
            V[:, late] = linalg.solve_lower(self.L, kernel(self.x, x[late]))
            G = self.G.copy()
            G.flat[:: len(G) + 1] += 1.0
            root = linalg.cholesky(G)  # of the precision of w
            W = linalg.solve_lower(root, V)
            mean += W.T @ linalg.solve_lower(root, self.g)
            covariance[np.ix_(late, late)] -= V[:, late].T @ V[:, late]
            covariance += W.T @ W
        variance = np.diagonal(covariance).copy()
        # B = (covariance + noise)^-1 of those that say something, a = B (y - mean)
        says = np.flatnonzero(targets.noise < _DISTRUSTED * np.maximum(variance, self.prior.noise))
        if len(says):
            noise, to = targets.noise[says], covariance[:, says]
            A = to[says]
            A.flat[:: len(A) + 1] += noise
            B = linalg.cholesky_inverse(linalg.cholesky(A))
            a, spread = B @ (targets.values[says] - mean[says]), 1.0 / np.diagonal(B)
            mean += to @ a
            variance -= np.einsum("ij,ij->i", to @ B, to)
            mean[says] = targets.values[says] - a * spread
            variance[says] = spread - noise
        return mean, np.sqrt(np.maximum(variance, np.finfo(float).tiny))

    def condition(
        self, fitted: FittedDefence, n: int, observations: Observations, inducing: Integers
    ) -> Exact:
        """Condition on observations, the ``inducing`` ones among them, and on what is absorbed.

        ``n`` is the number of all rows.
        """
        targets = fitted(observations, self.prior)
        if not len(inducing):
            exact = Exact.condition(self.prior, fitted, observations, targets)
            return replace(exact, n=n)
        # Finite: G would be singular where a row is left out and nothing was absorbed
        noise = np.minimum(targets.noise[inducing], _DISTRUSTED * self.prior.noise)
        # An inducing row observes an entry of u = L w itself: v is a column of L', without a c
        weighted = self.L.T / noise
        G = self.G + weighted @ self.L
        g = self.g + weighted @ (targets.values[inducing] - self.prior.mean)
        # u has a pseudo-observation L G^-1 g with noise covariance L G^-1 L'.
        # K_uu + N = L L' + L G^-1 L' = (L T)(L T)' with T T' = I + G^-1
        C = linalg.cholesky(G)
        covariance = linalg.cholesky_inverse(C)
        covariance.flat[:: len(covariance) + 1] += 1.0
        T = linalg.cholesky(covariance)
        L = np.asfortranarray(self.L @ T)
        residual = linalg.solve_lower(T, linalg.cholesky_solve(C, g))  # (L T)^-1 L G^-1 g
        # One noise variance with the determinant of all: the information is that of G.
        logs = np.log(np.diagonal(self.L)).sum() - np.log(np.diagonal(C)).sum()
        exact = Exact(
            self.prior, fitted, 0, 0, self.x, np.full(len(noise), np.exp(2.0 * logs / len(noise))),
            L, residual, linalg.solve_upper(L, residual),
        )  # fmt: skip
        # The other rows of the window keep their exact covariance with u
        others = np.delete(np.arange(len(observations)), inducing)
        last = Targets(targets.values[others], targets.noise[others], targets.trust[others])
        exact = exact.extend(fitted, observations.only(others), last)
        distrusted = int(np.count_nonzero(targets.trust < 1.0))
        return Sparse(
            self.prior, fitted, n, distrusted, exact.x, exact.noise, exact.L, exact.residual,
            exact.alpha,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class InWindow(MixturePosterior):
    """Window posterior as one of the rows of the window alone; attributes as there."""

    inducing: Integers
    absorbed: tuple[Absorbed, ...]

    def given_the_others(self, window: Observations) -> tuple[Array, Array]:
        """Leave-one-out mean and standard deviation at each row of the window, both (n,)."""
        return self.together(
            [
                of.without_each(window, part.fitted_defence(window, part.prior), self.inducing)
                for of, part in zip(self.absorbed, self.parts, strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class WindowPosterior(MixturePosterior):
    """Mixture that is conditioned on a window of rows, and has absorbed all others.

    Attributes
    ----------
    rows:
        Those of the window, shape (m,).
    inducing:
        Those of them, by position in the window, at whose inputs the others are absorbed.
    absorbed:
        All other rows, under the prior of each part.
    rejected:
        Number of all rows with a trust below 1.
    fitted_to, chosen_at:
        Number of all rows when the hyperparameters were fitted, and when the window was chosen.
    observations:
        All rows, as they were absorbed.
    """

    rows: Integers
    inducing: Integers
    absorbed: tuple[Absorbed, ...]
    rejected: int
    fitted_to: int
    chosen_at: int
    observations: Observations

    @property
    def near(self) -> InWindow:
        """The same posterior, with the trust of the rows of the window alone."""
        fitted = self.parts[0].fitted_defence
        return InWindow(self.parts, self.weights, fitted, self.inducing, self.absorbed)

    @property
    def distrusted(self) -> int:
        return self.rejected

    def trust(self, observations: Observations) -> Array:
        return self.fitted_defence(observations, self.prior).trust
