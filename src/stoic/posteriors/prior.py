"""The Gaussian process prior."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        If the noise is not a positive number or the mean is not finite.
    """

    kernel: Kernel
    noise: float
    mean: float = 0.0

    def __post_init__(self) -> None:
        if not (self.noise > 0.0 and math.isfinite(self.noise)):
            raise ValueError(f"Prior needs a positive noise variance, got {self.noise!r}.")
        if not math.isfinite(self.mean):
            raise ValueError(f"Prior needs a finite mean, got {self.mean!r}.")
