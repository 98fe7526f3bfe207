"""Sources of a warm start: what earlier studies know, as parts of a kernel.

Notation: F_s is the function of source s, over the inputs of the new domain and standardised there;
its own results leave F_s ~ GP(m_s, C_s). For the new one f(x) = g(x) + sum_s w_s (b_s + F_s(x)),
with g ~ GP(0, k), w_s of mean 0 and variance v_s, and an offset b_s ~ N(0, 1). So f has the
covariance k + sum_s v_s (1 + m_s m_s' + C_s), and is modelled by the Gaussian process that has it:
weights and offsets are integrated out (section 2.7 of [Rasmussen2006]_). Where a source has no
results, C_s says that it knows nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stoic import linalg
from stoic.data import Array, Integers
from stoic.kernels import Kernel, Label, Pull

_KEPT = 16  # arrays of inputs whose moments are remembered: a fit asks for the same ones again


@dataclass(frozen=True, eq=False)
class Source:
    """Posterior of an earlier study, as a function on a new domain with coordinates in [0, 1].

    It is mu + K a and K - K (K + D)^-1 K at z = T(x), for each coordinate on its own.

    Attributes
    ----------
    name:
        Of the study.
    best:
        Its recommended input, shape (d,), in the new domain.
    kernel:
        Of the source.
    z, L, a:
        Its inputs (n, p), the lower Cholesky factor of K + D (n, n), and a (n,).
    columns:
        Coordinate of the new domain that each of the p coordinates follows, shape (p,).
    tables:
        T at evenly spaced values of it, linear in between, shape (p, K).
    centre, unit:
        The function is standardised by these.
    """

    name: str
    best: Array
    kernel: Kernel
    z: Array
    L: Array
    a: Array
    columns: Integers
    tables: Array
    centre: float = 0.0
    unit: float = 1.0
    _known: dict[bytes, tuple[Array, Array, Array]] = field(default_factory=dict, repr=False)
    _square: dict[bytes, Array] = field(default_factory=dict, repr=False)

    def moments(self, x: Array) -> tuple[Array, Array, Array]:
        """Return T(x) (m, p), the mean m(x) (m,), and V (n, m): C = k(T(x), T(x')) - V'V'."""
        key = np.ascontiguousarray(x).tobytes()
        found = self._known.get(key)
        if found is None:
            z = self._moved(x)[0]
            K = self.kernel(z, self.z)
            mean = (K @ self.a - self.centre) / self.unit
            found = z, mean, linalg.solve_lower(self.L, K.T) / self.unit
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = found
        return found

    def __call__(self, x: Array, y: Array) -> Array:
        """Second moments 1 + m m' + C at ``x`` (n, d) and ``y`` (m, d), shape (n, m)."""
        if x is not y:
            return self._between(x, y)
        key = np.ascontiguousarray(x).tobytes()
        # It does not depend on theta: one is computed for all steps of a fit
        found = self._square.get(key)
        if found is None:
            found = self._between(x, x)
            self._square.clear()
            self._square[key] = found
        return found

    def _between(self, x: Array, y: Array) -> Array:
        (z, mean, V), (z2, mean2, V2) = self.moments(x), self.moments(y)
        prior = self.kernel(z, z2) / self.unit**2
        return np.asarray(1.0 + np.outer(mean, mean2) + prior - V.T @ V2)  # 1: of the offset

    def diagonal(self, x: Array) -> Array:
        """Second moments at ``x`` (m, d) with itself, shape (m,)."""
        return np.asarray(1.0 + self.moments(x)[1] ** 2 + self.variance(x))

    def variance(self, x: Array) -> Array:
        """Posterior variance C at ``x`` (m, d), shape (m,)."""
        z, _, V = self.moments(x)
        left = self.kernel.diagonal(z) / self.unit**2 - np.einsum("ij,ij->j", V, V)
        return np.asarray(np.maximum(left, 0.0))

    def wrt_x(self, x: Array, y: Array) -> Pull:
        """Return the map from weights (n, m) of the moments to the gradient in x (n, d)."""
        z, steepness = self._moved(x)
        _, pull_rows = self.kernel.wrt_x(z, self.z)
        z2, mean2, V2 = self.moments(y)
        _, pull_others = self.kernel.wrt_x(z, z2)

        def pull(W: Array) -> Array:
            of_rows = np.outer(W @ mean2, self.a) / self.unit  # through m
            # Through V'V2, where V = L^-1 k(z_s, z) / unit
            of_rows -= linalg.solve_upper(self.L, V2 @ W.T).T / self.unit
            slope = pull_rows(of_rows) + pull_others(W) / self.unit**2
            return self._back(slope * steepness, x)

        return pull

    def diagonal_wrt_x(self, x: Array) -> Array:
        """Gradient of the second moments at ``x`` with itself, shape (m, d)."""
        z, steepness = self._moved(x)
        _, pull = self.kernel.wrt_x(z, self.z)
        _, mean, V = self.moments(x)
        slope = pull(2.0 * (np.outer(mean, self.a) - linalg.solve_upper(self.L, V).T) / self.unit)
        slope += self.kernel.diagonal_wrt_x(z) / self.unit**2
        return self._back(slope * steepness, x)

    def _moved(self, x: Array) -> tuple[Array, Array]:
        """Return T(x), and its slopes in the coordinates that it follows, both (m, p)."""
        last = self.tables.shape[1] - 1
        at = np.clip(x[:, self.columns], 0.0, 1.0) * last
        cell = np.minimum(at.astype(np.intp), last - 1)  # the end is in the last cell
        rows = np.arange(len(self.columns))
        low, high = self.tables[rows, cell], self.tables[rows, cell + 1]
        return low + (at - cell) * (high - low), (high - low) * last

    def _back(self, slope: Array, x: Array) -> Array:
        gradient = np.zeros_like(x)
        np.add.at(gradient.T, self.columns, slope.T)  # several may follow one coordinate
        return gradient


@dataclass(frozen=True, eq=False)
class Informed:
    """Kernel k + sum_s v_s (1 + m_s m_s' + C_s), see the head of this file.

    Parameters
    ----------
    kernel:
        Kernel k of what no source explains.
    sources:
        The functions F_s.
    variances:
        v_s, positive, in squared units of f, shape (S,).
    """

    kernel: Kernel
    sources: tuple[Source, ...]
    variances: Array

    @property
    def _weighed(self) -> Sequence[tuple[float, Source]]:
        return list(zip(self.variances.tolist(), self.sources, strict=True))

    @property
    def theta(self) -> Array:
        return np.concatenate([self.kernel.theta, np.log(self.variances)])

    @property
    def labels(self) -> tuple[Label, ...]:
        return (*self.kernel.labels, *(("source", s) for s in range(len(self.sources))))

    def with_theta(self, theta: Array) -> Informed:
        p = len(self.kernel.theta)
        return Informed(self.kernel.with_theta(theta[:p]), self.sources, np.exp(theta[p:]))

    def __call__(self, x: Array, z: Array) -> Array:
        K = self.kernel(x, z)
        for v, source in self._weighed:
            K = K + v * source(x, z)
        return K

    def diagonal(self, x: Array) -> Array:
        total = self.kernel.diagonal(x)
        for v, source in self._weighed:
            total = total + v * source.diagonal(x)
        return total

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        K, pull_inner = self.kernel.wrt_theta(x)
        parts = [v * source(x, x) for v, source in self._weighed]

        def pull(A: Array) -> Array:
            # theta is ln v, so the slope of v S is v S itself
            return np.append(pull_inner(A), [np.vdot(A, part) for part in parts])

        return sum(parts, K), pull

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        K, pull_inner = self.kernel.wrt_x(x, z)
        pulls = [(v, source.wrt_x(x, z)) for v, source in self._weighed]

        def pull(W: Array) -> Array:
            return sum((v * of_source(W) for v, of_source in pulls), pull_inner(W))

        return sum((v * source(x, z) for v, source in self._weighed), K), pull

    def diagonal_wrt_x(self, x: Array) -> Array:
        slopes = (v * source.diagonal_wrt_x(x) for v, source in self._weighed)
        return sum(slopes, self.kernel.diagonal_wrt_x(x))

    def slopes(self, x: Array, a: Array) -> Array:
        """Posterior means of w_s for the means m_s, shape (S,), where f's mean is k(., x) a."""
        means = np.array([source.moments(x)[1] for source in self.sources])
        return np.asarray(self.variances * (means @ a))


def informed(kernel: Kernel, sources: Sequence[Source]) -> Kernel:
    """Kernel with sources; itself without any."""
    return Informed(kernel, tuple(sources), np.ones(len(sources))) if sources else kernel
