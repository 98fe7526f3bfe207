import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic import testing
from stoic.defences import Trust
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Prior
from stoic.posteriors.mixture import MixturePosterior

BOX = Box([20.0, -7.0], [28.0, -3.0])
SHORT = Prior(Scaled(Matern52(np.array([1.0, 0.5])), 3.0), 0.3, -1.0)
LONG = Prior(Scaled(Matern52(np.array([6.0, 4.0])), 1.0), 0.1, 2.0)
WEIGHTS = np.array([0.7, 0.3])


def disputed(domain, n=12):
    observations = testing.example_observations(domain, n)
    parts = tuple(GaussianProcess(prior)(domain, observations) for prior in (SHORT, LONG))
    return MixturePosterior(parts, WEIGHTS, Trust()), observations


@pytest.mark.parametrize("domain", [BOX, BOX.grid(5)], ids=["box", "grid"])
def test_it_is_a_posterior(domain):
    posterior, observations = disputed(domain)
    testing.check_posterior(posterior, domain, observations)


def test_its_deviation_is_the_root_mean_square_error_of_its_mean():
    posterior, _ = disputed(BOX)
    x = BOX.sample(7, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    which = rng.choice(2, p=WEIGHTS, size=200_000)
    predicted = [part.predict(x) for part in posterior.parts]
    draws = rng.standard_normal((200_000, 7))
    for k, (mean, std) in enumerate(predicted):
        draws[which == k] = mean + std * draws[which == k]
    mean, std = posterior.predict(x)
    assert_array_equal(mean, predicted[0][0])
    assert_allclose(np.sqrt(np.mean((draws - mean) ** 2, axis=0)), std, rtol=0.01)


class Times:
    """A posterior in other units."""

    def __init__(self, part, unit):
        self.part, self.unit = part, unit

    def predict(self, x):
        return tuple(self.unit * of for of in self.part.predict(x))

    def predict_with_gradient(self, x):
        return tuple(self.unit * of for of in self.part.predict_with_gradient(x))


@pytest.mark.parametrize("unit", [2.0**-990, 2.0**-600, 2.0**10, 2.0**600, 2.0**1000])
def test_the_units_of_results_do_not_matter_however_large_they_are(unit):
    posterior, _ = disputed(BOX)
    scaled = MixturePosterior(
        tuple(Times(part, unit) for part in posterior.parts), WEIGHTS, Trust()
    )
    x = BOX.sample(9, np.random.default_rng(5))
    for ours, its in zip(scaled.predict(x), posterior.predict(x), strict=True):
        assert_array_equal(ours / unit, its)
    both = scaled.predict_with_gradient(x), posterior.predict_with_gradient(x)
    for ours, its in zip(*both, strict=True):
        assert_array_equal(ours / unit, its)


def test_parts_that_agree_dispute_nothing():
    domain = BOX.grid(5)
    observations = testing.example_observations(domain, 12)
    alone = GaussianProcess(SHORT)(domain, observations)
    posterior = MixturePosterior((alone, alone), WEIGHTS, Trust())
    for ours, its in zip(
        posterior.predict(domain.points), alone.predict(domain.points), strict=True
    ):
        assert_allclose(ours, its, rtol=1e-12)


def test_a_fantasy_leaves_the_dispute_open():
    posterior, _ = disputed(BOX)
    x = BOX.sample(1, np.random.default_rng(3))
    between = np.sqrt(WEIGHTS[1]) * np.abs(np.subtract(*(p.predict(x)[0] for p in posterior.parts)))
    often = posterior.fantasise(np.repeat(x, 300, axis=0))
    mean, std = often.predict(x)
    assert_allclose(mean, posterior.predict(x)[0])
    assert between <= std < 1.02 * between + 0.05
