"""Quadrature Fourier features of the squared exponential kernel [Mutny2018]_."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy import special

from stoic.data import Array, Observations
from stoic.domains import Box, Domain, Finite
from stoic.kernels import RBF, Kernel, Pull, Scaled
from stoic.posteriors.places import Places
from stoic.posteriors.prior import Prior

_MOST_NODES = 512  # per coordinate; the weights of the outer ones have long underflowed by then
_ROUNDING = 1e-15  # singular values below this share of the largest one are rounding


@dataclass(frozen=True, slots=True)
class Fourier:
    """phi(x) = sqrt(w_j) (cos w_j'x, sin w_j'x) at the nodes of a Gauss-Hermite quadrature.

    k(x, z) is the mean of cos(w'(x - z)) over frequencies w ~ N(0, diag(1 / l^2)); the quadrature
    with M nodes per coordinate replaces the mean by a sum over M^d nodes. Nodes come in equivalent
    pairs w, -w, so one of each pair is used, with twice the weight: M^d features instead of the
    2 M^d of eq. (1) of [Chowdhury2019]_, and the same kernel. Inputs are counted from the lower
    corner of the domain, as if it were [0, r_1] x ... x [0, r_d]: a kernel that depends on x - z is
    unchanged, and it decides, as on the paper's [0, 1]^d, which part of a feature is called cosine.

    The error of the kernel depends on r / l and M alone. On [0, 1] with l = 0.2 it is 4.2e-3 for 16
    nodes and 2.4e-12 for 32, both at the ends; the bound of [Mutny2018]_ decays exponentially once
    M > (r / l)^2.

    Parameters
    ----------
    nodes:
        M; ``None`` takes the fewest nodes, an even number, with an error of at most ``tolerance``.
    tolerance:
        Largest error of the correlation k / k(x, x) on the domain.
    pairs:
        If true, both nodes of each pair are used, as in eq. (1). The band of ATA-GP-UCB, sqrt of
        the number of features, is wider by sqrt(2) then.
    budget:
        Largest number of features. Each round costs O(M^(3 d)) at worst: 1024 features are a
        third of a second. At the default tolerance it suffices
        up to r / l = 40 in one coordinate, 6.3 in two and 1.9 in three.

    Raises
    ------
    ValueError
        From ``check``: if the kernel is not a squared exponential, or takes more features than the
        budget.
    """

    nodes: int | None = None
    tolerance: float = 1e-6
    pairs: bool = False
    budget: int = 1024

    def __post_init__(self) -> None:
        if self.nodes is not None and not (isinstance(self.nodes, int) and self.nodes >= 1):
            raise ValueError(f"nodes is a whole number >= 1 or None, got {self.nodes!r}.")

    def check(self, domain: Domain, prior: Prior) -> None:
        lengthscale, _ = _squared_exponential(prior.kernel)
        self._nodes(domain.widths / lengthscale)

    def __call__(
        self,
        domain: Domain,
        prior: Prior,
        observations: Observations,
        places: Places,
        previous: object | None,
    ) -> FourierEmbedding:
        if isinstance(previous, FourierEmbedding):
            return previous
        lengthscale, variance = _squared_exponential(prior.kernel)
        extent = domain.widths / lengthscale
        nodes = self._nodes(extent)
        t, weights = _grid(nodes, domain.dim, self.pairs)
        lower, finite = _corner(domain)
        return FourierEmbedding(
            lower,
            np.sqrt(2.0) * t / lengthscale,
            np.sqrt(variance * weights),
            finite,
            variance * float(sum(quadrature_error(r, nodes) for r in extent)),
        )

    def _nodes(self, extent: Array) -> int:
        """M, for a domain with sides of ``extent`` (d,) lengthscales."""
        d, copies = len(extent), 1 + self.pairs
        most = min(int(np.floor((self.budget / copies) ** (1.0 / d) + 1e-9)), _MOST_NODES)
        if self.nodes is not None:
            if self.nodes > most:
                raise ValueError(
                    f"{self.nodes} nodes in {d} coordinates make {copies * self.nodes**d} "
                    f"features, more than the budget of {self.budget}: use at most {most} nodes or "
                    "a larger budget."
                )
            return self.nodes
        worst = float(extent.max())
        for nodes in range(2, most + 1, 2):
            if d * quadrature_error(worst, nodes) <= self.tolerance:
                return nodes
        raise ValueError(
            f"Fourier features for a domain of {worst:.3g} lengthscales in {d} coordinates with an "
            f"error of {self.tolerance:g} need more than the budget of {self.budget} features: use "
            "Nystroem features, a longer lengthscale, or give the nodes."
        )


def _corner(domain: Domain) -> tuple[Array, Finite | None]:
    """Return the lower corner of a domain (d,), and the domain itself if it is finite."""
    if isinstance(domain, Finite):
        return domain.points.min(axis=0), domain
    if isinstance(domain, Box):
        return domain.lower, None
    raise TypeError(f"Fourier features are for a Finite or a Box, got {domain!r}.")


@lru_cache(maxsize=4096)
def quadrature_error(extent: float, nodes: int) -> float:
    """max |sum_j w_j cos(sqrt(2) t_j r) - exp(-r^2 / 2)| for 0 <= r <= ``extent``.

    In one coordinate, with r in lengthscales. The errors of the coordinates add up to a bound on
    the error of the product, since none of the factors is above 1.
    """
    t, w = _rule(nodes)
    r = np.linspace(0.0, extent, 64 + 8 * nodes)
    sums = np.cos(np.sqrt(2.0) * np.outer(r, t)) @ w
    return float(np.abs(sums - np.exp(-0.5 * r**2)).max())


@lru_cache(maxsize=256)
def _rule(nodes: int) -> tuple[Array, Array]:
    """Gauss-Hermite nodes, exactly symmetric, and weights that add up to 1; both (M,)."""
    t, w = special.roots_hermite(nodes)
    t, w = 0.5 * (t - t[::-1]), 0.5 * (w + w[::-1])
    return t, w / w.sum()


def _grid(nodes: int, d: int, pairs: bool) -> tuple[Array, Array]:
    """Nodes (K, d) and weights (K,): of all, or of one of each pair, whose weight counts twice."""
    t, w = _rule(nodes)
    grid = np.stack(np.meshgrid(*[t] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = np.stack(np.meshgrid(*[w] * d, indexing="ij"), axis=-1).reshape(-1, d).prod(axis=1)
    if pairs:
        return grid, weights
    # The grid is symmetric, so the second half mirrors the first; the origin is in the middle.
    half = len(grid) // 2
    doubled = 2.0 * weights[half:]
    if len(grid) % 2:
        doubled[0] = weights[half]
    return grid[half:], doubled


def _squared_exponential(kernel: Kernel) -> tuple[Array, float]:
    """Lengthscale and variance of a squared exponential; any other kernel is refused."""
    variance, inner = 1.0, kernel
    while isinstance(inner, Scaled):
        variance, inner = variance * inner.variance, inner.kernel
    if not isinstance(inner, RBF):
        raise ValueError(
            f"Quadrature Fourier features are for the squared exponential kernel, got "
            f"{type(inner).__name__}: use RBF, or Nystroem features."
        )
    return inner.lengthscale, variance


@dataclass(frozen=True, eq=False)
class FourierEmbedding:
    """The features at given frequencies; see :class:`Fourier`.

    Parameters
    ----------
    lower:
        The corner that inputs are counted from, shape (d,).
    frequencies:
        Shape (K, d).
    amplitudes:
        Root of each frequency's weight times the variance, shape (K,).
    domain:
        The finite domain that it is for, or ``None``.
    error:
        Bound on |k(x, z) - phi(x)'phi(z)| for two points of the domain, in units of k.
    """

    lower: Array
    frequencies: Array
    amplitudes: Array
    domain: Finite | None
    error: float
    features: int = field(init=False)
    basis: Array = field(init=False)
    _arms: Array | None = field(init=False, repr=False)
    complete = True

    def __post_init__(self) -> None:
        K = len(self.frequencies)
        # The origin, which an odd number of nodes has, has no sine.
        m = 2 * K - int(not self.frequencies[0].any())
        object.__setattr__(self, "features", m)
        if self.domain is None:
            object.__setattr__(self, "basis", np.eye(m))
            object.__setattr__(self, "_arms", None)
            return
        # Smooth kernels have far fewer directions on N points than features.
        left, size, right = np.linalg.svd(self.phi(self.domain.points), full_matrices=False)
        kept = size > _ROUNDING * size[0]
        object.__setattr__(self, "basis", np.ascontiguousarray(right[kept].T))
        object.__setattr__(self, "_arms", np.ascontiguousarray(left[:, kept] * size[kept]))

    def phi(self, x: Array) -> Array:
        """Evaluate the features, shape (n, m)."""
        angles = (x - self.lower) @ self.frequencies.T
        both = np.hstack([self.amplitudes * np.cos(angles), self.amplitudes * np.sin(angles)])
        return self._without_idle(both)

    def _without_idle(self, both: Array) -> Array:
        K = len(self.amplitudes)
        return both if self.features == 2 * K else np.delete(both, K, axis=1)

    def coordinates(self, x: Array) -> Array:
        if self.domain is None:
            return self.phi(x)
        if self._arms is not None and x is self.domain.points:
            return self._arms
        return self.phi(x) @ self.basis

    def coordinates_wrt_x(self, x: Array) -> tuple[Array, Pull]:
        angles = (x - self.lower) @ self.frequencies.T
        cos, sin = self.amplitudes * np.cos(angles), self.amplitudes * np.sin(angles)
        phi = self._without_idle(np.hstack([cos, sin]))
        K = len(self.amplitudes)

        def pull(W: Array) -> Array:
            in_features = W @ self.basis.T
            if self.features != 2 * K:
                in_features = np.insert(in_features, K, 0.0, axis=1)
            by_angle = in_features[:, K:] * cos - in_features[:, :K] * sin
            return np.asarray(by_angle @ self.frequencies)

        return phi @ self.basis, pull
