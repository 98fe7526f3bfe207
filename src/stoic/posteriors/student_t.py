"""The Student-t process: a Gaussian process whose scale is learned from the misfit [Shah2014]_.

Observations are jointly Student-t with nu > 2 degrees of freedom, the prior mean, and covariance
A = K + diag(D), so that every marginal has the covariance that it has under a Gaussian process.
Given n of them, z of them less the mean and beta = z' A^-1 z, f is Student-t with nu + n degrees of
freedom, the Gaussian process's mean, and its covariance times

    (nu - 2 + beta) / (nu - 2 + n),

eq. (6) there. The noise is part of the process, so noise and f share the scale and are dependent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from scipy.linalg import blas

from stoic import linalg
from stoic.data import Array, Integers, Observations
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Rows, Sensitivity
from stoic.posteriors.prior import Prior

_LARGEST = 1e150  # standard deviations are scaled up by no more; its square is a number too


def check_freedom(freedom: float, least: float) -> None:
    """Refuse degrees of freedom that are not finite and above ``least``."""
    if not (freedom > least and math.isfinite(freedom)):
        raise ValueError(f"Degrees of freedom are finite and > {least:g}, got {freedom!r}.")


def misfit(gaussian: Arms | Exact, observations: Observations) -> tuple[float, int]:
    """Return the root of beta, and the number of rows in the solve."""
    # beta = |L^-1 z|^2; dnrm2 does not overflow where a sum of squares would
    if isinstance(gaussian, Exact):
        return float(blas.dnrm2(gaussian.residual)) if len(gaussian.x) else 0.0, len(gaussian.x)
    assert observations.arms is not None
    targets = gaussian.fitted_defence(observations, gaussian.prior)
    kept = np.isfinite(targets.noise)
    if not kept.any():
        return 0.0, 0
    z = targets.values[kept] - gaussian.prior.mean
    size = float(np.abs(z).max()) or 1.0
    # A^-1 z = D^-1 (z - posterior mean); in units of the largest, whose square may be no number.
    error = targets.values[kept] - gaussian.mean[observations.arms[kept]]
    beta = float(np.sum((z / size) * (error / size) / targets.noise[kept]))
    return size * math.sqrt(max(beta, 0.0)), len(z)


@dataclass(frozen=True, eq=False, slots=True)
class StudentT:
    """Posterior of a Student-t process: a Gaussian one, and a factor on its deviation.

    Attributes
    ----------
    gaussian:
        The posterior of the Gaussian process with the same covariance.
    freedom:
        nu + n, of f given the observations.
    factor:
        sqrt((nu - 2 + beta) / (nu - 2 + n)), at most 1e150.

    Notes
    -----
    ``information`` and ``max_variance`` are those of the Gaussian process. A fantasy holds the
    factor, which is the square root of the expected square over the result that is not known yet. A
    result equal to the mean would lower it everywhere.
    """

    gaussian: Arms | Exact
    freedom: float
    factor: float

    @staticmethod
    def around(gaussian: Arms | Exact, observations: Observations, freedom: float) -> StudentT:
        """Make the Student-t posterior of ``gaussian``, conditioned on ``observations``."""
        root, n = misfit(gaussian, observations)
        # sqrt(nu - 2 + beta), where beta itself may overflow
        factor = math.hypot(math.sqrt(freedom - 2.0), root) / math.sqrt(freedom - 2.0 + n)
        return StudentT(gaussian, freedom + n, min(factor, _LARGEST))

    @property
    def prior(self) -> Prior:
        """That of the covariance."""
        return self.gaussian.prior

    @property
    def fitted_defence(self) -> FittedDefence:
        """As in every posterior."""
        return self.gaussian.fitted_defence

    @property
    def n(self) -> int:
        """As in every posterior."""
        return self.gaussian.n

    @property
    def distrusted(self) -> int:
        """As in every posterior."""
        return self.gaussian.distrusted

    @property
    def information(self) -> float:
        """Of the Gaussian process."""
        return self.gaussian.information

    @property
    def max_variance(self) -> float:
        """The largest prior variance, which both processes share."""
        return self.gaussian.max_variance

    def copy(self) -> StudentT:
        return replace(self, gaussian=self.gaussian.copy())

    def trust(self, observations: Observations) -> Array:
        return self.gaussian.trust(observations)

    def predict(self, x: Array) -> tuple[Array, Array]:
        mean, std = self.gaussian.predict(x)
        return mean, self.factor * std

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        mean, std, mean_slope, std_slope = self.gaussian.predict_with_gradient(x)
        return mean, self.factor * std, mean_slope, self.factor * std_slope

    def fantasise(
        self, x: Array, arms: Integers | None = None, at_most: float = math.inf
    ) -> StudentT:
        return replace(self, gaussian=self.gaussian.fantasise(x, arms, at_most))


@dataclass(frozen=True, slots=True)
class StudentTLikelihood:
    """Log marginal likelihood of a Student-t process, eq. (3) of [Shah2014]_.

    -n/2 ln((nu - 2) pi) - ln|A| / 2 + ln Gamma((nu + n)/2) - ln Gamma(nu/2)
    - (nu + n)/2 ln(1 + beta / (nu - 2)), an objective of
    :class:`~stoic.posteriors.fitting.Fitting`.

    Parameters
    ----------
    freedom:
        nu > 2.
    """

    freedom: float = 3.0

    def __post_init__(self) -> None:
        check_freedom(self.freedom, 2.0)

    def __call__(self, L: Array, rows: Rows) -> Sensitivity:
        nu, n = self.freedom, len(rows.values)
        B = linalg.cholesky_inverse(L)
        a = B @ rows.values
        beta = float(rows.values @ a)
        value = float(special.gammaln(0.5 * (nu + n)) - special.gammaln(0.5 * nu))
        value -= 0.5 * n * math.log((nu - 2.0) * math.pi) + float(np.log(np.diagonal(L)).sum())
        value -= 0.5 * (nu + n) * math.log1p(max(beta, 0.0) / (nu - 2.0))
        # d ln(1 + beta / (nu - 2)) = d beta / (nu - 2 + beta): each result counts that much less.
        weight = (nu + n) / (nu - 2.0 + beta)
        zero = np.zeros_like(a)
        by_A = 0.5 * (weight * np.outer(a, a) - B)
        return Sensitivity(value, by_A, -weight * a, zero, zero)
