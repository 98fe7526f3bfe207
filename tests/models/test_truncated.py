import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import literal_features as literal
from stoic import testing
from stoic.data import Observations
from stoic.defences import AdaptiveTruncation, Truncation
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Matern52, Scaled
from stoic.models.truncated import TruncatedFeatures
from stoic.posteriors import Prior
from stoic.posteriors.features import Fourier, Nystroem
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.levels import FeatureLevel

GRID = Finite(np.linspace(0.0, 1.0, 12))
BOX = Box([0.0], [1.0])
FEATURES = {
    "fourier": Fourier(6),
    "nystroem": Nystroem(oversampling=2.0),
    "principal": Nystroem(oversampling=2.0, principal=True),
}
VALUES = st.one_of(
    st.floats(-5.0, 5.0),
    st.sampled_from([0.0, 1.0, -1.0, 3.0, -3.0, 40.0, 1e6, -1e6, 1e300, math.inf, math.nan]),
)


def told(arms, observed, on_arms=True, noise=None):
    arms = np.asarray(arms, dtype=np.intp)
    own = np.full(len(arms), np.nan) if noise is None else noise
    x = GRID.points[arms].reshape(-1, 1)
    return Observations(x, np.asarray(observed, dtype=float), own, arms if on_arms else None)


def model(features, moment=4.0, alpha=1.0, noise=0.7, mean=0.0, horizon=50):
    level = FeatureLevel(horizon, drawn=isinstance(features, Nystroem))
    prior = Prior(RBF(0.4), noise, mean)
    return TruncatedFeatures(prior, features, level, Truncation(moment, alpha))


def phi_of(posterior, x):
    return posterior.embedding.coordinates(x.copy()) @ posterior.embedding.basis.T


def twin(posterior, observations, level, moment, alpha):
    b = level(len(observations), posterior.features, moment, alpha)
    Phi, y = phi_of(posterior, observations.x), observations.observed - posterior.prior.mean
    return (*literal.truncated_regression(Phi, y, posterior.prior.noise, b), y, b)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 11), VALUES), min_size=1, max_size=25),
    st.floats(0.05, 50.0),
    st.floats(0.1, 1.0),
    st.sampled_from([0.05, 0.7, 3.0]),
    st.sampled_from(list(FEATURES)),
    st.booleans(),
    st.integers(0, 25),
)
def test_it_is_the_double_sum(plays, moment, alpha, noise, kind, on_arms, cut):
    arms, y = [a for a, _ in plays], [v for _, v in plays]
    observations, domain = told(arms, y, on_arms), GRID if on_arms else BOX
    ata = model(FEATURES[kind], moment, alpha, noise)
    previous = ata(domain, observations.until(cut)) if 0 < cut < len(plays) else None
    posterior = ata(domain, observations, previous)
    theta, V, kept, u, z, b = twin(posterior, observations, ata.level, moment, alpha)
    assume(literal.closest_call(u, z, b) > 1e-9)
    mean, std = posterior.predict(GRID.points)
    phi = phi_of(posterior, GRID.points)
    scale = max(1.0, np.abs(phi @ theta).max())
    # What is only rounding of a zero, times a result that is huge, is nobody's truth.
    whatever = np.where((np.abs(u) < 1e-13) & np.isfinite(z)[:, None], np.abs(u), 0.0)
    lost = np.minimum(whatever * np.where(np.isfinite(z), np.abs(z), 0.0)[:, None], b)
    tolerance = 1e-9 * scale + 10.0 * lost.sum() / math.sqrt(noise)
    assert_allclose(mean, phi @ theta, rtol=0, atol=tolerance)
    k = None if kind == "fourier" else 1.0
    variance = np.array([literal.variance(f, V, noise, k) for f in phi])
    assert_allclose(std**2, variance, rtol=0, atol=1e-9)
    assert posterior.information == pytest.approx(
        0.5 * np.linalg.slogdet(V / noise)[1], rel=1e-9, abs=1e-9
    )
    trust = posterior.trust(observations)
    significant = u**2 > 1e-24
    number = np.abs(y) < 1e200  # what is larger counts as infinite, also where m = 0
    whole = np.all(kept | ~significant, axis=1) & number
    assert_allclose(trust[whole], 1.0, atol=1e-9)
    share = np.sum(u**2 * kept, axis=1) / np.maximum(np.sum(u**2, axis=1), 1e-300)
    seen = number & (np.sum(u**2, axis=1) > 1e-12)
    assert_allclose(trust[seen], share[seen], atol=1e-9)
    assert posterior.distrusted == np.count_nonzero(trust < 1.0)


