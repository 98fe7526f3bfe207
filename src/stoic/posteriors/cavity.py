"""Leave-one-out (cavity) posteriors of all rows at once."""

from __future__ import annotations

import numpy as np

from stoic import linalg
from stoic.data import Array, Observations, Targets
from stoic.posteriors.absorbed import InWindow, Sparse, WindowPosterior
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior

_FARTHEST = 1e307  # largest distance of a leave-one-out mean from the posterior mean
_SHARP = 1e-7  # of the prior variance: so little noise is hardly ever fitted, but may be given


def given_the_others(posterior: Posterior, observations: Observations) -> tuple[Array, Array]:
    """Leave-one-out mean and standard deviation of f at each observation, both (n,).

    The posterior at row i, N(m, s), is that of the others, N(m', s'), times N(f; y_i, v_i): so
    1 / s' = 1 / s - 1 / v_i and m' / s' = m / s - y_i / v_i. It equals eqs. (5.12)
    of [Rasmussen2006]_, without an inverse and on any domain. For results with so little noise
    that 1 / s - 1 / v_i would be rounding those equations are used, if the posterior is ``Exact``.
    Both are finite for results up to 1e307, also where the posterior has no digits left to
    subtract. For ``MixturePosterior``, those of its parts are combined like their predictions.
    """
    if isinstance(posterior, WindowPosterior):
        noise = posterior.fitted_defence(observations, posterior.prior).noise
        judged = [
            absorbed.given_the_others(part, observations, noise)
            for absorbed, part in zip(posterior.absorbed, posterior.parts, strict=True)
            if isinstance(part, Exact)
        ]
        mean, std = posterior.together(judged)
        window, near = posterior.rows, posterior.near  # these are not absorbed
        mean[window], std[window] = near.given_the_others(observations.only(window))
        return mean, std
    if isinstance(posterior, InWindow):
        return posterior.given_the_others(observations)
    if isinstance(posterior, MixturePosterior):
        return posterior.together(
            [given_the_others(part, observations) for part in posterior.parts]
        )
    targets = posterior.fitted_defence(observations, posterior.prior)
    return without_each(posterior, targets, *posterior.predict(observations.x))


def without_each(
    posterior: Posterior, targets: Targets, mean: Array, std: Array
) -> tuple[Array, Array]:
    """As :func:`given_the_others`, from the ``posterior``'s targets, mean and std at the rows."""
    # s <= v_i: where prior and noise differ by more than a float's digits, s is rounding.
    variance = np.minimum(np.maximum(std**2, np.finfo(float).tiny), targets.noise)
    # 1 / s - 1 / v_i, times s: the share of the precision that the others contribute, in (0, 1].
    share = np.maximum(1.0 - variance / targets.noise, 1e-12)
    finite = np.isfinite(targets.noise)
    pull = np.where(finite, variance / targets.noise, 0.0) / share
    # A pull of up to 1e12 on a result of 1e300 overflows.
    most = _FARTHEST / np.maximum(pull, 1.0)
    mean = mean + pull * np.clip(mean - targets.values, -most, most)
    std = np.sqrt(variance / share)
    # A fitted defence may have more rows than the posterior does: those that came since. A sparse
    # one has its rows in another order.
    if not isinstance(posterior, Exact) or isinstance(posterior, Sparse):
        return mean, std
    if len(posterior.x) != np.count_nonzero(finite):
        return mean, std
    sharp = targets.noise < _SHARP * posterior.max_variance
    if sharp.any():
        # y_i less the mean is a_i / B_ii, of variance 1 / B_ii: B = (K + D)^-1, a = B (y - mean)
        rows = sharp[finite]
        spread = 1.0 / np.diagonal(linalg.cholesky_inverse(posterior.L))[rows]
        mean[sharp] = targets.values[sharp] - posterior.alpha[rows] * spread
        std[sharp] = np.sqrt(np.maximum(spread - targets.noise[sharp], np.finfo(float).tiny))
    return mean, std
