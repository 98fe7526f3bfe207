import numpy as np
import pytest
from scipy.optimize import minimize

from stoic.problems import Problem, polynomial


def literal(x, y):
    """Term by term, as it is printed."""
    return (
        -2 * x**6 + 12.2 * x**5 - 21.2 * x**4 + 6.4 * x**3 + 4.7 * x**2 - 6.2 * x
        - y**6 + 11 * y**5 - 43.3 * y**4 + 74.8 * y**3 - 56.9 * y**2 + 10 * y
        + 4.1 * x * y + 0.1 * x**2 * y**2 - 0.4 * x * y**2 - 0.4 * x**2 * y
    )  # fmt: skip


def test_it_is_the_printed_formula():
    problem = polynomial()
    assert isinstance(problem, Problem)
    points = problem.domain.spread(500, np.random.default_rng(0))
    expected = [literal(x, y) for x, y in points.tolist()]
    np.testing.assert_allclose(problem.value(points), expected, rtol=1e-12, atol=1e-9)


def test_its_maximum_is_the_stated_one():
    problem = polynomial()
    x, best = problem.optimum.x, problem.optimum.value
    assert problem.value(x[None])[0] == pytest.approx(best, rel=1e-9)
    points = problem.domain.spread(2**14, np.random.default_rng(1))
    assert problem.value(points).max() <= best
    bounds = list(zip(problem.domain.lower, problem.domain.upper, strict=True))
    for start in [x, *points[np.argsort(-problem.value(points))[:3]]]:
        climbed = minimize(lambda u: -problem.value(u[None])[0], start, bounds=bounds)
        assert -climbed.fun <= best + 1e-9


def test_near_its_peak_it_is_low_and_elsewhere_it_is_broad():
    problem = polynomial().on_grid(100)
    points = problem.domain.points
    f = problem.value(points)
    near_the_peak = np.linalg.norm(points - polynomial().optimum.x, axis=1) < 0.5
    assert f[near_the_peak].min() == pytest.approx(-22.0, abs=0.5)
    elsewhere = np.linalg.norm(points - [-0.195, 0.285], axis=1) < 0.5
    assert f[elsewhere].min() > -4.4
