import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import literal_features as literal
from stoic.data import Observations
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Linear, Matern52, Precomputed, Scaled, Sum
from stoic.posteriors import Prior
from stoic.posteriors.features import Fourier, Nystroem
from stoic.posteriors.features.fourier import quadrature_error
from stoic.posteriors.places import Places


def rows(domain, arms, seed=0):
    x = domain.points[arms]
    y = np.random.default_rng(seed).standard_normal(len(arms))
    return Observations(x, y, np.full(len(arms), np.nan), np.asarray(arms, dtype=np.intp))


def embedded(features, domain, prior, observations=None):
    observations = observations or Observations(
        np.empty((0, domain.dim)), np.empty(0), np.empty(0), None
    )
    places = Places(prior, domain.dim)
    places.add(observations)
    features.check(domain, prior)
    return features(domain, prior, observations, places, None)


def phi(embedding, x):
    # A copy: coordinates of the domain's own points are known, not computed
    return embedding.coordinates(x.copy()) @ embedding.basis.T


UNIT = Finite(np.linspace(0.0, 1.0, 101))

# --- quadrature -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "error"), [(16, 4.175e-3), (32, 2.36e-12)])
def test_the_error_of_the_kernel_on_the_unit_interval(nodes, error):
    embedding = embedded(Fourier(nodes), UNIT, Prior(RBF(0.2), 1.0))
    features = phi(embedding, UNIT.points)
    K = RBF(0.2)(UNIT.points, UNIT.points)
    assert features.shape == (101, nodes)
    off = np.abs(features @ features.T - K)
    assert off.max() == pytest.approx(error, rel=1e-2)
    assert off.max() == pytest.approx(embedding.error, rel=1e-2)
    assert off.max() == off[0, -1]  # at the ends


