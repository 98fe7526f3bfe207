"""Interface of a confidence width, and the band that it gives."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from stoic.data import Array, Integers
from stoic.posteriors.base import Posterior


class Confidence(Protocol):
    """``Posterior, t -> width``: the multiplier beta_t^(1/2) of the posterior std."""

    def __call__(self, posterior: Posterior, t: int) -> float:
        """Width in round ``t`` (from 1), after t - 1 observations; finite, at least 0."""


def check_width(confidence: object) -> None:
    """Refuse what is no width, such as a number or a class."""
    if not callable(confidence) or isinstance(confidence, type):
        raise TypeError(
            "A confidence is one of stoic.confidence, such as Fixed(2.0) for bands of two standard "
            f"deviations, got {confidence!r}."
        )


class Band(NamedTuple):
    """Confidence band of f: mean +- width * std."""

    posterior: Posterior
    width: float

    def bounds(self, x: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of f at ``x`` (m, d), both (m,)."""
        mean, std = self.posterior.predict(x)
        reach = self.width * std
        return mean - reach, mean + reach

    def fantasise(self, x: Array, arms: Integers | None, at_most: float = math.inf) -> Band:
        """Band with points ``x`` (k, d) pending: a smaller std there, the same mean."""
        return Band(self.posterior.fantasise(x, arms, at_most), self.width)

    def without_gain(self, places: Array) -> Band:
        """Band that expects the prior mean at ``places`` (k, d), at most."""
        if not len(places):
            return self
        return self.fantasise(places, None, self.posterior.prior.mean)
