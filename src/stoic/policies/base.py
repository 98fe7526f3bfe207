"""The seam of a policy: from a band over the domain to what to evaluate next."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from stoic.data import Array, Booleans, Choice, Integers, Observations
from stoic.domains import Among, Domain, Finite, Peak, Random, Surface
from stoic.posteriors.base import Posterior


class Band(NamedTuple):
    """Where f is believed to be: mean +- width * std."""

    posterior: Posterior
    width: float

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of f at ``x`` (m, d), both (m,)."""
        mean, std = self.posterior.predict(x)
        return mean - self.width * std, mean + self.width * std

    def on(self, points: Finite) -> tuple[Array, Array]:
        """Lower and upper bounds on all rows of a finite domain, both (N,)."""
        mean, std = self.posterior.on(points)
        reach = self.width * std
        return mean - reach, mean + reach

    def fantasise(self, x: Array, arms: Integers | None, at_most: float = math.inf) -> Band:
        """The band once points ``x`` (k, d) are on their way: narrower there, the same centre."""
        return Band(self.posterior.fantasise(x, arms, at_most), self.width)


class Given(Protocol):
    """From observations to a band."""

    def __call__(self, observations: Observations | None = None, t: int | None = None) -> Band:
        """The band given these observations alone; by default given all that was told.

        ``t`` is the round that the width is told, for a policy that counts in epochs; by default
        one more than the number of observations.
        """


class View(NamedTuple):
    """What a policy sees when it is asked.

    Attributes
    ----------
    domain:
        All inputs there are.
    among:
        The part of it that may be chosen this time; usually ``domain`` itself.
    observations:
        All that was told.
    rng:
        The learner's own stream.
    given:
        The band given any of the observations, computed when it is asked for.
    on_their_way:
        Behind ``pending``.
    """

    domain: Domain
    among: Domain | Among
    observations: Observations
    rng: Random
    given: Given
    on_their_way: Callable[[], Array]

    @property
    def pending(self) -> Array:
        """Points handed out and not told yet, shape (k, d)."""
        return self.on_their_way()

    def band(self) -> Band:
        """The band given everything that was told."""
        return self.given()

    def hallucinated(self) -> Band:
        """The band given everything that was told, narrower where points are on their way."""
        pending = self.pending
        return self.band().fantasise(pending, None) if len(pending) else self.band()

    def one_by_one(self, band: Band, n: int, pick: Callable[[Band], Choice]) -> list[Choice]:
        """``n`` choices by ``pick``, each from a band that is narrower at those before it."""
        choices = [pick(band)]
        while len(choices) < n:
            last = choices[-1]
            band = band.fantasise(last.x[None], None if last.arm is None else np.array([last.arm]))
            choices.append(pick(band))
        return choices

    def maximise(self, surface: Surface) -> Peak:
        """The highest point of ``surface`` among those that may be chosen."""
        return self.among.maximise(surface, self.rng, self.observations.x)


class Policy(ABC):
    """Where to look next. Frozen: what it must remember is a state that the learner keeps for it.

    Attributes
    ----------
    needs_finite:
        Whether it works on finite domains only. The learner then refuses a ``Box``.
    """

    needs_finite: bool = False

    @abstractmethod
    def start(self, domain: Domain) -> Any:
        """The state before the first question."""

    @abstractmethod
    def choose(self, view: View, state: Any, n: int) -> tuple[list[Choice], Any]:
        """At most ``n`` choices, and the state after handing them out.

        None at all means: wait until something pending is told. It must not be the answer while
        nothing is pending.
        """

    def active(self, view: View, state: Any) -> Booleans:
        """Which rows of a finite domain may still be the best, shape (N,).

        Those whose upper bound reaches the best lower bound, unless the policy eliminates.
        """
        assert isinstance(view.domain, Finite)
        lower, upper = view.band().on(view.domain)
        reaches: Booleans = upper >= lower.max()
        return reaches


def choice_of(peak: Peak, **notes: object) -> Choice:
    """The choice that a peak stands for."""
    return Choice(peak.x, peak.arm, notes) if notes else Choice(peak.x, peak.arm)
