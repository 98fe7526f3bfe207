"""The neutral element: believe what was told."""

from __future__ import annotations

from dataclasses import dataclass

from stoic.data import Observations, Targets
from stoic.defences.base import Defence
from stoic.posteriors.base import as_told
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, slots=True)
class Trust(Defence):
    """Targets are the observations; results that are not finite are left out.

    Guarantee
    ---------
    None against lies: one observation of size c moves the posterior mean by a multiple of c
    ([Ezzerg2026]_, appendix H). It is the ordinary Gaussian process, and what the zero cost of the
    other defences is measured against.
    """

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        return as_told(observations, prior)
