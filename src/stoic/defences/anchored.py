"""Anchor-adapt: a stable model centres the plateau of the acting one [Ezzerg2026]_, Algorithm 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from stoic.data import Array, Observations, Targets
from stoic.defences.base import Defence
from stoic.defences.plateau import NEGLIGIBLE, Plateau
from stoic.domains import Domain
from stoic.posteriors.base import FittedDefence, Model, Posterior
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, median_and_mad


class Width(Protocol):
    """Multiple of the posterior deviation, as in :class:`stoic.confidence.base.Confidence`."""

    def __call__(self, posterior: Posterior, t: int) -> float: ...


@dataclass(frozen=True, eq=False, slots=True)
class Reach:
    """Adaptive half-width L_R,t(x) = width_t std_A(x) + slack of appendix D.5.1.

    It is narrow where the anchor is certain. Its largest value is the constant of Algorithm 2.

    Parameters
    ----------
    width:
        From the anchor's posterior to sqrt(beta_A) Psi(T_c): a width that allows for corruptions.
    slack:
        N_T, the contribution of the noise, in units of the defence's ``scale``.
    """

    width: Width
    slack: float

    def __post_init__(self) -> None:
        if not self.slack >= 0.0:
            raise ValueError(f"The slack of a half-width is at least 0, got {self.slack!r}.")


@dataclass(frozen=True, eq=False)
class Anchored(Defence):
    """Plateau about the posterior mean of an anchor model, which has a fixed centre itself.

    By default the anchor is conditioned on all observations but the newest (on all while there is
    only one), with its own scale and its own hyperparameters, and evaluated at all rows, as the
    authors run it; so earlier weights change (``revises``). The prequential form weighs each row
    once, by the anchor given the rows before it, which is Algorithm 2 read literally; the first
    row is weighed by the anchor's prior, so give it one.

    Parameters
    ----------
    anchor:
        The anchor model, usually a Gaussian process with a plateau of fixed centre.
    half_width:
        L_R, in units of ``scale``, or a :class:`Reach`, which differs from row to row.
    shape:
        c, in units of f (times ``scale``) or of the noise's standard deviation, see ``unit``.
    unit:
        ``"scale"`` or ``"noise"``.
    scale:
        The unit: a robust scale of the observations by default, or a fixed one.
    prequential:
        If true, weigh each row once.
    negligible:
        As in :class:`~stoic.defences.plateau.Plateau`.

    Guarantee
    ---------
    With L_R = sqrt(beta_A kappa) Psi(T_c) + N_T(delta/3), or a :class:`Reach`, and the width
    of :class:`stoic.confidence.enlarged.CorruptionCount`, UCB has sublinear regret with O(T^(1/7))
    corruptions of any size ([Ezzerg2026]_, Theorem 4.3). The defaults here are the practical ones:
    half-widths in units of a robust scale, hyperparameters fitted. Then only the bounded influence
    of each single observation, given the centre, is certain.
    """

    anchor: Model
    half_width: float | Reach = 1.0
    shape: float = 1.0
    unit: Literal["scale", "noise"] = "noise"
    scale: Scale = median_and_mad
    prequential: bool = False
    negligible: float = NEGLIGIBLE

    def __post_init__(self) -> None:
        # Checks the numbers
        Plateau(0.0 if isinstance(self.half_width, Reach) else self.half_width, self.shape)

    @property
    def revises(self) -> bool:  # type: ignore[override]
        return not self.prequential

    def fit(
        self, domain: Domain, observations: Observations, previous: FittedDefence | None = None
    ) -> Settled:
        earlier = previous if isinstance(previous, Settled) else None
        if self.prequential:
            return self._one_by_one(domain, observations, earlier)
        # Without a finite earlier observation, condition the anchor on all, the newest included.
        n = len(observations)
        seen = np.isfinite(observations.observed[: max(n - 1, 0)]).any()
        known = observations.until(n - 1) if seen else observations
        anchor = self.anchor(domain, known, None if earlier is None else earlier.anchor)
        centre, std = anchor.predict(observations.x) if n else (np.empty(0), np.empty(0))
        scale = self.scale(domain, observations)[1]
        return self._about(centre, scale, self._half_width(anchor, std, scale), anchor)

    def _one_by_one(
        self, domain: Domain, observations: Observations, earlier: Settled | None
    ) -> Settled:
        rows = 0 if earlier is None else len(np.asarray(earlier.plateau.centre))
        if earlier is not None and earlier.anchor.n >= max(rows, 1):
            # Another fit has extended the anchor in place, which judged the last row before it had
            # it: begin anew
            earlier, rows = None, 0
        anchor: Posterior | None = None if earlier is None else earlier.anchor
        centres, scales, half_widths = [], [], []
        for row in range(rows, len(observations)):
            known = observations.until(row)
            anchor = self.anchor(domain, known, anchor)
            mean, std = anchor.predict(observations.x[[row]])
            centres.append(mean.item())
            scales.append(self.scale(domain, known)[1])
            half_widths.append(float(np.max(self._half_width(anchor, std, scales[-1]))))
        if anchor is None:  # no row was weighed
            anchor = self.anchor(domain, observations, None)
        settled = self._about(np.array(centres), np.array(scales), np.array(half_widths), anchor)
        return settled if earlier is None else earlier.followed_by(settled)

    def _half_width(self, anchor: Posterior, std: Array, scale: float) -> float | Array:
        """L_R in units of f where the standard deviation of the anchor is ``std`` (m,)."""
        if isinstance(self.half_width, Reach):
            width = self.half_width.width(anchor, anchor.n + 1)
            return width * std + self.half_width.slack * scale
        return self.half_width * scale

    def _about(
        self, centre: Array, scale: float | Array, half_width: float | Array, anchor: Posterior
    ) -> Settled:
        plateau = Plateau(
            half_width,
            self.shape * (scale / scale if self.unit == "noise" else scale),  # 1, or ones (n,)
            centre,
            "noise" if self.unit == "noise" else "value",
            self.negligible,
        )
        return Settled(plateau, anchor)


@dataclass(frozen=True, eq=False)
class Settled(Defence):
    """Fitted defence: a plateau, and the anchor posterior that centred it."""

    plateau: Plateau
    anchor: Posterior

    def __call__(self, observations: Observations, prior: Prior) -> Targets:
        return self.plateau(observations, prior)

    def followed_by(self, later: Settled) -> Settled:
        """Keep this plateau for the first rows, and use ``later`` for those after them."""
        mine, its = self.plateau, later.plateau
        half_width = np.append(mine.half_width, its.half_width)
        shape, centre = np.append(mine.shape, its.shape), np.append(mine.centre, its.centre)
        return Settled(Plateau(half_width, shape, centre, mine.unit, mine.negligible), later.anchor)

    def slopes(
        self, observations: Observations, prior: Prior, targets: Targets
    ) -> tuple[Array, Array]:
        return self.plateau.slopes(observations, prior, targets)
