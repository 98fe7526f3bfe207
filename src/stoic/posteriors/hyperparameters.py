"""Hyperparameters of a prior as plain numbers."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace

import numpy as np

from stoic.kernels import Scaled, Stationary
from stoic.posteriors.prior import Prior
from stoic.sources import Informed


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of a scaled stationary kernel, with or without sources, and of the noise.

    Attributes
    ----------
    lengthscales:
        One for each coordinate, or one for all, positive.
    variance, noise:
        Of f, and of an observation, positive.
    mean:
        The constant prior mean.
    sources:
        Variance of the weight of each source, positive.
    """

    lengthscales: tuple[float, ...]
    variance: float
    noise: float
    mean: float
    sources: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        positive = (*self.lengthscales, self.variance, self.noise, *self.sources)
        finite = all(map(math.isfinite, (*positive, self.mean)))
        if not (self.lengthscales and finite and min(positive) > 0.0):
            raise ValueError(f"Hyperparameters are positive finite numbers, got {self!r}.")

    @classmethod
    def of(cls, prior: Prior) -> Hyperparameters | None:
        """Return those of a prior; None if its kernel is of another kind, or they are infinite."""
        kernel, sources = prior.kernel, np.empty(0)
        if isinstance(kernel, Informed):
            sources, kernel = kernel.variances, kernel.kernel
        if not (isinstance(kernel, Scaled) and isinstance(kernel.kernel, Stationary)):
            return None
        lengthscales = np.atleast_1d(kernel.kernel.lengthscale).tolist()
        numbers = float(kernel.variance), float(prior.noise), float(prior.mean)
        with contextlib.suppress(ValueError):
            return cls(tuple(lengthscales), *numbers, tuple(sources.tolist()))
        return None

    def prior(self, family: Prior) -> Prior:
        """Return the prior of a family that has them, to the last bit.

        Raises
        ------
        ValueError
            If the family has other hyperparameters.
        """
        informed = family.kernel if isinstance(family.kernel, Informed) else None
        inner = family.kernel if informed is None else informed.kernel
        stationary = inner.kernel if isinstance(inner, Scaled) else inner
        if (
            not isinstance(stationary, Stationary)
            or stationary.lengthscale.size != len(self.lengthscales)
            or len(self.sources) != (0 if informed is None else len(informed.sources))
        ):
            raise ValueError(f"{self!r} are not hyperparameters of {family!r}.")
        lengthscale = np.array(self.lengthscales).reshape(stationary.lengthscale.shape)
        kernel = Scaled(replace(stationary, lengthscale=lengthscale), self.variance)
        if informed is not None:
            of_sources = Informed(kernel, informed.sources, np.array(self.sources))
            return Prior(of_sources, self.noise, self.mean)
        return Prior(kernel, self.noise, self.mean)
