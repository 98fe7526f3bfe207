"""Compression of poor results: the map itself, and what a learner and its reports make of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic import Box, Learner
from stoic.balancing import Balanced
from stoic.data import Observations
from stoic.kernels import Matern52, Scaled
from stoic.models.fixed_points import Search
from stoic.models.rescaling import UNCHANGED, CompressedTail, first_of, likeliest_on
from stoic.models.skew import AsinhScale
from stoic.objectives import MultiLearner
from stoic.policies import ExpectedImprovement, Initial
from stoic.policies.satisficing import Satisficing
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import quantiles_in_space, step_of
from stoic.recipes import gp_ucb, robust
from stoic.recipes.base import on_their_own_scale

RESULTS = -np.exp(np.random.default_rng(0).normal(4.0, 2.0, 40))  # latencies, of which less is more
SQUARE = Box([0.0, 0.0], [1.0, 1.0])
SHARES = (0.5, 0.75, 0.9)


def latency(x):
    """Milliseconds, from 10 to 500,000."""
    return 10.0 * np.exp(12.0 * ((np.asarray(x) - [0.3, 0.6]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("scale", [CompressedTail(-50.0, 20.0), AsinhScale(-50.0, 20.0)])
def test_a_scale_increases_and_has_an_inverse_and_slopes(scale):
    y = np.linspace(-400.0, 100.0, 251) + 0.3  # not at the edge
    w = scale(y)
    assert (np.diff(w) > 0.0).all()
    assert_allclose(scale.inverse(w), y, rtol=1e-12, atol=1e-9)
    h = 1e-5
    assert_allclose(scale.slopes(y), (scale(y + h) - scale(y - h)) / (2.0 * h), rtol=1e-6)


def test_from_the_edge_on_nothing_changes():
    scale = CompressedTail(-50.0, 20.0)
    y = np.array([-50.0, -3.1, 0.0, 1e150, np.inf, np.nan])
    assert_array_equal(scale(y), y)
    assert_array_equal(scale.inverse(y), y)
    assert_array_equal(scale.slopes(y[:4]), np.ones(4))
    # Just below hardly anything, and huge ones are of the size of their logarithms
    assert_allclose(scale(np.array([-50.0 - 1e-3])), -50.0 - 1e-3, rtol=1e-12)
    assert_allclose(scale(np.array([-1e150])), -50.0 - 20.0 * np.log(2e150 / 20.0), rtol=1e-6)
    assert scale(np.array([-np.inf]))[0] == -np.inf


def seen_of(y, x=None, **fields):
    """Observations, by default at inputs that are spread over a square."""
    x = SQUARE.spread(len(y), np.random.default_rng(3)) if x is None else x
    return Observations(x, y, np.full(len(y), np.nan), **fields)


def tail(y, x=None):
    return CompressedTail.below_the_best(y, quantiles_in_space(SQUARE, seen_of(y, x), SHARES))


def test_the_edge_is_three_spreads_below_the_upper_quartile():
    median, upper, best = quantiles_in_space(SQUARE, seen_of(RESULTS), SHARES)
    spread = min(upper - median, best - upper)
    scale = tail(RESULTS)
    assert_allclose([scale.edge, scale.length], [upper - 3.0 * spread, spread])
    assert tail(np.repeat([0.0, 1.0], [5, 15])) is None  # the best three quarters are equal
    # Equal ones up to a rounding have no spread of that size
    pairs = -np.repeat(np.arange(10.0) ** 2, 2) * (1.0 + 1e-16 * np.arange(20))
    median, upper = quantiles_in_space(SQUARE, seen_of(pairs), (0.5, 0.75))
    assert tail(pairs).length >= 1e-2 * (upper - median)
    assert tail(np.exp(np.linspace(0.0, 3.0, 20))) is None  # none is as poor as that


def test_quantiles_are_those_in_space():
    assert quantiles_in_space(SQUARE, seen_of(RESULTS), (0.5,)) == pytest.approx(
        [np.median(RESULTS)], rel=0.2
    )
    # However many results a search crowds about the best: here one in space
    x = np.concatenate([SQUARE.spread(40, np.random.default_rng(3)), np.full((60, 2), 0.77)])
    crowded = seen_of(np.append(RESULTS, np.full(60, -0.1)), x)
    few = seen_of(np.append(RESULTS, -0.1), x[:41])
    shares = (0.25, 0.5, 0.75)
    assert_allclose(
        quantiles_in_space(SQUARE, crowded, shares),
        quantiles_in_space(SQUARE, few, shares),
        rtol=0.1,
    )


@pytest.mark.parametrize(("n", "first"), [(9, 0), (10, 10), (19, 10), (39, 20), (40, 40), (99, 80)])
def test_the_scale_is_chosen_again_when_there_are_twice_as_many_results(n, first):
    y = np.resize(RESULTS, n + 2)
    y[[2, 7]] = np.nan, -1.0
    bounds = np.arange(n + 2) == 7
    chosen = first_of(seen_of(y, censored=bounds))
    assert_array_equal(chosen.observed, np.delete(y, [2, 7])[:first])


def test_the_scale_is_in_the_units_of_the_results():
    one, other = tail(RESULTS), tail(1e6 * RESULTS + 3e7)
    assert_allclose(other(1e6 * RESULTS + 3e7), 1e6 * one(RESULTS) + 3e7, rtol=1e-12)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e150])
def test_neither_outliers_nor_a_poor_half_make_the_spread_large(size):
    clean, wrong, poor = tail(RESULTS), RESULTS.copy(), RESULTS.copy()
    wrong[[3, 11, 22, 30]] = size  # one in ten is too good
    assert tail(wrong).length < np.ptp(np.quantile(RESULTS, [0.4, 0.75]))
    poor[np.argsort(RESULTS)[:15]] *= 1e6
    assert tail(poor) == clean


def test_results_get_their_noise_on_the_scale():
    noise = np.where(np.arange(40) % 2, 4.0, np.nan)
    seen = Observations(np.zeros((40, 1)), RESULTS, noise)
    scale = tail(RESULTS)
    found = scale.of(seen)
    assert_array_equal(found.observed, scale(RESULTS))
    assert_allclose(found.noise, noise * scale.slopes(RESULTS) ** 2)


def test_results_keep_their_step_on_the_scale():
    counts = -np.floor(np.exp(np.random.default_rng(1).normal(4.0, 1.5, 40))) / 8.0
    seen = Observations(np.arange(40.0)[:, None], counts, np.full(40, np.nan))
    assert step_of(seen) == 0.125
    found = tail(counts).of(seen)
    assert found.observed.min() > counts.min()
    assert step_of(found) == step_of(found.only(np.arange(5))) == 0.125


def test_what_is_restored_is_as_many_deviations_apart_as_before():
    scale = tail(RESULTS)
    mean, std = scale(RESULTS[::-1]) + 0.3, np.full(40, 0.7)
    y, plain = scale.restored(mean, std)
    assert_allclose(scale(y), mean, rtol=1e-12)
    assert_allclose(plain * scale.slopes(y), std)
    seen = scale(RESULTS)
    y, chord = scale.restored(mean, std, seen)
    assert_allclose((RESULTS - y) / chord, (seen - mean) / std, rtol=1e-6)
    # Of a mean that is what was seen there is no chord
    assert_allclose(scale.restored(seen, std, seen)[1], std / scale.slopes(RESULTS))


def search(recipe=None, trials=25):
    learner = Learner(SQUARE, recipe, seed=0)
    for _ in range(trials):
        choice = learner.ask()
        learner.tell(choice.x, -latency(choice.x), choice=choice)
    return learner


def test_a_learner_models_poor_results_compressed_and_reports_their_units():
    learner = search()
    seen, modelled = learner.observations.observed, learner.modelled.observed
    assert_array_equal(modelled, learner.scale(seen))
    assert seen.min() < -2e3
    assert modelled.min() > -5e2
    best = learner.recommend()
    assert_allclose(best.mean, -10.0, rtol=0.02)
    assert best.lower < best.mean < best.upper
    # Without noise the mean at an input is its result, however poor
    poor = np.argsort(seen)[:5]
    mean, std = learner.predict(learner.observations.x[poor])
    assert_allclose(mean, seen[poor], rtol=0.2)
    assert (std > 0.0).all()
    worst = learner.recommend(settings=learner.observations.x[poor[:1]])
    assert_allclose(worst.mean, seen[poor[0]], rtol=0.2)


def test_of_two_scales_it_is_the_one_on_which_the_results_are_likelier():
    """Most of the domain is slow by two orders of magnitude, and the best are at a cusp."""
    model, chosen = Learner(SQUARE).surrogate.model, set()
    for seed in range(3):
        learner = Learner(SQUARE, seed=seed)
        for _ in range(20):
            choice = learner.ask()
            distance = np.linalg.norm(choice.x - [0.3, 0.6])
            learner.tell(choice.x, -10.0 * np.exp(8.0 * np.sqrt(distance)), choice=choice)
        seen = learner.observations
        in_space = tail(seen.observed, seen.x)
        of_results = CompressedTail.below_the_best(
            seen.observed, np.quantile(seen.observed, SHARES).tolist()
        )
        assert in_space.edge != pytest.approx(of_results.edge, rel=0.1)
        evidence = {
            each: likeliest_on(each, Search(model, SQUARE, each.of(seen)), seen)[1]
            for each in (UNCHANGED, in_space, of_results)
        }
        assert learner.scale == max(evidence, key=evidence.get)
        chosen.add([in_space, of_results].index(learner.scale))
    assert chosen == {0, 1}


def test_a_given_prior_and_other_recipes_have_the_results_themselves():
    prior = Prior(Scaled(Matern52(np.ones(2)), 1e4), 1.0)
    for recipe in (robust(prior=prior), gp_ucb()):
        learner = search(recipe, trials=12)
        assert learner.modelled is learner.observations
        x = learner.observations.x
        for one, other in zip(learner.predict(x), learner.estimate.predict(x), strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_results_of_one_size_are_left_as_they_are(noise):
    """Though some are poor: the best are most alike, as near to any optimum."""
    rng = np.random.default_rng(0)
    learner = Learner(SQUARE, seed=0)
    x = rng.random((40, 2))
    y = -((x - [0.3, 0.6]) ** 2).sum(axis=1) + noise * rng.standard_normal(40)
    learner.tell(x, y)
    assert tail(y, x) is not None
    assert learner.scale is UNCHANGED
    assert learner.modelled is learner.observations


def test_what_compares_results_with_other_numbers_has_them_as_they_are():
    x, y = search().observations.x, search().observations.observed
    ordinal = Learner(SQUARE, robust(policy=Initial(ExpectedImprovement(), 10)))
    threshold = Learner(SQUARE, robust(policy=Satisficing(threshold=-300.0)))
    several = MultiLearner(SQUARE, 2, robust())
    ordinal.tell(x, y)
    threshold.tell(x, y)
    several.tell(x, np.stack([y, y], axis=1))
    assert isinstance(ordinal.scale, CompressedTail)
    assert threshold.scale is UNCHANGED
    assert all(output.scale is UNCHANGED for output in several.outputs)


def test_balanced_learners_are_in_the_units_of_the_leader():
    x, y = search().observations.x, search().observations.observed
    learners = [Learner(SQUARE, seed=0), Learner(SQUARE, seed=1)]
    balanced = Balanced(learners, [float, float], span=(-1e4, 0.0))
    balanced.tell(x, y)
    assert isinstance(balanced.scale, CompressedTail)
    assert_array_equal(balanced.modelled.observed, balanced.scale(y))
    poor = np.argsort(y)[:5]
    assert_allclose(balanced.predict(x[poor])[0], y[poor], rtol=0.2)


def test_workers_that_have_results_in_another_order_have_the_same_scale():
    x, y = search().observations.x, search().observations.observed
    order = np.random.default_rng(0).permutation(len(y))
    one, other = Learner(SQUARE), Learner(SQUARE)
    one.tell(x, y)
    other.tell(x[order], y[order])
    other.surrogate.numbers = order.tolist()
    assert one.scale == other.scale
    assert isinstance(one.scale, CompressedTail)


def test_right_latencies_are_trusted_and_wrong_ones_are_not():
    found = {"scaled": [], "as they are": []}  # numbers of wrong and of right ones distrusted
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.random((40, 2))
        y = -latency(x) * np.exp(0.1 * rng.standard_normal(40))
        wrong = np.argsort(latency(x))[[8, 12]]  # of 20 to 56 ms
        y[wrong] = -0.5
        parts = robust()(SQUARE)
        both = parts, on_their_own_scale(parts)
        for recipe, numbers in zip(both, found.values(), strict=True):
            learner = Learner(SQUARE, recipe)
            learner.tell(x, y)
            distrusted = learner.trust < 0.5
            numbers.append((distrusted[wrong].sum(), distrusted.sum() - distrusted[wrong].sum()))
    caught, right = np.sum(found["scaled"], axis=0)
    assert caught >= 5  # six of eight on one machine
    assert right <= 4  # two
    caught, right = np.sum(found["as they are"], axis=0)
    assert caught <= 1  # none
    assert right >= 20  # 32
