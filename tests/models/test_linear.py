import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from stoic import testing
from stoic.confidence.reduction import ReducedBudget
from stoic.data import Observations
from stoic.domains import Box, Finite
from stoic.kernels import Matern52, Scaled
from stoic.models.linear import LeastSquares
from stoic.policies.near_optimal import near_optimal_design, support_bound
from stoic.posteriors import Prior
from stoic.posteriors.newton import NewtonBasis

GRID = Box([-5, 20], [5, 30]).grid(6)
KERNEL = Scaled(Matern52(6.0), 2.0)
BASIS = NewtonBasis.of(KERNEL, GRID, 0.2)


def told(arms, observed):
    return Observations(GRID.points[arms], observed, np.full(len(arms), np.nan), arms)


def literal(arms, observed, mean):
    """(108) as it stands: sum over t of x_t times the mean of the results of its arm."""
    D = BASIS.features.shape[1]
    gramian, right = np.zeros((D, D)), np.zeros(D)
    for arm in arms:
        x = BASIS.features[arm]
        gramian += np.outer(x, x)
        right += x * np.mean(observed[arms == arm] - mean)
    return np.linalg.pinv(gramian, rcond=1e-12, hermitian=True) @ right


@pytest.mark.parametrize("arms", [3, 10, 36])
@pytest.mark.parametrize("mean", [0.0, 5.0])
def test_it_is_equation_108(arms, mean):
    rng = np.random.default_rng(arms)
    rows = rng.choice(rng.choice(36, arms, replace=False), 300)
    observed = rng.normal(size=300) + mean
    fit = LeastSquares(Prior(KERNEL, 0.1, mean), BASIS)(GRID, told(rows, observed))
    theta = literal(rows, observed, mean)
    assert_allclose(fit.theta, theta, atol=1e-7 * np.abs(theta).max())
    assert_allclose(fit.mean, mean + BASIS.features @ theta, atol=1e-6)
    # Ordinary least squares on the rows, too.
    plain = np.linalg.lstsq(BASIS.features[rows], observed - mean, rcond=None)[0]
    assert_allclose(fit.theta, plain, atol=1e-7 * np.abs(theta).max())


