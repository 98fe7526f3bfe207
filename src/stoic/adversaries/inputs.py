"""Input perturbations between choice and execution [Bogunovic2018]_, [Saday2025]_."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from stoic.confidence.base import Band
from stoic.data import Array, Integers
from stoic.distances import Distance, reach
from stoic.domains import Box, Domain, Finite
from stoic.satisficing import check_radius

_TRIES = 1 << 16  # draws for a point of a ball that is in the box


class Move(NamedTuple):
    """Input of a perturbation: a choice before its execution.

    Attributes
    ----------
    x:
        The chosen point, shape (d,); not to be altered.
    domain:
        The domain, which must contain the executed point.
    t:
        Number of the round, from 1.
    rng:
        A random generator of its own.
    values:
        f on all rows of a finite domain, shape (N,), noiseless; computed on demand.
    band:
        The learner's confidence band of f; likewise.
    """

    x: Array
    domain: Domain
    t: int
    rng: np.random.Generator
    values: Callable[[], Array]
    band: Callable[[], Band]


class Perturbation(ABC):
    """Change of an input between choice and execution.

    Attributes
    ----------
    needs_finite:
        True if it works on finite domains only. The environment then refuses a ``Box``.
    needs_band:
        True if it uses the learner's band, which must then be given.
    """

    __slots__ = ()
    needs_finite: ClassVar[bool] = False
    needs_band: ClassVar[bool] = False

    @abstractmethod
    def move(self, seen: Move) -> Array:
        """Return the executed point, shape (d,), in the domain."""


@dataclass(frozen=True, slots=True)
class Stay(Perturbation):
    """Neutral perturbation: the chosen point is executed."""

    def move(self, seen: Move) -> Array:
        return seen.x


@dataclass(frozen=True, slots=True)
class _InBall(Perturbation):
    """Move in a ball around the chosen point.

    Parameters
    ----------
    radius:
        eps.
    distance:
        Distance of the ball. On a ``Box``, one whose metric is a name.
    """

    radius: float
    distance: Distance = field(default_factory=Distance)

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def rows(self, seen: Move) -> tuple[Finite, Integers]:
        """Return the finite domain, and its rows in the ball."""
        assert isinstance(seen.domain, Finite)  # the environment refuses others
        points = seen.domain.points
        return seen.domain, self.distance.ball(seen.x, points, self.radius)


@dataclass(frozen=True, slots=True)
class RandomMove(_InBall):
    """Uniform move in the ball of a ``radius`` eps: *random* of [Saday2025]_."""

    def move(self, seen: Move) -> Array:
        if isinstance(seen.domain, Finite):
            domain, ball = self.rows(seen)
            return np.asarray(domain.points[seen.rng.choice(ball)])
        return self._in_the_box(seen)

    def _in_the_box(self, seen: Move) -> Array:
        """Sample the ball by rejection, from the cube around it, cut to the box."""
        box, unit = seen.domain, np.broadcast_to(self.distance.tolerance, seen.x.shape)
        if not isinstance(box, Box) or not self.distance.indexed:
            raise ValueError(
                f"On {box!r} inputs move in a ball of the euclidean, cityblock or chebyshev metric,"
                f" got {self.distance.metric!r}: use one of these, or the problem on a grid."
            )
        low = np.maximum(box.lower, seen.x - self.radius * unit)
        high = np.minimum(box.upper, seen.x + self.radius * unit)
        for _ in range(_TRIES // 256):
            tries = box.snap(seen.rng.uniform(low, high, size=(256, box.dim)))
            inside = self.distance(seen.x[None], tries)[0] <= reach(self.radius)
            if inside.any():
                # The first of those inside: a batch only saves calls
                return np.asarray(tries[np.argmax(inside)])
        raise ValueError(
            f"None of {_TRIES} points near {seen.x.tolist()} is within {self.radius:g}: the ball "
            f"has too many dimensions ({box.dim}) to be hit. Use the chebyshev metric."
        )


@dataclass(frozen=True, slots=True)
class LowestBound(_InBall):
    """Move to the least lower confidence bound of the learner: *LCB* of [Saday2025]_."""

    needs_finite = True
    needs_band = True

    def move(self, seen: Move) -> Array:
        domain, ball = self.rows(seen)
        lower, _ = seen.band().bounds(domain.points)
        return np.asarray(domain.points[ball[np.argmin(lower[ball])]])


@dataclass(frozen=True, slots=True)
class WorstCase(_InBall):
    """Move to the least f: the adversary knows f."""

    needs_finite = True

    def move(self, seen: Move) -> Array:
        domain, ball = self.rows(seen)
        return np.asarray(domain.points[ball[np.argmin(seen.values()[ball])]])


@dataclass(frozen=True, slots=True, eq=False)
class GaussianMove(Perturbation):
    """x + N(0, sd^2), then the nearest point of the domain.

    Parameters
    ----------
    sd:
        Standard deviation, one number or one per coordinate, shape (d,), not negative. A
        coordinate with 0 is never moved; nearest is measured in units of the others. A ``Box``
        clips instead, each coordinate on its own.
    """

    sd: ArrayLike
    distance: Distance = field(init=False)

    def __post_init__(self) -> None:
        sd = np.asarray(self.sd, dtype=float)
        if sd.ndim > 1 or not (np.isfinite(sd) & (sd >= 0.0)).all() or not (sd > 0.0).any():
            raise ValueError(
                "A standard deviation is a finite number >= 0, one or one per coordinate and not "
                f"all 0, got {self.sd!r}."
            )
        object.__setattr__(self, "distance", Distance(tolerance=sd))

    def move(self, seen: Move) -> Array:
        sd = np.asarray(self.distance.tolerance)
        moved = seen.x + sd * seen.rng.standard_normal(seen.x.shape)
        if isinstance(seen.domain, Finite):
            points = seen.domain.points
            # Coordinates with sd 0 must be equal, so the input's own row is always possible.
            return np.asarray(points[self.distance(moved[None], points)[0].argmin()])
        assert isinstance(seen.domain, Box)
        return np.asarray(seen.domain.snap(moved[None])[0])
