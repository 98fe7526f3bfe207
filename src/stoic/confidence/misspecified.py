"""Width for a misspecified f: within eps of a function in the kernel's RKHS."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.confidence.base import Confidence
from stoic.posteriors.base import Posterior


@dataclass(frozen=True, slots=True)
class Misspecified:
    """base + weight eps sqrt(n) / sqrt(noise): EC-GP-UCB, eq. (15) of [Bogunovic2021b]_.

    n counts the observations of the posterior, t - 1 in the text.

    Parameters
    ----------
    base:
        beta_t, the width for a function of the kernel's space.
    error:
        eps, in units of f: some function for which the base width holds is within eps of f at all
        points.
    weight:
        1 in theory.

    Guarantee
    ---------
    With ``weight`` 1 and at least the prior's noise for every result: whenever the base width holds
    for that function around the mean of its own results, it holds around the mean of the results of
    f, enlarged like this (Lemma 2), and f is in the band widened by eps on either side. Otherwise
    none.

    Notes
    -----
    The two means differ at x by a'm, where a = (K + noise I)^-1 k(x) and each |m_i| <= eps. By
    Cauchy-Schwarz that is at most ||a|| eps sqrt(n), and ||a|| <= std / sqrt(noise) since the
    posterior variance is a square plus noise ||a||^2.
    """

    base: Confidence
    error: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.error < math.inf:
            raise ValueError(f"An error of the model is finite and at least 0, got {self.error!r}.")
        if not 0.0 <= self.weight < math.inf:
            raise ValueError(f"A weight is finite and at least 0, got {self.weight!r}.")

    def __call__(self, posterior: Posterior, t: int) -> float:
        enlargement = self.weight * self.error * math.sqrt(posterior.n / posterior.prior.noise)
        return self.base(posterior, t) + enlargement
