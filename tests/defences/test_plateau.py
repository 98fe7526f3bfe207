import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import literal
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Plateau, Trust
from stoic.defences.plateau import small_sample_factor
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Matern52, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Prior
from stoic.posteriors.scales import mean_and_sd

BOX = Box([3.0, -2.0], [5.0, 6.0])
LIES = [1e6, 1e300, -1e300, np.inf, -np.inf, np.nan]


def some(n=30, seed=0, told=False):
    rng = np.random.default_rng(seed)
    x = BOX.lower + BOX.widths * rng.random((n, 2))
    y = 5.0 + np.sin(2.0 * x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.standard_normal(n)
    return Observations(x, y, rng.uniform(0.05, 0.2, n) if told else np.full(n, np.nan))


PRIOR = Prior(Scaled(Matern52(np.array([1.0, 3.0])), 2.0), 0.1**2, 5.0)


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("unit", ["value", "noise"])
def test_targets_noise_and_trust_are_the_papers_formulas(unit, told):
    observations = some(told=told)
    defence = Plateau(0.4, 1.7, 5.2, unit)
    targets = defence(observations, PRIOR)
    noise = observations.own_noise(PRIOR.noise)
    for i in range(30):
        value, row_noise, trust = literal.plateau(
            observations.observed[i], noise[i], 0.4, 1.7, 5.2, unit
        )
        assert_allclose(targets.values[i], value, rtol=1e-13)
        assert_allclose(targets.noise[i], row_noise, rtol=1e-13)
        assert_allclose(targets.trust[i], trust, rtol=1e-13)
    assert (targets.trust < 1.0).any()
    assert (targets.trust == 1.0).any()


def test_the_shift_is_the_derivative_of_the_log_weight():
    # m = sigma^2 d log(w^2) / dy, by differences in y.
    y = np.array([7.0, 2.0, 5.1])
    observations = Observations(np.zeros((3, 2)), y, np.full(3, np.nan))
    defence = Plateau(0.4, 1.7, 5.2)
    targets = defence(observations, PRIOR)
    h = 1e-6
    up, down = (
        np.log(defence(Observations(np.zeros((3, 2)), y + s, np.full(3, np.nan)), PRIOR).trust)
        for s in (h, -h)
    )
    assert_allclose(y - targets.values, PRIOR.noise * (up - down) / (2 * h), atol=1e-9)


def test_one_number_or_one_per_row():
    observations = some(10)
    rng = np.random.default_rng(0)
    half_width, shape, centre = rng.random(10), 0.5 + rng.random(10), 5.0 + rng.random(10)
    targets = Plateau(half_width, shape, centre)(observations, PRIOR)
    for i in range(10):
        alone = Plateau(half_width[i], shape[i], centre[i])(observations.since(i).until(1), PRIOR)
        assert targets.values[i] == alone.values[0]
        assert targets.noise[i] == alone.noise[0]
    tail = Plateau(half_width, shape, centre)(observations.since(6), PRIOR)
    assert_array_equal(tail.values, targets.values[6:])


@given(seed=st.integers(0, 10**6))
def test_inside_the_plateau_it_is_the_plain_process_bit_for_bit(seed):
    observations = some(12, seed)
    wide = Plateau(float(np.abs(observations.observed - 4.0).max()), 0.3, 4.0)
    here, there = wide(observations, PRIOR), Trust()(observations, PRIOR)
    for part in ("values", "noise", "trust"):
        assert_array_equal(getattr(here, part), getattr(there, part))
    slopes = (
        wide.slopes(observations, PRIOR, here),
        Trust().slopes(observations, PRIOR, there),
    )
    assert_array_equal(*slopes)


@given(seed=st.integers(0, 10**6))
def test_outside_the_plateau_it_is_not(seed):
    # The other direction of the equivalence: a hair outside, and the targets differ.
    observations = some(12, seed)
    residuals = np.abs(observations.observed - 4.0)
    narrow = Plateau(float(residuals.max()) - 1e-6, 0.3, 4.0)
    targets = narrow(observations, PRIOR)
    assert targets.trust.min() < 1.0
    assert targets.noise.max() > PRIOR.noise
    assert (targets.values != observations.observed).sum() == 1


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("unit", ["value", "noise"])
@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("row", [0, 17, 29])
def test_one_lie_among_thirty_leaves_the_posterior_of_the_others(lie, unit, finite, row):
    # With hyperparameters held: everywhere, to 1e-6 deviations of the noise.
    observations = some()
    observed = observations.observed.copy()
    observed[row] = lie
    lying = Observations(observations.x, observed, observations.noise)
    others = np.arange(30) != row
    honest = Observations(observations.x[others], observed[others], np.full(29, np.nan))
    everywhere = BOX.grid(21)
    defence = Plateau(2.0, 1.0, 5.0, unit)
    domain = BOX
    z = np.concatenate([observations.x, everywhere.points])
    if finite:
        domain = Finite(z)
        lying = Observations(lying.x, lying.observed, lying.noise, np.arange(30))
        honest = Observations(honest.x, honest.observed, honest.noise, np.arange(30)[others])
    model = GaussianProcess(PRIOR, defence)
    (mean, std), (without, std_without) = (
        model(domain, data).predict(z) for data in (lying, honest)
    )
    sd = np.sqrt(PRIOR.noise)
    assert np.abs(mean - without).max() < 1e-6 * sd
    assert np.abs(std - std_without).max() < 1e-6 * sd
    assert defence(lying, PRIOR).trust[row] < 0.01


@pytest.mark.parametrize("unit", ["value", "noise"])
def test_the_influence_of_one_observation_is_bounded_and_vanishes(unit):
    # Hyperparameters held; nothing is left out, so that it is the formula that does it.
    defence = Plateau(2.0, 1.0, 5.0, unit, negligible=0.0)
    observations = some()
    z = BOX.grid(15).points
    others = np.arange(30) != 7
    honest = Observations(
        observations.x[others], observations.observed[others], np.full(29, np.nan)
    )
    model = GaussianProcess(PRIOR, defence)
    without = model(BOX, honest).predict(z)[0]

    def moved(y):
        observed = observations.observed.copy()
        observed[7] = y
        data = Observations(observations.x, observed, observations.noise)
        return np.abs(model(BOX, data).predict(z)[0] - without).max()

    sizes = 10.0 ** np.array([1, 2, 3, 4, 6, 8, 12, 16])
    for sign in (1.0, -1.0):
        moves = [moved(5.0 + sign * size) for size in sizes]
        assert max(moves) < 3.0  # against more than 1e15 without a defence
        assert all(later < earlier for earlier, later in itertools.pairwise(moves[2:]))
        assert moves[-1] < 1e-9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 1.0), "half-width >= 0"),
        ((np.nan, 1.0), "half-width >= 0"),
        ((1.0, 0.0), "shape > 0"),
        ((1.0, np.inf), "shape > 0"),
        ((1.0, 1.0, 0.0, "scale"), "'value' or 'noise'"),
    ],
)
def test_impossible_numbers_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Plateau(*arguments)


