"""Parts shared by recipes: checks, fits of hyperparameters, policies, constants of a prior."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stoic.confidence import CompactUnion, FiniteUnion, SelfNormalised, Theory
from stoic.data import Array
from stoic.domains import Box, Domain, Finite
from stoic.kernels import Kernel, Matern52, Scaled
from stoic.posteriors.fitting import Fitting, FixedHyperparameters, Objective, marginal_likelihood
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale


def family(domain: Domain) -> Prior:
    """Matern 5/2 kernel with one lengthscale per coordinate, fitted where no prior is given."""
    # The noise is the median of its log-normal prior, for results of variance 1
    return Prior(Scaled(Matern52(np.ones(domain.dim))), math.exp(-4.0))


OF_WIDTH = ("norm", "noise_sd", "delta")  # of a theory, for ``self_normalised``


def check_finite(domain: Domain, recipe: str) -> None:
    """Refuse a continuous domain where a recipe needs a list of points."""
    if not isinstance(domain, Finite):
        raise ValueError(f"{recipe} needs a finite domain, got {domain!r}: use Box(...).grid(50).")


def check_given(prior: Prior | None, recipe: str) -> None:
    """Refuse a missing prior where hyperparameters cannot be fitted."""
    if prior is None:
        raise ValueError(f"{recipe} needs a prior: it plans before it sees results.")


def check_prior(domain: Domain, prior: Prior | None) -> None:
    """Refuse a kernel for another number of coordinates."""
    if prior is None:
        return
    if not isinstance(prior, Prior):
        raise TypeError(f"A prior must be a Prior(kernel, noise), got {prior!r}.")
    point = domain.spread(1, np.random.default_rng(0))
    # Of one coordinate NumPy divides by any number of lengthscales
    last = max((k for kind, k in prior.kernel.labels if kind == "lengthscale" and k), default=0)
    try:
        prior.kernel(point, point)
        if last >= domain.dim:
            raise ValueError(f"it has {last + 1} lengthscales")
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"The kernel of the prior does not fit {domain!r}, whose inputs have {domain.dim} "
            f"coordinates: give one lengthscale, or {domain.dim} of them ({error})."
        ) from error


def fitting(
    prior: Prior | None, scale: Scale, objective: Objective = marginal_likelihood
) -> Fitting | FixedHyperparameters:
    """Fix the hyperparameters of a given prior; otherwise fit them to standardised results."""
    return FixedHyperparameters() if prior else Fitting(objective, scale)


def self_normalised(theory: Theory, restarts: bool = False) -> SelfNormalised | None:
    """Frequentist width of a theory; None in practice."""
    if not theory.proved:
        return None
    return SelfNormalised(theory.norm, theory.noise_sd, theory.delta, restarts=restarts)


def variance_and_noise(domain: Domain, prior: Prior | None) -> tuple[float, float]:
    """Largest prior variance, and noise; in units of the results' scale if there is no prior.

    On a ``Box`` a search finds it, for all kernels of :mod:`stoic.kernels`.
    """
    if prior is None:
        return 1.0, math.exp(-4.0)
    variance = _Variance(prior.kernel)
    if isinstance(domain, Finite):
        return float(variance(domain.points).max()), prior.noise
    # Where the dot products are largest; a stationary kernel has the same variance everywhere.
    assert isinstance(domain, Box)
    corner = np.where(np.abs(domain.upper) > np.abs(domain.lower), domain.upper, domain.lower)
    peak = domain.maximise(variance, np.random.default_rng(0), corner[None])
    return peak.height, prior.noise


class _Variance(NamedTuple):
    """Prior variance k(x, x) as a surface to maximise."""

    kernel: Kernel

    def __call__(self, x: Array) -> Array:
        return self.kernel.diagonal(x)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.kernel.diagonal(x), self.kernel.diagonal_wrt_x(x)


def union(domain: Domain, delta: float) -> FiniteUnion | CompactUnion:
    """Bayesian width of the theory, with a third of the failure probability."""
    if isinstance(domain, Finite):
        return FiniteUnion(len(domain), delta / 3.0)
    return CompactUnion(domain.dim, extent=float(domain.widths.max()), delta=delta / 3.0)
