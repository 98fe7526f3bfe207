"""The bounded descent is SciPy's own, to the last bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import optimize

from stoic.descent import descend


def valley(u):
    value = float(100.0 * (u[1] - u[0] ** 2) ** 2 + (1.0 - u[0]) ** 2)
    by_second = 200.0 * (u[1] - u[0] ** 2)
    return value, np.array([-2.0 * u[0] * by_second - 2.0 * (1.0 - u[0]), by_second])


@pytest.mark.parametrize(("iterations", "gain"), [(3, 1e-10), (200, 1e-10), (200, 1e-2)])
@pytest.mark.parametrize("upper", [0.8, 2.0])  # with and without a bound at the minimum
def test_it_is_that_of_scipy(iterations, gain, upper):
    start, lower, upper = np.array([-1.2, 0.7]), np.full(2, -1.5), np.full(2, upper)
    x, value = descend(valley, start, lower, upper, iterations, gain, 1e-7)
    expected = optimize.minimize(
        valley,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(lower, upper),
        options={"maxiter": iterations, "ftol": gain, "gtol": 1e-7},
    )
    assert_array_equal(x, expected.x)
    assert value == expected.fun
    assert_array_equal(start, [-1.2, 0.7])  # as it was


def test_it_ends_at_the_minimum_in_the_box():
    x, value = descend(valley, np.array([0.0, 0.0]), np.zeros(2), np.full(2, 2.0), 200, 1e-12, 1e-9)
    assert x == pytest.approx([1.0, 1.0], abs=1e-5)
    assert value == pytest.approx(0.0, abs=1e-9)
