"""Base class of defences: from observations to the targets of a model."""

from __future__ import annotations

import numpy as np

from stoic.data import Array, Observations, Targets
from stoic.domains import Domain
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.prior import Prior


class Defence:
    """Map from observations and a prior to targets, in two steps.

    First :meth:`fit` computes once everything that it learns from the data whatever the
    hyperparameters of the model it defends (a centre, a half-width, an anchor). Then, as often as a
    fit needs, the fitted defence turns the observations into targets under a given prior.

    Attributes
    ----------
    revises:
        True if a later observation may change the targets of earlier rows. If not, the posterior is
        updated by one row per observation instead of being recomputed. ``stoic.testing`` checks
        that the declaration is true.
    """

    revises: bool = False

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Defence:
        """Fit all numbers of the defence to ``observations``.

        ``previous`` is the fitted defence for fewer observations of the same run: a hint.
        """
        return self

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        """Return the targets of ``observations`` under ``prior``; call it on a fitted defence."""
        raise TypeError(
            f"{type(self).__name__} must be fitted to data before it has targets: call its fit()."
        )

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        """Return the derivatives of the targets' values and noise in log(prior.noise), both (n,).

        ``targets`` are those under ``prior``. The default is right for a defence that keeps the
        values and multiplies the noise.
        """
        given = ~np.isnan(observations.noise)
        return np.zeros(len(observations)), np.where(given, 0.0, targets.noise)
