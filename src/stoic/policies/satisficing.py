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
from stoic.policies.ground import (
    Ground,
    candidates,
    ground,
    ground_of,
    with_moves,
    with_peak,
    without_given_up,
)
from stoic.policies.ucb import check_retries
from stoic.satisficing import Certificate, Spot, certify, check_power, least_fragile, most_robust

log = logging.getLogger(__name__)

_FAR = 4.0  # units: how long the moves are that refined points have


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
    probe:
        Whether the learner itself moves the input, to where f may fall short the most of what the
        upper bound promises, among the points that may be chosen; the note ``centre`` then says
        from where. A centre whose certificate is better than that of any point told is chosen
        itself, once, so that it can be settled on. Without, the world moves the input. Where it
        does not, the moves of a choice are never tried, and its certificate stays poor.
    retries:
        How often a place is asked again although its results were not believed, as in
        :class:`~stoic.policies.ucb.UCB`; after that it is not chosen.
    quiet:
        Whether the log does not say that tau is out of reach, since somebody else does.
    refined:
        How many of the most promising points of a ``Box`` get moves of their own, corners included.
        With 0, only candidates are compared, which are far apart where several coordinates move.

    Notes
    -----
    Where not even the upper bound reaches tau, the point of the largest upper bound is chosen; on a
    ``Box`` it is climbed to, as by :class:`~stoic.policies.ucb.UCB`. The
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

    With ``probe``, and tau within reach, the same bounds hold for the points that were probed. And
    one of T probes has a centre with f >= tau - eps - (kappa d)^p at distance d, where eps is at
    most 4 width_T sqrt(gamma_T / T) and kappa the least fragility of any point for tau (for p
    infinite: within the largest critical radius): ours. It holds since the shortfall at the probe,
    the largest there is, is at most 2 width_t std_t of it.

    On a ``Box`` all of it holds for the candidates and the points that were told, and not for the
    points in between. An adaptive tau has certificates, and no regret to bound.
    """

    threshold: float | Literal["adaptive"] = "adaptive"
    p: float = math.inf
    distance: Distance = field(default_factory=Distance)
    margin: float = 0.0
    candidates: int = 1024
    probe: bool = False
    retries: int | None = None
    quiet: bool = False
    refined: int = 0

    def __post_init__(self) -> None:
        check_retries(self.retries)
        check_power(self.p)
        check_candidates(self.candidates, self.refined)
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
        here, hallucinated = without_given_up(view, here, view.hallucinated(), self.retries)
        if self.refined:
            here = with_moves(
                view, here, hallucinated, self.distance, self.refined, _FAR, self._best
            )
            here, _ = without_given_up(view, here, hallucinated, self.retries)
        lower, upper = here.bounds(view.band())
        upper = here.usable(upper, view)
        if not self.refined and upper[here.rows].max() < self._threshold(lower[here.rows]):
            here = with_peak(view, here, hallucinated)
            lower, upper = here.bounds(view.band())
            upper = here.usable(upper, view)
        highest = float(upper[here.rows].max())
        tau = self._threshold(lower[here.rows])
        reachable = highest >= tau
        said = state.said
        if not (reachable or said or self.quiet):
            log.warning(
                "The threshold %g is out of reach: the upper confidence bound is %g at most. The "
                "point with the highest bound is chosen instead. Lower the threshold, or use "
                "threshold='adaptive'.",
                tau,
                highest,
            )
            said = True

        told = self._best_told(view, state, tau) if self.probe else None

        def pick(band: Band) -> Choice:
            least, upper = here.bounds(band)
            spot = self._spot(here.usable(upper, view), tau, here)
            promised = certify(lower, tau, here.points, spot.row, self.distance, p=self.p)
            notes = {
                "threshold": tau,
                "reachable": reachable,
                "optimistic": spot.value,
                **asdict(promised),
            }
            if not self.probe:
                return here.choice(spot.row, notes)
            row = spot.row
            if told is None or not self._better(promised, told):
                row = self._weakest(least, tau, spot, here)
            return here.choice(row, {**notes, "centre": here.points[spot.row].tolist()})

        choices = view.one_by_one(hallucinated, n, pick)
        return choices, Progress(state.points, said)

    def settle(
        self, view: View, state: Progress, band: Band, tried: Array
    ) -> tuple[int, dict[str, object]]:
        """The point whose certificate is best: largest radius, or least fragility.

        Where no lower bound reaches tau, the point of the best lower bound; its certificate then
        promises nothing.
        """
        row, promised = self._settled(view, state, band, tried)
        return row, {"threshold": promised.value, **asdict(promised)}

    def _settled(
        self, view: View, state: Progress, band: Band, tried: Array, tau: float | None = None
    ) -> tuple[int, Certificate]:
        """Which of ``tried`` (k, d) has the best certificate, and that; tau as of these if None."""
        # Moves are looked at only where there is something to promise: that is the cost.
        own, _ = band.bounds(tried)
        hopeful = np.flatnonzero(own >= (self._threshold(own) if tau is None else tau))
        chosen = tried[hopeful if len(hopeful) else [int(np.argmax(own))]]
        if self.refined:
            chosen = chosen[np.argsort(-band.bounds(chosen)[0], kind="stable")[: 2 * self.refined]]
        far = _FAR if self.refined else 0.0
        here = ground_of(view, state.points, self.distance, chosen, far)
        lower, _ = here.bounds(band)
        if tau is None:  # again: the last digit depends on what else is predicted
            tau = self._threshold(lower[here.rows])
        spot = self._spot(lower, tau, here)
        promised = certify(lower, tau, here.points, spot.row, self.distance, p=self.p)
        return here.place(spot.row, tried), promised

    def _best_told(self, view: View, state: Progress, tau: float) -> Certificate | None:
        """The best certificate for tau of a point that was told and may be chosen."""
        told = np.unique(view.observations.x, axis=0)
        if view.among is not view.domain and len(told):
            told = told[view.among.contains(told)]
        if not len(told):
            return None
        return self._settled(view, state, view.band(), told, tau)[1]

    def _better(self, one: Certificate, other: Certificate) -> bool:
        if self.p == math.inf:
            return one.radius > other.radius
        return one.fragility < other.fragility

    def _threshold(self, lower: Array) -> float:
        if self.threshold == "adaptive":
            return float(lower.max()) - self.margin
        return float(self.threshold)

    def _best(self, lower: Array, upper: Array, here: Ground) -> int:
        return self._spot(upper, self._threshold(lower[here.rows]), here).row

    def _spot(self, upper: Array, tau: float, here: Ground) -> Spot:
        """The point to choose, and the optimistic fragility or radius."""
        points, rows = here.points, here.compared
        two = self.p == math.inf
        if not np.any(upper[rows] >= tau):  # out of reach, if only for what is on its way
            rows = here.rows
            return Spot(int(rows[np.argmax(upper[rows])]), -math.inf if two else math.inf)
        if two:
            return most_robust(upper, tau, points, self.distance, rows)
        return least_fragile(upper, tau, points, self.distance, rows, p=self.p)

    def _weakest(self, lower: Array, tau: float, spot: Spot, here: Ground) -> int:
        """Where a move from the spot may fall short the most; the spot itself if none may."""
        if spot.value == (-math.inf if self.p == math.inf else math.inf):
            return spot.row  # tau is out of reach
        far = self.distance(here.points[[spot.row]], here.points[here.rows])[0]
        possible = np.isfinite(far)
        if self.p == math.inf:
            allowed = np.where(possible & (far < spot.value), 0.0, np.inf)
        elif spot.value < 0.0:  # with p = 1 only: f exceeds tau by a slope
            allowed = np.where(possible, spot.value * np.where(possible, far, 0.0), np.inf)
        else:
            allowed = (spot.value * np.where(possible, far, 0.0)) ** self.p
            allowed[~possible] = np.inf
        short = tau - allowed - lower[here.rows]
        weakest = int(np.argmax(short))
        return int(here.rows[weakest]) if short[weakest] > 0.0 else spot.row


def check_candidates(n: int, refined: int) -> None:
    """Refuse a set of candidates that is empty, or less than none of them refined."""
    if refined < 0:
        raise ValueError(f"How many points are refined is a count >= 0, got {refined!r}.")
    if n < 1:
        raise ValueError(f"A box needs at least one candidate, got {n!r}.")
