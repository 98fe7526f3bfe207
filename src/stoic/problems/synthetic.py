"""Smooth test functions with known maxima.

All are *maximised*: functions known from minimisation have their sign flipped. They live on
different boxes, most of them neither the unit cube nor centred at the origin, and each has exactly
one maximiser, so that "the recommended point did not move" is a meaningful thing to test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from stoic.data import Array
from stoic.domains import Box, Domain, Finite
from stoic.problems.base import Optimum, check_rows

Formula = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Synthetic:
    """Formula on a domain, with its maximum.

    Attributes
    ----------
    name:
        A short name for tables.
    domain:
        A ``Box``, or a ``Finite`` set of points.
    formula:
        f: (m, d) to (m,).
    optimum:
        The maximum over ``domain``.
    """

    name: str
    domain: Domain
    formula: Formula
    optimum: Optimum

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,); ``ValueError`` for another shape."""
        return self.formula(check_rows(x, self.domain.dim, self.name))

    def on(self, points: Finite) -> Synthetic:
        """Restrict it to a finite domain; the optimum is its best row (ties: the lowest)."""
        optimum = Optimum.among(points.points, self.value(points.points))
        return replace(self, domain=points, optimum=optimum)

    def on_grid(self, n: int) -> Synthetic:
        """Restrict it to a grid, ``n`` points a side; ``ValueError`` unless on a ``Box``."""
        if not isinstance(self.domain, Box):
            raise ValueError(f"{self.name} is already on a finite domain; make a grid of its Box.")
        return self.on(self.domain.grid(n))


def forrester() -> Synthetic:
    """(6x - 2)^2 sin(12x - 4) on [0, 1], maximised at the edge, where the slope is steep.

    [Forrester2008]_; the first problem of [Ezzerg2026]_, which maximises it.
    """
    return _on_box("forrester", [0.0], [1.0], _forrester, [1.0], 15.829731945974109)


def forrester_negative() -> Synthetic:
    """Negative of ``forrester``, whose usual form is minimised.

    The maximum is inside, with a wide plateau of second-best values and a deep well at x = 1.
    """
    return _on_box(
        "forrester-negative", [0.0], [1.0], _forrester_negative, [0.75724876], 6.0207400557
    )


def two_sines() -> Synthetic:
    """-sin(x) - sin(10 x / 3) on [2.7, 7.5]: several peaks of similar height."""
    return _on_box("two-sines", [2.7], [7.5], _two_sines, [5.14573529], 1.8995993491)


def branin_tilted() -> Synthetic:
    """Branin's function plus 5 x_1, negated, on [-5, 10] x [0, 15] [Forrester2008]_.

    The tilt leaves one of the three equal maxima the highest.
    """
    x = [-3.68928527, 13.6299877]
    return _on_box("branin-tilted", [-5.0, 0.0], [10.0, 15.0], _branin_tilted, x, 16.6440215708)


def camel() -> Synthetic:
    """Half of the six-hump camel, negated, on [-1.5, 2] x [-1.2, 0].

    The function is symmetric about the origin; this half holds one of the two equal maxima.
    """
    x = [0.0898420084, -0.712656402]
    return _on_box("camel", [-1.5, -1.2], [2.0, 0.0], _camel, x, 1.0316284535)


def mccormick() -> Synthetic:
    """McCormick's function, negated, on [-1.5, 4] x [-3, 4]: a diagonal valley with two ends."""
    x = [-0.547197546, -1.54719755]
    return _on_box("mccormick", [-1.5, -3.0], [4.0, 4.0], _mccormick, x, 1.913222955)


def hosaki() -> Synthetic:
    """Hosaki's function, negated, on [0, 5] x [0, 6]: two peaks, one twice the other."""
    return _on_box("hosaki", [0.0, 0.0], [5.0, 6.0], _hosaki, [4.0, 2.0], 2.3458115761)


def peaks() -> Synthetic:
    """Three Gaussian hills and two hollows on [-3, 3]^2."""
    x = [-0.00931758, 1.58136796]
    return _on_box("peaks", [-3.0, -3.0], [3.0, 3.0], _peaks, x, 8.1062135894)


def hartmann3() -> Synthetic:
    """Hartmann's sum of four Gaussian hills, on [0, 1]^3."""
    x = [0.114588878, 0.555648894, 0.852546985]
    return _on_box("hartmann3", [0.0] * 3, [1.0] * 3, _hartmann3, x, 3.8627797873)


def styblinski_tang3() -> Synthetic:
    """Styblinski-Tang function, negated, on [-5, 5]^3: eight peaks, one of them highest."""
    x = [-2.90353403] * 3
    return _on_box("styblinski-tang3", [-5.0] * 3, [5.0] * 3, _styblinski_tang, x, 117.498497111)


# The ten on which robustness is tested: d = 1 (three), 2 (five) and 3 (two).
SMOOTH: tuple[Callable[[], Synthetic], ...] = (
    forrester, forrester_negative, two_sines, branin_tilted, camel, mccormick, hosaki, peaks,
    hartmann3, styblinski_tang3,
)  # fmt: skip


def _on_box(
    name: str,
    lower: list[float],
    upper: list[float],
    formula: Formula,
    x: list[float],
    value: float,
) -> Synthetic:
    box = Box(np.array(lower), np.array(upper))
    return Synthetic(name, box, formula, Optimum(np.array(x), value))


def _forrester(x: Array) -> Array:
    u = x[:, 0]
    return np.asarray((6 * u - 2) ** 2 * np.sin(12 * u - 4))


def _forrester_negative(x: Array) -> Array:
    return -_forrester(x)


def _two_sines(x: Array) -> Array:
    u = x[:, 0]
    return np.asarray(-np.sin(u) - np.sin(10 * u / 3))


def _branin_tilted(x: Array) -> Array:
    u, v = x.T
    parabola = v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6
    branin = parabola**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10
    return np.asarray(-(branin + 5 * u))


def _camel(x: Array) -> Array:
    u, v = x.T
    return np.asarray(-((4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2))


def _mccormick(x: Array) -> Array:
    u, v = x.T
    return np.asarray(-(np.sin(u + v) + (u - v) ** 2 - 1.5 * u + 2.5 * v + 1))


def _hosaki(x: Array) -> Array:
    u, v = x.T
    quartic = 1 - 8 * u + 7 * u**2 - 7 / 3 * u**3 + u**4 / 4
    return np.asarray(-quartic * v**2 * np.exp(-v))


def _peaks(x: Array) -> Array:
    u, v = x.T
    hill = 3 * (1 - u) ** 2 * np.exp(-(u**2) - (v + 1) ** 2)
    ridge = 10 * (u / 5 - u**3 - v**5) * np.exp(-(u**2) - v**2)
    return np.asarray(hill - ridge - np.exp(-((u + 1) ** 2) - v**2) / 3)


_HARTMANN_HEIGHT = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_SHARPNESS = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_HARTMANN_CENTRE = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)


def _hartmann3(x: Array) -> Array:
    distance = ((x[:, None, :] - _HARTMANN_CENTRE) ** 2 * _HARTMANN_SHARPNESS).sum(axis=2)
    return np.asarray(np.exp(-distance) @ _HARTMANN_HEIGHT)


def _styblinski_tang(x: Array) -> Array:
    return np.asarray(-0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1))
