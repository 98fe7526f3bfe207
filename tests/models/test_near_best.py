"""Reports about the best of many rows, by the model of those near it."""

from dataclasses import replace

import numpy as np
import pytest

from stoic import Box, Learner
from stoic.data import Observations
from stoic.domains import Lattice
from stoic.models.near_best import _at_results, _chosen, _Near
from stoic.models.window import Bounds
from stoic.policies.trust_region import _settled
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.mixture import Averaged
from stoic.posteriors.refined import Refined
from stoic.recipes import robust

SMALL = Bounds(exact=130, chosen=140, full=160, recent=16, local=48, sample=32)
PLANE = Box([-1.0, 0.0], [1.0, 10.0])
SUMMIT = np.array([0.3, 4.0])
GRID = np.arange(0.0, 10.0)[:, None]


def spire(x):
    """A hill, with a spire of 1 % of the widths on it."""
    u = (x[:, :2] - SUMMIT) / PLANE.widths[:2]
    square = (u**2).sum(axis=1)
    return -10.0 * square + 0.3 * np.exp(-0.5 * square / 0.01**2)


def learner(domain):
    parts = robust()(domain)
    return Learner(domain, replace(parts, model=replace(parts.model, bounds=SMALL)), seed=0)


def converged(noise=0.0, n=150, seed=0, domain=PLANE, far=120, rest=()):
    """Results everywhere, and around the summit; with two outliers there."""
    rng = np.random.default_rng(seed)
    x = domain.sample(n + far, rng)
    x[far:, :2] = SUMMIT + 0.02 * rng.standard_normal((n, 2)) * PLANE.widths[:2]
    x[far:, 2:] = rest
    y = spire(x) + noise * rng.standard_normal(len(x))
    y[[far + 3, far + 40]] += 2.0
    known = learner(domain)
    known.tell(x, y)
    return known, x, y


@pytest.fixture(scope="module")
def found():
    return converged()


def test_f_is_known_at_the_summit_to_the_distances_there(found):
    known, _, _ = found
    estimate = known.estimate
    assert isinstance(estimate, Refined)
    at = SUMMIT + 0.01 * np.random.default_rng(1).standard_normal((40, 2)) * PLANE.widths
    at = at[((at >= estimate.lower) & (at <= estimate.upper)).all(axis=1)]
    mean, std = estimate.predict(at)
    _, by_all = super(Refined, estimate).predict(at)
    assert len(at) > 30
    assert np.abs((spire(at) - mean) / std).max() < 3.0
    assert np.median(std) < 0.5 * np.median(by_all)
    # Outliers beside the summit are none of its results
    best = known.recommend()
    assert spire(best.x[None])[0] > 0.29
    assert abs(best.mean - spire(best.x[None])[0]) < 0.01


def test_beyond_the_cube_it_is_the_posterior_of_all_with_its_misfit(found):
    """What the local model shows to be no noise is an error of the other one everywhere."""
    known, _, _ = found
    estimate = known.estimate
    spire_as_noise = known.posterior.prior.noise
    assert 0.5 * spire_as_noise < estimate.misfit <= spire_as_noise
    at = PLANE.sample(60, np.random.default_rng(2))
    inside = ((at >= estimate.lower) & (at <= estimate.upper)).all(axis=1)
    whole = Averaged(
        estimate.parts, estimate.weights, estimate.fitted_defence, estimate.widening
    ).predict(at)
    whole = whole[0], np.hypot(whole[1], np.sqrt(estimate.misfit))
    for mine, its, near in zip(estimate.predict(at), whole, estimate.near.predict(at), strict=True):
        np.testing.assert_array_equal(mine[~inside], its[~inside])
        np.testing.assert_allclose(mine[inside], near[inside], rtol=1e-9)


def test_slopes_are_those_of_the_prediction(found):
    estimate, step = found[0].estimate, 1e-6
    at = np.array([SUMMIT + np.array([0.01, -0.03]), [-0.7, 9.0]])
    mean, std, mean_slope, std_slope = estimate.predict_with_gradient(at)
    np.testing.assert_allclose(np.array([mean, std]), estimate.predict(at), rtol=1e-9)
    for k, side in enumerate(np.eye(2) * step):
        for slope, after, before in zip(
            (mean_slope, std_slope),
            estimate.predict(at + side),
            estimate.predict(at - side),
            strict=True,
        ):
            np.testing.assert_allclose(
                slope[:, k], (after - before) / (2 * step), rtol=1e-3, atol=1e-5
            )


def test_a_fantasy_narrows_both(found):
    estimate = found[0].estimate
    at = np.array([SUMMIT, [-0.7, 9.0]])
    before = estimate.copy().predict(at)[1]
    after = estimate.fantasise(at).predict(at)[1]
    assert (after < before).all()
    np.testing.assert_array_equal(estimate.predict(at)[1], before)


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_hides_the_spire_all_rows_are_better(seed):
    known, _, _ = converged(noise=0.5, seed=seed)
    assert not isinstance(known.estimate, Refined)


