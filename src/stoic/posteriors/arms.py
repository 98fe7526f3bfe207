"""Exact posterior on a finite domain, updated one observation at a time.

Notation: N arms, U of them played so far. The state is the posterior mean and variance on all arms
and the posterior covariance ``C`` of the played arms with all arms, shape (U, N). An observation of
arm a with noise variance v is the rank-one update

    s = C[a],  mean += s (y - mean_a) / (v + s_a),  variance -= s^2 / (v + s_a),
    C -= C[:, a] s' / (v + s_a),

in O(N U), whatever the number of observations: a play that is repeated k times costs k such
updates one by one, or a single one with noise v/k when they come together. A ``C`` beyond a
processor's cache is as slow to read and write as memory is, so its last line waits there until
several updates of arms that were played before are one matrix product.
"""

from __future__ import annotations

import math

import numpy as np

from stoic import linalg
from stoic.data import Array, Integers, Observations, Targets
from stoic.domains import Finite
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.prior import Prior

_ROWS = 16  # room for the first played arms; doubled when it is full
_REFRESH = 128  # rows after which all is solved afresh for the first time
_DRIFT = 1e-14  # of the prior variance: rounding that calls for a new row to be solved afresh
_CACHE = 1 << 20  # numbers in C beyond which updates of it wait
_TOGETHER = 16  # updates that wait at most: with 32 it is no faster, with 8 slower by a half


def _blocks(columns: int) -> list[slice]:
    """Split the columns into blocks, so that intermediate arrays take little memory."""
    return [slice(first, first + 1024) for first in range(0, columns, 1024)]


