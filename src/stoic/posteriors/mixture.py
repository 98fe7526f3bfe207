"""Mixture of posteriors over competing outlier hypotheses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from stoic.data import Array, Integers, Observations
from stoic.posteriors.base import FittedDefence, Posterior
from stoic.posteriors.prior import Prior


@dataclass(frozen=True, eq=False, slots=True)
class MixturePosterior:
    """Mixture of posteriors: the mean of the likeliest, with the uncertainty of all of them.

    One of them is right, the k-th with probability w_k [Hoeting1999]_. With means m_k and
    deviations s_k the mean is m_0, that of the likeliest, and the variance
    sum_k w_k (s_k^2 + (m_k - m_0)^2), the expected square of its error. An average of the means
    would be off under both of two hypotheses that are about as likely.

    Attributes
    ----------
    parts:
        Posteriors given the same observations, the likeliest first.
    weights:
        Their probabilities, shape (k,), with the sum 1.
    fitted_defence:
        As in every posterior.

    Notes
    -----
    All but mean and deviation is that of the likeliest. A fantasy narrows each part and leaves
    their differences, which only observations resolve.
    """

    parts: tuple[Posterior, ...]
    weights: Array
    fitted_defence: FittedDefence

    @property
    def prior(self) -> Prior:
        """That of the likeliest."""
        return self.parts[0].prior

    @property
    def n(self) -> int:
        """As in every posterior."""
        return self.parts[0].n

    @property
    def distrusted(self) -> int:
        """By the likeliest."""
        return self.parts[0].distrusted

    @property
    def information(self) -> float:
        """Of the likeliest."""
        return self.parts[0].information

    @property
    def max_variance(self) -> float:
        """Of the likeliest."""
        return self.parts[0].max_variance

    def copy(self) -> Self:
        return replace(self, parts=tuple(part.copy() for part in self.parts))

    def trust(self, observations: Observations) -> Array:
        return self.fitted_defence(observations, self.prior).trust

    def predict(self, x: Array) -> tuple[Array, Array]:
        return self.together([part.predict(x) for part in self.parts])

    def together(self, predicted: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Mean and standard deviation of the mixture, from those of each part, all (m,)."""
        means, stds = (np.array(of) for of in zip(*predicted, strict=True))  # (k, m) each
        mean = self._centre(means)
        unit, apart, stds = _in_units(means - mean, stds)
        return mean, unit * np.sqrt(self.weights @ (stds**2 + apart**2))

    def _centre(self, of: Array) -> Array:
        """Return the mean, or its slopes, from those of each part (k, ...)."""
        likeliest: Array = of[0]
        return likeliest

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        predicted = [part.predict_with_gradient(x) for part in self.parts]
        # (k, m), and slopes (k, m, d)
        means, stds, slopes, std_slopes = (np.array(of) for of in zip(*predicted, strict=True))
        mean, slope = self._centre(means), self._centre(slopes)
        unit, apart, stds = _in_units(means - mean, stds)
        std = np.sqrt(self.weights @ (stds**2 + apart**2))
        # Half of the variance's slope: sum_k w_k (s_k s_k' + (m_k - m_0) (m_k' - m_0'))
        pulls = stds[..., None] * std_slopes + apart[..., None] * (slopes - slope)
        half = np.tensordot(self.weights, pulls, 1)
        # `half` and `std` are both in units, which cancel
        uncertain = std[:, None] > 0.0
        std_slope = np.divide(half, std[:, None], out=np.zeros_like(half), where=uncertain)
        return mean, unit * std, slope, std_slope

    def fantasise(self, x: Array, arms: Integers | None = None, at_most: float = math.inf) -> Self:
        return replace(self, parts=tuple(part.fantasise(x, arms, at_most) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Averaged(MixturePosterior):
    """Mixture of posteriors that differ in their hyperparameters.

    The mean is sum_k w_k m_k, and the deviation that of the mixture, times ``widening``.
    """

    widening: float = 1.0

    def together(self, predicted: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        mean, std = super().together(predicted)
        return mean, self.widening * std

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        mean, std, slope, std_slope = super().predict_with_gradient(x)
        return mean, self.widening * std, slope, self.widening * std_slope

    def _centre(self, of: Array) -> Array:
        average: Array = np.tensordot(self.weights, of, 1)
        return average


def _in_units(apart: Array, stds: Array) -> tuple[Array, Array, Array]:
    """Return a unit for each point (m,), and both (k, m) in it: squares of 1e300 overflow.

    It is a power of two, so that nothing else is rounded.
    """
    _, exponent = np.frexp(np.maximum(np.abs(apart).max(axis=0), stds.max(axis=0)))
    # 2^1024 is infinite, and so is 1 over the smallest numbers
    unit = np.ldexp(1.0, np.clip(exponent, -1000, 1000))
    return unit, apart / unit, stds / unit
