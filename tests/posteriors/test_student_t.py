"""The Student-t process against the joint density of its results, written out."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special, stats

from stoic import linalg
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Truncation, Trust
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.models import GaussianProcess, StudentTProcess
from stoic.posteriors import Arms, Exact, Prior
from stoic.posteriors.fitting import Fitting, Problem, Rows
from stoic.posteriors.student_t import StudentTLikelihood

BOX = Box([2.0], [6.0])
GRID = BOX.grid(21)
PRIOR = Prior(Scaled(Matern52(0.8), 2.0), 0.3, 1.5)


def some(n, finite=False, told=False, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.integers(21, size=n)
    noise = rng.uniform(0.1, 0.5, n) if told else np.full(n, np.nan)
    return Observations(
        GRID.points[arms], 2.0 + 1.5 * rng.standard_normal(n), noise, arms if finite else None
    )


def covariance(x, noise):
    return PRIOR.kernel(x, x) + np.diag(noise)


def joint_log_density(z, A, nu):
    """Of a multivariate Student-t with *covariance* A, by another library's parametrisation."""
    return stats.multivariate_t.logpdf(z, shape=A * (nu - 2.0) / nu, df=nu)


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("nu", [2.5, 3.0, 8.0])
def test_the_posterior_is_the_ratio_of_joint_densities(nu, finite):
    observations = some(6, finite, told=True)
    domain = GRID if finite else BOX
    posterior = StudentTProcess(PRIOR, freedom=nu)(domain, observations)
    where = GRID.points[[7]]
    mean, std = (float(a[0]) for a in posterior.predict(where))
    # p(f | y) = p(f, y) / p(y) on a dense grid of f: f is the process without noise.
    x = np.concatenate([where, observations.x])
    joint = covariance(x, np.append(0.0, observations.noise))
    z = observations.observed - PRIOR.mean
    assert posterior.freedom == nu + 6
    scale = std * math.sqrt((posterior.freedom - 2.0) / posterior.freedom)
    f = np.linspace(mean - 8.0 * std, mean + 8.0 * std, 33)
    rows = np.column_stack([f - PRIOR.mean, np.tile(z, (33, 1))])
    literal = joint_log_density(rows, joint, nu) - joint_log_density(z, joint[1:, 1:], nu)
    claimed = stats.t.logpdf((f - mean) / scale, posterior.freedom) - math.log(scale)
    assert_allclose(claimed, literal, atol=1e-8)


def test_the_factor_is_the_closed_form_on_rows_and_on_arms():
    for told in (False, True):
        for n in (0, 1, 2, 30):
            rows, arms = some(n, told=told), some(n, True, told)
            exact = StudentTProcess(PRIOR)(BOX, rows)
            on_arms = StudentTProcess(PRIOR)(GRID, arms)
            assert isinstance(exact.gaussian, Exact)
            assert isinstance(on_arms.gaussian, Arms)
            z = rows.observed - PRIOR.mean
            beta = z @ np.linalg.solve(covariance(rows.x, rows.own_noise(PRIOR.noise)), z)
            factor = math.sqrt((1.0 + beta) / (1.0 + n))
            assert exact.factor == pytest.approx(factor, rel=1e-10)
            assert on_arms.factor == pytest.approx(factor, rel=1e-10)
            plain = GaussianProcess(PRIOR)(BOX, rows).predict(GRID.points)
            for posterior in (exact, on_arms):
                mean, std = posterior.predict(GRID.points)
                assert_allclose(mean, plain[0], atol=1e-9)
                assert_allclose(std, factor * plain[1], rtol=1e-8)
                assert_allclose(posterior.predict(GRID.points)[1], std, rtol=1e-8)


def named(part):
    """The same in every process, unlike the address of a function that a part holds."""
    return type(part).__name__


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("defence", [Trust(), Truncation(3.0), AdaptivePlateau()], ids=named)
def test_row_by_row_is_at_once(defence, finite):
    domain, observations = GRID if finite else BOX, some(24, finite)
    observations.observed[5] = math.nan
    observations.observed[11] = 40.0
    model = StudentTProcess(PRIOR, defence)
    posterior = None
    for n in (1, 2, 5, 6, 7, 20, 24):
        posterior = model(domain, observations.until(n), posterior)
    at_once = model(domain, observations)
    assert posterior.factor == pytest.approx(at_once.factor, rel=1e-9)
    assert posterior.freedom == at_once.freedom <= 26.0  # nan is not in the solve
    assert_allclose(posterior.predict(GRID.points), at_once.predict(GRID.points), rtol=1e-7)


def test_with_many_degrees_of_freedom_it_is_the_gaussian_process():
    observations = some(20)
    process = StudentTProcess(PRIOR, freedom=1e10)(BOX, observations)
    assert process.factor == pytest.approx(1.0, abs=1e-8)
    kernel = covariance(observations.x, np.full(20, PRIOR.noise))
    L = linalg.cholesky(kernel)
    value = StudentTLikelihood(1e9)(L, rows_of(observations)).value
    z = observations.observed - PRIOR.mean
    assert value == pytest.approx(stats.multivariate_normal.logpdf(z, cov=kernel), rel=1e-5)


