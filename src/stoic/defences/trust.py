"""The neutral element: believe what was told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoic.data import Observations, Targets
from stoic.defences.base import Defence
from stoic.posteriors.base import as_told
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, slots=True)
class Trust(Defence):
    """Targets are the observations; results that are not finite are left out.

    Parameters
    ----------
    told_noise:
        Whether a noise variance that was told with a result is used. Whoever tells lies can tell
        that they are precise, so what bounds the harm of lies needs the prior's noise for all.

    Guarantee
    ---------
    None against lies: one observation of size c moves the posterior mean by a multiple of c
    ([Ezzerg2026]_, appendix H). It is the ordinary Gaussian process, and what the zero cost of the
    other defences is measured against.
    """

    told_noise: bool = True

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        targets = as_told(observations, prior)
        if self.told_noise:
            return targets
        noise = np.where(np.isfinite(targets.noise), prior.noise, np.inf)
        return Targets(targets.values, noise, targets.trust)
