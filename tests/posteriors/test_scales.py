import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from stoic.data import Observations
from stoic.domains import Box
from stoic.posteriors.scales import (
    mean_and_sd,
    median_and_mad,
    median_and_spread_in_space,
    step_of,
)

BOX = Box([10.0, -1.0], [14.0, 1.0])
SCALES = (mean_and_sd, median_and_mad, median_and_spread_in_space)


def told(observed, x=None):
    observed = np.asarray(observed, dtype=float)
    n = len(observed)
    if x is None:
        x = BOX.sample(n, np.random.default_rng(0))
    return Observations(np.asarray(x, dtype=float), observed, np.full(n, np.nan))


@given(seed=st.integers(0, 10**6), n=st.integers(2, 30))
def test_median_and_deviation_are_numpys(seed, n):
    y = np.random.default_rng(seed).standard_normal(n)
    location, scale = median_and_mad(BOX, told(y))
    assert_allclose(location, np.median(y))
    assert_allclose(scale, np.median(np.abs(y - np.median(y))) / stats.norm.ppf(0.75))
    assert_allclose(mean_and_sd(BOX, told(y)), (y.mean(), y.std()))


def test_points_far_from_each_other_have_one_vote_each():
    y = np.arange(9.0) ** 2
    corners = np.array([[a, b] for a in (10.0, 12.0, 14.0) for b in (-1.0, 0.0, 1.0)])
    location, scale = median_and_spread_in_space(BOX, told(y, corners))
    assert location == np.median(y)
    # 80 % of nine votes are 7.2, so the eighth smallest deviation, of |N(0, 1)|'s 80 % quantile
    eighth = np.sort(np.abs(y - location))[7]
    assert_allclose(scale, eighth / stats.norm.ppf(0.9), rtol=1e-9)


def test_the_spread_of_a_search_does_not_collapse_where_most_do_equally_badly():
    y = np.concatenate([0.1 + 0.001 * np.arange(6), [0.5, 0.7, 0.9]])
    corners = np.array([[a, b] for a in (10.0, 12.0, 14.0) for b in (-1.0, 0.0, 1.0)])
    assert median_and_mad(BOX, told(y, corners))[1] < 0.01
    scale = median_and_spread_in_space(BOX, told(y, corners))[1]
    assert 10 * 0.002 < scale < 0.9
    # ... and is bounded by the median deviation, whatever a fifth of the results say.
    y[6:] = 1e6
    mad = median_and_mad(BOX, told(y, corners))[1]
    assert_allclose(median_and_spread_in_space(BOX, told(y, corners))[1], 30.0 * mad, rtol=1e-6)


def test_a_crowd_has_one_vote_together():
    # Twenty results near the maximum, four elsewhere: the plain median is the crowd's.
    crowd = np.tile([[10.5, 0.5]], (20, 1)) + 0.001 * np.arange(20)[:, None] * [1.0, 0.0]
    others = np.array([[13.5, -0.9], [13.5, 0.9], [10.2, -0.9], [12.0, -0.2]])
    y = np.concatenate([np.full(20, 9.0) + 0.01 * np.arange(20), [0.0, 1.0, 2.0, 3.0]])
    observations = told(y, np.concatenate([crowd, others]))
    plain, plain_scale = median_and_mad(BOX, observations)
    fair, fair_scale = median_and_spread_in_space(BOX, observations)
    assert plain > 8.9
    assert 1.9 <= fair <= 3.0
    assert plain_scale < 0.2
    assert fair_scale > 1.0


@pytest.mark.parametrize("scale", [median_and_mad, median_and_spread_in_space])
@pytest.mark.parametrize("lie", [1e6, 1e300, -1e300, np.inf, -np.inf, np.nan])
def test_a_lie_in_ten_moves_the_robust_ones_little(scale, lie):
    y = np.random.default_rng(1).standard_normal(40)
    lying = y.copy()
    lying[:4] = lie
    location, spread = scale(BOX, told(lying))
    assert abs(location) < 0.7
    assert 0.5 < spread < 2.0


def test_a_lie_moves_the_plain_one_at_will():
    y = np.random.default_rng(1).standard_normal(40)
    y[0] = 1e6
    assert mean_and_sd(BOX, told(y))[1] > 1e5


@given(seed=st.integers(0, 10**6), power=st.integers(-300, 300), shift=st.integers(-5, 5))
def test_location_and_scale_follow_the_units(seed, power, shift):
    y = np.random.default_rng(seed).standard_normal(15)
    factor = 2.0**power
    for scale in SCALES:
        location, spread = scale(BOX, told(y))
        moved = scale(BOX, told(factor * (y + shift)))
        assert_allclose(moved[0], factor * (location + shift), rtol=1e-9, atol=1e-12 * factor)
        assert_allclose(moved[1], factor * spread, rtol=1e-9)


