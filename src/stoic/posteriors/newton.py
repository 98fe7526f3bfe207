"""Newton basis: a few functions that span nearly all of an RKHS on a finite domain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Integers
from stoic.domains import Finite
from stoic.kernels import Kernel

# Of the largest prior variance: below, a power function is rounding. Multiplied by N.
_ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False, slots=True)
class NewtonBasis:
    """Newton basis of an RKHS: Algorithm 2 of [Bogunovic2022]_, from [Takemori2021]_.

    N_1, ..., N_D are the Gram-Schmidt orthonormalisation of k(., s_1), ..., k(., s_D) in the
    RKHS; each s_i maximises the power function of the ones before it. On the domain this
    is the Cholesky factorisation of the kernel matrix with complete pivoting, stopped early.

    Attributes
    ----------
    domain:
        The points.
    arms:
        Rows s_1, ..., s_D of the domain, in the order in which they were selected, shape (D,).
    features:
        N_i(x) for all points, shape (N, D): a row is x~.
    power:
        P_D^2(x) = k(x, x) - sum_i N_i(x)^2, shape (N,): the largest squared error at x of the
        projection of a function of norm 1.
    peaks:
        Largest P^2 before each selection and after the last, shape (D + 1,), never increasing.

    Guarantee
    ---------
    For ||f||_k <= B there is a theta with ||theta|| <= B and |f(x) - <theta, x~>| <= B error for
    all x of the domain (eqs. (105), (106)), where error^2 = max P_D^2; it interpolates f at the
    selected points. D is O((log 1/error)^d) for the squared exponential kernel and
    O(error^(-d/nu)) for the Matern kernels ([Takemori2021]_, Theorem 6).
    """

    domain: Finite
    arms: Integers
    features: Array
    power: Array
    peaks: Array

    @property
    def error(self) -> float:
        """Largest projection error of a function of norm 1, sqrt(max P_D^2)."""
        return math.sqrt(self.peaks[-1])

    @staticmethod
    def of(kernel: Kernel, domain: Finite, error: float) -> NewtonBasis:
        """Select points until the error is below ``error``, in O(N D^2) and without a N x N matrix.

        ``error`` is in units of the prior's deviation, Delta / B. There is at least one point.
        Selection stops, too, where P^2 is nothing but rounding, so that the error is then at most
        1e-7 or so of the largest deviation, even if less was asked for.

        Raises
        ------
        ValueError
            If ``error`` is not positive, or the kernel is zero on all of the domain.
        """
        if not error > 0.0:
            raise ValueError(f"A Newton basis needs an error above 0, got {error!r}.")
        points, N = domain.points, len(domain)
        power: Array = kernel.diagonal(points).astype(float)  # a copy, reduced in place
        kappa = float(power.max())
        if not kappa > 0.0:
            raise ValueError("A Newton basis needs a kernel that is not zero on all the points.")
        least = max(error**2, N * _ROUNDING * kappa)
        features = np.empty((min(16, N), N))
        arms: list[int] = []
        peaks = [kappa]
        while not arms or (peaks[-1] >= least and len(arms) < N):
            s, D = int(power.argmax()), len(arms)  # lines 1 and 8
            if len(features) == D:
                features = np.concatenate([features, np.empty((min(D, N - D), N))])
            u: Array = kernel(points[[s]], points)[0]  # line 9
            u = u - features[:D, s] @ features[:D]
            features[D] = u / math.sqrt(power[s])  # lines 2 and 10
            power -= features[D] ** 2
            np.maximum(power, 0.0, out=power)
            power[s] = 0.0  # exactly, lest rounding select it again
            arms.append(s)
            peaks.append(min(float(power.max()), peaks[-1]))
        return NewtonBasis(
            domain,
            np.array(arms, dtype=np.intp),
            np.ascontiguousarray(features[: len(arms)].T),
            power,
            np.array(peaks),
        )
