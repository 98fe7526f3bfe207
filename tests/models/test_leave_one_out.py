from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import literal
from stoic import recipes
from stoic.adversaries import Gaussian
from stoic.adversaries.frequency import AT_ONCE
from stoic.data import Observations
from stoic.domains import Box
from stoic.environment import Environment
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess, LeaveOneOutGP
from stoic.models.fixed_points import Search, Weighted
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors import Exact, Prior
from stoic.posteriors.fitting import (
    Fitting,
    FixedHyperparameters,
    Problem,
    marginal_likelihood,
)
from stoic.posteriors.mixture import MixturePosterior
from stoic.problems import forrester
from stoic.simulate import run

BOX = Box([0.0], [1.0])
PRIOR = Prior(Scaled(Matern52(0.3), 1.5), 0.04, 1.0)
EVERYWHERE = np.linspace(0.0, 1.0, 41)[:, None]
GIVEN = LeaveOneOutGP(PRIOR, FixedHyperparameters(), iterations=200)
DOUBTING = LeaveOneOutGP(PRIOR, FixedHyperparameters(), outlier_penalty=0.5)
SIZES = (1.0, 3.0, 10.0, 1e2, 1e4, 1e8, 1e150, 1e300, np.inf)


def truth(x):
    return 1.0 + np.sin(6.0 * x[:, 0])


def some(n, seed=1, noise_sd=0.2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 1))
    return observed(x, truth(x) + noise_sd * rng.standard_normal(n))


def observed(x, y, noise=None):
    y = np.asarray(y, dtype=float)
    noise = np.full(len(y), np.nan) if noise is None else np.array(noise)
    return Observations(np.asarray(x, dtype=float).reshape(len(y), 1), y, noise)


def with_lies(observations, lies):
    y = observations.observed.copy()
    for row, lie in lies.items():
        y[row] = lie
    return Observations(observations.x, y, observations.noise)


def others(observations, settled, row):
    """Mean and deviation of f everywhere and at the row, given all other rows, by inverses."""
    targets = settled(observations, PRIOR)
    kept = np.isfinite(targets.noise) & (np.arange(len(observations)) != row)
    z = np.concatenate([EVERYWHERE, observations.x[[row]]])
    columns = (column[kept] for column in (observations.x, targets.values, targets.noise))
    mean, covariance = literal.posterior(PRIOR.kernel, *columns, z, PRIOR.mean)
    return mean, np.sqrt(np.diagonal(covariance))


@pytest.mark.parametrize(("half_width", "shape"), [(2.5, 1.0), (1.0, 0.5), (0.5, 3.0)])
def test_it_settles_where_the_formula_returns_what_it_was_given(half_width, shape):
    model = LeaveOneOutGP(PRIOR, FixedHyperparameters(), half_width, shape, iterations=500)
    told = np.where(np.arange(20) % 3 == 0, 0.02, np.nan)
    observations = with_lies(some(20), {3: 4.0, 8: -2.0, 9: 40.0})
    observations = Observations(observations.x, observations.observed, told)
    settled = model.fit(BOX, observations)
    own = observations.own_noise(PRIOR.noise)
    for row in range(20):
        mean, deviation = others(observations, settled, row)
        residual = abs(observations.observed[row] - mean[-1])
        s = np.sqrt(deviation[-1] ** 2 + own[row])
        excess = max(residual - half_width * s, 0.0) / shape
        trust = own[row] / (own[row] + excess**2)
        assert abs(trust - settled(observations, PRIOR).trust[row]) < 2e-3
    assert settled(observations, PRIOR).trust[[3, 8, 9]].max() < 0.1