EXTREMES = [1.7e308, -1.7e308, 1e308, 1e300, 5e-324, 1e-310, 0.0, 1.0, np.inf, -np.inf, np.nan]


@settings(max_examples=200)
@given(observed=st.lists(st.sampled_from(EXTREMES) | st.floats(), max_size=9))
def test_whatever_was_told_there_is_a_location_and_a_positive_scale(observed):
    for scale in SCALES:
        location, spread = scale(BOX, told(observed))
        assert np.isfinite(location)
        assert spread > 0.0
        assert np.isfinite(spread)


def test_where_most_agree_the_others_decide():
    location, spread = median_and_mad(BOX, told([3.0, 3.0, 3.0, 3.0, 5.0]))
    assert (location, spread) == (3.0, 2.0)
    assert median_and_mad(BOX, told([3.0, 3.0])) == (3.0, 1.0)
    assert mean_and_sd(BOX, told([3.0, 3.0])) == (3.0, 1.0)
    for scale in SCALES:
        assert scale(BOX, told([])) == (0.0, 1.0)
        assert scale(BOX, told([np.nan, np.inf])) == (0.0, 1.0)


def test_permuting_changes_nothing():
    observations = told(np.random.default_rng(2).standard_normal(20))
    order = np.random.default_rng(3).permutation(20)
    shuffled = Observations(
        observations.x[order], observations.observed[order], observations.noise[order]
    )
    for scale in SCALES:
        assert_allclose(scale(BOX, shuffled), scale(BOX, observations), rtol=1e-12)


CONTINUOUS = np.arange(1.0, 17.0) ** 0.5


@pytest.mark.parametrize(
    ("observed", "step"),
    [
        ([0.0, 1.0, 0.0, 1.0], 1.0),
        ([0.0, 1.0] * 4 + [np.nan, np.inf], 1.0),
        ([5.0, 5.0, 3.0, 3.0, 1.0, 1.0, 1.0], 2.0),
        ([0.3, 0.3, 0.1, 0.1, 0.4, 0.4, 0.4], 0.1),
        ([0.3, 0.1 + 0.2, 0.0, 0.0, 0.1 * 3, 0.6, 0.6], 0.3),
        ([0.0, 1.0, 0.0, 1.0 + 1e-15, 1.0, 0.0], 1.0),
        (CONTINUOUS, 0.0),
        ([0.0] * 20 + [1.0], 0.0),  # one differs: an outlier, or not
        ([0.0] * 20 + [0.5, 0.9], 0.0),
        ([3.0] * 58 + [1e6, 1e6], 0.0),
        ([0.0] * 45 + [1.0] * 3, 1.0),
        ([-1.7e308, 1.7e308] * 3, 0.0),  # it is no number
        ([*CONTINUOUS, *[1e6] * 5], 0.0),  # outliers that are equal
        ([], 0.0),
        ([np.nan], 0.0),
        ([2.0, 2.0, 2.0], 0.0),
    ],
)
def test_results_with_few_values_have_a_step(observed, step):
    assert_allclose(step_of(told(observed)), step, rtol=1e-12)


RNG = np.random.default_rng(5)
SHARES = np.unique(np.rint(228 * RNG.beta(20.0, 3.0, 24))) / 228
FOLDS = np.round(RNG.normal(0.0, 30.0, (40, 5))).mean(axis=1)  # of five whole numbers
LEVELS = np.repeat([1.0, 2.0, 3.0], 14) + 1e-3 * RNG.random(42)


@pytest.mark.parametrize(
    ("observed", "step"),
    [
        (SHARES, 1 / 228),
        (np.float32(SHARES), 1 / 228),
        (-1e3 * SHARES[::-1] + 7.0, 1e3 / 228),
        ([*SHARES, -3.123], 1 / 228),  # an outlier
        ([*SHARES, np.nan], 1 / 228),
        (FOLDS, 0.2),
        (SHARES[:7], 0.0),  # too few to tell
        ([*SHARES, *RNG.random(5)], 0.0),
        (1e-6 * np.rint(1e6 * RNG.random(24)), 0.0),  # too fine to matter
        (RNG.standard_cauchy(60), 0.0),
        (np.arange(400.0), 1.0),
        (np.repeat(SHARES[:10], 2)[:19], 1 / 228),  # the most frequent apart, nearly two of each
        (np.round(SHARES, 4), 1 / 228),  # printed
        ([*np.round(SHARES, 4), 1e6], 1 / 228),
        (np.round(np.rint(569 * RNG.beta(8.0, 3.0, 60)) / 569, 4), 1 / 569),
        (LEVELS, 0.0),  # many values at three points
        ([*RNG.random(40), *(1e3 * np.arange(1.0, 9.0) + RNG.random(8))], 0.0),  # penalties
        ([*SHARES, *(SHARES + 1e-15)], 1 / 228),  # sums in another order
        ([*(1e5 + CONTINUOUS[:13] / 16.0), *(1e5 + 300.0 * np.arange(4, 16))], 0.0),  # outliers
    ],
)
def test_results_on_a_grid_have_its_step(observed, step):
    assert_allclose(step_of(told(observed)), step, rtol=0.05)
    assert_allclose(literal_grid(np.asarray(observed, dtype=float)), step, rtol=0.05)


