import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

import literal
from stoic import linalg
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Anchored, Plateau, Trust
from stoic.domains import Box
from stoic.kernels import (
    RBF,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    Product,
    Scaled,
    Sum,
)
from stoic.models import GaussianProcess
from stoic.posteriors import Exact, Prior
from stoic.posteriors.fitting import (
    NOISE_PRIOR,
    OBJECTIVES,
    VARIANCE_PRIOR,
    Fitting,
    Problem,
    Rows,
    bounded_leave_one_out,
    leave_one_out,
    lengthscale_prior,
    marginal_likelihood,
    weighted_leave_one_out,
)

BOX = Box([4.0, -3.0], [12.0, -1.0])


def some(n=14, seed=0, told=False, box=BOX):
    """Smooth results in units of 100, with two outliers of about 10 deviations and a duplicate."""
    rng = np.random.default_rng(seed)
    u = rng.random((n, box.dim))
    u[-1] = u[0]
    y = 700.0 + 100.0 * (np.sin(6.0 * u[:, 0]) + u[:, -1] + 0.1 * rng.standard_normal(n))
    y[2] += 900.0
    y[5] -= 500.0
    noise = np.full(n, np.nan)
    if told:
        noise[::3] = 50.0
    return Observations(box.lower + box.widths * u, y, noise)


KERNELS = (
    Scaled(RBF(np.ones(2))),
    Scaled(Matern12(1.0)),
    Scaled(Matern32(np.ones(2))),
    Scaled(Matern52(np.ones(2))),
    Scaled(Sum(Scaled(Matern52(1.0), 0.7), Linear(np.ones(2)))),
    Scaled(Product(RBF(np.ones(2)), Polynomial(2, 1.0, Linear(1.0)))),
)
DEFENCES = (
    Trust(),
    Plateau(150.0, 80.0, 700.0),
    Plateau(20.0, 1.5, 720.0, "noise"),
    AdaptivePlateau(1.0, 1.0, "scale"),
    AdaptivePlateau(0.5, 2.0, "noise"),
    AdaptivePlateau("quantile", 0.7, "scale"),
    Anchored(GaussianProcess(Prior(Scaled(Matern52(1.0)), 0.1), AdaptivePlateau()), 0.5, 0.5),
)


def settled(defence, observations, box=BOX):
    return defence.fit(box, observations)


def rows_of(prior, fitted_defence, observations):
    targets = fitted_defence(observations, prior)
    kept = np.isfinite(targets.noise)
    assert kept.any()
    K = prior.kernel(observations.x[kept], observations.x[kept])
    rows = Rows(
        observations.observed[kept] - prior.mean,
        targets.values[kept] - prior.mean,
        targets.noise[kept],
        observations.own_noise(prior.noise)[kept],
        np.sqrt(targets.trust[kept]),
    )
    return linalg.cholesky(K + np.diag(rows.noise)), rows, targets, kept


PRIOR = Prior(Scaled(Matern52(np.array([3.0, 1.0])), 90.0**2), 20.0**2, 710.0)


# The share of a row in the sum: the weight w of the plateau is the root of its trust.
@pytest.mark.parametrize(
    ("objective", "power"), [(weighted_leave_one_out, 0.5), (bounded_leave_one_out, 1.0)]
)
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("defence", DEFENCES, ids=[str(i) for i in range(7)])
def test_weighted_leave_one_out_equals_brute_force_refits(defence, told, objective, power):
    observations = some(told=told)
    L, rows, targets, kept = rows_of(PRIOR, settled(defence, observations), observations)
    own = observations.own_noise(PRIOR.noise)
    columns = observations.x, observations.observed, targets.values, targets.noise, own
    columns = (column[kept] for column in (*columns, targets.trust**power))
    slow = literal.weighted_leave_one_out(PRIOR.kernel, *columns, PRIOR.mean)
    assert_allclose(objective(L, rows).value, slow, rtol=1e-9)


@pytest.mark.parametrize("defence", DEFENCES[:3], ids=repr)
def test_plain_leave_one_out_equals_brute_force_refits(defence):
    observations = some(told=True)
    L, rows, targets, kept = rows_of(PRIOR, settled(defence, observations), observations)
    x, z, noise = observations.x[kept], targets.values[kept], targets.noise[kept]
    slow = 0.0
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        mean, covariance = literal.posterior(
            PRIOR.kernel, x[others], z[others], noise[others], x[[i]], PRIOR.mean
        )
        slow += literal.log_normal_pdf(z[i], mean[0], covariance[0, 0] + noise[i])
    assert_allclose(leave_one_out(L, rows).value, slow, rtol=1e-9)


