"""Adaptive truncation in a feature space: the model of ATA-GP-UCB [Chowdhury2019]_.

Notation: features phi of length m, n results at U places, V = Phi'Phi + noise I (m, m), and
u_a = V^(-1/2) phi_a for place a, with the symmetric root: another one would truncate other
numbers. In every round, over the whole history,

    r_i = sum of u_(i,a) y over the results y at places a with |u_(i,a) y| <= b_t,
    theta = V^(-1/2) r,  mean = phi'theta.

Whether a result counts in r_i depends on its place and on |y| <= b_t / |u_(i,a)| alone, so r_i is a
sum of U look-ups (:class:`~stoic.posteriors.places.Places`). V is noise I outside of the r <= m
dimensions that the features of the points span, so its root is taken in those. One round is
O(r^3 + r m U + m U log n) instead of O(m^2 n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from stoic import linalg
from stoic.data import Array, Integers, Observations, Targets
from stoic.domains import Domain, Finite
from stoic.posteriors.base import FittedDefence, Posterior
from stoic.posteriors.features.base import Embedding, Features
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.levels import FeatureLevel
from stoic.posteriors.places import Places, thresholds
from stoic.posteriors.prior import Prior

_ROWS = 4096  # per block, when trust is computed


class Moments(Protocol):
    """Moment bound on the observations: E|(y - mean) / scale|^(1 + alpha) <= moment.

    :class:`~stoic.defences.truncation.Truncation` is one; hyperparameters are fitted to its
    targets.
    """

    @property
    def moment(self) -> float: ...

    @property
    def alpha(self) -> float: ...

    @property
    def scale(self) -> float: ...

    def __call__(self, observations: Observations, prior: Prior) -> Targets: ...

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        """Return derivatives of the targets' values and noise in log(prior.noise), both (n,)."""


class Truncating(Protocol):
    """Defence whose fitted form has ``Moments``."""

    @property
    def revises(self) -> bool: ...

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Moments:
        """Return the moments, fitted to the observations or known before."""


@dataclass(frozen=True, eq=False, slots=True)
class Truncated:
    """Posterior in a feature space; see the head of this file.

    Attributes
    ----------
    fitted_defence:
        Fitted truncation, whose moments set the level.
    embedding:
        From points to coordinates in r dimensions.
    places:
        The results, place by place; later models add to it.
    theta:
        Weights of the mean, in the same r dimensions, shape (r,).
    A:
        V in these dimensions, shape (r, r).
    root:
        R with R R' = A^-1, shape (r, r).
    limits:
        |z| up to which a result counts in each feature, shape (U, m).
    shares:
        u^2, the share of each feature in the trust of a result, shape (U, m).
    """

    prior: Prior
    fitted_defence: Moments
    n: int
    distrusted: int
    embedding: Embedding
    places: Places
    theta: Array
    A: Array
    root: Array
    information: float
    limits: Array
    shares: Array

    @staticmethod
    def condition(
        prior: Prior,
        fitted_defence: Moments,
        domain: Domain,
        embedding: Embedding,
        places: Places,
        level: FeatureLevel,
    ) -> Truncated:
        """Condition on all observations in ``places``."""
        noise, n, m = prior.noise, places.n, embedding.features
        b = fitted_defence.scale * level(n, max(m, 1), fitted_defence.moment, fitted_defence.alpha)
        if isinstance(domain, Finite):
            C = embedding.coordinates(domain.points)[places.arms]  # (U, r)
        else:
            C = embedding.coordinates(places.points)
        A = (C.T * places.weights) @ C
        A.flat[:: len(A) + 1] += noise
        eigenvalues, Q = np.linalg.eigh(A)
        # Rounding may take the smallest ones below the noise that was added to all.
        eigenvalues = np.maximum(eigenvalues, noise)
        inverse_root = (Q / np.sqrt(eigenvalues)) @ Q.T
        u = (C @ inverse_root) @ embedding.basis.T  # (U, m)
        limits = thresholds(b, u)
        sums, counts = places.below(limits)
        # r (m,) enters by its part in the span of the features, which V^(-1/2) maps to itself
        theta = inverse_root @ (np.einsum("am,am->m", u, sums) @ embedding.basis)
        # A place keeps its smallest results in each feature: the fewest are kept in all
        in_all = counts.min(axis=1).sum() if m else places.finite
        return Truncated(
            prior, fitted_defence, n, n - int(in_all), embedding, places, theta, A, inverse_root,
            0.5 * float(np.log(eigenvalues / noise).sum()), limits, u * u,
        )  # fmt: skip

    @property
    def features(self) -> int:
        """m."""
        return self.embedding.features

    @property
    def max_variance(self) -> float:
        dim = self.places.points.shape[1]
        points = self.places.points if len(self.places) else np.zeros((1, dim))
        return float(self.prior.kernel.diagonal(points).max())

    def copy(self) -> Truncated:
        return self

    def trust(self, observations: Observations) -> Array:
        """1 less the share of u^2 in the features that leave a row out; 0 if it is not finite."""
        z = np.abs(self.places.strengths(observations)[0])
        trust, at = np.zeros(len(z)), self.places.numbers(observations)
        for first in range(0, len(z), _ROWS):
            rows = slice(first, first + _ROWS)
            trust[rows] = self._shares_kept(at[rows], z[rows])
        return np.where(np.isfinite(z), trust, 0.0)

    def _shares_kept(self, at: Integers, z: Array) -> Array:
        out = z[:, None] > self.limits[at]
        shares = self.shares[at]
        total = shares.sum(axis=1)
        lost = np.divide(
            (shares * out).sum(axis=1), total, out=np.zeros_like(total), where=total > 0.0
        )
        # Left out of a feature with next to no share, a row still has a trust below 1.
        below = np.minimum(1.0 - lost, 1.0 - 2.0**-53)
        return np.where(out.any(axis=1), np.maximum(below, 0.0), 1.0)

    def predict(self, x: Array) -> tuple[Array, Array]:
        return self._mean_and_std(x, self.embedding.coordinates(x))

    def _mean_and_std(self, x: Array, C: Array) -> tuple[Array, Array]:
        W = C @ self.root
        variance = self.prior.noise * np.einsum("nr,nr->n", W, W)
        if not self.embedding.complete:
            # Without it the variance vanishes where no feature reaches: variance starvation
            missing = self.prior.kernel.diagonal(x) - np.einsum("nr,nr->n", C, C)
            variance += np.maximum(missing, 0.0)
        return self.prior.mean + C @ self.theta, np.sqrt(variance)

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        C, pull = self.embedding.coordinates_wrt_x(x)
        mean, std = self._mean_and_std(x, C)
        # d variance = 2 weights'dc, and the slope of k(x, x) where features are not complete
        weights = self.prior.noise * (C @ self.root) @ self.root.T
        slope = np.zeros_like(x)
        if not self.embedding.complete:
            weights = weights - C
            slope = self.prior.kernel.diagonal_wrt_x(x)
        slope = slope + 2.0 * pull(weights)
        std_slope = np.divide(
            0.5 * slope, std[:, None], out=np.zeros_like(x), where=std[:, None] > 0.0
        )
        return mean, std, pull(np.broadcast_to(self.theta, C.shape)), std_slope

    def fantasise(
        self, x: Array, arms: Integers | None = None, at_most: float = math.inf
    ) -> Truncated:
        C = self.embedding.coordinates(x)
        A = self.A + C.T @ C
        L = linalg.cholesky(A) if len(A) else A
        # L^-T: the symmetric root matters to truncation alone, and fantasies are not truncated
        root = linalg.solve_lower(L, np.eye(len(A))).T if len(A) else A
        gain = 2.0 * np.log(np.diagonal(L)).sum() - len(A) * math.log(self.prior.noise)
        mean = self.prior.mean + C @ self.theta
        excess = np.minimum(at_most - mean, 0.0) if at_most < math.inf else np.zeros(len(x))
        theta = self.theta + root @ (root.T @ (C.T @ excess))
        return replace(
            self, n=self.n + len(x), theta=theta, A=A, root=root, information=0.5 * float(gain)
        )


