import numpy as np
from numpy.testing import assert_array_equal

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
    d_values, d_noise = Trust().slopes(observations, Prior(RBF(), 0.1))
    assert_array_equal(d_values, [0.0, 0.0])
    assert_array_equal(d_noise, [0.1, 0.0])
