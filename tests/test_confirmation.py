"""Comparison of candidates, and which of them is measured again."""

import math

import numpy as np
import pytest

from stoic import Box, Learner, Prior, recipes
from stoic.confirmation import DRAWS, Comparison, contenders, draw_jointly
from stoic.data import Observations
from stoic.kernels import Matern52
from stoic.posteriors.base import as_observed
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import Averaged

PRIOR = Prior(Matern52(0.3), 0.01)
X = np.array([[0.1], [0.15], [0.5], [0.9]])


def posterior(values=(0.0, 0.2, 1.0, 0.9)):
    rows = Observations(X, np.array(values), np.full(len(X), np.nan))
    return Exact.condition(PRIOR, as_observed, rows, as_observed(rows, PRIOR))


def test_joint_moments_agree_with_the_marginal_ones():
    one = posterior()
    mean, covariance = one.jointly(X)
    alone, std = one.predict(X)
    np.testing.assert_allclose(mean, alone)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)), std)
    assert covariance[0, 1] > 0.1 * std[0] * std[1]  # neighbours move together


def test_without_observations_they_are_those_of_the_prior():
    nothing = Observations(X[:0], np.empty(0), np.empty(0))
    bare = Exact.condition(PRIOR, as_observed, nothing, as_observed(nothing, PRIOR))
    mean, covariance = bare.jointly(X)
    np.testing.assert_allclose(mean, PRIOR.mean)
    np.testing.assert_allclose(covariance, PRIOR.kernel(X, X))


def test_draws_have_the_joint_moments():
    mean, covariance = posterior().jointly(X)
    draws = draw_jointly(posterior(), X, 40_000, np.random.default_rng(0))
    # Five standard errors: one in 10^5 of such tests fails by chance.
    error = 5.0 * np.sqrt(np.diagonal(covariance) / 40_000)
    assert (np.abs(draws.mean(axis=0) - mean) <= error).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=5e-4)


def test_a_mixture_draws_from_its_parts():
    low, high = posterior(), posterior((1.0, 0.9, 0.0, 0.1))
    mixture = Averaged((low, high), np.array([0.25, 0.75]), as_observed)
    draws = draw_jointly(mixture, X, 8000, np.random.default_rng(0))
    assert draws.shape == (8000, len(X))
    from_low = (draws[:, 2] > draws[:, 0]).mean()
    assert from_low == pytest.approx(0.25, abs=0.03)  # six standard errors
    mean, std = mixture.predict(X)
    assert (np.abs(draws.mean(axis=0) - mean) <= 5.0 * std / math.sqrt(8000)).all()
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.05)


def test_other_posteriors_are_refused():
    with pytest.raises(TypeError, match="exact posterior, got object"):
        draw_jointly(object(), X, 3, np.random.default_rng(0))


def test_probabilities_and_losses_are_those_of_the_draws():
    draws = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 1.0], [0.0, 0.5]])
    compared = Comparison(draws, leader=1)
    np.testing.assert_array_equal(compared.probability, [0.25, 0.75])
    np.testing.assert_array_equal(compared.loss, [0.0, 0.0, 2.0, 0.0])


def test_the_leader_is_verified_first():
    draws = np.random.default_rng(0).standard_normal((1000, 4))
    compared = Comparison(draws, leader=2)
    assert compared.next_measurement(False, np.random.default_rng(1)) == 2


def test_measurements_go_where_the_best_may_be():
    draws = np.random.default_rng(0).normal([0.0, 1.0, 1.1, -9.0], 0.3, (4000, 4))
    compared = Comparison(draws, leader=2)
    rng = np.random.default_rng(2)
    counts = np.bincount([compared.next_measurement(True, rng) for _ in range(400)], minlength=4)
    assert counts[3] == 0
    assert min(counts[1], counts[2]) > 100  # two that are nearly equal get nearly all
    assert counts[1] + counts[2] > 350


def test_a_certain_leader_is_the_only_one_to_measure():
    compared = Comparison(np.array([[0.0, 1.0]] * 10), leader=1)
    rng = np.random.default_rng(0)
    assert {compared.next_measurement(True, rng) for _ in range(20)} == {1}


def test_hopeless_settings_are_no_candidates():
    one = posterior((0.0, 0.0, 9.0, -9.0))
    np.testing.assert_array_equal(contenders(one, X), [2])
    many = np.linspace(0.0, 1.0, 300)[:, None]
    assert len(contenders(posterior(), many)) <= 128


def test_the_stated_probability_is_right_where_the_model_is():
    # 150 draws of the prior, ten noisy results each: the stated probability of the recommended
    # setting is on average how often it is the best, within four standard errors.
    box, rng = Box([0.0], [1.0]), np.random.default_rng(5)
    x = np.linspace(0.05, 0.95, 10)[:, None]
    stated, came = [], []
    root = np.linalg.cholesky(PRIOR.kernel(x, x) + 1e-9 * np.eye(10))
    for _ in range(150):
        f = root @ rng.standard_normal(10)
        learner = Learner(box, recipes.gp_ucb(prior=PRIOR))
        assert isinstance(learner, Learner)
        learner.tell(x, f + 0.1 * rng.standard_normal(10))
        exact = learner.posterior
        leader = int(np.argmax(exact.predict(x)[0]))
        draws = draw_jointly(exact, x, DRAWS, np.random.default_rng(0))
        stated.append(Comparison(draws, leader).probability[leader])
        came.append(f.argmax() == leader)
    error = np.sqrt(np.sum(np.multiply(stated, np.subtract(1.0, stated)))) / 150
    assert abs(np.mean(stated) - np.mean(came)) <= 4.0 * error
