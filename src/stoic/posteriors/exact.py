"""Exact Gaussian process posterior at any points, with a noise variance per row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stoic import linalg
from stoic.data import Array, Booleans, Integers, Observations, Targets
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.prior import Prior


class Covariances:
    """Prior covariances of f at the rows of observations, remembered for one prior at a time.

    Parameters
    ----------
    x:
        Inputs of the rows, shape (n, d).
    """

    def __init__(self, x: Array) -> None:
        self.x = x
        self._prior: Prior | None = None
        self._known: dict[bytes, Array] = {}

    def __call__(self, prior: Prior, rows: Booleans, others: Booleans) -> Array:
        """Covariances of two subsets of the rows, given as masks (n,): not to be written to."""
        if prior is not self._prior:
            self._prior, self._known = prior, {}
        key = rows.tobytes() + others.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _covariance(prior, self.x[rows], self.x[others])
        return found


@dataclass(frozen=True, eq=False, slots=True)
class Exact:
    """Exact posterior given ``values = f(x) + N(0, noise)`` [Rasmussen2006]_, eqs. (2.23)-(2.24).

    Rows with infinite noise carry no information and are left out of the solve. Build one with
    :meth:`condition`; extend it by later rows with :meth:`extend`.

    Attributes
    ----------
    x:
        Inputs of the rows in the solve, shape (k, d), k <= n.
    noise:
        Their noise variances, shape (k,).
    L:
        Lower Cholesky factor of K + diag(noise), shape (k, k).
    residual:
        L^-1 (values - mean), shape (k,).
    alpha:
        (K + diag(noise))^-1 (values - mean), shape (k,).
    """

    prior: Prior
    fitted_defence: FittedDefence
    n: int
    distrusted: int
    x: Array
    noise: Array
    L: Array
    residual: Array
    alpha: Array

    @staticmethod
    def condition(
        prior: Prior,
        fitted_defence: FittedDefence,
        observations: Observations,
        targets: Targets,
        covariances: Covariances | None = None,
    ) -> Exact:
        """Condition on all rows, in O(n^3); ``covariances`` are those of the observations.

        Raises
        ------
        stoic.linalg.NotPositiveDefiniteError
            If the covariance of the rows cannot be factorised.
        """
        kept = np.isfinite(targets.noise)
        x, noise = observations.x[kept], targets.noise[kept]
        if covariances is None:
            K = _covariance(prior, x, x)
        else:
            K = covariances(prior, kept, kept).copy()
        K.flat[:: len(x) + 1] += noise
        L = linalg.cholesky(K) if len(x) else K
        return _assemble(
            prior, fitted_defence, len(observations), _distrusted(targets), x, noise, L,
            targets.values[kept] - prior.mean,
        )  # fmt: skip

    def extend(
        self, fitted_defence: FittedDefence, observations: Observations, targets: Targets
    ) -> Exact:
        """Condition on these further rows too, in O(n^2) a row."""
        kept = np.isfinite(targets.noise)
        added, noise = observations.x[kept], targets.noise[kept]
        L, residual = self.L, targets.values[kept] - self.prior.mean
        if len(added):
            corner = self.prior.kernel(added, added) + np.diag(noise)
            if len(self.x):
                L = linalg.extend_cholesky(L, self.prior.kernel(self.x, added), corner)
            else:
                L = linalg.cholesky(corner)
        return _assemble(
            self.prior,
            fitted_defence,
            self.n + len(observations),
            self.distrusted + _distrusted(targets),
            np.concatenate([self.x, added]),
            np.concatenate([self.noise, noise]),
            L,
            np.concatenate([self.L @ self.residual, residual]),  # L residual = values - mean
        )

    @property
    def information(self) -> float:
        if not len(self.x):
            return 0.0
        # 0.5 log det(D^-1/2 (K + D) D^-1/2), which rounding may take below 0
        logs = np.log(np.diagonal(self.L)).sum() - 0.5 * np.log(self.noise).sum()
        return max(float(logs), 0.0)

    @property
    def max_variance(self) -> float:
        # Without rows any point will do: right for a stationary kernel
        anywhere = self.x if len(self.x) else np.zeros((1, self.x.shape[1]))
        return float(self.prior.kernel.diagonal(anywhere).max())

    def copy(self) -> Exact:
        return self  # nothing is updated in place

    def trust(self, observations: Observations) -> Array:
        return self.fitted_defence(observations, self.prior).trust

    def predict(self, x: Array) -> tuple[Array, Array]:
        return self.given(self.prior.kernel.diagonal(x), _covariance(self.prior, x, self.x))

    def given(self, variance: Array, K: Array) -> tuple[Array, Array]:
        """Predict f where prior variances (m,) and covariances (m, k) with the rows are known."""
        if not len(self.x):
            return np.full(len(variance), self.prior.mean), np.sqrt(variance)
        V = linalg.solve_lower(self.L, K.T)  # (k, m)
        variance = variance - np.einsum("ij,ij->j", V, V)
        return self.prior.mean + K @ self.alpha, np.sqrt(np.maximum(variance, 0.0))

    def jointly(self, x: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of f at ``x`` (m, d)."""
        covariance = self.prior.kernel(x, x)
        if not len(self.x):
            return np.full(len(x), self.prior.mean), covariance
        K = self.prior.kernel(x, self.x)
        V = linalg.solve_lower(self.L, K.T)
        return self.prior.mean + K @ self.alpha, covariance - V.T @ V

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        variance = self.prior.kernel.diagonal(x)
        slope = self.prior.kernel.diagonal_wrt_x(x)
        if not len(self.x):
            mean, mean_slope = np.full(len(x), self.prior.mean), np.zeros(x.shape)
        else:
            K, pull = self.prior.kernel.wrt_x(x, self.x)
            V = linalg.solve_lower(self.L, K.T)
            mean = self.prior.mean + K @ self.alpha
            mean_slope = pull(np.broadcast_to(self.alpha, K.shape))
            variance = variance - np.einsum("ij,ij->j", V, V)
            # d variance = d k(x, x) - 2 dk(x, X) (K + D)^-1 k(X, x), which is L^-T V
            slope = slope - 2.0 * pull(linalg.solve_upper(self.L, V).T)
        std = np.sqrt(np.maximum(variance, 0.0))
        # Where nothing is uncertain the root has no slope; 0 keeps a search finite there.
        uncertain = std[:, None] > 0.0
        std_slope = np.divide(0.5 * slope, std[:, None], out=np.zeros(x.shape), where=uncertain)
        return mean, std, mean_slope, std_slope

    def fantasise(self, x: Array, arms: Integers | None = None, at_most: float = math.inf) -> Exact:
        mean, k = np.minimum(self.predict(x)[0], at_most), len(x)
        rows = Observations(x, mean, np.full(k, np.nan))
        # Targets are made here: a defence is not asked whether it trusts a fantasy
        return self.extend(
            self.fitted_defence, rows, Targets(mean, np.full(k, self.prior.noise), np.ones(k))
        )


def _covariance(prior: Prior, x: Array, z: Array) -> Array:
    return prior.kernel(x, z) if len(z) else np.empty((len(x), 0))


def _distrusted(targets: Targets) -> int:
    return int(np.count_nonzero(targets.trust < 1.0))


def _assemble(
    prior: Prior,
    fitted_defence: FittedDefence,
    n: int,
    distrusted: int,
    x: Array,
    noise: Array,
    L: Array,
    centred: Array,
) -> Exact:
    residual = linalg.solve_lower(L, centred) if len(x) else centred
    alpha = linalg.solve_upper(L, residual) if len(x) else centred
    return Exact(prior, fitted_defence, n, distrusted, x, noise, L, residual, alpha)