@pytest.mark.parametrize(("half_width", "shape"), [(2.5, 1.0), (1.0, 2.0)])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_no_result_moves_the_mean_by_more_than_the_bound(size, sign, half_width, shape):
    # (k + sqrt(k^2 + c^2)) / 2 deviations given the others, for every row and everywhere.
    model = LeaveOneOutGP(PRIOR, FixedHyperparameters(), half_width, shape, iterations=500)
    bound = 0.5 * (half_width + np.hypot(half_width, shape))
    for lying in (0, 7):
        observations = with_lies(some(12), {lying: sign * size})
        settled = model.fit(BOX, observations)
        assert settled.posterior is not None
        mean = settled.posterior.predict(EVERYWHERE)[0]
        assert np.isfinite(mean).all()
        for row in range(12):
            without, deviation = others(observations, settled, row)
            moved = np.abs(mean - without[:-1])
            assert (moved <= 1.02 * bound * deviation[:-1] + 1e-9).all()


@pytest.mark.parametrize("fitting", [FixedHyperparameters(), Fitting()])
def test_the_posterior_is_bounded_and_forgets_a_lie_as_it_grows(fitting):
    clean = some(15)
    rows = np.arange(15) != 4
    model = GIVEN if isinstance(fitting, FixedHyperparameters) else LeaveOneOutGP(PRIOR)
    means = []
    for size in SIZES[3:]:
        posterior = model(BOX, with_lies(clean, {4: size}))
        means.append(posterior.predict(EVERYWHERE)[0])
        assert posterior.trust(clean)[4] < 1e-3
    for mean in means:
        assert np.abs(mean - truth(EVERYWHERE)).max() < 1.0
    if isinstance(fitting, FixedHyperparameters):
        without = Observations(clean.x[rows], clean.observed[rows], clean.noise[rows])
        alone = model(BOX, without).predict(EVERYWHERE)[0]
        for mean in means[3:]:
            assert_allclose(mean, alone, atol=1e-6)


@pytest.mark.parametrize("fitting", [FixedHyperparameters(), Fitting(marginal_likelihood)])
def test_it_is_the_plain_process_bit_for_bit_while_nothing_is_outside(fitting):
    observations = some(25, noise_sd=0.1)
    defended = LeaveOneOutGP(PRIOR, fitting, 4.0)
    if isinstance(fitting, Fitting):  # in units of mean and standard deviation
        fitting = replace(fitting, scale=Weighted(np.ones(25)))
    plain = GaussianProcess(PRIOR, fitting=fitting)
    one, other = defended(BOX, observations), plain(BOX, observations)
    assert isinstance(one, Exact)
    assert one.distrusted == 0
    for mine, its in zip(one.predict(EVERYWHERE), other.predict(EVERYWHERE), strict=True):
        assert_array_equal(mine, its)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6, 1e12])
@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1), (-1, -1, -1)])
def test_a_third_of_the_first_ten_results_may_lie_apart_from_each_other(size, signs):
    x = np.linspace(0.02, 0.98, 10)[:, None]
    lies = {row: sign * size for row, sign in zip((1, 5, 8), signs, strict=True)}
    observations = with_lies(observed(x, truth(x)), lies)
    model = Learner(BOX, recipes.loo_gp_ucb()).model
    posterior = model(BOX, observations)
    assert posterior.trust(observations)[[1, 5, 8]].max() < 1e-3
    honest = np.delete(np.arange(10), [1, 5, 8])
    alone = model(BOX, observed(x[honest], truth(x[honest])))
    error, its = (
        np.sqrt(np.mean((p.predict(EVERYWHERE)[0] - truth(EVERYWHERE)) ** 2))
        for p in (posterior, alone)
    )
    assert error < 1.5 * its


def agreeing_lies(truths):
    """Three lies at one place, rows 8 to 10, and what is told nearby once they are spent."""
    rng = np.random.default_rng(0)
    elsewhere = np.array([0.02, 0.1, 0.35, 0.5, 0.62, 0.75, 0.85, 0.97])
    nearby = np.linspace(0.18, 0.28, truths) if truths else np.empty(0)
    x = np.concatenate([elsewhere, [0.22, 0.22, 0.23], nearby])[:, None]
    y = truth(x) + 0.05 * rng.standard_normal(len(x))
    y[8:11] = 25.0
    return observed(x, y)


