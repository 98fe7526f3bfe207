import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic import Box, Learner, recipes
from stoic.data import Observations
from stoic.defences import Trust
from stoic.kernels import RBF
from stoic.posteriors import Prior


def test_what_was_told_is_believed_unless_it_is_not_a_number():
    observed = np.array([1.0, np.nan, -3.0, np.inf, 1e300])
    noise = np.array([np.nan, np.nan, 0.5, 0.5, np.nan])
    targets = Trust()(Observations(np.zeros((5, 1)), observed, noise), Prior(RBF(), 0.1, 7.0))
    assert_array_equal(targets.values, [1.0, 7.0, -3.0, 7.0, 1e300])
    assert_array_equal(targets.noise, [0.1, np.inf, 0.5, np.inf, 0.1])
    assert_array_equal(targets.trust, [1.0, 0.0, 1.0, 0.0, 1.0])


def test_slopes_leave_a_told_noise_alone():
    observations = Observations(np.zeros((2, 1)), np.zeros(2), np.array([np.nan, 0.5]))
    prior = Prior(RBF(), 0.1)
    d_values, d_noise = Trust().slopes(observations, prior, Trust()(observations, prior))
    assert_array_equal(d_values, [0.0, 0.0])
    assert_array_equal(d_noise, [0.1, 0.0])


def test_a_reported_noise_that_is_not_used_does_not_change_a_fit():
    rng = np.random.default_rng(0)
    x = rng.random((20, 1))
    y = np.sin(6.0 * x[:, 0]) + 0.2 * rng.standard_normal(20)
    box = Box([0.0], [1.0])
    fits = [
        Learner(box, recipes.rgp_ucb(budget=1.0), seed=0) for _ in range(2)
    ]  # which trusts the prior's noise alone
    fits[0].tell(x, y)
    fits[1].tell(x, y, np.full(20, 1e-4))
    one, other = (fit.posterior.prior for fit in fits)
    assert one.noise == pytest.approx(other.noise, rel=1e-6)
