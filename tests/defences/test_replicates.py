"""Agreement at one input, against a loop that counts."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic.data import Observations
from stoic.defences.replicates import agreement, confirmed
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.models import LeaveOneOutGP
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting, marginal_likelihood

BOX = Box([-2.0, 0.0], [3.0, 10.0])


def by_hand(x, y, noise, half_width):
    votes = []
    for i in range(len(y)):
        count = 0
        for j in range(len(y)):
            if i == j or not np.array_equal(x[i], x[j]) or not np.isfinite(y[j]):
                continue
            agrees = abs(y[i] - y[j]) <= half_width * np.sqrt(noise[i] + noise[j])
            count += 1 if agrees else -1
        votes.append(count)
    return np.array(votes, dtype=float)


@pytest.mark.parametrize("seed", range(10))
def test_votes_are_those_counted_by_hand(seed):
    rng = np.random.default_rng(seed)
    x = BOX.sample(4, rng)[rng.integers(4, size=20)]
    y = rng.integers(3, size=20) + 0.1 * rng.standard_normal(20)
    y[rng.random(20) < 0.1] = np.nan
    noise = rng.uniform(0.005, 0.02, 20)
    observations = Observations(x, y, np.full(20, np.nan))
    expected = by_hand(x, y, noise, 2.5)
    finite = np.isfinite(y)
    assert_array_equal(agreement(BOX, observations, noise, 2.5)[finite], expected[finite])
    assert_array_equal(confirmed(BOX, observations, noise, 2.5), finite & (expected >= 2.0))
    some = np.array([3, 1, 7])
    for count in (agreement, confirmed):
        whole = count(BOX, observations, noise, 2.5)
        assert_array_equal(count(BOX, observations, noise, 2.5, some), whole[some])


@pytest.mark.parametrize("replicates", [False, True])
def test_three_that_agree_are_trusted_on_a_plateau(replicates):
    # A plateau without noise says with any certainty that a needle is none.
    rng = np.random.default_rng(0)
    needle = np.array([[1.0, 5.0]])
    x = np.concatenate([BOX.sample(20, rng), np.repeat(needle, 3, axis=0)])
    y = np.repeat([0.0, 1.0], [20, 3])
    family = Prior(Scaled(Matern52(np.ones(2))), 0.01)
    model = LeaveOneOutGP(
        family, Fitting(marginal_likelihood), outlier_penalty=2.0, replicates=replicates
    )
    observations = Observations(x, y, np.full(23, np.nan))
    posterior = model(BOX, observations)
    assert (posterior.trust(observations)[20:] >= 0.5).all() == replicates
    if replicates:
        assert posterior.predict(needle)[0][0] == pytest.approx(1.0, abs=0.1)
