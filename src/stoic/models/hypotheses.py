"""Outlier hypothesis: the observations with a noise of their own for each row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stoic.data import Array, Observations, Targets
from stoic.defences.base import Defence
from stoic.defences.plateau import NEGLIGIBLE
from stoic.posteriors.exact import Covariances, Exact
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, eq=False)
class Hypothesis(Defence):
    """Fixed point of the leave-one-out plateau, a fitted defence: each row has its own noise.

    Attributes
    ----------
    excess:
        z / c of each row, in units of f, shape (n,): its square is added to the noise.
    negligible:
        As in :class:`~stoic.models.LeaveOneOutGP`.
    posterior:
        Under the hyperparameters it was fitted with; ``None`` if none could be fitted.
    all_trusted:
        Posterior of the trusting start, all finite rows trusted: warm start of the next fit.
    evidence:
        Log marginal likelihood less the outlier penalty, in nats.
    credit:
        Part of the evidence that it has on another scale alone, see :mod:`stoic.models.skew`.
    explanations:
        All fixed points that were found, this one among them, and the one without outliers. Each
        has its own posterior; empty for fewer than two finite observations.
    """

    excess: Array
    negligible: float = NEGLIGIBLE
    posterior: Exact | None = None
    all_trusted: Exact | None = None
    evidence: float = -np.inf
    credit: float = 0.0
    explanations: tuple[Hypothesis, ...] = ()

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        own = observations.own_noise(prior.noise)
        noise = own + self._added
        trust = own / noise
        kept = (trust >= self.negligible) & np.isfinite(observations.observed)
        return Targets(
            np.where(kept, observations.observed, prior.mean),
            np.where(kept, noise, np.inf),
            np.where(kept, trust, 0.0),
        )

    @cached_property
    def _added(self) -> Array:
        """Noise variance that the excess of each row adds, shape (n,)."""
        with np.errstate(over="ignore"):
            return np.asarray(self.excess**2)

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        fixed = ~np.isnan(observations.noise) | np.isinf(targets.noise)
        return np.zeros(len(observations)), np.where(fixed, 0.0, prior.noise)  # excess held

    def under(
        self, prior: Prior, observations: Observations, covariances: Covariances | None = None
    ) -> Hypothesis:
        """Replace the posterior by the one under ``prior``, see :meth:`condition`."""
        return replace(self, posterior=self.condition(prior, observations, covariances))

    def condition(
        self, prior: Prior, observations: Observations, covariances: Covariances | None = None
    ) -> Exact:
        """Return the posterior under ``prior``, without references to those before it.

        ``covariances`` are those of the observations, if they are remembered.
        """
        bare = Hypothesis(self.excess, self.negligible)
        targets = bare(observations, prior)
        return Exact.condition(prior, bare, observations, targets, covariances)
