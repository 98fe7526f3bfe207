"""An adversary is an attack, which says what should be told, and a budget, which says how often.

Attacks are pure: they neither count nor remember. What has been spent is counted in one place, the
environment, and every wish of every attack passes through ``Budget.allow`` there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from stoic.adversaries.budgets import Budget, Unlimited
from stoic.data import Array


class Attack(Protocol):
    """What an adversary would like to be told instead of the truth."""

    def rewrite(
        self, x: Array, value: float, observed: float, t: int, rng: np.random.Generator
    ) -> float:
        """The value to tell; ``observed`` itself where the attack leaves the round alone.

        Parameters
        ----------
        x:
            The executed point, shape (d,); not to be altered.
        value:
            f(x), noiseless: an adversary may be clairvoyant.
        observed:
            What would be told without the adversary.
        t:
            The number of the round, from 1. Clean initial points are not rounds.
        rng:
            The adversary's own stream, separate from the noise.
        """


@dataclass(frozen=True, slots=True)
class NoAttack:
    """The neutral attack: what is observed is told."""

    def rewrite(
        self, x: Array, value: float, observed: float, t: int, rng: np.random.Generator
    ) -> float:
        """``observed``."""
        return observed


@dataclass(frozen=True, slots=True)
class Adversary:
    """An attack under a budget; ``Adversary()`` is no adversary at all."""

    attack: Attack = field(default_factory=NoAttack)
    budget: Budget = field(default_factory=Unlimited)


def same(told: float, observed: float) -> bool:
    """Whether two told values are the same; nan is the same as nan."""
    return told == observed or (math.isnan(told) and math.isnan(observed))