@pytest.mark.parametrize("truths", [2, 4])
def test_lies_that_agree_are_found_out_by_the_neighbourhood(truths):
    observations = agreeing_lies(truths)
    posterior = Learner(BOX, recipes.loo_gp_ucb()).model(BOX, observations)
    trust = posterior.trust(observations)
    assert trust[8:11].max() < 1e-2
    assert np.delete(trust, [8, 9, 10]).min() > 0.5
    near = posterior.predict(np.array([[0.225]]))[0]
    assert abs(near[0] - truth(np.array([[0.225]]))[0]) < 1.0


def test_two_results_that_agree_are_believed_where_nothing_else_is_known():
    x = np.concatenate([np.linspace(0.0, 0.6, 9), [0.95]])
    observations = observed(x, np.append(np.linspace(0.0, 0.3, 9), 8.0))
    model = LeaveOneOutGP(Prior(Scaled(Matern52(0.2), 1.0), 0.01))
    once = model.fit(BOX, observations)
    twice = observed(np.append(x, 0.951), np.append(observations.observed, 8.1))
    again = model.fit(BOX, twice)
    prior = again.posterior.prior
    assert again(twice, prior).trust[-2:].min() > 0.5
    assert once(observations, once.posterior.prior).trust[-1] < 0.5


def test_the_order_of_the_results_does_not_matter():
    observations = with_lies(some(18), {2: 30.0, 11: -9.0})
    order = np.random.default_rng(0).permutation(18)
    shuffled = Observations(
        observations.x[order], observations.observed[order], observations.noise[order]
    )
    model = LeaveOneOutGP(PRIOR)
    one, other = model.fit(BOX, observations), model.fit(BOX, shuffled)
    assert_allclose(other.excess, one.excess[order], rtol=1e-3, atol=1e-3)


def test_units_of_results_and_of_inputs_do_not_matter():
    observations = with_lies(some(18), {2: 30.0, 11: -9.0})
    model = LeaveOneOutGP(PRIOR)
    one = model.fit(BOX, observations)
    y = 300.0 - 5.0 * observations.observed
    moved = Observations(40.0 + 7.0 * observations.x, y, observations.noise)
    other = model.fit(Box([40.0], [47.0]), moved)
    assert_allclose(other.excess, 5.0 * one.excess, rtol=1e-2, atol=1e-2)


def test_what_it_settled_to_before_is_a_hint():
    observations = with_lies(some(24), {2: 30.0, 11: -9.0, 23: 50.0})
    model = LeaveOneOutGP(PRIOR)
    cold = model.fit(BOX, observations)
    warm = None
    for n in range(3, 25):
        warm = model.fit(BOX, observations.until(n), warm)
    prior = cold.posterior.prior
    assert_allclose(warm(observations, prior).trust, cold(observations, prior).trust, atol=0.05)


def test_what_is_outvoted_at_its_place_is_tried_the_other_way_round():
    # At 0.5 three results were distrusted and two believed; at 0.1 it is one against one.
    x = [0.5, 0.501, 0.502, 0.499, 0.498, 0.1, 0.1, 0.9]
    observations = observed(x, [5.0, 5.1, 4.9, 0.0, 0.1, 7.0, 0.0, np.nan])
    excess = np.array([9.0, 9.0, 9.0, 0.0, 0.0, 9.0, 0.0, np.inf])
    posterior = Hypothesis(excess).condition(PRIOR, observations)
    search = Search(GIVEN, BOX, observations)
    other = search.reversing(Hypothesis(excess, posterior=posterior))
    assert_array_equal(other.excess, [0.0, 0.0, 0.0, np.inf, np.inf, 9.0, 0.0, np.inf])
    # Once it is the other way round, there is nothing to reverse.
    assert search.reversing(other) is None


