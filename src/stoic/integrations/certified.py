"""How far a setting may be moved until its value may be too bad, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np

from stoic.data import Array
from stoic.distances import Distance
from stoic.domains import Box
from stoic.integrations.aim import WIDTH, Aim
from stoic.integrations.spaces import Coordinate, Encoding
from stoic.learner import Learner
from stoic.satisficing import Certificate, certify, guaranteed, worst_value

_MOVES = 2048  # looked at all over the range, and as many again nearby
_NEARBY = 4.0  # tolerances
_SIZES = 121  # of a curve
_COMPARED = 1 << 16  # moves of all settings together, where they are compared
_FEWEST = 64  # of one setting


@dataclass(frozen=True, eq=False)
class Curve:
    """What is left of a value when the setting is moved: the worst within a distance.

    Attributes
    ----------
    sizes:
        Distances in tolerances, shape (m,), from 0 on.
    pessimistic, expected, optimistic:
        The worst value at most that far away, each (m,), by the bound that is worse, the posterior
        mean, and the bound that is better.
    """

    sizes: Array
    pessimistic: Array
    expected: Array
    optimistic: Array


@dataclass(frozen=True, eq=False)
class Certified:
    """What holds about a setting when it is moved, as often as the model's band does.

    Attributes
    ----------
    aim:
        What is wanted; its tolerances are the unit of distances.
    minimise:
        Whether low values are good.
    params:
        The setting.
    certificate:
        Its numbers, but for a ``value`` in the user's units: the threshold, or the worst value.
    reached:
        The best value that is possible anywhere, by the bound that is better, if that is worse than
        the threshold; else None.
    curve:
        Value against distance.
    encoding:
        How distances are told in the parameters' own units.
    """

    aim: Aim
    minimise: bool
    params: Mapping[str, Any]
    certificate: Certificate
    reached: float | None
    curve: Curve
    encoding: Encoding

    @property
    def within(self) -> dict[str, float]:
        """How far each parameter that moves may do so: a difference, or a factor if log-scaled.

        Empty if nothing is promised, infinite if it may go anywhere.
        """
        radius = self.certificate.radius
        if radius == -math.inf:
            return {}
        return {name: part.moved(radius, size) for name, part, size in self._moving()}

    def sentence(self) -> str:
        """The promise in words, numbers rounded to the safe side."""
        held = self.certificate
        value = self._said(held.value)
        surely = f"if the model is right within {WIDTH:g} standard deviations"
        if held.radius == -math.inf:
            return f"nothing: value {self._worse} {value} is possible even without any move"
        names = [name for name, _, _ in self._moving()]
        if held.radius == math.inf:
            where = f"wherever {_and(names)} {'is' if len(names) == 1 else 'are'} in range"
            return f"value {self._better} {value} {where}, {surely}"
        near = _and([self._near(*move) for move in self._moving()])
        said = f"value {self._better} {value} as long as {near}"
        if 0.0 < held.fragility < math.inf and held.p < math.inf:
            sign = "+" if self.minimise else "-"
            loss = f"{rounded(held.fragility, ROUND_CEILING, 3)} d"
            loss = loss if held.p == 1.0 else f"({loss})^{held.p:g}"
            said += f", and {self._better} {value} {sign} {loss} at a distance of d tolerances"
        return f"{said}, {surely}"

    def unreachable(self) -> str | None:
        """That the threshold is out of reach, if it is."""
        if self.reached is None:
            return None
        side = "below" if self.minimise else "above"
        return (
            f"{self.certificate.value:.6g} is out of reach: no setting is believed to have a value "
            f"{side} {self.reached:.6g}"
        )

    @property
    def _better(self) -> str:
        return "<=" if self.minimise else ">="

    @property
    def _worse(self) -> str:
        return ">" if self.minimise else "<"

    def _said(self, value: float) -> str:
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

    def _near(self, name: str, part: Coordinate, size: float) -> str:
        moved = part.moved(self.certificate.radius, size)
        far, here = rounded(moved, ROUND_FLOOR, 3), f"{self.params[name]:.6g}"
        if part.distribution.log:
            if self.certificate.closed:
                return f"{name} is within a factor of {far} of {here}"
            return f"{name} is less than a factor of {far} from {here}"
        if self.certificate.closed:
            return f"{name} is within {far} of {here}"
        return f"{name} is closer than {far} to {here}"


def certified(
    learner: Learner,
    encoding: Encoding,
    aim: Aim,
    sign: float,
    params: Mapping[str, Any],
    threshold: float | None,
    reached: float | None,
) -> Certified:
    """What holds about a setting, from moves all over the range and, more finely, nearby.

    Parameters
    ----------
    learner:
        Whose posterior is asked; it maximises ``sign`` times the value.
    encoding, aim, sign, params:
        The space, what is wanted, -1 where the user minimises, and the setting.
    threshold:
        Of a satisficing aim, in the learner's units; None for a stable one.
    reached:
        See :class:`Certified`; in the user's units.
    """
    distance = aim.distance(encoding)
    points = _moves(encoding, encoding.encode(params), distance, _MOVES)
    mean, std = learner.posterior.predict(points)
    lower, upper = mean - WIDTH * std, mean + WIDTH * std
    if threshold is None:
        radius = 1.0 if aim.radius is None else aim.radius
        least = float(worst_value(lower, radius, points, distance, np.array([0]))[0])
        held = Certificate(sign * least, radius, math.inf, closed=True)
    else:
        power = math.inf if aim.p is None else aim.p
        found = certify(lower, threshold, points, 0, distance, p=power)
        held = Certificate(sign * threshold, found.radius, found.fragility, power)
    far, pessimistic = guaranteed(lower, points, 0, distance)
    shown = max(_NEARBY, 1.5 * held.radius if math.isfinite(held.radius) else _NEARBY)
    sizes = np.linspace(0.0, min(shown, float(far[-1])) or 1.0, _SIZES)
    curve = Curve(
        sizes,
        sign * _at(sizes, far, pessimistic),
        sign * _at(sizes, *guaranteed(mean, points, 0, distance)),
        sign * _at(sizes, *guaranteed(upper, points, 0, distance)),
    )
    return Certified(aim, sign < 0.0, dict(params), held, reached, curve, encoding)


def sturdiest(
    learner: Learner, encoding: Encoding, aim: Aim, settings: Array, threshold: float | None
) -> int:
    """Which of the ``settings`` (k, d) has the best certificate.

    A policy compares settings by moves that are the same for all of them, and coarse. Here each has
    moves of its own, the more the fewer settings have anything to promise.
    """
    distance = aim.distance(encoding)
    own = lower_bound(learner, settings)
    hopeful = np.argsort(-own, kind="stable")
    if threshold is not None:
        hopeful = np.flatnonzero(own >= threshold)
        if not len(hopeful):
            return int(np.argmax(own))
    hopeful = hopeful[: _COMPARED // (2 * _FEWEST)]
    n = 1 << int(math.log2(_COMPARED / (2 * len(hopeful))))  # balanced, if a power of two
    worth = []
    for x in settings[hopeful]:
        points = _moves(encoding, x, distance, min(n, _MOVES))
        lower = lower_bound(learner, points)
        if threshold is None:
            radius = 1.0 if aim.radius is None else aim.radius
            worth.append(worst_value(lower, radius, points, distance, np.array([0]))[0])
        elif aim.p is None or aim.p == math.inf:
            worth.append(certify(lower, threshold, points, 0, distance).radius)
        else:
            worth.append(-certify(lower, threshold, points, 0, distance, p=aim.p).fragility)
    return int(hopeful[np.argmax(worth)])


def lower_bound(learner: Learner, x: Array) -> Array:
    """The lower bound of the band that certificates are about, at ``x`` (m, d), shape (m,)."""
    mean, std = learner.posterior.predict(x)
    return mean - WIDTH * std


def _moves(encoding: Encoding, x: Array, distance: Distance, n: int) -> Array:
    """The setting ``x`` (d,), which comes first, and where it may be moved to, shape (m, d)."""
    box = encoding.box
    moving, _, unit = distance.coordinates(box.dim)
    span = Box(box.lower[moving], box.upper[moving])
    far = span.spread(n, np.random.default_rng(0))
    low = np.maximum(span.lower, x[moving] - _NEARBY * unit)
    high = np.minimum(span.upper, x[moving] + _NEARBY * unit)
    moves = np.concatenate([[low, high, span.lower, span.upper], low + (high - low) * far, far])
    points = np.tile(x, (1 + len(moves), 1))
    points[1:, moving] = moves
    points[1:, moving] = box.snap(points[1:])[:, moving]
    return points


def _at(sizes: Array, far: Array, worst: Array) -> Array:
    """A step function, known at ``far`` (increasing, from 0 on), at other sizes."""
    return np.asarray(worst[np.searchsorted(far, sizes * (1.0 + 1e-9), side="right") - 1])


def rounded(x: float, rounding: str, digits: int) -> str:
    """A number with few digits, rounded to the safe side."""
    return f"{float(Context(prec=digits, rounding=rounding).create_decimal(repr(float(x)))):g}"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
