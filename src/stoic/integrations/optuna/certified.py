"""Robustness certificates: how far a setting may be moved, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

import numpy as np

from stoic.balancing import Balanced
from stoic.confidence.base import Band
from stoic.data import Array
from stoic.distances import reach
from stoic.integrations.optuna.coordinates import Coordinate
from stoic.integrations.optuna.encoding import Encoding
from stoic.integrations.optuna.objective import WIDTH, RobustObjective
from stoic.integrations.optuna.surroundings import Searched, Surroundings
from stoic.learner import Learner
from stoic.models.constraints import SURE, Constraints
from stoic.satisficing import Certificate, certify, guaranteed, rounded, worst_value

_MOVES = 2048  # evaluated all over the range, and as many again nearby, before the search
_NEARBY = 4.0  # tolerances
_CORNERED = 16  # balls whose corners are evaluated
_FAR = 24  # balls searched all over the range, for the fragility
_FINALISTS = 8  # settings whose moves are searched, where settings are compared
_SIZES = 121  # of a curve, and
SHOWN = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # tolerances, of a table
_LIMITS = 128  # balls whose corners may violate a constraint
_COMPARED = 1 << 16  # moves of all settings together, where they are compared
_FEWEST = 64  # of one setting


@dataclass(frozen=True, eq=False)
class Curve:
    """Worst value within a distance of the setting, as a function of the distance.

    Attributes
    ----------
    sizes:
        Distances in tolerances, shape (m,), from 0 on.
    pessimistic, expected, optimistic:
        The worst value at most that far away, each (m,), by the worse confidence bound, the
        posterior mean, and the better confidence bound.
    """

    sizes: Array
    pessimistic: Array
    expected: Array
    optimistic: Array


@dataclass(frozen=True, eq=False)
class Certified:
    """Certificate of a setting when it is moved; it holds as often as the confidence band does.

    Attributes
    ----------
    aim:
        The objective; its tolerances are the unit of distances.
    minimise:
        True if low values are good.
    params:
        The setting.
    certificate:
        Its numbers, with the ``value`` in the user's units: the threshold, or the worst value.
    reached:
        The best value that is possible anywhere, by the better confidence bound, if that is worse
        than the threshold; else None.
    curve:
        Value against distance.
    encoding:
        Conversion of distances to the parameters' own units.
    constraints_radius:
        Distance in tolerances within which all constraints hold with a probability of 0.9; infinite
        if they do everywhere, None without constraints.
    """

    aim: RobustObjective
    minimise: bool
    params: Mapping[str, Any]
    certificate: Certificate
    reached: float | None
    curve: Curve
    encoding: Encoding
    constraints_radius: float | None = None

    @property
    def within(self) -> dict[str, float]:
        """Certified move of each moving parameter: a difference, or a factor if log-scaled.

        Empty if nothing is certified, infinite if it may go anywhere.
        """
        radius = self.certificate.radius
        if radius == -math.inf:
            return {}
        return {name: part.moved(radius, size) for name, part, size in self._moving()}

    def sentence(self) -> str:
        """State the certificate in words, numbers rounded to the safe side."""
        return "; ".join([self._of_the_value(), *self._of_constraints()])

    def _of_constraints(self) -> list[str]:
        if self.constraints_radius is None:
            return []
        if self.constraints_radius == 0.0:
            return ["a constraint may be violated even without any move"]
        hold = f"constraints hold with a probability of {SURE:g}"
        if self.constraints_radius == math.inf:
            return [f"{hold} {self._anywhere()}"]
        near = [self._near(*move, self.constraints_radius, closed=False) for move in self._moving()]
        return [f"{hold} as long as {_and(near)}"]

    def _anywhere(self) -> str:
        names = [name for name, _, _ in self._moving()]
        return f"wherever {_and(names)} {'is' if len(names) == 1 else 'are'} in range"

    def _of_the_value(self) -> str:
        held = self.certificate
        value = self._rounded(held.value)
        surely = f"if the model is right within {WIDTH:g} standard deviations"
        if held.radius == -math.inf:
            return f"nothing: value {self._worse} {value} is possible even without any move"
        if held.radius == math.inf:
            return f"value {self._better} {value} {self._anywhere()}, {surely}"
        near = _and([self._near(*move, held.radius, held.closed) for move in self._moving()])
        text = f"value {self._better} {value} as long as {near}"
        if 0.0 < held.fragility < math.inf and held.p < math.inf:
            sign = "+" if self.minimise else "-"
            loss = f"{rounded(held.fragility, ROUND_CEILING, 3)} d"
            loss = loss if held.p == 1.0 else f"({loss})^{held.p:g}"
            text += f", and {self._better} {value} {sign} {loss} at a distance of d tolerances"
        out = [name for name, part, size in self._moving() if self._sticks_out(name, part, size)]
        if out:
            text += f", and {_and(out)} {'is' if len(out) == 1 else 'are'} in range"
        return f"{text}, {surely}"

    def unreachable(self) -> str | None:
        """State that the threshold is out of reach, if it is."""
        if self.reached is None:
            return None
        side = "below" if self.minimise else "above"
        return (
            f"{self.certificate.value:.6g} is out of reach: no setting is expected to have a value "
            f"{side} {self.reached:.6g}"
        )

    @property
    def _better(self) -> str:
        return "<=" if self.minimise else ">="

    @property
    def _worse(self) -> str:
        return ">" if self.minimise else "<"

    def _rounded(self, value: float) -> str:
        return rounded(value, ROUND_CEILING if self.minimise else ROUND_FLOOR, 6)

    def _moving(self) -> list[tuple[str, Coordinate, float]]:
        """Parameters that move, in the order of the space, and their tolerances."""
        given = self.aim.tolerance or {}
        return [
            (name, part, given[name])
            for name, part in self.encoding.parts.items()
            if name in given
            and isinstance(part, Coordinate)
            and any(part.tolerance(name, given[name]))
        ]

    def _sticks_out(self, name: str, part: Coordinate, size: float) -> bool:
        """Return True if some of the moves would leave the parameter's range."""
        moved, here = part.moved(self.certificate.radius, size), self.params[name]
        d = part.distribution
        if d.log:
            return bool(here / moved < d.low or here * moved > d.high)
        return bool(here - moved < d.low or here + moved > d.high)

    def _near(self, name: str, part: Coordinate, size: float, radius: float, closed: bool) -> str:
        moved = part.moved(radius, size)
        far, here = rounded(moved, ROUND_FLOOR, 3), f"{self.params[name]:.6g}"
        if part.distribution.log:
            if closed:
                return f"{name} is within a factor of {far} of {here}"
            return f"{name} is less than a factor of {far} from {here}"
        if closed:
            return f"{name} is within {far} of {here}"
        return f"{name} is closer than {far} to {here}"