def test_a_fantasy_holds_the_factor_which_is_its_expectation():
    observations = some(8)
    posterior = StudentTProcess(PRIOR)(BOX, observations)
    where = np.array([[3.3]])
    fantasy = posterior.fantasise(where)
    assert fantasy.factor == posterior.factor
    # E over the next result of (nu - 2 + beta') / (nu - 2 + n + 1): beta grows by the squared
    # innovation over the Gaussian variance, whose mean is the squared factor.
    beta = (posterior.factor**2) * (1.0 + 8) - 1.0
    assert (1.0 + beta + posterior.factor**2) / (1.0 + 9) == pytest.approx(posterior.factor**2)
    assert (fantasy.predict(where)[1] < 0.9 * posterior.predict(where)[1]).all()


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "grid"])
def test_numbers_whose_squares_are_none(domain):
    observations = some(5, domain.finite)
    for size in (1e6, 1e160, 1e300):
        observations.observed[3] = size
        posterior = StudentTProcess(PRIOR)(domain, observations)
        assert np.isfinite(posterior.predict(GRID.points)).all()
        assert posterior.factor >= min(1e-2 * size, 1e149)


def rows_of(observations):
    own, n = observations.own_noise(PRIOR.noise), len(observations)
    z = observations.observed - PRIOR.mean
    return Rows(z, z, own, own, np.ones(n))


@pytest.mark.parametrize("nu", [2.1, 3.0, 30.0])
def test_the_likelihood_is_the_joint_density(nu):
    observations = some(9, told=True)
    A = covariance(observations.x, observations.noise)
    value = StudentTLikelihood(nu)(linalg.cholesky(A), rows_of(observations)).value
    z = observations.observed - PRIOR.mean
    assert value == pytest.approx(joint_log_density(z, A, nu), rel=1e-10)
    # and, by hand, for one result: Gamma((nu+1)/2) / Gamma(nu/2) / sqrt((nu-2) pi A) (...)^-...
    one = observations.until(1)
    a, z0 = float(A[0, 0]), float(z[0])
    by_hand = (
        special.gammaln(0.5 * (nu + 1.0)) - special.gammaln(0.5 * nu)
        - 0.5 * math.log((nu - 2.0) * math.pi * a)
        - 0.5 * (nu + 1.0) * math.log(1.0 + z0**2 / a / (nu - 2.0))
    )  # fmt: skip
    value = StudentTLikelihood(nu)(np.array([[math.sqrt(a)]]), rows_of(one)).value
    assert value == pytest.approx(by_hand, rel=1e-12)


def test_the_derivatives_of_the_likelihood():
    observations, likelihood = some(7, told=True), StudentTLikelihood(3.0)
    A, rows = covariance(observations.x, observations.noise), rows_of(observations)
    sensitivity = likelihood(linalg.cholesky(A), rows)
    rng = np.random.default_rng(1)
    for _ in range(5):
        S = rng.standard_normal((7, 7))
        S, dz, h = S + S.T, rng.standard_normal(7), 1e-6

        def at(t, S=S, dz=dz):
            z = rows.values + t * dz
            moved = Rows(z, z, rows.noise, rows.own_noise, rows.weights)
            return likelihood(linalg.cholesky(A + t * S), moved).value

        numeric = (at(h) - at(-h)) / (2.0 * h)
        analytic = np.vdot(sensitivity.A, S) + sensitivity.values @ dz
        assert analytic == pytest.approx(numeric, rel=1e-5, abs=1e-7)
    assert not sensitivity.noise.any()
    assert not sensitivity.own_noise.any()


def test_the_gradient_in_hyperparameters():
    observations = some(15)
    problem = Problem(
        Fitting(StudentTLikelihood()), BOX, observations, Trust(), Scaled(Matern52(1.0)), 2.0, 1.5
    )
    rng = np.random.default_rng(0)
    for _ in range(4):
        u = problem.typical + 0.5 * rng.standard_normal(3)
        numeric = optimize.approx_fprime(u, lambda v: problem(v)[0], 1e-6)
        assert_allclose(problem(u)[1], numeric, rtol=1e-3, atol=1e-3)


def test_one_huge_result_changes_the_fit_less_than_the_gaussian_likelihood():
    # d value / d result stays bounded: (nu + n) a / (nu - 2 + beta) ~ 1 / z.
    observations = some(10)
    A = covariance(observations.x, np.full(10, PRIOR.noise))
    pulls = []
    for size in (1e1, 1e3, 1e5):
        z = observations.observed - PRIOR.mean
        z[4] = size
        rows = Rows(z, z, z, z, np.ones(10))
        pulls.append(abs(StudentTLikelihood()(linalg.cholesky(A), rows).values[4]))
    assert pulls[1] < 0.05 * pulls[0]
    assert pulls[2] < 0.05 * pulls[1]


@pytest.mark.parametrize("wrong", [2.0, 1.0, -3.0, math.inf, math.nan])
def test_degrees_of_freedom_are_checked(wrong):
    for make in (StudentTLikelihood, lambda nu: StudentTProcess(PRIOR, freedom=nu)):
        with pytest.raises(ValueError, match="finite and > 2"):
            make(wrong)