def test_up_to_the_exact_number_of_rows_all_are_near():
    known, _, _ = converged(far=0, n=SMALL.exact)
    assert type(known.estimate) is Averaged


def test_results_at_one_input_have_no_cube():
    known = learner(PLANE)
    x = np.repeat([SUMMIT, [0.0, 1.0]], [140, 10], axis=0)
    known.tell(x, spire(x) + 0.1 * np.random.default_rng(0).standard_normal(150))
    assert type(known.estimate) is Averaged


def test_no_row_in_the_cube_is_left_out_where_many_are_at_one_distance():
    domain = Box(np.zeros(3), np.full(3, 9.0), [Lattice(np.array([k]), GRID) for k in range(3)])
    x = domain.sample(300, np.random.default_rng(0))
    known = learner(domain)
    known.tell(x, -((x - 4.0) ** 2).sum(axis=1) - np.abs(x - 5.0).sum(axis=1))
    posterior = known.posterior
    trusted = posterior.trust(known.observations) >= 0.5
    found = _Near.about(known.surrogate.model, domain, known.observations, trusted, 7)
    in_cube = ((x >= found.lower) & (x <= found.upper)).all(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(in_cube), found.rows)
    assert len(found.rows) <= 128


def test_inputs_that_differ_by_rounding_have_no_cube():
    known = learner(Box([0.0, 0.0], [1.0, 1.0]))
    x = np.random.default_rng(0).random((100, 2))
    x = np.concatenate([x, np.column_stack([np.full(200, 0.7), 1e-19 * np.arange(200.0)])])
    known.tell(x, x[:, 0])
    assert np.isfinite(known.recommend().mean)


def test_a_wrong_result_that_only_a_local_model_would_trust_is_not_recommended():
    # Found among random ones: the model of all gives it a trust of .01
    rng, dim = np.random.default_rng(498245), 4
    centre = 0.3 + 0.4 * rng.random(dim)
    x = rng.random((300, dim))
    away = 10.0 ** (-2.5 * rng.random((150, 1))) * rng.standard_normal((150, dim))
    x[150:] = np.clip(centre + 0.3 * away, 0.0, 1.0)
    x[150:] = x[150 + np.argsort(-np.abs(x[150:] - centre).max(axis=1))]
    z = 20.0 * (x - centre)
    f = 4.0 * np.exp(-0.2 * np.sqrt((z**2).mean(axis=1)))
    f += 0.2 * np.exp(np.cos(2.0 * np.pi * z).mean(axis=1))
    rng.standard_normal(300)  # the noise there, of which this one has none
    y, wrong = f.copy(), rng.random(300) < 0.1
    size = rng.choice([-2.0, 2.0], wrong.sum()) * rng.random(wrong.sum())
    y[wrong] += 2.0 * f.std() * size
    known = learner(Box(np.zeros(dim), np.ones(dim)))
    known.tell(x, y)
    assert isinstance(known.estimate, Refined)
    best = np.flatnonzero((x == known.recommend().x).all(axis=1))
    assert not wrong[best].any()
    assert f[best].max() > f.max() - 0.02 * f.std()


@pytest.mark.filterwarnings("error")
def test_infinite_results_are_no_warning():
    _, x, y = converged(far=60, n=140)
    y[::9] = -np.inf
    again = learner(PLANE)
    again.tell(x, y)
    assert np.isfinite(again.recommend().mean)


