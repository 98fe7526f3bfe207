"""Hyperparameter fitting: weighted and plain leave-one-out, marginal likelihood.

Notation: y are the observations, z the targets' values less the prior mean, D the targets' noise,
A = K + diag(D), B = A^-1, a = B z, theta the logarithms of the kernel's hyperparameters and of the
noise. An objective returns the derivatives of its value in A (n, n), z and the rows' own noise;
the chain to theta goes through the kernel's contraction and the defence's slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from stoic import linalg
from stoic.data import LARGEST, Array, Booleans, Observations, Targets
from stoic.descent import descend
from stoic.domains import Domain
from stoic.kernels import Kernel, Scaled
from stoic.posteriors.base import Posterior
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad, step_of
from stoic.sources import Informed


class Conditioning(Protocol):
    """Fitted defence, with the derivatives of its targets in log(prior.noise)."""

    def __call__(self, observations: Observations, prior: Prior) -> Targets: ...

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        """Return the derivatives of the values and noise of ``targets``, both (n,)."""


class Rows(NamedTuple):
    """Rows in a solve: the inputs of an objective, all of shape (k,)."""

    observed: Array
    values: Array
    noise: Array
    own_noise: Array
    weights: Array  # w / W of the plateau, sqrt(trust)


class Sensitivity(NamedTuple):
    """An objective's value and its derivatives in A (k, k), ``values``, ``noise``, ``own_noise``.

    ``noise`` here is where D enters outside of A.
    """

    value: float
    A: Array
    values: Array
    noise: Array
    own_noise: Array


Objective = Callable[[Array, Rows], Sensitivity]


def weighted_leave_one_out(L: Array, rows: Rows) -> Sensitivity:
    """n sum_i omega_i log N(y_i; mu_-i, v_-i), omega_i = w_i / sum w held fixed [Laplante2025]_.

    mu_-i = z_i - a_i / B_ii, v_-i = 1 / B_ii - D_i + own noise. The mean of the log densities is
    multiplied by the number of rows, so that the data outweigh the log-priors as they grow, as in
    an ordinary posterior of the hyperparameters.

    Under plateau-IMQ weights one outlier of size y has w ~ 1 / |y|, so its share of the sum grows
    like |y|: it is not robust. See :func:`bounded_leave_one_out`.
    """
    return _leave_one_out(L, rows, rows.weights)


def bounded_leave_one_out(L: Array, rows: Rows) -> Sensitivity:
    """As ``weighted_leave_one_out``, but with omega_i = w_i^2 / sum w^2.

    w_i^2 is the share of its precision that a row keeps, and w^2 y^2 is bounded: so is the share of
    any outlier in the sum.
    """
    return _leave_one_out(L, rows, rows.weights**2)


def _leave_one_out(L: Array, rows: Rows, weights: Array) -> Sensitivity:
    B = linalg.cholesky_inverse(L)
    a = B @ rows.values
    q = 1.0 / np.diagonal(B)  # leave-one-out variances of z, eq. (5.12)
    omega = weights * (len(q) / weights.sum())
    error = rows.observed - rows.values + a * q  # y_i - mu_-i
    variance = q - rows.noise + rows.own_noise
    value = -0.5 * np.dot(omega, np.log(2.0 * np.pi * variance) + error**2 / variance)
    by_error = -omega * error / variance
    by_variance = -0.5 * omega * (1.0 / variance - (error / variance) ** 2)
    # d a = B (dz - dA a), d q_i = q_i^2 (B dA B)_ii
    u = B @ (by_error * q)
    weight = (by_error * a + by_variance) * q**2
    by_A = (B * weight) @ B
    by_A -= 0.5 * (np.outer(u, a) + np.outer(a, u))  # u'dA a, for symmetric dA
    return Sensitivity(float(value), by_A, u - by_error, -by_variance, by_variance)


def leave_one_out(L: Array, rows: Rows) -> Sensitivity:
    """sum_i log N(z_i; mu_-i, 1 / B_ii): eqs. (5.10)-(5.12) of [Rasmussen2006]_, on the targets."""
    B = linalg.cholesky_inverse(L)
    a = B @ rows.values
    q = 1.0 / np.diagonal(B)
    value = -0.5 * np.sum(np.log(2.0 * np.pi * q) + a**2 * q)
    # error = a q: derivatives in a at fixed q, and in q
    u = B @ (-a * q)
    weight = (-0.5 / q - 0.5 * a**2) * q**2
    by_A = (B * weight) @ B
    by_A -= 0.5 * (np.outer(u, a) + np.outer(a, u))
    zero = np.zeros_like(a)
    return Sensitivity(float(value), by_A, u, zero, zero)


def marginal_likelihood(L: Array, rows: Rows) -> Sensitivity:
    """Log marginal likelihood log N(z; 0, A): eq. (5.8) of [Rasmussen2006]_.

    Under a reweighting defence this is the likelihood of pseudo-observations, which [Ezzerg2026]_
    calls ill-posed: use it with defences that keep the values.
    """
    B = linalg.cholesky_inverse(L)
    a = B @ rows.values
    value = -0.5 * np.dot(rows.values, a) - np.log(np.diagonal(L)).sum()
    value -= 0.5 * len(a) * np.log(2.0 * np.pi)
    by_A = np.outer(a, a)  # eq. (5.9): 0.5 (a a' - B), in place
    by_A -= B
    by_A *= 0.5
    zero = np.zeros(len(a))
    return Sensitivity(float(value), by_A, -a, zero, zero)


OBJECTIVES = (
    bounded_leave_one_out,
    weighted_leave_one_out,
    leave_one_out,
    marginal_likelihood,
)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Log-normal prior on a hyperparameter, and its search range.

    Parameters
    ----------
    mu, sigma:
        Mean and standard deviation of the logarithm.
    lower, upper:
        The range.
    """

    mu: float
    sigma: float
    lower: float
    upper: float

    def log_density(self, theta: float) -> tuple[float, float]:
        """log p and its derivative at exp(theta), in theta; without constants."""
        # The density of the hyperparameter itself: - theta is the Jacobian.
        z = (theta - self.mu) / self.sigma
        return -0.5 * z**2 - theta, -z / self.sigma - 1.0


