"""Interface of a confidence width."""

from __future__ import annotations

from typing import Protocol

from stoic.posteriors.base import Posterior


class Confidence(Protocol):
    """``Posterior, t -> width``: the multiplier beta_t^(1/2) of the posterior std."""

    def __call__(self, posterior: Posterior, t: int) -> float:
        """Width in round ``t`` (from 1), after t - 1 observations; positive."""
