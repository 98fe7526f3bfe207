"""The seam of a defence: from what was told to what is conditioned on."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from stoic.data import Array, Observations, Targets
from stoic.domains import Domain
from stoic.posteriors.base import Stance
from stoic.posteriors.prior import Prior


class Defence(ABC):
    """``Observations, Prior -> Targets``, in two steps.

    First it *settles*: everything that it learns from the data whatever the hyperparameters of the
    model it defends (a centre, a half-width, an anchor) is computed once. Then, as often as a fit
    asks, it turns the observations into targets under a given prior.

    Attributes
    ----------
    revises:
        Whether a later observation may change the targets of earlier rows. If not, the posterior is
        updated by one row per observation instead of being recomputed. ``stoic.testing`` checks
        that the declaration is true.
    """

    revises: bool = False

    def settle(
        self, domain: Domain, observations: Observations, previous: Stance | None = None
    ) -> Defence:
        """The defence with all its numbers fixed by ``observations``.

        ``previous`` is what it settled to for fewer observations of the same campaign: a hint.
        """
        return self

    @abstractmethod
    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        """The targets of ``observations`` under ``prior``; called on a settled defence."""

    def slopes(self, observations: Observations, prior: Prior) -> tuple[Array, Array]:
        """Derivatives of the targets' values and noise in log(prior.noise), both (n,).

        The default is right for a defence that keeps the values and multiplies the noise.
        """
        told = ~np.isnan(observations.noise)
        noise = self(observations, prior).noise
        return np.zeros(len(observations)), np.where(told, 0.0, noise)