def test_differences_that_are_no_numbers_are_no_step():
    assert step_of(told(1.7e308 * np.array([-1.0, -0.7, -0.4, -0.1, 0.3, 0.5, 0.9, 1.0]))) == 0.0


def literal_grid(y):
    """Try every difference of neighbours, the smallest first; then each made more exact."""
    y = sorted({float(value) for value in y if np.isfinite(value)})
    deviation = np.median([abs(value - y[len(y) // 2]) for value in y])
    y = y[:1] + [b for a, b in itertools.pairwise(y) if b - a > 1e-12 * deviation]
    y = [value - y[len(y) // 2] for value in y]
    steps = sorted(b - a for a, b in itertools.pairwise(y) if b - a > 1e-4 * deviation)
    steps = steps[: 1 + 2 * (len(y) // 10)] if len(steps) >= 7 else []
    for reach in (8, 64, 512, 0):
        for at, step in enumerate(steps):
            off = {value: abs(value / step - round(value / step)) for value in y}
            if len({round(v / step) for v in y if off[v] < 0.05}) >= 0.9 * len(y):
                return step
            near = [v for v in y if off[v] <= 0.2 and 0 < abs(round(v / step)) <= reach]
            if near:
                points = [round(value / step) for value in near]
                steps[at] = np.dot(points, near) / np.dot(points, points)
    return 0.0


def test_exact_results_on_a_grid_that_are_repeated_have_no_step():
    x = BOX.sample(len(SHARES), np.random.default_rng(1))
    y, x = np.append(SHARES, SHARES[:8]), np.concatenate([x, x[:8]])
    assert step_of(told(y[:-1], x[:-1])) == pytest.approx(1 / 228)
    assert step_of(told(y, x)) == 0.0
    y[-1] += 1 / 228
    assert step_of(told(y, x)) == pytest.approx(1 / 228)


def test_exact_results_that_are_repeated_have_no_step():
    y, x = np.tile([1.0, 2.0, 3.0], 5), np.tile(BOX.sample(3, np.random.default_rng(0)), (5, 1))
    assert step_of(told(y, x)) == 0.0
    assert step_of(told(y)) == 1.0
    # As few levels at many inputs, and some of them again
    levels, inputs = np.repeat([1.0, 2.0, 3.0], 6), BOX.sample(18, np.random.default_rng(1))
    assert step_of(told(levels, inputs)) == 1.0
    again = np.concatenate([levels, levels[:8]]), np.concatenate([inputs, inputs[:8]])
    assert step_of(told(*again)) == 0.0
    again[0][-1] = 3.0  # at an input that had 2
    assert step_of(told(*again)) == 1.0


def test_of_arms_that_differ_every_result_counts():
    arms = BOX.sample(4, np.random.default_rng(0))
    y, x = np.zeros(100), np.repeat(arms, 25, axis=0)
    y[:10] = 1.0  # of the first arm
    assert step_of(told(y, x)) == 1.0
    assert step_of(told(y[:25], x[:25])) == 1.0


def test_bounds_and_results_with_a_noise_of_their_own_have_no_step():
    y, x = np.tile([0.0, 1.0], 10), BOX.sample(20, np.random.default_rng(0))
    assert step_of(Observations(x, y, np.full(20, 0.01))) == 0.0
    bounded = np.append(y, [0.3, 0.31, 0.7]), np.concatenate([x, x[:3] + 0.1])
    censored = np.arange(23) >= 20
    assert (
        step_of(Observations(bounded[1], bounded[0], np.full(23, np.nan), censored=censored)) == 1.0
    )


@pytest.mark.parametrize("value", [0.0, 0.1, 0.5, -1e9 / 3.0])
def test_equal_results_have_no_spread(value):
    observations = Observations(np.zeros((6, 1)), np.full(6, value), np.full(6, np.nan))
    assert mean_and_sd(Box([0.0], [1.0]), observations)[1] == 1.0