def test_a_literal_history_of_500_rounds_one_by_one():
    rng = np.random.default_rng(0)
    arms = rng.integers(12, size=500)
    y = np.sin(6.0 * GRID.points[arms, 0]) + rng.standard_t(2, 500)
    y[[50, 300]] = math.inf, math.nan
    observations = told(arms, y)
    for features in FEATURES.values():
        ata, posterior = model(features, 3.0, 0.8, horizon=500), None
        for n in range(1, 501):
            posterior = ata(GRID, observations.until(n), posterior)
            if n in (1, 7, 100, 500):
                head = observations.until(n)
                theta, *_ = twin(posterior, head, ata.level, 3.0, 0.8)
                phi = phi_of(posterior, GRID.points)
                assert_allclose(posterior.predict(GRID.points)[0], phi @ theta, atol=1e-9)
        assert 2 < posterior.distrusted < 250


def test_without_truncation_it_is_the_gaussian_process():
    # Nystroem on all places is exact there; quadrature features are up to their error.
    rng = np.random.default_rng(1)
    arms = np.append(np.arange(12), rng.integers(12, size=30))
    y = np.sin(6.0 * GRID.points[arms, 0]) + 0.1 * rng.standard_normal(42)
    observations = told(arms, y)
    K = RBF(0.4)(GRID.points, observations.x)
    A = RBF(0.4)(observations.x, observations.x) + 0.7 * np.eye(42)
    expected = K @ np.linalg.solve(A, y)
    variance = 1.0 - np.sum(K * np.linalg.solve(A, K.T).T, axis=1)
    for features in (Fourier(24), Nystroem()):
        mean, std = model(features, moment=1e12)(GRID, observations).predict(GRID.points)
        assert_allclose(mean, expected, atol=1e-7)
        assert_allclose(std**2, variance, atol=1e-7)


def test_an_untold_region_is_uncertain_under_nystroem():
    # Variance starvation: noise phi'V^-1 phi alone would be near zero where phi is.
    observations = told([0, 0, 1], [1.0, 1.0, 1.0])
    level, prior = FeatureLevel(50, drawn=True), Prior(RBF(0.05), 0.01)
    posterior = TruncatedFeatures(prior, Nystroem(), level, Truncation(4.0))(GRID, observations)
    assert posterior.predict(GRID.points)[1][-1] == pytest.approx(1.0, rel=1e-9)
    assert np.linalg.norm(phi_of(posterior, GRID.points[-1:])) < 1e-6


def test_results_count_from_the_prior_mean():
    rng = np.random.default_rng(2)
    arms, y = rng.integers(12, size=40), rng.standard_t(2, 40)
    a = model(Fourier(6))(GRID, told(arms, y))
    b = model(Fourier(6), mean=100.0)(GRID, told(arms, y + 100.0))
    assert_allclose(b.predict(GRID.points)[0] - 100.0, a.predict(GRID.points)[0], atol=1e-9)
    assert_allclose(a.trust(told(arms, y)), b.trust(told(arms, y + 100.0)), atol=1e-9)


def test_rescaling_everything_changes_nothing():
    rng = np.random.default_rng(3)
    arms, y = rng.integers(12, size=40), rng.standard_t(2, 40)
    one = model(Fourier(6))(GRID, told(arms, y))
    prior, cut = Prior(Scaled(RBF(0.4), 1e6), 0.7e6), Truncation(4.0, 1.0, 1e3)
    ata = TruncatedFeatures(prior, Fourier(6), FeatureLevel(50), cut)
    other = ata(GRID, told(arms, 1e3 * y))
    for a, b in zip(one.predict(GRID.points), other.predict(GRID.points), strict=True):
        assert_allclose(1e3 * a, b, rtol=1e-9)
    assert one.information == pytest.approx(other.information, rel=1e-9)


def test_k_results_are_one_with_a_kth_of_the_noise_where_nothing_is_cut():
    a = model(Fourier(6), moment=1e9)(GRID, told([3] * 5 + [8], [1.0, 2.0, 3.0, 4.0, 5.0, 0.5]))
    own = np.array([0.7 / 5.0, np.nan])
    b = model(Fourier(6), moment=1e9)(GRID, told([3, 8], [3.0, 0.5], noise=own))
    assert_allclose(a.predict(GRID.points), b.predict(GRID.points), atol=1e-12)