def certified(
    learner: Learner | Balanced,
    encoding: Encoding,
    aim: RobustObjective,
    sign: float,
    params: Mapping[str, Any],
    threshold: float | None,
    reached: float | None,
    constraints: Constraints | None = None,
) -> Certified:
    """Certify a setting by a search for its worst moves.

    It begins with moves all over the range and, more finely, nearby, and with the corners of balls;
    from the worst of them it descends (:mod:`stoic.integrations.optuna.surroundings`). What the
    search misses is not accounted for.

    Parameters
    ----------
    learner:
        Its posterior is used; it maximises ``sign`` times the value.
    encoding, aim, sign, params:
        The space, the objective, -1 where the user minimises, and the setting.
    threshold:
        Of a satisficing aim, in the learner's units; None for a stable one.
    reached:
        See :class:`Certified`; in the user's units.
    constraints:
        Probability that all of them hold.
    """
    distance, band = aim.distance(encoding), Band(learner.posterior, WIDTH)
    around = Surroundings.of(encoding.box, encoding.encode(params), distance)
    searched = Searched.of(around, band, _MOVES, np.linspace(0.0, _NEARBY, _CORNERED + 1)[1:])
    if threshold is None:
        radius = 1.0 if aim.radius is None else aim.radius
        searched, least = _worst(searched, around, band, radius)
        held = Certificate(sign * least, radius, math.inf, closed=True)
        fails = radius
    else:
        radius, fails, searched = searched.radius(around, band, threshold)
    # Far enough that the curve is seen to cross the threshold
    shown = max(_NEARBY, 1.5 * fails if math.isfinite(fails) else _NEARBY)
    sizes = _sizes(min(shown, around.farthest))
    searched = searched.within(around, band, sizes[1:])
    points, lower = searched.points, searched.lower
    if threshold is not None:
        searched = searched.within(around, band, np.geomspace(sizes[1], around.farthest, _FAR))
        power = math.inf if aim.p is None else aim.p
        found = certify(searched.lower, threshold, searched.points, 0, distance, p=power)
        # The last search may have found a lower point, nearer than those before
        held = Certificate(sign * threshold, min(radius, found.radius), found.fragility, power)
    mean, std = learner.posterior.predict(points)
    curve = Curve(
        sizes,
        sign * _at(sizes, *guaranteed(lower, points, 0, distance)),
        sign * _at(sizes, *guaranteed(mean, points, 0, distance)),
        sign * _at(sizes, *guaranteed(mean + WIDTH * std, points, 0, distance)),
    )
    limit = None
    if constraints is not None:
        limit = _radius_of_constraints(around, band, points, constraints)
    return Certified(aim, sign < 0.0, dict(params), held, reached, curve, encoding, limit)


