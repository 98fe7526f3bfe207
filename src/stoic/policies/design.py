"""Where to measure so that a linear model is known best: near-optimal designs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from stoic.data import Array


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """Shares of the plays for the rows of a matrix of features.

    Attributes
    ----------
    shares:
        zeta(x), shape (n,): not negative, of sum 1.
    rank:
        Dimension of the span of the rows.
    leverage:
        ||x||^2 in the pseudo-inverse of Gamma(zeta) = sum_x zeta(x) x x', shape (n,).
    """

    shares: Array
    rank: int
    leverage: Array


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


def near_optimal_design(features: Array, factor: float = 2.0) -> Design:
    """A design with max ||x||^2_{Gamma^-1} <= factor * rank, on few rows: eq. (107).

    Starts from equal shares of ``rank`` rows, each the farthest from the span of those before it,
    and moves weight to the row with the largest leverage until none is above factor * rank
    (Frank-Wolfe with exact steps, as in [Lattimore2020]_). It works in coordinates of the span of
    the rows, which need not be all of the space.

    Parameters
    ----------
    features:
        Shape (n, D), n >= 1, not all zero.
    factor:
        Above 1; 1 would be the best there is (Kiefer and Wolfowitz).

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
    # Columns of R are the rows of the features in coordinates of their span.
    _, R, order = qr(features.T / largest, mode="economic", pivoting=True)
    scale = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(scale > scale[0] * max(features.shape) * np.finfo(float).eps))
    X: Array = np.empty((len(features), rank))
    X[order] = R[:rank].T
    # In the basis of the first rows every design has a Gramian near the identity at the start.
    X = np.asarray(np.linalg.solve(R[:rank, :rank], X.T).T)
    shares = np.zeros(len(features))
    shares[order[:rank]] = 1.0 / rank
    inverse = rank * np.eye(rank)
    leverage = rank * np.einsum("ij,ij->i", X, X)
    while (peak := float(leverage[row := int(leverage.argmax())])) > factor * rank:
        step = (peak / rank - 1.0) / (peak - 1.0)
        shares *= 1.0 - step
        shares[row] += step
        v = inverse @ X[row]
        weight = step / (1.0 - step + step * peak)
        leverage = (leverage - weight * (X @ v) ** 2) / (1.0 - step)
        inverse = (inverse - weight * np.outer(v, v)) / (1.0 - step)
    shares /= shares.sum()
    return Design(shares, rank, leverage)