def test_the_adaptive_plateau_reads_median_deviation_and_quantile():
    observations = some()
    y = observations.observed
    s = np.median(np.abs(y - np.median(y))) / stats.norm.ppf(0.75)
    settled = AdaptivePlateau(2.0, 0.5, "scale", small_sample=False).fit(BOX, observations)
    numbers = settled.centre, settled.half_width, settled.shape
    assert_allclose(numbers, [np.median(y), 2 * s, s / 2])
    assert settled.unit == "value"
    settled = AdaptivePlateau("quantile", 3.0, "noise").fit(BOX, observations)
    quantile = np.quantile(np.abs(y - np.median(y)), 0.95)
    assert_allclose([settled.half_width, settled.shape], [quantile, 3.0])
    assert settled.unit == "noise"
    equal = Observations(observations.x, np.full(30, 7.0), observations.noise)
    assert AdaptivePlateau("quantile").fit(BOX, equal).half_width == pytest.approx(0.1)


def test_few_observations_widen_the_plateau_as_student_says():
    # By the factor between Student's t with 0.37 (n - 1) degrees of freedom and 3 normal ones.
    for n in (2, 8, 30):
        observations = some(n)
        scale = AdaptivePlateau(1.0, small_sample=False).fit(BOX, observations).half_width
        freedom = max(0.37 * (n - 1), 1.0)
        expected = 2.0 * stats.t.isf(stats.norm.sf(3.0), freedom) / 3.0 * scale
        assert_allclose(AdaptivePlateau(2.0).fit(BOX, observations).half_width, expected)
    for wide in (40.0, 1e9, np.inf):
        narrow = AdaptivePlateau(wide, small_sample=False).fit(BOX, some(8)).half_width
        assert AdaptivePlateau(wide).fit(BOX, some(8)).half_width >= narrow


def test_the_quantile_is_not_moved_by_one_lie():
    observations = some()
    lying = Observations(observations.x, observations.observed.copy(), observations.noise)
    lying.observed[3] = 1e300
    honest = AdaptivePlateau("quantile").fit(BOX, observations)
    robust = AdaptivePlateau("quantile").fit(BOX, lying)
    assert abs(robust.half_width - honest.half_width) < 0.5
    wrecked = AdaptivePlateau(3.0, scale=mean_and_sd).fit(
        BOX, Observations(lying.x, np.where(lying.observed > 1e9, 1e9, lying.observed), lying.noise)
    )
    assert wrecked.half_width > 1e8  # the plain way, which the docs warn of


def test_results_far_from_zero_and_small_are_as_good_as_any():
    # Shift and scale of results, noise, prior mean and plateau together: the same posterior.
    kernel = RBF(np.array([1.0, 3.0]))
    observations = some()
    z = BOX.grid(7).points
    means = []
    for scale, shift in ((1.0, 0.0), (1e-4, 250.0)):
        prior = Prior(Scaled(kernel, 2.0 * scale**2), 0.01 * scale**2, shift + scale * 5.0)
        defence = Plateau(0.4 * scale, 0.3 * scale, shift + scale * 5.2)
        y = shift + scale * observations.observed
        data = Observations(observations.x, y, observations.noise)
        posterior = GaussianProcess(prior, defence)(BOX, data)
        means.append((posterior.predict(z)[0] - shift) / scale)
    assert_allclose(means[0], means[1], atol=1e-7)


def test_few_observations_widen_the_plateau():
    observations = some(20)
    narrow, wide = (AdaptivePlateau(0.5, 0.8, small_sample=small) for small in (False, True))
    for n in (2, 8, 20):
        rows = observations.until(n)
        ratio = wide.fit(BOX, rows).half_width / narrow.fit(BOX, rows).half_width
        assert ratio == pytest.approx(small_sample_factor(rows))
    # P(t_f > 3 factor) = P(N > 3), by the densities' other implementation
    for n in (2, 8, 30):
        factor = small_sample_factor(some(n))
        assert stats.t.sf(3.0 * factor, max(0.37 * (n - 1), 1.0)) == pytest.approx(
            stats.norm.sf(3.0)
        )
    # and these are the numbers that its docstring has
    for n, stated in ((2, "79"), (3, "79"), (8, "3.8"), (30, "1.3")):
        assert f"{small_sample_factor(some(n)):.2g}" == stated
