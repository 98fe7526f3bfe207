"""Near-optimal (G-optimal) experimental designs for a linear model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from stoic.data import Array, Booleans
from stoic.domains import Finite
from stoic.policies.designs import Plan
from stoic.posteriors.newton import NewtonBasis
from stoic.posteriors.prior import Prior


def support_bound(dim: int) -> int:
    """m_0 = 4 D (ln ln D + 18) of [Bogunovic2022]_, rounded up, with ln ln D = 0 up to D = 2.

    Raises
    ------
    ValueError
        If there is no dimension.
    """
    if dim < 1:
        raise ValueError(f"A design needs at least 1 dimension, got {dim}.")
    return math.ceil(4.0 * dim * (math.log(math.log(max(dim, math.e))) + 18.0))


def near_optimal_design(features: Array, factor: float = 2.0) -> Array:
    """Compute a design with max ||x||^2_{Gamma^-1} <= factor * rank, on few rows: eq. (107).

    Returns the share of the plays of each row, shape (n,): not negative, of sum 1. The norm is that
    of the pseudo-inverse of Gamma = sum of share x x', and the rank that of ``features``.

    Starts from equal shares of ``rank`` rows, each the farthest from the span of those before it,
    and moves weight to the row with the largest leverage until none is above factor * rank
    (Frank-Wolfe with exact steps, as in [Lattimore2020]_). It works in coordinates of the span of
    the rows, which need not be all of the space.

    Parameters
    ----------
    features:
        Shape (n, D), n >= 1, not all zero.
    factor:
        Above 1; 1 would be optimal (Kiefer and Wolfowitz).

    Guarantee
    ---------
    The bound on the leverage holds when it returns. For ``factor`` = 2 and rank r a step, which
    adds one row at most, raises log det Gamma by ln 2 - 1/2 or more, and at the start it is at most
    r ln r below its maximum, because no row has a larger part along the direction in which a
    starting row was added than that row. So there are at most r + 5.2 r ln r rows, which is below
    4 r (ln ln r + 18) up to a rank of a million. Measured on random rows there were
    less than 2 r. Costs O(n r) a step.

    Raises
    ------
    ValueError
        If all rows are zero or the factor is not above 1.
    """
    if not factor > 1.0:
        raise ValueError(f"A near-optimal design needs a factor above 1, got {factor!r}.")
    largest = float(np.abs(features).max(initial=0.0))
    if not largest > 0.0:
        raise ValueError("A design needs at least one row of features that is not zero.")
    # Columns of R are the rows of the features, in coordinates of their span.
    _, R, order = qr(features.T / largest, mode="economic", pivoting=True)
    scale = np.abs(np.diagonal(R))
    # The tolerance of numpy.linalg.matrix_rank, for the diagonal of R
    rank = int(np.count_nonzero(scale > scale[0] * max(features.shape) * np.finfo(float).eps))
    X: Array = np.empty((len(features), rank))
    X[order] = R[:rank].T
    # In the basis of the first rows the Gramian is near the identity at the start.
    X = np.asarray(np.linalg.solve(R[:rank, :rank], X.T).T)
    shares = np.zeros(len(features))
    shares[order[:rank]] = 1.0 / rank
    # The first rows are unit vectors in X, so Gamma = I / rank
    inverse = rank * np.eye(rank)
    leverage = rank * np.einsum("ij,ij->i", X, X)
    while (peak := float(leverage[row := int(leverage.argmax())])) > factor * rank:
        # Exact: the maximum of log det Gamma on the way to the row
        step = (peak / rank - 1.0) / (peak - 1.0)
        shares *= 1.0 - step
        shares[row] += step
        # Sherman-Morrison for (1 - step) Gamma + step x x', and all leverages with it
        v = inverse @ X[row]
        weight = step / (1.0 - step + step * peak)
        leverage = (leverage - weight * (X @ v) ** 2) / (1.0 - step)
        inverse = (inverse - weight * np.outer(v, v)) / (1.0 - step)
    return np.asarray(shares / shares.sum())  # rounding of many steps


@dataclass(frozen=True, eq=False, slots=True)
class NearOptimal:
    """Lines 2 and 3 of Algorithm 3 of [Bogunovic2022]_: a near-optimal design of the active arms.

    Epoch h has m = m_0 2^h plays, shared out among the arms of the design; each of them gets at
    least ceil(m ``share``).

    Parameters
    ----------
    basis:
        The features, on the domain of the learner.
    share:
        alpha in (0, 1), the truncation; ``None`` takes 1 / m_0, so that an epoch has at most
        3 m plays.

    Guarantee
    ---------
    With Gamma_h = sum_x u(x) x x' over the plays, ||x||^2_{Gamma_h^-1} <= 2 D / m for all active x,
    on at most m_0 arms, and at most m (1 + alpha m_0) + m_0 plays ([Bogunovic2021]_).
    """

    basis: NewtonBasis
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not 0.0 < self.share < 1.0:
            raise ValueError(f"The least share of an arm is in (0, 1), got {self.share!r}.")

    @property
    def support(self) -> int:
        """Largest number of arms of a design, m_0."""
        return support_bound(self.basis.features.shape[1])

    @property
    def least(self) -> float:
        """Least share of an arm, alpha."""
        return 1.0 / self.support if self.share is None else self.share

    def __call__(self, prior: Prior, domain: Finite, active: Booleans, epoch: int) -> Plan:
        if domain is not self.basis.domain:
            raise ValueError(
                f"NearOptimal has features for {self.basis.domain!r}, got {domain!r}: make the "
                "Newton basis on the domain of the learner."
            )
        m = self.support * 2**epoch  # lines 1 and 7
        arms = np.flatnonzero(active)
        features = self.basis.features[arms]
        if not features.any():  # f is known there, but something must be played
            return Plan(arms[:1], np.array([m], dtype=np.intp))
        shares = near_optimal_design(features)
        chosen = shares > 0.0
        plays = np.ceil(m * np.maximum(shares[chosen], self.least))  # line 3
        return Plan(arms[chosen], plays.astype(np.intp))
