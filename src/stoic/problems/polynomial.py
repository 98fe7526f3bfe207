"""Polynomial whose peak is narrow and whose second hill is broad [Bogunovic2018]_."""

from __future__ import annotations

import numpy as np

from stoic.data import Array
from stoic.domains import Box
from stoic.problems.base import Optimum
from stoic.problems.synthetic import Synthetic


def polynomial() -> Synthetic:
    """Polynomial of degree 6 of [Bogunovic2018]_, on [-0.95, 3.2] x [-0.45, 4.4].

    From 20.8 at its peak, (2.82, 4.01), it falls to -22 within 0.5: the best place for an input
    that may be moved by so much is elsewhere, near (-0.2, 0.28), where it stays above -4.4.
    """
    box = Box(np.array([-0.95, -0.45]), np.array([3.2, 4.4]))
    return Synthetic("polynomial", box, _formula, Optimum(np.array(_PEAK), _HEIGHT))


_PEAK, _HEIGHT = [2.81527464, 4.00889403], 20.8288548277


def _formula(points: Array) -> Array:
    x, y = points[:, 0], points[:, 1]
    alone = np.polyval([-2.0, 12.2, -21.2, 6.4, 4.7, -6.2, 0.0], x)
    alone = alone + np.polyval([-1.0, 11.0, -43.3, 74.8, -56.9, 10.0, 0.0], y)
    return np.asarray(alone + 4.1 * x * y + 0.1 * (x * y) ** 2 - 0.4 * x * y * (x + y))