@pytest.mark.parametrize("kind", FEATURES)
def test_one_result_of_any_size_moves_the_mean_by_a_bounded_amount(kind):
    rng = np.random.default_rng(5)
    arms, y = rng.integers(12, size=40), rng.standard_normal(40)
    means = []
    for last in (0.0, 1e3, 1e9, 1e300, math.inf, -math.inf, math.nan):
        y[-1] = last
        posterior = model(FEATURES[kind])(GRID, told(arms, y))
        mean, std = posterior.predict(GRID.points)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        means.append(mean)
    assert_allclose(means[1:], [means[0]] * 6, atol=1e-9)


def test_nothing_but_nonsense():
    for features in FEATURES.values():
        posterior = model(features)(GRID, told([1, 1, 5], [math.inf, math.nan, -math.inf]))
        mean, std = posterior.predict(GRID.points)
        assert_array_equal(mean, 0.0)
        assert std[1] < std[11]  # they were plays
        assert posterior.distrusted == 3


@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        (domain, kind)
        for domain in testing.example_domains()
        for kind in ("nystroem", *["fourier"] * (domain.dim <= 3))
    ],
    ids=repr,
)
def test_the_contract(domain, kind):
    prior = testing.example_prior(domain)
    features = Nystroem()
    if kind == "fourier":
        prior, features = Prior(RBF(0.8 * domain.widths), 0.05, 1.0), Fourier()
    level = FeatureLevel(100, drawn=kind == "nystroem")
    ata = TruncatedFeatures(prior, features, level, Truncation(3.0))
    for n in (0, 1, 20):
        observations = testing.example_observations(domain, n)
        testing.check_posterior(ata(domain, observations), domain, observations)


def test_a_posterior_does_not_change_when_its_successor_is_made():
    rng = np.random.default_rng(6)
    arms, y = rng.integers(12, size=30), rng.standard_t(2, 30)
    observations, ata = told(arms, y), model(Nystroem())
    first = ata(GRID, observations.until(20))
    before = [a.copy() for a in (*first.predict(GRID.points), first.trust(observations.until(20)))]
    distrusted = first.distrusted
    ata(GRID, observations, first)
    after = (*first.predict(GRID.points), first.trust(observations.until(20)))
    for a, b in zip(before, after, strict=True):
        assert_array_equal(a, b)
    assert first.distrusted == distrusted


def test_a_fantasy_may_lower_the_mean_and_never_raises_it():
    rng = np.random.default_rng(7)
    posterior = model(Fourier(6))(GRID, told(rng.integers(12, size=30), 1.0 + rng.normal(size=30)))
    mean = posterior.predict(GRID.points)[0]
    lowered = posterior.fantasise(GRID.points[[6, 6, 6]], at_most=-1.0).predict(GRID.points)[0]
    assert lowered[6] < mean[6] - 0.3
    assert_allclose(
        posterior.fantasise(GRID.points[[6]], at_most=1e6).predict(GRID.points)[0], mean
    )
    # As if one had been told: V grows by phi phi', and theta is ridge regression's.
    phi = phi_of(posterior, GRID.points)
    V = posterior.embedding.basis @ posterior.A @ posterior.embedding.basis.T
    V += 0.7 * (np.eye(6) - posterior.embedding.basis @ posterior.embedding.basis.T)
    W = V + 3.0 * np.outer(phi[6], phi[6])
    expected = mean + phi @ np.linalg.solve(W, 3.0 * phi[6] * (-1.0 - mean[6]))
    assert_allclose(lowered, expected, atol=1e-10)


def test_hyperparameters_are_fitted_through_the_truncation():
    rng = np.random.default_rng(8)
    x = BOX.sample(60, rng)
    y = 50.0 + 10.0 * np.sin(9.0 * x[:, 0]) + rng.standard_t(1.5, 60)
    y[::15] = 1e6
    ata = TruncatedFeatures(
        Prior(Matern52(1.0), 0.1), Nystroem(), FeatureLevel(100, drawn=True),
        AdaptiveTruncation(), Fitting(),
    )  # fmt: skip
    posterior = ata(BOX, Observations(x, y, np.full(60, np.nan)))
    mean, _ = posterior.predict(BOX.grid(20).points)
    truth = 50.0 + 10.0 * np.sin(9.0 * BOX.grid(20).points[:, 0])
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 3.0


def test_what_cannot_be_embedded_is_refused_when_it_is_asked_for():
    ata = replace(model(Fourier(6)), prior=Prior(Matern52(0.2), 1.0))
    with pytest.raises(ValueError, match="squared exponential kernel, got Matern52"):
        ata(GRID, told([1], [0.0]))
