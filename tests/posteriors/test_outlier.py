"""The odds of an outlier, against the formula written out, and what no unit may change."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from stoic.data import Observations
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors import Exact, Prior
from stoic.posteriors.outlier import OutlierOdds
from stoic.posteriors.scales import median_and_spread_in_space

BOX = Box([0.0], [1.0])
PRIOR = Prior(Scaled(Matern52(0.3), 2.0), 0.01, 0.5)


def observed(n=12, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random((n, 1)), axis=0)
    y = np.sin(6.0 * x[:, 0]) + 0.1 * rng.standard_normal(n)
    return Observations(x, y, np.full(n, np.nan))


def conditioned(observations, out, prior=PRIOR):
    fitted_defence = Hypothesis(np.where(out, np.inf, 0.0))
    return Exact.condition(prior, fitted_defence, observations, fitted_defence(observations, prior))


def by_hand(observations, out, row, a=1.0, b=19.0):
    """P(outlier) of a row, from a posterior that was not given it."""
    others = [i for i in range(len(observations)) if i != row]
    rest = conditioned(observations.only(np.array(others)), out[others])
    mean, std = (float(v[0]) for v in rest.predict(observations.x[[row]]))
    y = observations.observed
    centre, s = median_and_spread_in_space(BOX, observations)
    z = abs(y[row] - centre) / s
    density = 1.0 / (2.0 * s * (1.0 + z) * (1.0 + math.log(1.0 + z)) ** 2)
    rejected = [i for i in others if out[i]]
    for i in rejected:
        density += stats.norm.pdf(y[row], y[i], math.sqrt(2.0 * PRIOR.noise))
    density /= 1.0 + len(rejected)
    inlier = stats.norm.pdf(y[row], mean, math.sqrt(std**2 + PRIOR.noise))
    odds = (a + len(rejected)) / (b + len(others) - len(rejected)) * density / inlier
    return odds / (1.0 + odds), mean


@pytest.mark.parametrize("size", [0.0, 0.3, 0.7, 2.0])
@pytest.mark.parametrize("rejected", [(), (2,), (2, 9)])
def test_the_odds_are_those_written_out(size, rejected):
    observations = observed()
    observations.observed[[2, 5]] += size
    out = np.isin(np.arange(12), rejected)
    posterior = conditioned(observations, out)
    p, mean, _ = OutlierOdds().given_the_others(BOX, observations, posterior)
    for row in range(12):
        expected = by_hand(observations, out, row)
        assert_allclose((p[row], mean[row]), expected, rtol=1e-6, atol=1e-12)


def test_the_broad_density_is_one():
    total = integrate.quad(lambda u: 1.0 / (1.0 + u) ** 2, 0.0, np.inf)[0]  # u = ln(1 + z)
    assert total == pytest.approx(1.0)


def test_a_value_that_was_rejected_before_is_likelier_wrong():
    observations = observed()
    observations.observed[2] = observations.observed[5]
    out = np.arange(12) == 2
    p, *_ = OutlierOdds().given_the_others(BOX, observations, conditioned(observations, out))
    observations.observed[2] = -3.9
    q, *_ = OutlierOdds().given_the_others(BOX, observations, conditioned(observations, out))
    assert p[5] > q[5]


def test_what_is_not_finite_is_an_outlier():
    observations = observed()
    observations.observed[:3] = np.nan, np.inf, -np.inf
    out = ~np.isfinite(observations.observed)
    p, mean, _ = OutlierOdds().given_the_others(BOX, observations, conditioned(observations, out))
    assert (p[:3] == 1.0).all()
    assert np.isfinite(mean).all()


@pytest.mark.parametrize("odds", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_odds_are_positive(odds):
    with pytest.raises(ValueError, match="positive"):
        OutlierOdds(*odds)
