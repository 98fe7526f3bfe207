"""The posterior on a finite domain, updated one observation at a time.

Notation: N arms, U of them played so far. The state is the posterior mean and variance on all arms
and the posterior covariance ``C`` of the played arms with all arms, shape (U, N). An observation of
arm a with noise variance v is the rank-one update

    s = C[a],  mean += s (y - mean_a) / (v + s_a),  variance -= s^2 / (v + s_a),
    C -= C[:, a] s' / (v + s_a),

in O(N U), whatever the number of observations: a play that is repeated k times costs k such
updates one by one, or a single one with noise v/k when they come together.
"""

from __future__ import annotations

import math

import numpy as np

from stoic import linalg
from stoic.data import Array, Integers, Observations, Targets
from stoic.domains import Finite
from stoic.posteriors.base import Stance
from stoic.posteriors.prior import Prior

_ROWS = 16  # room for the first played arms; doubled when it is full


class Arms:
    """The exact posterior on all rows of a finite domain.

    Unlike the other posteriors it is updated in place, by :meth:`observe`; :meth:`copy` before
    keeping one.

    Attributes
    ----------
    prior, stance, n, distrusted, information:
        As in :class:`stoic.posteriors.base.Posterior`.
    mean, variance:
        Of f on all arms, both (N,).
    counts:
        Plays of each arm that were in the solve, shape (N,).
    """

    __slots__ = (
        "_C",
        "_played",
        "_precision",
        "_row",
        "_slot",
        "_std",
        "counts",
        "distrusted",
        "domain",
        "information",
        "mean",
        "n",
        "prior",
        "stance",
        "variance",
    )

    def __init__(self, prior: Prior, stance: Stance, domain: Finite) -> None:
        N = len(domain)
        self.prior = prior
        self.stance = stance
        self.domain = domain
        self.n = 0
        self.distrusted = 0
        self.information = 0.0
        self.mean = np.full(N, prior.mean)
        self.variance: Array = prior.kernel.diagonal(domain.points).astype(float)
        self.counts: Integers = np.zeros(N, dtype=np.intp)
        self._C = np.empty((min(_ROWS, N), N))
        self._played: list[int] = []
        self._precision: list[float] = []  # sum of 1 / noise over the plays of each played arm
        self._slot: dict[int, int] = {}
        self._row = np.empty(N)
        self._std = np.empty(N)

    @staticmethod
    def condition(
        prior: Prior, stance: Stance, domain: Finite, observations: Observations, targets: Targets
    ) -> Arms:
        """The posterior given all rows: those of one arm together, in O(U^2 (U + N))."""
        assert observations.arms is not None
        self = Arms(prior, stance, domain)
        kept = np.isfinite(targets.noise)
        played: tuple[Integers, Integers] = np.unique(observations.arms[kept], return_inverse=True)
        arms, rows = played
        weights = 1.0 / targets.noise[kept]
        precision: Array = np.bincount(rows, weights, minlength=len(arms))
        total: Array = np.bincount(rows, weights * targets.values[kept], minlength=len(arms))
        if len(arms):
            self._solve(arms, precision, total / precision)
            self.counts[arms] = np.bincount(rows, minlength=len(arms))
            # The plays of one arm inform as one play with noise 1 / precision.
            self.information = max(self.information, 0.0)
        self.n = len(observations)
        self.distrusted = int(np.count_nonzero(targets.trust < 1.0))
        return self

    def _solve(self, arms: Integers, precision: Array, values: Array) -> None:
        """Mean, variance, C and information from one value and precision for each of ``arms``."""
        points, U = self.domain.points, len(arms)
        capacity = min(1 << max(U, _ROWS).bit_length(), len(points))
        self._C = C = np.empty((capacity, len(points)))
        C[:U] = self.prior.kernel(points[arms], points)
        K = C[:U][:, arms]
        A = K.copy()
        A.flat[:: U + 1] += 1.0 / precision
        L = linalg.cholesky(A)
        alpha = linalg.cholesky_solve(L, values - self.prior.mean)
        self.mean = self.prior.mean + C[:U].T @ alpha
        V = linalg.solve_lower(L, C[:U])
        self.variance = self.prior.kernel.diagonal(points) - np.einsum("ij,ij->j", V, V)
        # C = K_U: - K_UU A^-1 K_U: = P^-1 A^-1 K_U:, which has no cancellation.
        C[:U] = linalg.solve_upper(L, V) / precision[:, None]
        self.information = float(np.log(np.diagonal(L)).sum() + 0.5 * np.log(precision).sum())
        self._played = arms.tolist()
        self._precision = precision.tolist()
        self._slot = {arm: slot for slot, arm in enumerate(self._played)}

    def observe(self, arm: int, value: float, noise: float) -> None:
        """Account for one more row: arm ``arm`` gave ``value`` with variance ``noise``."""
        self.n += 1
        if noise == math.inf:
            return
        slot = self._slot.get(arm)
        if slot is None:
            slot = self._admit(arm)
        row = self._row
        row[:] = self._C[slot]
        U = len(self._played)
        own = float(row[arm])
        gain = 1.0 / (noise + own)
        column = self._C[:U, arm] * gain
        linalg.subtract_outer(self._C[:U], column, row, 1.0)
        self.mean += row * ((value - float(self.mean[arm])) * gain)
        np.multiply(row, row, out=row)
        row *= gain
        self.variance -= row
        self.counts[arm] += 1
        self._precision[slot] += 1.0 / noise
        self.information += 0.5 * math.log1p(max(own, 0.0) / noise)

    def _admit(self, arm: int) -> int:
        """Give ``arm`` its row of C: the posterior covariance of a new arm with all."""
        U = len(self._played)
        if len(self._C) == U:
            grown = np.empty((min(2 * U, len(self.domain)), len(self.domain)))
            grown[:U] = self._C
            self._C = grown
        points = self.domain.points
        row = self.prior.kernel(points[[arm]], points)[0]
        if U:
            # k_a: - k_aU A^-1 K_U:, and A^-1 K_U: = P C since C = P^-1 A^-1 K_U:
            row -= (row[self._played] * self._precision) @ self._C[:U]
        self._C[U] = row
        self._played.append(arm)
        self._precision.append(0.0)
        self._slot[arm] = U
        return U

    @property
    def kappa(self) -> float:
        return float(self.prior.kernel.diagonal(self.domain.points).max())

    def copy(self) -> Arms:
        """An independent copy, in O(N U)."""
        other = Arms.__new__(Arms)
        for name in Arms.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray | list | dict):
                value = value.copy()
            setattr(other, name, value)
        return other

    def trust(self, observations: Observations) -> Array:
        return self.stance(observations, self.prior).trust

    @property
    def std(self) -> Array:
        """Standard deviation of f on all arms, shape (N,); a view that the next call overwrites."""
        np.maximum(self.variance, 0.0, out=self._std)
        return np.sqrt(self._std, out=self._std)

    def on(self, points: Finite) -> tuple[Array, Array]:
        if points is not self.domain:
            return self.predict(points.points)
        return self.mean, self.std

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at rows of the domain, given as points (m, d)."""
        arms = self.domain.locate(x)
        return self.mean[arms], np.sqrt(np.maximum(self.variance[arms], 0.0))

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        raise ValueError("A posterior on a finite domain has no gradient in x: use a Box.")

    def fantasise(self, x: Array, arms: Integers | None = None) -> Arms:
        other = self.copy()
        for arm in (self.domain.locate(x) if arms is None else arms).tolist():
            other.observe(arm, float(other.mean[arm]), self.prior.noise)
        return other
