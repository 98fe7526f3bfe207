"""Mixture of Gaussian processes over competing outlier hypotheses: leave-one-out plateau. Ours.

Notation: given the other rows, each with the row noise in force, f(x_i) ~ N(mu_i, v_i), so that an
observation there has mean mu_i and deviation s_i = sqrt(v_i + sigma_i^2). With e = y_i - mu_i, a
half-width k and a shape c, the row's *excess* is z / c, z = max(|e| - k s_i, 0), and its noise
variance sigma_i^2 + z^2 / c^2, which is sigma_i^2 J_i of a plateau-IMQ weight with shape c sigma_i
[Altamirano2024]_, [Ezzerg2026]_. Values are kept: without the shift of a generalised posterior the
model is an ordinary Gaussian process with a noise per row, whose marginal likelihood is one.

All excesses depend on each other, through mu and v: the fit searches for a fixed point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from stoic.data import DISTRUSTED, Array, Booleans, Integers, Observations
from stoic.defences.plateau import NEGLIGIBLE
from stoic.domains import Domain
from stoic.models.bounded import given_any_number, likely, likely_draws, under_prior
from stoic.models.checkpoint import Checkpoint
from stoic.models.fixed_points import Search, Weighted
from stoic.models.hypotheses import Hypothesis
from stoic.models.near_best import refined
from stoic.models.rescaling import UNCHANGED, Rescaling, scale_of
from stoic.models.skew import with_few_good_results
from stoic.models.window import Bounds
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import FittedDefence, Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, FixedHyperparameters, marginal_likelihood
from stoic.posteriors.mixture import Averaged, MixturePosterior
from stoic.posteriors.prior import Prior
from stoic.posteriors.sampling import sample_hyperparameters
from stoic.posteriors.scales import median_and_mad, step_of

_DRAWS, _FEWEST = 24, 4  # of the hyperparameters: of all explanations, and of each
# Factor of deviations: an objective is no draw from a stationary process, above all at the optimum
# that a study found, and the more so the longer it searched. Of 640 studies of 30 trials a 95 %
# interval covers the truth in 92.7 % without it and in 95.3 % with it; with 1.2 in 97.3 %.
_WIDENING = 1.1


@dataclass(frozen=True, eq=False)
class LeaveOneOutGP:
    """Mixture of Gaussian processes over competing outlier hypotheses ("explanations").

    A result that contradicts the others is an outlier, or they do not determine f near it; often
    both fit the data. To act on the likelier explanation alone ignores that. Here each has the
    probability exp(evidence), up to a constant, and where they differ the deviation grows, see
    :class:`~stoic.posteriors.mixture.MixturePosterior`: a policy that explores uncertainty then
    queries a point that decides between them.

    Fitting alternates: excesses for given hyperparameters, by at most ``iterations`` steps of
    simultaneous updates; then hyperparameters for given excesses, by ``fitting``, in units of the
    weighted mean and standard deviation; at most ``rounds`` times. Outliers that agree support
    each other, so there are many fixed points. The search climbs from these starts:

    - *trusting*: every finite observation is trusted, hyperparameters are fitted to all of them.
      It finds the plain Gaussian process if that leaves no row outside of the plateau;
    - *sceptical*: excesses about the median in units of a robust spread, under the fitting's
      typical prior, whose lengthscale is long: where the trusting start explains three outliers
      that agree by a short lengthscale, a smooth prior weighs the whole neighbourhood;
    - *warm*: the previous fixed point, with the new rows judged by the old ones;
    - *reversed*: the best of these with trust swapped wherever, among observations at one place,
      more are distrusted than trusted. A fixed point, once found, resists ever more evidence.

    The fixed point with the highest evidence is kept; the others, and the one without outliers, for
    as long as they are likely. Another one, which is no fixed point, may be likelier where few
    results are good, see :mod:`stoic.models.skew`. Evidence is the log marginal likelihood under
    its row noise, less an ``outlier_penalty`` for each row that lost its weight: log odds against
    an outlier.
    Hyperparameters that are fitted to few rows are overconfident, and the first observation of a
    peak looks like an outlier: so the penalty is multiplied by
    :func:`~stoic.defences.plateau.small_sample_factor`, 3.8 for 8 observations and 1.3 for 30. For
    a residual e on its own, a row noise of e^2 - s^2 is likeliest, which an excess with c = 1 tends
    to as e grows. So it is the likelihood that relevance pursuit [Ament2024]_ climbs one row and
    one fit at a time; here all rows move at once.

    Parameters
    ----------
    prior:
        The prior; if ``fitting`` refits, the family that is fitted.
    fitting:
        Fit of the hyperparameters between two updates; ``FixedHyperparameters()`` keeps those of
        the prior. Its ``scale`` is not used.
    half_width:
        k > 0, in leave-one-out standard deviations.
    shape:
        c > 0: an excess of z adds the variance z^2 / c^2.
    outlier_penalty:
        Evidence, in nats, to distrust one row altogether among many; at least 0.
    iterations, rounds:
        Bounds on the steps of an iteration, and on the alternations.
    negligible:
        Rows whose trust falls below this are left out of the solve.
    replicates:
        If true, always trust observations that are :func:`~stoic.defences.replicates.confirmed` at
        their own input, even where a smooth function contradicts them.
    extreme:
        Robust spreads from the median beyond which a further start trusts no row, and all others:
        where a huge outlier is at a peak, the other starts reject the peak with it.
    bounds:
        Number of rows up to which the model is exact, and sizes of the window beyond, see
        :mod:`stoic.models.bounded`; None if it is exact for any number, at a cost that grows as
        the cube of it.
    most:
        Largest share of the finite results that an explanation may reject, if any other is left.
        Where many results are equal, as 0 at the border of a domain, a flat function explains them
        to any precision, and that all others are outliers is likely, however many they are.
    few_good:
        True if the highest results may be few but right, see :mod:`stoic.models.skew`.
    compresses:
        True if a learner compresses poor results before this model has them, where they span
        orders of magnitude: see :meth:`rescaling`.

    Guarantee
    ---------
    At a fixed point under its prior: whatever y_i is, row i moves the posterior mean at any x by at
    most (k + sqrt(k^2 + c^2)) / 2 standard deviations of f(x) given the other rows, whose row
    noises are held. For the mean moves by cov(f(x), f(x_i)) e / (v_i + sigma_i^2 + z^2 / c^2), the
    covariance is at most std(x) sqrt(v_i), and the largest value of
    s (k s + z) / (s^2 + z^2 / c^2) over z >= 0 is this number: 2.6 for k = 2.5 and c = 1. It
    vanishes as 1 / |e| beyond; a row of 1e300, infinity or nan is left out.

    While no row is outside of the plateau of the trusting start, and no other fixed point has
    more evidence, the targets are the observations, bit for bit, and the hyperparameters those of a
    plain Gaussian process in units of mean and standard deviation.

    Not proved: that the fixed point is unique (it is not), that the best one is found, that the
    simultaneous updates converge. They may cycle; then the last step is taken, and the bound holds
    for the mean that the step before it had computed. Several rows may move each other's noise, so
    there is no bound for several outliers: those that agree where little else was observed are
    trusted. So are those that the model on the other scale trusts, and one of moderate size that no
    other row contradicts, such as a low observation at the edge where the maximum is; a search that
    trusts it may never come back. Under hyperparameters other than the fitted ones the bound is in
    units of the old standard deviations. Regret: nothing is known.

    Up to ``bounds.exact`` rows: with one explanation left it is that one's posterior, bit for bit.
    Not proved: that the explanations that matter are found. The evidence takes no account of the
    hyperparameters' own uncertainty.

    Beyond, hyperparameters and explanations are those of a window of rows, exactly. The rows
    outside of it, each with the trust that its leave-one-out residual gives it, enter the posterior
    as if the parts of f that the window does not determine were independent of each other: the
    mean and the deviation are approximations, and where the window is sparse the deviation may be
    too large, or with many rows in one such place too small. Many rows outside rule out what
    predicts them worse, of explanations and of draws of hyperparameters. What is reported about the
    best is that of a model of the nearest rows, where it predicts them better
    (:mod:`stoic.models.near_best`): not proved is that a wrong result which these bear out, as of
    several that agree, is rejected.
    """

    prior: Prior
    fitting: Fitting | FixedHyperparameters = field(
        default_factory=lambda: Fitting(marginal_likelihood)
    )
    half_width: float = 2.5
    shape: float = 1.0
    outlier_penalty: float = 3.0
    iterations: int = 10
    rounds: int = 5
    negligible: float = NEGLIGIBLE
    replicates: bool = False
    extreme: float = math.inf
    bounds: Bounds | None = None
    most: float = 1.0
    few_good: bool = True
    compresses: bool = False

    def __post_init__(self) -> None:
        for name, least in (("half_width", 0.0), ("shape", 0.0)):
            value = getattr(self, name)
            if not (value > least and np.isfinite(value)):
                raise ValueError(f"A leave-one-out plateau needs a {name} > 0, got {value!r}.")
        if not (self.outlier_penalty >= 0.0 and np.isfinite(self.outlier_penalty)):
            raise ValueError(f"An outlier penalty is a number >= 0, got {self.outlier_penalty!r}.")
        if self.iterations < 1 or self.rounds < 1:
            raise ValueError(
                "Settling takes at least one iteration and one round, got "
                f"iterations={self.iterations!r} and rounds={self.rounds!r}."
            )

    @property
    def exact(self) -> float:
        """Number of rows up to which the model is exact."""
        return math.inf if self.bounds is None else self.bounds.exact

    def with_step_of(self, observations: Observations) -> Self:
        """Return the model of some of these observations, with the step of all of them.

        Those at a place may all be equal.
        """
        if not isinstance(self.fitting, Fitting) or self.fitting.step is not None:
            return self
        return replace(self, fitting=replace(self.fitting, step=step_of(observations)))

    def window(
        self, observations: Observations, posterior: Posterior
    ) -> tuple[Observations, Posterior]:
        """Return the rows of the window, and the posterior with the trust of these alone."""
        assert isinstance(posterior, WindowPosterior)
        return observations.only(posterior.rows), posterior.near

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> Posterior:
        if self.bounds is not None and len(observations) > self.exact:
            model = self.with_step_of(observations)
            return given_any_number(model, domain, observations, previous, self.bounds)
        earlier = None if previous is None else previous.fitted_defence
        judged = self.fit(domain, observations, earlier)
        # None where nothing could be fitted, or with fewer than two results
        found = [e for e in judged.explanations if e.evidence > -np.inf] or [judged]
        found = self.permitted(found, observations) or found
        found, weights = likely(found, self.negligible)
        parts = tuple(
            explanation.posterior or explanation.condition(self.prior, observations)
            for explanation in found
        )
        # Of this fit, not an earlier one
        fitted = replace(found[0], all_trusted=judged.all_trusted, explanations=tuple(found))
        if len(parts) == 1:
            return replace(parts[0], fitted_defence=fitted)
        return MixturePosterior(parts, weights / weights.sum(), fitted)

    def permitted(
        self, found: Sequence[Hypothesis], observations: Observations
    ) -> list[Hypothesis]:
        """Return the explanations that reject at most the share ``most`` of the finite results."""
        finite = np.isfinite(observations.observed)
        if self.most >= 1.0 or not finite.any():
            return list(found)

        def rejected(explanation: Hypothesis) -> float:
            prior = explanation.posterior.prior if explanation.posterior else self.prior
            return float(np.mean(explanation(observations, prior).trust[finite] < DISTRUSTED))

        return [each for each in found if rejected(each) <= self.most]

    def rescaling(self, domain: Domain, first: Observations) -> Rescaling:
        """Return the scale that results are to be modelled on, see :mod:`stoic.models.rescaling`.

        It is chosen by the ``first`` ones.
        """
        wanted = self.compresses and self.fitting.refits
        return scale_of(self, domain, first) if wanted else UNCHANGED

    def checkpoint(self, posterior: Posterior) -> Checkpoint | None:
        """Return what a posterior of this model has settled on; None if that has no numbers."""
        return Checkpoint.of(posterior) if self.fitting.refits else None

    def resumed(self, observations: Observations, checkpoint: Checkpoint) -> Posterior | None:
        """Return the posterior of a checkpoint; None if it is of another model."""
        return checkpoint.posterior(self, observations) if self.fitting.refits else None

    def integrated(
        self, domain: Domain, observations: Observations, posterior: Posterior
    ) -> Posterior:
        """Integrate out the hyperparameters of each explanation, for reports.

        They are drawn from their posterior, always from the same stream.
        """
        model = self.with_step_of(observations)
        rng = np.random.default_rng(0)
        explanations = posterior.parts if isinstance(posterior, MixturePosterior) else (posterior,)
        odds = posterior.weights if isinstance(posterior, MixturePosterior) else np.ones(1)
        rows: slice | Integers = slice(None)
        if isinstance(posterior, WindowPosterior):
            assert isinstance(posterior.fitted_defence, Hypothesis)
            rows = posterior.rows
            settled = posterior.fitted_defence.explanations
            # Those of the window alone: the parts have absorbed all other rows
            explanations = tuple(e.posterior for e in settled if e.posterior)
        window = observations.only(rows)
        parts, weights = [], []
        for k, (explanation, weight) in enumerate(zip(explanations, odds, strict=True)):
            assert isinstance(explanation, Exact)
            draws = max(_FEWEST, round(_DRAWS * weight))
            priors = model.hyperparameters(domain, window, explanation, draws, rng)
            if len(priors) == 1 == len(explanations):  # they are given
                return posterior
            fitted = explanation.fitted_defence
            assert isinstance(fitted, Hypothesis)
            if isinstance(posterior, WindowPosterior) and self.bounds is not None:
                priors = likely_draws(
                    self, priors, explanation, posterior, observations, self.bounds
                )
            for prior in priors:
                if isinstance(posterior, WindowPosterior):
                    parts.append(under_prior(prior, k, posterior, observations))
                else:
                    parts.append(fitted.condition(prior, observations))
            weights += [weight / len(priors)] * len(priors)
        return Averaged(tuple(parts), np.array(weights), posterior.fitted_defence, _WIDENING)

    def refined(
        self,
        domain: Domain,
        observations: Observations,
        posterior: Posterior,
        integrated: Posterior,
        permitted: Booleans | None = None,
    ) -> Posterior:
        """Refine what is reported about the best row, see :mod:`stoic.models.near_best`."""
        model = self.with_step_of(observations)
        return refined(model, domain, observations, posterior, integrated, permitted)

    def log_density(
        self, posterior: Posterior, observations: Observations, mean: Array, std: Array
    ) -> Array:
        """Return the log density of each result, given mean and deviation of f, up to a constant.

        That of an outlier has the deviation that is likeliest, and costs ``outlier_penalty``.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squares = (observations.observed - mean) ** 2
            variance = std**2 + observations.own_noise(posterior.prior.noise)
            inlier = -0.5 * (np.log(variance) + squares / variance)
            outlier = -0.5 * (np.log(np.maximum(variance, squares)) + 1.0) - self.outlier_penalty
        return np.maximum(inlier, outlier)

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Hypothesis:
        """Search for fixed points; return the likeliest, with the others as its explanations.

        ``previous`` is the result for fewer observations of the same run: a hint.
        """
        search = Search(self, domain, observations)
        earlier = previous if isinstance(previous, Hypothesis) else None
        best = self.climbed(search, earlier)
        if earlier is None:
            best = search.joined(best, search.afresh(best))
        another = with_few_good_results(search, best, earlier) if self.few_good else None
        return search.joined(best, another)

    def climbed(self, search: Search, earlier: Hypothesis | None = None) -> Hypothesis:
        """Return the likeliest fixed point of a search, with the others as its explanations."""
        observations = search.observations
        finite = np.isfinite(observations.observed)
        trusting = Hypothesis(np.where(finite, 0.0, np.inf), self.negligible)
        all_trusted = search.fit(trusting, None, None if earlier is None else earlier.all_trusted)
        if np.count_nonzero(finite) < 2:  # no other row to compare with
            return trusting if all_trusted is None else all_trusted
        found: list[Hypothesis] = []
        remembered, doubted = search.remembering(earlier, all_trusted), search.doubting(all_trusted)
        for start in (remembered, all_trusted, doubted, search.trimming()):
            found = search.with_climbed(start, found)
        best = search.likeliest(found, all_trusted or trusting)
        found = search.with_climbed(search.reversing(best), found)
        best = search.likeliest(found, best)
        if all_trusted is None:
            return replace(best, explanations=tuple(found))
        # The explanation without outliers need not be a fixed point
        if not any(search.same(all_trusted, fixed) for fixed in found):
            found.append(search.weighed(all_trusted))
        return replace(best, all_trusted=all_trusted.posterior, explanations=tuple(found))

    def follow(
        self, domain: Domain, observations: Observations, earlier: Sequence[Hypothesis]
    ) -> list[Hypothesis]:
        """Continue fixed points of fewer rows, under the hyperparameters in force.

        New rows are judged by the old ones, and trusted in a second start if one is rejected.
        """
        search = self._fixed(domain, observations)
        found: list[Hypothesis] = []
        for each in earlier:
            assert each.posterior is not None
            prior, old = each.posterior.prior, len(each.excess)
            start, _ = search.judged(each)
            if each.credit:  # which a fixed point on the scale of the results would not have
                found.append(search.weighed(search.under(start, prior)))
                continue
            found = search.with_climbed(search.under(start, prior), found)
            new = start.excess[old:]
            if (np.isfinite(observations.observed[old:]) & (new > 0.0)).any():
                trusting = np.append(each.excess, np.where(np.isnan(new), new, 0.0))
                trusting[~np.isfinite(observations.observed)] = np.inf
                start = replace(start, excess=trusting)
                found = search.with_climbed(search.under(start, prior), found)
        return search.with_climbed(search.outvoting(found), found)

    def outvoted(
        self, domain: Domain, observations: Observations, found: list[Hypothesis]
    ) -> list[Hypothesis]:
        """Add the fixed point that trusts what agrees most at one input, as :meth:`follow` does."""
        search = self._fixed(domain, observations)
        return search.with_climbed(search.outvoting(found), found)

    def _fixed(self, domain: Domain, observations: Observations) -> Search:
        """Return a search that leaves hyperparameters as they are."""
        return Search(replace(self, fitting=FixedHyperparameters()), domain, observations)

    def typical(self, domain: Domain, observations: Observations) -> Prior:
        """Prior without a fit, in units of the observations' median and its deviation."""
        return Search(self, domain, observations).typical(*median_and_mad(domain, observations))

    def hyperparameters(
        self,
        domain: Domain,
        observations: Observations,
        posterior: Exact,
        draws: int,
        rng: np.random.Generator,
    ) -> list[Prior]:
        """Draw hyperparameters from their posterior under the fixed point of ``posterior``.

        Only its own prior if they are given, or with fewer than two observations to fit them to.
        """
        settled, fitting = posterior.fitted_defence, self.fitting
        assert isinstance(settled, Hypothesis)
        if not isinstance(fitting, Fitting) or np.isfinite(settled.excess).sum() < 2:
            return [posterior.prior]
        judgement = Search(self, domain, observations).judge(replace(settled, posterior=posterior))
        weighted = replace(fitting, scale=Weighted(judgement.say(settled.excess)))
        return sample_hyperparameters(
            weighted, domain, observations, settled, posterior.prior, draws, rng
        )
