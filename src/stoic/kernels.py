"""Covariance functions k(x, z), with gradients in their hyperparameters and in x.

Notation: ``x`` is (n, d), ``z`` is (m, d), ``K`` is k(x, z) of shape (n, m), ``theta`` the vector
of *logarithms* of the hyperparameters, ``l`` a lengthscale, one number or one per coordinate.

Gradients are vector-Jacobian products, which is all that a fit or a search needs and costs one
matrix product instead of one matrix per hyperparameter: ``wrt_theta(x)`` returns K and the linear
map A -> sum_ij A_ij dK_ij/dtheta; ``wrt_x(x, z)`` returns K and W -> sum_j W_ij dk(x_i, z_j)/dx_i.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from stoic.data import Array, Booleans, Integers
from stoic.linalg import squared_distances

Pull = Callable[[Array], Array]
Label = tuple[str, int | None]

_ALIKE = 0.9  # least prior correlation of two values of f that count as replicates


class Kernel(Protocol):
    """A positive definite function of two inputs.

    Attributes
    ----------
    theta:
        Logarithms of the hyperparameters, shape (p,).
    labels:
        Label of each entry of ``theta``: its kind (``"lengthscale"``, ``"variance"``,
        ``"offset"``) and the coordinate it belongs to (``None`` for all of them).
    """

    @property
    def theta(self) -> Array: ...

    @property
    def labels(self) -> tuple[Label, ...]: ...

    def with_theta(self, theta: Array) -> Kernel:
        """Copy of the kernel with other hyperparameters, given as logarithms."""

    def __call__(self, x: Array, z: Array) -> Array:
        """k(x, z), shape (n, m)."""

    def diagonal(self, x: Array) -> Array:
        """k(x_i, x_i), shape (n,)."""

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        """k(x, x) and the map from weights (n, n) to the gradient in theta (p,)."""

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        """k(x, z) and the map from weights (n, m) to the gradient in the rows of x (n, d)."""

    def diagonal_wrt_x(self, x: Array) -> Array:
        """Gradient of k(x_i, x_i) in x_i, shape (n, d)."""


def kernel_metric(kernel: Kernel, x: Array, z: Array) -> Array:
    """Kernel metric sqrt(k(x, x) - 2 k(x, z) + k(z, z)), shape (n, m): distance of features."""
    squares = np.add.outer(kernel.diagonal(x), kernel.diagonal(z)) - 2.0 * kernel(x, z)
    return np.sqrt(np.maximum(squares, 0.0))  # rounding at equal points


def at_one_place(kernel: Kernel, x: Array, z: Array) -> Booleans:
    """Mask of the pairs of points that count as replicates of each other, shape (n, m).

    Their values of f have a prior correlation of at least 0.9. A point where f has no variance is a
    replicate of others of that kind alone.
    """
    sd, its = np.sqrt(kernel.diagonal(x)), np.sqrt(kernel.diagonal(z))
    correlated = kernel(x, z) >= _ALIKE * np.outer(sd, its)
    return np.asarray(correlated & np.equal.outer(sd > 0.0, its > 0.0))


def _lengthscale(value: float | Array) -> Array:
    scale = np.array(value, dtype=float)
    numbers = scale.ravel().tolist()  # few: sooner looked at one by one
    if scale.ndim > 1 or not numbers or not all(0.0 < number < math.inf for number in numbers):
        raise ValueError(
            f"A lengthscale is a positive number, or one per coordinate, got {value!r}."
        )
    return scale


def _lengthscale_labels(scale: Array) -> tuple[Label, ...]:
    if scale.ndim == 0:
        return (("lengthscale", None),)
    return tuple(("lengthscale", k) for k in range(len(scale)))


def _collected(scale: Array, per_coordinate: Array) -> Array:
    """Gradient in d log lengthscales, summed if there is only one."""
    return per_coordinate if scale.ndim else per_coordinate.sum(keepdims=True)


@dataclass(frozen=True, eq=False)
class WithLengthscale:
    """Kernel whose hyperparameters are lengthscales.

    Parameters
    ----------
    lengthscale:
        One number, or one per coordinate (shape (d,)), in the units of the inputs.
    """

    lengthscale: Array

    def __init__(self, lengthscale: float | Array = 1.0) -> None:
        object.__setattr__(self, "lengthscale", _lengthscale(lengthscale))

    @property
    def theta(self) -> Array:
        return np.log(np.atleast_1d(self.lengthscale))

    @property
    def labels(self) -> tuple[Label, ...]:
        return _lengthscale_labels(self.lengthscale)

    def with_theta(self, theta: Array) -> Self:
        # theta is (1,) for a single lengthscale, which has the shape ()
        return replace(self, lengthscale=np.exp(theta).reshape(self.lengthscale.shape))


@dataclass(frozen=True, eq=False, init=False)
class Stationary(WithLengthscale, ABC):
    """Stationary kernel: a function of r^2 = sum_k (x_k - z_k)^2 / l_k^2, with k(x, x) = 1.

    Parameters
    ----------
    lengthscale:
        As of :class:`WithLengthscale`.
    """

    @abstractmethod
    def profile(self, squares: Array) -> tuple[Array, Array]:
        """k and dk/d(r^2) at r^2 = ``squares``, elementwise."""

    def __call__(self, x: Array, z: Array) -> Array:
        shape, each = np.shape(x)[1:], self.lengthscale.shape
        if np.shape(z)[1:] != shape or each not in ((), shape):  # one would be taken for all
            one = f", with a lengthscale for each of {each[0]}" if each else ""
            raise ValueError(
                "Points are rows with the same number of coordinates, (n, d) and (m, d), got "
                f"{np.shape(x)} and {np.shape(z)}{one}."
            )
        return self.profile(squared_distances(x / self.lengthscale, z / self.lengthscale))[0]

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        # Centred: the pull multiplies out (x_ik - x_jk)^2, which cancels far from the origin
        scaled = (x - x.sum(axis=0) / len(x)) / self.lengthscale
        K, slope = self.profile(squared_distances(scaled, scaled))

        def pull(A: Array) -> Array:
            # d r^2 / d log l_k = -2 (x_ik - x_jk)^2 / l_k^2, summed against B through B X.
            B = A * slope
            squares = (B.sum(axis=1) + B.sum(axis=0)) @ scaled**2
            per_coordinate = -2.0 * (squares - 2.0 * np.einsum("ik,ik->k", scaled, B @ scaled))
            return _collected(self.lengthscale, per_coordinate)

        return K, pull

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        centre = z.sum(axis=0) / len(z)
        from_x, from_z = (x - centre) / self.lengthscale, (z - centre) / self.lengthscale
        K, slope = self.profile(squared_distances(from_x, from_z))

        def pull(W: Array) -> Array:
            # d r^2 / d x_i = 2 (x_i - z_j) / l^2
            B = W * slope
            differences: Array = B.sum(axis=1)[:, None] * from_x - B @ from_z
            return 2.0 * differences / self.lengthscale

        return K, pull

    def diagonal_wrt_x(self, x: Array) -> Array:
        return np.zeros(x.shape)


class RBF(Stationary):
    """Squared exponential kernel exp(-r^2 / 2).

    r and lengthscales are as of :class:`Stationary`; draws have all derivatives.
    See [Rasmussen2006]_, section 4.2.
    """

    def profile(self, squares: Array) -> tuple[Array, Array]:
        K = -0.5 * squares
        np.exp(K, out=K)
        return K, -0.5 * K


class Matern12(Stationary):
    """Matern 1/2 kernel exp(-r); its gradient at r = 0, where it has none, is taken as 0."""

    def profile(self, squares: Array) -> tuple[Array, Array]:
        r = np.sqrt(squares)
        K = np.exp(-r)
        return K, np.divide(-0.5 * K, r, out=np.zeros_like(r), where=r > 0.0)


class Matern32(Stationary):
    """Matern 3/2 kernel (1 + sqrt(3) r) exp(-sqrt(3) r).

    r and lengthscales are as of :class:`Stationary`; draws have one derivative.
    See [Rasmussen2006]_, section 4.2.
    """

    def profile(self, squares: Array) -> tuple[Array, Array]:
        r = 3.0 * squares
        np.sqrt(r, out=r)
        slope = np.negative(r)
        np.exp(slope, out=slope)
        r += 1.0
        r *= slope
        slope *= -1.5  # dk/d(r^2) = -3/2 exp(-sqrt(3) r), where the 1 / r of dr/d(r^2) cancels
        return r, slope


class Matern52(Stationary):
    """Matern 5/2 kernel (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r).

    r and lengthscales are as of :class:`Stationary`; draws have two derivatives.
    See [Rasmussen2006]_, section 4.2.
    """

    def profile(self, squares: Array) -> tuple[Array, Array]:
        # In place: at 150 rows fresh memory costs more than the arithmetic; an ask is 5 % faster.
        r = 5.0 * squares
        np.sqrt(r, out=r)
        decay = np.negative(r)
        np.exp(decay, out=decay)
        r += 1.0
        r *= decay  # (1 + sqrt(5) r) exp(-sqrt(5) r)
        K = (5.0 / 3.0) * squares
        K *= decay
        K += r
        r *= -5.0 / 6.0  # dk/d(r^2) = -5/6 (1 + sqrt(5) r) exp(-sqrt(5) r)
        return K, r


@dataclass(frozen=True, eq=False, init=False)
class Linear(WithLengthscale):
    """Linear kernel sum_k x_k z_k / l_k^2.

    Parameters
    ----------
    lengthscale:
        One number, or one per coordinate (shape (d,)), in the units of the inputs.
    """

    def __call__(self, x: Array, z: Array) -> Array:
        return np.asarray((x / self.lengthscale**2) @ z.T)

    def diagonal(self, x: Array) -> Array:
        squares: Array = np.sum((x / self.lengthscale) ** 2, axis=1)
        return squares

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        scaled = x / self.lengthscale

        def pull(A: Array) -> Array:
            # d K_ij / d log l_k = -2 x_ik x_jk / l_k^2
            per_coordinate = -2.0 * np.einsum("ik,ik->k", scaled, A @ scaled)
            return _collected(self.lengthscale, per_coordinate)

        return scaled @ scaled.T, pull

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        from_z = z / self.lengthscale**2
        return x @ from_z.T, lambda W: W @ from_z

    def diagonal_wrt_x(self, x: Array) -> Array:
        return 2.0 * x / self.lengthscale**2


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Polynomial kernel (offset + linear(x, z))^degree.

    Parameters
    ----------
    degree:
        A positive integer.
    offset:
        Positive; the weight of the lower-degree monomials.
    linear:
        The inner product, with its lengthscales.
    """

    degree: int
    offset: float = 1.0
    linear: Linear = Linear()

    def __post_init__(self) -> None:
        if self.degree < 1 or not self.offset > 0.0:
            raise ValueError(
                "Polynomial needs degree >= 1 and offset > 0, "
                f"got degree={self.degree!r} and offset={self.offset!r}."
            )

    @property
    def theta(self) -> Array:
        return np.append(np.log(self.offset), self.linear.theta)

    @property
    def labels(self) -> tuple[Label, ...]:
        return (("offset", None), *self.linear.labels)

    def with_theta(self, theta: Array) -> Polynomial:
        return Polynomial(self.degree, float(np.exp(theta[0])), self.linear.with_theta(theta[1:]))

    def __call__(self, x: Array, z: Array) -> Array:
        return np.asarray((self.offset + self.linear(x, z)) ** self.degree)

    def diagonal(self, x: Array) -> Array:
        return np.asarray((self.offset + self.linear.diagonal(x)) ** self.degree)

    def _slope(self, inner: Array) -> Array:
        return np.asarray(self.degree * (self.offset + inner) ** (self.degree - 1))

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        inner, pull_inner = self.linear.wrt_theta(x)
        slope = self._slope(inner)

        def pull(A: Array) -> Array:
            B = A * slope
            # dK / d log offset = offset slope
            return np.append(self.offset * B.sum(), pull_inner(B))

        return (self.offset + inner) ** self.degree, pull

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        inner, pull_inner = self.linear.wrt_x(x, z)
        slope = self._slope(inner)
        return (self.offset + inner) ** self.degree, lambda W: pull_inner(W * slope)

    def diagonal_wrt_x(self, x: Array) -> Array:
        slope = self._slope(self.linear.diagonal(x))
        return slope[:, None] * self.linear.diagonal_wrt_x(x)


