"""Bands that promise to hold with probability 1 - delta are held to it, over seeded draws.

False alarms: with M draws and a true failure probability of at most delta, the number of failures
exceeds the bound used here, the 1 - 1e-6 quantile of Binomial(M, delta), with probability below
1e-6; the draws are seeded, so a pass stays a pass.
"""

import numpy as np
import pytest
from scipy.stats import binom

from stoic.confidence import CorruptionCount, FiniteUnion, SelfNormalised
from stoic.data import Observations
from stoic.defences import Plateau, Trust
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import UCB
from stoic.posteriors import Prior
from stoic.recipes import Parts

DRAWS, ROUNDS, DELTA = 120, 25, 0.2
GRID = Box([5.0], [9.0]).grid(40)
PRIOR = Prior(Scaled(Matern52(0.6), 1.5), 0.2)
K = PRIOR.kernel(GRID.points, GRID.points)


def failures(draw, width, defence=None, lie=None):
    """In how many campaigns the band once missed f on some arm, in any round."""
    missed = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        f = draw(rng)
        learner = Learner(GRID, Parts(GaussianProcess(PRIOR, defence or Trust()), width, UCB()))
        outside = False
        for t in range(1, ROUNDS + 1):
            posterior = learner.posterior
            mean, std = posterior.predict(GRID.points)
            outside |= bool((np.abs(f - mean) > width(posterior, t) * std + 1e-9).any())
            choice = learner.ask()
            y = f[choice.arm] + np.sqrt(PRIOR.noise) * rng.standard_normal()
            if lie is not None and t in lie:
                y = lie[t]
            learner.tell(choice.x, y)
        missed += outside
    return missed


def from_the_prior(rng):
    return np.linalg.cholesky(K + 1e-9 * np.eye(len(K))) @ rng.standard_normal(len(K))


def of_norm(norm):
    def draw(rng):
        centres = rng.integers(40, size=6)
        weights = rng.standard_normal(6)
        root = np.sqrt(weights @ K[np.ix_(centres, centres)] @ weights)
        return norm / root * (K[:, centres] @ weights)

    return draw


ALLOWED = int(binom.ppf(1.0 - 1e-6, DRAWS, DELTA))


def test_the_union_bound_holds_for_draws_from_the_prior():
    assert failures(from_the_prior, FiniteUnion(len(GRID), DELTA)) <= ALLOWED


@pytest.mark.parametrize("norm", [1.0, 4.0])
def test_the_self_normalised_band_holds_for_functions_of_bounded_norm(norm):
    assert failures(of_norm(norm), SelfNormalised(norm, delta=DELTA)) <= ALLOWED


def test_a_band_that_promises_too_little_is_caught():
    # The check has teeth: half a deviation everywhere fails in nearly every campaign.
    assert failures(from_the_prior, lambda posterior, t: 0.5) > ALLOWED


def test_the_enlarged_band_holds_against_lies_of_any_size():
    # f inside the plateau's reach; two observations replaced.
    norm, corruptions = 1.0, 2
    half_width = norm * np.sqrt(1.5) + np.sqrt(2 * PRIOR.noise * np.log(3 * ROUNDS / DELTA))
    width = CorruptionCount(SelfNormalised(norm, delta=DELTA), corruptions, norm)
    defence = Plateau(float(half_width), 1.0)
    lie = {2: 1e300, 5: -12.0}
    assert failures(of_norm(norm), width, defence, lie) <= ALLOWED
    # Without the defence the same lie leaves no band standing.
    assert failures(of_norm(norm), SelfNormalised(norm, delta=DELTA), None, {2: 50.0}) > ALLOWED


def test_the_information_of_a_band_is_that_of_its_posterior():
    observations = Observations(
        GRID.points[[3, 9, 9]], np.zeros(3), np.full(3, np.nan), np.array([3, 9, 9])
    )
    posterior = GaussianProcess(PRIOR)(GRID, observations)
    rows = K[np.ix_([3, 9, 9], [3, 9, 9])]
    information = 0.5 * np.linalg.slogdet(np.eye(3) + rows / PRIOR.noise)[1]
    expected = 2.0 + np.sqrt(2 * information + 2 * np.log(1 / 0.1))
    assert SelfNormalised(2.0)(posterior, 4) == pytest.approx(expected, rel=1e-12)
