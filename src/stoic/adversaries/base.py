"""An adversary is an attack, which says what should be told, and a budget, which says how often.

Attacks are pure: they neither count nor remember. What has been spent is counted in one place, the
environment, and every wish of every attack passes through ``Budget.allow`` there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from stoic.adversaries.budgets import Budget, Ledger, Unlimited
from stoic.data import Array, Booleans


class Round(NamedTuple):
    """What an attack sees before a result is told.

    Attributes
    ----------
    x:
        The executed point, shape (d,); not to be altered.
    arm:
        Its row number in a finite domain; ``None`` on a continuous one.
    value:
        f(x), noiseless: an adversary may be clairvoyant.
    observed:
        What would be told without the adversary.
    t:
        The number of the round, from 1. Clean initial points are not rounds.
    rng:
        The adversary's own stream, separate from the noise.
    spent:
        What the adversary has spent before; not to be altered.
    active:
        Which rows of a finite domain the learner has not ruled out, shape (N,); computed when it is
        asked for.
    """

    x: Array
    arm: int | None
    value: float
    observed: float
    t: int
    rng: np.random.Generator
    spent: Ledger
    active: Callable[[], Booleans]


class Attack(ABC):
    """What an adversary would like to be told instead of the truth.

    Attributes
    ----------
    needs_finite:
        Whether it works on finite domains only. The environment then refuses a ``Box``.
    """

    __slots__ = ()
    needs_finite: ClassVar[bool] = False

    @abstractmethod
    def rewrite(self, seen: Round) -> float:
        """The value to tell; ``seen.observed`` itself where the attack leaves the round alone."""


@dataclass(frozen=True, slots=True)
class NoAttack(Attack):
    """The neutral attack: what is observed is told."""

    def rewrite(self, seen: Round) -> float:
        """``seen.observed``."""
        return seen.observed


@dataclass(frozen=True, slots=True)
class Adversary:
    """An attack under a budget; ``Adversary()`` is no adversary at all."""

    attack: Attack = field(default_factory=NoAttack)
    budget: Budget = field(default_factory=Unlimited)


def same(told: float, observed: float) -> bool:
    """Whether two told values are the same; nan is the same as nan."""
    return told == observed or (math.isnan(told) and math.isnan(observed))
