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

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stoic.data import DISTRUSTED, Array, Booleans, Integers, Observations
from stoic.domains import Domain
from stoic.models.fixed_points import Judgement
from stoic.models.hypotheses import Hypothesis
from stoic.models.window import Bounds, chosen_rows, confirmed_rows, latest, thinned
from stoic.posteriors.absorbed import Absorbed, WindowPosterior
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.prior import Prior

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP


_GROWTH = 1.1  # of all rows, between two fits of the hyperparameters
_PASSES = 5  # at most, over the rows outside of a new window, to absorb and judge them
_JUDGES = 1024  # rows outside of a window that judge it, at most
# Nats a row, by which explanations, and draws of hyperparameters, may predict these worse
_WORSE, _DRAWN_WORSE = 0.02, 0.1
# Times as many rows are rejected in another window, and hyperparameters are fitted again: those of
# one window that were bad in another rejected 2.9 times as many, good ones 0.8 to 1.2 times
_MORE = 1.5


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
    rows = chosen_rows(model, domain, observations, prior, finite, None, bounds)
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
        repeated = confirmed_rows(model, domain, observations, prior, ~trusted)
    repeated = latest(repeated, bounds.local)
    trusted[repeated], excess[repeated] = True, 0.0
    mean[repeated] = observations.observed[repeated]
    rows = chosen_rows(model, domain, observations, prior, trusted, mean, bounds, repeated)
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
    left = confirmed_rows(model, domain, observations, prior, doubted)
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
    outside = observations.only(thinned(np.flatnonzero(known), _JUDGES))
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