def sturdiest(
    learner: Learner | Balanced,
    encoding: Encoding,
    aim: RobustObjective,
    settings: Array,
    threshold: float | None,
    constraints: Constraints | None = None,
) -> int:
    """Return the index of the one of ``settings`` (k, d) that has the best certificate.

    A policy compares settings by moves that are the same for all of them, and coarse. Here each has
    moves of its own, the more the fewer settings may have a certificate. Where none reaches the
    threshold it is the one of the best worst value within a tolerance, or the aim's radius.
    ``constraints`` count as the value does: the distance is that within which both hold. Where a
    setting has another certificate than a distance they hold within a tolerance, if they do at any.
    """
    distance, band = aim.distance(encoding), Band(learner.posterior, WIDTH)
    own, _ = band.bounds(settings)
    eligible = np.argsort(-own, kind="stable")
    if threshold is not None and own.max() >= threshold:
        eligible = eligible[own[eligible] >= threshold]
    else:
        threshold = None
    # Of many the best by their own bounds, so that each has _FEWEST moves or more
    eligible = eligible[: _COMPARED // (2 * _FEWEST)]
    n = 1 << int(math.log2(_COMPARED / (2 * len(eligible))))  # balanced, if a power of two
    radius = 1.0 if aim.radius is None else aim.radius
    corners = np.array([radius]) if threshold is None else np.array([0.5, 1.0, 2.0, _NEARBY])
    power = math.inf if aim.p is None else aim.p
    by_distance = threshold is not None and power == math.inf
    moves, limits = [], []
    for x in settings[eligible]:
        around = Surroundings.of(encoding.box, x, distance)
        searched = Searched.of(around, band, min(n, _MOVES), corners)
        moves.append((around, searched))
        if constraints is not None:
            held = constraints.log(searched.points)
            limits.append(_first_broken(around.far(searched.points), held))
    within = np.array(limits) if limits else np.full(len(moves), math.inf)
    rows = np.arange(len(moves))
    if not by_distance:
        hold = within > reach(radius)
        rows = rows[hold] if hold.any() else rows
        within[:] = math.inf

    def worth(around: Surroundings, searched: Searched) -> float:
        points, lower = searched.points, searched.lower
        if threshold is None:
            return float(worst_value(lower, radius, points, distance, np.array([0]))[0])
        found = certify(lower, threshold, points, 0, distance, p=power)
        return found.radius if by_distance else -found.fragility

    # Coarsely first; then the best few are searched, which shrinks their certificates.
    coarse = [-min(worth(*moves[i]), within[i]) for i in rows]
    finalists = rows[np.argsort(coarse, kind="stable")[:_FINALISTS]]
    exact = []
    for i in finalists:
        around, searched = moves[i]
        if threshold is None:
            exact.append(_worst(searched, around, band, radius)[1])
        else:
            far, _, searched = searched.radius(around, band, threshold)
            exact.append(min(far, within[i]) if by_distance else worth(around, searched))
    return int(eligible[finalists[np.argmax(exact)]])


def _first_broken(far: Array, held: Array) -> float:
    """Return the least distance of ``far`` (m,) where log P(all constraints hold) is too low."""
    return float(far[held < math.log(SURE)].min(initial=math.inf))


def _radius_of_constraints(
    around: Surroundings, band: Band, points: Array, constraints: Constraints
) -> float:
    """Find how far all constraints hold, at ``points`` (m, d) and corners of balls."""
    held = constraints.log(points)
    worst = points[np.argsort(held, kind="stable")[:_LIMITS]]
    first = _first_broken(around.far(points), held)
    if first == 0.0:
        return 0.0
    radii = np.linspace(0.0, min(first, around.farthest), _LIMITS + 1)
    corners = around.corners(radii[1:], around.sides(_LIMITS, band, worst))
    violated = constraints.log(corners) < math.log(SURE)
    nearest = float(around.far(corners)[violated].min(initial=first))
    # The largest of these that is surely nearer than what was found
    return nearest if nearest == math.inf else float(radii[radii < nearest].max(initial=0.0))


def _worst(
    searched: Searched, around: Surroundings, band: Band, radius: float
) -> tuple[Searched, float]:
    """Find the least lower bound within a radius; return it after all points evaluated."""
    searched = searched.within(around, band, np.array([radius]))
    inside = around.far(searched.points) <= reach(radius)
    return searched, float(searched.lower[inside].min())


def _sizes(last: float) -> Array:
    """Distances of a curve from 0 to the last one, with those that a table has."""
    sizes = np.linspace(0.0, last, _SIZES)
    round_ones = [r for r in SHOWN if r < last and np.abs(sizes - r).min() > 1e-9]
    return np.sort(np.append(sizes, round_ones))


def _at(sizes: Array, far: Array, worst: Array) -> Array:
    """Evaluate a step function, known at ``far`` (increasing, from 0 on), at other sizes."""
    # A point at this very distance counts, also where rounding put it beyond
    return np.asarray(worst[np.searchsorted(far, sizes * (1.0 + 1e-9), side="right") - 1])


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
