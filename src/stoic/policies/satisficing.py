"""Robust satisficing: the point that may be moved farthest before f may fall short [Saday2025]_."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from stoic.data import Array, Choice
from stoic.distances import Distance
from stoic.domains import Domain
from stoic.policies.base import Band, Policy, View
from stoic.policies.ground import Ground, candidates, ground, ground_of
from stoic.satisficing import Spot, certify, check_power, least_fragile, most_robust

log = logging.getLogger(__name__)


class Progress(NamedTuple):
    """The state: the points between which inputs move, and whether it was said that tau is far."""

    points: Array
    said: bool


@dataclass(frozen=True)
class Satisficing(Policy):
    """AdveRS-1, -2 and -G of [Saday2025]_: f >= tau, however the input is moved, or nearly so.

    The upper bound takes the place of f: the point of least optimistic fragility (``p`` = 1,
    AdveRS-1, Algorithm 1; 1 < ``p``, AdveRS-G, section 4), or of largest optimistic critical radius
    (``p`` infinite, AdveRS-2, Algorithm 2). Ties go to the lowest row.

    Parameters
    ----------
    threshold:
        tau, in units of f. ``"adaptive"``: the largest lower bound of the points that may be chosen
        less ``margin``, new in every round, which f reaches wherever the band holds (the remark
        under Assumption 2.2).
    p:
        How quickly f may fall short of tau with the distance: (kappa d)^p.
    distance:
        How far one input is from another, and which coordinates move at all.
    margin:
        Of an adaptive threshold, in units of f, at least 0. Without one hardly any point but the
        best known is known to reach tau.
    candidates:
        How many quasi-random points are compared on a ``Box``.

    Notes
    -----
    Where not even the upper bound reaches tau, the point of the largest upper bound is chosen: the
    note ``reachable`` is then false, and the log says so the first time.

    Every choice carries, as notes: ``threshold``; ``reachable``; ``optimistic``, the fragility or
    radius that it was chosen for; and the numbers of a
    :class:`~stoic.satisficing.Certificate` from the lower bound, of which
    :meth:`~stoic.satisficing.Certificate.of` makes a sentence.

    A recommendation carries the threshold and the certificate.

    A batch hallucinates as :class:`~stoic.policies.ucb.UCB` does. Certificates come from the band
    without what is on its way. Where there may be no result at all, the upper bound is lowered as
    in any other policy; certificates speak of f where it has a value.

    Guarantee
    ---------
    If f lies in the band in all rounds, tau <= max f, k(x, x) <= 1 and noise <= 1: the robust
    satisficing regret of ``p`` is at most 4 width_T sqrt(T gamma_T) (Theorem 3.6 and Corollary 4.2
    for finite p, in any metric: the proofs do not use which). The lenient regret is at most that
    plus B sum eps_t for AdveRS-1 with the kernel metric (Theorem 3.6), and at most that for
    AdveRS-2 if inputs are always moved by less than the largest critical radius (Theorem 3.10).
    Certificates hold in all rounds.

    On a ``Box`` all of it holds for the candidates and the points that were told, and not for the
    points in between. An adaptive tau has certificates, and no regret to bound.
    """

    threshold: float | Literal["adaptive"] = "adaptive"
    p: float = math.inf
    distance: Distance = field(default_factory=Distance)
    margin: float = 0.0
    candidates: int = 1024

    def __post_init__(self) -> None:
        check_power(self.p)
        check_candidates(self.candidates)
        adaptive = self.threshold == "adaptive"
        if not adaptive and not (
            isinstance(self.threshold, int | float | np.number) and math.isfinite(self.threshold)
        ):
            raise ValueError(f"A threshold is a number or 'adaptive', got {self.threshold!r}.")
        if not 0.0 <= self.margin < math.inf:
            raise ValueError(f"A margin is a finite number >= 0, got {self.margin!r}.")
        if self.margin and not adaptive:
            raise ValueError(
                f"A margin of {self.margin:g} is for an adaptive threshold: lower the threshold of "
                f"{self.threshold:g} instead."
            )

    def start(self, domain: Domain) -> Progress:
        return Progress(candidates(domain, self.candidates, self.distance), False)

    def choose(self, view: View, state: Progress, n: int) -> tuple[list[Choice], Progress]:
        here = ground(view, state.points, self.distance)
        lower, upper = here.bounds(view.band())
        upper = here.usable(upper, view)
        highest = float(upper[here.rows].max())
        tau = self._threshold(lower[here.rows])
        reachable = highest >= tau
        said = state.said
        if not reachable and not said:
            log.warning(
                "The threshold %g is out of reach: the upper confidence bound is %g at most. The "
                "point with the highest bound is chosen instead. Lower the threshold, or use "
                "threshold='adaptive'.",
                tau,
                highest,
            )
            said = True

        def pick(band: Band) -> Choice:
            _, upper = here.bounds(band)
            spot = self._spot(here.usable(upper, view), tau, here)
            promised = certify(lower, tau, here.points, spot.row, self.distance, p=self.p)
            return here.choice(
                spot.row,
                {
                    "threshold": tau,
                    "reachable": reachable,
                    "optimistic": spot.value,
                    **asdict(promised),
                },
            )

        choices = view.one_by_one(view.hallucinated(), n, pick)
        return choices, Progress(state.points, said)

    def settle(
        self, view: View, state: Progress, band: Band, tried: Array
    ) -> tuple[int, dict[str, object]]:
        """The point whose certificate is best: largest radius, or least fragility.

        Where no lower bound reaches tau, the point of the best lower bound; its certificate then
        promises nothing.
        """
        here = ground_of(view, state.points, self.distance, tried)
        lower, _ = here.bounds(band)
        tau = self._threshold(lower[here.rows])
        spot = self._spot(lower, tau, here)
        promised = certify(lower, tau, here.points, spot.row, self.distance, p=self.p)
        return here.place(spot.row, tried), {"threshold": tau, **asdict(promised)}

    def _threshold(self, lower: Array) -> float:
        if self.threshold == "adaptive":
            return float(lower.max()) - self.margin
        return float(self.threshold)

    def _spot(self, upper: Array, tau: float, here: Ground) -> Spot:
        """The point to choose, and the optimistic fragility or radius."""
        points, rows = here.points, here.rows
        two = self.p == math.inf
        if not np.any(upper[rows] >= tau):  # out of reach, if only for what is on its way
            return Spot(int(rows[np.argmax(upper[rows])]), -math.inf if two else math.inf)
        if two:
            return most_robust(upper, tau, points, self.distance, rows)
        return least_fragile(upper, tau, points, self.distance, rows, p=self.p)


def check_candidates(n: int) -> None:
    """Refuse a set of candidates that is empty."""
    if n < 1:
        raise ValueError(f"A box needs at least one candidate, got {n!r}.")
