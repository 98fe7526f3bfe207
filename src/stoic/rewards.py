"""Rewards of several learners, clipped to one span so that their means can be compared."""

from __future__ import annotations

import math

import numpy as np

from stoic.data import Array, Integers

_REACH = 3.0  # scales on either side of the location: the span that is estimated from results
_LARGEST, _FINEST = 1e300, 1e-9  # location and scale; the scale relative to the location
_FIRST = 10  # rewards: if none is in the span that was given, that is of something else
_RENEWAL = 1.25  # the span is estimated anew once there are so many times as many results


class Rewards:
    """Rewards clipped to a span, with the learner of each; all are kept, for the span may move.

    Parameters
    ----------
    learners:
        M.
    span:
        (low, high), or ``None`` for one that is yet to be estimated from results.

    Attributes
    ----------
    low, high:
        The span in force; (0, 1) until one is estimated.
    scale:
        The scale that it was estimated with, 1 for a given one.
    found_in:
        Number of results that it was estimated from.
    plays:
        Number of rewards of each learner, shape (M,).
    """

    def __init__(self, learners: int, span: tuple[float, float] | None) -> None:
        self.low, self.high = (0.0, 1.0) if span is None else map(float, span)
        self.scale, self.found_in = 1.0, 0
        self.plays: Integers = np.zeros(learners, dtype=np.intp)
        self._sums = [0.0] * learners  # of shares
        self._square = 0.0  # of all shares
        self._all: list[tuple[int, float]] = []  # learner and unclipped reward

    @property
    def width(self) -> float:
        """Width high - low of the span."""
        return self.high - self.low

    @property
    def means(self) -> Array:
        """Mean clipped reward of each learner, shape (M,); nan for one without rewards."""
        with np.errstate(invalid="ignore"):
            shares = np.array(self._sums) / self.plays
        return np.asarray(self.low + self.width * shares)

    def mean(self, learner: int) -> float:
        """Mean clipped reward of one learner, which has at least one."""
        return self.low + self.width * (self._sums[learner] / int(self.plays[learner]))

    @property
    def spread(self) -> float:
        """Twice the standard deviation of all clipped rewards, of which there is at least one."""
        count = len(self._all)
        variance = self._square / count - (sum(self._sums) / count) ** 2
        return 2.0 * self.width * math.sqrt(max(variance, 0.0))

    @property
    def missed(self) -> bool:
        """True once, when some were counted and no reward is in the span that was given."""
        if len(self._all) != _FIRST:
            return False
        known = [reward for _, reward in self._all if not math.isnan(reward)]
        return bool(known) and not any(self.low <= reward <= self.high for reward in known)

    def add(self, learner: int, reward: float) -> None:
        """Add a reward, nan for a failure."""
        self._all.append((learner, reward))
        self.plays[learner] += 1
        self._count(learner, reward)

    def outgrown(self, results: int) -> bool:
        """Return True if so many results are a quarter more than the span was estimated from."""
        return results >= _RENEWAL * self.found_in

    def move(self, location: float, scale: float, results: int) -> None:
        """Centre the span at the location of so many results, and count all rewards anew."""
        self.found_in = results
        if math.isnan(location) or math.isnan(scale):  # nothing but nan so far
            return
        # Not so far or near that its ends are infinite or the same.
        location = min(max(location, -_LARGEST), _LARGEST)
        self.scale = min(max(scale, _FINEST * abs(location), 1.0 / _LARGEST), _LARGEST)
        self.low, self.high = location - _REACH * self.scale, location + _REACH * self.scale
        self._sums, self._square = [0.0] * len(self.plays), 0.0
        for learner, reward in self._all:
            self._count(learner, reward)

    def _count(self, learner: int, reward: float) -> None:
        """Add a clipped reward, as a share in [0, 1] of the span: no square of it overflows."""
        clipped = self.low if math.isnan(reward) else min(max(reward, self.low), self.high)
        share = (clipped - self.low) / self.width
        self._sums[learner] += share
        self._square += share**2


def check_span(span: object) -> None:
    """Refuse anything but a range of rewards."""
    if not isinstance(span, tuple) or len(span) != 2 or not 0.0 < span[1] - span[0] < math.inf:
        raise ValueError(
            f"A span is (low, high) with low < high and a finite difference, or a Scale: got "
            f"{span!r}."
        )
