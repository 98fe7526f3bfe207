"""Robust satisficing: f >= tau under the largest move of the input [Saday2025]_."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from stoic.confidence.base import Band
from stoic.data import Array, Choice
from stoic.distances import Distance
from stoic.domains import Domain
from stoic.policies.base import Policy, View
from stoic.policies.ground import (
    Ground,
    candidates,
    ground,
    ground_of,
    observed_choices,
    with_moves,
    with_peak,
    without_given_up,
)
from stoic.policies.ucb import check_retries
from stoic.satisficing import Certificate, Spot, certify, check_power, least_fragile, most_robust

log = logging.getLogger(__name__)

PATIENCE = 10  # rounds in a row before a warning: a model of few observations is overconfident
_FAR = 4.0  # units: length of the moves of refined points


class Progress(NamedTuple):
    """State of the policy: candidates, and for how many rounds in a row tau was out of reach.

    Once that is ``PATIENCE`` it was logged, and stays.
    """

    points: Array
    missed: int


@dataclass(frozen=True)
class Satisficing(Policy):
    """Robust satisficing: AdveRS-1, -2 and -G of [Saday2025]_, f >= tau under input moves.

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
        Power of the allowed shortfall of f below tau at distance d: (kappa d)^p.
    distance:
        Distance between inputs; it also defines which coordinates move at all.
    margin:
        Of an adaptive threshold, in units of f, at least 0. Without one hardly any point but the
        best known is known to reach tau.
    candidates:
        Number of quasi-random points that are compared on a ``Box``.
    probe:
        If true, the learner itself moves the input, to where f may fall short the most of the
        optimistic certificate, among the points that may be chosen; the note ``centre`` then holds
        the start. A centre whose certificate is better than that of any observed point
        is chosen itself, once, so that it can be recommended. Otherwise the environment moves the
        input. Where it does not, the moves of a choice are never tried, and its certificate stays
        poor.
    retries:
        Number of times that a place with rejected results is queried again, as in
        :class:`~stoic.policies.ucb.UCB`; after that it is not chosen.
    quiet:
        If true, a tau out of reach is not logged, since the caller reports it.
    refined:
        Number of the most promising points of a ``Box`` that get moves of their own, corners
        included. With 0, only candidates are compared, which are far apart where several
        coordinates move.
    seeking:
        With an adaptive threshold, number of choices in a row of the largest upper bound, before
        one for tau: it follows the best that is known, and with a margin a region in which nothing
        ever happens may have the best certificate.

    Notes
    -----
    Where not even the upper bound reaches tau, the point of the largest upper bound is chosen; on a
    ``Box`` by gradient ascent, as by :class:`~stoic.policies.ucb.UCB`. The
    note ``reachable`` is then false, and after ten rounds in a row the policy logs it, once.

    Every choice carries, as notes: ``threshold``; ``reachable``; ``optimistic``, the fragility or
    radius that it was chosen for, infinitely bad of one that seeks; and the numbers of a
    :class:`~stoic.satisficing.Certificate` from the lower bound, which
    :meth:`~stoic.satisficing.Certificate.of` formats as a sentence.

    A recommendation carries the threshold and the certificate.

    A batch hallucinates as :class:`~stoic.policies.ucb.UCB` does. Certificates come from the band
    without pending points. Where an input may be infeasible, the upper bound is lowered as in any
    other policy; certificates are about f where it has a value.

    Guarantee
    ---------
    If f is in the band in all rounds, tau <= max f, k(x, x) <= 1 and noise <= 1: the robust
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

    On a ``Box`` all of it holds for the candidates and the observed points, and not for the
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
    seeking: int = 0

    def __post_init__(self) -> None:
        check_retries(self.retries)
        check_power(self.p)
        check_candidates(self.candidates, self.refined)
        adaptive = self.threshold == "adaptive"
        if not adaptive and not (
            isinstance(self.threshold, int | float | np.number) and math.isfinite(self.threshold)
        ):
            raise ValueError(f"A threshold is a number or 'adaptive', got {self.threshold!r}.")
        if self.seeking < 0:
            raise ValueError(f"A number of choices that seek is >= 0, got {self.seeking!r}.")
        if not 0.0 <= self.margin < math.inf:
            raise ValueError(f"A margin is a finite number >= 0, got {self.margin!r}.")
        if self.margin and not adaptive:
            raise ValueError(
                f"A margin of {self.margin:g} is for an adaptive threshold: lower the threshold of "
                f"{self.threshold:g} instead."
            )

    def start(self, domain: Domain) -> Progress:
        return Progress(candidates(domain, self.candidates, self.distance), 0)

    def choose(self, view: View, state: Progress, n: int) -> tuple[list[Choice], Progress]:
        begun = len(view.surrogate.history) + len(view.failures.x) + len(view.pending)
        turns = 1 + self.seeking * (self.threshold == "adaptive")
        seeks = [(begun + k) % turns > 0 for k in range(n)]
        here = ground(view, state.points, self.distance)
        here, hallucinated = without_given_up(view, here, view.hallucinated(), self.retries)
        if self.refined:
            here = with_moves(
                view, here, hallucinated, self.distance, self.refined, _FAR, self._best
            )
            # Added points may be at such places, too; the band has them already
            here, _ = without_given_up(view, here, hallucinated, self.retries)
        lower, upper = here.bounds(view.band())
        upper = here.usable(upper, view)
        # The bound may reach tau between candidates; ``with_moves`` has added its summit
        below = upper[here.rows].max() < self._threshold(lower[here.rows])
        if not self.refined and (any(seeks) or below):
            here = with_peak(view, here, hallucinated)
            lower, upper = here.bounds(view.band())
            upper = here.usable(upper, view)
        highest = float(upper[here.rows].max())
        tau = self._threshold(lower[here.rows])
        reachable = highest >= tau
        missed, said = state.missed, state.missed == PATIENCE
        if not said:
            missed = 0 if reachable else missed + 1
        if missed == PATIENCE and not (said or self.quiet):
            log.warning(
                "The threshold %g is out of reach: the upper confidence bound is %g at most. The "
                "point with the highest bound is chosen instead. Lower the threshold, or use "
                "threshold='adaptive'.",
                tau,
                highest,
            )

        best_observed = self._best_observed(view, state, tau) if self.probe else None

        def pick(band: Band) -> Choice:
            least, upper = here.bounds(band)
            sought = math.inf if seeks.pop(0) else tau  # out of reach: the largest upper bound
            spot = self._spot(here.usable(upper, view), sought, here)
            certificate = certify(lower, tau, here.points, spot.row, self.distance, p=self.p)
            notes = {
                "threshold": tau,
                "reachable": reachable,
                "optimistic": spot.value,
                **asdict(certificate),
            }
            if not self.probe:
                return here.choice(spot.row, notes)
            row = spot.row
            if best_observed is None or not self._better(certificate, best_observed):
                row = self._weakest(least, tau, spot, here)
            return here.choice(row, {**notes, "centre": here.points[spot.row].tolist()})

        choices = view.one_by_one(hallucinated, n, pick)
        return choices, Progress(state.points, missed)

    def recommend(
        self, view: View, state: Progress, band: Band, tried: Array
    ) -> tuple[int, dict[str, object]]:
        """Recommend the point of the best certificate: largest radius, or least fragility.

        Where no lower bound reaches tau, the point of the best lower bound; its certificate is then
        void.
        """
        row, certificate = self._recommended(view, state, band, tried)
        return row, {"threshold": certificate.value, **asdict(certificate)}

    def _recommended(
        self, view: View, state: Progress, band: Band, tried: Array, tau: float | None = None
    ) -> tuple[int, Certificate]:
        """Best certificate of the points ``tried`` (k, d), and its row; tau as of these if None."""
        # Only points that reach tau can have a certificate, and the moves are the cost.
        own, _ = band.bounds(tried)
        hopeful = np.flatnonzero(own >= (self._threshold(own) if tau is None else tau))
        chosen = tried[hopeful if len(hopeful) else [int(np.argmax(own))]]
        if self.refined:
            # Each has moves of its own, so their number is bounded
            chosen = chosen[np.argsort(-band.bounds(chosen)[0], kind="stable")[: 2 * self.refined]]
        far = _FAR if self.refined else 0.0
        here = ground_of(view, state.points, self.distance, chosen, far)
        lower, _ = here.bounds(band)
        if tau is None:  # again: rounding depends on the other points of the same prediction
            tau = self._threshold(lower[here.rows])
        spot = self._spot(lower, tau, here)
        certificate = certify(lower, tau, here.points, spot.row, self.distance, p=self.p)
        return here.place(spot.row, tried), certificate

    def _best_observed(self, view: View, state: Progress, tau: float) -> Certificate | None:
        """Return the best certificate for tau of an observed point that may be chosen."""
        if not len(observed := observed_choices(view)):
            return None
        return self._recommended(view, state, view.band(), observed, tau)[1]

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
        """Return the point to choose, and its optimistic fragility or radius."""
        points, rows = here.points, here.compared
        two = self.p == math.inf
        if not np.any(upper[rows] >= tau):  # out of reach, if only because of pending points
            rows = here.rows
            return Spot(int(rows[np.argmax(upper[rows])]), -math.inf if two else math.inf)
        if two:
            return most_robust(upper, tau, points, self.distance, rows)
        return least_fragile(upper, tau, points, self.distance, rows, p=self.p)

    def _weakest(self, lower: Array, tau: float, spot: Spot, here: Ground) -> int:
        """Return the row where f may fall short the most; the spot itself if it cannot."""
        if spot.value == (-math.inf if self.p == math.inf else math.inf):
            return spot.row  # tau is out of reach
        far = self.distance(here.points[[spot.row]], here.points[here.rows])[0]
        possible = np.isfinite(far)
        if self.p == math.inf:
            allowed = np.where(possible & (far < spot.value), 0.0, np.inf)
        elif spot.value < 0.0:  # with p = 1 only: f exceeds tau by a slope
            allowed = np.where(possible, spot.value * np.where(possible, far, 0.0), np.inf)
        else:
            # 0 for an infinite distance: times a fragility of 0 it would be nan
            allowed = (spot.value * np.where(possible, far, 0.0)) ** self.p
            allowed[~possible] = np.inf
        short = tau - allowed - lower[here.rows]
        weakest = int(np.argmax(short))
        return int(here.rows[weakest]) if short[weakest] > 0.0 else spot.row


def check_candidates(n: int, refined: int) -> None:
    """Refuse an empty set of candidates, or a negative number of refined ones."""
    if refined < 0:
        raise ValueError(f"How many points are refined is a count >= 0, got {refined!r}.")
    if n < 1:
        raise ValueError(f"A box needs at least one candidate, got {n!r}.")