@pytest.mark.parametrize(("nodes", "d"), [(16, 1), (5, 1), (6, 2), (5, 2), (4, 3), (3, 3)])
def test_half_of_the_nodes_give_the_kernel_of_all(nodes, d):
    box = Box(np.zeros(d), np.ones(d))
    x = np.random.default_rng(0).random((30, d))
    embedding = embedded(Fourier(nodes), box, Prior(RBF(0.7), 1.0))
    mine, theirs = phi(embedding, x), literal.fourier(x, 0.7, nodes)
    assert mine.shape[1] == embedding.features == nodes**d
    assert theirs.shape[1] == 2 * nodes**d
    assert_allclose(mine @ mine.T, theirs @ theirs.T, atol=1e-12)
    every = embedded(Fourier(nodes, pairs=True), box, Prior(RBF(0.7), 1.0))
    assert every.features == 2 * nodes**d
    assert_allclose(phi(every, x), theirs, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_domain_anywhere_of_any_size_with_a_lengthscale_per_coordinate(d):
    box = Box([-7.0, 100.0, 3.0][:d], [-5.0, 130.0, 3.5][:d])
    kernel = Scaled(RBF(box.widths / [1.9, 1.5, 1.2][:d]), 4.0)
    x = box.sample(50, np.random.default_rng(1))
    embedding = embedded(Fourier(), box, Prior(kernel, 1.0))
    assert embedding.features <= 1024
    features = phi(embedding, x)
    off = np.abs(features @ features.T - kernel(x, x)).max()
    assert off <= embedding.error <= 4.0 * 1e-6


def test_the_same_features_wherever_the_domain_is():
    x = np.random.default_rng(2).random((20, 2))
    here = embedded(Fourier(8), Box([0.0, 0.0], [1.0, 1.0]), Prior(RBF(0.5), 1.0))
    there = embedded(
        Fourier(8), Box([40.0, -3.0], [42.0, 7.0]), Prior(RBF(np.array([1.0, 5.0])), 1.0)
    )
    moved = np.array([40.0, -3.0]) + np.array([2.0, 10.0]) * x
    assert_allclose(phi(here, x), phi(there, moved), atol=1e-12)


def test_as_few_nodes_as_the_tolerance_takes():
    for extent in (1.0, 5.0, 20.0):
        M = embedded(Fourier(), UNIT, Prior(RBF(1.0 / extent), 1.0)).features
        assert quadrature_error(extent, M) <= 1e-6 < quadrature_error(extent, M - 2)


@pytest.mark.parametrize(
    ("d", "fits", "does_not"),
    [pytest.param(1, 40.0, 41.0, marks=pytest.mark.slow), (2, 6.3, 6.6), (3, 1.9, 2.0)],
)
def test_what_the_budget_suffices_for(d, fits, does_not):
    box = Box(np.zeros(d), np.ones(d))
    Fourier().check(box, Prior(RBF(1.0 / fits), 1.0))
    with pytest.raises(ValueError, match=r"more than the budget of 1024 features: use Nystroem"):
        Fourier().check(box, Prior(RBF(1.0 / does_not), 1.0))


def test_other_kernels_are_refused_with_a_sentence():
    for kernel in (Matern52(0.2), Scaled(Linear(1.0)), Sum(RBF(0.2), RBF(0.3))):
        with pytest.raises(ValueError, match="are for the squared exponential kernel, got"):
            Fourier().check(UNIT, Prior(kernel, 1.0))
    with pytest.raises(ValueError, match="64 nodes in 2 coordinates make 4096 features"):
        Fourier(64).check(Box([0.0, 0.0], [1.0, 1.0]), Prior(RBF(0.2), 1.0))
    with pytest.raises(ValueError, match=r"16 nodes in 2 .* 512 features, .* at most 15 nodes"):
        Fourier(16, pairs=True, budget=511).check(Box([0.0, 0.0], [1.0, 1.0]), Prior(RBF(0.2), 1.0))
    with pytest.raises(ValueError, match="nodes is a whole number"):
        Fourier(0)


def test_the_coordinates_of_a_finite_domain_are_few_and_lose_nothing():
    prior = Prior(RBF(0.2), 1.0)
    few = embedded(Fourier(64), UNIT, prior)
    all_ = embedded(Fourier(64), Box([0.0], [1.0]), prior)
    assert few.basis.shape[1] < 40 < all_.basis.shape[1] == few.features == 64
    assert_allclose(few.basis.T @ few.basis, np.eye(few.basis.shape[1]), atol=1e-13)
    assert_allclose(phi(few, UNIT.points), phi(all_, UNIT.points), atol=1e-14)
    known = few.coordinates(UNIT.points)
    assert known is few.coordinates(UNIT.points)
    assert_allclose(known, few.coordinates(UNIT.points.copy()), atol=1e-13)


# --- Nystroem -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [RBF(0.2), Matern52(0.3), Scaled(Linear(0.5), 2.0)])
def test_nystroem_is_the_kernel_projected_on_the_dictionary(kernel):
    prior = Prior(kernel, 0.5)
    told = rows(UNIT, [3, 50, 50, 97, 20, 3, 70])
    embedding = embedded(Nystroem(oversampling=1e9), UNIT, prior, told)
    D = embedding.points
    assert_array_equal(D, UNIT.points[[3, 50, 97, 20, 70]])  # all, in the order of first visits
    x = UNIT.points
    expected = kernel(x, D) @ np.linalg.pinv(kernel(D, D), 1e-10) @ kernel(D, x)
    features = phi(embedding, x)
    assert_allclose(features @ features.T, expected, atol=1e-8)
    # The square root is the symmetric one: features at the dictionary are a symmetric matrix.
    at_D = phi(embedding, D)
    assert_allclose(at_D, at_D.T, atol=1e-7)
    assert np.all(np.diagonal(at_D) > 0.0)


def test_principal_features_are_the_same_kernel_with_fewer_of_them():
    prior, told = Prior(RBF(0.2), 0.5), rows(UNIT, range(101))
    symmetric = embedded(Nystroem(oversampling=1e9), UNIT, prior, told)
    principal = embedded(Nystroem(oversampling=1e9, principal=True), UNIT, prior, told)
    assert symmetric.features == 101
    assert principal.features == symmetric.basis.shape[1] < 25
    a, b = phi(symmetric, UNIT.points), phi(principal, UNIT.points)
    assert_allclose(a @ a.T, b @ b.T, atol=1e-10)
    # An eigenvector of K_D each: orthogonal over the dictionary, with its eigenvalue as a square.
    gram = b.T @ b
    s = np.linalg.eigvalsh(prior.kernel(UNIT.points, UNIT.points))[-len(gram) :]
    # K q_j misses s_j q_j by 101 roundings of K at most, and feature j is K q_j / sqrt(s_j).
    ratio = np.sqrt(s[:, None] / s)
    allowed = 101 * np.finfo(float).eps * s[-1] * np.maximum(ratio, ratio.T)
    assert np.all(np.abs(gram - np.diag(s)) <= allowed)


@pytest.mark.parametrize("principal", [False, True])
@pytest.mark.parametrize("kernel", [RBF(0.2), Scaled(Linear(0.5), 2.0), Matern52(0.3)])
def test_features_of_later_dictionaries_are_those_of_a_fresh_start(kernel, principal):
    prior, rng = Prior(kernel, 0.5), np.random.default_rng(1)
    told = rows(UNIT, rng.integers(101, size=120))
    sampler, places, later = (
        Nystroem(oversampling=20.0, principal=principal),
        Places(prior, 1),
        None,
    )
    dictionaries = set()
    for n in range(40, 121):
        places.add(told.only(slice(places.n, n)))
        later = sampler(UNIT, prior, told.until(n), places, later)
        fresh = sampler(UNIT, prior, told.until(n), places, None)
        dictionaries.add(tuple(later.slots.tolist()))
        assert_array_equal(later.points, fresh.points)
        ours, theirs = phi(later, UNIT.points), phi(fresh, UNIT.points)
        assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-8)
        assert_allclose(later.basis.T @ later.basis, np.eye(later.basis.shape[1]), atol=1e-12)
        # On the domain and by the formula.
        known, computed = map(later.coordinates, (UNIT.points, UNIT.points.copy()))
        assert_allclose(known, computed, atol=1e-6)
        if not principal:  # whose signs are arbitrary
            at = UNIT.locate(later.points)
            assert_allclose(ours[at], theirs[at], atol=1e-5)
    assert len(dictionaries) > 20
    assert (later.factor.shape[1] > 0) == (not isinstance(kernel, Matern52))


