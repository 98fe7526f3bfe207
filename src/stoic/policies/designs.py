"""Experimental designs: the plays of an epoch, fixed before any of its results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from stoic.data import Booleans, Integers
from stoic.domains import Finite
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import as_observed
from stoic.posteriors.prior import Prior

# Relative to the largest variance: closer ones are tied, and ties go to the lowest row. Rounding
# then does not decide, so every machine makes the same plan.
_TIE = 1e-9


class Plan(NamedTuple):
    """Plays of an epoch.

    Attributes
    ----------
    arms:
        Distinct rows of the domain, in the order of play, shape (U,).
    plays:
        Number of plays of each, at least 1, shape (U,).
    """

    arms: Integers
    plays: Integers


class Design(Protocol):
    """Map from the prior and the active arms before an epoch to its plan."""

    def __call__(self, prior: Prior, domain: Finite, active: Booleans, epoch: int) -> Plan:
        """Plan epoch number ``epoch`` (from 0) over the ``active`` rows, shape (N,)."""


@dataclass(frozen=True, slots=True)
class RareSwitching:
    """Uncertainty sampling that switches rarely: lines 2 to 12 of Algorithm 1 of [Bogunovic2022]_.

    Epoch h selects l = ``first`` 2^h points, each where the standard deviation given the epoch's
    points before it was largest when last recomputed. It is recomputed once
    det(I + K / noise) has grown by more than ``growth`` since. Every selected arm is then played as
    often as it was selected, and at least ceil(l ``share``) times.

    With ``growth`` 1, ``share`` 0 and ``first`` 1 it is the uncertainty sampling of Algorithm 2 of
    [Bogunovic2021b]_.

    An arm that is selected k times in a row multiplies the determinant by 1 + k variance / noise,
    so that a run is one step: the selection costs O(U N) a *switch*, whatever l is.

    Parameters
    ----------
    growth:
        eta >= 1. 1 switches at every point: plain uncertainty sampling.
    share:
        psi >= 0, the truncation. 0 plays each arm as often as it was selected.
    first:
        Points of epoch 0.
    """

    growth: float = 2.0
    share: float = 0.5
    first: int = 2

    def __post_init__(self) -> None:
        if not (self.growth >= 1.0 and math.isfinite(self.growth)):
            raise ValueError(f"The growth between two switches is at least 1, got {self.growth!r}.")
        if not (self.share >= 0.0 and math.isfinite(self.share)):
            raise ValueError(f"The least share of an epoch is at least 0, got {self.share!r}.")
        if self.first < 1:
            raise ValueError(f"An epoch has at least one point, got first={self.first!r}.")

    def __call__(self, prior: Prior, domain: Finite, active: Booleans, epoch: int) -> Plan:
        length = left = self.first * 2**epoch  # l_h: lines 1 and 16
        selected: dict[int, int] = {}
        posterior = Arms(prior, as_observed, domain)  # line 2: every epoch starts from the prior
        while left:
            # Rounding of the updates may leave a variance just below 0
            variance = np.where(active, np.maximum(posterior.variance, 0.0), -np.inf)
            arm = int(np.argmax(variance >= variance.max() * (1.0 - _TIE)))  # line 4
            # Lines 6 to 9: all plays of the arm up to the next switch
            run = self._run(variance.item(arm) / prior.noise, left)
            # k plays are one with noise / k, and a variance does not depend on the value
            posterior.observe(arm, prior.mean, prior.noise / run)
            selected[arm] = selected.get(arm, 0) + run
            left -= run
        # Line 12: ceil(l max(xi, psi)), where l xi is a whole number
        least = math.ceil(length * self.share)
        plays = np.maximum(np.array(list(selected.values()), dtype=np.intp), least)
        return Plan(np.array(list(selected), dtype=np.intp), plays)

    def _run(self, ratio: float, left: int) -> int:
        """Return the first k <= ``left`` with 1 + k ``ratio`` > growth, else ``left``."""
        if 1.0 + left * ratio <= self.growth:  # also for a ratio of 0
            return left
        k = int((self.growth - 1.0) / ratio) + 1  # but for rounding
        # Line 6 has >: a determinant that is exactly ``growth`` times as large does not switch
        while k > 1 and 1.0 + (k - 1) * ratio > self.growth:
            k -= 1
        while 1.0 + k * ratio <= self.growth:
            k += 1
        return min(left, k)
