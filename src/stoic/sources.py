"""Sources of a warm start: what earlier studies found, as features of a kernel.

Notation: m_s is the posterior mean of source s over the inputs of the new domain, standardised over
it; f(x) = g(x) + sum_s w_s (c_s + m_s(x)) with g ~ GP(0, k), w_s ~ N(0, v_s) and an offset c_s, of
variance 1. So f is a Gaussian process with the kernel k + sum_s v_s (1 + m_s m_s'): weights and
offsets are integrated out (section 2.7 of [Rasmussen2006]_).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from stoic.data import Array, Integers
from stoic.kernels import Kernel, Label, Pull

_KEPT = 16  # arrays of inputs whose means are remembered: a fit asks for the same ones again


class Source(Protocol):
    """Earlier study, as a function on the new domain.

    Attributes
    ----------
    name:
        Of the study.
    best:
        Its recommended input, shape (d,), in the new domain.
    """

    @property
    def name(self) -> str: ...

    @property
    def best(self) -> Array: ...

    def __call__(self, x: Array) -> Array:
        """Standardised mean at ``x`` (m, d), shape (m,)."""

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """Mean (m,) and its gradient (m, d)."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """Posterior mean sum_i a_i k(z, z_i) of a source, z = T(x) for each coordinate on its own.

    Attributes
    ----------
    kernel:
        Of the source.
    z, weights:
        Its inputs (n, p) and a (n,).
    columns:
        Coordinate of the new domain that each of the p coordinates follows, shape (p,).
    tables:
        T at evenly spaced values of it, linear in between, shape (p, K); the new domain is [0, 1]
        in each coordinate.
    centre, unit:
        The mean is standardised by these.
    """

    name: str
    best: Array
    kernel: Kernel
    z: Array
    weights: Array
    columns: Integers
    tables: Array
    centre: float = 0.0
    unit: float = 1.0
    _known: dict[bytes, Array] = field(default_factory=dict, repr=False)

    def __call__(self, x: Array) -> Array:
        key = np.ascontiguousarray(x).tobytes()
        if key not in self._known:
            mean = self.kernel(self._moved(x)[0], self.z) @ self.weights
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = (mean - self.centre) / self.unit
        return self._known[key]

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        z, steepness = self._moved(x)
        K, pull = self.kernel.wrt_x(z, self.z)
        slope = pull(np.broadcast_to(self.weights, K.shape)) * steepness / self.unit
        gradient = np.zeros_like(x)
        np.add.at(gradient.T, self.columns, slope.T)
        return (K @ self.weights - self.centre) / self.unit, gradient

    def _moved(self, x: Array) -> tuple[Array, Array]:
        """Return inputs of the source, and their slopes in what they follow, both (m, p)."""
        last = self.tables.shape[1] - 1
        at = np.clip(x[:, self.columns], 0.0, 1.0) * last
        cell = np.minimum(at.astype(np.intp), last - 1)
        rows = np.arange(len(self.columns))
        low, high = self.tables[rows, cell], self.tables[rows, cell + 1]
        return low + (at - cell) * (high - low), (high - low) * last


@dataclass(frozen=True, eq=False)
class Informed:
    """Kernel k + sum_s v_s (1 + m_s m_s'), see the head of this file.

    Parameters
    ----------
    kernel:
        Kernel k of what no source explains.
    sources:
        The functions m_s.
    variances:
        v_s, positive, in squared units of f, shape (S,).
    """

    kernel: Kernel
    sources: tuple[Source, ...]
    variances: Array

    @property
    def theta(self) -> Array:
        return np.concatenate([self.kernel.theta, np.log(self.variances)])

    @property
    def labels(self) -> tuple[Label, ...]:
        return (*self.kernel.labels, *(("source", s) for s in range(len(self.sources))))

    def with_theta(self, theta: Array) -> Informed:
        p = len(self.kernel.theta)
        return Informed(self.kernel.with_theta(theta[:p]), self.sources, np.exp(theta[p:]))

    def means(self, x: Array) -> Array:
        """Means of the sources at ``x`` (m, d), shape (m, S)."""
        return np.stack([source(x) for source in self.sources], axis=1)

    def __call__(self, x: Array, z: Array) -> Array:
        linear = (self.means(x) * self.variances) @ self.means(z).T
        return np.asarray(self.kernel(x, z) + linear + self.variances.sum())

    def diagonal(self, x: Array) -> Array:
        return np.asarray(self.kernel.diagonal(x) + (1.0 + self.means(x) ** 2) @ self.variances)

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        K, pull_inner = self.kernel.wrt_theta(x)
        m = self.means(x)

        def pull(A: Array) -> Array:
            of_sources = self.variances * (A.sum() + np.einsum("is,is->s", m, A @ m))
            return np.concatenate([pull_inner(A), of_sources])

        return K + (m * self.variances) @ m.T + self.variances.sum(), pull

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        K, pull_inner = self.kernel.wrt_x(x, z)
        m, slopes = self._with_gradients(x)
        by_z = self.means(z) * self.variances

        def pull(W: Array) -> Array:
            return np.asarray(pull_inner(W) + np.einsum("is,ski->ik", W @ by_z, slopes))

        return K + m @ by_z.T + self.variances.sum(), pull

    def diagonal_wrt_x(self, x: Array) -> Array:
        m, slopes = self._with_gradients(x)
        by_mean = 2.0 * m * self.variances
        slope = np.einsum("is,ski->ik", by_mean, slopes)
        return np.asarray(self.kernel.diagonal_wrt_x(x) + slope)

    def _with_gradients(self, x: Array) -> tuple[Array, Array]:
        """Means (m, S) and their gradients (S, d, m)."""
        found = [source.with_gradient(x) for source in self.sources]
        return np.stack([m for m, _ in found], axis=1), np.stack([g.T for _, g in found])

    def weighed(self, x: Array, a: Array) -> Array:
        """Posterior means of the weights w_s, shape (S,), where f's mean is k(., x) a."""
        return np.asarray(self.variances * (self.means(x).T @ a))


def informed(kernel: Kernel, sources: Sequence[Source]) -> Kernel:
    """Kernel with sources; itself without any."""
    return Informed(kernel, tuple(sources), np.ones(len(sources))) if sources else kernel
