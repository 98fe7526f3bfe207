"""An adversary is an attack, which corrupts an observation, and a budget, which limits how often.

Attacks are pure: they neither count nor remember. The environment alone counts what is spent, and
applies ``Budget.allow`` to the value that an attack wants.
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
    """Input of an attack: one evaluation, before the learner observes its result.

    Attributes
    ----------
    x:
        The executed point, shape (d,); not to be altered.
    arm:
        Its row number in a finite domain; ``None`` on a continuous one.
    value:
        f(x), noiseless: an adversary may be clairvoyant.
    observed:
        The observation without the adversary.
    t:
        Number of the round, from 1. Clean initial points are not rounds.
    rng:
        The adversary's random generator, separate from the noise.
    spent:
        Ledger of the corruptions so far; not to be altered.
    active:
        Rows of a finite domain that the learner has not ruled out, shape (N,); computed on demand.
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
    """Rule by which an adversary corrupts observations.

    Attributes
    ----------
    needs_finite:
        True if it works on finite domains only. The environment then refuses a ``Box``.
    """

    __slots__ = ()
    needs_finite: ClassVar[bool] = False

    @abstractmethod
    def rewrite(self, seen: Round) -> float:
        """Corrupt an observation; ``seen.observed`` itself where the attack leaves it alone."""


@dataclass(frozen=True, slots=True)
class NoAttack(Attack):
    """Neutral attack: the observation is unchanged."""

    def rewrite(self, seen: Round) -> float:
        return seen.observed


@dataclass(frozen=True, slots=True)
class Adversary:
    """An attack under a budget; ``Adversary()`` is no adversary at all.

    Attributes
    ----------
    attack:
        What is done to the results of a round, as far as the budget allows.
    budget:
        What a round may cost: a total, a number of rounds, or no limit.
    """

    attack: Attack = field(default_factory=NoAttack)
    budget: Budget = field(default_factory=Unlimited)

    def __post_init__(self) -> None:
        for part, needed in ((self.attack, "rewrite"), (self.budget, "exhausted")):
            if not hasattr(part, needed) or isinstance(part, type):
                raise TypeError(
                    "An adversary is made of an attack and a budget, as in "
                    f"Adversary(Replace(3.0), Frequency(5)), got {part!r}."
                )


def same(reported: float, observed: float) -> bool:
    """Compare two observed values; nan equals nan."""
    return reported == observed or (math.isnan(reported) and math.isnan(observed))