@dataclass(frozen=True, eq=False)
class Precomputed:
    """Precomputed covariance matrix; the inputs are row numbers, shape (n, 1).

    Parameters
    ----------
    matrix:
        Symmetric and positive semi-definite, shape (N, N). Its domain is
        ``Finite(np.arange(N)[:, None])``.
    """

    matrix: Array

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"Precomputed needs a square matrix, got shape {matrix.shape}.")
        if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=1e-12):
            raise ValueError("Precomputed needs a symmetric matrix, got one that is not.")
        object.__setattr__(self, "matrix", matrix)

    @staticmethod
    def _rows(x: Array) -> Integers:
        return x[:, 0].astype(np.intp)

    @property
    def theta(self) -> Array:
        return np.empty(0)

    @property
    def labels(self) -> tuple[Label, ...]:
        return ()

    def with_theta(self, theta: Array) -> Precomputed:
        return self

    def __call__(self, x: Array, z: Array) -> Array:
        return np.asarray(self.matrix[np.ix_(self._rows(x), self._rows(z))])

    def diagonal(self, x: Array) -> Array:
        return np.asarray(np.diagonal(self.matrix)[self._rows(x)])

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        return self(x, x), lambda A: np.empty(0)

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        raise ValueError(
            "A Precomputed kernel has no gradient in x: use it on a Finite domain of row numbers."
        )

    def diagonal_wrt_x(self, x: Array) -> Array:
        raise ValueError(
            "A Precomputed kernel has no gradient in x: use it on a Finite domain of row numbers."
        )