def lengthscale_prior(dim: int) -> LogNormal:
    """LogNormal(sqrt 2 + log(d) / 2, sqrt 3), in widths of the domain [Hvarfner2024]_.

    Measured: with the same mode and a deviation of .7 instead of sqrt 3 the default's loss is .82
    [.70, .94] times as large after 20 trials and .89 [.75, 1.04] after 40 or 60 (391 pairs of
    studies, of functions, latencies and networks), with 1 .97 [.82, 1.15] at the end. But then a
    parameter that does not matter is not left out, intervals after 20 trials cover 90 instead of
    93 %, and 1.0 instead of .8 right results are distrusted.
    """
    return LogNormal(math.sqrt(2.0) + 0.5 * math.log(dim), math.sqrt(3.0), 5e-3, 1e2)


# In units of the standardised results: of their variance, and of the number 1.
NOISE_PRIOR = LogNormal(-4.0, 1.0, 1e-6, 1e1)
# A broader one, less certain that there is noise: over six functions in 50 trials, 1.7 times
# nearer to the optimum without noise, 2.8 times where results are 1e6 too bad, 1.4 times with 5 %.
BROAD_NOISE_PRIOR = LogNormal(-5.0, 2.0, 1e-8, 1e1)
VARIANCE_PRIOR = LogNormal(0.0, 1.0, 5e-2, 1e3)
OFFSET_PRIOR = LogNormal(0.0, 1.0, 1e-2, 1e2)
# Of the weight of a source: the smallest is none.
SOURCE_PRIOR = LogNormal(-1.0, 2.0, 1e-6, 1e2)
# Of what no source explains, which may be little.
REST_PRIOR = LogNormal(0.0, 1.0, 1e-3, 1e3)

_ALONE = 1e-3  # variance of a source's weight, where a fit without it begins

SCALES = (1e-70, 1e70)  # of results: beyond, squares of variances would underflow or overflow
_SPREAD = 4  # results that have one
# Results, and orders of magnitude of all but one at either end. Of 40 random settings of a function
# over 8 orders, where half of the first ten reach 4, the recommended one is 1.9 times the best one,
# and over 4 orders it is the best in three of four draws
_FIRST, _ORDERS = 10, 4.0


