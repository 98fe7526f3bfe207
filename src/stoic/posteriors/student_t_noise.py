"""Student-t noise by variational inference: rows with large residuals count less.

Notation: nu degrees of freedom, D the noise variances of the rows (n,),
r = y - f. The noise of a row is sqrt(D) times a Student-t variable, that is normal with variance
D / tau, tau ~ Gamma(nu/2, nu/2). With independent q(f) and q(tau), q(f) is the posterior of a
Gaussian process whose row noise is D t, and

    t = 1 / E[tau] = (nu + E[r^2] / D) / (nu + 1),        E[r^2] = (y - m)^2 + s,

where m and s are the mean and variance of q(f) at the row. Up to a constant, log p(y) is at least

    log N(y; mean, K + diag(D t)) - nu/2 sum_i (ln t_i + 1 / t_i),

which each such update of t raises, and at its maximum over t the gradient in hyperparameters is
that of the first term with t held fixed [Tipping2005]_.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from stoic import linalg
from stoic.data import Array, Observations, Targets
from stoic.domains import Domain, Finite
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.prior import Prior
from stoic.posteriors.student_t import check_freedom

_LEFT_OUT = 1e15  # times its noise: such a row is further off than 1e7 deviations
_TOLERANCE = 1e-5  # of the logarithms of the multipliers
_UPDATES = 200
_ALTERNATIONS = (12, 2)  # of multipliers and hyperparameters: for a first fit, for a warm one
_QUANTILES = 512


@dataclass(frozen=True, eq=False, slots=True)
class Multiplied:
    """Fitted defence that multiplies row noise by ``factors`` (n,); infinite ones are out."""

    factors: Array

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        rows = slice(observations.start, observations.start + len(observations))
        t = self.factors[rows]
        kept = np.isfinite(t)
        return Targets(
            np.where(kept, observations.observed, prior.mean),
            observations.own_noise(prior.noise) * t,
            1.0 / np.maximum(t, 1.0),  # a small residual has t < 1
        )

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        """Return the derivatives with the factors held fixed."""
        given = ~np.isnan(observations.noise)
        return np.zeros(len(given)), np.where(given, 0.0, targets.noise)


def updated(t: Array, K: Array, z: Array, D: Array, freedom: float) -> Array:
    """One update of the multipliers ``t`` (n,), given K (n, n), z = y - mean and D, both (n,)."""
    kept = np.isfinite(t)
    mean, variance = np.zeros(len(t)), np.diagonal(K).copy()
    if kept.any():
        A = K[np.ix_(kept, kept)].copy()
        A.flat[:: len(A) + 1] += (D * t)[kept]
        # f at all rows: one that was left out may come back
        V = linalg.solve_lower(L := linalg.cholesky(A), K[kept])
        mean = V.T @ linalg.solve_lower(L, z[kept])
        variance -= np.einsum("ij,ij->j", V, V)
    return _multipliers(z - mean, np.maximum(variance, 0.0), D, freedom)


def _multipliers(error: Array, variance: Array, D: Array, freedom: float) -> Array:
    """(nu + (error^2 + variance) / D) / (nu + 1); infinite where that is nan or huge."""
    with np.errstate(over="ignore", invalid="ignore"):
        t = (freedom + (error**2 + variance) / D) / (freedom + 1.0)
    return np.where(t <= _LEFT_OUT, t, np.inf)  # not for nan


def settled(observations: Observations, prior: Prior, freedom: float) -> Array:
    """Iterate the multipliers (n,) to a fixed point, from f at the prior mean."""
    finite = np.isfinite(observations.observed)
    z = np.where(finite, observations.observed, np.nan) - prior.mean
    D = observations.own_noise(prior.noise)
    if not finite.any():
        return np.full(len(z), np.inf)
    K = prior.kernel(observations.x, observations.x)
    t = _multipliers(z, np.diagonal(K), D, freedom)
    for _ in range(_UPDATES):
        before, t = t, updated(t, K, z, D, freedom)
        both = np.isfinite(before) & np.isfinite(t)
        same = bool(np.array_equal(np.isfinite(before), np.isfinite(t)))
        if same and np.abs(np.log(t[both] / before[both])).max(initial=0.0) < _TOLERANCE:
            break
    return t


def bound(observations: Observations, prior: Prior, freedom: float, t: Array) -> float:
    """Return the lower bound on log p(y) at the multipliers ``t`` (n,), with its constants."""
    z, D = observations.observed - prior.mean, observations.own_noise(prior.noise)
    A = prior.kernel(observations.x, observations.x) + np.diag(D * t)
    L = linalg.cholesky(A)
    w = linalg.solve_lower(L, z)
    gaussian = -0.5 * w @ w - np.log(np.diagonal(L)).sum() - 0.5 * len(z) * np.log(2.0 * np.pi)
    # The rest of E[log tau] and of the divergence of q(tau) from its prior.
    a, a0 = 0.5 * (freedom + 1.0), 0.5 * freedom
    constant = special.gammaln(a) - special.gammaln(a0) + a0 * np.log(a0) - a * np.log(a) + a
    return float(gaussian - a0 * np.sum(np.log(t) + 1.0 / t) + len(z) * constant)


@dataclass(frozen=True, eq=False)
class StudentTNoise:
    """Gaussian process model with Student-t noise, whose posterior is on rows or on arms.

    Parameters
    ----------
    prior:
        The prior of f; the noise is its standard deviation times a Student-t variable. If
        ``fitting`` refits, the family that it is chosen from.
    freedom:
        nu > 0.
    fitting:
        ``FixedHyperparameters()``, or a ``Fitting`` by marginal likelihood, which then is the
        bound: it is maximised over hyperparameters and multipliers in turn.

    Notes
    -----
    [Ezzerg2026]_ found a variational approximation more stable than the Laplace approximation of
    [MartinezCantin2018]_, whose Hessian need not be definite. This one is conjugate, so that it
    takes only Gaussian posteriors. It costs O(n^3) an update, some tens of them a fit.

    Guarantee
    ---------
    The bound is below log p(y) and no update lowers it. It may have several maxima; this is the one
    reached from f at its prior mean. q underestimates how uncertain f is.
    """

    prior: Prior
    freedom: float = 4.0
    fitting: Fitting | FixedHyperparameters = field(default_factory=FixedHyperparameters)

    def __post_init__(self) -> None:
        check_freedom(self.freedom, 0.0)

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Arms | Exact:
        prior, t = self._fitted(domain, observations, previous)
        fitted_defence = Multiplied(t)
        targets = fitted_defence(observations, prior)
        if observations.arms is not None:
            assert isinstance(domain, Finite)
            return Arms.condition(prior, fitted_defence, domain, observations, targets)
        return Exact.condition(prior, fitted_defence, observations, targets)

    def _fitted(
        self, domain: Domain, observations: Observations, previous: Posterior | None
    ) -> tuple[Prior, Array]:
        """Hyperparameters and multipliers."""
        fitting = self.fitting
        if isinstance(fitting, FixedHyperparameters):
            return self.prior, settled(observations, self.prior, self.freedom)
        if previous is None:
            t, alternations = self._at_first(fitting, domain, observations), _ALTERNATIONS[0]
        else:
            t, alternations = settled(observations, previous.prior, self.freedom), _ALTERNATIONS[1]
        prior, latest = self.prior, previous
        for _ in range(alternations):
            fitted_defence = Multiplied(t)
            prior = fitting(domain, observations, fitted_defence, self.prior, latest)
            latest = Exact.condition(
                prior, fitted_defence, observations, fitted_defence(observations, prior)
            )
            t = settled(observations, prior, self.freedom)
        return prior, t

    def _at_first(self, fitting: Fitting, domain: Domain, observations: Observations) -> Array:
        """Return initial multipliers, as if f were constant at the location of the observations."""
        location, scale = fitting.scale(domain, observations)
        D = np.full(len(observations), min(max(scale, 1e-70), 1e70) ** 2)  # its square is a number
        error = np.where(np.isfinite(observations.observed), observations.observed, np.nan)
        return _multipliers(error - location, np.zeros(len(D)), D, self.freedom)


def tail_probability(residual: Array, std: Array, noise_sd: Array, freedom: float) -> Array:
    """P(|f + e - mean| >= residual) for f ~ N(mean, std^2), e ~ noise_sd t_nu; all (n,).

    Given tau the sum is normal, so it is the mean of one normal tail over the distribution of tau,
    here over 512 of its quantiles: right to 1e-3.
    """
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    tau = special.gammaincinv(0.5 * freedom, levels) / (0.5 * freedom)  # ~ Gamma(nu/2, nu/2)
    with np.errstate(over="ignore"):
        spread = np.sqrt(std[:, None] ** 2 + noise_sd[:, None] ** 2 / tau)  # (n, 512)
        return np.asarray(2.0 * special.ndtr(-residual[:, None] / spread).mean(axis=1))
