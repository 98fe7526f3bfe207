"""Model of the rows about the best, for reports, where a model of all rows cannot follow f.

A search that converges sees f at ever smaller distances. A stationary model of all its rows takes
what is smaller than their distance elsewhere for noise; one of the nearest rows does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from stoic.data import DISTRUSTED, Array, Booleans, Integers, Observations
from stoic.domains import Box, Domain
from stoic.posteriors.base import Posterior
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.mixture import Averaged
from stoic.posteriors.refined import Refined

if TYPE_CHECKING:
    from stoic.models.leave_one_out import LeaveOneOutGP

_ROWS = 128  # at most, as many as a local search has
_FEWEST = 32  # a local model has at least so many; fewer are left where many have one distance
_PASSES = 4  # of the rows to the best of them
_STARTS = 6  # from results, at most: of 4,000 results, 400 of them wrong, four were trusted
_WIDTH = 2.0  # of the lower bound by which rows are compared, as in a recommendation
_HALF = 0.5  # of a doubt that others near have to allay
_GAIN = 0.1  # nats a row, by which a local model has to predict better


class _Near(NamedTuple):
    """Local model: of the rows in a cube about one of them.

    Attributes
    ----------
    lower, upper:
        Corners of the cube, shape (d,).
    part:
        The part of the domain in it.
    rows:
        The rows in it, increasing.
    posterior:
        That given these alone.
    expected:
        Mean and deviation of f at each of them given the others, both (m,).
    best, bound:
        The row whose lower bound by all others is best, and the bound: a wrong result that is
        alone has a low one, whatever it is.
    """

    lower: Array
    upper: Array
    part: Domain
    rows: Integers
    posterior: Posterior
    expected: tuple[Array, Array]
    best: int
    bound: float

    @classmethod
    def about(
        cls,
        model: LeaveOneOutGP,
        domain: Domain,
        observations: Observations,
        able: Booleans,
        best: int,
    ) -> Self | None:
        """Fit the model about a row, then about the best row by that, and so on.

        Only a row that is ``able`` to be, (n,), is the best.
        """
        found, most = None, int(min(_ROWS, model.exact, len(observations) - 1))
        for _ in range(_PASSES):
            x = observations.x[best]
            away = np.abs((observations.x - x) / domain.widths).max(axis=1)
            rows = np.flatnonzero(
                away < np.partition(away, most)[most]
            )  # all at a distance, or none
            half = away[rows].max(initial=0.0) * domain.widths
            lower, upper = x - half, x + half
            if len(rows) < _FEWEST or not (lower < upper).all():
                return found
            part = domain.around(x, half) if isinstance(domain, Box) else domain
            near = observations.only(rows)
            posterior = model(part, near, None)
            good = able[rows] & _trusted(posterior, near)
            if not good.any():
                return found
            mean, std = expected = given_the_others(posterior, near)
            bounds = np.where(good, mean - _WIDTH * std, -np.inf)
            before, best = best, int(rows[np.argmax(bounds)])
            found = cls(lower, upper, part, rows, posterior, expected, best, float(bounds.max()))
            if best == before:
                break
        return found


def _chosen(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    able: Booleans,
    means: Array,
) -> _Near | None:
    """Return the local model with the best lower bound of those that are tried."""
    chosen: _Near | None = None
    left, observed = able.copy(), observations.observed
    for k in range(1 + _STARTS):
        start = int(np.argmax(np.where(left, observed if k else means, -np.inf)))
        if chosen is not None and start in chosen.rows:
            break
        if not left[start] or (k > 1 and chosen is not None and observed[start] <= chosen.bound):
            break
        found = _Near.about(model, domain, observations, able, start)
        left[start] = False
        if found is None:
            continue
        inlier = _trusted(found.posterior, observations.only(found.rows))
        left[found.rows[~inlier]] = False
        if chosen is None or found.bound > chosen.bound:
            chosen = found
        if k and start in found.rows[inlier]:
            break
    return chosen


def refined(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    posterior: Posterior,
    averaged: Posterior,
    permitted: Booleans | None = None,
) -> Posterior:
    """Refine a reported posterior about the best row, if the model of the nearest predicts better.

    That is, if the leave-one-out density of those of these rows that the model of all trusts is
    larger; one that the local model rejects costs what it does in the evidence. The best row is
    looked for from two: that of the best mean, and the best result; and from the next best result
    where a local model does not trust that one, which was wrong, and has led to some summit.
    ``averaged`` is the ``posterior`` with its hyperparameters integrated out; only ``permitted``
    rows, (n,), are best.

    A row that the local model alone trusts is trusted if the other ones near it expect, with 95 %,
    more than half of what the model of all finds wrong with it.
    """
    trusted = _trusted(posterior, observations)
    able = trusted if permitted is None else trusted & permitted
    if not isinstance(averaged, Averaged) or not able.any():
        return averaged
    chosen = _chosen(model, domain, observations, able, posterior.predict(observations.x)[0])
    if chosen is None:
        return averaged
    judged, near = trusted[chosen.rows], observations.only(chosen.rows)
    everywhere = given_the_others(posterior, observations)
    by_all = everywhere[0][chosen.rows], everywhere[1][chosen.rows]
    gain = model.log_density(chosen.posterior, near, *chosen.expected)[judged]
    gain -= model.log_density(posterior, near, *by_all)[judged]
    if not gain.mean() > _GAIN:
        return averaged
    mean, std = chosen.expected
    off, doubt = np.abs(near.observed - mean) + _WIDTH * std, np.abs(near.observed - by_all[0])
    trust, local = posterior.trust(observations), chosen.posterior.trust(near)
    allayed = (off <= _HALF * doubt) & (local > trust[chosen.rows])
    trust[chosen.rows[allayed]] = local[allayed]
    misfit = max(posterior.prior.noise - chosen.posterior.prior.noise, 0.0)
    own: dict[bytes, tuple[float, float]] = {}
    if model.bounds is not None and len(observations) >= model.bounds.judged:
        own = _at_results(posterior, observations, trusted, *everywhere)
    return Refined(
        averaged.parts, averaged.weights, averaged.fitted_defence, averaged.widening,
        near=model.integrated(chosen.part, near, chosen.posterior), rows=chosen.rows, trusted=trust,
        lower=chosen.lower, upper=chosen.upper, misfit=misfit, at_results=own,
    )  # fmt: skip


def _at_results(
    posterior: Posterior, observations: Observations, trusted: Booleans, mean: Array, std: Array
) -> dict[bytes, tuple[float, float]]:
    """Combine what a trusted result says at its input with what all others do, (n,) each.

    A posterior that has absorbed a row does not: what the window does not determine of f is, at
    that very input, known from it.
    """
    noise = posterior.fitted_defence(observations, posterior.prior).noise
    share = std**2 / (std**2 + noise)  # of the result
    rows = np.flatnonzero(trusted)
    means = mean[rows] + share[rows] * (observations.observed[rows] - mean[rows])
    stds = np.sqrt(share[rows] * noise[rows])
    inputs = map(bytes, observations.x[rows])
    return dict(zip(inputs, zip(means.tolist(), stds.tolist(), strict=True), strict=True))


def _trusted(posterior: Posterior, observations: Observations) -> Booleans:
    finite = np.isfinite(observations.observed) & observations.measured
    return np.asarray(finite & (posterior.trust(observations) >= DISTRUSTED))
