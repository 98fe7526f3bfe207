"""The seam of a policy: from a band over the domain to what to evaluate next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.data import Array, Choice, Integers, Observations
from stoic.domains import Among, Domain, Finite, Peak, Random, Surface
from stoic.posteriors.base import Posterior


@dataclass(frozen=True, eq=False, slots=True)
class Band:
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

    def fantasise(self, x: Array, arms: Integers | None) -> Band:
        """The band once points ``x`` (k, d) are on their way: narrower there, the same centre."""
        return Band(self.posterior.fantasise(x, arms), self.width)


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """What a policy sees when it is asked.

    Attributes
    ----------
    domain:
        All inputs there are.
    among:
        The part of it that may be chosen this time; usually ``domain`` itself.
    observations:
        All that was told.
    pending:
        Points handed out and not told yet, shape (k, d).
    rng:
        The learner's own stream.
    band_since:
        The band given the observations from a row on, computed when it is asked for.
    """

    domain: Domain
    among: Domain | Among
    observations: Observations
    pending: Array
    rng: Random
    band_since: Callable[[int], Band]

    def band(self) -> Band:
        """The band given everything that was told."""
        return self.band_since(0)

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
        """At most ``n`` choices, at least one, and the state after handing them out."""


def choice_of(peak: Peak, **notes: object) -> Choice:
    """The choice that a peak stands for."""
    return Choice(np.array(peak.x), peak.arm, notes)
