"""Interfaces of a domain and of an acquisition function on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from stoic.data import Array, Booleans, Integers, numbers

if TYPE_CHECKING:
    from stoic.domains.box import Box
    from stoic.domains.finite import Among

Random = np.random.Generator

TOLERANCE = 1e-10  # of a height, where an ascent ends

# Of the domain's widths, in every coordinate: inputs that count as the same place, and as the same
# but for rounding
PLACE = 0.01
SAME = 1e-6

_WIDTHS = 1e-100, 1e100  # of a coordinate
_SINGLE, _MOST = 6e-8, 1e-5  # rounding to single precision; of the widths at most


class Acquisition(Protocol):
    """Acquisition function: a function to maximise over a domain."""

    def __call__(self, x: Array) -> Array:
        """Values at ``x`` (m, d), shape (m,)."""

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """Values at ``x`` (m, d), shape (m,), and gradients, shape (m, d)."""


class Peak(NamedTuple):
    """The highest point found: ``x`` (d,), its row ``arm`` if any, and the ``height`` there."""

    x: Array
    arm: int | None
    height: float


@runtime_checkable
class Domain(Protocol):
    """A set of inputs.

    Attributes
    ----------
    dim:
        Number of coordinates d.
    finite:
        True if it is a list of points.
    widths:
        Extent in each coordinate, shape (d,), positive: the natural unit of lengthscales.
    """

    @property
    def dim(self) -> int: ...

    @property
    def finite(self) -> bool: ...

    @property
    def widths(self) -> Array: ...

    def locate(self, x: Array) -> Integers | None:
        """Check that ``x`` (n, d) is in the domain; row numbers (n,) if it is finite.

        Raises ``ValueError`` for nan, infinities, a wrong dimension, a point outside.
        """

    def having(self, values: Mapping[int, float]) -> Box | Among:
        """Fix these coordinates at these values: the context of a round.

        Raises ``ValueError`` if there is no such point.
        """

    def contains(self, x: Array) -> Booleans:
        """Membership of points (n, d) of the whole domain in this part of it, shape (n,)."""

    def maximise(
        self, surface: Acquisition, rng: Random, near: Array, tolerance: float = TOLERANCE
    ) -> Peak:
        """Maximise ``surface``; ``near`` (k, d) are promising starting points.

        An ascent ends where a step gains less than ``tolerance`` of the height, or of 1 where it is
        less.
        """

    def sample(self, n: int, rng: Random) -> Array:
        """``n`` points drawn uniformly, shape (n, d)."""

    def spread(self, n: int, rng: Random) -> Array:
        """``n`` points that cover the domain evenly, shape (n, d)."""


def check_columns(values: Mapping[int, float], dim: int) -> None:
    """Refuse coordinate numbers that do not exist, and values that are not finite."""
    if not isinstance(values, Mapping):
        raise ValueError(
            "Coordinates are given with their values, as {2: 0.5} for the third one, "
            f"got {values!r}."
        )
    for k, value in values.items():
        if isinstance(k, bool) or not (isinstance(k, int | np.integer) and 0 <= k < dim):
            raise ValueError(f"The coordinates are numbered 0 to {dim - 1}, got {k!r}.")
        one = not isinstance(value, str) and np.ndim(value) == 0
        if not one or not np.isfinite(numbers(value, f"Coordinate {k}")):
            raise ValueError(f"Coordinate {k} must be given one finite value, got {value!r}.")


def rounding(size: ArrayLike, widths: ArrayLike) -> Array:
    """Return the largest error of numbers of a size that another program has rounded.

    To single precision, as far as that is little beside the widths.
    """
    most = _MOST * np.asarray(widths)
    return 1e-9 * np.asarray(widths) + np.minimum(_SINGLE * np.abs(size), most)


def having_value(offered: Array, value: float, width: float) -> tuple[Booleans, float]:
    """Return which of the ``offered`` values (n,) are ``value`` but for rounding, and the nearest.

    Rounding may reach several of them: then it is the nearest.
    """
    nearest = float(offered[np.argmin(np.abs(offered - value))])
    near = abs(nearest - value) <= rounding(value, width)
    return near & (np.abs(offered - nearest) <= 1e-9 * width), nearest


def check_widths(widths: Array) -> Array:
    """Return the widths (d,) if squares of them and of their inverses are finite."""
    low, high = _WIDTHS
    fitting = (widths >= low) & (widths <= high)
    if not fitting.all():
        k = int(np.argmin(fitting))
        raise ValueError(
            f"A domain needs widths between {low:g} and {high:g}, got {widths[k]:g} in coordinate "
            f"{k}: use another unit for it."
        )
    return widths


def as_points(x: object, dim: int) -> Array:
    """``x`` as an array of points, shape (n, dim); one point may come as (dim,).

    Raises
    ------
    ValueError
        If the dimension is wrong, or a coordinate is nan or infinite.
    """
    points = np.array(numbers(x, "An input"))
    if points.ndim < 2:
        points = points.reshape(1, -1)
    if points.ndim != 2 or points.shape[1] != dim:
        shape = np.asarray(x).shape
        got = shape[1] if len(shape) == 2 else f"an array of shape {shape}"
        raise ValueError(
            f"An input of this domain has {dim} coordinate{'s' * (dim != 1)}, got {got}: pass "
            f"shape ({dim},) or (n, {dim})."
        )
    if not np.all(np.isfinite(points)):
        row = int(np.argmax(~np.isfinite(points).all(axis=1)))
        raise ValueError(
            f"An input must be finite, got {points[row].tolist()}: nan and infinity are data in a "
            "result, but an error in an input."
        )
    return points