@pytest.mark.parametrize("kernel", [RBF(np.array([3.0, 1.0])), Matern52(np.array([3.0, 1.0]))])
def test_the_marginal_likelihood_is_scikit_learns(kernel):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernels = gaussian_process.kernels
    scales = [3.0, 1.0]
    theirs = kernels.RBF(scales) if isinstance(kernel, RBF) else kernels.Matern(scales, nu=2.5)
    observations, prior = some(told=True), Prior(Scaled(kernel, 90.0**2), 400.0, 710.0)
    regressor = gaussian_process.GaussianProcessRegressor(
        kernels.ConstantKernel(90.0**2) * theirs,
        alpha=observations.own_noise(400.0),
        optimizer=None,
    ).fit(observations.x, observations.observed - 710.0)
    L, rows, _, _ = rows_of(prior, Trust(), observations)
    theirs = regressor.log_marginal_likelihood()
    assert_allclose(marginal_likelihood(L, rows).value, theirs, rtol=1e-10)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sensitivities_equal_finite_differences(objective):
    observations = some()
    _, rows, _, _ = rows_of(PRIOR, DEFENCES[1], observations)
    K = PRIOR.kernel(observations.x, observations.x)
    A = K + np.diag(rows.noise)
    fields = ("observed", "values", "noise", "own_noise", "weights")
    rng = np.random.default_rng(0)

    def value(dA, **changes):
        changed = {name: getattr(rows, name) + changes.get(name, 0.0) for name in fields}
        return objective(linalg.cholesky(A + dA), Rows(**changed)).value

    sensitivity = objective(linalg.cholesky(A), rows)
    h = 1e-2  # A is 400 and more: the formula is off by 1e-9 of itself, differences round to 1e-11
    for _ in range(3):
        direction = rng.standard_normal((len(A), len(A)))
        direction += direction.T
        slope = (value(h * direction) - value(-h * direction)) / (2 * h)
        assert_allclose(np.vdot(sensitivity.A, direction), slope, rtol=1e-5, atol=1e-9)
        for name in ("values", "noise", "own_noise"):
            step = h * rng.standard_normal(len(A))
            slope = value(0.0, **{name: step}) - value(0.0, **{name: -step})
            assert_allclose(
                2.0 * np.dot(getattr(sensitivity, name), step), slope, rtol=1e-5, atol=1e-11
            )


def problem_of(fitting, observations, fitted_defence, kernel, box=BOX):
    scale = fitting.scale(box, observations)
    return Problem(fitting, box, observations, fitted_defence, kernel, *scale)


def assert_gradient(problem, u, tolerance=2e-6):
    _, gradient = problem(u)
    for k in np.flatnonzero(problem.free):
        step = 5e-5 * np.eye(len(u))[k]
        slope = (problem(u + step)[0] - problem(u - step)[0]) / 1e-4
        assert abs(gradient[k] - slope) < tolerance * max(1.0, np.abs(gradient).max()), k


