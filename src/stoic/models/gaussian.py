"""Gaussian process behind a defence against outliers."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoic.data import Observations
from stoic.defences.base import Defence
from stoic.defences.trust import Trust
from stoic.domains import Domain, Finite
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """Gaussian process, conditioned on the targets that a defence computes from the observations.

    On a finite domain the posterior lives on its arms, elsewhere on the rows. While the prior is
    given and the defence does not revise, a new observation is one rank-one update; otherwise the
    posterior is recomputed, with the previous hyperparameters as a warm start.

    Parameters
    ----------
    prior:
        The prior; if ``fitting`` refits, the family it is chosen from.
    defence:
        The map from observations to targets and trust weights.
    fitting:
        :class:`~stoic.posteriors.fitting.Fitting`, or ``FixedHyperparameters()`` for those of the
        prior.
    """

    prior: Prior
    defence: Defence = field(default_factory=Trust)
    fitting: Fitting | FixedHyperparameters = field(default_factory=FixedHyperparameters)

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Posterior:
        earlier = None if previous is None else previous.fitted_defence
        fitted = self.defence.fit(domain, observations, earlier)
        if previous is not None and not self.defence.revises and not self.fitting.refits:
            assert isinstance(previous, Arms | Exact)
            tail = observations.since(previous.n)
            # The tail alone: neither targets nor hyperparameters of earlier rows can have changed
            return previous.extend(fitted, tail, fitted(tail, self.prior))
        prior = self.fitting(domain, observations, fitted, self.prior, previous)
        targets = fitted(observations, prior)
        if observations.arms is not None:
            assert isinstance(domain, Finite)
            return Arms.condition(prior, fitted, domain, observations, targets)
        return Exact.condition(prior, fitted, observations, targets)
