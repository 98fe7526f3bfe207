"""Truncation at a growing level, for noise with heavy tails [Chowdhury2019]_."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Observations, Targets
from stoic.defences.base import Defence
from stoic.domains import Domain
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.levels import check_moment, growing_level
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad_in_space

_KEPT, _CUT = np.ones(1), np.zeros(1)
_KEPT.flags.writeable = _CUT.flags.writeable = False


@dataclass(frozen=True, slots=True)
class Truncation(Defence):
    """Replace observations further than b_t from the prior mean by the prior mean.

    b_t = scale v^(1 / (1 + alpha)) t^(1 / (2 (1 + alpha))) where t is the number of the row: it is
    decided on arrival, for ever. The row itself still counts, so the deviation shrinks there.

    Parameters
    ----------
    moment:
        v, a bound on E|(y - mean) / scale|^(1 + alpha) given all that came before.
    alpha:
        In (0, 1]; 1 is a finite variance.
    scale:
        The unit of ``moment``, in units of f.

    Guarantee
    ---------
    With :class:`~stoic.confidence.heavy_tails.GrowingTruncation` the band of TGP-UCB: Theorem 1 of
    [Chowdhury2019]_, regret O(T^((2 + alpha) / (2 (1 + alpha)))) up to gamma_T and logarithms. The
    lower bound is T^(1 / (1 + alpha)): :class:`~stoic.models.truncated.TruncatedFeatures`
    attains it. The theorem has only finite observations; as everywhere in this library, such
    a row is left out of the solve instead of counting as a play.

    Raises
    ------
    ValueError
        If the moment or the scale is not a positive finite number, or alpha outside (0, 1].
    """

    moment: float
    alpha: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_moment(self.moment, self.alpha)
        if not (self.scale > 0.0 and np.isfinite(self.scale)):
            raise ValueError(f"A scale is a positive finite number, got {self.scale!r}.")

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Truncation:
        return self

    def level(self, t: int) -> float:
        """b_t, in units of f."""
        return self.scale * growing_level(t, self.moment, self.alpha)

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        y, noise = observations.observed, observations.own_noise(prior.noise)
        if len(y) == 1:  # one row at a time is the hot path of a finite domain
            away = abs(y.item() - prior.mean)
            if away <= self.level(observations.start + 1) and away < np.inf:
                return Targets(y, noise, _KEPT)
            if not away < np.inf:  # infinite or nan
                noise = np.array((np.inf,))
            return Targets(np.array((prior.mean,)), noise, _CUT)
        kept = np.abs(y - prior.mean) <= self._levels(observations)  # not for nan
        kept &= np.isfinite(y)
        return Targets(
            np.where(kept, y, prior.mean),
            np.where(np.isfinite(y), noise, np.inf),
            kept.astype(float),
        )

    def _levels(self, observations: Observations) -> Array:
        t = observations.start + 1.0 + np.arange(len(observations))  # from 1, in the whole run
        power = 1.0 / (1.0 + self.alpha)
        return np.asarray(self.scale * self.moment**power * t ** (0.5 * power))


@dataclass(frozen=True)
class AdaptiveTruncation(Defence):
    """Truncation in units of a scale of the data, for hyperparameters that are fitted too.

    Parameters
    ----------
    moment, alpha:
        As in :class:`Truncation`, in units of the scale of the observations.
    scale_of:
        Their location and scale. The scale is the unit of the moment; a truncated observation
        counts as the prior mean in force, which a fit with the same scale puts at the location.

    Guarantee
    ---------
    None: Theorem 1 of [Chowdhury2019]_ assumes that the moment and the prior are known. No
    observation moves the posterior by more than b_t does.
    """

    moment: float = 2.0
    alpha: float = 1.0
    scale_of: Scale = median_and_mad_in_space
    revises = True

    def __post_init__(self) -> None:
        check_moment(self.moment, self.alpha)

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Truncation:
        return Truncation(self.moment, self.alpha, self.scale_of(domain, observations)[1])
