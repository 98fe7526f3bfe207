"""Identity defence: trust every finite observation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Observations, Targets
from stoic.defences.base import Defence
from stoic.posteriors.base import as_observed
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, slots=True)
class Trust(Defence):
    """Use the observations as targets, and leave out those that are not finite.

    Parameters
    ----------
    reported_noise:
        If true, use a noise variance that was reported with an observation. An adversary can report
        that corruptions are precise, so a bound on their influence needs the prior's noise for all.

    Guarantee
    ---------
    None against outliers: one of size c moves the posterior mean by a multiple of c
    ([Ezzerg2026]_, appendix H). It is the ordinary Gaussian process, the baseline for
    the zero cost of the other defences.
    """

    reported_noise: bool = True

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        targets = as_observed(observations, prior)
        if self.reported_noise:
            return targets
        noise = np.where(np.isfinite(targets.noise), prior.noise, np.inf)
        return Targets(targets.values, noise, targets.trust)

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        values, noise = Defence.slopes(self, observations, prior, targets)
        # A reported noise that is the prior's, too, grows with it
        return values, noise if self.reported_noise else targets.noise
