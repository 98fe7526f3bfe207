"""Bounded minimisation of a smooth function, by L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import optimize

from stoic.data import Array

_EPS = float(np.finfo(float).eps)


def descend(
    function: Callable[[Array], tuple[float, Array]],
    start: Array,
    lower: Array,
    upper: Array,
    iterations: int,
    gain: float,
    slope: float,
) -> tuple[Array, float]:
    """Return a local minimum in a box, and its value, by L-BFGS-B [Byrd1995]_.

    Parameters
    ----------
    function:
        Value and gradient (p,) at a point (p,).
    start:
        Where it begins, shape (p,).
    lower, upper:
        Corners of the box, shape (p,).
    iterations:
        Bound on their number.
    gain:
        It ends where an iteration gains less, in units of the value or of 1, whichever is more.
    slope:
        It ends where no entry of the projected gradient is larger.
    """
    # Not ``optimize.minimize``, the same code behind 0.1 ms of checks a call
    x, value, _ = optimize.fmin_l_bfgs_b(
        function,
        start,
        bounds=list(zip(lower.tolist(), upper.tolist(), strict=True)),
        factr=gain / _EPS,  # a power of two, so that SciPy gets ``gain`` back to the bit
        pgtol=slope,
        maxiter=iterations,
    )
    return x, float(value)
