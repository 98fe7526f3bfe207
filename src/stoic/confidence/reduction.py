"""Width of the linear reduction under a corruption budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from stoic.confidence.bayesian import check_delta, share_of
from stoic.posteriors.base import Posterior


@dataclass(frozen=True, slots=True)
class ReducedBudget:
    """Half of the right-hand side of (109) of [Bogunovic2022]_, plus the basis error.

    For :class:`~stoic.models.linear.LeastSquares`, whose deviation is 1, so this is in
    units of f. In epoch t = h + 1, of m = m_0 2^h plays before rounding up,

        Delta + 2 Delta sqrt(D (1 + alpha m_0)) + 2 sigma sqrt(D / m ln(1 / delta_h))
              + 2 C / (alpha m) sqrt(D (1 + alpha m_0)).

    Parameters
    ----------
    dim:
        D, features of the basis.
    support:
        m_0, the largest number of arms of a design.
    share:
        alpha: every arm of an epoch is played at least alpha m times.
    error:
        Delta, the largest approximation error of the basis.
    budget:
        C.
    arms:
        |X|, for the union bound.
    noise_sd:
        sigma, the sub-Gaussian constant of the noise; 1 in the text.
    delta:
        Failure probability of all epochs together: delta_h = 6 delta / (pi^2 t^2 2 |X|).
    form:
        ``"theory"`` is (109). ``"tight"`` has C sqrt(2 D / alpha) / m as its last term, which
        follows as in :class:`~stoic.confidence.corruption.EpochBudget` and is less by the factor
        sqrt(2 (m_0 + 1 / alpha)).

    Guarantee
    ---------
    If |f - <theta, x~>| <= Delta, an epoch is played by a design with leverages up to 2 D on at
    most m_0 arms, each at least alpha m times, the noise is sigma-sub-Gaussian and the corruptions
    of the epoch add up to at most C, then f is in the band in all epochs, on all arms in the span
    of those played, with probability 1 - delta: (112). The text leaves out the first Delta; its
    rule keeps the best arm of the linear model, and with Delta also the best arm of f.
    """

    dim: int
    support: int
    share: float
    error: float
    budget: float
    arms: int
    noise_sd: float = 1.0
    delta: float = 0.1
    form: Literal["theory", "tight"] = "theory"

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.dim < 1 or self.support < 1 or self.arms < 1:
            raise ValueError(
                "ReducedBudget needs at least one feature, one arm and a support of one, got "
                f"dim={self.dim}, arms={self.arms}, support={self.support}."
            )
        if self.form not in ("theory", "tight"):
            raise ValueError(f"form is 'theory' or 'tight', got {self.form!r}.")
        if not 0.0 < self.share < 1.0:
            raise ValueError(f"The least share of an arm is in (0, 1), got {self.share!r}.")
        if not (self.error >= 0.0 and self.noise_sd >= 0.0 and self.budget >= 0.0):
            raise ValueError(
                "ReducedBudget needs error >= 0, budget >= 0 and noise_sd >= 0, got "
                f"error={self.error!r}, budget={self.budget!r}, noise_sd={self.noise_sd!r}."
            )

    def __call__(self, posterior: Posterior, t: int) -> float:
        # Capped at 1,000 epochs, so that 2^t is finite: the terms in m are negligible by then.
        m = self.support * 2.0 ** min(t - 1, 1000)
        delta = share_of(self.delta, t) / (2.0 * self.arms)
        spread = math.sqrt(self.dim * (1.0 + self.share * self.support))
        noise = 2.0 * self.noise_sd * math.sqrt(self.dim / m * math.log(1.0 / delta))
        if self.form == "tight":
            corruption = self.budget / m * math.sqrt(2.0 * self.dim / self.share)
        else:
            corruption = 2.0 * self.budget / (self.share * m) * spread
        return self.error * (1.0 + 2.0 * spread) + noise + corruption  # (112), and Delta
