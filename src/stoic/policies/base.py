"""Interface of a policy: from a confidence band of f to the next inputs to evaluate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stoic.confidence.base import Band
from stoic.data import DISTRUSTED, Array, Booleans, Choice, Failures, Observations
from stoic.domains import PLACE, SAME, TOLERANCE, Acquisition, Among, Domain, Finite, Peak, Random
from stoic.models.constraints import Constraints
from stoic.models.feasibility import Feasibility
from stoic.surrogate import Surrogate

Notes = Mapping[str, object]

_SURE = 0.8  # a probability of a result that counts as certain
# Of the logarithm of a gain, where an ascent ends. Of 841 searches in studies 2 % end more than
# 0.01 below the maximum, as many as with 1e-10, and nine in ten within 2e-7; where 150 results
# leave no gain but rounding they take half of the time.
LOG_TOLERANCE = 1e-7
_LEAST = 1e-300  # a probability whose logarithm is still a number


class Feasible(NamedTuple):
    """Acquisition function weighted by the probability of feasibility, down to a floor.

    floor + Q (height - floor), or height + ln Q for the logarithm of a gain, where Q is
    min(P / 0.8, 1) and P the probability of a result: if every percent of P counted, inputs far
    from the failures would win over better ones nearer to them, since a percent of height - floor
    is much.
    """

    surface: Acquisition
    feasibility: Feasibility | Constraints
    floor: float | None

    def __call__(self, x: Array) -> Array:
        return self._combined(self.surface(x), self.chance(self.feasibility(x)))

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        height, slope = self.surface.with_gradient(x)
        p, p_slope = self.feasibility.with_gradient(x)
        q, q_slope = self.chance(p), np.where(p < _SURE, 1.0 / _SURE, 0.0)[:, None] * p_slope
        combined = self._combined(height, q)
        if self.floor is None:
            return combined, slope + q_slope / q[:, None]  # d ln Q = dQ / Q
        return combined, q[:, None] * slope + q_slope * (height - self.floor)[:, None]

    @staticmethod
    def chance(p: Array) -> Array:
        """Return Q of a probability P."""
        return np.clip(p / _SURE, _LEAST, 1.0)

    def _combined(self, height: Array, q: Array) -> Array:
        if self.floor is None:
            return height + np.log(q)
        return self.floor + q * (height - self.floor)


class View(NamedTuple):
    """Input of a policy: the data, the part of the domain that is allowed, and the model.

    Attributes
    ----------
    domain:
        All inputs.
    among:
        The part of the domain that may be chosen this time; usually ``domain`` itself.
    observations:
        All observations so far.
    rng:
        The learner's random generator.
    surrogate:
        The models given the history, which compute on demand and keep what they computed.
    pending:
        Pending points: suggested and not yet observed, shape (k, d).
    failures:
        Inputs that failed, without an observation.
    owns_pending:
        True if the pending points are this policy's own suggestions, so that it may count them
        itself; false if the caller keeps account of them, for others too.
    reported:
        True for a report, whose constraints have their hyperparameters integrated out.
    asked:
        Number of choices since the last result or failure.
    """

    domain: Domain
    among: Domain | Among
    observations: Observations
    rng: Random
    surrogate: Surrogate
    pending: Array
    failures: Failures
    owns_pending: bool = True
    reported: bool = False
    asked: int = 0

    def band(self) -> Band:
        """Band given all observations."""
        return self.surrogate.band()

    def given(self, observations: Observations, t: int | None = None) -> Band:
        """Band given these observations alone.

        ``t`` is the round that the width is computed for, if a policy counts in epochs; by default
        one more than the number of observations.
        """
        return self.surrogate.band(observations, t)

    def feasibility(self) -> Feasibility | None:
        """Probability of a result; ``None`` as long as no input caused a failure."""
        return self.surrogate.feasibility()

    def constraints(self) -> Constraints | None:
        """Probability that all constraints hold; ``None`` if none was observed."""
        return self.surrogate.constraints(self.reported)

    def hallucinated(self, band: Band | None = None) -> Band:
        """Return a band, by default given all, with a smaller std at pending points (hallucinated).

        And where a result is censored: above its bound a normal distribution has a tail that the
        exact posterior has not.
        """
        pending, band = self.pending, band or self.band()
        if self.observations.censored is not None:
            stopped = self.observations.x[self.observations.censored]
            pending = np.concatenate([pending, np.unique(stopped, axis=0)])
        return band.fantasise(pending, None) if len(pending) else band

    def queried(self) -> Array:
        """Return inputs of finite results and pending points, shape (m, d)."""
        finite = np.isfinite(self.observations.observed)
        return np.concatenate([self.observations.x[finite], self.pending])

    def floor(self) -> float:
        """Lowest posterior mean at a trusted observation; the prior mean if there is none."""
        posterior, x = self.band().posterior, self.observations.x
        trusted = posterior.trust(self.observations) >= DISTRUSTED
        if not trusted.any():
            return posterior.prior.mean
        return float(posterior.predict(x[trusted])[0].min())

    def one_by_one(self, band: Band, n: int, pick: Callable[[Band], Choice]) -> list[Choice]:
        """Pick ``n`` choices greedily, each from the band with those before it pending."""
        choices = [pick(band)]
        while len(choices) < n:
            last = choices[-1]
            # The width stays: it counts real observations only
            band = band.fantasise(last.x[None], None if last.arm is None else np.array([last.arm]))
            choices.append(pick(band))
        return choices

    def maximise(self, surface: Acquisition, logarithmic: bool = False) -> Peak:
        """Maximise the acquisition function ``surface`` over the points that may be chosen.

        Its values are in units of f, or ``logarithmic``, of a gain: that decides how it is weighted
        by the probability of a result.
        """
        # Nested, the two weights multiply: floor + Q1 Q2 (height - floor)
        for feasibility in (self.feasibility(), self.constraints()):
            if feasibility is not None:
                surface = Feasible(surface, feasibility, None if logarithmic else self.floor())
        tolerance = LOG_TOLERANCE if logarithmic else TOLERANCE
        return self.among.maximise(surface, self.rng, self.observations.x, tolerance)


class Policy(ABC):
    """Rule that chooses the next inputs. Frozen: the learner keeps its state.

    Attributes
    ----------
    needs_finite:
        True if it works on finite domains only. The learner then refuses a ``Box``.
    plans:
        True if it plans all of its plays, the first ones included: it needs no initial design, and
        may have to wait for results.
    constrained:
        True if it weighs constraints; the learner accepts their values only then.
    ordinal:
        True if it compares results with each other alone, and with no threshold: they may be
        modelled on another scale (:mod:`stoic.models.rescaling`).
    """

    needs_finite: bool = False
    plans: bool = False
    constrained: bool = False
    ordinal: bool = False

    @abstractmethod
    def start(self, domain: Domain) -> Any:
        """Return the state before the first query."""

    @abstractmethod
    def choose(self, view: View, state: Any, n: int) -> tuple[list[Choice], Any]:
        """At most ``n`` choices, and the state after them.

        An empty list means: wait for a pending result. It must not be returned while nothing is
        pending.
        """

    def recommend(self, view: View, state: Any, band: Band, tried: Array) -> tuple[int, Notes]:
        """Row of the point to recommend among ``tried`` (k, d), and notes about it.

        By default the point of the largest lower bound.
        """
        lower, _ = band.bounds(tried)
        return int(np.argmax(lower)), {}

    def band(self, view: View, state: Any) -> Band:
        """Band with the width of the confidence, for which its guarantee holds."""
        return view.band()

    def active(self, view: View, state: Any) -> Booleans:
        """Potential maximisers: rows of a finite domain that may still be optimal, shape (N,).

        By default the rows whose upper bound reaches the best lower bound.
        """
        assert isinstance(view.domain, Finite)
        lower, upper = view.band().bounds(view.domain.points)
        reaches: Booleans = upper >= lower.max()
        return reaches


@dataclass(frozen=True, eq=False)
class Wrapper(Policy):
    """Policy that makes some choices itself and leaves the others, and all else, to another.

    Parameters
    ----------
    then:
        The policy that follows.
    """

    then: Policy

    def __post_init__(self) -> None:
        for name in ("needs_finite", "plans", "constrained", "ordinal"):
            object.__setattr__(self, name, getattr(self.then, name))

    def theirs(self, state: Any) -> Any:
        """Return the state of ``then``, which by default is all that there is."""
        return state

    def start(self, domain: Domain) -> Any:
        return self.then.start(domain)

    def recommend(self, view: View, state: Any, band: Band, tried: Array) -> tuple[int, Notes]:
        return self.then.recommend(view, self.theirs(state), band, tried)

    def band(self, view: View, state: Any) -> Band:
        return self.then.band(view, self.theirs(state))

    def active(self, view: View, state: Any) -> Booleans:
        return self.then.active(view, self.theirs(state))


def apart(points: Array, x: Array, widths: Array) -> Array:
    """Chebyshev distances of points (k, d) from ``x`` (d,), in widths, shape (k,)."""
    distances: Array = (np.abs(points - x) / widths).max(axis=1, initial=0.0)
    return distances


def worth_a_repeat(
    view: View, x: Array, worth: Sequence[float], retries: int
) -> tuple[Array | None, float]:
    """Return which of ``x`` (k, d) is most worth a repeat, and its worth; ``None`` if none is.

    Only one that may be chosen and is not pending. One that gives no result there, since it fails
    or another input is executed, is queried again ``retries`` times, and once more for each result.
    """
    observations, widths = view.observations, view.domain.widths
    finite = np.isfinite(observations.observed)
    seen = observations.x[finite]
    lost = np.concatenate([observations.x[~finite], view.failures.x, view.surrogate.history.moved])
    inside = view.among.contains(x)
    for i in sorted(range(len(x)), key=lambda i: -worth[i]):
        waits = (apart(view.pending, x[i], widths) <= PLACE).any()
        if not inside[i] or waits or not 0.0 < worth[i] < math.inf:
            continue
        results, without = (np.sum(apart(each, x[i], widths) <= SAME) for each in (seen, lost))
        if without <= retries + results:
            return x[i], worth[i]
    return None, 0.0


def choice_of(peak: Peak, **notes: object) -> Choice:
    """Convert a peak to a choice."""
    return Choice(peak.x, peak.arm, notes) if notes else Choice(peak.x, peak.arm)


def choices_at(domain: Domain, points: Array, notes: Notes | None = None) -> list[Choice]:
    """Choices at points (k, d) of a domain, with the same notes."""
    arms = domain.locate(points)
    return [
        Choice(x.copy(), None if arms is None else int(arms[i]), notes or {})
        for i, x in enumerate(points)
    ]
