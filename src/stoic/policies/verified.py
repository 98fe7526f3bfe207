"""Expected improvement that re-evaluates a doubtful incumbent. Ours."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from stoic.confidence.base import Band
from stoic.data import DISTRUSTED, Array, Booleans, Choice, Integers, Observations
from stoic.defences.replicates import agreement, pairs_at_one_input
from stoic.domains import PLACE, SAME, Box, Domain, Peak
from stoic.kernels import Matern52
from stoic.policies.base import Notes, Policy, View, apart, choice_of, choices_at, worth_a_repeat
from stoic.policies.improvement import LogExpectedImprovement, over_the_best
from stoic.policies.judged import Judged
from stoic.policies.risk import NOTHING, Chance, Risk, peak_at
from stoic.policies.trust_region import LocalSearch
from stoic.policies.ucb import check_retries, given_up
from stoic.posteriors.base import Posterior, as_observed
from stoic.posteriors.exact import Exact
from stoic.posteriors.outlier import OutlierOdds
from stoic.posteriors.prior import Prior
from stoic.posteriors.refined import Refined

# Expected improvements, in prior standard deviations, that are negligible: with 1e-3 instead of 0,
# 18 of 20 searches of a quadratic whose coordinates differ 36-fold in weight got within 0.01, and
# the precision that clean searches reach is the same.
_NEGLIGIBLE = 1e-3
# Standard deviations of the noise by which a result exceeds the incumbent; one in 44 by chance.
CLEARLY = 2.0
AGREE = 2.5  # standard deviations of a difference of two observations: one pair in 80 differs more
# Probability of a result, relative to the largest one, below which one that is there is no
# incumbent: of a wrong one among failures it is .02 to .05, of others .97 where all failures are in
# a region of half of the domain or nine tenths of it.
_UNLIKELY = 0.1
_DRAWN = 32  # points, of which one is taken where a result is at least half as likely as anywhere
FARTHEST = 3.0  # prior standard deviations, cap on the gain over the incumbent: f has one in 740
KNOWN = 0.01  # prior standard deviations: f is known where its posterior std is smaller
# Prior standard deviations within which other observations know f at what is recommended, where the
# model has a window and the share of outliers is above one in 40, as many as are below a bound of
# two deviations. At 24 moments of four searches, one result in ten wrong, three recommendations
# had been wrong and none is; one is better, and none worse.
_BORNE_OUT, _RARE = 0.25, 1.0 / 40.0
# Of a rejected result's distance from what others expect there. Where f varies faster than the
# model follows its repeats are rejected, too: of a lander's trials 501 to 1,000, one result in ten
# wrong, 70 were repeats, 39 are, and the losses are .0967 and .0972.
_NEARER = 0.5
# Choices since the last result, from which on the incumbent is doubted: of eight it serves as well
# from one or two on. Results of workers come one by one, and contradict a wrong one in time: with
# four of them doubt for as long as others are pending has 1.04 +- .12 of the regret without it, and
# with one result in ten wrong 1.20 +- .15 (50 trials, four problems, 21 seeds).
_BATCH = 4
_NEAR_ZERO = 1e-6  # noise variance of a unit prior that only measures distance


class _Doubt(NamedTuple):
    """Data, trusted rows of them, and band without the incumbent, trusted row ``best`` of all."""

    best: int
    view: View
    trusted: Integers
    band: Band

    @classmethod
    def of(cls, view: View, trusted: Integers, places: Array) -> Self | None:
        """Fit without the incumbent of three ``trusted`` rows or more, if it alone vouches for it.

        Of ``places`` no improvement is expected. None beyond a window, where choices are local by
        turns, and with bounds instead of results.
        """
        observations, limited = view.observations, view.surrogate.exact is not None
        if len(trusted) < 3 or limited or observations.censored is not None:
            return None
        x = observations.x[trusted]
        best = int(np.argmax(view.band().posterior.predict(x)[0]))
        if (apart(x, x[best], view.domain.widths) <= PLACE).sum() > 1:
            return None
        row, others = trusted[best], np.delete(trusted, best)
        rest = observations.only(np.delete(np.arange(len(observations)), row))
        band = view.hallucinated(view.given(rest)).without_gain(places)
        return cls(best, view._replace(observations=rest), others - (others > row), band)


@dataclass(frozen=True, slots=True)
class VerifiedImprovement(Policy):
    """Expected improvement over the best trusted mean, or a re-evaluation of that incumbent.

    The incumbent is the best posterior mean at a trusted observation or a pending point. If the
    observation there is an outlier, with probability p of ``odds``, f there is what the others
    predict, and another point is the best: a repeat is worth p times that difference, as an
    improvement elsewhere is worth its expectation. The policy takes the larger of the two. A repeat
    that agrees takes p to nearly 0, so an incumbent is verified once.

    A rejected observation that would be the new optimum is re-evaluated by the same rule. That
    the model is wrong there, and not the observation, has the odds surprise / share^v, where share
    is that of outliers and v the number of observations at that input that agree with it, itself
    among them, less those that do not; the gain counts up to 3 prior standard deviations. So it is
    queried once early, and given up after a few contradictions. One that more observations there
    agree with ends it, if it is trusted or at most half as far from what others expect; where the
    model has a window, which is late, when any other improvement is small, one that as many agree
    with.

    Where the expected improvement is negligible and all of the domain may be chosen, every other
    choice explores. It maximises the expected improvement with no lengthscale longer than half
    of the domain's diagonal: of 20 searches of a quadratic whose coordinates differ 36-fold in
    weight, two had taken one coordinate for irrelevant and stayed at its end. Where that is
    negligible, too, it is the point farthest from all others, by the posterior standard deviation
    under such lengthscales. Every choice explores where f is known already from an observation at
    that very input, and where all results are equal. So the policy searches a flat start, leaves a
    point where it converged wrongly, and tries all choices of a category.

    Where the model has a window, because there are many observations, and all of a box may be
    chosen, every other choice is the maximum of the expected improvement in a trust region, by the
    same model fitted to the observations near to that region alone [Eriksson2019]_
    (:class:`~stoic.policies.trust_region.LocalSearch`).

    Where results are nan without a reason, a classifier learns the region in which that happens,
    with the odds that there is one and not failure at a constant rate
    (:class:`~stoic.policies.risk.Chance`). There, and where inputs are known to be infeasible, an
    improvement is weighted by its probability, less the cost of one more failure
    (:class:`~stoic.policies.risk.Risky`).

    Choices of a batch may all rest on one wrong result. So from the fifth choice since the last
    result on every other one is made as if the incumbent had not been observed, by a model that is
    fitted without it, if no other trusted result is at its input. On six problems of 2 to 7
    parameters the best of eight such choices after 30 random ones has .86 +- .06 of the regret (14
    seeds), with one result in ten wrong .77 +- .07, and with a constraint, on seven problems, .89
    +- .04 and .95 +- .05 (16 seeds), of four such batches .85 +- .07 and .79 +- .09. It is not done
    with bounds, where it was not measured, nor beyond the window of a model, where choices are
    local by turns.

    With constraints, incumbents are inputs where each holds with a probability of at least 1/2, and
    an improvement is weighted by that probability [Gardner2014]_
    (:class:`~stoic.policies.risk.Constrained`). Without such an input the probability alone is
    maximised.

    Parameters
    ----------
    odds:
        Model of the probability that an observation is an outlier.
    surprise:
        Share of inliers that a smooth model rejects: 1 % over six functions without noise.
    retries:
        Number of times that a place without a trusted result is queried again, see
        :class:`~stoic.policies.ucb.UCB`. A repeat that has no result at its input, since it fails
        or another one is executed, is asked for as often, and once more for each result there.

    Guarantee
    ---------
    None for the regret. Its measurements are in the contest of the documentation.
    """

    odds: OutlierOdds = field(default_factory=OutlierOdds)
    surprise: float = 0.01
    retries: int = 1
    constrained = True
    ordinal = True

    def __post_init__(self) -> None:
        if not 0.0 < self.surprise < 1.0:
            raise ValueError(f"surprise is a share between 0 and 1, got {self.surprise!r}.")
        check_retries(self.retries)

    def start(self, domain: Domain) -> None:
        return None

    def choose(self, view: View, state: bool | None, n: int) -> tuple[list[Choice], bool | None]:
        chance = Chance.of(view)
        observations, pending = view.observations, view.pending
        trust = view.band().posterior.trust(observations)
        trusted = np.flatnonzero((trust >= DISTRUSTED) & observations.measured)
        if view.among is not view.domain and len(trusted):
            trusted = trusted[view.among.contains(observations.x[trusted])]
        constraints = view.constraints()
        if constraints is not None:
            trusted = trusted[constraints.hold(observations.x[trusted])]
        trusted = trusted[_likely(chance, observations.x[trusted])]
        verified, worth = self._verification(view, trust, trusted)
        # Expect no improvement at an input that was given up. Failures have a probability instead:
        # the prior mean right beside a summit would hide all of it.
        places = given_up(view, trust, self.retries, failures=False)
        band = view.hallucinated().without_gain(places)
        queried = view.queried()
        known = np.concatenate([observations.x[trusted], pending])
        if constraints is not None and len(pending):
            known = known[constraints.hold(known)]
            constraints = constraints.fantasise(pending)

        # Choices are local by turns. The state is whose turn it is; without one, as in a process
        # for each trial, the number of choices so far
        alternates = LocalSearch.serves(view)
        begun = len(view.surrogate.history) + len(view.failures.x) + len(pending)
        turn = begun % 2 == 1 if state is None else state
        doubts = [(begun + k) % 2 == 1 and view.asked + k >= _BATCH for k in range(n)]
        doubt = _Doubt.of(view, trusted, places) if any(doubts) else None
        local = LocalSearch.of(view, constraints) if alternates and (n > 1 or turn) else None

        def pick(band: Band) -> Choice:
            nonlocal verified, queried, known, constraints, turn, local, doubt
            data, rows, seen, repeat = view, trusted, known, verified
            if doubts.pop(0) and doubt is not None:
                _, data, rows, band = doubt
                seen, repeat = np.delete(known, doubt.best, axis=0), None
            posterior = band.posterior
            risk = Risk(chance, constraints)
            near = local.peak(view, risk) if local is not None and turn else None
            if (peak := near) is None:
                some = constraints is None or len(seen)
                surface = over_the_best(posterior, seen) if some else None
                peak = peak_at(data, surface, risk, posterior.max_variance**0.5)
            if repeat is not None and math.log(worth) > peak.height:
                choice = choices_at(view.domain, repeat[None], {"verified": True})[0]
                verified = None
            else:
                if near is None:
                    # By turns the last query was local, and the one before it not
                    own = queried[:-1] if alternates else queried
                    peak = _or_farthest(data, posterior, peak, queried, own, seen, rows, risk)
                choice = choice_of(peak)
            turn = not turn
            if doubt is not None and any(doubts):
                arms = None if choice.arm is None else np.array([choice.arm])
                doubt = doubt._replace(band=doubt.band.fantasise(choice.x[None], arms))
            if n > 1 and local is not None:
                local = local.with_pending(choice.x[None], constraints)
            queried = np.concatenate([queried, choice.x[None]])
            if constraints is None or constraints.hold(choice.x[None])[0]:
                known = np.concatenate([known, choice.x[None]])
            if constraints is not None and n > 1:
                constraints = constraints.fantasise(choice.x[None])
            return choice

        return view.one_by_one(band, n, pick), turn if alternates else state

    def recommend(
        self, view: View, state: bool | None, band: Band, tried: Array
    ) -> tuple[int, Notes]:
        """Recommend the point of the best lower bound whose P(outlier) is below 1/2.

        Where that is so at less than half of the points it does not count: of three or four
        observations, one of which is huge, the others seem to be outliers. Where the model has a
        window, and outliers are not rare, points go first where other observations know f within a
        quarter of its prior standard deviation: one that is alone vouches for itself only. With
        constraints, it is one where all hold with a probability of 0.9 or the largest one, which
        the notes hold as ``feasible``; also P(outlier) of that observation, ``outlier``, the mean
        of f there if it is one, ``otherwise``, and the number of trusted observations at that
        input, ``repeats``.
        """
        # All of them, also those outside of a window: who else would doubt these?
        observations, posterior = view.surrogate.modelled(), view.surrogate.posterior()
        if not len(observations):
            return Policy.recommend(self, view, state, band, tried)
        refined = band.posterior if isinstance(band.posterior, Refined) else None
        judged = Judged.of(tried, self.odds, view.domain, observations, posterior, refined)
        lower, _ = band.bounds(tried)
        constraints = view.constraints()
        notes: dict[str, float] = {}
        doubted = judged.outlier >= 0.5
        good = ~doubted | (doubted.mean() > 0.5)
        likely = good & _likely(Chance.of(view), tried)
        good = likely if likely.any() else good
        if constraints is not None:
            likely = constraints.safest(tried)
            good = likely & good if (likely & good).any() else likely
        share = self.odds.share(observations, posterior)
        if view.surrogate.exact is not None and share > _RARE:
            borne_out = good & (judged.std <= _BORNE_OUT * posterior.max_variance**0.5)
            good = borne_out if borne_out.any() else good
        best = int(np.argmax(np.where(good, lower, -np.inf)))
        if constraints is not None:
            notes["feasible"] = float(constraints(tried[[best]])[0])
        if not judged.seen[best]:
            return best, notes
        trusted = (judged.at == best) & (posterior.trust(observations) >= DISTRUSTED)
        return best, notes | {
            "outlier": float(judged.outlier[best]),
            "otherwise": float(view.surrogate.scale.inverse(judged.otherwise[best])),
            "repeats": int(trusted.sum()),
        }

    def _verification(
        self, view: View, trust: Array, trusted: Integers
    ) -> tuple[Array | None, float]:
        """Return the input (d,) that is most worth a repeat, and its worth; ``None`` if none is.

        The incumbent is one of the rows ``trusted``, of ``trust`` (n,) and feasible.
        """
        if len(trusted) < 3:  # of two that contradict each other either may be wrong
            return None, 0.0
        observations, widths = view.observations, view.domain.widths
        posterior = view.band().posterior
        x = observations.x[trusted]
        means = posterior.predict(x)[0]
        best = int(np.argmax(means))
        rows, worth = [trusted[best]], [0.0]
        p, otherwise, _ = self.odds.given_the_others(view.domain, observations, posterior)
        # Replicates of the incumbent are no alternative to it
        others = apart(x, x[best], widths) > PLACE
        if others.any():
            worth = [float(p[trusted[best]] * (means[others].max() - otherwise[trusted[best]]))]
        noise = observations.own_noise(posterior.prior.noise)
        with np.errstate(over="ignore", invalid="ignore"):
            gain = observations.observed - means[best]
        rejected = np.isfinite(gain) & (gain > CLEARLY * np.sqrt(noise))
        rejected &= trust < DISTRUSTED
        if rejected.any():
            share = self.odds.share(observations, posterior)
            pairs = pairs_at_one_input(view.domain, observations)
            votes = agreement(view.domain, observations, noise, AGREE, pairs=pairs)
            # An outlier hardly ever comes near to what a wrong model expects. In 126 studies of six
            # functions, 60 results, one in ten too good or constant, or with Cauchy's noise, two
            # contradictions that agree leave .65 [.48, .86] of the loss without this rule. One
            # leaves .64 [.45, .86], but 1.12 [.93, 1.37] where the noise has heavy tails.
            first, second = pairs
            with np.errstate(over="ignore", invalid="ignore"):
                off = np.abs(observations.observed - otherwise)
                nearer = off[second] <= _NEARER * off[first]
            ends = (trust[second] >= DISTRUSTED) | nearer
            window = view.surrogate.exact is not None
            ends &= votes[second] >= votes[first] if window else votes[second] > votes[first]
            rejected[first[ends]] = False
            # Odds surprise / share^v, v = votes + 1: the result itself is one of them
            p = expit(math.log(self.surprise) - (votes + 1.0) * math.log(share))
            most = FARTHEST * posterior.max_variance**0.5
            rows += np.flatnonzero(rejected).tolist()
            if (constraints := view.constraints()) is not None:
                p = p * constraints(observations.x)
            worth += (p * np.minimum(gain, most))[rejected].tolist()
        return worth_a_repeat(view, observations.x[rows], worth, self.retries)


def _wary(view: View, posterior: Posterior) -> Posterior:
    """Recompute the posterior with lengthscales capped at a typical one.

    It hallucinates pending points, and those without a result.
    """
    prior, observations = posterior.prior, view.observations
    typical = np.log(0.5 * math.sqrt(view.domain.dim) * view.domain.widths)
    theta = prior.kernel.theta.copy()
    for k, (kind, coordinate) in enumerate(prior.kernel.labels):
        if kind == "lengthscale":
            most = typical.mean() if coordinate is None else typical[coordinate]
            theta[k] = min(theta[k], most)
    prior = Prior(prior.kernel.with_theta(theta), prior.noise, prior.mean)
    # The same outliers as before: the defence is not fitted anew
    targets = posterior.fitted_defence(observations, prior)
    wary = Exact.condition(prior, posterior.fitted_defence, observations, targets)
    failed = observations.x[~np.isfinite(observations.observed)]
    off = np.concatenate([view.pending, failed])
    return wary.fantasise(off) if len(off) else wary


def _or_farthest(
    view: View,
    posterior: Posterior,
    peak: Peak,
    queried: Array,
    own: Array,
    known: Array,
    trusted: Integers,
    risk: Risk,
) -> Peak:
    """Return the peak, or a point to explore if the expected improvement there is negligible.

    That is the peak under capped lengthscales, or where its improvement is negligible, too, the
    point that is farthest from all others; while all results are equal, or all ``trusted`` rows
    of three or more, a random one. If the last query of its ``own`` explored, which is then apart
    from those before it, it is the turn of the peak. Where all that is left is expected to fail and
    nothing to improve, it is the best of the ``known`` ones. In a part with a fixed value, such as
    a context, it is the peak unless all are equal: there the best point known is played.
    """
    widths, unit = _part(view).widths, posterior.max_variance**0.5
    flat = _flat(view.observations, trusted)
    begun = len(view.observations.x) + len(view.failures.x) > 2
    if flat and begun and (drawn := _anywhere(view, queried, risk)) is not None:
        return drawn
    if view.among is not view.domain and (not isinstance(view.among, Box) or view.among.fixes):
        return peak
    if not len(queried):
        # Without a result all points are alike, and of a finite set the peak is always the first
        failed = _seen(view, queried)
        again = bool((apart(failed, peak.x, widths) <= SAME).any())
        return (farthest(view, failed, risk) or peak) if again else peak
    again = bool((apart(queried, peak.x, widths) <= SAME).any())
    if risk.constraints is not None and not len(known) and not again:
        return peak  # nothing is feasible yet
    if not flat and not (again and posterior.predict(peak.x[None])[1][0] <= KNOWN * unit):
        if not 0.0 < unit < math.inf or peak.height > math.log(_NEGLIGIBLE * unit):
            return peak
        if len(own) and (apart(own[:-1], own[-1], widths) > PLACE).all():
            return peak
    if not flat and 0.0 < unit < math.inf:
        wary = _wary(view, posterior)
        promising = peak_at(view, over_the_best(wary, known), risk, unit)
        new = (apart(queried, promising.x, widths) > SAME).all()
        if new and promising.height > math.log(_NEGLIGIBLE * unit):
            return promising
    if (explored := farthest(view, queried, risk)) is not None:
        return explored
    if risk.chance is None or not len(known):
        return peak
    if peak.height < math.log(NOTHING * unit):
        best = choices_at(view.domain, known[[np.argmax(posterior.predict(known)[0])]])[0]
        peak = Peak(best.x, best.arm, peak.height)
    stands = (apart(queried[-4:], peak.x, widths) <= SAME).all()
    if not (stands and len(view.failures.of_settings)):
        return peak
    # What is reported as the settings' fault may be none: of five queries one has no regard to the
    # cost. Failures without a kind have other explanations, see ``Chance``
    free = risk._replace(chance=risk.chance._replace(failures=0))
    tried = peak_at(view, over_the_best(posterior, known), free, unit)
    new = (apart(_seen(view, queried), tried.x, widths) > SAME).all()
    return tried if new else _anywhere(view, queried, risk) or peak


def _seen(view: View, queried: Array) -> Array:
    """Join the inputs that were ``queried`` (k, d) and all that failed, (m, d)."""
    return np.concatenate([queried, view.observations.x, view.failures.x])


def _likely(chance: Chance | None, x: Array) -> Booleans:
    """Mask of points (k, d) that are not among failures alone, where a result is rather wrong."""
    return np.ones(len(x), dtype=bool) if chance is None else chance(x) >= _UNLIKELY


def _anywhere(view: View, queried: Array, risk: Risk) -> Peak | None:
    """Draw a point of a box that was not ``queried`` (k, d); None if there is none.

    Where a result that is feasible is likely, by all that is known. The farthest point is a corner:
    where nine tenths of six dimensions are equally bad, 60 trials find 24 to 48 better points, and
    none in three of four searches from corner to corner.
    """
    if not isinstance(view.among, Box):
        return None
    seen, drawn = _seen(view, queried), view.among.sample(_DRAWN, view.rng)
    new = [bool((apart(seen, x, view.among.widths) > SAME).all()) for x in drawn]
    if not any(new):
        return None
    drawn = drawn[new]
    likely = np.ones(len(drawn)) if risk.chance is None else risk.chance(drawn)
    if risk.constraints is not None:
        likely = likely * risk.constraints(drawn)
        if likely.max() < 0.5:  # what holds is so rare that it is not drawn
            return None
    return Peak(drawn[np.argmax(likely >= 0.5 * likely.max())], None, -math.inf)


def _flat(observations: Observations, trusted: Integers) -> bool:
    """Return True if all results are equal, or three or more and all that are trusted."""
    seen = observations.observed[np.isfinite(observations.observed)]
    rest = observations.observed[trusted]
    return (len(seen) > 0 and bool((seen == seen[0]).all())) or (
        len(rest) > 2 and bool((rest == rest[0]).all())
    )


def _part(view: View) -> Domain:
    """Return the part of a box that may be chosen, of another domain all of it."""
    return view.among if isinstance(view.among, Box) else view.domain


def farthest(view: View, queried: Array, risk: Risk) -> Peak | None:
    """Find the point farthest from all ``queried`` (k, d) and all that failed; None without one."""
    widths, observations = _part(view).widths, view.observations
    lengthscale = 0.5 * math.sqrt(view.domain.dim) * widths
    failed = observations.x[~np.isfinite(observations.observed)]
    x = np.unique(np.concatenate([queried, failed]), axis=0)
    rows = Observations(x, np.zeros(len(x)), np.full(len(x), np.nan))
    prior = Prior(Matern52(lengthscale), _NEAR_ZERO)
    distance = Exact.condition(prior, as_observed, rows, as_observed(rows, prior))
    # The mean is 0 everywhere, so the improvement over 0 grows with the std alone
    peak = peak_at(view, LogExpectedImprovement(distance, 0.0), risk, 1.0)
    new = (apart(queried, peak.x, widths) > SAME).all()
    return peak if new else None
