import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic import testing
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Plateau, Trust
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Arms, Exact, Prior
from stoic.posteriors.fitting import Fitting

BOX = Box([4.0], [12.0])
GRID = BOX.grid(30)
PRIOR = testing.example_prior(BOX)


class Counting(Trust):
    """How many rows were turned into targets, call by call."""

    __slots__ = ("rows",)

    def __init__(self):
        object.__setattr__(self, "rows", [])

    def __call__(self, observations, prior):
        self.rows.append(len(observations))
        return Trust()(observations, prior)


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "grid"])
def test_the_posterior_lives_on_arms_or_on_rows(domain):
    observations = testing.example_observations(domain, 20, absurd=False)
    posterior = GaussianProcess(PRIOR)(domain, observations)
    assert isinstance(posterior, Arms if domain is GRID else Exact)


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "grid"])
def test_a_new_row_alone_is_looked_at_while_nothing_revises(domain):
    observations = testing.example_observations(domain, 20, absurd=False)
    counting = Counting()
    model = GaussianProcess(PRIOR, counting)
    posterior = model(domain, observations.until(12))
    posterior = model(domain, observations.until(13), posterior)
    posterior = model(domain, observations, posterior)
    assert counting.rows == [12, 1, 7]
    whole = GaussianProcess(PRIOR)(domain, observations)
    z = domain.sample(9, np.random.default_rng(0))
    for a, b in zip(posterior.predict(z), whole.predict(z), strict=True):
        assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "grid"])
def test_a_revising_defence_is_recomputed(domain):
    observations = testing.example_observations(domain, 20, absurd=False)
    model = GaussianProcess(PRIOR, AdaptivePlateau(1.0))
    posterior = model(domain, observations.until(12))
    posterior = model(domain, observations, posterior)
    whole = model(domain, observations)
    z = domain.sample(9, np.random.default_rng(0))
    for a, b in zip(posterior.predict(z), whole.predict(z), strict=True):
        assert_array_equal(a, b)


def test_the_prior_that_is_fitted_replaces_the_family():
    observations = testing.example_observations(BOX, 30, absurd=False)
    family = Prior(Scaled(Matern52(np.ones(1))), 0.1)
    posterior = GaussianProcess(family, Trust(), Fitting())(BOX, observations)
    assert posterior.prior is not family
    assert posterior.prior.kernel.kernel.lengthscale[0] != 1.0
    assert GaussianProcess(family)(BOX, observations).prior is family


def test_a_window_is_a_campaign_of_its_own():
    observations = testing.example_observations(GRID, 20, absurd=False)
    model = GaussianProcess(PRIOR, Plateau(1.0, 0.5, 1.0))
    window = model(GRID, observations.only(slice(8, None)))
    columns = observations.x, observations.observed, observations.noise, observations.arms
    alone = model(GRID, Observations(*(column[8:] for column in columns)))
    assert window.n == 12
    assert_array_equal(window.mean, alone.mean)
