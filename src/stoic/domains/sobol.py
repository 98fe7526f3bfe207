"""Scrambled Sobol sequences.

SciPy's statistics, which have them, take half a second to import: that is done where one is drawn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from stoic.data import Array
from stoic.domains.base import Random

if TYPE_CHECKING:
    from scipy.stats import qmc


def sobol(dim: int, rng: Random) -> qmc.Sobol:
    """Return a scrambled Sobol sequence of [0, 1)^dim."""
    from scipy.stats import qmc

    return qmc.Sobol(dim, rng=rng)


@lru_cache(maxsize=64)
def sobol_points(dim: int, n: int) -> Array:
    """Draw the first ``n`` (a power of two) scrambled Sobol points of [0, 1)^dim, with seed 0."""
    points: Array = sobol(dim, np.random.default_rng(0)).random(n)
    points.flags.writeable = False  # cached: all calls share it
    return points
