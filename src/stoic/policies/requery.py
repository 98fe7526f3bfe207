"""Re-evaluate a rejected observation that would be the new optimum. Ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.data import DISTRUSTED, Array, Booleans, Choice
from stoic.kernels import at_one_place
from stoic.policies.base import View, Wrapper, choices_at

_CLEARLY = 2.0  # standard deviations of the noise


@dataclass(frozen=True)
class Requery(Wrapper):
    """Re-query a rejected observation while few trusted ones near it contradict it.

    A defence takes the likeliest explanation, and a few corruptions that agree are likelier than
    one clean result that contradicts them. If that one is near the maximum, the bound is low there,
    no policy goes back, and the search stays at another local maximum. But corruptions are limited:
    if at most t^(1/3) of t results are corrupted, as the papers assume, enough repeats decide.
    So a result whose trust is below 1/2, and which is clearly higher than the best posterior mean
    at a trusted result, is queried again while at most ``rate`` t^(1/3) trusted results are in its
    neighbourhood, the points whose value has a prior correlation of at least 0.9 with its own; the
    highest first. A result that confirms it is rejected at first too, and contradicts nothing. So
    the policy repeats the query until the result is trusted, or more than t^(1/3) others were
    rejected or failed there: a region of absurd results does not take queries for ever. All other
    choices are those of ``then``.

    Parameters
    ----------
    then:
        The policy.
    rate:
        1 repeats as often as it takes to be certain under t^(1/3) corruptions, all of which may be
        in one neighbourhood. With 0 one contradiction is enough.

    Guarantee
    ---------
    With ``rate`` 1, if at most t^(1/3) of the first t results are corrupted and f is near constant
    in each neighbourhood: a result is given up only when a clean one contradicts it, or another
    clean one was rejected or failed there. A corruption takes at most 2 t^(1/3) + 2 queries, so
    t^(1/3) of them take O(t^(2/3)): that much is added to the regret of ``then``, and nothing where
    all is trusted. A corruption that is too low and trusted is not covered: it is not re-queried.
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        if not (self.rate >= 0.0 and math.isfinite(self.rate)):
            raise ValueError(f"The rate of repeats is a number >= 0, got {self.rate!r}.")
        super().__post_init__()

    def choose(self, view: View, state: Any, n: int) -> tuple[list[Choice], Any]:
        again = in_doubt(view, self.rate)[:n]
        if not len(again):
            return self.then.choose(view, state, n)
        choices = choices_at(view.domain, again, {"second look": True})
        if len(choices) == n:
            return choices, state
        theirs = np.concatenate([view.pending, again])
        others, state = self.then.choose(view._replace(pending=theirs), state, n - len(choices))
        return choices + others, state


def in_doubt(view: View, rate: float) -> Array:
    """Rejected inputs to evaluate again, the highest result first, shape (k, d)."""
    observations = view.observations
    nothing = observations.x[:0]
    posterior = view.band().posterior
    trusted = posterior.trust(observations) >= DISTRUSTED
    rejected = ~trusted & np.isfinite(observations.observed)
    if not rejected.any() or not trusted.any():
        return nothing
    best = posterior.predict(observations.x[trusted])[0].max()
    clearly = _CLEARLY * np.sqrt(observations.own_noise(posterior.prior.noise))
    rows = np.flatnonzero(rejected & (observations.observed > best + clearly))
    rows = rows[np.argsort(-observations.observed[rows], kind="stable")]
    if len(rows):
        rows = rows[view.among.contains(observations.x[rows])]
    if not len(rows):
        return nothing

    def near(x: Array) -> Booleans:
        """Match the rows (k,) to the points of ``x`` (m, d) in their neighbourhood, (k, m)."""
        return at_one_place(posterior.prior.kernel, observations.x[rows], x)

    bound = math.cbrt(len(observations)) + 1e-9  # of a cube it may come out just below
    doubtful = near(observations.x[trusted]).sum(axis=1) <= rate * bound
    # Less one: the row itself is among the rejected
    others = near(np.concatenate([observations.x[~trusted], view.failures.x])).sum(axis=1) - 1
    doubtful &= others <= bound
    doubtful &= ~near(view.pending).any(axis=1)
    # Of several rejected results in one neighbourhood, query the highest only.
    same = near(observations.x[rows]) & doubtful
    first = same.argmax(axis=1) == np.arange(len(rows))
    return np.asarray(observations.x[rows[doubtful & first]])
