"""Student-t noise: the bound against integrals, its maximum against a library's optimiser."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from stoic import testing
from stoic.data import Observations
from stoic.domains import Box
from stoic.kernels import RBF, Matern52, Scaled
from stoic.posteriors import Arms, Prior
from stoic.posteriors.fitting import Fitting, marginal_likelihood
from stoic.posteriors.scales import median_and_mad
from stoic.posteriors.student_t_noise import (
    StudentTNoise,
    bound,
    settled,
    tail_probability,
    updated,
)

BOX = Box([0.0], [1.0])
GRID = BOX.grid(41)
PRIOR = Prior(Scaled(Matern52(0.3), 1.5), 0.04, 0.8)


def some(n, seed=0, told=False, finite=False, lies=True):
    rng = np.random.default_rng(seed)
    arms = rng.integers(41, size=n)
    x = GRID.points[arms]
    y = 1.0 + np.sin(6.0 * x[:, 0]) + 0.2 * rng.standard_normal(n)
    if lies:
        y[3::7] += rng.choice([-4.0, 4.0], len(y[3::7]))
    noise = np.where(np.arange(n) % 3 == 1, 0.02, np.nan) if told else np.full(n, np.nan)
    return Observations(x, y, noise, arms if finite else None)


def test_the_bound_is_below_the_evidence_and_tight_where_f_is_known():
    # One result, by quadrature: p(y) = int N(f) t((y - f) / sd) / sd df.
    for nu in (1.0, 4.0):
        for y in (0.9, 3.0, 12.0):
            one = Observations(np.array([[0.5]]), np.array([y]), np.array([np.nan]))
            for k, gap in ((1e-8, 1e-6), (1.5, 0.7)):
                prior = Prior(Scaled(RBF(0.3), k), 0.04, 0.8)

                def density(f, prior=prior, y=y, k=k, nu=nu):
                    noise = stats.t.pdf((y - f) / 0.2, nu) / 0.2
                    return noise * stats.norm.pdf(f, prior.mean, math.sqrt(k))

                sd = math.sqrt(k)
                points = sorted({0.8, min(max(y, 0.8 - 9.0 * sd), 0.8 + 9.0 * sd)})
                evidence = integrate.quad(
                    density, 0.8 - 12.0 * sd, 0.8 + 12.0 * sd, points=points, limit=500
                )[0]
                found = bound(one, prior, nu, settled(one, prior, nu))
                assert found <= math.log(evidence) + 1e-6
                assert found >= math.log(evidence) - gap


@pytest.mark.parametrize("told", [False, True])
def test_updates_raise_the_bound_to_a_maximum_that_an_optimiser_agrees_with(told):
    observations, nu = some(15, told=told), 4.0
    K = PRIOR.kernel(observations.x, observations.x)
    z, D = observations.observed - PRIOR.mean, observations.own_noise(PRIOR.noise)
    t, bounds = np.ones(15), []
    for _ in range(60):
        bounds.append(bound(observations, PRIOR, nu, t))
        t = updated(t, K, z, D, nu)
    assert (np.diff(bounds) >= -1e-10).all()
    assert bounds[-1] > bounds[0] + 5.0
    found = settled(observations, PRIOR, nu)
    best = optimize.minimize(
        lambda u: -bound(observations, PRIOR, nu, np.exp(u)), np.log(found), method="BFGS"
    )
    assert -best.fun == pytest.approx(bound(observations, PRIOR, nu, found), abs=1e-6)
    assert_allclose(np.log(found), best.x, atol=2e-3)


def test_one_update_is_the_formula():
    observations, nu = some(8, told=True), 4.0
    D = observations.own_noise(PRIOR.noise)
    t = np.random.default_rng(1).uniform(0.8, 5.0, 8)
    K = PRIOR.kernel(observations.x, observations.x)
    z = observations.observed - PRIOR.mean
    gain = K @ np.linalg.inv(K + np.diag(D * t))
    m, S = gain @ z, K - gain @ K
    expected = (nu + ((z - m) ** 2 + np.diagonal(S)) / D) / (nu + 1.0)
    assert_allclose(updated(t, K, z, D, nu), expected, rtol=1e-9)
    t[2] = np.inf  # a row that is out: it is predicted by the others
    kept = np.arange(8) != 2
    gain = K[:, kept] @ np.linalg.inv(K[np.ix_(kept, kept)] + np.diag((D * t)[kept]))
    m, S = gain @ z[kept], K - gain @ K[kept]
    expected = (nu + ((z - m) ** 2 + np.diagonal(S)) / D) / (nu + 1.0)
    assert_allclose(updated(t, K, z, D, nu), expected, rtol=1e-9)


def test_the_gradient_in_hyperparameters_is_that_with_the_multipliers_held():
    # At a maximum over t nothing is lost by holding t: the total derivative by differences.
    observations, nu = some(12), 4.0
    t = settled(observations, PRIOR, nu)

    def best(v):
        prior = Prior(Scaled(Matern52(0.3 * math.exp(v[0])), 1.5), 0.04 * math.exp(v[1]), 0.8)
        return bound(observations, prior, nu, settled(observations, prior, nu))

    def held(v):
        prior = Prior(Scaled(Matern52(0.3 * math.exp(v[0])), 1.5), 0.04 * math.exp(v[1]), 0.8)
        return bound(observations, prior, nu, t)

    zero = np.zeros(2)
    assert_allclose(
        optimize.approx_fprime(zero, best, 1e-4),
        optimize.approx_fprime(zero, held, 1e-4),
        rtol=1e-2, atol=1e-2,
    )  # fmt: skip


def test_outliers_are_multiplied_and_honest_rows_are_not():
    observations = some(35)
    t = settled(observations, PRIOR, 4.0)
    lies = np.zeros(35, dtype=bool)
    lies[3::7] = True
    assert t[lies].min() > 15.0
    assert t[~lies].max() < 4.0
    assert t.min() >= 0.8  # nu / (nu + 1)


@pytest.mark.parametrize("lie", [1e4, 1e9, 1e200, -1e300, math.inf, math.nan])
@pytest.mark.parametrize("fitting", [None, Fitting(marginal_likelihood, median_and_mad)])
def test_one_lie_of_any_size_hardly_moves_the_mean(lie, fitting):
    observations = some(30, lies=False)
    observations.observed[11] = lie
    others = np.delete(np.arange(30), 11)
    kwargs = {} if fitting is None else {"fitting": fitting}
    model = StudentTNoise(PRIOR, **kwargs)
    with_it, without = (model(BOX, rows) for rows in (observations, observations.only(others)))
    gap = with_it.predict(GRID.points)[0] - without.predict(GRID.points)[0]
    assert np.abs(gap).max() < 0.05
    assert with_it.trust(observations)[11] < 1e-4


@pytest.mark.parametrize("finite", [False, True])
def test_a_fit_is_a_stationary_point_of_the_bound_near_the_truth(finite):
    observations = some(60, finite=finite)
    domain = GRID if finite else BOX
    family = Prior(Scaled(Matern52(np.ones(1))), 0.1)
    model = StudentTNoise(family, 4.0, Fitting(marginal_likelihood, median_and_mad))
    cold = model(domain, observations)
    assert isinstance(cold, Arms) == finite
    sd = math.sqrt(cold.prior.noise)
    # The scale at which a Student-t with 4 degrees of freedom makes the true errors likeliest.
    error = observations.observed - 1.0 - np.sin(6.0 * observations.x[:, 0])
    scale = stats.t.fit(error, fdf=4.0, floc=0.0)[2]
    assert 0.8 * scale < sd < 1.25 * scale
    truth = 1.0 + np.sin(6.0 * GRID.points[:, 0])
    assert np.abs(cold.predict(GRID.points)[0] - truth).mean() < 0.12
    warm = model(domain, observations, model(domain, observations.until(55)))
    values = [
        bound(observations, p.prior, 4.0, settled(observations, p.prior, 4.0)) for p in (cold, warm)
    ]
    assert values[1] == pytest.approx(values[0], abs=1.0)


@pytest.mark.parametrize("domain", testing.example_domains(), ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2, 20])
def test_it_keeps_the_promises_of_a_posterior(domain, n):
    for absurd in (False, True):
        observations = testing.example_observations(domain, n, absurd=absurd)
        model = StudentTNoise(testing.example_prior(domain))
        testing.check_posterior(model(domain, observations), domain, observations)


def test_nothing_known_is_the_prior():
    observations = some(4)
    observations.observed[:] = [math.nan, math.inf, -math.inf, math.nan]
    posterior = StudentTNoise(PRIOR)(BOX, observations)
    assert_allclose(posterior.predict(GRID.points)[0], 0.8)
    assert posterior.distrusted == 4


@pytest.mark.parametrize("nu", [1.0, 4.0, 30.0])
def test_the_tail_probability_is_the_integral_and_at_its_ends_a_library_s(nu):
    r = np.array([0.0, 0.3, 1.0, 2.0, 5.0, 20.0])
    assert_allclose(
        tail_probability(r, np.zeros(6), np.full(6, 0.7), nu), 2.0 * stats.t.sf(r / 0.7, nu),
        atol=1e-3,
    )  # fmt: skip
    assert_allclose(
        tail_probability(r, np.full(6, 0.7), np.full(6, 1e-9), nu), 2.0 * stats.norm.sf(r / 0.7),
        atol=1e-3,
    )  # fmt: skip
    for residual in (0.5, 2.0, 6.0):

        def density(f, residual=residual):
            outside = stats.t.sf((residual - f) / 0.4, nu) + stats.t.cdf((-residual - f) / 0.4, nu)
            return stats.norm.pdf(f, 0.0, 1.3) * outside

        expected = integrate.quad(density, -13.0, 13.0, limit=200)[0]
        found = tail_probability(np.array([residual]), np.array([1.3]), np.array([0.4]), nu)
        assert found[0] == pytest.approx(expected, abs=1e-3)
    assert tail_probability(np.array([np.inf]), np.ones(1), np.ones(1), nu)[0] == 0.0


def test_degrees_of_freedom_are_checked():
    with pytest.raises(ValueError, match="finite and > 0"):
        StudentTNoise(PRIOR, 0.0)
