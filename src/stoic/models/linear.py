"""Linear model in given features, fitted by least squares: a model without a prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from stoic.data import Array, Integers, Observations
from stoic.domains import Domain
from stoic.posteriors.base import FittedDefence, Posterior, as_observed
from stoic.posteriors.newton import NewtonBasis
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, eq=False, slots=True)
class LeastSquares:
    """f(x) = prior mean + <theta, x~> on the points of a Newton basis, eq. (108).

    Observations that are not finite are left out; their own noise variances are not used, since the
    confidence widths for this model weigh all of them alike.

    Parameters
    ----------
    prior:
        Its kernel made the basis; its mean is subtracted.
    basis:
        The features x~.

    Raises
    ------
    ValueError
        When called for another domain than the one of the basis.
    """

    prior: Prior
    basis: NewtonBasis

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Fit:
        if domain is not self.basis.domain:
            raise ValueError(
                f"LeastSquares has features for {self.basis.domain!r}, got {domain!r}: make the "
                "Newton basis on the domain of the learner."
            )
        return Fit.to(self.prior, self.basis, observations)


@dataclass(frozen=True, eq=False, slots=True)
class Fit:
    """Least squares estimate as a posterior: its standard deviation is 1 everywhere.

    Least squares has no prior, so no deviation either that would not be infinite away from the
    plays. Its band is equally wide on all arms that may still be optimal, eq. (109): the deviation
    is 1, in units of f, and the width of the band is all of (109).

    Averaging the plays of each arm and weighting the averages by their number, as (108) has it, is
    ordinary least squares. (The text defines the inverse of Gamma_h where it means Gamma_h.) Where
    the arms played span a subspace, it is the solution of least norm, by the pseudo-inverse: the
    estimate holds on this subspace, and is 0 orthogonally to it.

    Attributes
    ----------
    prior, n, distrusted, information:
        As in :class:`stoic.posteriors.base.Posterior`; the information is that about theta.
    basis:
        The features.
    theta:
        The estimate, shape (D,).
    mean:
        On all arms, shape (N,).
    """

    prior: Prior
    basis: NewtonBasis
    n: int
    distrusted: int
    information: float
    theta: Array
    mean: Array

    @staticmethod
    def to(prior: Prior, basis: NewtonBasis, observations: Observations) -> Fit:
        """Fit to all rows, in O(n + U D^2) for U arms played."""
        assert observations.arms is not None
        N = len(basis.domain)
        finite = np.isfinite(observations.observed)
        arms = observations.arms[finite]
        plays = np.bincount(arms, minlength=N)
        played = np.flatnonzero(plays)
        # Averages first: a sum of results of 1e300 would overflow.
        shares = (observations.observed[finite] - prior.mean) / plays[arms]
        averages = np.bincount(arms, weights=shares, minlength=N)[played]
        theta: Array = np.zeros(basis.features.shape[1])
        information = 0.0
        if len(played):
            root = np.sqrt(plays[played])  # an average has its number of plays as its weight
            X = root[:, None] * basis.features[played]
            scale = float(np.abs(averages).max()) or 1.0
            solved, _, _, singular = np.linalg.lstsq(X, root * (averages / scale), rcond=None)
            theta = np.asarray(solved * scale)
            # 0.5 log det(I + X'X / noise)
            information = 0.5 * float(np.log1p(singular**2 / prior.noise).sum())
        return Fit(
            prior,
            basis,
            len(observations),
            int(np.count_nonzero(~finite)),
            information,
            theta,
            prior.mean + basis.features @ theta,
        )

    @property
    def fitted_defence(self) -> FittedDefence:
        return as_observed

    @property
    def max_variance(self) -> float:
        return float(self.prior.kernel.diagonal(self.basis.domain.points).max())

    def copy(self) -> Fit:
        return self  # nothing is updated in place

    def trust(self, observations: Observations) -> Array:
        return np.isfinite(observations.observed).astype(float)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Return the estimate at rows of the domain, given as points (m, d), and ones."""
        domain = self.basis.domain
        mean = self.mean.copy() if x is domain.points else self.mean[domain.locate(x)]
        return mean, np.ones(len(x))

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        raise ValueError("Least squares on a finite domain has no gradient in x: use a Box.")

    def fantasise(self, x: Array, arms: Integers | None, at_most: float = math.inf) -> Fit:
        """Add fantasies equal to the estimate: only ``n`` changes; ``at_most`` is not used."""
        return replace(self, n=self.n + len(x))
