import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import literal
from stoic.domains import Finite
from stoic.kernels import RBF, Matern12, Scaled
from stoic.posteriors import Prior, greedy_information, information_upper_bound


@pytest.mark.parametrize("kernel", [RBF(0.8), Scaled(Matern12(1.5), 3.0)], ids=repr)
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_against_all_choices(kernel, rounds, seed):
    points = 5.0 + np.random.default_rng(seed).uniform(-1.0, 1.0, (6, 1))
    best = max(
        literal.information(kernel, points[list(rows)], np.full(rounds, 0.2))
        for rows in itertools.combinations_with_replacement(range(6), rounds)
    )
    greedy = greedy_information(Prior(kernel, 0.2), Finite(points), rounds)
    assert (1.0 - 1.0 / math.e) * best <= greedy <= best + 1e-12
    assert information_upper_bound(greedy) >= best


def test_one_arm_has_a_closed_form():
    domain, prior = Finite(np.array([[2.0]])), Prior(Scaled(RBF(1.0), 3.0), 0.5)
    assert_allclose(
        greedy_information(prior, domain, 10), 0.5 * math.log(1 + 10 * 3.0 / 0.5), rtol=1e-12
    )


def test_no_rounds_tell_nothing():
    assert greedy_information(Prior(RBF(1.0), 1.0), Finite(np.zeros((1, 1))), 0) == 0.0
