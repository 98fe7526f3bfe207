"""Learning curves: exact on small ones, bounded under lies, and calibrated on drawn families."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stoic.curves import Curve, FinishedCurves


def finished(values, sign=1.0):
    curves = [Curve.of(dict(enumerate(row)), sign) for row in values]
    return FinishedCurves(curves, sign * np.array([row[-1] for row in values]))


def test_a_curve_is_sorted_signed_and_without_nan():
    curve = Curve.of({5: 2.0, 1: math.nan, 3: math.inf, 2: 1.0}, -1.0)
    np.testing.assert_array_equal(curve.steps, [2, 3, 5])
    np.testing.assert_array_equal(curve.values, [-1.0, -math.inf, -2.0])
    assert curve.smoothed(2) == -1.0
    assert curve.smoothed(5) == curve.smoothed(100) == -2.0  # the median of -1, -inf and -2
    assert curve.reaches(2.5)
    assert not curve.reaches(1.5)
    assert not curve.reaches(6)
    assert not Curve.of({}).reaches(0)


def test_a_stopped_run_gains_what_the_finished_ones_gained():
    runs = finished([[a, a + 1.0, a + 2.0, a + 3.0, a + 9.0] for a in range(6)])
    found = runs.predict(Curve.of({0: 2.0, 1: 3.0, 2: 4.0}))
    assert found.value == pytest.approx(2.0 + 9.0)
    assert found.noise == pytest.approx(0.0, abs=1e-12)  # all gain the same
    below = runs.predict(Curve.of({0: -5.0, 1: -4.0, 2: -3.0}))
    assert below.value == pytest.approx(4.0)
    assert below.bound  # worse than all: perhaps it gains nothing
    assert not found.bound


def test_what_the_gain_depends_on_is_an_error():
    # twice as much to gain from twice as far below: the slope of the gain is -1
    runs = finished([[-float(a), -float(a), 0.0] for a in range(1, 7)])
    found = runs.predict(Curve.of({0: -5.0, 1: -5.0}))
    assert found.value == pytest.approx(-5.0 + 3.5)
    assert math.sqrt(found.noise) >= 1.5  # and it ends at 0


def test_too_few_finished_runs_or_no_number_say_nothing():
    runs = finished([[float(a), a + 1.0, a + 2.0] for a in range(4)])
    assert runs.predict(Curve.of({0: 1.0})) is None
    five = finished([[float(a), a + 1.0, a + 2.0] for a in range(5)])
    assert five.predict(Curve.of({0: 1.0})) is not None
    for nothing in ({}, {0: math.nan}, {0: math.inf}, {7: 1.0}):
        assert five.predict(Curve.of(nothing)) is None


@pytest.mark.parametrize("lie", [-1e300, -10.0, 10.0, 1e300, math.inf, -math.inf, math.nan])
def test_one_lie_of_any_size_moves_a_prediction_by_little(lie):
    rng = np.random.default_rng(0)
    t = np.arange(1, 21)
    values = -(rng.random((12, 1)) + t**-0.7) + 0.01 * rng.standard_normal((12, 20))
    stopped = dict(enumerate(-0.5 - t[:9] ** -0.7 + 0.01 * rng.standard_normal(9)))
    honest = finished(values).predict(Curve.of(stopped))
    for step in range(6, 9):  # in the stopped run
        found = finished(values).predict(Curve.of(stopped | {step: lie}))
        assert abs(found.value - honest.value) < 0.15
        assert found.noise < 0.1
    for row in range(12):  # in a finished one, its final value among them
        for step in (7, 8, 19):
            lying = values.copy()
            lying[row, step] = lie
            if not math.isnan(lying[row, -1]):
                found = finished(lying).predict(Curve.of(stopped))
                assert abs(found.value - honest.value) < 0.05
                assert found.noise < 0.1


@pytest.mark.parametrize("lies", [0.0, 0.05])
def test_errors_are_as_large_as_it_says(lies):
    """At least 85 % within two deviations; 93 to 99 % measured on 200 families."""
    rng, inside = np.random.default_rng(1), []
    t = np.arange(1, 28)
    for _ in range(30):
        u = rng.random((40, 2))
        true = -((u[:, :1] - 0.3) ** 2 + t ** -(0.4 + 1.2 * u[:, 1:]))
        told = true + 0.01 * rng.standard_normal(true.shape)
        wrong = rng.random(true.shape) < lies
        told = np.where(wrong, told + rng.choice([-100.0, 1.0], true.shape), told)
        best = np.argsort(-told[:, 5])
        runs = finished(told[best[:20]])
        for i in best[20:]:
            found = runs.predict(Curve.of(dict(enumerate(told[i, : rng.integers(3, 10)]))))
            above = true[i, -1] - found.value
            far = 2.0 * math.sqrt(found.noise)
            inside.append(above < far if found.bound else abs(above) < far)
    assert np.mean(inside) > 0.85
