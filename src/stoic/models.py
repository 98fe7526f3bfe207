"""Models: from observations to a posterior. A Gaussian process is a prior behind a defence."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoic.data import Observations
from stoic.defences.base import Defence
from stoic.defences.trust import Trust
from stoic.domains import Domain, Finite
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, Given
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A Gaussian process that is conditioned on what a defence makes of the observations.

    On a finite domain the posterior lives on its arms, elsewhere on the rows. While the prior is
    given and the defence does not revise, a new observation is one rank-one update; otherwise the
    posterior is recomputed, with the previous hyperparameters as a warm start.

    Parameters
    ----------
    prior:
        The prior; if ``fitting`` refits, the family it is chosen from.
    defence:
        What stands between the observations and the posterior.
    fitting:
        :class:`~stoic.posteriors.fitting.Fitting`, or ``Given()`` for fixed hyperparameters.
    """

    prior: Prior
    defence: Defence = field(default_factory=Trust)
    fitting: Fitting | Given = field(default_factory=Given)

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Posterior:
        if previous is not None and previous.n == len(observations):
            return previous
        incremental = not self.defence.revises and not self.fitting.refits
        stance = self.defence.settle(
            domain, observations, None if previous is None else previous.stance
        )
        if incremental and isinstance(previous, Arms | Exact) and previous.n < len(observations):
            return self._extended(previous, stance, observations.since(previous.n))
        prior = self.fitting(domain, observations, stance, self.prior, previous)
        targets = stance(observations, prior)
        if observations.arms is not None:
            assert isinstance(domain, Finite)
            return Arms.condition(prior, stance, domain, observations, targets)
        return Exact.condition(prior, stance, observations, targets)

    def _extended(self, previous: Arms | Exact, stance: Defence, tail: Observations) -> Posterior:
        targets = stance(tail, self.prior)
        if isinstance(previous, Exact):
            return previous.extend(stance, tail, targets)
        assert tail.arms is not None
        previous.stance = stance
        for arm, value, noise, trust in zip(
            tail.arms.tolist(),
            targets.values.tolist(),
            targets.noise.tolist(),
            targets.trust.tolist(),
            strict=True,
        ):
            previous.observe(arm, value, noise)
            previous.distrusted += trust < 1.0
        return previous
