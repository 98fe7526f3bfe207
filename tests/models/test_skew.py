"""A function that is good in few places: old results of which the best are not outliers."""

from __future__ import annotations

import numpy as np
import pytest

from stoic import Box, Learner
from stoic.data import Observations
from stoic.kernels import RBF, Scaled
from stoic.models import LeaveOneOutGP, skew
from stoic.models.fixed_points import Search
from stoic.models.skew import AsinhScale, with_few_good_results
from stoic.posteriors import Prior
from stoic.recipes import robust

BOX = Box([0.0] * 4, [1.0] * 4)


def hill(x):
    return np.exp(-((x - 0.42) ** 2).sum(axis=-1) / 0.08)


def old_results(seed, n=60):
    """Results at random settings: most of them are noise about 0, a few are on the hill."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 4))
    return x, hill(x) + 0.02 * rng.normal(size=n)


def learned(x, y, **options):
    learner = Learner(BOX, robust(**options), seed=0)
    learner.tell(x, y)
    return learner


def test_the_best_of_old_results_are_trusted():
    trusted, ranks = 0, []
    for seed in range(6):
        x, y = old_results(seed)
        learner = learned(x, y)
        trusted += np.count_nonzero(learner.trust[np.argsort(-y)[:5]] >= 0.5)
        ranks.append(np.count_nonzero(hill(x) > hill(learner.recommend().x)))
    assert trusted >= 18  # of 30; 9 by a model on the scale of the results alone
    assert np.median(ranks) <= 2


def test_the_same_model_on_the_scale_of_the_results_alone_rejects_them():
    x, y = old_results(1)
    learner = learned(x, y)
    search = Search(learner.parts.model, BOX, learner.observations)
    alone = learner.parts.model.climbed(search)
    trust = alone(learner.observations, alone.posterior.prior).trust
    assert np.count_nonzero(trust[np.argsort(-y)[:5]] < 0.5) >= 3
    another = with_few_good_results(search, alone)
    assert another.evidence > alone.evidence + 2.0
    assert learner.surrogate.posterior().fitted_defence.evidence == another.evidence


def test_outliers_among_them_are_rejected():
    x, y = old_results(1)
    wrong = np.argsort(hill(x))[10:14]  # where the function is 0
    y[wrong] += [0.9, 2.0, 1.4, 3.0]
    trust = learned(x, y).trust
    right = np.setdiff1d(np.argsort(-hill(x))[:5], wrong)
    assert (trust[wrong] < 0.5).all()
    assert (trust[right] >= 0.5).all()


def test_outliers_of_a_smooth_function_are_rejected():
    rng = np.random.default_rng(1)
    x = rng.random((60, 4))
    y = -((x - 0.4) ** 2).sum(axis=1) + 0.02 * rng.normal(size=60)
    y[:5] += rng.uniform(0.5, 3.0, 5)
    trust = learned(x, y).trust
    assert (trust[:5] < 0.5).all()
    assert np.count_nonzero(trust[5:] < 0.5) <= 2


def test_slopes_are_those_of_the_scale_and_noise_follows_them():
    x, y = old_results(0)
    scale, step = AsinhScale(0.02, 0.03), 1e-6
    noise = np.full(60, 4e-4)
    one = scale.of(Observations(x, y, noise))
    other = scale.of(Observations(x, y + step, noise))
    np.testing.assert_allclose((other.observed - one.observed) / step, scale.slopes(y), rtol=1e-4)
    np.testing.assert_allclose(one.noise, noise * scale.slopes(y) ** 2)
    np.testing.assert_allclose(scale.inverse(one.observed), y, atol=1e-12)


def asked_elsewhere(x, y, model=None):
    model = model or robust()(BOX).model
    search = Search(model, BOX, Observations(x, y, np.full(len(y), np.nan)))
    return with_few_good_results(search, model.climbed(search))


def test_of_fewer_than_twenty_results_outliers_may_look_alike():
    x, y = old_results(1)
    order = np.append(np.argsort(-y)[:5], np.argsort(y)[:15])
    assert asked_elsewhere(x[order], y[order]) is not None
    assert asked_elsewhere(x[order[:-1]], y[order[:-1]]) is None


def test_results_that_are_repeated_need_no_other_scale():
    x, y = old_results(1)
    assert asked_elsewhere(x, y) is not None
    best = np.argsort(-y)[:20]
    assert asked_elsewhere(np.append(x, x[best], axis=0), np.append(y, y[best])) is None


def test_given_hyperparameters_are_those_of_the_scale_of_the_results():
    x, y = old_results(1)
    prior = Prior(Scaled(RBF(np.full(4, 0.3)), 0.1), 4e-4)
    assert asked_elsewhere(x, y, LeaveOneOutGP(prior, outlier_penalty=2.0)) is not None
    assert asked_elsewhere(x, y, robust(prior=prior)(BOX).model) is None


@pytest.mark.parametrize("value", [1e300, 1e-300, np.inf, -np.inf, np.nan])
def test_results_of_any_size_are_data(value):
    x, y = old_results(1)
    y[:2] = value
    trust = learned(x, y).trust
    assert ((trust >= 0.0) & (trust <= 1.0)).all()


def test_several_outliers_do_not_hide_it():
    """Those that the model on the other scale rejects, too, cost it no more than the other one."""
    x, y = old_results(1)
    right = np.argsort(-hill(x))[:5]
    wrong = np.argsort(hill(x))[:4]
    for size in (1.0, 1e3, 1e150):
        spoilt = y.copy()
        spoilt[wrong] -= size * np.arange(1.0, 5.0)
        trust = learned(x, spoilt).trust
        assert (trust[wrong] < 0.5).all()
        assert (trust[right] >= 0.5).all()


def test_it_is_asked_again_where_a_new_result_is_too_good_or_a_tenth_is_new(monkeypatch):
    """In between, what was negligible is not computed; what was not, is in every fit."""
    asked = []
    likeliest = skew.likeliest_on
    monkeypatch.setattr(skew, "likeliest_on", lambda *a: asked.append(1) or likeliest(*a))

    def fits_that_ask(x, y, first):
        learner, numbers = learned(x[:first], y[:first]), []
        for k in range(first, len(x)):
            learner.surrogate.posterior()
            del asked[:]
            learner.tell(x[k : k + 1], y[k : k + 1])
            learner.surrogate.posterior()
            numbers += [k + 1] * len(asked)
        return numbers

    rng = np.random.default_rng(1)
    x = rng.random((66, 4))
    y = -((x - 0.4) ** 2).sum(axis=1) + 0.02 * rng.normal(size=66)
    y[[3, 5, 8, 20]] += [3.0, 5.0, 4.0, 6.0]
    y[[52, 57]] += 7.0
    assert fits_that_ask(x, y, 48) == [50, 53, 55, 58, 61]  # powers of 1.1: 49.8, 54.8, 60.2
    x, y = old_results(1)
    assert fits_that_ask(x, y, 54) == list(range(55, 61))


def test_it_is_asked_where_there_was_a_posterior_of_nothing():
    x, y = old_results(1)
    learner = Learner(BOX, robust(), seed=0)
    learner.surrogate.posterior()
    learner.tell(x, y)
    np.testing.assert_array_equal(learner.trust, learned(x, y).trust)


@pytest.mark.slow
def test_beyond_the_exact_model_it_stays_from_fit_to_fit():
    x, y = old_results(0, 290)
    best = np.argsort(-hill(x[:257]))[:8]
    learner = learned(x[:257], y[:257])
    for k in (257, 258, 284, 286):  # fitted at 257 and 283
        learner.tell(x[len(learner) : k], y[len(learner) : k])
        assert (learner.trust[best] >= 0.5).all()
