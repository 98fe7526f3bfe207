"""Widths under a corruption budget C (sum of absolute changes), and widths of epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stoic.confidence.base import Confidence
from stoic.confidence.bayesian import check_arms, check_delta, share_of
from stoic.confidence.frequentist import check_noise_sd, check_norm
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Posterior


@dataclass(frozen=True, slots=True)
class CorruptionBudget:
    """base + weight C / sqrt(noise): the width of RGP-UCB [Bogunovic2020]_ (Lemma 2).

    Parameters
    ----------
    base:
        beta_t, the width without corruptions.
    budget:
        C, in units of f.
    weight:
        1 in theory; [Bogunovic2022]_ ran b = 0.1.

    Guarantee
    ---------
    With ``weight`` 1, the prior's noise for every result (``Trust(reported_noise=False)``) and at
    most C of corruption in all, f is in the band whenever it is in the band of the base width
    around the mean of the clean results. Otherwise none.
    """

    base: Confidence
    budget: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        _check_budget(self.budget, self.weight)

    def __call__(self, posterior: Posterior, t: int) -> float:
        enlargement = self.weight * self.budget / math.sqrt(posterior.prior.noise)
        return self.base(posterior, t) + enlargement


Averaging = Literal["theory", "tight", "practice"]


@dataclass(frozen=True, slots=True)
class EpochBudget:
    """Width of an epoch of RGP-PE, which plays each of its arms many times [Bogunovic2022]_.

    With u results, at least u_min of every arm that was played:

    - ``"theory"``: base + C sqrt(u) / (u_min min(noise, sqrt(noise))), Lemma 2; line 15 of
      Algorithm 1 has l psi in the place of u_min, which is the same but for rounding up where an
      arm of the epoch was truncated, and less where none was;
    - ``"tight"``: base + C / sqrt(u_min noise), see below;
    - ``"practice"``: base + weight C / sqrt(u), section 4.

    Parameters
    ----------
    base:
        beta_h, the width without corruptions.
    budget:
        C, in units of f.
    form:
        One of the three.
    weight:
        b of ``"practice"``.

    Guarantee
    ---------
    ``"theory"`` and ``"tight"``: with the prior's noise for every result and at most C of
    corruption in the epoch, f is in the band whenever it is in the band of the base width
    around the mean of the clean results.
    ``"practice"``: none.

    Notes
    -----
    Lemma 2 has the noise and not its square root, which is not enough where the noise is above 1:
    one arm of variance 1 that is played 10 times with noise 10 is moved by up to 0.071 C std, and
    the lemma allows 0.032 C. Its proof gives sqrt(noise). ``"theory"`` takes the larger of the two.

    ``"tight"`` is ours. Corruption moves the mean at x by a'c, where a = (K + noise I)^-1 k(x) and
    c has, in each of the u_x rows of an arm, the mean C_x / u_x of its corruptions. By
    Cauchy-Schwarz that is at most ||a|| ||c||. The posterior variance is the minimum over a of
    k(x, x) - 2 a'k(x) + a'(K + noise I)a, which is a squared norm plus noise ||a||^2, so
    ||a|| <= std / sqrt(noise); and ||c||^2 =
    sum C_x^2 / u_x <= C^2 / u_min. The lemma bounds each c by C / u_min instead, which is larger
    by sqrt(u / u_min).
    """

    base: Confidence
    budget: float
    form: Averaging = "theory"
    weight: float = 0.1

    def __post_init__(self) -> None:
        _check_budget(self.budget, self.weight)
        if self.form not in ("theory", "tight", "practice"):
            raise ValueError(f"form is 'theory', 'tight' or 'practice', got {self.form!r}.")

    def __call__(self, posterior: Posterior, t: int) -> float:
        base, u = self.base(posterior, t), posterior.n
        if not u:  # nothing to corrupt yet
            return base
        if self.form == "practice":
            return base + self.weight * self.budget / math.sqrt(u)
        fewest = _fewest_plays(posterior)
        noise = posterior.prior.noise
        if self.form == "tight":
            return base + self.budget / math.sqrt(fewest * noise)
        return base + self.budget * math.sqrt(u) / (fewest * min(noise, math.sqrt(noise)))


@dataclass(frozen=True, slots=True)
class NonAdaptive:
    """B + R / sqrt(noise) sqrt(2 ln(2 N / delta_t)), delta_t = 6 delta / (pi t)^2: Corollary 5.

    For epochs whose points are chosen before any of their results is observed [Vakili2021]_;
    t = h + 1 counts them [Bogunovic2022]_.

    Parameters
    ----------
    norm:
        B >= ||f||_k.
    arms:
        N, points of the domain.
    noise_sd:
        R, the sub-Gaussian constant of the noise; ``None`` takes the prior's, so that R^2 = noise.
    delta:
        Failure probability of all epochs together.

    Guarantee
    ---------
    If ||f||_k <= B and the noise is R-sub-Gaussian, f is in the band at the end of all epochs, on
    all points, with probability 1 - delta. The factor 2 in the logarithm is not in the text: its
    source bounds each side with probability 1 - delta.
    """

    norm: float
    arms: int
    noise_sd: float | None = None
    delta: float = 0.1

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_norm(self.norm)
        check_arms(self.arms)
        check_noise_sd(self.noise_sd)

    def __call__(self, posterior: Posterior, t: int) -> float:
        ratio = 1.0
        if self.noise_sd is not None:
            ratio = self.noise_sd / math.sqrt(posterior.prior.noise)
        logarithm = math.log(2.0 * self.arms / share_of(self.delta, t))
        return self.norm + ratio * math.sqrt(2.0 * logarithm)


def _check_budget(budget: float, weight: float) -> None:
    if not isinstance(budget, int | float | np.number) or not 0.0 <= budget < math.inf:
        raise ValueError(f"A total corruption is finite and at least 0, got {budget!r}.")
    if not 0.0 <= weight < math.inf:
        raise ValueError(f"A weight is finite and at least 0, got {weight!r}.")


def _fewest_plays(posterior: Posterior) -> float:
    """Smallest number of observations of a played arm, u_min; 1 if it is not known."""
    if not isinstance(posterior, Arms):
        return 1.0  # the widest band
    counts = posterior.counts
    # Rows that are not finite count in n alone: n if there are no others
    return float(np.min(counts[counts > 0], initial=posterior.n))
