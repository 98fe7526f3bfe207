"""Mixture of Gaussian processes over competing outlier hypotheses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stoic.data import DISTRUSTED, Integers, Observations
from stoic.defences.leave_one_out import LeaveOneOut
from stoic.defences.settled import Settled
from stoic.domains import Domain
from stoic.models.bounded import Bounds, given_any_number, likely, under_prior
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.mixture import Averaged, MixturePosterior
from stoic.posteriors.prior import Prior

_DRAWS, _FEWEST = 24, 4  # of the hyperparameters: of all explanations, and of each
# Factor of deviations: an objective is no draw from a stationary process, above all at the optimum
# that a study found, and the more so the longer it searched. Without it a 95 % interval covers the
# truth in 240 of 256 studies of 30 trials, but in 71 of 80 of 50; with it in 248 and 76.
_WIDENING = 1.2


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
    bounds:
        Number of rows up to which the model is exact, and sizes of the window beyond, see
        :mod:`stoic.models.bounded`; None if it is exact for any number, at a cost that grows as
        the cube of it.
    most:
        Largest share of the finite results that an explanation may reject, if any other is left.
        Where many results are equal, as 0 at the border of a domain, a flat function explains them
        to any precision, and that all others are outliers is likely, however many they are.

    Guarantee
    ---------
    Up to ``bounds.exact`` rows: with one explanation left it is that one's posterior, bit for bit.
    Not proved: that the explanations that matter are found. The evidence takes no account of the
    hyperparameters' own uncertainty.

    Beyond, hyperparameters and explanations are those of a window of rows, exactly. The rows
    outside of it, each with the trust that its leave-one-out residual gives it, enter the posterior
    as if the parts of f that the window does not determine were independent of each other: the
    mean and the deviation are approximations, and where the window is sparse the deviation may be
    too large, or with many rows in one such place too small.
    """

    defence: LeaveOneOut
    bounds: Bounds | None = None
    most: float = 1.0

    @property
    def prior(self) -> Prior:
        """Prior of the defence."""
        return self.defence.prior

    @property
    def fitting(self) -> Fitting | FixedHyperparameters:
        """Hyperparameter fit of the defence."""
        return self.defence.fitting

    def bounded(self, observations: Observations) -> bool:
        """Return True if these are more rows than the exact model takes."""
        return self.bounds is not None and len(observations) > self.bounds.exact

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Posterior:
        if self.bounds is not None and self.bounded(observations):
            return given_any_number(self.defence, domain, observations, previous, self.bounds)
        earlier = None if previous is None else previous.fitted_defence
        judged = self.defence.settle(domain, observations, earlier)
        found = [e for e in judged.explanations if e.evidence > -np.inf] or [judged]
        if self.most < 1.0:
            found = [e for e in found if self._rejected(e, observations) <= self.most] or found
        found, weights = likely(found, self.defence.negligible)
        parts = tuple(
            explanation.posterior or explanation.condition(self.prior, observations)
            for explanation in found
        )
        fitted = replace(found[0], believing=judged.believing)
        if len(parts) == 1:
            return replace(parts[0], fitted_defence=fitted)
        return MixturePosterior(parts, weights / weights.sum(), fitted)

    def _rejected(self, explanation: Settled, observations: Observations) -> float:
        """Share of the finite results that an explanation rejects."""
        prior = explanation.posterior.prior if explanation.posterior else self.prior
        trust = explanation(observations, prior).trust[np.isfinite(observations.observed)]
        return float(np.mean(trust < DISTRUSTED))

    def integrated(
        self, domain: Domain, observations: Observations, posterior: Posterior
    ) -> Posterior:
        """Integrate out the hyperparameters of each explanation, for reports.

        They are drawn from their posterior, always from the same stream.
        """
        rng = np.random.default_rng(0)
        explanations = posterior.parts if isinstance(posterior, MixturePosterior) else (posterior,)
        odds = posterior.weights if isinstance(posterior, MixturePosterior) else np.ones(1)
        rows: slice | Integers = slice(None)
        if isinstance(posterior, WindowPosterior):
            assert isinstance(posterior.fitted_defence, Settled)
            rows = posterior.rows
            settled = posterior.fitted_defence.explanations
            explanations = tuple(e.posterior for e in settled if e.posterior)
        window = observations.only(rows)
        parts, weights = [], []
        for k, (explanation, weight) in enumerate(zip(explanations, odds, strict=True)):
            assert isinstance(explanation, Exact)
            draws = max(_FEWEST, round(_DRAWS * weight))
            priors = self.defence.hyperparameters(domain, window, explanation, draws, rng)
            if len(priors) == 1 == len(explanations):
                return posterior
            fitted = explanation.fitted_defence
            assert isinstance(fitted, Settled)
            for prior in priors:
                if isinstance(posterior, WindowPosterior):
                    parts.append(under_prior(prior, k, posterior, observations))
                else:
                    parts.append(fitted.condition(prior, observations))
            weights += [weight / len(priors)] * len(priors)
        return Averaged(tuple(parts), np.array(weights), posterior.fitted_defence, _WIDENING)
