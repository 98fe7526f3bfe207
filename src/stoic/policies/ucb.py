"""Upper confidence bound [Srinivas2010]_."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from stoic.confidence.base import Band
from stoic.data import DISTRUSTED, Array, Choice
from stoic.domains import PLACE, Domain
from stoic.policies.base import Policy, View, choice_of


class UpperConfidenceBound(NamedTuple):
    """Upper confidence bound, mean + width * std."""

    band: Band

    def __call__(self, x: Array) -> Array:
        mean, std = self.band.posterior.predict(x)
        return mean + self.band.width * std

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        mean, std, mean_slope, std_slope = self.band.posterior.predict_with_gradient(x)
        return mean + self.band.width * std, mean_slope + self.band.width * std_slope


@dataclass(frozen=True, slots=True)
class UCB(Policy):
    """Maximise the upper confidence bound, mean + width * std.

    Parameters
    ----------
    retries:
        Number of times that a place with rejected results (trust below 1/2) is queried again.
        ``None``: as long as it has the highest bound, which is the papers' rule, and which queries
        it for ever where results are always absurd (a region in which every run diverges). With a
        number, a place that has used up its retries without a trusted result is treated as observed
        at the prior mean, or the posterior mean if that is lower. A place is a cube of 1 % of the
        domain's widths about a rejected result. A trusted result clears it only within a tenth of
        that: the edge of a region of crashes is sharp.

    Notes
    -----
    A batch hallucinates, as GP-BUCB does [Desautels2014]_: at pending points the standard deviation
    shrinks as if they had been observed, and the mean is held.

    Guarantee
    ---------
    If f is in the band in all rounds, the regret of round t is at most 2 width_t std_t(x_t), so
    the sum over T rounds is O(width_T sqrt(T gamma_T)) [Srinivas2010]_. On a ``Box`` this supposes
    that the global maximum of the bound was found, which no local search can guarantee.
    """

    retries: int | None = None

    def __post_init__(self) -> None:
        check_retries(self.retries)

    def start(self, domain: Domain) -> None:
        return None

    def choose(self, view: View, state: None, n: int) -> tuple[list[Choice], None]:
        band = view.hallucinated()
        if self.retries is not None:
            trust = band.posterior.trust(view.observations)
            band = band.without_gain(given_up(view, trust, self.retries))
        return view.one_by_one(
            band, n, lambda b: choice_of(view.maximise(UpperConfidenceBound(b)))
        ), None


def check_retries(retries: int | None) -> None:
    """Refuse a number of retries below 0."""
    if retries is not None and retries < 0:
        raise ValueError(f"retries is a count >= 0 or None, got {retries!r}.")


def given_up(view: View, trust: Array, retries: int, failures: bool = True) -> Array:
    """Places that used up their ``retries`` without a trusted result, a row each, (k, d).

    Where a run was stopped, because its result could not become good, there are none. Without
    ``failures`` runs that failed do not count: a policy that has their probability needs no more.
    """
    observations, trusted = view.observations, trust >= DISTRUSTED
    x = observations.x / view.domain.widths
    counted = ~trusted
    if not failures:
        counted &= ~(np.isnan(observations.observed) & observations.measured)
    rejected = x[counted]
    if not len(rejected):
        return rejected
    near = cdist(rejected, rejected, "chebyshev") <= PLACE
    # The first of those near to each other stands for their place
    visits, first = near.sum(axis=1), near.argmax(axis=1)
    never = cdist(rejected, x[trusted], "chebyshev").min(axis=1, initial=np.inf) > 0.1 * PLACE
    stopped = ~observations.measured[counted]
    # The first visit is no retry
    chosen = ((visits > retries) | (near @ stopped)) & (first == np.arange(len(rejected))) & never
    return np.asarray(observations.x[counted][chosen])