@dataclass(frozen=True, eq=False)
class Scaled:
    """Scaled kernel variance * kernel(x, z).

    Parameters
    ----------
    kernel:
        Any kernel.
    variance:
        Positive; the squared units of f.
    """

    kernel: Kernel
    variance: float = 1.0

    def __post_init__(self) -> None:
        if not self.variance > 0.0:
            raise ValueError(f"Scaled needs a positive variance, got {self.variance!r}.")

    @property
    def theta(self) -> Array:
        return np.append(np.log(self.variance), self.kernel.theta)

    @property
    def labels(self) -> tuple[Label, ...]:
        return (("variance", None), *self.kernel.labels)

    def with_theta(self, theta: Array) -> Scaled:
        return Scaled(self.kernel.with_theta(theta[1:]), float(np.exp(theta[0])))

    def __call__(self, x: Array, z: Array) -> Array:
        return self.variance * self.kernel(x, z)

    def diagonal(self, x: Array) -> Array:
        return self.variance * self.kernel.diagonal(x)

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        inner, pull_inner = self.kernel.wrt_theta(x)
        K = self.variance * inner
        # dK / d log variance = K
        return K, lambda A: np.concatenate([[np.vdot(A, K)], self.variance * pull_inner(A)])

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        inner, pull_inner = self.kernel.wrt_x(x, z)
        return self.variance * inner, lambda W: self.variance * pull_inner(W)

    def diagonal_wrt_x(self, x: Array) -> Array:
        return self.variance * self.kernel.diagonal_wrt_x(x)


