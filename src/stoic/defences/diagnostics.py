"""Outlier rejection by a Gaussian process with Student-t noise [MartinezCantin2018]_."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Booleans, Observations, Targets
from stoic.defences.base import Defence
from stoic.domains import Domain
from stoic.posteriors.base import FittedDefence, Posterior
from stoic.posteriors.prior import Prior
from stoic.posteriors.student_t_noise import StudentTNoise, tail_probability


@dataclass(frozen=True, eq=False)
class Diagnostics(Defence):
    """Reject the observations in the tails of a Gaussian process with Student-t noise.

    The judge is fitted to all observations. One is left out if its tail probability under the
    judge's predictive distribution is below ``level``. If that would be more than half of the
    finite observations, all of those are kept.

    Parameters
    ----------
    judge:
        The model with Student-t noise, with hyperparameters of its own.
    level:
        Significance level of the two-sided tail test, in (0, 1).

    Guarantee
    ---------
    None; [Ezzerg2026]_ knows of no bound either. Up to about ``level`` of the inliers are left out,
    and all finite observations are trusted once more than half fail the test.
    """

    judge: StudentTNoise
    level: float = 0.05
    revises = True

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"The level of a test is between 0 and 1, got {self.level!r}.")

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Diagnosed:
        earlier = previous.judge if isinstance(previous, Diagnosed) else None
        judge = self.judge(domain, observations, earlier)
        finite = np.isfinite(observations.observed)
        kept = finite & (self.probabilities(judge, observations) >= self.level)
        if 2 * np.count_nonzero(kept) < np.count_nonzero(finite):
            kept = finite
        return Diagnosed(kept, judge)

    def probabilities(self, judge: Posterior, observations: Observations) -> Array:
        """Return the tail probability of each observation under the judge (n,); 0 if not finite."""
        if not len(observations):
            return np.empty(0)
        mean, std = judge.predict(observations.x)
        with np.errstate(invalid="ignore", over="ignore"):
            residual = np.abs(observations.observed - mean)
        noise_sd = np.sqrt(observations.own_noise(judge.prior.noise))
        known = np.where(np.isfinite(residual), residual, np.inf)
        return tail_probability(known, std, noise_sd, self.judge.freedom)


@dataclass(frozen=True, eq=False)
class Diagnosed(Defence):
    """Fitted defence: a mask of the kept observations, shape (n,), and the judge's posterior."""

    kept: Booleans
    judge: Posterior

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        kept = self.kept[observations.start : observations.start + len(observations)]
        return Targets(
            np.where(kept, observations.observed, prior.mean),
            np.where(kept, observations.own_noise(prior.noise), np.inf),
            kept.astype(float),
        )
