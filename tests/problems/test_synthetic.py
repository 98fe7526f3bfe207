import numpy as np
import pytest
from scipy.optimize import minimize

from stoic.domains import Box, Finite
from stoic.problems import SMOOTH, Problem, forrester, forrester_negative


@pytest.mark.parametrize("make", SMOOTH, ids=lambda make: make.__name__)
def test_stated_maximum_is_the_maximum(make):
    problem = make()
    x, best = problem.optimum.x, problem.optimum.value
    assert problem.value(x[None])[0] == pytest.approx(best, rel=1e-9)
    rng = np.random.default_rng(1)
    points = problem.domain.spread(4096, rng)
    assert problem.value(points).max() <= best + 1e-9
    bounds = list(zip(problem.domain.lower, problem.domain.upper, strict=True))
    starts = points[np.argsort(-problem.value(points))[:3]]
    for start in [*starts, x]:
        climbed = minimize(lambda u: -problem.value(u[None])[0], start, bounds=bounds)
        assert -climbed.fun <= best + 1e-8 * (1 + abs(best))


@pytest.mark.parametrize("make", SMOOTH, ids=lambda make: make.__name__)
def test_maximiser_is_unique(make):
    problem = make()
    points = problem.domain.spread(8192, np.random.default_rng(2))
    gap = np.abs(points - problem.optimum.x) / problem.domain.widths
    elsewhere = problem.value(points[gap.max(axis=1) > 0.1])
    spread = problem.optimum.value - np.median(problem.value(points))
    assert problem.optimum.value - elsewhere.max() > 0.005 * spread


def test_the_ten_are_varied():
    problems = [make() for make in SMOOTH]
    assert len(problems) == 10
    assert len({problem.name for problem in problems}) == 10
    assert {problem.domain.dim for problem in problems} == {1, 2, 3}
    unit = [p for p in problems if np.all(p.domain.lower == 0) and np.all(p.domain.upper == 1)]
    assert len(unit) < 5
    assert all(isinstance(problem, Problem) for problem in problems)


def test_forrester_by_hand():
    f = forrester()
    # (6/3 - 2)^2 = 0; (6 - 2)^2 sin(8) = 16 sin 8
    np.testing.assert_allclose(f.value(np.array([[1 / 3], [1.0]])), [0.0, 16 * np.sin(8.0)])
    x = np.linspace(0, 1, 7)[:, None]
    np.testing.assert_array_equal(forrester_negative().value(x), -f.value(x))
    assert forrester_negative().optimum.x[0] == pytest.approx(0.757, abs=5e-4)


@pytest.mark.parametrize("make", SMOOTH, ids=lambda make: make.__name__)
def test_rows_are_independent_and_arguments_untouched(make):
    problem = make()
    x = problem.domain.spread(16, np.random.default_rng(3))
    before = x.copy()
    values = problem.value(x)
    assert values.shape == (16,)
    np.testing.assert_array_equal(x, before)
    order = np.random.default_rng(4).permutation(16)
    np.testing.assert_allclose(problem.value(x[order]), values[order], rtol=1e-13)


def test_on_a_grid_the_optimum_is_a_row():
    problem = forrester_negative().on_grid(11)
    assert isinstance(problem.domain, Finite)
    assert len(problem.domain) == 11
    np.testing.assert_allclose(problem.optimum.x, [0.8])  # of 0, 0.1, ..., 1
    assert problem.optimum.value == problem.value(problem.domain.points).max()


def test_on_given_points_ties_go_to_the_lowest_row():
    problem = forrester()
    flat = Finite(np.array([[0.2], [1 / 3], [0.5]]))
    values = problem.on(flat)
    assert values.optimum.x[0] == flat.points[np.argmax(problem.value(flat.points)), 0]


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match=r"forrester takes points of shape \(m, 1\)"):
        forrester().value(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="forrester takes points"):
        forrester().value(np.zeros(3))
    with pytest.raises(ValueError, match="already on a finite domain"):
        forrester().on_grid(5).on_grid(5)


def test_branin_scaling_is_not_the_unit_cube():
    domain = next(make for make in SMOOTH if make.__name__ == "branin_tilted")().domain
    assert isinstance(domain, Box)
    np.testing.assert_array_equal(domain.lower, [-5, 0])
