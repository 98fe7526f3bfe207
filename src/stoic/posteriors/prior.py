"""The Gaussian process prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from stoic.kernels import Kernel


@dataclass(frozen=True, eq=False, slots=True)
class Prior:
    """f ~ GP(mean, kernel), observed with Gaussian noise.

    Parameters
    ----------
    kernel:
        Covariance of f, in squared units of f.
    noise:
        Noise *variance* of an observation that has none of its own; positive.
    mean:
        Constant prior mean, in units of f.

    Raises
    ------
    ValueError
        If the noise is not a positive number or the mean not a finite one.
    """

    kernel: Kernel
    noise: float
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not (isinstance(self.noise, Real) and 0.0 < self.noise < math.inf):
            raise ValueError(f"Prior needs a positive noise variance, got {self.noise!r}.")
        if not (isinstance(self.mean, Real) and math.isfinite(self.mean)):
            raise ValueError(f"Prior needs a finite mean, got {self.mean!r}.")
