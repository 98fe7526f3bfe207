"""Reports about the best of many rows, by the model of those near it."""

from dataclasses import replace

import numpy as np
import pytest

from stoic import Box, Learner
from stoic.domains import Lattice
from stoic.models.bounded import Bounds
from stoic.posteriors.mixture import Averaged
from stoic.posteriors.refined import Refined
from stoic.recipes import robust

SMALL = Bounds(exact=130, chosen=140, full=160, recent=16, local=48, sample=32)
PLANE = Box([-1.0, 0.0], [1.0, 10.0])
SUMMIT = np.array([0.3, 4.0])


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
    mean, std = estimate.predict(at)
    _, by_all = super(Refined, estimate).predict(at)
    z = (spire(at) - mean) / std
    assert np.abs(z).max() < 4.0
    assert np.median(std) < 0.5 * np.median(by_all)
    # Outliers beside the summit are none of its results
    best = known.recommend()
    assert spire(best.x[None])[0] > 0.29
    assert abs(best.mean - spire(best.x[None])[0]) < 0.01


def test_beyond_the_cube_it_is_the_posterior_of_all(found):
    estimate = found[0].estimate
    at = PLANE.sample(60, np.random.default_rng(2))
    inside = ((at >= estimate.lower) & (at <= estimate.upper)).all(axis=1)
    whole = Averaged(
        estimate.parts, estimate.weights, estimate.fitted_defence, estimate.widening
    ).predict(at)
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
    assert near.sum() >= 128
    best = known.recommend().x
    assert best[:2] == pytest.approx(SUMMIT, abs=0.2)
    np.testing.assert_array_equal(best[2:], rest)
