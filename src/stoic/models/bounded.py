"""Leave-one-out mixture given any number of rows, at a bounded cost.

The exact model conditions on a *window* of rows: the latest, those around the best, and others that
together determine f elsewhere. What all other rows say about f is absorbed
(:mod:`stoic.posteriors.absorbed`), and each of them has an excess of its own, by its leave-one-out
residual under that posterior. New rows join the window, under the hyperparameters in force, until
it is full. Then another one is chosen, and all rows outside of it are judged anew; hyperparameters
are fitted on it once there are a tenth more rows than at the last fit.

A window and hyperparameters that are chosen under each other may both be bad. From three full
windows on the rows outside, which neither is chosen by, judge each fit, and one from scratch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stoic import linalg
from stoic.data import DISTRUSTED, Array, Booleans, Integers, Observations
from stoic.defences.replicates import agreement, compared, confirmed, pairs_at_one_input
from stoic.domains import Domain
from stoic.models.fixed_points import Judgement
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors.absorbed import Absorbed, WindowPosterior
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.prior import Prior

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP


@dataclass(frozen=True)
class Bounds:
    """Sizes of the window.

    Attributes
    ----------
    exact:
        Number of rows up to which the model is the exact one.
    chosen, full:
        Number of rows of a new window, and of one that is replaced.
    recent, local, sample:
        Of a new one, the latest rows, those around the best, and some at random, from which the
        noise is learned: rows that differ as much as possible have no neighbours. With none around
        the best, f matters as much everywhere.
    pool:
        Rows that the others are chosen from.
    """

    exact: int = 256
    chosen: int = 320
    full: int = 384
    recent: int = 32
    local: int = 96
    sample: int = 64
    pool: int = 2048

    @property
    def judged(self) -> int:
        """Number of rows from which on those outside of a window judge what it says."""
        return 3 * self.full


_GROWTH = 1.1  # of all rows, between two fits of the hyperparameters
_PASSES = 5  # at most, over the rows outside of a new window, to absorb and judge them
_POOR = 0.05  # weight of the poorest rows in the choice of a window, where the best have 1
_AT_ONCE = 256  # rows that are compared with all others, for replicates
_JUDGES = 1024  # rows outside of a window that judge it, at most
# Nats a row, by which explanations, and draws of hyperparameters, may predict these worse
_WORSE, _DRAWN_WORSE = 0.02, 0.1
# Times as many rows are rejected in another window, and hyperparameters are fitted again: those of
# one window that were bad in another rejected 2.9 times as many, good ones 0.8 to 1.2 times
_MORE = 1.5
_DETERMINED = 0.01  # noise variances: f is determined where the window leaves less


def likely(found: Sequence[Hypothesis], negligible: float) -> tuple[list[Hypothesis], Array]:
    """Sort explanations by evidence, without negligible ones; their odds to the first, (k,)."""
    found = sorted(found, key=lambda explanation: explanation.evidence, reverse=True)
    odds = np.exp([e.evidence - found[0].evidence for e in found[1:]])  # decreasing
    weights = np.append(1.0, odds[odds >= negligible])
    return found[: len(weights)], weights


def given_any_number(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    previous: Posterior | None,
    bounds: Bounds,
) -> WindowPosterior:
    """Condition on more rows than the exact model takes; ``previous`` as in a model."""
    n = len(observations)
    earlier = None if previous is None else previous.fitted_defence
    if isinstance(previous, WindowPosterior) and n - previous.n <= bounds.full:
        assert isinstance(earlier, Hypothesis)
        rows = np.append(previous.rows, np.arange(previous.n, n))
        changed = _changed(previous.observations, observations)
        changed[previous.rows] = False  # those of the window are not absorbed
        if changed.any():
            earlier = replace(earlier, excess=np.where(changed, np.nan, earlier.excess))
        if changed.any() or len(rows) > bounds.full or _outgrown(model, n, previous.fitted_to):
            return _renewed(model, domain, observations, bounds, earlier, previous)
        found = model.follow(domain, observations.only(rows), earlier.explanations)
        # Explanations have the excesses of the window, `earlier` those of all: zeros are room
        excess = np.append(earlier.excess, np.zeros(n - previous.n))
        return _assembled(
            observations, replace(earlier, excess=excess, explanations=tuple(found)), rows,
            previous.inducing, previous.absorbed, previous.fitted_to, previous.chosen_at,
        )  # fmt: skip
    if (
        isinstance(earlier, Hypothesis)
        and earlier.posterior
        and n - len(earlier.excess) < bounds.full
    ):
        # The first call beyond the exact model, whose rows are the window so far
        return _begun(model, domain, observations, bounds, earlier, np.arange(len(earlier.excess)))
    return _afresh(model, domain, observations, bounds)


def _renewed(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    bounds: Bounds,
    earlier: Hypothesis,
    previous: WindowPosterior,
) -> WindowPosterior:
    """Choose another window; where it is fitted, and judged, also from scratch."""
    n, old = len(observations), previous.rows
    given = model, domain, observations, bounds
    found = _with_new_window(*given, earlier, old, previous.fitted_to)
    if n < bounds.judged:
        return found
    if found.fitted_to < n:
        if found.rejected <= _MORE * previous.rejected:
            return found
        found = _with_new_window(*given, earlier, old, 0)
    return _better(model, observations, found, _afresh(*given), bounds)


def _afresh(
    model: LeaveOneOutGP, domain: Domain, observations: Observations, bounds: Bounds
) -> WindowPosterior:
    """Fit a window that is spread out under the typical prior, and then another one."""
    prior = model.typical(domain, observations)
    finite = np.isfinite(observations.observed)
    rows = _chosen(model, domain, observations, prior, finite, None, bounds)
    settled = model.fit(domain, observations.only(rows))
    return _begun(model, domain, observations, bounds, settled, rows)


def _better(
    model: LeaveOneOutGP,
    observations: Observations,
    found: WindowPosterior,
    rival: WindowPosterior,
    bounds: Bounds,
) -> WindowPosterior:
    """Return the rival where rows outside of both windows bear out its window alone."""
    windows = []
    for each in (found, rival):
        assert isinstance(each.fitted_defence, Hypothesis)
        windows.append(_under(each.fitted_defence.explanations[0])[1])
    rows = np.union1d(found.rows, rival.rows)
    kept = _borne_out(model, observations, rows, windows, np.zeros(2), bounds)
    return found if kept[0] else rival


def _begun(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    bounds: Bounds,
    settled: Hypothesis,
    rows: Integers,
) -> WindowPosterior:
    """Choose the first window, by what a fit of the ``rows`` has settled on."""
    found = _explanations(model, observations, rows, settled, bounds)
    excess = np.full(len(observations), np.nan)
    excess[rows] = found[0].excess
    settled = replace(settled, excess=excess, explanations=tuple(found))
    return _with_new_window(model, domain, observations, bounds, settled, rows, 0)


def _with_new_window(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    bounds: Bounds,
    earlier: Hypothesis,
    old: Integers,
    fitted_to: int,
    required: Integers | None = None,
) -> WindowPosterior:
    """Choose a window, and judge all rows outside of it.

    ``earlier`` has the excess of each row, nan where it is not known, and the explanations of the
    rows ``old``. Rows that agree with each other at one input, but not with all else, belong into
    the window, whose fit believes them: those that are known to, or ``required`` after a first try.
    """
    n, start, fitted_before = len(observations), earlier, fitted_to
    prior, posterior = _under(earlier.explanations[0])
    mean, std = posterior.predict(observations.x)
    excess = np.append(earlier.excess, np.full(n - len(earlier.excess), np.nan))
    unknown = np.isnan(excess)
    # The posterior does not have these rows, so its prediction is leave-one-out
    excess[unknown] = _excess(model, observations, prior, mean, std)[unknown]
    trusted = excess**2 <= observations.own_noise(prior.noise)  # trust >= 1/2
    repeated = required
    if repeated is None:
        repeated = _confirmed(model, domain, observations, prior, ~trusted)
    repeated = _last(repeated, bounds.local)
    trusted[repeated], excess[repeated] = True, 0.0
    mean[repeated] = observations.observed[repeated]
    rows = _chosen(model, domain, observations, prior, trusted, mean, bounds, repeated)
    window = observations.only(rows)
    moved = []
    for each in earlier.explanations:
        of_all = excess.copy()
        of_all[old[: len(each.excess)]] = each.excess
        moved.append(replace(each, excess=of_all[rows]).under(_under(each)[0], window))
    if _outgrown(model, n, fitted_to):
        settled = model.fit(domain, window, replace(moved[0], all_trusted=earlier.all_trusted))
        found, fitted_to = _explanations(model, observations, rows, settled, bounds), n
        earlier = replace(earlier, all_trusted=settled.all_trusted)
        found = model.outvoted(domain, window, found)
    else:
        found = model.follow(domain, window, moved)
    found = likely(found, model.negligible)[0]

    prior, _ = _under(found[0])
    targets = found[0](window, prior)
    inducing = np.flatnonzero(targets.trust >= DISTRUSTED)
    outside = np.delete(np.arange(n), rows)
    others = observations.only(outside)
    own = others.own_noise(prior.noise)
    for _ in range(_PASSES):
        before = excess[outside] ** 2 <= own
        those = _absorbed(observations, Hypothesis(excess, model.negligible), rows, inducing, prior)
        posterior = those.condition(_bare(found[0]), n, window, inducing)
        noise = Hypothesis(excess[outside], model.negligible)(others, prior).noise
        mean, std = those.given_the_others(posterior, others, noise)
        excess[outside] = _excess(model, others, prior, mean, std)
        if np.array_equal(excess[outside] ** 2 <= own, before):
            break  # all are trusted that were, and no others
    doubted = excess**2 > observations.own_noise(prior.noise)
    doubted[rows] = False
    left = _confirmed(model, domain, observations, prior, doubted)
    if len(left) and required is None:
        required = np.union1d(repeated, left)
        return _with_new_window(
            model, domain, observations, bounds, start, old, fitted_before, required
        )
    whole = Hypothesis(
        excess, model.negligible, all_trusted=earlier.all_trusted, explanations=tuple(found)
    )
    return assembled(observations, whole, rows, inducing, fitted_to, n)


def assembled(
    observations: Observations,
    whole: Hypothesis,
    rows: Integers,
    inducing: Integers,
    fitted_to: int,
    chosen_at: int,
) -> WindowPosterior:
    """Absorb the rows outside of the window ``rows``, and build the mixture of explanations.

    ``whole`` has the excess of each row, and the explanations of the window.
    """
    # Explanations that were followed from one fit share its prior: absorb once for each
    priors = {id(each): each for each in (_under(known)[0] for known in whole.explanations)}
    absorbed = [_absorbed(observations, whole, rows, inducing, prior) for prior in priors.values()]
    return _assembled(observations, whole, rows, inducing, absorbed, fitted_to, chosen_at)


def _absorbed(
    observations: Observations, whole: Hypothesis, rows: Integers, inducing: Integers, prior: Prior
) -> Absorbed:
    window = observations.only(rows)
    outside = np.delete(np.arange(len(observations)), rows)
    others = observations.only(outside)
    noise = Hypothesis(whole.excess[outside], whole.negligible)(others, prior).noise
    empty = Absorbed.at(prior, window.x[inducing], window.own_noise(prior.noise)[inducing])
    return empty.absorb(others, noise)


def _assembled(
    observations: Observations,
    whole: Hypothesis,
    rows: Integers,
    inducing: Integers,
    absorbed: Sequence[Absorbed],
    fitted_to: int,
    chosen_at: int,
) -> WindowPosterior:
    """Build the mixture of the explanations in ``whole``, and update the excesses of the window."""
    n, window = len(observations), observations.only(rows)
    found, weights = likely(whole.explanations, whole.negligible)
    excess = whole.excess.copy()
    excess[rows] = found[0].excess
    whole = replace(whole, excess=excess, explanations=tuple(found))
    under = {id(of.prior): of for of in absorbed}
    those = tuple(under[id(_under(each)[0])] for each in found)
    parts = tuple(
        of.condition(_bare(each), n, window, inducing)
        for of, each in zip(those, found, strict=True)
    )
    rejected = int(np.count_nonzero(whole(observations, parts[0].prior).trust < 1.0))
    return WindowPosterior(
        parts, weights / weights.sum(), whole, rows, inducing,
        those, rejected, fitted_to, chosen_at, observations,
    )  # fmt: skip


def likely_draws(
    model: LeaveOneOutGP,
    priors: list[Prior],
    explanation: Exact,
    posterior: WindowPosterior,
    observations: Observations,
    bounds: Bounds,
) -> list[Prior]:
    """Return those priors, drawn for an explanation, that other rows bear out, else its own."""
    window, fitted = observations.only(posterior.rows), explanation.fitted_defence
    assert isinstance(fitted, Hypothesis)
    drawn = [explanation, *(fitted.condition(prior, window) for prior in priors)]
    equal = np.zeros(len(drawn))
    kept = _borne_out(model, observations, posterior.rows, drawn, equal, bounds, _DRAWN_WORSE)
    return [priors[k] for k in np.flatnonzero(kept[1:])] or [explanation.prior]


def under_prior(
    prior: Prior, k: int, posterior: WindowPosterior, observations: Observations
) -> Exact:
    """Return the ``k``-th part of a posterior under another prior."""
    whole, rows = posterior.fitted_defence, posterior.rows
    assert isinstance(whole, Hypothesis)
    window, inducing = observations.only(rows), posterior.inducing
    noise = whole(observations, prior).noise
    noise[rows] = np.inf  # those of the window are not absorbed
    own = window.own_noise(prior.noise)[inducing]
    absorbed = Absorbed.at(prior, window.x[inducing], own).absorb(observations, noise)
    return absorbed.condition(_bare(whole.explanations[k]), len(observations), window, inducing)


def _changed(old: Observations, observations: Observations) -> Booleans:
    """Mask of the earlier rows whose result or noise is another one now, (len(old),)."""
    now = observations.until(len(old))
    pairs = ((now.observed, old.observed), (now.noise, old.noise))
    same = [(a == b) | (np.isnan(a) & np.isnan(b)) for a, b in pairs]
    return np.asarray(~(same[0] & same[1]))


def _outgrown(model: LeaveOneOutGP, n: int, fitted_to: int) -> bool:
    return model.fitting.refits and n >= _GROWTH * fitted_to


def _bare(settled: Hypothesis) -> Hypothesis:
    # Else a posterior would hold its explanation, which holds the posterior before, and so on
    return Hypothesis(settled.excess, settled.negligible)


def _under(settled: Hypothesis) -> tuple[Prior, Exact]:
    """Prior and posterior of an explanation."""
    assert settled.posterior is not None
    return settled.posterior.prior, settled.posterior


def _explanations(
    model: LeaveOneOutGP,
    observations: Observations,
    rows: Integers,
    settled: Hypothesis,
    bounds: Bounds,
) -> list[Hypothesis]:
    """Return the likely explanations of a defence that settled on the window ``rows``.

    Each has a posterior, and many other rows bear it out.
    """
    window = observations.only(rows)
    found = [each for each in settled.explanations if each.evidence > -np.inf] or [settled]
    found = [each if each.posterior else each.under(model.prior, window) for each in found]
    posteriors = [_under(each)[1] for each in found]
    evidence = np.array([each.evidence for each in found])
    kept = _borne_out(model, observations, rows, posteriors, evidence, bounds)
    return likely([found[k] for k in np.flatnonzero(kept)], model.negligible)[0]


def _borne_out(
    model: LeaveOneOutGP,
    observations: Observations,
    rows: Integers,
    posteriors: Sequence[Exact],
    evidence: Array,
    bounds: Bounds,
    worse: float = _WORSE,
) -> Booleans:
    """Mask of those posteriors of a window, (k,), that the rows outside of it bear out.

    Left out are those that predict these ``worse`` than the likeliest by these and its
    ``evidence``, (k,). A window alone, chosen under the hyperparameters before, may bear out bad
    ones: where a search has converged, of 2,250 other rows a quarter contradicted the likeliest of
    five, and one in fifty another. Few other rows bear out all.
    """
    known = np.isfinite(observations.observed) & observations.measured
    known[rows] = False
    if len(observations) < bounds.judged or np.count_nonzero(known) < bounds.full:
        return np.ones(len(posteriors), dtype=bool)
    outside = observations.only(_thinned(np.flatnonzero(known), _JUDGES))
    densities = np.array(
        [model.log_density(each, outside, *each.predict(outside.x)) for each in posteriors]
    )
    likeliest = int(np.argmax(evidence + densities.sum(axis=1)))
    means = densities.mean(axis=1)
    return np.asarray(means >= means[likeliest] - worse)


def _excess(
    model: LeaveOneOutGP, observations: Observations, prior: Prior, mean: Array, std: Array
) -> Array:
    """Excess of rows, given the mean and standard deviation of f by the others."""
    own = observations.own_noise(prior.noise)
    with np.errstate(over="ignore", invalid="ignore"):
        judgement = Judgement(observations.observed - mean, np.hypot(std, np.sqrt(own)))
    return judgement.excess(model.half_width, model.shape)


def _chosen(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    prior: Prior,
    trusted: Booleans,
    mean: Array | None,
    bounds: Bounds,
    required: Integers | None = None,
) -> Integers:
    """Choose the rows of a window, increasing.

    They are those that are ``required``; the latest, results or not; the latest without a result,
    and those at the very input of the best mean; and trusted rows about that, and then of all, that
    reduce the variance of f most, weighted by the mean. Without means, all rows weigh the same.

    In a window an outlier must not be alone at its input, since others outside are judged by it.
    Rows that agree say as much outside, where they are absorbed without a loss.
    """
    n, x = len(observations), observations.x
    if n <= bounds.chosen:
        return np.arange(n)
    chosen, few = np.zeros(n, dtype=bool), bounds.recent // 4

    def choose(rows: Integers) -> int:
        """Choose those that there is room for, not without rivals; return the room left."""
        given = chosen.copy()
        for those in _with_rivals(model, domain, observations, prior, few, rows, given):
            if np.count_nonzero(chosen) + np.count_nonzero(~chosen[those]) <= bounds.chosen:
                chosen[those] = True
        return bounds.chosen - int(np.count_nonzero(chosen))

    chosen[n - bounds.recent :] = True
    if required is not None:
        chosen[required] = True
    lost = np.flatnonzero(~np.isfinite(observations.observed))
    chosen[_last(lost, bounds.recent)] = True
    candidates = np.flatnonzero(trusted)
    if not len(candidates):
        chosen[-bounds.chosen :] = True
        return np.flatnonzero(chosen)
    weights = np.ones(n)
    if mean is not None and bounds.local:
        best = candidates[np.argmax(mean[candidates])]
        spread = float(mean[candidates].std()) or 1.0
        # From _POOR to 1, by the distance below the best mean in deviations of the means
        weights = np.maximum(np.exp(np.minimum((mean - mean[best]) / spread, 0.0)), _POOR)
        same = (x[candidates] == x[best]).all(axis=1)
        choose(_last(candidates[same], few))
        near = np.argsort(-prior.kernel(x[best : best + 1], x[candidates])[0], kind="stable")
        choose(candidates[near[: bounds.local]])
    choose(np.flatnonzero(chosen & np.isfinite(observations.observed)))
    left = choose(_thinned(candidates, bounds.sample))
    # Rows that are chosen but not trusted do not determine f
    pool = _thinned(candidates, bounds.pool)
    left = choose(_pivots(prior, observations, chosen & trusted, pool, left, weights))
    # Where few rows determine f, further ones still tell the noise.
    choose(_thinned(candidates[~chosen[candidates]], left))
    return np.flatnonzero(chosen)


def _with_rivals(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    prior: Prior,
    few: int,
    rows: Integers,
    given: Booleans,
) -> Iterator[Integers]:
    """Yield what enters a window for each row: itself, unless others at its input contradict it.

    Instead of one that is outvoted, the one that most there agree with; where it is ``given``,
    (n,), all of them. Those with equal votes come together. At an input with more than ``few`` rows
    each is alone.
    """
    first, second = pairs_at_one_input(domain, observations, rows)
    ends = np.searchsorted(first, np.arange(len(rows) + 1))
    for k, row in enumerate(rows):
        here = np.append(row, second[ends[k] : ends[k + 1]])
        if not 1 < len(here) <= few:
            yield here[:1]
            continue
        group = observations.only(here)
        noise = group.own_noise(prior.noise)
        votes = agreement(domain, group, noise, model.half_width)
        against = compared(group, noise, model.half_width, 0, np.arange(len(here))) < 0.0
        rival = int(np.argmax(np.where(against, votes, -np.inf)))
        if not against[rival] or votes[rival] < votes[0]:
            yield here[:1]
        elif votes[rival] == votes[0]:
            yield here[votes == votes[0]]
        else:
            yield here if given[row] else here[[rival]]


def _confirmed(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    prior: Prior,
    doubted: Booleans,
) -> Integers:
    """Return the rows among the doubted ones that others at the same input confirm."""
    rows = np.flatnonzero(doubted & np.isfinite(observations.observed))
    if not (model.replicates and len(rows)):
        return rows[:0]
    noise = observations.own_noise(prior.noise)
    parts = np.array_split(rows, 1 + len(rows) // _AT_ONCE)  # of (k, n) comparisons each
    found = [confirmed(domain, observations, noise, model.half_width, part) for part in parts]
    return rows[np.concatenate(found)]


def _last(rows: Integers, count: int) -> Integers:
    return rows[max(len(rows) - count, 0) :]


def _thinned(rows: Integers, most: int) -> Integers:
    """Return at most so many of the rows, evenly."""
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, max(most, 0)).astype(int)])


def _pivots(
    prior: Prior,
    observations: Observations,
    chosen: Booleans,
    pool: Integers,
    count: int,
    weights: Array | None = None,
) -> Integers:
    """Choose at most ``count`` rows of a pool greedily, by their variance given those chosen.

    This is a pivoted Cholesky factorisation, with ``weights`` as in [Moss2023]_.
    """
    pool = pool[~chosen[pool]]
    x, own = observations.x, observations.own_noise(prior.noise)
    given = np.flatnonzero(chosen)
    start = Absorbed.at(prior, x[given], own[given])
    V = prior.kernel(x[given], x[pool])  # (given, pool)
    V = linalg.solve_lower(start.L, V) if len(given) else V
    rows = np.zeros((len(V) + max(count, 0), len(pool)))
    rows[: len(V)] = V
    c = prior.kernel.diagonal(x[pool]) - np.einsum("ij,ij->j", V, V)
    utility = np.ones(len(pool)) if weights is None else weights[pool]
    picked: list[int] = []
    for t in range(len(V), len(rows)):
        j = int(np.argmax(utility * c)) if len(pool) else -1
        if j < 0 or not c[j] > _DETERMINED * own[pool[j]]:
            break
        covariance = prior.kernel(x[pool[j : j + 1]], x[pool])[0] - rows[:t, j] @ rows[:t]
        rows[t] = covariance / np.sqrt(c[j])
        c -= rows[t] ** 2
        c[j] = 0.0  # exactly, lest rounding pick it again
        picked.append(j)
    return np.asarray(pool[picked])