class Arms:
    """Exact posterior on all rows of a finite domain.

    Unlike the other posteriors it is updated in place, by :meth:`observe`; :meth:`copy` before
    keeping one.

    Attributes
    ----------
    prior, fitted_defence, n, distrusted, information:
        As in :class:`stoic.posteriors.base.Posterior`.
    mean, variance:
        Of f on all arms, both (N,).
    """

    __slots__ = (
        "_C",
        "_columns",
        "_played",
        "_plays",
        "_precision",
        "_refresh",
        "_row",
        "_rows",
        "_scratch",
        "_slot",
        "_total",
        "_waiting",
        "distrusted",
        "domain",
        "fitted_defence",
        "information",
        "mean",
        "n",
        "prior",
        "variance",
    )

    def __init__(self, prior: Prior, fitted_defence: FittedDefence, domain: Finite) -> None:
        N = len(domain)
        self.prior = prior
        self.fitted_defence = fitted_defence
        self.domain = domain
        self.n = 0
        self.distrusted = 0
        self.information = 0.0
        self.mean = np.full(N, prior.mean)
        self.variance: Array = prior.kernel.diagonal(domain.points).astype(float)  # a copy
        self._C = np.empty((min(_ROWS, N), N))
        self._played: list[int] = []
        self._plays: list[int] = []
        self._precision: list[float] = []  # sum of 1 / noise over the plays of each played arm
        self._total: list[float] = []  # sum of (value - prior mean) / noise over the same
        self._refresh = _REFRESH
        self._slot: dict[int, int] = {}  # row of C of each played arm
        self._row, self._scratch = np.empty(N), np.empty(N)  # of `observe`
        self._waiting = 0  # updates of C, C -= columns' rows, that wait
        self._columns = self._rows = np.empty((0, 0))

    @staticmethod
    def condition(
        prior: Prior,
        fitted_defence: FittedDefence,
        domain: Finite,
        observations: Observations,
        targets: Targets,
    ) -> Arms:
        """Condition on all rows, those of one arm together, in O(U^2 (U + N))."""
        self = Arms(prior, fitted_defence, domain)
        self._add(observations, targets)
        self.distrusted = int(np.count_nonzero(targets.trust < 1.0))
        return self

    def _solve(self, arms: Integers, precision: Array, total: Array) -> None:
        """Mean, variance, C and information from the sums over the plays of each of ``arms``."""
        points, U = self.domain.points, len(arms)
        self._waiting = 0  # those that wait are in the sums
        if len(self._C) < U:
            self._C = np.empty((min(1 << max(U, _ROWS).bit_length(), len(points)), len(points)))
        # B = I + P^1/2 K P^1/2: its eigenvalues are at least 1, whatever the precisions.
        root = np.sqrt(precision)[:, None]
        K = self.prior.kernel(points[arms], points[arms])
        L = linalg.cholesky(np.eye(U) + root * K * root.T)
        # (K + P^-1)^-1 = P^1/2 B^-1 P^1/2, and the mean result of an arm is total / precision
        beta = root[:, 0] * linalg.cholesky_solve(L, total / root[:, 0])
        for part in _blocks(len(points)):
            K = self.prior.kernel(points[arms], points[part])
            self.mean[part] = self.prior.mean + beta @ K
            V = linalg.solve_lower(L, root * K)
            self.variance[part] = self.prior.kernel.diagonal(points[part])
            self.variance[part] -= np.einsum("ij,ij->j", V, V)
            # C = K_U: - K_UU A^-1 K_U: = P^-1 A^-1 K_U:, which has no cancellation.
            self._C[:U, part] = linalg.solve_upper(L, V) / root
        self.information = float(np.log(np.diagonal(L)).sum())  # 0.5 log det B
        self._played = arms.tolist()
        self._precision = precision.tolist()
        self._total = total.tolist()
        self._slot = {arm: slot for slot, arm in enumerate(self._played)}

    def extend(
        self, fitted_defence: FittedDefence, observations: Observations, targets: Targets
    ) -> Arms:
        """Account for further rows, in place; returns itself.

        One by one in O(N U) each while they are few, and all together once that is cheaper.
        """
        assert observations.arms is not None
        self.fitted_defence = fitted_defence
        if len(observations.arms) == 1:
            self.observe(observations.arms.item(), targets.values.item(), targets.noise.item())
            self.distrusted += targets.trust.item() < 1.0
            return self
        self.distrusted += int(np.count_nonzero(targets.trust < 1.0))
        # A solve costs about as much as U single updates
        if len(observations.arms) > max(len(self._played), 8):
            self._add(observations, targets)
            return self
        rows = zip(
            observations.arms.tolist(), targets.values.tolist(), targets.noise.tolist(), strict=True
        )
        for arm, value, noise in rows:
            self.observe(arm, value, noise)
        return self

    def _add(self, observations: Observations, targets: Targets) -> None:
        """Account for rows together: only the sums over the plays of each arm matter."""
        assert observations.arms is not None
        kept = np.isfinite(targets.noise)
        arms, weights = observations.arms[kept], 1.0 / targets.noise[kept]
        N = len(self.domain)
        plays, precision, total = self.counts, np.zeros(N), np.zeros(N)
        earlier = np.array(self._played, dtype=np.intp)
        precision[earlier], total[earlier] = self._precision, self._total
        # Indexing by += would count an arm once, however often it is among the rows
        np.add.at(plays, arms, 1)
        np.add.at(precision, arms, weights)
        np.add.at(total, arms, weights * (targets.values[kept] - self.prior.mean))
        played = np.flatnonzero(plays)
        if len(played):
            self._solve(played, precision[played], total[played])
            self._plays = plays[played].tolist()
        self.n += len(observations)
        self._refresh = max(2 * self.n, _REFRESH)  # all was solved just now

    def observe(self, arm: int, value: float, noise: float) -> None:
        """Account for one more row: arm ``arm`` gave ``value`` with variance ``noise``."""
        self.n += 1
        if noise == math.inf:
            return  # without information; it counts in n alone
        slot = self._slot.get(arm)
        if slot is None:
            slot = self._admit(arm)
        C, row, scratch = self._C[: len(self._played)], self._row, self._scratch
        # Copies, since the update changes C; less the updates that wait and are not in C yet
        row[:] = C[slot]
        column = C[:, arm].copy()
        if waiting := self._waiting:
            row -= self._columns[:waiting, slot] @ self._rows[:waiting]
            column -= self._rows[:waiting, arm] @ self._columns[:waiting]
        own = row.item(arm)  # s_a
        gain = 1.0 / (noise + own)
        if C.size <= _CACHE:
            linalg.subtract_outer(C, column, row, gain)
        else:
            self._postpone(column, row, gain)
        np.multiply(row, (value - self.mean.item(arm)) * gain, out=scratch)
        self.mean += scratch
        np.multiply(row, row, out=row)
        row *= gain
        self.variance -= row
        self._plays[slot] += 1
        self._precision[slot] += 1.0 / noise
        self._total[slot] += (value - self.prior.mean) / noise
        # The determinant grows by the factor 1 + s_a / v, next to 1 after many plays
        self.information += 0.5 * math.log1p(max(own, 0.0) / noise)
        if self.n >= self._refresh:
            self._start_afresh()

    def _postpone(self, column: Array, row: Array, gain: float) -> None:
        """Let C -= gain column row' wait, and apply all that wait once they are enough."""
        if not self._waiting:
            self._columns = np.empty((_TOGETHER, len(column)))  # U may have grown
            self._rows = np.empty((_TOGETHER, len(row)))
        self._columns[self._waiting] = column
        np.multiply(row, gain, out=self._rows[self._waiting])
        self._waiting += 1
        if self._waiting == _TOGETHER:
            self._catch_up()

    def _catch_up(self) -> None:
        """Apply the updates of C that wait."""
        if waiting := self._waiting:
            C = self._C[: len(self._played)]
            linalg.subtract_product(C, self._columns[:waiting], self._rows[:waiting])
            self._waiting = 0

    def _start_afresh(self) -> None:
        """Shed the rounding of all updates so far.

        It costs O(U^2 N), as much as U updates, and comes after twice as many rows as last time.
        """
        played = np.array(self._played, dtype=np.intp)
        self._solve(played, np.array(self._precision), np.array(self._total))
        self._refresh = 2 * self.n

    def _admit(self, arm: int) -> int:
        """Give ``arm`` its row of C: the posterior covariance of a new arm with all."""
        self._catch_up()  # their columns are as long as U is now
        U = len(self._played)
        if len(self._C) == U:
            grown = np.empty((min(2 * U, len(self.domain)), len(self.domain)))
            grown[:U] = self._C
            self._C = grown
        row = self._covariance(arm)
        self._C[U] = row
        self._played.append(arm)
        self._plays.append(0)
        self._precision.append(0.0)
        self._total.append(0.0)
        self._slot[arm] = U
        return U

    def _covariance(self, arm: int) -> Array:
        """Posterior covariance of an arm that was not played yet with all arms, shape (N,)."""
        points, U = self.domain.points, len(self._played)
        prior: Array = self.prior.kernel(points[[arm]], points)[0]
        if not U:
            return prior
        precision = np.array(self._precision)
        # k_a: - k_aU A^-1 K_U:, and A^-1 K_U: = P C since C = P^-1 A^-1 K_U:
        row: Array = prior - (prior[self._played] * precision) @ self._C[:U]
        # The other rows have these numbers without the factor P, which costs digits once an arm was
        # measured a million times better than it was known before.
        known = self._C[:U, arm]
        if np.abs(row[self._played] - known).max() > _DRIFT * prior[arm]:
            played, root = points[self._played], np.sqrt(precision)
            K = self.prior.kernel(played, played)
            L = linalg.cholesky(np.eye(U) + root[:, None] * K * root)
            weights = root * linalg.cholesky_solve(L, root * prior[self._played])
            for part in _blocks(len(points)):
                row[part] = prior[part] - weights @ self.prior.kernel(played, points[part])
            # All of C has lost digits: solve it afresh soon, though at most once in U rows.
            self._refresh = min(self._refresh, self.n + U)
        row[self._played] = known
        return row

    @property
    def counts(self) -> Integers:
        """Plays of each arm that were in the solve, shape (N,)."""
        counts: Integers = np.zeros(len(self.domain), dtype=np.intp)
        counts[self._played] = self._plays
        return counts

    @property
    def max_variance(self) -> float:
        return float(self.prior.kernel.diagonal(self.domain.points).max())

    def copy(self) -> Arms:
        """Return an independent copy, in O(N U)."""
        other = Arms.__new__(Arms)
        for name in Arms.__slots__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray | list | dict):
                value = value.copy()
            setattr(other, name, value)
        return other

    def trust(self, observations: Observations) -> Array:
        return self.fitted_defence(observations, self.prior).trust

    @property
    def std(self) -> Array:
        """Standard deviation of f on all arms, shape (N,)."""
        return np.sqrt(np.maximum(self.variance, 0.0))

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at rows of the domain, given as points (m, d)."""
        if x is self.domain.points:
            return self.mean.copy(), self.std
        arms = self.domain.locate(x)
        return self.mean[arms], np.sqrt(np.maximum(self.variance[arms], 0.0))

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        raise ValueError("A posterior on a finite domain has no gradient in x: use a Box.")

    def fantasise(self, x: Array, arms: Integers | None = None, at_most: float = math.inf) -> Arms:
        other = self.copy()
        for arm in (self.domain.locate(x) if arms is None else arms).tolist():
            # The copy's own mean: a fantasy that was lowered to `at_most` has moved it
            other.observe(arm, min(other.mean.item(arm), at_most), self.prior.noise)
        return other
