"""Functions near the kernel's space, and the least distance to it."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from stoic import Box, Finite
from stoic.kernels import RBF, Matern12, Matern32, Scaled
from stoic.problems import (
    Approximated,
    Bump,
    Needle,
    Problem,
    Signs,
    Tabulated,
    gaussian_draw,
    kernel_sum,
    nearest,
    perturbed,
)

LINE = Finite(np.linspace(-3.0, -2.0, 41))
GRID = Box([5.0, -1.0], [6.0, 0.0]).grid(6)
KERNEL = RBF(0.2)


@pytest.mark.parametrize("domain", [LINE, GRID], ids=["line", "grid"])
@pytest.mark.parametrize("m", [Bump(0.3), Needle(0.3), Signs(5)], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("error", [0.0, 0.05, 0.4])
def test_the_error_is_the_largest_difference_to_a_function_of_known_norm(domain, m, error):
    near = kernel_sum(domain, KERNEL, 3, terms=8)
    problem = perturbed(near, error, m)
    assert isinstance(problem, Problem)
    values = problem.value(domain.points)
    g = near.value(domain.points)
    assert problem.error == np.abs(values - g).max()
    assert problem.error == pytest.approx(error, abs=1e-15)
    assert problem.norm == near.norm
    assert problem.optimum.value == values.max()
    np.testing.assert_array_equal(problem.near, g)
    with pytest.raises(ValueError, match="read-only"):
        problem.near[0] = 1.0


def changes(perturbation, domain=LINE):
    g = Tabulated("g", domain, kernel_sum(domain, KERNEL, 3, terms=8).value(domain.points))
    away = np.linalg.norm(domain.points - g.optimum.x, axis=1)
    return perturbation(g), away


def test_a_bump_is_down_in_the_middle_and_up_around_it():
    m, away = changes(Bump(0.31))
    assert set(m[away < 0.15]) == {-1.0}
    assert set(m[(away > 0.16) & (away < 0.3)]) == {1.0}
    assert set(m[away > 0.32]) == {0.0}


def test_a_needle_is_the_best_point_and_its_neighbours_are_pushed_down():
    m, away = changes(Needle(0.31))
    assert m[away == 0.0].tolist() == [1.0]
    assert set(m[(away > 0.0) & (away < 0.3)]) == {-1.0}
    assert set(m[away > 0.32]) == {0.0}


def test_signs_are_random_and_repeatable():
    m, _ = changes(Signs(1))
    assert set(m) == {-1.0, 1.0}
    np.testing.assert_array_equal(m, changes(Signs(1))[0])
    assert not np.array_equal(m, changes(Signs(2))[0])


@pytest.mark.parametrize("error", [-0.1, math.inf, math.nan])
def test_an_error_is_a_number(error):
    with pytest.raises(ValueError, match="at least 0"):
        perturbed(kernel_sum(LINE, KERNEL, 0), error, Signs(0))


def test_a_perturbation_is_at_most_one():
    near = kernel_sum(LINE, KERNEL, 0)
    for m in (np.full(41, 1.1), np.full(41, math.nan), np.zeros(3)):
        with pytest.raises(ValueError, match="from -1 to 1"):
            perturbed(near, 0.1, lambda g, m=m: m)


def rough(seed, domain=LINE):
    return gaussian_draw(domain, Matern12(0.3), seed)


@pytest.mark.parametrize("domain", [LINE, GRID], ids=["line", "grid"])
@pytest.mark.parametrize("kernel", [Matern32(0.3), Scaled(RBF(0.2), 2.0)], ids=["matern", "rbf"])
@pytest.mark.parametrize("norm", [0.3, 1.0, 4.0])
def test_the_least_error_is_known_from_both_sides(domain, kernel, norm):
    for seed in range(3):
        f = rough(seed, domain)
        found = nearest(f, kernel, norm)
        assert found.norm == norm
        assert found.error == np.abs(f.values - found.near).max()
        assert found.error_at_least <= found.error * (1.0 + 1e-12)
        assert found.error_at_least >= found.error * (1.0 - 1e-5)
        # It is in the space: its own minimum-norm interpolant is no longer than the bound.
        K = kernel(domain.points, domain.points)
        square = found.near @ np.linalg.lstsq(K, found.near, rcond=1e-13)[0]
        assert math.sqrt(square) <= norm * (1.0 + 1e-4)


def test_the_least_error_is_what_another_solver_finds():
    domain = Finite(np.linspace(-3.0, -2.0, 6))
    for seed in range(5):
        f = rough(seed, domain)
        K = Matern32(0.3)(domain.points, domain.points)
        L = np.linalg.cholesky(K)
        for norm in (0.5, 1.0):
            constraints = [
                {"type": "ineq", "fun": lambda v, L=L, f=f: v[-1] - (f.values - L @ v[:-1])},
                {"type": "ineq", "fun": lambda v, L=L, f=f: v[-1] + (f.values - L @ v[:-1])},
                {"type": "ineq", "fun": lambda v, norm=norm: norm**2 - v[:-1] @ v[:-1]},
            ]
            start = np.append(np.zeros(6), np.abs(f.values).max())
            other = minimize(
                lambda v: v[-1], start, constraints=constraints, method="SLSQP",
                options={"ftol": 1e-12, "maxiter": 500},
            )  # fmt: skip
            found = nearest(f, Matern32(0.3), norm)
            assert found.error == pytest.approx(other.fun, rel=1e-5, abs=1e-7)


def test_the_lower_bound_holds_for_every_function_of_that_norm():
    """By the worst of many random ones, and by linear programming over a polytope inside."""
    f, rng = rough(2), np.random.default_rng(0)
    s, U = np.linalg.eigh(Matern32(0.3)(LINE.points, LINE.points))
    A = U * np.sqrt(np.maximum(s, 0.0))
    found = nearest(f, Matern32(0.3), 1.5)
    for _ in range(200):
        z = rng.standard_normal(41)
        z *= 1.5 / np.linalg.norm(z)
        assert np.abs(f.values - A @ z).max() >= found.error_at_least
    # min t, |f - A z| <= t, |z|_1 <= B: a subset of the ball.
    n = 41
    ones = np.ones((n, 1))
    upper = np.block([
        [-A, A, -ones],
        [A, -A, -ones],
        [np.ones((1, 2 * n)), np.zeros((1, 1))],
    ])  # fmt: skip
    limit = np.concatenate([-f.values, f.values, [1.5]])
    inside = linprog(np.append(np.zeros(2 * n), 1.0), upper, limit)
    assert found.error_at_least <= found.error <= inside.fun + 1e-9


def test_more_norm_is_less_error_and_enough_is_none():
    f = rough(1)
    errors = [nearest(f, Matern12(0.3), norm).error for norm in (0.1, 0.5, 1.0, 3.0)]
    assert errors == sorted(errors, reverse=True)
    K = Matern12(0.3)(LINE.points, LINE.points)
    own = math.sqrt(f.values @ np.linalg.solve(K, f.values))
    assert nearest(f, Matern12(0.3), 1.001 * own).error < 1e-6
    assert nearest(f, Matern12(0.3), 0.9 * own).error_at_least > 1e-3


def test_the_scale_of_f_and_norm_is_the_scale_of_the_error():
    f = rough(4)
    large = Tabulated("large", LINE, 1e4 * f.values)
    small, big = nearest(f, KERNEL, 1.0), nearest(large, KERNEL, 1e4)
    assert big.error == pytest.approx(1e4 * small.error, rel=1e-6)
    assert big.error_at_least == pytest.approx(1e4 * small.error_at_least, rel=1e-6)


def test_what_is_too_much_to_ask_for_is_certified_all_the_same():
    """A huge norm in a space of smooth functions: the bounds part, and both are true."""
    found = nearest(rough(0), RBF(0.3), 1e6)
    assert 0.0 < found.error_at_least <= found.error < np.abs(rough(0).values).max()


@pytest.mark.parametrize("norm", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_on_a_norm_is_positive(norm):
    with pytest.raises(ValueError, match="positive"):
        nearest(rough(0), KERNEL, norm)


def test_an_approximation_has_a_value_for_each_point():
    for near in (np.zeros(3), np.full(41, math.nan)):
        with pytest.raises(ValueError, match="finite value for each of its 41"):
            Approximated(rough(0), near, 1.0)
