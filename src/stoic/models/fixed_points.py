"""Search for the fixed points of a leave-one-out plateau."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stoic import linalg
from stoic.data import DISTRUSTED, Array, Booleans, Observations
from stoic.defences.plateau import NEGLIGIBLE, small_sample_factor
from stoic.defences.replicates import (
    Pairs,
    agreement,
    confirmed,
    most_of_others,
    pairs_at_one_input,
)
from stoic.domains import Domain
from stoic.kernels import at_one_place
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors.cavity import without_each
from stoic.posteriors.exact import Covariances, Exact
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import (
    median_and_mad,
    median_and_spread_in_space,
    rounding_of,
)

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP

_SAME = 0.1  # two fixed points are the same if no row's trust differs by more
_BETTER = 0.1  # nats; smaller differences are the tolerance of a fit
# nats. Where it mattered it was 10 to 180; narrow hills were found less often with fits that
# gained 3 at most, 90 of their 120 best results trusted instead of 95.
_CLEARLY = 5.0
_CONVERGED = 1e-3  # an iteration stops when no row's trust changes by more


@dataclass(frozen=True, eq=False, slots=True)
class Judgement:
    """Leave-one-out residual e and standard deviation s of each row, both (n,)."""

    residual: Array
    deviation: Array

    def excess(self, half_width: float, shape: float) -> Array:
        """Excess z / c of each row, infinite where nothing finite was observed."""
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.maximum(np.abs(self.residual) - half_width * self.deviation, 0.0) / shape
        return np.where(np.isnan(beyond), np.inf, beyond)

    def say(self, excess: Array) -> Array:
        """Predictive weight s^2 / (s^2 + excess^2) of each row, shape (n,), from 1 to 0.

        Trust compares the excess with the noise alone. Where little is known around a row, one of
        small trust may still be the best that is known.
        """
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + (excess / self.deviation) ** 2))


class Search:
    """Search for fixed points, by the rules of one model on one set of observations."""

    def __init__(self, rules: LeaveOneOutGP, domain: Domain, observations: Observations) -> None:
        self.rules, self.domain = rules.with_step_of(observations), domain
        self.observations = observations
        self._covariances = Covariances(observations.x)

    @cached_property
    def _centre_and_spread(self) -> tuple[float, float]:
        return median_and_spread_in_space(self.domain, self.observations)

    @cached_property
    def replicates(self) -> Pairs:
        """Pairs of different rows at one input."""
        return pairs_at_one_input(self.domain, self.observations)

    def remembering(
        self, earlier: Hypothesis | None, all_trusted: Hypothesis | None
    ) -> Hypothesis | None:
        """Start from the previous fixed point; new rows are judged by the old ones alone.

        ``None`` if it is the start ``all_trusted``, which trusts all rows.
        """
        if earlier is None or earlier.posterior is None:
            return None
        known, judgement = self.judged(earlier)
        same = all_trusted is not None and np.array_equal(known.excess, all_trusted.excess)
        # It was the trusting start, and is: another fit would only give `all_trusted` again
        if same and earlier.posterior is earlier.all_trusted:
            return None
        # The previous posterior shows the fitting how many rows are new.
        return self.fit(known, judgement, earlier.posterior)

    def judged(self, earlier: Hypothesis) -> tuple[Hypothesis, Judgement]:
        """Add new rows to a fixed point of the old ones, which alone judge them."""
        assert earlier.posterior is not None
        n, k = len(self.observations), len(earlier.excess)
        excess = np.concatenate([earlier.excess, np.full(n - k, np.inf)])
        # Without what the next fit has of its own
        bare = replace(earlier, excess=excess, explanations=(), all_trusted=None)
        known = self.under(bare, earlier.posterior.prior)
        judgement = self.judge(known)
        judged = np.concatenate(
            [earlier.excess, self._excess(judgement, earlier.posterior.prior)[k:]]
        )
        return replace(known, excess=judged), judgement

    def typical(self, centre: float, spread: float) -> Prior:
        """Prior with the fitting's typical hyperparameters, or the given one."""
        if not isinstance(self.rules.fitting, Fitting):
            return self.rules.prior
        typical = replace(self.rules.fitting, scale=lambda *_: (centre, spread))
        none = self.observations.until(0)  # given no rows, a fit has its typical hyperparameters
        return typical(self.domain, none, Hypothesis(np.empty(0)), self.rules.prior)

    def doubting(self, all_trusted: Hypothesis | None) -> Hypothesis | None:
        """Start from excesses about the median, iterated under a smooth prior.

        ``None`` if that trusts all rows, as the start ``all_trusted`` does.
        """
        centre, spread = self._centre_and_spread
        prior = self.typical(centre, spread)
        with np.errstate(over="ignore", invalid="ignore"):
            residual = self.observations.observed - centre
        about = Judgement(residual, np.full(len(residual), spread))
        excess = self._excess(about, prior)
        if np.count_nonzero(np.isfinite(excess)) < 2:  # no row has another to be judged by
            return None
        sceptical = self.under(Hypothesis(excess, self.rules.negligible), prior)
        smooth, judgement, _ = self._iterate(sceptical)
        if all_trusted is not None and self.same(smooth, all_trusted):
            return None
        return self.fit(smooth, judgement, smooth.posterior)

    def trimming(self) -> Hypothesis | None:
        """Start from trust in all rows but those of extreme size; ``None`` if there are none."""
        centre, spread = self._centre_and_spread
        finite = np.isfinite(self.observations.observed)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(self.observations.observed - centre)
            # By default `extreme` is infinite, and no row is
            extreme = finite & ~(apart <= self.rules.extreme * spread)
        if not extreme.any() or np.count_nonzero(finite & ~extreme) < 2:
            return None
        excess = np.where(extreme, apart, np.where(finite, 0.0, np.inf))
        return self.fit(Hypothesis(excess, self.rules.negligible), None, None)

    def reversing(self, settled: Hypothesis) -> Hypothesis | None:
        """Swap trust where more at a place are distrusted than trusted; ``None`` if nowhere."""
        if settled.posterior is None:
            return None
        trusted, prior = self.trusted(settled), settled.posterior.prior
        rejected = ~trusted & np.isfinite(self.observations.observed)
        if not rejected.any():
            return None
        together = at_one_place(prior.kernel, self.observations.x, self.observations.x)
        against, for_it = together[:, trusted].sum(axis=1), together[:, rejected].sum(axis=1)
        # (n,): with none trusted at its place there is nothing to swap with
        majority = rejected & (for_it > against) & (against > 0)
        if not majority.any():
            return None
        excess = np.where(majority, 0.0, settled.excess)
        excess[trusted & together[:, majority].any(axis=1)] = np.inf
        return self.fit(replace(settled, excess=excess), None, settled.posterior)

    def afresh(self, best: Hypothesis) -> Hypothesis | None:
        """Fit what ``best`` trusts from scratch, and settle that; ``None`` if not clearly better.

        Its hyperparameters come from fits to results that it rejects by now, which may leave
        lengthscales too short: of six sets of 60 targets of a sinc, 18 at -99, R^2 is .46 to .83 in
        five, and .99 so.
        """
        if best.posterior is None or not self.rules.fitting.refits:
            return None
        if not (np.isfinite(self.observations.observed) & ~self.trusted(best)).any():
            return None
        alone = replace(best, explanations=(), all_trusted=None)
        start = self.fit(alone, self.judge(best), None)
        settled = None if start is None else self.climb(start, [])
        return settled if settled and settled.evidence > best.evidence + _CLEARLY else None

    def outvoting(self, found: list[Hypothesis]) -> Hypothesis | None:
        """Swap trust where others at an input agree more than a trusted one; ``None`` if nowhere.

        In the likeliest of those ``found``, under its hyperparameters. Of two results that
        contradict each other neither has more that agree.
        """
        first, second = self.replicates
        settled = self.likeliest(found, found[0])
        if settled.posterior is None or not len(first):
            return None
        prior = settled.posterior.prior
        noise = self.observations.own_noise(prior.noise)
        votes = agreement(
            self.domain, self.observations, noise, self.rules.half_width, pairs=self.replicates
        )
        most = np.maximum(votes, most_of_others(votes, self.replicates))
        trusted = self.trusted(settled)
        outvoted = trusted & (votes < np.minimum(most, 0.0))
        if not outvoted.any():
            return None
        instead = np.zeros(len(votes), dtype=bool)
        instead[second[outvoted[first]]] = True
        instead &= votes == most
        excess = np.where(outvoted, np.inf, np.where(instead, 0.0, settled.excess))
        start = self.under(replace(settled, excess=excess), prior)
        # Of infinite excess they would have no evidence
        excess = np.where(outvoted, self._excess(self.judge(start), prior), excess)
        return self.under(replace(start, excess=excess), prior)

    @staticmethod
    def likeliest(found: list[Hypothesis], otherwise: Hypothesis) -> Hypothesis:
        """Return the fixed point with the highest evidence."""
        return max(found, key=lambda settled: settled.evidence, default=otherwise)

    def with_climbed(self, start: Hypothesis | None, found: list[Hypothesis]) -> list[Hypothesis]:
        """Return ``found`` and the fixed point that a start leads to, if that is a new one."""
        climbed = None if start is None else self.climb(start, found)
        return found if climbed is None else self._with(climbed, found)

    def _with(self, another: Hypothesis, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return ``found`` and ``another``, which replaces those with the same trust."""
        return [other for other in found if not self.same(another, other)] + [another]

    def joined(self, best: Hypothesis, another: Hypothesis | None) -> Hypothesis:
        """Return the likeliest of the explanations of ``best`` and ``another``, with all of them.

        ``another`` replaces those with the same trust.
        """
        if another is None:
            return best
        found = self._with(another, best.explanations)
        likeliest = self.likeliest(found, best)
        return replace(likeliest, all_trusted=best.all_trusted, explanations=tuple(found))

    def climb(self, settled: Hypothesis, found: list[Hypothesis]) -> Hypothesis | None:
        """Return the fixed point that a start leads to; ``None`` if no better than ``found``.

        Two with the same trust may differ in their hyperparameters, whose fit has local maxima.
        """

        def known() -> bool:
            alike = [other.evidence for other in found if self.same(settled, other)]
            return bool(alike) and self._evidence(settled, judgement) <= max(alike) + _BETTER

        settled, judgement, moved = self._iterate(settled)
        for _ in range(self.rules.rounds - 1):
            if known():
                return None
            # No trust changed under the fitted hyperparameters: excesses and fit agree
            if not moved or not self.rules.fitting.refits:
                break
            refitted = self.fit(settled, judgement, settled.posterior)
            if refitted is None:
                return None
            settled, judgement, moved = self._iterate(refitted)
        if known():
            return None
        return replace(settled, evidence=self._evidence(settled, judgement), credit=0.0)

    def weighed(self, settled: Hypothesis) -> Hypothesis:
        """Return the fixed point with its evidence."""
        evidence = self._evidence(settled, self.judge(settled)) + settled.credit
        return replace(settled, evidence=evidence)

    def trusted(self, settled: Hypothesis) -> Booleans:
        """Return the mask of the rows that a fixed point trusts, under its own prior."""
        assert settled.posterior is not None
        trust = settled(self.observations, settled.posterior.prior).trust
        return np.asarray(trust >= DISTRUSTED)

    def same(self, one: Hypothesis, other: Hypothesis) -> bool:
        """Return True if both trust all rows alike."""
        return self._apart(one, other) < _SAME

    def fit(
        self, settled: Hypothesis, judgement: Judgement | None, previous: Exact | None
    ) -> Hypothesis | None:
        """Fit the hyperparameters to given excesses.

        ``None`` if a covariance has no factor, which takes trusted observations of 1e300.
        """
        fitting = self.rules.fitting
        if isinstance(fitting, Fitting):
            weights = np.isfinite(settled.excess).astype(float)
            if judgement is not None:
                weights = judgement.say(settled.excess)
            fitting = replace(fitting, scale=Weighted(weights))
        try:
            prior = fitting(self.domain, self.observations, settled, self.rules.prior, previous)
            return self.under(settled, prior)
        except linalg.NotPositiveDefiniteError:
            return None

    def under(self, settled: Hypothesis, prior: Prior) -> Hypothesis:
        """Replace the posterior by the one under ``prior``."""
        return settled.under(prior, self.observations, self._covariances)

    def _iterate(self, settled: Hypothesis) -> tuple[Hypothesis, Judgement, bool]:
        """Update the excesses of all rows until no trust changes; the last is True if any did."""
        assert settled.posterior is not None
        prior, moved = settled.posterior.prior, False
        for _ in range(self.rules.iterations):
            judgement = self.judge(settled)
            excess = self._excess(judgement, prior)
            following = replace(settled, excess=excess)
            step = self._apart(settled, following)
            # Keep `settled`, whose posterior the judgement is by
            if step <= _CONVERGED:
                break
            settled, moved = self.under(following, prior), True
        return settled, judgement, moved

    def _excess(self, judgement: Judgement, prior: Prior) -> Array:
        """Return the excess of each row, 0 where others at the same input confirm it."""
        excess = judgement.excess(self.rules.half_width, self.rules.shape)
        if self.rules.replicates:
            noise = self.observations.own_noise(prior.noise)
            rows = confirmed(
                self.domain,
                self.observations,
                noise,
                self.rules.half_width,
                pairs=self.replicates,
            )
            excess[rows] = 0.0
        return excess

    def judge(self, settled: Hypothesis) -> Judgement:
        posterior = settled.posterior
        assert posterior is not None
        targets = posterior.fitted_defence(self.observations, posterior.prior)
        kept = np.isfinite(targets.noise)
        assert np.count_nonzero(kept) == len(posterior.x)  # it is given these observations
        K = self._covariances(posterior.prior, np.ones(len(kept), dtype=bool), kept)
        variance = posterior.prior.kernel.diagonal(self.observations.x)
        mean, std = without_each(posterior, targets, *posterior.given(variance, K))
        own = self.observations.own_noise(posterior.prior.noise)
        with np.errstate(over="ignore", invalid="ignore"):
            return Judgement(self.observations.observed - mean, np.hypot(std, np.sqrt(own)))

    def _apart(self, one: Hypothesis, other: Hypothesis) -> float:
        """Largest difference of a row's trust, each under its own prior or that of ``one``."""
        assert one.posterior is not None
        other_prior = (other.posterior or one.posterior).prior
        mine = one(self.observations, one.posterior.prior).trust
        return float(np.abs(mine - other(self.observations, other_prior).trust).max())

    def _evidence(self, settled: Hypothesis, judgement: Judgement) -> float:
        """Log marginal likelihood of all finite rows, those left out included, less the penalty."""
        posterior = settled.posterior
        assert posterior is not None
        with np.errstate(over="ignore"):
            # Less n log(2 pi) / 2, the same for all: each finite row is in the solve or alone
            solved = -0.5 * np.dot(posterior.residual, posterior.residual)
        solved -= np.log(np.diagonal(posterior.L)).sum()
        noise = settled(self.observations, posterior.prior).noise
        alone = np.isinf(noise) & np.isfinite(self.observations.observed)
        # A row that is left out adds N(e; 0, s^2 + excess^2), whose square may overflow.
        spread = np.hypot(judgement.deviation[alone], settled.excess[alone])
        ratio = np.minimum(np.abs(judgement.residual[alone]) / spread, 1e100)
        solved -= np.sum(np.log(spread) + 0.5 * ratio**2)
        penalty = self.rules.outlier_penalty * small_sample_factor(self.observations)
        return float(solved - penalty * np.sum(1.0 - judgement.say(settled.excess)))


@dataclass(frozen=True, eq=False)
class Weighted:
    """Mean and standard deviation of the observations, by their predictive weights."""

    say: Array

    def __call__(self, domain: Domain, observations: Observations) -> tuple[float, float]:
        kept = (self.say > NEGLIGIBLE) & np.isfinite(observations.observed)
        y, weights = observations.observed[kept], self.say[kept]
        if not len(y):
            return median_and_mad(domain, observations)
        weights = weights / weights.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(np.dot(weights, y))
            sd = float(np.sqrt(np.dot(weights, (y - mean) ** 2)))
        if not (np.isfinite(mean) and np.isfinite(sd)):
            return median_and_mad(domain, observations)
        return mean, sd if sd > rounding_of(y) else 1.0