@dataclass(frozen=True, eq=False)
class TruncatedFeatures:
    """Ridge regression on features, with observations truncated in each of them at b_t.

    Parameters
    ----------
    prior:
        The prior; its noise variance is the regulariser lambda. If ``fitting`` refits, the family
        that it is chosen from.
    features:
        :class:`~stoic.posteriors.features.Fourier` or
        :class:`~stoic.posteriors.features.Nystroem`.
    level:
        b_t, from t, m and the moments; with ``drawn`` for features that are drawn from the data.
    defence:
        A truncation, which gives the moment of the observations. Only hyperparameters are fitted
        through it: it truncates nothing itself.
    fitting:
        ``FixedHyperparameters()`` for fixed hyperparameters.

    Notes
    -----
    Observations are counted from the prior mean. One with a noise variance v of its own has the
    weight noise / v, which the papers do not have. One that is not finite counts for V, as a play,
    and in no sum.

    Guarantee
    ---------
    With :class:`~stoic.confidence.heavy_tails.FeatureTruncation` in theory, fixed hyperparameters
    and constant noise: Theorems 3 and 4 of [Chowdhury2019]_.

    Raises
    ------
    ValueError
        When called for a domain or a kernel that the features are not for.
    """

    prior: Prior
    features: Features
    level: FeatureLevel
    defence: Truncating
    fitting: Fitting | FixedHyperparameters = field(default_factory=FixedHyperparameters)

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Truncated:
        if previous is not None and previous.n == len(observations):
            assert isinstance(previous, Truncated)
            return previous
        earlier = None if previous is None else previous.fitted_defence
        fitted_defence = self.defence.fit(domain, observations, earlier)
        if previous is not None and not self.defence.revises and not self.fitting.refits:
            assert isinstance(previous, Truncated)
            prior, places, embedding = previous.prior, previous.places, previous.embedding
            places.add(observations.since(previous.n))  # in place: the previous is consumed
            embedding = self.features(domain, prior, observations, places, embedding)
        else:
            prior = self.fitting(domain, observations, fitted_defence, self.prior, previous)
            self.features.check(domain, prior)
            places = Places(prior, domain.dim)
            places.add(observations)
            embedding = self.features(domain, prior, observations, places, None)
        return Truncated.condition(prior, fitted_defence, domain, embedding, places, self.level)