# Each defence and each kernel with one of the others; all pairs are slow.
PAIRS = [
    pytest.param(
        defence, kernel, id=f"{i}-{k}", marks=pytest.mark.slow if i != 3 and (i + k) % 6 else ()
    )
    for i, defence in enumerate(DEFENCES)
    for k, kernel in enumerate(KERNELS)
]


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(("defence", "kernel"), PAIRS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients_equal_finite_differences(objective, defence, kernel, told):
    observations = some(told=told)
    problem = problem_of(Fitting(objective), observations, settled(defence, observations), kernel)
    rng = np.random.default_rng(1)
    for start in problem.starts():
        assert_gradient(problem, start + 0.3 * rng.standard_normal(len(start)))


@pytest.mark.parametrize("duplicate", [False, True])
@pytest.mark.parametrize("kernel", [Matern12(np.ones(10)), Matern52(np.ones(10))], ids=repr)
def test_gradients_in_ten_dimensions(kernel, duplicate):
    # Beyond eight coordinates distances come from a matrix product; Matern 1/2 has a kink at 0.
    box = Box(np.arange(10.0), np.arange(10.0) + np.linspace(0.5, 8.0, 10))
    observations = some(25, box=box)
    if not duplicate:
        observations = observations.until(24)
    fitted_defence = settled(DEFENCES[3], observations, box)
    problem = problem_of(Fitting(), observations, fitted_defence, Scaled(kernel), box)
    assert_gradient(problem, problem.typical, 1e-5)


def test_a_fixed_amplitude_stays_at_one_squared_scale():
    observations = some(30)
    fitting = Fitting(amplitude=None)
    prior = fitting(BOX, observations, Trust(), Prior(Scaled(Matern52(np.ones(2))), 0.1))
    _, scale = fitting.scale(BOX, observations)
    assert_allclose(prior.kernel.variance, scale**2, rtol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_fit_is_a_stationary_point_and_better_than_its_starts(objective):
    observations = some(40)
    fitting = Fitting(objective, iterations=100)
    family = Prior(Scaled(Matern52(np.ones(2))), 0.1)
    fitted_defence = settled(DEFENCES[3], observations)
    problem = problem_of(fitting, observations, fitted_defence, family.kernel)
    u = problem.coordinates(fitting(BOX, observations, fitted_defence, family))
    value, gradient = problem(u)
    assert value <= min(problem(start)[0] for start in problem.starts())
    inside = (u > problem.bounds[:, 0] + 1e-9) & (u < problem.bounds[:, 1] - 1e-9)
    assert np.abs(gradient[inside]).max() < 0.05  # ftol 1e-6 of a value of order 100
    best = min(
        optimize.minimize(problem, start, jac=True, bounds=problem.bounds).fun
        for start in problem.starts()
    )
    assert value <= best + 0.01


def test_translating_and_rescaling_results_and_domain_changes_only_their_units():
    observations = some(30)
    far = Box(1e3 + 64.0 * BOX.lower, 1e3 + 64.0 * BOX.upper)
    moved = Observations(
        1e3 + 64.0 * observations.x, 5.0 + 1e-3 * observations.observed, observations.noise
    )
    family = Prior(Scaled(Matern52(np.ones(2))), 0.1)
    fitting = Fitting(iterations=100)
    here = fitting(BOX, observations, settled(DEFENCES[3], observations), family)
    there = fitting(far, moved, settled(DEFENCES[3], moved, far), family)
    assert_allclose(there.kernel.theta[1:], here.kernel.theta[1:] + np.log(64.0), atol=2e-3)
    assert_allclose(there.kernel.theta[0], here.kernel.theta[0] - 2 * np.log(1e3), atol=2e-3)
    assert_allclose(there.noise, 1e-6 * here.noise, rtol=5e-3)
    assert_allclose(there.mean, 5.0 + 1e-3 * here.mean, rtol=1e-12)


def test_told_noise_is_not_fitted_away():
    # All rows told: the free noise then only meets its own log-prior.
    observations = some(20)
    told = Observations(observations.x, observations.observed, np.full(20, 100.0))
    family = Prior(Scaled(Matern52(np.ones(2))), 0.1)
    fitting = Fitting(marginal_likelihood, iterations=100)
    prior = fitting(BOX, told, Trust(), family)
    _, scale = fitting.scale(BOX, told)
    # mode of a log-normal density: exp(mu - sigma^2)
    mode = np.exp(NOISE_PRIOR.mu - NOISE_PRIOR.sigma**2)
    assert_allclose(prior.noise / scale**2, mode, rtol=1e-2)


def test_noise_is_at_least_that_of_rounding_where_results_have_few_values():
    family = Prior(Scaled(Matern52(np.ones(2))), 0.1)
    plain, rounded = (Fitting(marginal_likelihood, step=each) for each in (0.0, None))
    observations = some(20)
    same = [fitting(BOX, observations, Trust(), family) for fitting in (plain, rounded)]
    assert_allclose(same[0].kernel.theta, same[1].kernel.theta, rtol=0.0)
    # 0 on one side and 1 on the other: without noise a steep slope explains them
    side = 3.0 * (observations.x[:, 0] > np.median(observations.x[:, 0]))
    few = Observations(observations.x, side, observations.noise)
    assert plain(BOX, few, Trust(), family).noise < 0.5 * 9.0 / 12.0
    found = rounded(BOX, few, Trust(), family)
    assert_allclose(found.noise, 9.0 / 12.0, rtol=1e-9)
    previous = Exact.condition(found, Trust(), few, Trust()(few, found))
    again = rounded(BOX, few, Trust(), family, previous)
    assert_allclose(again.noise, 9.0 / 12.0, rtol=1e-9)
    # Of some of the rows, which may be equal, the step of all is given
    given = Fitting(marginal_likelihood, step=3.0)(
        BOX, few.only(np.flatnonzero(side)), Trust(), family
    )
    assert given.noise > 0.999 * 9.0 / 12.0


def test_log_priors_are_the_log_normal_densities():
    stats = pytest.importorskip("scipy.stats")
    for prior in (lengthscale_prior(3), NOISE_PRIOR, VARIANCE_PRIOR):
        theta = np.linspace(-3.0, 2.0, 7)
        mine, slope = prior.log_density(theta)
        full = stats.lognorm(prior.sigma, scale=np.exp(prior.mu)).logpdf(np.exp(theta))
        assert np.ptp(full - mine) < 1e-12
        h = 1e-6
        numeric = (prior.log_density(theta + h)[0] - prior.log_density(theta - h)[0]) / (2 * h)
        assert_allclose(slope, numeric, rtol=1e-6)
    assert_allclose(lengthscale_prior(4).mu, np.sqrt(2.0) + np.log(4.0) / 2.0)
    assert_allclose(lengthscale_prior(4).sigma, np.sqrt(3.0))


@pytest.mark.parametrize("n", [0, 1])
def test_with_fewer_than_two_results_the_fit_is_the_typical_prior(n):
    observations = Observations(np.full((n, 2), 44.0), np.zeros(n), np.full(n, np.nan))
    box = Box([40.0, 40.0], [48.0, 48.0])
    kernel = Scaled(Matern52(np.ones(2)))
    prior = Fitting()(box, observations, Trust(), Prior(kernel, 0.1))
    scale = Fitting().scale(box, observations)
    problem = Problem(Fitting(), box, observations, Trust(), kernel, *scale)
    assert_allclose(problem.coordinates(prior), problem.typical, atol=1e-12)


def test_a_plateau_that_believes_nothing_still_gives_a_prior():
    observations = some()
    nowhere = Plateau(0.0, 1e-9, -1e6)
    targets = nowhere(observations, PRIOR)
    assert not np.isfinite(targets.noise).any()
    model = GaussianProcess(Prior(Scaled(Matern52(np.ones(2))), 0.1), nowhere, Fitting())
    posterior = model(BOX, observations)
    mean, std = posterior.predict(observations.x)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "observed",
    [
        [1e300, -1e300, 1.0],
        [1e300, -1e300, 1.0, 1e300, np.nan],
        [1e300, 1e300, 1e300],
        [1e-300, 2e-300, 5e-300],
        [0.0, 0.0, 0.0],
        [np.inf, -np.inf, 0.0],
        [np.nan, np.nan, np.nan],
        [1.0, 2.0, 1e160, 3.0],
    ],
)
def test_results_of_any_size_are_fitted_without_an_error(objective, observed):
    n = len(observed)
    x = BOX.lower + BOX.widths * np.random.default_rng(0).random((n, 2))
    observations = Observations(x, np.array(observed), np.full(n, np.nan))
    family = Prior(Scaled(Matern52(np.ones(2))), 0.1)
    for defence in (Trust(), AdaptivePlateau(), AdaptivePlateau(1.0, 1.0, "scale")):
        posterior = GaussianProcess(family, defence, Fitting(objective))(BOX, observations)
        assert np.isfinite(posterior.predict(x)).all()


def test_a_warm_start_finds_what_a_cold_one_does():
    observations = some(40)
    family = Prior(Scaled(Matern52(np.ones(2))), 0.1)
    fitting = Fitting()
    posterior = None
    for n in range(10, 41, 3):
        head = observations.until(n)
        fitted_defence = settled(DEFENCES[3], head)
        prior = fitting(BOX, head, fitted_defence, family, posterior)
        posterior = Exact.condition(prior, fitted_defence, head, fitted_defence(head, prior))
    fitted_defence = settled(DEFENCES[3], observations)
    problem = problem_of(fitting, observations, fitted_defence, family.kernel)
    cold = fitting(BOX, observations, fitted_defence, family)
    warm_value = problem(problem.coordinates(posterior.prior))[0]
    cold_value = problem(problem.coordinates(cold))[0]
    assert warm_value <= cold_value + 0.5
