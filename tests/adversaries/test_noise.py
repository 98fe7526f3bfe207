import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import levy_stable, norm, pareto, t

from stoic.adversaries import (
    Empirical,
    Gaussian,
    Pareto,
    Stable,
    StudentT,
    estimated_moment,
)
from stoic.domains import Finite
from stoic.environment import Environment
from stoic.problems import Tabulated, forrester

TABLE = np.array([[1.0, -2.0, 0.5], [3.0, 4.0, 0.5]])


def draws(noise, n, seed=0):
    return noise.draw(np.random.default_rng(seed), n)


def distance_in_distribution(sample, cdf):
    """Kolmogorov-Smirnov: sqrt(n) sup |F_n - F|; above 2.23 once in 10,000 samples."""
    u = np.sort(cdf(np.asarray(sample)))
    n = len(u)
    steps = np.arange(n + 1) / n
    return math.sqrt(n) * max(np.max(steps[1:] - u), np.max(u - steps[:-1]))


def absolute_moment(density, p):
    """E|z|^p of a symmetric density, by quadrature."""
    inner, _ = quad(lambda z: 2.0 * z**p * density(z), 0.0, 10.0, limit=200)
    outer, _ = quad(lambda z: 2.0 * z**p * density(z), 10.0, math.inf, limit=200)
    return inner + outer


def test_gaussian_has_its_standard_deviation():
    sample = draws(Gaussian(2.0), 40_000)
    # 4.5 standard errors each: a false alarm in about 10^5 seeds
    assert abs(sample.mean()) < 4.5 * 2.0 / 200
    assert abs(sample.std() - 2.0) < 4.5 * 2.0 / np.sqrt(2 * 40_000)


def test_no_noise_is_exact():
    noise = Gaussian(0.0)
    assert noise.apply(1.25, draws(noise, 1)[0]) == 1.25
    assert noise.moment(0.5, 2.0) == 2.0**1.5