def test_absurd_results_leave_it_finite():
    arms = np.array([0, 0, 1, 2, 3, 3])
    observed = np.array([1e300, 1e300, math.nan, math.inf, -1e300, 2.0])
    fit = LeastSquares(Prior(KERNEL, 0.1), BASIS)(GRID, told(arms, observed))
    assert np.isfinite(fit.mean).all()
    assert fit.trust(told(arms, observed)).tolist() == [1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    assert (fit.n, fit.distrusted) == (6, 2)


def test_the_basis_must_be_of_the_domain():
    other = Finite(GRID.points)
    with pytest.raises(ValueError, match="make the Newton basis on the domain of the learner"):
        LeastSquares(Prior(KERNEL, 0.1), BASIS)(other, testing.example_observations(other, 2))


# The width: in units of f, since the deviation is 1.


def epoch(active, h, share):
    """Plays of each arm in epoch h, as in Algorithm 3."""
    shares = np.zeros(36)
    shares[active] = near_optimal_design(BASIS.features[active])
    m = support_bound(BASIS.features.shape[1]) * 2**h
    return np.where(shares > 0.0, np.ceil(m * np.maximum(shares, share)), 0).astype(int)


def width(**changes):
    D = BASIS.features.shape[1]
    m = support_bound(D)
    known = {"dim": D, "support": m, "share": 1.0 / m, "error": BASIS.error, "budget": 0.0}
    return ReducedBudget(**{**known, "arms": 36, "noise_sd": 0.0, **changes})


@pytest.mark.parametrize("active", [np.arange(36), np.array([3, 4, 9]), np.array([7])])
@pytest.mark.parametrize("h", [0, 2])
@pytest.mark.parametrize("share", [1e-3, 0.03])
@pytest.mark.parametrize("form", ["theory", "tight"])
def test_nothing_within_the_budget_moves_the_estimate_by_more(active, h, share, form):
    # The worst a corruption can do to the estimate at x is C max_z |x' Gamma^+ z|, on one arm z.
    plays = epoch(active, h, share)
    X = BASIS.features
    pull = X[active] @ np.linalg.pinv((X * plays[:, None]).T @ X, rcond=1e-12) @ X.T
    allowed = width(share=share, budget=7.0, form=form, error=1e-300)(None, h + 1)
    assert 7.0 * np.abs(pull[:, plays > 0]).max() <= allowed
    # And what the basis leaves out: any function within the error on each play.
    left_out = np.abs(pull) @ plays
    assert left_out.max() <= width(share=share, form=form, error=1.0)(None, h + 1) - 1.0


def test_a_noisy_function_of_bounded_norm_lies_in_the_band():
    # False alarms below 1e-6 if the failure probability is delta; the draws are seeded.
    draws, delta, sd, norm, missed = 200, 0.2, 0.7, 3.0, 0
    band = width(error=norm * BASIS.error, noise_sd=sd, delta=delta)
    assert norm * BASIS.error > 0.1
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        centres = GRID.points[rng.integers(36, size=4)]
        weights = rng.normal(size=4)
        weights *= norm / math.sqrt(weights @ KERNEL(centres, centres) @ weights)
        f = KERNEL(GRID.points, centres) @ weights
        arms = np.repeat(np.arange(36), epoch(np.arange(36), 0, band.share))
        observed = f[arms] + sd * rng.normal(size=len(arms))
        fit = LeastSquares(Prior(KERNEL, sd**2), BASIS)(GRID, told(arms, observed))
        missed += bool(np.any(np.abs(fit.mean - f) > band(fit, 1)))
    assert missed <= binom.ppf(1 - 1e-6, draws, delta)


def test_the_width_is_half_of_109_and_the_error():
    settings = {"dim": 20, "support": 1528, "share": 0.001, "error": 0.03, "arms": 100}
    known = ReducedBudget(**settings, budget=50.0, noise_sd=1.0)
    for h in range(4):
        m, delta = 1528 * 2**h, 6 * 0.1 / ((h + 1) ** 2 * math.pi**2 * 200)
        right = 4 * 0.03 * math.sqrt(20 * (1 + 0.001 * 1528))
        right += 4 * math.sqrt(20 / m * math.log(1 / delta))
        right += 4 * 50 / (0.001 * m) * math.sqrt(20 * (1 + 0.001 * 1528))
        assert_allclose(known(None, h + 1), 0.03 + right / 2)


def test_the_tight_term_is_less_by_the_stated_factor():
    theory, tight, none = (
        width(budget=C, form=form, share=0.02)(None, 3)
        for C, form in ((9.0, "theory"), (9.0, "tight"), (0.0, "tight"))
    )
    factor = math.sqrt(2 * (support_bound(BASIS.features.shape[1]) + 1 / 0.02))
    assert_allclose((theory - none) / (tight - none), factor)


def test_a_late_epoch_has_a_width():
    assert 0.0 < width(budget=1.0, noise_sd=1.0)(None, 10**6) < math.inf


@pytest.mark.parametrize(
    ("wrong", "answer"),
    [
        ({"dim": 0}, "at least one feature"),
        ({"share": 0.0}, r"in \(0, 1\), got 0\.0"),
        ({"error": -1.0}, r"error=-1\.0"),
        ({"budget": math.nan}, "budget=nan"),
        ({"delta": 1.5}, "between 0 and 1"),
        ({"form": "loose"}, "'theory' or 'tight', got 'loose'"),
    ],
)
def test_a_width_of_nothing_is_refused(wrong, answer):
    with pytest.raises(ValueError, match=answer):
        width(**wrong)


def test_a_square_root_law_of_the_noise():
    plain = width(noise_sd=1.0, error=1e-300)
    assert_allclose(plain(None, 1) / width(noise_sd=3.0, error=1e-300)(None, 1), 1 / 3)