def extreme(results: Sequence[float] | Array) -> tuple[str, ...]:
    """Say so if half of the finite results are too large, or too near to each other.

    Or if the first ones, before a search came near to 0, are of many orders of magnitude.
    """
    values = np.asarray(results, dtype=float)
    values = values[np.isfinite(values)]
    if len(values) < _SPREAD:
        return ()
    with np.errstate(over="ignore", invalid="ignore"):
        # Of the results between: of four, one may be of any size
        lower = np.quantile(values, 0.25, method="higher")
        upper = np.quantile(values, 0.75, method="lower")
        spread = float(upper - lower)
    fine = spread == 0.0 or SCALES[0] < spread < SCALES[1]
    if fine and min(abs(lower), abs(upper)) < LARGEST:
        return _of_many_orders(values[:_FIRST])
    where = f"beyond {LARGEST:g} in size" if fine else f"within {spread:.1g} of each other"
    return (
        f"Half of the values are {where}. The model squares their differences, and is right where "
        f"these are {SCALES[0]:g} to {SCALES[1]:g}: take the logarithm of the values, or another "
        "unit.",
    )


def _of_many_orders(first: Array) -> tuple[str, ...]:
    """Say so of the first results, (k,), before a search came near to 0."""
    low, high = np.sort(np.abs(first))[[1, -2]]
    if len(first) < _FIRST or abs(np.sign(first).sum()) < _FIRST or high <= 10.0**_ORDERS * low:
        return ()
    return (
        f"The first {_FIRST} values span {math.log10(high / low):.0f} orders of magnitude, and "
        "even the best differ by factors: take their logarithm.",
    )


@dataclass(frozen=True, eq=False)
class Fitting:
    """MAP fit of the hyperparameters: maximise an objective plus log-priors by L-BFGS-B.

    The prior that is fitted gives the family: its kernel is used in units of the domain's widths
    (lengthscales) and of the observations' scale (variance, noise), and its mean is replaced by
    their location. A warm start costs a few iterations. Whenever the observations have grown by a
    tenth, the search also climbs from the best canonical start, lest a bad optimum be kept.

    Parameters
    ----------
    objective:
        One of ``OBJECTIVES``.
    scale:
        Location and scale of the observations: ``median_and_mad`` or ``mean_and_sd``.
    amplitude:
        Prior of the kernel's variance; ``None`` keeps it at one squared scale.
    noise:
        Prior of the noise variance.
    step:
        The noise variance is at least step^2 / 12, that of rounding [Sheppard1897]_; None for the
        step of the observations, if these have few values or lie on a grid
        (:func:`~stoic.posteriors.scales.step_of`). Without it 0 and 1 are exact, and of neighbours
        that differ one is an outlier.
    iterations:
        Bound on the iterations of a warm start; a cold one may take eight times as many.
    """

    objective: Objective = bounded_leave_one_out
    scale: Scale = median_and_mad
    amplitude: LogNormal | None = VARIANCE_PRIOR
    noise: LogNormal = NOISE_PRIOR
    iterations: int = 8
    step: float | None = 0.0
    refits: bool = field(default=True, init=False)

    def __call__(
        self,
        domain: Domain,
        observations: Observations,
        conditioning: Conditioning,
        family: Prior,
        previous: Posterior | None = None,
    ) -> Prior:
        """Return the fitted prior.

        ``previous`` is the posterior under the one fitted to fewer observations, where the search
        starts.
        """
        problem = Problem.of(self, domain, observations, conditioning, family)
        if previous is not None:
            problem.hold_weights(problem.coordinates(previous.prior))
        # A single result is its own location: nothing is left to fit
        if problem.informative < 2:
            return problem.prior(problem.typical)
        # With fewer than two rows nothing was fitted that could be a warm start
        if previous is None or previous.n < 2:
            # To look at a start is one evaluation, to climb from it dozens: from the best two alone
            starts = sorted(problem.starts(), key=lambda start: problem(start)[0])
            results = [problem.descend(start, 8 * self.iterations) for start in starts[:2]]
            return problem.prior(min(results, key=lambda result: result[1])[0])
        results = [problem.descend(problem.coordinates(previous.prior), self.iterations)]
        if _decade(previous.n) != _decade(len(observations)):
            start = min(problem.starts(), key=lambda start: problem(start)[0])
            results.append(problem.descend(start, 4 * self.iterations))
        return problem.prior(min(results, key=lambda result: result[1])[0])