@pytest.mark.parametrize(
    "noise", [Gaussian(1.0), StudentT(3.0), Pareto(), Empirical(np.arange(50.0)[:, None])]
)
def test_draws_in_blocks_continue_the_stream(noise):
    whole = draws(noise, 11, seed=5)
    rng = np.random.default_rng(5)
    parts = [noise.draw(rng, 5), noise.draw(rng, 6)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize(
    ("noise", "cdf"),
    [
        (StudentT(3.0, 0.7), t(3.0, scale=0.7).cdf),
        (Stable(2.0, 0.5), norm(scale=math.sqrt(2.0) * 0.5).cdf),
        (Stable(1.0, 3.0), t(1.0, scale=3.0).cdf),  # Cauchy
        (Pareto(2.0), pareto(2.0, scale=0.5).cdf),
        (Pareto(5.0), pareto(5.0, scale=0.8).cdf),
    ],
)
def test_draws_have_the_distribution(noise, cdf):
    assert distance_in_distribution(draws(noise, 20_000), cdf) < 2.23


def test_the_distance_tells_distributions_apart():
    assert distance_in_distribution(draws(StudentT(3.0), 20_000), norm.cdf) > 2.23


def test_stable_draws_have_the_characteristic_function():
    sample = draws(Stable(1.5, 2.0), 40_000)
    for u in (0.1, 0.3, 1.0):
        # cos is bounded by 1, so its mean has an error of at most 1 / 200; five of them
        assert abs(np.cos(u * sample).mean() - math.exp(-((2.0 * u) ** 1.5))) < 5.0 / 200


@pytest.mark.parametrize("noise", [StudentT(3.0), Stable(1.5), Gaussian(0.3)])
def test_additive_noise_is_added(noise):
    assert noise.apply(2.5, -1.25) == 1.25


def test_pareto_rewards_are_as_in_the_paper():
    # Pareto with shape 2 and scale f / 2: never below f / 2, with mean f.
    noise, f = Pareto(2.0), 0.8
    sample = np.array([noise.apply(f, draw) for draw in draws(noise, 20_000)])
    assert sample.min() >= 0.4
    assert sample.min() == pytest.approx(0.4, rel=1e-3)
    assert distance_in_distribution(sample, pareto(2.0, scale=f / 2.0).cdf) < 2.23
    assert Pareto(4.0).moment(1e-12, 3.0) == pytest.approx(3.0)  # the mean is f
    assert noise.apply(0.0, 7.0) == 0.0
    assert noise.apply(-0.8, 3.0) == -noise.apply(0.8, 3.0)


def test_records_are_read_by_day_and_arm():
    noise = Empirical(TABLE)
    read = [noise.apply(9.0, day, arm) for day, arm in [(0.0, 1), (1.0, 0), (1.0, 2)]]
    assert read == [-2, 3, 0.5]
    days = draws(noise, 4000)
    assert set(days) == {0.0, 1.0}
    assert abs(days.mean() - 0.5) < 4.5 * 0.5 / math.sqrt(4000)


def test_records_need_an_arm():
    noise = Empirical(TABLE)
    for arm, got in ((None, "a point of a Box"), (3, "arm 3")):
        with pytest.raises(ValueError, match=f"arms 0 to 2, got {got}"):
            noise.apply(1.0, 0.0, arm)


def test_an_environment_reads_the_entry_of_the_arm_that_was_played():
    problem = Tabulated("three", Finite(np.array([7.0, 5.0, 9.0])), TABLE.mean(axis=0))
    noise, seen = Empirical(TABLE), set()
    environment = Environment(problem, noise, seed=1)
    for _ in range(20):
        day = TABLE[:, 1].tolist().index(environment.step(np.array([5.0])).observed)
        seen.add(day)
    assert seen == {0, 1}
    outcomes = environment.initial(np.array([[7.0], [9.0]]))
    assert outcomes[0].observed in TABLE[:, 0]
    assert outcomes[1].observed == 0.5
    # written as an integer, it is the same arm
    assert environment.step(np.array([9])).observed == 0.5
    with pytest.raises(ValueError, match="got a point of a Box: use a finite domain"):
        Environment(forrester(), noise).step(np.array([0.3]))


def test_records_are_their_own():
    given = TABLE.copy()
    noise = Empirical(given)
    given[:] = 0.0
    np.testing.assert_array_equal(noise.rewards, TABLE)
    with pytest.raises(ValueError, match="read-only"):
        noise.rewards[0] = 0.0


def test_moments_of_the_heavy_tailed_experiments():
    # v = B^2 + 3 and v = B^1.9 / (2^0.9 0.1), [Chowdhury2019], section 6
    assert StudentT(3.0).moment(1.0, 1.5) == pytest.approx(1.5**2 + 3.0, rel=1e-12)
    assert Pareto(2.0).moment(0.9, 1.5) == pytest.approx(1.5**1.9 / (2.0**0.9 * 0.1), rel=1e-9)


@pytest.mark.parametrize("a", [0.1, 0.4, 0.9, 1.0])
def test_moments_of_the_noise_alone(a):
    p = 1.0 + a
    assert Gaussian(0.3).moment(a, 0.0) == pytest.approx(
        0.3**p * absolute_moment(norm.pdf, p), rel=1e-6
    )
    assert StudentT(3.5, 2.0).moment(a, 0.0) == pytest.approx(
        2.0**p * absolute_moment(t(3.5).pdf, p), rel=1e-6
    )
    # The density decays as z^-(1 + shape): infinite from a certain order on.
    literal, _ = quad(lambda z: z**p * 2.5 * 0.6**2.5 / z**3.5, 0.6, math.inf)
    assert Pareto(2.5).moment(a, 1.0) == pytest.approx(literal, rel=1e-6)


@pytest.mark.parametrize("p", [1.1, 1.3])
def test_moments_of_stable_noise(p):
    # scipy's density, and beyond it the leading term of its tail.
    alpha, end = 1.7, 60.0
    z = np.linspace(0.0, end, 601)
    inner = np.trapezoid(2.0 * z**p * levy_stable.pdf(z, alpha, 0.0), z)
    height = alpha * math.sin(math.pi * alpha / 2.0) * math.gamma(alpha) / math.pi
    outer = 2.0 * height * end ** (p - alpha) / (alpha - p)
    noise = Stable(alpha, 3.0)
    assert noise.moment(p - 1.0, 0.0) == pytest.approx(3.0**p * (inner + outer), rel=0.02)
    sd = math.sqrt(2.0) * 3.0
    assert Stable(2.0, 3.0).moment(p - 1.0, 0.7) == pytest.approx(Gaussian(sd).moment(p - 1.0, 0.7))


@pytest.mark.parametrize(
    ("noise", "density"),
    [(Gaussian(0.8), norm(scale=0.8).pdf), (StudentT(3.0, 0.6), t(3.0, scale=0.6).pdf)],
)
@pytest.mark.parametrize("a", [0.2, 0.7, 1.0])
def test_moments_bound_those_around_any_value(noise, density, a):
    for f in (-1.5, -0.4, 0.9, 1.5):
        integrand = lambda z, f=f: abs(f + z) ** (1.0 + a) * density(z)  # noqa: E731
        pieces = [(-math.inf, -10.0), (-10.0, -f), (-f, 10.0), (10.0, math.inf)]
        exact = sum(quad(integrand, *piece, limit=200)[0] for piece in pieces)
        assert exact <= noise.moment(a, abs(f)) * (1.0 + 1e-9)
        assert exact <= noise.moment(a, 1.5) * (1.0 + 1e-9)
        if a == 1.0:
            assert exact == pytest.approx(noise.moment(a, abs(f)), rel=1e-6)


def test_moments_that_do_not_exist_are_infinite():
    assert StudentT(1.5).moment(0.5, 1.0) == math.inf
    assert StudentT(1.5).moment(0.49, 1.0) < math.inf
    assert Stable(1.6).moment(0.6, 1.0) == math.inf
    assert Stable(1.6).moment(0.59, 1.0) < math.inf
    assert Pareto(2.0).moment(1.0, 1.0) == math.inf
    assert Stable(2.0).moment(1.0, 0.0) == pytest.approx(2.0)


def test_the_moment_of_records_is_that_of_the_worst_arm():
    noise = Empirical(TABLE)
    assert noise.moment(1.0, 0.0) == 10.0  # (4 + 16) / 2, not the mean of all squares
    assert noise.moment(0.5, 0.0) == pytest.approx((2.0**1.5 + 8.0) / 2.0)


def test_an_estimated_moment_by_hand():
    v, error = estimated_moment(np.array([1.0, -3.0, 2.0]), 1.0)
    assert v == pytest.approx(14.0 / 3.0)
    assert error == pytest.approx(np.std([1.0, 9.0, 4.0], ddof=1) / math.sqrt(3.0))


def test_an_estimated_moment_is_within_its_error():
    # Finite moments up to order 5, and 2 + 2a = 3: the central limit holds. 4.5 errors.
    noise, misses = StudentT(5.0, 0.5), []
    exact = noise.moment(0.5, 0.0)
    for seed in range(50):
        v, error = estimated_moment(draws(noise, 4000, seed), 0.5)
        misses.append(abs(v - exact) / error)
    assert max(misses) < 4.5
    # and it is not stated far too large: half of the misses are beyond 0.67
    assert 0.3 < np.median(misses) < 1.2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        *((lambda sd=sd: Gaussian(sd), "at least 0") for sd in (-1.0, math.inf, math.nan)),
        (lambda: StudentT(0.0), "StudentT needs a finite df above 0, got 0.0"),
        (lambda: StudentT(3.0, -1.0), "StudentT needs a finite scale above 0, got -1.0"),
        (lambda: Stable(2.1), r"alpha is in \(0, 2\], got 2.1"),
        (lambda: Stable(1.0, math.nan), "Stable needs a finite scale above 0, got nan"),
        (lambda: Pareto(1.0), "finite shape above 1, got 1.0"),
        (lambda: Empirical(np.ones(3)), r"finite table .* got shape \(3,\)"),
        (lambda: Empirical(np.array([[1.0, math.nan]])), "1 entries that are not finite"),
        (lambda: Gaussian(1.0).moment(0.0, 1.0), r"needs a in \(0, 1\]"),
        (lambda: Pareto().moment(0.5, math.inf), "finite bound >= 0, got a=0.5 and bound=inf"),
        (lambda: estimated_moment(np.ones(1), 1.0), r"at least two .* got shape \(1,\)"),
        (lambda: estimated_moment(np.array([1.0, math.inf]), 1.0), "1 entries that are not"),
        (lambda: estimated_moment(np.ones(5), 2.0), r"needs a in \(0, 1\]"),
    ],
)
def test_wrong_use_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
