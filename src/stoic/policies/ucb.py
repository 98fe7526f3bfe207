"""The upper confidence bound [Srinivas2010]_."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.data import Array, Choice
from stoic.domains import Domain, Finite
from stoic.policies.base import Band, Policy, View, choice_of
from stoic.posteriors.base import Posterior


class UpperBound(NamedTuple):
    """The surface mean + width * std."""

    band: Band

    def on(self, points: Finite) -> Array:
        band = self.band
        mean, std = band.posterior.on(points)
        return mean + band.width * std

    def __call__(self, x: Array) -> Array:
        mean, std = self.band.posterior.predict(x)
        return mean + self.band.width * std

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        mean, std, mean_slope, std_slope = self.band.posterior.predict_with_gradient(x)
        return mean + self.band.width * std, mean_slope + self.band.width * std_slope


@dataclass(frozen=True, slots=True)
class UCB(Policy):
    """argmax of mean + width * std.

    Parameters
    ----------
    retries:
        How often a place is asked again although its results were not believed (trust below 1/2).
        ``None``: as long as it has the highest bound, which is the papers' rule, and which keeps
        asking for ever where results are always absurd (a region in which every run diverges). With
        a number, a place that has used up its retries narrows the band as if it had been observed,
        with the mean held. A place is a ball of 1 % of the domain's widths in every coordinate.

    Notes
    -----
    A batch hallucinates, as GP-BUCB does [Desautels2014]_: at points that were handed out and not
    told yet, the standard deviation shrinks as if they had been observed, and the mean is held.

    Guarantee
    ---------
    If f lies in the band in all rounds, the regret of round t is at most 2 width_t std_t(x_t), so
    the sum over T rounds is O(width_T sqrt(T gamma_T)) [Srinivas2010]_. On a ``Box`` this supposes
    that the global maximum of the bound was found, which no local search can promise.
    """

    retries: int | None = None

    def start(self, domain: Domain) -> None:
        return None

    def choose(self, view: View, state: None, n: int) -> tuple[list[Choice], None]:
        band = view.band()
        narrowed = view.pending
        if self.retries is not None:
            narrowed = np.concatenate([narrowed, self._given_up(view, band.posterior)])
        if len(narrowed):
            band = band.fantasise(narrowed, None)
        return view.one_by_one(band, n, lambda b: choice_of(view.maximise(UpperBound(b)))), None

    def _given_up(self, view: View, posterior: Posterior) -> Array:
        """Places that used up their retries and were not believed, one row each."""
        trust = posterior.trust(view.observations)
        lies = view.observations.x[trust < 0.5]
        if not len(lies):
            return lies
        u = lies / view.domain.widths
        near = np.abs(u[:, None, :] - u[None, :, :]).max(axis=2) <= 0.01
        visits, first = near.sum(axis=1), near.argmax(axis=1)
        assert self.retries is not None
        return np.asarray(lies[(visits > self.retries) & (first == np.arange(len(lies)))])
