"""Nystroem features on a dictionary of played places, drawn anew in every round."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import lapack

from stoic.data import Array, Integers, Observations, Targets
from stoic.domains import Domain, Finite
from stoic.kernels import Kernel, Pull
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import as_observed
from stoic.posteriors.exact import Exact
from stoic.posteriors.levels import Constants, check_constants
from stoic.posteriors.places import Places
from stoic.posteriors.prior import Prior

_ROUNDING = 1e-14  # eigenvalues of the dictionary below this share of the largest are rounding
_FACTORED = 512  # arms up to which the kernel of all of them is worth a factorisation, once


@dataclass(frozen=True, slots=True)
class Nystroem:
    """phi(x) = (K_D^(1/2))^+ k_D(x) for a dictionary D of played places [Calandriello2019]_.

    Each play enters with probability p = min(q variance(x) / noise, 1), with the posterior variance
    before the last result: q = 6 (1 + eps) / (1 - eps) ln(4 T / delta) / eps^2 in theory and
    ln(T) / eps^2 as the authors of [Chowdhury2019]_ ran it, with noise = 1. A place that was played
    k times is one entry, which is there with probability 1 - (1 - p)^k, or p if ``once``.

    Notes
    -----
    - The papers draw with the variances of the features of the round before, because the exact ones
      were too expensive; here the exact ones are kept up to date at O(N U) a round on a finite
      domain. So the dictionary depends on the observations alone, not on how often a model was
      called, and the accuracy is that of sampling by exact leverage scores.
    - The papers' dictionary may hold a place several times. Copies span nothing new and leave
      phi(x)'phi(z) as it is; merged, they do not count as features.
    - ``once`` has no theory: p falls like 1 / k, and the best arm, played most, is the one that is
      missing most often.

    Parameters
    ----------
    distortion:
        eps.
    horizon, delta, constants:
        T, the failure probability, and which q.
    oversampling:
        q itself, if it is not the default.
    principal:
        If true, features are of the eigenvectors, phi(x) = S^(-1/2) Q'k_D(x) with K_D = Q S Q'
        and r <= m positive eigenvalues, instead of the symmetric root. They give the same
        phi(x)'phi(z), so Theorem 4 of [Chowdhury2019]_ holds with r for m, and smooth kernels have
        far fewer eigenvalues than places: 18 for 100 arms in 5 lengthscales, which makes the width
        sqrt(m) less than half as large. The paper has the symmetric root.
    once:
        If true, a place is drawn once with probability p, however often it was played, as the
        authors of [Chowdhury2019]_ ran it.
    seed:
        Of the draws. The one in a round depends on it and on the number of observations alone.

    Guarantee
    ---------
    In theory, with k(x, x) <= 1 and a draw for each play: in all T rounds, with probability
    1 - delta / 2, variances are within (1 - eps) / (1 + eps) and (1 + eps) / (1 - eps) of the exact
    ones and there are at most 6 (1 + eps) / (1 - eps) (1 + 1 / noise) q gamma_t features
    ([Calandriello2019]_, as used in Theorem 4 of [Chowdhury2019]_).
    """

    distortion: float = 0.1
    horizon: int = 1000
    delta: float = 0.1
    constants: Constants = "practice"
    oversampling: float | None = None
    principal: bool = False
    once: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_constants(self.constants, self.horizon, self.delta)
        if not 0.0 < self.distortion < 1.0:
            raise ValueError(f"A distortion is between 0 and 1, got {self.distortion!r}.")
        if self.oversampling is not None and not self.oversampling > 0.0:
            raise ValueError(f"oversampling is a positive number, got {self.oversampling!r}.")

    @property
    def q(self) -> float:
        """Oversampling factor of the inclusion probabilities."""
        if self.oversampling is not None:
            return self.oversampling
        eps = self.distortion
        if self.constants == "practice":
            return float(np.log(max(self.horizon, 2)) / eps**2)
        rho = (1.0 + eps) / (1.0 - eps)
        return float(6.0 * rho * np.log(4.0 * self.horizon / self.delta) / eps**2)

    def check(self, domain: Domain, prior: Prior) -> None:
        return None

    def __call__(
        self,
        domain: Domain,
        prior: Prior,
        observations: Observations,
        places: Places,
        previous: object | None,
    ) -> NystroemEmbedding:
        earlier = previous if isinstance(previous, NystroemEmbedding) else None
        before = observations.until(max(len(observations) - 1, 0))
        belief = _without_results(domain, prior, before, earlier.belief if earlier else None)
        slots = self._drawn(places, belief, prior.noise, len(observations))
        if earlier is None:
            points = places.points[slots]
            return _embedding(domain, prior.kernel, points, slots, self.principal, belief, None)
        if np.array_equal(slots, earlier.slots):
            return replace(earlier, belief=belief)
        factor = earlier.factor
        if factor is None:  # not for a kernel that is seen once, as fitted ones are
            factor = _factor(domain, prior.kernel)
        if factor.shape[1]:
            arms = places.arms[slots]
            return _of_factor(domain, prior.kernel, arms, slots, self.principal, belief, factor)
        points = places.points[slots]
        return _embedding(domain, prior.kernel, points, slots, self.principal, belief, factor)

    def _drawn(self, places: Places, belief: Arms | Exact, noise: float, n: int) -> Integers:
        """Draw the places of the dictionary, by their numbers."""
        if not len(places):
            return np.empty(0, dtype=np.intp)
        if isinstance(belief, Arms):
            variance = np.maximum(belief.variance[places.arms], 0.0)
        else:
            variance = belief.predict(places.points)[1] ** 2
        p = np.minimum(self.q * variance / noise, 1.0)
        missing = (1.0 - p) ** (1 if self.once else places.plays)
        return np.flatnonzero(np.random.default_rng([self.seed, n]).random(len(p)) >= missing)


def _without_results(
    domain: Domain, prior: Prior, observations: Observations, earlier: Arms | Exact | None
) -> Arms | Exact:
    """Condition on the inputs alone: every observation counts as the prior mean."""

    def targets(rows: Observations) -> Targets:
        k = len(rows)
        return Targets(np.full(k, prior.mean), rows.own_noise(prior.noise), np.ones(k))

    if earlier is not None:
        tail = observations.since(earlier.n)
        return earlier.extend(as_observed, tail, targets(tail)) if len(tail) else earlier
    if isinstance(domain, Finite):
        return Arms.condition(prior, as_observed, domain, observations, targets(observations))
    return Exact.condition(prior, as_observed, observations, targets(observations))


def _embedding(
    domain: Domain,
    kernel: Kernel,
    points: Array,
    slots: Integers,
    principal: bool,
    belief: Arms | Exact,
    factor: Array | None,
) -> NystroemEmbedding:
    K = kernel(points, points) if len(points) else np.empty((0, 0))
    eigenvalues, Q = np.linalg.eigh(K)
    kept = eigenvalues > _ROUNDING * eigenvalues.max(initial=0.0)
    basis = np.ascontiguousarray(Q[:, kept])
    root = basis / np.sqrt(eigenvalues[kept])
    if principal:
        basis = np.eye(root.shape[1])
    finite = domain if isinstance(domain, Finite) else None
    arms = None
    if finite is not None:
        arms = kernel(finite.points, points) @ root if len(points) else np.empty((len(finite), 0))
    return NystroemEmbedding(kernel, points, slots, basis, root, finite, arms, belief, factor)


def _factor(domain: Domain, kernel: Kernel) -> Array:
    """B with B B' = k on the rows of a finite domain (N, r); r = 0 where it is not worth it.

    By Cholesky's method with pivots, which errs by rounding in every entry; eigenvectors would err
    by rounding times the largest eigenvalue, ten times as much.
    """
    if not isinstance(domain, Finite) or len(domain) > _FACTORED:
        return np.empty((0, 0))
    K = np.asfortranarray(kernel(domain.points, domain.points))
    L, pivots, rank, _ = lapack.dpstrf(K, lower=1, tol=1e-15 * K.diagonal().max())
    if 3 * rank > len(domain):
        return np.empty((len(domain), 0))
    factor = np.empty((len(domain), rank))
    factor[pivots - 1] = np.tril(L)[:, :rank]
    return factor


def _of_factor(
    domain: Domain,
    kernel: Kernel,
    arms: Integers,
    slots: Integers,
    principal: bool,
    belief: Arms | Exact,
    factor: Array,
) -> NystroemEmbedding:
    """As ``_embedding``, by the r columns of B instead of the m x m kernel of the dictionary.

    With B_D = Q s W', K_D = Q s^2 Q' and k(., D) Q / s = B W.
    """
    assert isinstance(domain, Finite)
    Q, s, W = np.linalg.svd(factor[arms], full_matrices=False)
    kept = s * s > _ROUNDING * s.max(initial=0.0) ** 2
    basis = np.ascontiguousarray(Q[:, kept])
    root = basis / s[kept]
    if principal:
        basis = np.eye(root.shape[1])
    coordinates = factor @ W[kept].T
    return NystroemEmbedding(
        kernel, domain.points[arms], slots, basis, root, domain, coordinates, belief, factor
    )


@dataclass(frozen=True, eq=False)
class NystroemEmbedding:
    """The features on a given dictionary; see :class:`Nystroem`.

    Parameters
    ----------
    kernel, points:
        k and D.
    slots:
        The numbers of the places in D.
    basis, root:
        Eigenvectors of K_D with a positive eigenvalue s, or for principal features the identity,
        and the eigenvectors over sqrt(s).
    domain, arms:
        The finite domain that it is for, and the coordinates of its rows, shape (N, r); or None.
    belief:
        The exact posterior that the next dictionary is drawn by.
    factor:
        B of the next dictionary's features, see ``_factor``; None until it is needed.
    """

    kernel: Kernel
    points: Array
    slots: Integers
    basis: Array
    root: Array
    domain: Finite | None
    arms: Array | None
    belief: Arms | Exact
    factor: Array | None
    complete = False

    @property
    def features(self) -> int:
        return len(self.basis)

    def coordinates(self, x: Array) -> Array:
        if self.domain is not None and self.arms is not None and x is self.domain.points:
            return self.arms
        if not len(self.points):
            return np.empty((len(x), 0))
        return np.asarray(self.kernel(x, self.points) @ self.root)

    def coordinates_wrt_x(self, x: Array) -> tuple[Array, Pull]:
        if not len(self.points):
            return np.empty((len(x), 0)), lambda W: np.zeros_like(x)
        K, pull = self.kernel.wrt_x(x, self.points)
        return K @ self.root, lambda W: pull(W @ self.root.T)
