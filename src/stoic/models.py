"""Models: from observations to a posterior, by a process prior and a defence against outliers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from stoic.data import Observations
from stoic.defences.base import Defence
from stoic.defences.leave_one_out import LeaveOneOut
from stoic.defences.settled import Settled
from stoic.defences.trust import Trust
from stoic.domains import Domain, Finite
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.mixture import Averaged, MixturePosterior
from stoic.posteriors.prior import Prior
from stoic.posteriors.student_t import StudentT, check_freedom


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
        fitted = self.defence.settle(domain, observations, earlier)
        if previous is not None and not self.defence.revises and not self.fitting.refits:
            assert isinstance(previous, Arms | Exact)
            tail = observations.since(previous.n)
            return previous.extend(fitted, tail, fitted(tail, self.prior))
        prior = self.fitting(domain, observations, fitted, self.prior, previous)
        targets = fitted(observations, prior)
        if observations.arms is not None:
            assert isinstance(domain, Finite)
            return Arms.condition(prior, fitted, domain, observations, targets)
        return Exact.condition(prior, fitted, observations, targets)


@dataclass(frozen=True, eq=False)
class StudentTProcess:
    """Student-t process [Shah2014]_, conditioned as :class:`GaussianProcess` is.

    Its mean is the Gaussian process's. Its deviation is too, times a factor that grows with the
    misfit of the results: it widens where the results are unlikely, and rejects none of them.

    Parameters
    ----------
    prior, defence, fitting:
        As in :class:`GaussianProcess`. Fit by
        :class:`~stoic.posteriors.student_t.StudentTLikelihood` with the same ``freedom``.
    freedom:
        nu > 2, the degrees of freedom; for large ones it is the Gaussian process.

    Guarantee
    ---------
    The exact posterior, if results and f are jointly Student-t. None against outliers: one result
    of size c moves the mean by a multiple of c, and the deviation with it.
    """

    prior: Prior
    defence: Defence = field(default_factory=Trust)
    fitting: Fitting | FixedHyperparameters = field(default_factory=FixedHyperparameters)
    freedom: float = 3.0

    def __post_init__(self) -> None:
        check_freedom(self.freedom, 2.0)

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> StudentT:
        assert previous is None or isinstance(previous, StudentT)
        earlier = None if previous is None else previous.gaussian
        gaussian = GaussianProcess(self.prior, self.defence, self.fitting)(
            domain, observations, earlier
        )
        assert isinstance(gaussian, Arms | Exact)
        return StudentT.around(gaussian, observations, self.freedom)


_DRAWS, _FEWEST = 24, 4  # of the hyperparameters: of all explanations, and of each


@dataclass(frozen=True, eq=False)
class LeaveOneOutGP:
    """Mixture of Gaussian processes over competing outlier hypotheses ("explanations").

    A result that contradicts the others is an outlier, or they do not determine f near it; often
    both fit the data. To act on the likelier explanation alone ignores that. Here each has the
    probability exp(evidence), up to a constant, and where they differ the deviation grows, see
    :class:`~stoic.posteriors.mixture.MixturePosterior`: a policy that explores uncertainty then
    queries a point that decides between them.

    Parameters
    ----------
    defence:
        It has the prior, and fits the hyperparameters of each explanation.

    Guarantee
    ---------
    With one explanation left it is that one's posterior, bit for bit. Not proved: that the
    explanations that matter are found. The evidence takes no account of the hyperparameters' own
    uncertainty.
    """

    defence: LeaveOneOut

    @property
    def prior(self) -> Prior:
        """Prior of the defence."""
        return self.defence.prior

    @property
    def fitting(self) -> Fitting | FixedHyperparameters:
        """Hyperparameter fit of the defence."""
        return self.defence.fitting

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Posterior:
        earlier = None if previous is None else previous.fitted_defence
        judged = self.defence.settle(domain, observations, earlier)
        found = [e for e in judged.explanations if e.evidence > -np.inf] or [judged]
        found.sort(key=lambda explanation: explanation.evidence, reverse=True)
        odds = np.exp([e.evidence - found[0].evidence for e in found[1:]])
        weights = np.append(1.0, odds[odds >= self.defence.negligible])
        parts = tuple(
            explanation.posterior or explanation.condition(self.prior, observations)
            for explanation in found[: len(weights)]
        )
        fitted = replace(found[0], believing=judged.believing)
        if len(parts) == 1:
            return replace(parts[0], fitted_defence=fitted)
        return MixturePosterior(parts, weights / weights.sum(), fitted)

    def integrated(
        self, domain: Domain, observations: Observations, posterior: Posterior
    ) -> Posterior:
        """Integrate out the hyperparameters of each explanation, for reports.

        They are drawn from their posterior, always from the same stream.
        """
        rng = np.random.default_rng(0)
        explanations = posterior.parts if isinstance(posterior, MixturePosterior) else (posterior,)
        odds = posterior.weights if isinstance(posterior, MixturePosterior) else np.ones(1)
        parts, weights = [], []
        for explanation, weight in zip(explanations, odds, strict=True):
            assert isinstance(explanation, Exact)
            draws = max(_FEWEST, round(_DRAWS * weight))
            priors = self.defence.hyperparameters(domain, observations, explanation, draws, rng)
            if len(priors) == 1 == len(explanations):
                return posterior
            fitted = explanation.fitted_defence
            assert isinstance(fitted, Settled)
            parts += [fitted.condition(prior, observations) for prior in priors]
            weights += [weight / len(priors)] * len(priors)
        return Averaged(tuple(parts), np.array(weights), posterior.fitted_defence)
