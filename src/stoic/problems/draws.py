"""Functions drawn at random: from a Gaussian process, and from an RKHS.

A draw from a Gaussian process is what Bayesian bounds assume. It has, almost surely, no finite norm
in the kernel's RKHS; a finite sum of kernels has one, and the frequentist bounds assume that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stoic.data import Array
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Kernel
from stoic.problems.base import Optimum, check_rows
from stoic.problems.tabulated import Tabulated


def gaussian_draw(
    domain: Finite, kernel: Kernel, seed: int, *, name: str = "gaussian-draw"
) -> Tabulated:
    """One draw from GP(0, ``kernel``) on a finite domain of N points, in O(N^3).

    The draw is K^(1/2) z with z standard normal and the *symmetric* root, from the
    eigen-decomposition. No jitter is added: eigenvalues that rounding made negative count as 0, so
    a smooth kernel on a fine grid is drawn as it is. The symmetric root is unique, also where
    eigenvalues coincide, as they do on every square grid; a root that is made of the eigenvectors
    alone would give another function on another machine.

    ``kernel`` must be positive semi-definite on the points; ``seed`` fixes the draw.
    """
    s, U = np.linalg.eigh(kernel(domain.points, domain.points))  # s ascending
    if s[0] < -1e-8 * abs(s[-1]):
        raise ValueError(
            f"A draw needs a covariance, got a kernel with eigenvalue {s[0]:.3g} on these "
            f"{len(domain)} points: use a positive semi-definite one."
        )
    # U s^(1/2) U' z ~ N(0, K)
    z = np.random.default_rng(seed).standard_normal(len(domain))
    return Tabulated(name, domain, U @ (np.sqrt(np.maximum(s, 0.0)) * (U.T @ z)))


def f1(seed: int) -> Tabulated:
    """Draw the synthetic function of [Bogunovic2022]_, section 4, on 10 x 10 points.

    From GP(0, k), k the squared exponential of lengthscale 0.5, on a grid of [-5, 5]^2. The draw
    of the paper is not published, so a study takes several seeds.
    """
    grid = Box(np.array([-5.0, -5.0]), np.array([5.0, 5.0])).grid(10)
    return gaussian_draw(grid, RBF(0.5), seed, name="f1")


@dataclass(frozen=True, slots=True, eq=False)
class KernelSum:
    """f = sum_i w_i k(., s_i), an element of the kernel's RKHS with a known norm.

    Parameters
    ----------
    name:
        A short name for tables.
    domain:
        The points over which the maximum is taken.
    kernel:
        k.
    centres:
        s_i, shape (p, d), anywhere.
    weights:
        w_i, shape (p,).

    Attributes
    ----------
    optimum:
        The best row of the domain, exactly (ties: the lowest).
    norm:
        The RKHS norm of f, (w' K w)^(1/2) with K = k(s, s).
    """

    name: str
    domain: Finite
    kernel: Kernel
    centres: Array
    weights: Array
    optimum: Optimum = field(init=False)
    norm: float = field(init=False)

    def __post_init__(self) -> None:
        centres = np.array(self.centres, dtype=np.float64)
        weights = np.array(self.weights, dtype=np.float64)
        if centres.ndim != 2 or weights.shape != (len(centres),) or not len(weights):
            raise ValueError(
                f"A sum of kernels needs centres (p, d) and weights (p,), p >= 1, got shapes "
                f"{centres.shape} and {weights.shape}."
            )
        centres.flags.writeable = weights.flags.writeable = False
        # w'Kw, below 0 by rounding only
        square = float(weights @ self.kernel(centres, centres) @ weights)
        object.__setattr__(self, "centres", centres)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "norm", float(np.sqrt(max(square, 0.0))))
        points = self.domain.points
        object.__setattr__(self, "optimum", Optimum.among(points, self.value(points)))

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), on the domain or off it, shape (m,)."""
        rows = check_rows(x, self.domain.dim, self.name)
        return np.asarray(self.kernel(rows, self.centres) @ self.weights)


def kernel_sum(
    domain: Finite,
    kernel: Kernel,
    seed: int,
    *,
    terms: int = 100,
    coefficients: tuple[float, float] = (-1.0, 1.0),
    normalise: bool = False,
    name: str = "kernel-sum",
) -> KernelSum:
    """Draw a random element of the kernel's RKHS, as [Chowdhury2019]_, section 6.

    Parameters
    ----------
    domain:
        The centres are ``terms`` uniform rows of it, with repetition.
    seed:
        Fixes the draw; the same seed has the same centres for every range of coefficients.
    coefficients:
        The range of the uniform coefficients; from 0 on, f is positive.
    normalise:
        Divide by the largest |f| on the domain, which is then 1. The norm is divided as well.
    """
    low, high = coefficients
    if terms < 1 or not low < high:
        raise ValueError(
            f"A draw needs at least one term and a range of coefficients, got terms={terms} and "
            f"coefficients={coefficients}."
        )
    for_centres, for_weights = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)
    )
    centres = domain.sample(terms, for_centres)
    weights = for_weights.uniform(low, high, terms)
    if normalise:
        weights /= np.abs(kernel(domain.points, centres) @ weights).max()
    return KernelSum(name, domain, kernel, centres, weights)
