"""Robust conjugate Gaussian processes: plateau-IMQ weights [Altamirano2024]_, [Ezzerg2026]_.

With a centre g, a half-width L and a shape c, an observation y has z = max(|y - g| - L, 0) and the
weight w = (sigma / sqrt 2) (1 + z^2 / c^2)^(-1/2), eq. (8). The generalised posterior is that of an
ordinary Gaussian process with row noise sigma^2 J and targets y - m, eqs. (5)-(6), where

    J = sigma^2 / (2 w^2) = 1 + z^2 / c^2,
    m = sigma^2 d log(w^2) / dy = -2 sigma^2 sign(y - g) z / (c^2 + z^2).

So it is a defence. Here ``trust`` is 1 / J, the share of its precision that a row keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from stoic.data import Array, Observations, Targets
from stoic.defences.base import Defence
from stoic.domains import Domain
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad

Unit = Literal["value", "noise"]

# A row that keeps less of its precision than this is left out: it would move the posterior mean by
# less than 1e-4 k c / sigma^2 anyway (k: prior variance), and infinities need no case of their own.
NEGLIGIBLE = 1e-8


@dataclass(frozen=True, eq=False)
class Plateau(Defence):
    """Plateau-IMQ reweighting about a fixed centre: FC-RCGP with given numbers.

    Parameters
    ----------
    half_width:
        L >= 0, in units of f: residuals up to L are trusted fully. Like the two numbers below, one
        for all, or one per observation (shape (n,)).
    shape:
        c > 0: how quickly trust decays beyond the plateau.
    centre:
        g, in units of f.
    unit:
        Unit of ``shape``: that of f (``"value"``), or the standard deviation of the noise
        (``"noise"``), in which case it follows the noise when that is fitted.
    negligible:
        Rows whose trust falls below this are left out of the solve; 0 keeps all finite ones.

    Guarantee
    ---------
    The influence of one observation is bounded: |w (y - m - mu)| <= C_1 for every y
    ([Ezzerg2026]_, appendix G, see :func:`stoic.confidence.enlarged.influence`), and it vanishes as
    |y| grows. While all residuals are inside the plateau the targets are the observations, bit for
    bit. Leaving out rows of negligible trust is ours.
    """

    half_width: float | Array
    shape: float | Array
    centre: float | Array = 0.0
    unit: Unit = "value"
    negligible: float = NEGLIGIBLE

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.half_width) >= 0.0):
            raise ValueError(f"A plateau needs a half-width >= 0, got {self.half_width!r}.")
        if not np.all((np.asarray(self.shape) > 0.0) & np.isfinite(self.shape)):
            raise ValueError(f"A plateau needs a finite shape > 0, got {self.shape!r}.")
        if self.unit not in ("value", "noise"):
            raise ValueError(f"The unit of a shape is 'value' or 'noise', got {self.unit!r}.")

    @property
    def plateau(self) -> Plateau:
        """Self, for confidence widths that depend on the plateau."""
        return self

    def _excess(self, observations: Observations) -> Array:
        """sign(y - g) z, shape (n,); nan where nothing was observed."""
        with np.errstate(invalid="ignore", over="ignore"):
            residual = observations.observed - _of_rows(self.centre, observations)
            beyond = np.abs(residual) - _of_rows(self.half_width, observations)
            return np.sign(residual) * np.maximum(beyond, 0.0)

    def _reweighted(self, observations: Observations, noise: Array) -> tuple[Array, Array, Array]:
        """sign(y - g) z, J and the shift m of each row; all (n,), nan or infinite where y is."""
        excess = self._excess(observations)
        c = _of_rows(self.shape, observations) * np.ones_like(noise)
        if self.unit == "noise":
            c = c * np.sqrt(noise)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            ratio = excess / c
            J = 1.0 + ratio**2
            return excess, J, -2.0 * noise * ratio / (c * J)  # -2 sigma^2 excess / (c^2 + z^2)

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        noise = observations.own_noise(prior.noise)
        excess, J, shift = self._reweighted(observations, noise)
        with np.errstate(invalid="ignore", over="ignore"):
            trust = 1.0 / J
            # An infinite J has a trust of 0, which is not below a `negligible` of 0
            left_out = ~(trust >= self.negligible) | ~np.isfinite(J)
            values = np.where(excess == 0.0, observations.observed, observations.observed - shift)
            return Targets(
                np.where(left_out, prior.mean, values),
                np.where(left_out, np.inf, noise * J),
                np.where(left_out, 0.0, trust),
            )

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        noise = observations.own_noise(prior.noise)
        excess, J, shift = self._reweighted(observations, noise)
        with np.errstate(invalid="ignore", over="ignore"):
            if self.unit == "noise":  # J = 1 + z^2 / (shape^2 sigma^2): row noise sigma^2 + const
                d_values, d_noise = -shift * (1.0 - 1.0 / J), noise
            else:
                d_values, d_noise = -shift, noise * J  # both proportional to sigma^2
        fixed = ~np.isnan(observations.noise) | ~np.isfinite(excess)
        return np.where(fixed, 0.0, d_values), np.where(fixed, 0.0, d_noise)


def _of_rows(number: float | Array, observations: Observations) -> float | Array:
    """Return ``number``, or its entries for these rows."""
    if isinstance(number, np.ndarray):
        return number[observations.start : observations.start + len(observations)]
    return number


@dataclass(frozen=True, eq=False)
class AdaptivePlateau(Defence):
    """Plateau whose centre, half-width and shape are robust statistics of the observations.

    The centre is the location of the observations and the unit of the half-width their scale s; by
    default the median and 1.4826 median |y - median|.

    Parameters
    ----------
    half_width:
        L in units of s, or ``"quantile"``: the 95 % quantile of |y - median|, at least 0.1 s.
    small_sample:
        If true, multiply a numerical half-width by :func:`small_sample_factor`.
    shape:
        c, in units of ``unit``.
    unit:
        ``"scale"``: s; ``"noise"``: the standard deviation of the noise.
    scale:
        ``median_and_mad``, or ``mean_and_sd``, which one outlier breaks down.
    negligible:
        As in :class:`Plateau`.

    Guarantee
    ---------
    That of :class:`Plateau` for the fitted numbers, as long as outliers have less than half of the
    weight (the breakdown point of the median; with a scale in space, neighbours share theirs). The
    theorems of [Ezzerg2026]_ assume numbers that are given in advance.
    """

    half_width: float | Literal["quantile"] = 3.0
    shape: float = 1.0
    unit: Literal["scale", "noise"] = "scale"
    scale: Scale = median_and_mad
    small_sample: bool = True
    negligible: float = NEGLIGIBLE
    revises = True

    def __post_init__(self) -> None:
        # Checks the numbers
        Plateau(0.0 if self.half_width == "quantile" else self.half_width, self.shape)

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Plateau:
        centre, scale = self.scale(domain, observations)
        if self.half_width == "quantile":
            finite = observations.observed[np.isfinite(observations.observed)]
            residuals = np.abs(finite - np.median(finite)) if len(finite) else np.zeros(1)
            # Appendix I of [Ezzerg2026]_, which has no least half-width
            half_width = max(float(np.quantile(residuals, 0.95)), 0.1 * scale)
        else:
            half_width = self.half_width * scale
            if self.small_sample:
                half_width *= small_sample_factor(observations)
        if self.unit == "noise":
            return Plateau(half_width, self.shape, centre, "noise", self.negligible)
        return Plateau(half_width, self.shape * scale, centre, "value", self.negligible)


def small_sample_factor(observations: Observations) -> float:
    """Factor by which a plateau must be wider while its own unit, the scale, is uncertain.

    The quantile of Student's t with 0.37 (n - 1) degrees of freedom beyond which there is as much
    probability as beyond 3 standard deviations of a normal distribution, over 3; 0.37 is the
    efficiency of the median absolute deviation. 79 for n <= 3, 3.8 for 8, 1.3 for 30.
    """
    n = int(np.count_nonzero(np.isfinite(observations.observed)))
    freedom = max(0.37 * (n - 1), 1.0)
    quantile = float(special.stdtrit(freedom, float(special.ndtr(-3.0))))
    return quantile / -3.0