def test_what_is_trusted_is_fitted_from_scratch_where_that_is_clearly_better(monkeypatch):
    rng = np.random.default_rng(2)
    x = rng.uniform(-4.0, 4.0, (60, 1))
    y = np.sinc(x[:, 0]) + 0.05 * rng.standard_normal(60)
    y[:18] = -99.0
    domain, observations = Box([-4.0], [4.0]), observed(x, y)
    model = Learner(domain, recipes.loo_gp_ucb()).model
    search = Search(model, domain, observations)
    climbed = model.climbed(search)
    found = search.afresh(climbed)
    assert found.evidence > climbed.evidence + 5.0
    joined = search.joined(climbed, found)
    assert joined.posterior is found.posterior
    assert joined.all_trusted is climbed.all_trusted
    others = [each for each in climbed.explanations if not search.same(found, each)]
    assert list(joined.explanations) == [*others, found]
    assert search.joined(climbed, None) is climbed
    assert model.fit(domain, observations).evidence == pytest.approx(found.evidence)

    assert search.afresh(joined) is None  # it is fitted from scratch already
    honest = Search(model, domain, observed(x[18:], y[18:]))
    monkeypatch.setattr(Search, "fit", None)  # nothing to do where nothing is rejected,
    assert honest.afresh(replace(found, excess=np.zeros(42))) is None
    given = Search(GIVEN, domain, observations)  # and where no hyperparameters are fitted
    assert given.afresh(climbed) is None


@pytest.mark.slow
def test_trying_the_other_way_round_finds_a_summit_sooner(monkeypatch):
    # Forrester, 100 rounds, four lies, seed 44: 394 and 679 when this was written. Without that
    # start, what was settled before holds out for 23 rounds more at a regret of 12.8.
    def total():
        problem = forrester()
        adversary = AT_ONCE.against(problem.optimum, 100)
        environment = Environment(problem, Gaussian(1.0), adversary, 44)
        learner = Learner(problem.domain, recipes.loo_gp_ucb(), seed=44)
        run(learner, environment, 100, initial=5)
        x = learner.observations.x
        return float((problem.optimum.value - problem.value(x)).sum())

    with_it = total()
    monkeypatch.setattr(Search, "reversing", lambda *_: None)
    assert with_it < total() - 150.0


def test_it_survives_when_next_to_nothing_is_known():
    for y in ([], [np.nan], [np.inf, np.nan], [1.0], [1.0, np.nan], [3.0, 3.0], [1e300, -1e300]):
        observations = observed(np.linspace(0.2, 0.8, len(y)), y)
        posterior = Learner(BOX, recipes.loo_gp_ucb()).model(BOX, observations)
        assert np.isfinite(posterior.predict(EVERYWHERE)).all()
        trust = posterior.trust(observations)
        assert_array_equal(trust[~np.isfinite(observations.observed)], 0.0)


def surprising():
    """Eight results that agree and one, at the edge, that they neither foresaw nor rule out."""
    x = np.array([0.05, 0.2, 0.3, 0.45, 0.5, 0.62, 0.7, 0.78, 1.0])
    return observed(x, np.append(0.3 * truth(x[:8, None]), -3.0))


def test_while_it_is_open_who_lies_both_explanations_are_in_the_band():
    observations = surprising()
    posterior = DOUBTING(BOX, observations)
    assert isinstance(posterior, MixturePosterior)
    assert posterior.weights[1] > 0.01
    edge = np.array([[1.0]])
    plain = GaussianProcess(PRIOR)(BOX, observations).predict(edge)[0]
    without = GaussianProcess(PRIOR)(BOX, observations.until(8)).predict(edge)[0]
    mean, std = posterior.predict(edge)
    assert abs(plain - mean) < 4.0 * std
    assert abs(without - mean) < 4.0 * std
    # A second result of the same size settles it.
    again = observed(np.append(observations.x, 1.0), np.append(observations.observed, -3.1))
    assert abs(DOUBTING(BOX, again, posterior).predict(edge)[0] + 3.0) < 0.5


