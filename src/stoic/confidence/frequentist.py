"""Widths for a fixed f of bounded RKHS norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.confidence.bayesian import check_delta, share_of
from stoic.posteriors.base import Posterior


def check_noise_sd(noise_sd: float | None) -> None:
    """Refuse a standard deviation that is not positive and finite; ``None`` is the prior's."""
    if noise_sd is not None and not 0.0 < noise_sd < math.inf:
        raise ValueError(f"A standard deviation of the noise is positive, got {noise_sd!r}.")


def check_norm(norm: float) -> None:
    """Refuse a bound that is not positive and finite."""
    if not 0.0 < norm < math.inf:
        raise ValueError(f"A bound on the norm is positive, got {norm!r}.")


def check_gain(gain: float | None) -> None:
    """Refuse a maximum information gain that is negative or not finite; ``None`` is none given."""
    if gain is not None and not 0.0 <= gain < math.inf:
        raise ValueError(f"A maximum information gain is a number >= 0, got {gain!r}.")


@dataclass(frozen=True, slots=True)
class SelfNormalised:
    """B + R / sqrt(noise) sqrt(ln det(I + K / noise) + 2 ln(1 / delta)) [AbbasiYadkori2013]_.

    ``noise`` is the prior's noise variance, here a regulariser; the log-determinant is twice the
    information gain of the observations, an attribute of the posterior.

    Parameters
    ----------
    norm:
        B >= ||f||_k.
    noise_sd:
        R, the sub-Gaussian constant of the noise; ``None`` takes the prior's, so that R^2 = noise.
    delta:
        Failure probability.
    restarts:
        If true, every t starts afresh: epoch t spends delta_t = 6 delta / (pi t)^2 of delta
        (Corollary 7 of [Bogunovic2022]_, with the information gain of the points that were played,
        which is at most the maximum in the text).

    Guarantee
    ---------
    If ||f||_k <= B and the noise is R-sub-Gaussian, f is in the band everywhere in all rounds
    with probability 1 - delta ([AbbasiYadkori2013]_, Theorem 3.11; [Chowdhury2017]_, Theorem 2),
    however the points were chosen. It needs the true kernel; fitted hyperparameters void it.
    """

    norm: float
    noise_sd: float | None = None
    delta: float = 0.1
    restarts: bool = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_norm(self.norm)
        check_noise_sd(self.noise_sd)

    def __call__(self, posterior: Posterior, t: int) -> float:
        ratio = 1.0
        if self.noise_sd is not None:
            ratio = self.noise_sd / math.sqrt(posterior.prior.noise)
        delta = share_of(self.delta, t) if self.restarts else self.delta
        inner = 2.0 * posterior.information + 2.0 * math.log(1.0 / delta)
        return self.norm + ratio * math.sqrt(inner)


@dataclass(frozen=True, slots=True)
class BoundedNoise:
    """sqrt(2 B_f + 300 gamma_t ln^3(t / delta)): Theorem 3 of [Srinivas2010]_.

    Parameters
    ----------
    squared_norm:
        B_f >= ||f||_k^2.
    delta:
        Failure probability.
    gain:
        gamma_T, the maximum information gain of all rounds together, for which
        :func:`stoic.posteriors.information_bounds` gives bounds. ``None`` takes the information
        gain of the observations so far.

    Guarantee
    ---------
    If ||f||_k^2 <= B_f and the noise is bounded by the prior's standard deviation, the regret bound
    of Theorem 3 holds with probability 1 - delta, with the *maximum* information gain, ``gain``.
    Only the gain of the chosen points is observable; behind a defence that raises the noise of
    rows it may be less than that of the clean rows. :class:`SelfNormalised` is much tighter.
    """

    squared_norm: float
    delta: float = 0.1
    gain: float | None = None

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_gain(self.gain)

    def at(self, t: int) -> float:
        """Width in round ``t``, for any posterior.

        Raises
        ------
        ValueError
            Without a ``gain``: future observations are not known in advance.
        """
        if self.gain is None:
            raise ValueError("BoundedNoise is not known in advance without gain=, gamma_T.")
        return self._given(self.gain, t)

    def _given(self, gain: float, t: int) -> float:
        logarithm = max(math.log(t / self.delta), 0.0)
        return math.sqrt(2.0 * self.squared_norm + 300.0 * gain * logarithm**3)

    def __call__(self, posterior: Posterior, t: int) -> float:
        return self._given(posterior.information if self.gain is None else self.gain, t)
