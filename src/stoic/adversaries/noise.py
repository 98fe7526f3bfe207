"""Noise: what stands between f(x) and the observation when nobody lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stoic.data import Array


class Noise(Protocol):
    """A distribution, drawn ahead of the rounds so that every method meets the same draws."""

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        """One independent draw for each round, shape (rounds,).

        It may not depend on what is asked: round t has the same draw for every method.
        """

    def apply(self, value: float, draw: float) -> float:
        """The observation of f(x) = ``value`` in a round with this draw."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Additive N(0, sd^2); ``Gaussian(0.0)`` is no noise.

    Attributes
    ----------
    sd:
        Standard deviation in units of f, at least 0.
    """

    sd: float

    def __post_init__(self) -> None:
        if not 0 <= self.sd < np.inf:
            raise ValueError(f"A standard deviation is finite and at least 0, got {self.sd}.")

    def draw(self, rng: np.random.Generator, rounds: int) -> Array:
        """Normal draws, shape (rounds,)."""
        return rng.normal(0.0, self.sd, rounds)

    def apply(self, value: float, draw: float) -> float:
        """``value + draw``."""
        return value + draw