def test_explanations_have_the_odds_of_their_evidence():
    observations = surprising()
    settled = DOUBTING.fit(BOX, observations)
    evidence = sorted(e.evidence for e in settled.explanations)[::-1]
    weights = DOUBTING(BOX, observations).weights
    assert_allclose(np.log(weights[0] / weights[1]), evidence[0] - evidence[1], rtol=1e-9)
    # Of the explanation without a lie it is the marginal likelihood.
    (nobody,) = (e for e in settled.explanations if not e.excess.any())
    K = PRIOR.kernel(observations.x, observations.x) + PRIOR.noise * np.eye(9)
    residual = observations.observed - PRIOR.mean
    expected = -0.5 * residual @ np.linalg.solve(K, residual) - 0.5 * np.linalg.slogdet(K)[1]
    assert_allclose(nobody.evidence, expected)


def test_a_posterior_does_not_hold_on_to_those_before_it():
    model, posterior = Learner(BOX, recipes.loo_gp_ucb()).model, None
    observations = with_lies(some(14), {2: 30.0})
    for n in range(10, 15):
        posterior = model(BOX, observations.until(n), posterior)
    assert getattr(posterior.fitted_defence.posterior.fitted_defence, "posterior", None) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"half_width": 0.0}, "half_width > 0"),
        ({"half_width": np.inf}, "half_width > 0"),
        ({"shape": -1.0}, "shape > 0"),
        ({"outlier_penalty": -0.5}, "outlier penalty"),
        ({"outlier_penalty": np.nan}, "outlier penalty"),
        ({"iterations": 0}, "at least one iteration"),
        ({"rounds": 0}, "at least one iteration"),
    ],
)
def test_numbers_that_make_no_plateau_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LeaveOneOutGP(PRIOR, **arguments)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lies", [1, 3])
def test_a_huge_lie_leaves_nothing_behind_in_the_fit(seed, lies):
    """Two starts that trust alike may have fitted another amplitude; the better fit is kept."""
    rng = np.random.default_rng(seed)
    x = rng.random((60, 2))
    truth = np.sin(6.0 * x[:, 0]) + x[:, 1] ** 2
    y = truth + 0.05 * rng.standard_normal(60)
    y[:lies] = [1e6, -1e6, 1e3][:lies]
    learner = Learner(Box([0.0, 0.0], [1.0, 1.0]), recipes.loo_gp_ucb(), seed=0)
    learner.tell(x, y)
    mean, _ = learner.posterior.predict(x)
    assert np.mean((mean - truth) ** 2) < 0.01 * truth.var()
    assert np.all(learner.trust[:lies] < 1e-6)


@pytest.mark.parametrize("size", [0.0, 10.0])
def test_where_every_start_trusts_all_rows_one_fit_is_enough(monkeypatch, size):
    rng = np.random.default_rng(0)
    x = rng.random((41, 2))
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * rng.uniform(-1.0, 1.0, 41)
    y[5] += size
    learner = Learner(Box([0.0, 0.0], [1.0, 1.0]), recipes.loo_gp_ucb(), seed=0)
    learner.tell(x[:-1], y[:-1])
    before, fits, descend = learner.posterior, [], Problem.descend
    monkeypatch.setattr(Problem, "descend", lambda *a: fits.append(a) or descend(*a))
    learner.tell(x[-1], y[-1])
    assert learner.posterior is not before
    assert (len(fits) == 1) == (size == 0.0)


@pytest.mark.parametrize("noise", [1e-4, 1e-12, 1e-30])
def test_honest_results_without_noise_are_believed_beside_lies(noise):
    box = Box([0.0, 0.0], [1.0, 1.0])
    x = box.spread(20, np.random.default_rng(1))
    y = np.sin(6.0 * x[:, 0]) + x[:, 1]
    y[[3, 9]] = 50.0, -50.0
    learner = Learner(box, recipes.loo_gp_ucb(), seed=0)
    learner.tell(x, y, noise)
    assert_array_equal(np.flatnonzero(learner.trust < 0.5), [3, 9])