def test_integers_and_categories_are_kept():
    steps, shades = Lattice(np.array([2]), np.arange(0.0, 6.0)[:, None]), np.array([3, 4, 5])
    domain = Box(
        [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [1.0, 10.0, 5.0, 1.0, 1.0, 1.0],
        (steps, Lattice(shades, np.eye(3))),
    )
    rest = [2.0, 0.0, 1.0, 0.0]
    known, x, _ = converged(domain=domain, rest=rest)
    estimate = known.estimate
    assert isinstance(estimate, Refined)
    near = ((x >= estimate.lower) & (x <= estimate.upper)).all(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(near), estimate.rows)
    best = known.recommend().x
    assert best[:2] == pytest.approx(SUMMIT, abs=0.2)
    np.testing.assert_array_equal(best[2:], rest)


def test_the_best_is_one_where_constraints_hold():
    rng = np.random.default_rng(0)
    known = learner(PLANE)
    x = PLANE.sample(300, rng)
    x[100:200] = SUMMIT + 0.02 * rng.standard_normal((100, 2)) * PLANE.widths
    beside = SUMMIT - [0.3, 0.0]
    x[200:] = beside + 0.02 * rng.standard_normal((100, 2)) * PLANE.widths
    u = (x - beside) / PLANE.widths
    y = spire(x) + 0.3 * np.exp(-0.5 * (u**2).sum(axis=1) / 0.01**2)
    known.tell(x, y, constraints={"left": x[:, 0] - 0.15})
    estimate = known.estimate
    assert isinstance(estimate, Refined)
    assert ((beside >= estimate.lower) & (beside <= estimate.upper)).all()
    assert known.recommend().x[0] < 0.15


def test_wrong_results_that_are_trusted_do_not_hide_the_highest_summit():
    """The best mean, and the best two results, are wrong ones at a lower summit and beside it."""
    rng = np.random.default_rng(0)
    summits, heights = np.array([[-0.5, 2.0], [0.5, 8.0]]), np.array([0.2, 0.3])
    x = np.concatenate([at + 0.02 * rng.standard_normal((140, 2)) * PLANE.widths for at in summits])
    x[9] = [-0.95, 0.5]
    squares = (((x[:, None] - summits) / PLANE.widths) ** 2).sum(axis=2)  # (n, 2)
    y = (heights * np.exp(-0.5 * squares / 0.03**2)).sum(axis=1)
    y[[7, 9]] += 2.0, 1.9
    model, everything = robust()(PLANE).model, np.ones(len(x), dtype=bool)
    unknown = np.full(len(x), np.nan)
    found = _chosen(model, PLANE, Observations(x, y, unknown), everything, y)
    assert found.best >= 140
    assert found.bound == pytest.approx(0.3, abs=0.003)
    y[[7, 9]] -= 2.0, 1.9
    again = _chosen(model, PLANE, Observations(x, y, unknown), everything, y)
    assert again.best == found.best


def test_at_an_input_of_many_its_own_result_counts_in_full():
    rng = np.random.default_rng(0)
    x = rng.random((600, 4))
    known = learner(Box(np.zeros(4), np.ones(4)))
    f = np.sin(6.0 * x).sum(axis=1)
    y = f + np.where(np.arange(600) % 10 == 0, 5.0, 0.0)
    known.tell(x, y)
    posterior, observations = known.posterior, known.observations
    by_others = given_the_others(posterior, observations)
    found = _at_results(posterior, observations, known.trust >= 0.5, *by_others)
    assert set(found) == {bytes(row) for row in x[known.trust >= 0.5]}
    rows = np.flatnonzero(known.trust >= 0.5)
    mean, std = np.array([found[bytes(x[i])] for i in rows]).T
    whole, _ = posterior.predict(x[rows])  # has absorbed most of them
    error = np.abs(mean - f[rows])
    assert error.mean() < 0.1 * np.abs(whole - f[rows]).mean()
    assert np.mean(error <= 2.0 * std) > 0.95


def test_what_is_known_at_inputs_of_results_is_reported(found):
    known, x, _ = found
    estimate = known.estimate
    outside = x[((x < estimate.lower) | (x > estimate.upper)).any(axis=1)][:2]
    reported = replace(estimate, misfit=0.0, at_results={bytes(outside[0]): (7.0, 0.5)})
    mean, std = reported.predict(outside)
    before = replace(estimate, misfit=0.0).predict(outside)
    np.testing.assert_array_equal(mean, [7.0, before[0][1]])
    np.testing.assert_array_equal(std, [0.5, before[1][1]])


def test_equal_results_at_the_best_have_the_step_of_all():
    rng = np.random.default_rng(0)
    x = np.concatenate([0.5 + 0.05 * rng.random((60, 2)), rng.random((80, 2))])
    y = (np.abs(x - 0.5).max(axis=1) < 0.1).astype(float)
    all_of_them = Observations(x, y, np.full(len(x), np.nan))
    model = robust()(PLANE).model
    near = all_of_them.only(np.arange(60))
    assert near.observed.min() == near.observed.max()
    assert model(PLANE, near, None).prior.noise < 0.01
    given = model.with_step_of(all_of_them)
    assert given(PLANE, near, None).prior.noise >= 0.999 / 12.0
    assert given.with_step_of(near) is given


def test_few_values_have_their_step_in_all_models_of_many_results():
    """Of 300, in any unit: in the window, in reports about the best, and in a local search."""
    rng = np.random.default_rng(1)
    x = np.concatenate([0.5 + 0.02 * rng.standard_normal((140, 2)), rng.random((160, 2))])
    success = rng.random(300) < np.where(np.abs(x - 0.5).max(axis=1) < 0.15, 0.97, 0.2)
    trust = []
    for unit in (1.0, 1e4):
        learner = Learner(Box([0.0, 0.0], [1.0, 1.0]), seed=0)
        learner.tell(x, unit * success)
        trust.append(learner.trust)
        assert learner.posterior.prior.noise >= 0.99 * unit**2 / 12.0
        found = learner.recommend()
        assert 0.9 * unit < found.mean < 1.1 * unit
        assert found.upper - found.lower > 0.02 * unit  # 4 * .29 / 300^(1/2) is .07
        _, local = _settled(learner.view())
        assert local.prior.noise >= 0.99 * unit**2 / 12.0
    np.testing.assert_allclose(trust[0], trust[1], atol=1e-3)
