"""The seam of a confidence width."""

from __future__ import annotations

from typing import Protocol

from stoic.posteriors.base import Posterior


class Confidence(Protocol):
    """``Posterior, t -> width``: the number that multiplies the posterior standard deviation."""

    def __call__(self, posterior: Posterior, t: int) -> float:
        """The width in round ``t`` (from 1), after t - 1 observations; positive."""
