"""What is not believed, and would be the best, is asked again. Ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.data import Array, Booleans, Choice
from stoic.domains import Domain
from stoic.kernels import at_one_place
from stoic.policies.base import Band, Notes, Policy, View, choices_at

_CLEARLY = 2.0  # standard deviations of the noise


@dataclass(frozen=True, eq=False)
class SecondLook(Policy):
    """Asks a place again while few results there contradict the one that is not believed.

    A defence takes the likeliest explanation, and a few lies that agree are likelier than one
    honest result that contradicts them. If that one is near the maximum the bound is low there, no
    policy goes back, and the search settles on another summit for ever. But whoever lies does not
    lie for ever: if at most t^(1/3) of t results are lies, as the papers suppose, asking often
    enough decides. So a result whose trust is below 1/2, and which is clearly higher than the best
    mean at a believed result, is asked again while at most ``rate`` t^(1/3) believed results are at
    its place, the points whose value has a prior correlation of at least 0.9 with its own; the
    highest first. A result that confirms it is not believed at once either and contradicts nothing,
    so it is asked on until it is, or more than t^(1/3) others were refused or failed there: what
    always is absurd is not asked for ever. All other choices are those of ``then``.

    Parameters
    ----------
    then:
        The policy.
    rate:
        1 asks as often as it takes to be certain under t^(1/3) lies, all of which may have been
        told in one place. With 0 one contradiction is enough.

    Guarantee
    ---------
    With ``rate`` 1, if at most t^(1/3) of the first t results lie and f is near constant in each
    place: a result is given up only when an honest one contradicts it, or another honest one was
    refused or failed there. A false result takes at most 2 t^(1/3) + 2 questions, so t^(1/3) of
    them take O(t^(2/3)): that much is added to the regret of ``then``, and nothing where all is
    believed. Nothing is said of a lie that is too low and believed: it is not looked at again.
    """

    then: Policy
    rate: float = 1.0

    def __post_init__(self) -> None:
        if not (self.rate >= 0.0 and math.isfinite(self.rate)):
            raise ValueError(f"The rate of second looks is a number >= 0, got {self.rate!r}.")
        object.__setattr__(self, "needs_finite", self.then.needs_finite)
        object.__setattr__(self, "plans", self.then.plans)

    def start(self, domain: Domain) -> Any:
        return self.then.start(domain)

    def choose(self, view: View, state: Any, n: int) -> tuple[list[Choice], Any]:
        again = in_doubt(view, self.rate)[:n]
        if not len(again):
            return self.then.choose(view, state, n)
        choices = choices_at(view.domain, again, {"second look": True})
        if len(choices) == n:
            return choices, state
        theirs = np.concatenate([view.pending, again])
        others, state = self.then.choose(
            view._replace(on_their_way=lambda: theirs), state, n - len(choices)
        )
        return choices + others, state

    def settle(self, view: View, state: Any, band: Band, tried: Array) -> tuple[int, Notes]:
        return self.then.settle(view, state, band, tried)

    def band(self, view: View, state: Any) -> Band:
        return self.then.band(view, state)

    def active(self, view: View, state: Any) -> Booleans:
        return self.then.active(view, state)


def in_doubt(view: View, rate: float) -> Array:
    """The places that deserve a second look, the highest result first, shape (k, d)."""
    told = view.observations
    nothing = told.x[:0]
    posterior = view.band().posterior
    believed = posterior.trust(told) >= 0.5
    refused = ~believed & np.isfinite(told.observed)
    if not refused.any() or not believed.any():
        return nothing
    best = posterior.predict(told.x[believed])[0].max()
    clearly = _CLEARLY * np.sqrt(told.own_noise(posterior.prior.noise))
    rows = np.flatnonzero(refused & (told.observed > best + clearly))
    rows = rows[np.argsort(-told.observed[rows], kind="stable")]
    if len(rows):
        rows = rows[view.among.contains(told.x[rows])]
    if not len(rows):
        return nothing

    def there(x: Array) -> Booleans:
        """Which points ``x`` (m, d) are at which of the places (k, d), shape (k, m)."""
        return at_one_place(posterior.prior.kernel, told.x[rows], x)

    lies = math.cbrt(len(told)) + 1e-9  # that of a cube may come out just below
    doubtful = there(told.x[believed]).sum(axis=1) <= rate * lies
    others = there(np.concatenate([told.x[~believed], view.failures.x])).sum(axis=1) - 1
    doubtful &= others <= lies
    doubtful &= ~there(view.pending).any(axis=1)
    # Of several refused results at one place the highest stands for all.
    same = there(told.x[rows]) & doubtful
    first = same.argmax(axis=1) == np.arange(len(rows))
    return np.asarray(told.x[rows[doubtful & first]])
