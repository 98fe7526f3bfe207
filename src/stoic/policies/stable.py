"""Robust optimization: maximise the worst value in a ball of known radius [Bogunovic2018]_."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import NamedTuple

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
    without_given_up,
)
from stoic.policies.satisficing import check_candidates
from stoic.policies.ucb import check_retries
from stoic.satisficing import Balls, Certificate, Spot, check_radius, highest_worst, worst_value


class Ready(NamedTuple):
    """State of the policy: candidates, and the balls about them where these are small."""

    points: Array
    balls: Balls | None


@dataclass(frozen=True)
class StableOpt(Policy):
    """Maximise the least upper bound within ``radius`` of x: StableOpt [Bogunovic2018]_.

    Parameters
    ----------
    radius:
        r, by how much inputs are assumed to be moved.
    distance:
        Distance between inputs; it also defines which coordinates move at all.
    probe:
        If true, the learner itself moves the input, to where the lower bound is least within the
        ball, as Algorithm 1 of [Bogunovic2018]_ does, among the points that may be chosen. The note
        ``centre`` then holds the stable point. Where its certificate is better than that of any
        observed point it is queried itself, so that it can be recommended; the paper never does
        that. Otherwise the environment moves it.
    candidates:
        Number of quasi-random points that are compared on a ``Box``.
    retries:
        Number of times that a place with rejected results is queried again, as in
        :class:`~stoic.policies.ucb.UCB`; after that it is not chosen.
    refined:
        Number of the most promising points of a ``Box`` that get moves of their own, corners
        included. With 0, balls hold candidates only, hardly any where several coordinates move.

    Notes
    -----
    Every choice carries, as notes: ``optimistic``, the least upper bound in the ball; and the
    numbers of a :class:`~stoic.satisficing.Certificate`: the least lower bound in the ball, which
    bounds f from below. So does a recommendation. A batch hallucinates as
    :class:`~stoic.policies.ucb.UCB` does; certificates come from the band without pending points.

    Guarantee
    ---------
    With ``probe``, and if f is in the band in all rounds: the worst value of the choice with the
    best certificate is within eps of the best there is after T rounds that probe, where
    T / (width_T^2 gamma_T) is of the order of 1 / eps^2 (Theorem 1 of [Bogunovic2018]_). Without,
    the same holds if it is always moved to where the lower bound is least. A wrong radius voids it:
    the regret is then linear in T in general. Certificates hold in all rounds. On a ``Box`` all of
    it holds for the candidates and the observed points, and not for the points in between.
    """

    radius: float
    distance: Distance = field(default_factory=Distance)
    probe: bool = False
    candidates: int = 1024
    retries: int | None = None
    refined: int = 0

    def __post_init__(self) -> None:
        check_retries(self.retries)
        check_radius(self.radius)
        check_candidates(self.candidates, self.refined)

    def start(self, domain: Domain) -> Ready:
        points = candidates(domain, self.candidates, self.distance)
        balls = Balls.of(points, self.radius, self.distance) if domain.finite else None
        return Ready(points, balls)

    def choose(self, view: View, state: Ready, n: int) -> tuple[list[Choice], Ready]:
        here = ground(view, state.points, self.distance)
        here, hallucinated = without_given_up(view, here, view.hallucinated(), self.retries)
        if self.refined:
            here = with_moves(
                view, here, hallucinated, self.distance, self.refined, self.radius,
                lambda _, upper, ground: self._spot(upper, ground, None).row,
            )  # fmt: skip
            here, _ = without_given_up(view, here, hallucinated, self.retries)
        points, distance, r = here.points, self.distance, self.radius
        certain, _ = here.bounds(view.band())

        def pick(band: Band) -> Choice:
            lower, upper = here.bounds(band)
            upper = here.usable(upper, view)
            row, optimistic = self._spot(upper, here, state.balls)
            certificate = self._certificate(here, certain, row)
            notes = {"optimistic": optimistic, **asdict(certificate)}
            if not self.probe:
                return here.choice(row, notes)
            notes["centre"] = points[row].tolist()
            if self._is_best(view, state, certificate.value):
                return here.choice(row, notes)
            ball = np.intersect1d(distance.ball(points[row], points, r), here.rows)
            return here.choice(int(ball[np.argmin(lower[ball])]), notes)

        return view.one_by_one(hallucinated, n, pick), state

    def recommend(
        self, view: View, state: Ready, band: Band, tried: Array
    ) -> tuple[int, dict[str, object]]:
        """Recommend the point of the best least lower bound in the ball, with its certificate."""
        row, certificate = self._recommended(view, state, band, tried)
        return row, asdict(certificate)

    def _recommended(
        self, view: View, state: Ready, band: Band, tried: Array
    ) -> tuple[int, Certificate]:
        far = self.radius if self.refined else 0.0
        here = ground_of(view, state.points, self.distance, tried, far)
        lower, _ = here.bounds(band)
        row, _ = self._spot(lower, here, state.balls)
        return here.place(row, tried), self._certificate(here, lower, row)

    def _is_best(self, view: View, state: Ready, value: float) -> bool:
        """Return True if a certificate is better than those of observed points, and there are any.

        The least bound in a ball is at most that of its centre, so few points have to be compared.
        """
        band = view.band()
        if not len(observed := observed_choices(view)):
            return False
        hopeful = observed[band.bounds(observed)[0] >= value]
        if not len(hopeful):
            return True
        return self._recommended(view, state, band, hopeful)[1].value < value

    def _spot(self, f: Array, here: Ground, balls: Balls | None) -> Spot:
        """Return the row of the best worst value of f (N,)."""
        if balls is None:
            return highest_worst(f, self.radius, here.points, self.distance, here.compared)
        worst = balls.worst(f)[here.rows]  # moves may leave the part that may be chosen
        best = int(worst.argmax())
        return Spot(int(here.rows[best]), float(worst[best]))

    def _certificate(self, here: Ground, lower: Array, row: int) -> Certificate:
        """Compute the certificate of one row."""
        rows = np.array([row])
        worst = float(worst_value(lower, self.radius, here.points, self.distance, rows)[0])
        return Certificate(worst, self.radius, np.inf, closed=True)