def _decade(n: int) -> int:
    """Return a number that changes whenever ``n`` has grown by a tenth."""
    return int(np.log(n) / np.log(1.1))


class Problem:
    """Negative objective and log-priors, in coordinates u: theta less the units' logarithms."""

    def __init__(
        self,
        fitting: Fitting,
        domain: Domain,
        observations: Observations,
        conditioning: Conditioning,
        kernel: Kernel,
        location: float,
        scale: float,
    ) -> None:
        self.fitting = fitting
        self.observations = observations
        self.conditioning = conditioning
        self.kernel = kernel
        self.location = location
        widths = np.log(domain.widths)
        units, priors, free = [], [], []
        for kind, coordinate in (*kernel.labels, ("noise", None)):
            if kind == "lengthscale":
                # The mean of logarithms: one lengthscale has the geometric mean as its unit
                units.append(widths.mean() if coordinate is None else widths[coordinate])
                priors.append(lengthscale_prior(domain.dim))
            elif kind == "offset":
                units.append(0.0)
                priors.append(OFFSET_PRIOR)
            else:
                units.append(2.0 * np.log(scale))  # of variances
                amplitude = fitting.amplitude or VARIANCE_PRIOR
                priors.append(
                    fitting.noise if kind == "noise"
                    else SOURCE_PRIOR if kind == "source"
                    else amplitude
                )  # fmt: skip
            free.append(kind != "variance" or fitting.amplitude is not None)
        self.kinds = [kind for kind, _ in (*kernel.labels, ("noise", None))]
        self.units = np.array(units)
        self.priors = priors
        self.free = np.array(free)
        self.bounds = np.log([[prior.lower, prior.upper] for prior in priors])
        step = step_of(observations) if fitting.step is None else fitting.step
        if step > 0.0:
            least = 2.0 * (math.log(step) - math.log(scale)) - math.log(12.0)
            self.bounds[-1, 0] = np.clip(least, *self.bounds[-1])
            self.free[-1] = self.bounds[-1, 0] < self.bounds[-1, 1]
        # Every prior's median, but moderate lengthscales: a flat start hides the data.
        self.typical = np.array([
            0.5 * np.log(domain.dim) + np.log(0.5) if kind == "lengthscale"
            else 0.0 if kind in ("variance", "source")
            else prior.mu
            for kind, prior in zip(self.kinds, priors, strict=True)
        ])  # fmt: skip
        self.typical[-1] = max(self.typical[-1], self.bounds[-1, 0])
        self.informative = int(np.count_nonzero(np.isfinite(observations.observed)))
        self.hold_weights(self.typical)

    @classmethod
    def of(
        cls,
        fitting: Fitting,
        domain: Domain,
        observations: Observations,
        conditioning: Conditioning,
        family: Prior,
    ) -> Problem:
        """Set up the fit of a family of priors, in units of the observations' scale."""
        location, scale = fitting.scale(domain, observations)
        scale = float(np.clip(scale, *SCALES))
        kernel = family.kernel
        # A bare kernel has no variance to fit to the scale
        if not isinstance(kernel, Scaled | Informed):
            kernel = Scaled(kernel)
        return cls(fitting, domain, observations, conditioning, kernel, location, scale)

    def hold_weights(self, u: Array) -> None:
        """Hold the weights of the rows at their trust under ``u`` during the search.

        A trust that depends on the noise would otherwise reward a noise that downweights large
        residuals.
        """
        trust = self.conditioning(self.observations, self.prior(u)).trust
        # Rows rejected under `u` may be trusted under other hyperparameters
        self.weights = np.sqrt(trust) if trust.any() else np.ones_like(trust)

    def starts(self) -> list[Array]:
        """Canonical starting points: typical, wiggly, and noisy; and without sources, if any."""
        wiggly, noisy, alone = (self.typical.copy() for _ in range(3))
        for k, kind in enumerate(self.kinds):
            if kind == "lengthscale":
                wiggly[k] -= np.log(4.0)
            if kind == "noise":
                noisy[k] = max(np.log(0.3), self.bounds[k, 0])
            if kind == "source":
                alone[k] = np.log(_ALONE)
        return [self.typical, wiggly, noisy, *[alone] * ("source" in self.kinds)]

    def coordinates(self, prior: Prior) -> Array:
        """Return the coordinates of ``prior``, clipped to the bounds."""
        theta = np.append(prior.kernel.theta, np.log(prior.noise))
        u = np.clip(theta - self.units, self.bounds[:, 0], self.bounds[:, 1])
        return np.where(self.free, u, self.typical)

    def prior(self, u: Array) -> Prior:
        """Return the prior at ``u``, in the units of the observations and of the domain."""
        theta = u + self.units
        kernel = self.kernel.with_theta(theta[:-1])
        return Prior(kernel, max(float(np.exp(theta[-1])), 1e-300), self.location)

    def __call__(self, u: Array) -> tuple[float, Array]:
        prior = self.prior(u)
        # Observations of 1e300 square to infinity: the objective is then infinite, not an error.
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                value, gradient = self._fit_to_data(prior)
            except linalg.NotPositiveDefiniteError:
                return np.inf, np.zeros_like(u)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return np.inf, np.zeros_like(u)
        slopes = []
        for prior_k, u_k in zip(self.priors, u.tolist(), strict=True):
            log_density, slope = prior_k.log_density(u_k)
            value += log_density
            slopes.append(slope)
        gradient += slopes
        return -value, np.where(self.free, -gradient, 0.0)  # no slope: the search holds it

    def _fit_to_data(self, prior: Prior) -> tuple[float, Array]:
        """Return the objective and its gradient in theta, noise last; 0 if no row is trusted."""
        observations = self.observations
        targets = self.conditioning(observations, prior)
        finite = np.isfinite(targets.noise)
        kept: Booleans | slice = slice(None) if finite.all() else finite  # views, or copies
        if not self.weights[kept].any():
            return 0.0, np.zeros(len(self.units))
        own_noise = observations.own_noise(prior.noise)[kept]
        rows = Rows(
            observations.observed[kept] - prior.mean,
            targets.values[kept] - prior.mean,
            targets.noise[kept],
            own_noise,
            self.weights[kept],
        )
        K, pull = prior.kernel.wrt_theta(observations.x[kept])
        A = K.copy()  # the pull reads K again
        A.flat[:: len(A) + 1] += rows.noise
        sensitivity = self.fitting.objective(linalg.cholesky(A), rows)
        by_noise = np.diagonal(sensitivity.A) + sensitivity.noise  # D is in A, and outside of it
        d_values, d_noise = self.conditioning.slopes(observations, prior, targets)
        given = ~np.isnan(observations.noise[kept])  # reported: no function of theta
        gradient = np.empty(len(self.units))
        gradient[:-1] = pull(sensitivity.A)
        gradient[-1] = (
            np.dot(by_noise, d_noise[kept])
            + np.dot(sensitivity.values, d_values[kept])
            + np.dot(sensitivity.own_noise, np.where(given, 0.0, own_noise))
        )
        return sensitivity.value, gradient

    def descend(self, start: Array, iterations: int) -> tuple[Array, float]:
        # Where a step changes no slope, scipy's inverse Hessian, which is not used, has a 1 / 0.
        with np.errstate(divide="ignore"):
            return descend(
                self, start, self.bounds[:, 0], self.bounds[:, 1], iterations, 1e-6, 1e-4
            )


@dataclass(frozen=True, eq=False)
class FixedHyperparameters:
    """Fixed hyperparameters: those of the prior."""

    refits: bool = field(default=False, init=False)

    def __call__(
        self,
        domain: Domain,
        observations: Observations,
        conditioning: Conditioning,
        family: Prior,
        previous: Posterior | None = None,
    ) -> Prior:
        return family
