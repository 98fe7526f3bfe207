"""The seam of a policy: from a band over the domain to what to evaluate next."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from stoic.data import Array, Booleans, Choice, Failures, Integers, Observations
from stoic.domains import Among, Domain, Finite, Peak, Random, Surface
from stoic.posteriors.base import Posterior
from stoic.posteriors.feasibility import Feasibility


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


Notes = Mapping[str, object]

_SURE = 0.8  # a chance of a result that counts as certain
_LEAST = 1e-300  # a chance whose logarithm is still a number


class Feasible(NamedTuple):
    """A surface where some inputs may give no result: there it counts as no higher than a floor.

    floor + Q (height - floor), or height + ln Q for the logarithm of a gain, where Q is
    min(P / 0.8, 1): if every percent of P counted, inputs far from what failed would win over
    better ones nearer to it, since a percent of height - floor is much.
    """

    surface: Surface
    feasibility: Feasibility
    floor: float | None

    def on(self, points: Finite) -> Array:
        return self._combined(self.surface.on(points), self._chance(self.feasibility.on(points)))

    def __call__(self, x: Array) -> Array:
        return self._combined(self.surface(x), self._chance(self.feasibility(x)))

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        height, slope = self.surface.with_gradient(x)
        p, p_slope = self.feasibility.with_gradient(x)
        q, q_slope = self._chance(p), np.where(p < _SURE, 1.0 / _SURE, 0.0)[:, None] * p_slope
        combined = self._combined(height, q)
        if self.floor is None:
            return combined, slope + q_slope / q[:, None]
        return combined, q[:, None] * slope + q_slope * (height - self.floor)[:, None]

    @staticmethod
    def _chance(p: Array) -> Array:
        return np.clip(p / _SURE, _LEAST, 1.0)

    def _combined(self, height: Array, q: Array) -> Array:
        if self.floor is None:
            return height + np.log(q)
        return self.floor + q * (height - self.floor)


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
    failures:
        What gave no result.
    feasibility:
        Where there are results at all; ``None`` as long as nothing was found infeasible.
    counted:
        Whether what is on its way is what this policy handed out, so that it may count on its own;
        otherwise somebody else keeps account of it, for others too.
    """

    domain: Domain
    among: Domain | Among
    observations: Observations
    rng: Random
    given: Given
    on_their_way: Callable[[], Array]
    failures: Failures
    feasibility: Callable[[], Feasibility | None]
    counted: bool = True

    @property
    def pending(self) -> Array:
        """Points handed out and not told yet, shape (k, d)."""
        return self.on_their_way()

    def band(self) -> Band:
        """The band given everything that was told."""
        return self.given()

    def hallucinated(self) -> Band:
        """The band given everything that was told, narrower where points are on their way.

        Where a setting failed because it is bad, it is as low as anywhere.
        """
        pending, band = self.pending, self.band()
        if len(pending):
            band = band.fantasise(pending, None)
        bad = self.failures.of("bad")
        return band.fantasise(bad, None, self.floor()) if len(bad) else band

    def floor(self) -> float:
        """The lowest posterior mean at an input whose result is believed; the prior's if none."""
        posterior, x = self.band().posterior, self.observations.x
        believed = posterior.trust(self.observations) >= 0.5
        if not believed.any():
            return posterior.prior.mean
        return float(posterior.predict(x[believed])[0].min())

    def one_by_one(self, band: Band, n: int, pick: Callable[[Band], Choice]) -> list[Choice]:
        """``n`` choices by ``pick``, each from a band that is narrower at those before it."""
        choices = [pick(band)]
        while len(choices) < n:
            last = choices[-1]
            band = band.fantasise(last.x[None], None if last.arm is None else np.array([last.arm]))
            choices.append(pick(band))
        return choices

    def maximise(self, surface: Surface, logarithmic: bool = False) -> Peak:
        """The highest point of ``surface`` among those that may be chosen.

        Its height is in units of f, or the logarithm of a gain: that decides how a point counts
        that may give no result.
        """
        feasibility = self.feasibility()
        if feasibility is not None:
            surface = Feasible(surface, feasibility, None if logarithmic else self.floor())
        return self.among.maximise(surface, self.rng, self.observations.x)


class Policy(ABC):
    """Where to look next. Frozen: what it must remember is a state that the learner keeps for it.

    Attributes
    ----------
    needs_finite:
        Whether it works on finite domains only. The learner then refuses a ``Box``.
    plans:
        Whether it plans what is played, its first points included: a design before it would only be
        in its way, and it may have to wait for results.
    """

    needs_finite: bool = False
    plans: bool = False

    @abstractmethod
    def start(self, domain: Domain) -> Any:
        """The state before the first question."""

    @abstractmethod
    def choose(self, view: View, state: Any, n: int) -> tuple[list[Choice], Any]:
        """At most ``n`` choices, and the state after handing them out.

        None at all means: wait until something pending is told. It must not be the answer while
        nothing is pending.
        """

    def settle(self, view: View, state: Any, band: Band, tried: Array) -> tuple[int, Notes]:
        """Which of the points ``tried`` (k, d) to settle on, and what to say about it.

        The one whose lower bound is best, unless the policy is after something else.
        """
        lower, _ = band.bounds(tried)
        return int(np.argmax(lower)), {}

    def band(self, view: View, state: Any) -> Band:
        """The band with the width that the confidence says, as its guarantee has it."""
        return view.band()

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


def choices_at(domain: Domain, points: Array, notes: Notes | None = None) -> list[Choice]:
    """The choices of points (k, d) of a domain, with the same notes."""
    arms = domain.locate(points)
    return [
        Choice(x.copy(), None if arms is None else int(arms[i]), notes or {})
        for i, x in enumerate(points)
    ]
