"""Protocols of posteriors, models and fitted defences."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import numpy as np

from stoic.data import Array, Booleans, Integers, Observations, Targets
from stoic.domains import Domain
from stoic.posteriors.prior import Prior


class FittedDefence(Protocol):
    """Fitted defence: a map from observations and a prior to targets."""

    def __call__(self, observations: Observations, prior: Prior) -> Targets: ...


_ONE = np.ones(1)  # trust of a single row: shared by all, so read-only
_ONE.flags.writeable = False


def as_observed(observations: Observations, prior: Prior) -> Targets:
    """Trust every finite observation, and leave out all others: no defence."""
    values = observations.observed
    noise = observations.own_noise(prior.noise)
    # One row at a time is the hot path of a finite domain
    if len(values) == 1 and math.isfinite(values.item()):
        return Targets(values, noise, _ONE)
    finite = np.isfinite(values)
    trust = finite.astype(float)
    if np.count_nonzero(finite) == len(values):
        return Targets(values, noise, trust)
    return Targets(np.where(finite, values, prior.mean), np.where(finite, noise, np.inf), trust)


class Posterior(Protocol):
    """Posterior over f, ready when constructed.

    Attributes
    ----------
    prior:
        The prior it came from, with the hyperparameters in force.
    fitted_defence:
        The fitted defence it was conditioned through; ``as_observed`` for a model without one.
    n:
        Number of observations, those left out of the solve included.
    information:
        Information gain 0.5 log det(I + D^-1/2 K D^-1/2) of the observations about f, in nats;
        D holds the noise variances of the rows.
    distrusted:
        Number of observations with a trust below 1.
    max_variance:
        Largest prior variance k(x, x): over the arms, or over the rows on a continuous domain
        (the same everywhere for a stationary kernel).
    """

    @property
    def prior(self) -> Prior: ...

    @property
    def fitted_defence(self) -> FittedDefence: ...

    @property
    def n(self) -> int: ...

    @property
    def information(self) -> float: ...

    @property
    def distrusted(self) -> int: ...

    @property
    def max_variance(self) -> float: ...

    def copy(self) -> Posterior:
        """Return a posterior that will not be updated in place."""

    def trust(self, observations: Observations) -> Array:
        """Weight of each of the observations it accounts for, shape (n,), in [0, 1]."""

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of f at ``x`` (m, d), both (m,).

        Where ``x`` is the array ``points`` of the finite domain that it was conditioned on, what is
        known there already is not computed again.
        """

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and standard deviation (m,), and their gradients in x (m, d)."""

    def fantasise(self, x: Array, arms: Integers | None, at_most: float = math.inf) -> Posterior:
        """Condition on fantasies at ``x`` (k, d): observations that equal the mean.

        The mean is held, the standard deviation shrinks: the hallucination of GP-BUCB
        [Desautels2014]_. With ``at_most``, a mean above it is lowered to it.
        """


class Model(Protocol):
    """Map from observations to a posterior.

    ``previous`` is what the model returned for fewer observations of the same run. It is a
    hint: it may save work (a rank-one update, a warm start), it does not change the meaning of the
    result, and it is consumed: it must not be used afterwards.
    """

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Posterior: ...


@runtime_checkable
class Integrating(Protocol):
    """Model that can also marginalise over its hyperparameters."""

    def integrated(
        self, domain: Domain, observations: Observations, posterior: Posterior
    ) -> Posterior:
        """Marginalise over hyperparameters; ``posterior`` is under the best of them."""


@runtime_checkable
class Windowed(Protocol):
    """Model that conditions on a window of rows where there are many.

    Attributes
    ----------
    exact:
        Number of rows up to which it conditions on all.
    """

    @property
    def exact(self) -> float: ...

    def with_step_of(self, observations: Observations) -> Model:
        """Return the model of some of these observations, with what only all of them show.

        That is the step of results with few values.
        """

    def window(
        self, observations: Observations, posterior: Posterior
    ) -> tuple[Observations, Posterior]:
        """Return the rows of the window, and the posterior with the trust of these alone.

        Choices are made by them. ``posterior`` is the model's, given all ``observations``.
        """

    def refined(
        self,
        domain: Domain,
        observations: Observations,
        posterior: Posterior,
        integrated: Posterior,
        permitted: Booleans | None = None,
    ) -> Posterior:
        """Refine what is reported about the best ``permitted`` row, where there is a window.

        ``integrated`` is the ``posterior`` without its hyperparameters, if the model does that.
        """