def test_nystroem_on_rows_of_a_covariance():
    matrix = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]])
    domain = Finite(np.arange(3.0))
    embedding = embedded(
        Nystroem(), domain, Prior(Precomputed(matrix), 1.0), rows(domain, [0, 2, 1])
    )
    features = phi(embedding, domain.points)
    assert_allclose(features @ features.T, matrix, atol=1e-12)


@pytest.mark.parametrize("once", [False, True])
def test_how_often_a_place_is_in_the_dictionary(once):
    # 1 - (1 - p)^k, or p, with p = q variance / noise, the variance before the last result; 1500
    # draws: 5 standard errors at most, false alarm below 1e-5 for three places.
    prior = Prior(RBF(0.05), 0.8)
    told = rows(UNIT, [5] * 40 + [50] * 6 + [95, 50])
    q = 0.2
    seen = np.zeros(3)
    for seed in range(1500):
        embedding = embedded(Nystroem(oversampling=q, once=once, seed=seed), UNIT, prior, told)
        seen[embedding.slots] += 1.0
    # Far apart: the variance of k plays is 0.8 / (0.8 + k).
    plays, before = np.array([40, 7, 1]), np.array([40, 6, 1])
    p = np.minimum(q / (0.8 + before), 1.0)
    expected = p if once else 1.0 - (1.0 - p) ** plays
    error = np.sqrt(expected * (1.0 - expected) / 1500)
    assert np.all(np.abs(seen / 1500 - expected) < 5.0 * error)


def test_the_dictionary_depends_on_the_results_alone():
    prior = Prior(RBF(0.1), 0.3)
    told = rows(UNIT, np.random.default_rng(3).integers(101, size=60))
    sampler = Nystroem(oversampling=0.5)
    places, embedding = Places(prior, 1), None
    sizes = set()
    for n in range(1, 61):
        places.add(told.until(n).since(n - 1))
        embedding = sampler(UNIT, prior, told.until(n), places, embedding)
        sizes.add(embedding.features)
        if n in (1, 2, 17, 60):
            afresh = embedded(sampler, UNIT, prior, told.until(n))
            assert_array_equal(embedding.slots, afresh.slots)
            assert_allclose(phi(embedding, UNIT.points), phi(afresh, UNIT.points), atol=1e-12)
    assert len(sizes) > 5  # it was drawn anew, and not everything is in it
    assert max(sizes) < len(places)


def test_variances_are_within_the_distortion():
    # Theory: within (1 -+ eps) / (1 +- eps) with probability 1 - delta / 2 in all rounds.
    prior, eps = Prior(RBF(0.1), 1.0), 0.3
    told = rows(UNIT, np.random.default_rng(4).integers(101, size=400))
    sampler = Nystroem(eps, 400, 0.05, "theory")
    features = phi(embedded(sampler, UNIT, prior, told), UNIT.points)
    V = features[told.arms].T @ features[told.arms] + np.eye(features.shape[1])
    mine = np.array([literal.variance(f, V, 1.0, 1.0) for f in features])
    K = prior.kernel(UNIT.points, told.x)
    exact = 1.0 - np.sum(
        K * np.linalg.solve(prior.kernel(told.x, told.x) + np.eye(400), K.T).T, axis=1
    )
    assert np.all(mine >= (1 - eps) / (1 + eps) * exact)
    assert np.all(mine <= (1 + eps) / (1 - eps) * exact)


def test_q_is_the_papers():
    assert Nystroem(0.1, 20_000).q == pytest.approx(math.log(20_000) / 0.01, rel=1e-12)
    theory = Nystroem(0.1, 20_000, 0.05, "theory").q
    assert theory == pytest.approx(6 * 1.1 / 0.9 * math.log(4 * 20_000 / 0.05) / 0.01, rel=1e-12)
    for wrong in ({"distortion": 1.0}, {"oversampling": 0.0}, {"constants": "thoery"}):
        with pytest.raises(ValueError, match=r"is between|positive number|'practice'"):
            Nystroem(**wrong)
