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

_ROWS = 128  # as many as a local search has
_PASSES = 4  # of the rows to the best of them
_WIDTH = 2.0  # of the lower bound by which rows are compared, as in a recommendation
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
        The rows, increasing.
    posterior:
        That given these alone.
    best, bound:
        The row with the best lower bound, and the bound.
    """

    lower: Array
    upper: Array
    part: Domain
    rows: Integers
    posterior: Posterior
    best: int
    bound: float

    @classmethod
    def about(
        cls, model: LeaveOneOutGP, domain: Domain, observations: Observations, best: int
    ) -> Self | None:
        """Fit the model about a row, then about the best row by that, and so on."""
        found = None
        for _ in range(_PASSES):
            x = observations.x[best]
            away = np.abs((observations.x - x) / domain.widths).max(axis=1)
            rows = np.sort(np.argsort(away, kind="stable")[: int(min(_ROWS, model.exact))])
            half = away[rows].max() * domain.widths
            if not half.any():
                return found
            part = domain.around(x, half) if isinstance(domain, Box) else domain
            near = observations.only(rows)
            posterior = model(part, near, None)
            if not (trusted := _trusted(posterior, near)).any():
                return found
            mean, std = posterior.predict(near.x)
            bounds = np.where(trusted, mean - _WIDTH * std, -np.inf)
            before, best = best, int(rows[np.argmax(bounds)])
            found = cls(x - half, x + half, part, rows, posterior, best, float(bounds.max()))
            if best == before:
                break
        return found


def refined(
    model: LeaveOneOutGP,
    domain: Domain,
    observations: Observations,
    posterior: Posterior,
    averaged: Posterior,
) -> Posterior:
    """Refine a reported posterior about the best row, if the model of the nearest predicts better.

    That is, if the leave-one-out density of these rows is larger. The best row is looked for from
    two: that of the best mean, and the best result. ``averaged`` is the ``posterior`` with its
    hyperparameters integrated out.
    """
    trusted = np.flatnonzero(_trusted(posterior, observations))
    if not isinstance(averaged, Averaged) or not len(trusted):
        return averaged
    means = posterior.predict(observations.x[trusted])[0]
    starts = trusted[np.argmax(means)], trusted[np.argmax(observations.observed[trusted])]
    chosen: _Near | None = None
    for start in starts:
        if chosen is None or start not in chosen.rows:
            found = _Near.about(model, domain, observations, int(start))
            if chosen is None or (found is not None and found.bound > chosen.bound):
                chosen = found
    if chosen is None:
        return averaged
    near = observations.only(chosen.rows)
    mean, std = given_the_others(posterior, observations)
    known = _trusted(chosen.posterior, near)
    known[~np.isin(chosen.rows, trusted)] = False
    if not known.any():
        return averaged
    by_all = _density(posterior, near, mean[chosen.rows], std[chosen.rows])
    by_near = _density(chosen.posterior, near, *given_the_others(chosen.posterior, near))
    if not np.mean((by_near - by_all)[known]) > _GAIN:
        return averaged
    local = model.integrated(chosen.part, near, chosen.posterior)
    return Refined(
        averaged.parts, averaged.weights, averaged.fitted_defence, averaged.widening,
        near=local, lower=chosen.lower, upper=chosen.upper,
    )  # fmt: skip


def _trusted(posterior: Posterior, observations: Observations) -> Booleans:
    finite = np.isfinite(observations.observed) & observations.measured
    return np.asarray(finite & (posterior.trust(observations) >= DISTRUSTED))


def _density(posterior: Posterior, observations: Observations, mean: Array, std: Array) -> Array:
    """Logarithm of the density of each result, given mean and deviation of f, up to a constant."""
    variance = std**2 + observations.own_noise(posterior.prior.noise)
    with np.errstate(over="ignore", invalid="ignore"):
        density = -0.5 * (np.log(variance) + (observations.observed - mean) ** 2 / variance)
    return np.asarray(density)