@dataclass(frozen=True, eq=False)
class Pair(ABC):
    """Pointwise combination of two kernels; ``theta`` is the first's, then the second's."""

    first: Kernel
    second: Kernel

    @property
    def theta(self) -> Array:
        return np.concatenate([self.first.theta, self.second.theta])

    @property
    def labels(self) -> tuple[Label, ...]:
        return (*self.first.labels, *self.second.labels)

    def with_theta(self, theta: Array) -> Self:
        p = len(self.first.theta)
        return type(self)(self.first.with_theta(theta[:p]), self.second.with_theta(theta[p:]))


class Sum(Pair):
    """Sum of two kernels, first(x, z) + second(x, z)."""

    def __call__(self, x: Array, z: Array) -> Array:
        return self.first(x, z) + self.second(x, z)

    def diagonal(self, x: Array) -> Array:
        return self.first.diagonal(x) + self.second.diagonal(x)

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        K1, pull1 = self.first.wrt_theta(x)
        K2, pull2 = self.second.wrt_theta(x)
        return K1 + K2, lambda A: np.concatenate([pull1(A), pull2(A)])

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        K1, pull1 = self.first.wrt_x(x, z)
        K2, pull2 = self.second.wrt_x(x, z)
        return K1 + K2, lambda W: pull1(W) + pull2(W)

    def diagonal_wrt_x(self, x: Array) -> Array:
        return self.first.diagonal_wrt_x(x) + self.second.diagonal_wrt_x(x)


class Product(Pair):
    """Product of two kernels, first(x, z) * second(x, z)."""

    def __call__(self, x: Array, z: Array) -> Array:
        return self.first(x, z) * self.second(x, z)

    def diagonal(self, x: Array) -> Array:
        return self.first.diagonal(x) * self.second.diagonal(x)

    def wrt_theta(self, x: Array) -> tuple[Array, Pull]:
        K1, pull1 = self.first.wrt_theta(x)
        K2, pull2 = self.second.wrt_theta(x)
        return K1 * K2, lambda A: np.concatenate([pull1(A * K2), pull2(A * K1)])

    def wrt_x(self, x: Array, z: Array) -> tuple[Array, Pull]:
        K1, pull1 = self.first.wrt_x(x, z)
        K2, pull2 = self.second.wrt_x(x, z)
        return K1 * K2, lambda W: pull1(W * K2) + pull2(W * K1)

    def diagonal_wrt_x(self, x: Array) -> Array:
        first, second = self.first.diagonal(x), self.second.diagonal(x)
        return self.first.diagonal_wrt_x(x) * second[:, None] + first[
            :, None
        ] * self.second.diagonal_wrt_x(x)


KERNELS = (RBF, Matern12, Matern32, Matern52, Linear, Polynomial, Precomputed, Sum, Product, Scaled)
