"""Probability that an observation is an outlier: not explained by f plus noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

from stoic.data import DISTRUSTED, Array, Booleans, Observations
from stoic.domains import Domain
from stoic.posteriors.base import Posterior
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.scales import median_and_spread_in_space

_ROWS = 1024  # observations that are compared with all rejected ones at once


@dataclass(frozen=True, slots=True)
class OutlierOdds:
    """Beta prior of the share of outliers, and a density of their size.

    An outlier has the density 1 / (2 s (1 + z) (1 + ln(1 + z))^2) at z = |y - centre| / s, with
    centre and scale s of :func:`~stoic.posteriors.scales.median_and_spread_in_space`. It is broad
    over the range of the observations, and its tail is slow: a size of 1e6 scales is e^17 times
    less likely than one of 1.

    Parameters
    ----------
    outliers, inliers:
        Parameters of the Beta prior, both positive: by default one outlier in 20 observations, as
        certain as 20 observations make it.

    Raises
    ------
    ValueError
        If one of them is not positive.
    """

    outliers: float = 1.0
    inliers: float = 19.0

    def __post_init__(self) -> None:
        for value in (self.outliers, self.inliers):
            if not (value > 0.0 and np.isfinite(value)):
                raise ValueError(f"Odds are made of two positive numbers, got {value!r}.")

    def log_density(
        self, domain: Domain, observations: Observations, rejected: Booleans, noise: Array
    ) -> Array:
        """Log density of each observation as an outlier, shape (n,); nan where it is nan.

        With k other rows ``rejected`` it is the broad one with the weight 1 / (k + 1), and has a
        normal one about each of the others: a Dirichlet process, since what reports a wrong value
        often reports the same one again. ``noise`` has the variance of each row.
        """
        y = observations.observed
        centre, scale = median_and_spread_in_space(domain, observations)
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.abs(y - centre) / scale
            broad: Array = -np.log(2.0 * scale) - np.log1p(z) - 2.0 * np.log1p(np.log1p(z))
            rows = np.flatnonzero(rejected)
            together = np.empty(len(y))
            for first in range(0, len(y), _ROWS):
                block = slice(first, first + _ROWS)
                variance = noise[block, None] + noise[rows]  # of the difference of two results
                apart = (y[block, None] - y[rows]) ** 2 / variance
                again = -0.5 * (np.log(2.0 * np.pi * variance) + apart)
                # No row is an instance of itself
                again[np.arange(first, first + len(again))[:, None] == rows] = -np.inf
                together[block] = logsumexp(np.column_stack([broad[block], again]), axis=1)
        others = len(rows) - rejected  # (n,): k, or k - 1 for a row that is rejected itself
        return np.asarray(together - np.log1p(others))

    def share(self, observations: Observations, posterior: Posterior) -> float:
        """Return the posterior mean share of outliers, by the rows with a trust below 1/2."""
        finite = np.isfinite(observations.observed)
        rejected = np.count_nonzero(finite & (posterior.trust(observations) < DISTRUSTED))
        seen = self.outliers + self.inliers + np.count_nonzero(finite)
        return float((self.outliers + rejected) / seen)

    def given_the_others(
        self, domain: Domain, observations: Observations, posterior: Posterior
    ) -> tuple[Array, Array, Array]:
        """Leave-one-out P(outlier) of each observation, and mean and deviation of f there.

        All have shape (n,); the probability is 1 where nothing finite was observed. The share of
        outliers is learned from the rows with a trust below 1/2. Hyperparameters are held fixed.
        """
        y = observations.observed
        finite = np.isfinite(y)
        rejected = finite & (posterior.trust(observations) < DISTRUSTED)
        mean, std = given_the_others(posterior, observations)
        noise = observations.own_noise(posterior.prior.noise)
        others = np.count_nonzero(rejected) - rejected
        # The Beta posterior by the other rows: outliers + others, inliers + rest
        rest = np.maximum(np.count_nonzero(finite) - 1.0 - others, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = std**2 + noise
            as_inlier = -0.5 * (np.log(2.0 * np.pi * variance) + (y - mean) ** 2 / variance)
            probability: Array = expit(
                np.log((self.outliers + others) / (self.inliers + rest))
                + self.log_density(domain, observations, rejected, noise)
                - as_inlier
            )
        return np.where(finite & ~np.isnan(probability), probability, 1.0), mean, std
