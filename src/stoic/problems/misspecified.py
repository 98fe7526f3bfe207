"""Misspecified functions: outside of an RKHS, with one of that RKHS that is near."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from stoic.data import Array
from stoic.domains import Finite
from stoic.kernels import Kernel
from stoic.problems.base import Optimum, finite_values
from stoic.problems.draws import KernelSum
from stoic.problems.tabulated import Tabulated


@dataclass(frozen=True, slots=True, eq=False)
class Approximated:
    """Function f on N points, and g of the kernel's RKHS that is within ``error`` of it.

    Parameters
    ----------
    truth:
        f, which is observed and defines the regret.
    near:
        g at each point, finite, shape (N,).
    norm:
        The norm of g, or a bound on it.
    error_at_least:
        No function whose norm is at most ``norm`` is nearer to f than this; 0 where that is not
        known.

    Attributes
    ----------
    error:
        max |f - g| over the points: a certificate of eps, not the least one there is.
    """

    truth: Tabulated
    near: Array
    norm: float
    error_at_least: float = 0.0
    error: float = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.domain)
        what = f"An approximation of {self.name} needs one finite value for each of its {n} points"
        near = finite_values(self.near, (n,), what)
        object.__setattr__(self, "near", near)
        object.__setattr__(self, "error", float(np.abs(self.truth.values - near).max()))

    @property
    def name(self) -> str:
        """A short name for tables."""
        return self.truth.name

    @property
    def domain(self) -> Finite:
        """The N points."""
        return self.truth.domain

    @property
    def optimum(self) -> Optimum:
        """The best row (ties: the lowest)."""
        return self.truth.optimum

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,); ``ValueError`` off the points."""
        return self.truth.value(x)


Perturbation = Callable[[Tabulated], Array]


def perturbed(near: KernelSum, error: float, perturbation: Perturbation) -> Approximated:
    """f = g + ``error`` m, with g of a known norm and -1 <= m <= 1.

    Parameters
    ----------
    near:
        g.
    error:
        eps >= 0, in units of f.
    perturbation:
        From g on the points to m, shape (N,).
    """
    if not 0.0 <= error < math.inf:
        raise ValueError(f"A perturbation is finite and at least 0, got an error of {error!r}.")
    g = Tabulated(near.name, near.domain, near.value(near.domain.points))
    m = perturbation(g)
    if m.shape != g.values.shape or not np.abs(m).max() <= 1.0:
        raise ValueError(f"A perturbation has one number from -1 to 1 for each point, got {m!r}.")
    truth = Tabulated(f"{near.name} + {error:g} m", near.domain, g.values + error * m)
    return Approximated(truth, g.values, near.norm)


@dataclass(frozen=True, slots=True)
class Bump:
    """Push g down within half of ``reach`` of its maximum, and up from there to ``reach``.

    A smooth model averages the two, and looks for the best point in the middle.
    """

    reach: float

    def __call__(self, near: Tabulated) -> Array:
        away = _distance_to_best(near)
        return np.where(away <= 0.5 * self.reach, -1.0, np.where(away <= self.reach, 1.0, 0.0))


@dataclass(frozen=True, slots=True)
class Needle:
    """Push the maximum of g alone up, and all others within ``reach`` of it down.

    A smooth model that is certain of the surroundings is also certain of the best point.
    """

    reach: float

    def __call__(self, near: Tabulated) -> Array:
        away = _distance_to_best(near)
        down = np.where(away <= self.reach, -1.0, 0.0)
        down[int(np.argmax(near.values))] = 1.0
        return down


@dataclass(frozen=True, slots=True)
class Signs:
    """Independent random signs at each point."""

    seed: int

    def __call__(self, near: Tabulated) -> Array:
        return np.random.default_rng(self.seed).choice([-1.0, 1.0], len(near.domain))


def _distance_to_best(near: Tabulated) -> Array:
    return np.asarray(np.linalg.norm(near.domain.points - near.optimum.x, axis=1))


_FLAT = 1e-13  # eigenvalues below this share of the largest are rounding
_CLOSE = 1e-9  # accuracy of the least error, relative to the largest |f|


def nearest(truth: Tabulated, kernel: Kernel, norm: float) -> Approximated:
    """Best approximation of f in the maximum norm, among functions of norm at most ``norm``.

    min ||f - g||_inf over ||g||_k <= B is convex. Given a level e, the function of least norm
    within e of f solves a least distance problem, which is one of non-negative least squares
    [Lawson1974]_; e is found by bisection. The function that is returned certifies ``error``,
    whatever the solver did. The multipliers mu of its constraints certify a lower bound: with
    ||mu||_1 = 1, every g with ||g||_k <= B has ||f - g||_inf >= mu'(f - g) >= mu'f - B
    (mu'K mu)^(1/2).

    Parameters
    ----------
    truth:
        f.
    kernel:
        The kernel of the RKHS to approximate in.
    norm:
        B > 0.
    """
    if not 0.0 < norm < math.inf:
        raise ValueError(f"A bound on the norm is positive, got {norm!r}.")
    f = truth.values
    K = kernel(truth.domain.points, truth.domain.points)
    s, U = np.linalg.eigh(K)
    kept = s > _FLAT * s[-1]
    A = norm * U[:, kept] * np.sqrt(s[kept])  # g = A z on the points, and its norm is B |z|
    low, high = 0.0, float(np.abs(f).max())  # g = 0 has the error max |f|
    close = _CLOSE * high
    best, at_least = np.zeros(A.shape[1]), 0.0
    while high - low > close:
        e = 0.5 * (low + high)
        z, mu = _least_norm(A, f, e)
        bound = float(mu @ f) - norm * math.sqrt(max(float(mu @ K @ mu), 0.0))
        at_least = max(at_least, bound / max(float(np.abs(mu).sum()), _CLOSE))
        if np.linalg.norm(z) <= 1.0 and np.abs(f - A @ z).max() <= e + close:
            best, high = z, e
        else:
            low = e
    return Approximated(truth, A @ best, norm, at_least)


def _least_norm(A: Array, f: Array, e: float) -> tuple[Array, Array]:
    """argmin |z| subject to |f - A z| <= e, and multipliers of the constraints, shape (N,).

    With the constraints written as G z >= h, the residual r of min |(G, h)' u - (0, 1)'| over
    u >= 0 gives z = -r_1..n / r_(n+1). Where there is none, z is huge.
    """
    G, h = np.concatenate([A, -A]), np.concatenate([f - e, -f - e])
    E = np.concatenate([G.T, h[None]])
    target = np.zeros(len(E))
    target[-1] = 1.0
    u, _ = nnls(E, target, maxiter=30 * E.shape[1])  # ten times the steps of SciPy's default
    residual = E @ u - target
    last = min(float(residual[-1]), -1e-100)  # but for rounding minus its squared length
    return -residual[:-1] / last, u[: len(f)] - u[len(f) :]
