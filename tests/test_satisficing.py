import json
import math
import tracemalloc
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import literal_satisficing as literal
from stoic.distances import Distance, reach
from stoic.kernels import RBF
from stoic.problems import polynomial
from stoic.satisficing import (
    Balls,
    Certificate,
    certify,
    critical_radius,
    diameter,
    fragility,
    guaranteed,
    highest_worst,
    least_fragile,
    lenient_regret,
    most_robust,
    satisficing_regret,
    worst_value,
)

DISTANCES = {
    "euclidean": Distance(),
    "tolerances": Distance("cityblock", [2.0, 0.5]),
    "context": Distance(tolerance=[1.0, 0.0]),
    "kernel": Distance.of_kernel(RBF(np.array([1.5, 2.0]))),
}
POWERS = (1.0, 1.5, 7.0, math.inf)


def instance(seed):
    """Points, some on a grid and so with ties, and a function that is above and below 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    if seed % 2:
        points = rng.uniform(-30.0, -25.0, (n, 2))
        points[:, 1] = np.round(points[:, 1])
        f = rng.standard_normal(n)
    else:
        side = int(rng.integers(2, 7))
        axis = 0.1 * np.arange(side) + 7.0
        points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        f = np.round(rng.standard_normal(side**2) + rng.choice([-1.0, 1.0, 3.0]), 1)
    some = int(rng.integers(1, len(points) + 1))
    rows = np.sort(rng.choice(len(points), size=some, replace=False))
    return points, f, rows, rng


@pytest.mark.parametrize("name", DISTANCES)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_double_loops_agree(name, seed):
    points, f, rows, rng = instance(seed)
    distance = DISTANCES[name]
    table = distance(points, points)
    np.fill_diagonal(table, 0.0)  # rounding, in the kernel metric
    every, there = range(len(f)), table.tolist()
    threshold = float(rng.choice([0.0, float(np.median(f)), f.max() + 1.0]))
    for p in POWERS:
        kappa = literal.fragility(f, threshold, there, p)
        assert_allclose(fragility(f, threshold, points, distance, p=p), kappa, rtol=1e-9)
        for chosen, given_rows in ((every, None), (rows.tolist(), rows)):
            row, value = literal.first(kappa, min, chosen)
            spot = least_fragile(f, threshold, points, distance, given_rows, p=p)
            assert spot.value == pytest.approx(value, rel=1e-9)
            assert spot.row == row
    radii = literal.critical_radius(f, threshold, there)
    assert_allclose(critical_radius(f, threshold, points, distance), radii, rtol=1e-9)
    assert diameter(points, distance) == pytest.approx(table[np.isfinite(table)].max(), rel=1e-12)
    r = float(rng.choice([0.0, 0.1, 0.3, 2.0]))
    worst = literal.worst_value(f, reach(r), there)
    assert_allclose(worst_value(f, r, points, distance), worst)
    assert Balls.of(points, r, distance).worst(f).tolist() == list(worst)
    for chosen, given_rows in ((every, None), (rows.tolist(), rows)):
        row, value = literal.first(radii, max, chosen)
        spot = most_robust(f, threshold, points, distance, given_rows)
        assert min(spot.value, diameter(points, distance)) == pytest.approx(value, rel=1e-9)
        if spot.value < math.inf:  # else no row is nearer to what is not in reach than another
            assert spot.row == row
        found = highest_worst(f, r, points, distance, given_rows)
        assert found == literal.first(worst, max, chosen)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**31), name=st.sampled_from(sorted(DISTANCES)))
def test_fragility_of_infinite_power_is_the_inverse_of_the_radius(seed, name):
    points, f, rows, _ = instance(seed)
    distance, tau = DISTANCES[name], float(np.median(f))
    radius = critical_radius(f, tau, points, distance)
    kappa = fragility(f, tau, points, distance, p=math.inf)
    limited = (f >= tau) & (kappa > 0.0)
    assert_allclose(1.0 / kappa[limited], radius[limited], rtol=1e-12)
    one = least_fragile(f, tau, points, distance, rows, p=math.inf)
    two = most_robust(f, tau, points, distance, rows)
    assert one.row == two.row


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_what_a_fragility_promises_holds_and_no_smaller_one_does(seed):
    """Eq. (10): kappa is the least number for which it holds."""
    points, f, _, _ = instance(seed)
    tau, far = float(np.median(f)), Distance()(points, points)
    for p in (1.0, 3.0):
        kappa = fragility(f, tau, points, p=p)
        for x in np.flatnonzero((f >= tau) & (kappa > 0.0)):
            slack = 1e-9 * (1.0 + np.abs(f))
            assert (f >= tau - (kappa[x] * far[x]) ** p - slack).all()
            assert (f < tau - (0.99 * kappa[x] * far[x]) ** p).any()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), name=st.sampled_from(sorted(DISTANCES)))
def test_a_lower_function_is_more_fragile(seed, name):
    """Lemmas 3.2 and 3.4, which the certificates rest on."""
    points, f, _, rng = instance(seed)
    below, distance, tau = f - rng.exponential(0.3, len(f)), DISTANCES[name], 0.1
    for p in POWERS:
        truth = fragility(f, tau, points, distance, p=p)
        assert (fragility(below, tau, points, distance, p=p) >= truth).all()
    radius = critical_radius(f, tau, points, distance)
    assert (critical_radius(below, tau, points, distance) <= radius).all()


def on_the_grid():
    problem = polynomial().on_grid(100)
    points = problem.domain.points
    return points, problem.value(points)


@pytest.mark.long
def test_facts_about_the_polynomial():
    """To the digits printed in the project's specification of it."""
    points, f = on_the_grid()
    best = int(np.argmax(f))
    assert round(f[best], 2) == 20.82
    assert_allclose(points[best], [2.823, 4.008], atol=5e-4)
    for radius, value in ((0.5, -4.333), (0.25, 13.01), (1.0, -11.01), (1.5, -24.75)):
        spot = highest_worst(f, radius, points)
        assert spot.value == pytest.approx(value, abs=5e-4 if radius == 0.5 else 5e-3)
        assert worst_value(f, radius, points).max() == spot.value
        if radius == 0.5:
            assert_allclose(points[spot.row], (-0.195, 0.285), atol=5.1e-4)
    two = most_robust(f, -10.0, points)
    assert round(two.value, 3) == 0.943
    assert_allclose(points[two.row], [0.224, 0.677], atol=5e-4)
    one = least_fragile(f, -10.0, points)
    assert round(one.value, 2) == 20.08
    assert_allclose(points[one.row], [0.727, 1.020], atol=5e-4)


def test_as_p_grows_rs_g_goes_from_rs_1_to_rs_2():
    """Proposition 4.1."""
    points, f = on_the_grid()
    found = [least_fragile(f, -10.0, points, p=p).row for p in (1.0, 2.0, 8.0, 50.0, math.inf)]
    assert found[0] == least_fragile(f, -10.0, points).row
    assert found[-2] == found[-1] == most_robust(f, -10.0, points).row
    assert len(set(found)) >= 4


def test_where_it_is_where_moves_lead_and_units_do_not_matter():
    points, f = on_the_grid()
    points, f = points[::7], f[::7]
    order = np.random.default_rng(0).permutation(len(f))
    for spot in (least_fragile, most_robust):
        row, value = spot(f, -10.0, points)
        shuffled = spot(f[order], -10.0, points[order])
        assert shuffled.value == pytest.approx(value, rel=1e-12)  # ties go to another row
        moved = spot(f + 3.0, -7.0, points + 100.0)
        assert moved.row == row
        scaled = spot(f, -10.0, points * [1.0, 60.0], Distance(tolerance=[1.0, 60.0]))
        assert scaled.row == row
        assert scaled.value == pytest.approx(value, rel=1e-9)


@pytest.mark.slow
def test_the_largest_domain_fits_in_memory():
    points = np.random.default_rng(3).uniform(size=(10_000, 2))
    f = np.sin(9.0 * points[:, 0]) + points[:, 1]
    tracemalloc.start()
    for distance in (Distance(), Distance(tolerance=[1.0, 0.0])):
        least_fragile(f, 0.5, points, distance)
        most_robust(f, 0.5, points, distance)
        highest_worst(f, 0.1, points, distance)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26  # of the 2**30 that are allowed


def test_lists_of_neighbours_are_short_or_none():
    points, f = on_the_grid()
    assert Balls.of(points, 1.0) is None
    assert_allclose(Balls.of(points, 0.1).worst(f), worst_value(f, 0.1, points))


def test_a_point_that_no_move_takes_elsewhere():
    points, context = np.array([[0.0, 1.0], [1.0, 2.0]]), Distance(tolerance=[1.0, 0.0])
    f = np.array([1.0, -5.0])
    assert_array_equal(fragility(f, 0.0, points, context), [-np.inf, np.inf])
    assert_array_equal(fragility(f, 0.0, points, context, p=2.0), [0.0, np.inf])
    assert most_robust(f, 0.0, points, context) == (0, np.inf)
    assert least_fragile(f, 0.0, points, context) == (0, -np.inf)


def test_two_points_at_one_place():
    """In a pseudometric: a move of length 0 must not lead below tau."""
    flat = Distance(lambda x, z: np.abs(np.subtract.outer(x[:, 0] // 1.0, z[:, 0] // 1.0)))
    points, f = np.array([[0.2], [0.7], [5.0]]), np.array([0.0, 1.0, 4.0])
    assert_allclose(fragility(f, 0.0, points, flat), [-0.8, -0.8, 0.0])
    f[0] = -1.0
    assert_array_equal(fragility(f, 0.0, points, flat), [np.inf, np.inf, 0.2])
    assert_array_equal(critical_radius(f, 0.0, points, flat), [-np.inf, 0.0, 5.0])
    assert most_robust(f[:2], 0.0, points[:2], flat) == (1, 0.0)


def test_what_is_guaranteed_falls_with_the_size_of_the_move():
    points, f = on_the_grid()
    row = 2823
    sizes, values = guaranteed(f, points, row)
    assert sizes[0] == 0.0
    assert values[0] == f[row]
    assert (np.diff(sizes) > 0.0).all()
    assert (np.diff(values) <= 0.0).all()
    assert values[-1] == f.min()
    for radius in (0.3, 0.5, 0.9428, 1.7):
        worst = worst_value(f, radius, points, rows=np.array([row]))[0]
        assert values[np.searchsorted(sizes, reach(radius), side="right") - 1] == worst
    # It falls below -10 where the critical radius says.
    assert sizes[np.argmax(values < -10.0)] == pytest.approx(0.942812, abs=1e-6)


def test_regrets():
    value = np.array([3.0, -1.0, 0.5, -4.0])
    assert_allclose(lenient_regret(value, 1.0), [0.0, 2.0, 2.5, 7.5])
    assert_allclose(satisficing_regret(value, 1.0, 2.0, 0.5), [0.0, 1.0, 1.0, 5.0])
    radii = np.array([0.0, 1.0, 0.25, 2.0])
    assert_allclose(satisficing_regret(value, 1.0, 2.0, radii), [0.0, 0.0, 0.0, 1.0])
    assert_allclose(satisficing_regret(value, 1.0, 2.0, radii, p=3.0), [0.0, 0.0, 0.375, 0.375])
    assert_allclose(satisficing_regret(value, 1.0, -3.0, 1.0), lenient_regret(value, 1.0))


def test_a_certificate_is_a_few_numbers_and_a_sentence():
    points = np.arange(10.0)[:, None]
    lower = np.array([5.0, 4.0, 3.0, 2.5, 2.0, 1.0, 0.5, -1.0, -9.0, -9.0])
    promise = certify(lower, 0.6, points, 3)
    assert promise.radius == 3.0  # row 6 is the nearest below
    assert promise.fragility == pytest.approx(9.6 / 5.0)
    numbers = {**asdict(promise), "reachable": True}
    assert Certificate.of(json.loads(json.dumps(numbers))) == promise
    for words in ("at least 0.9", "closer than 3 of here", "f >= 0.6 - 1.92 d"):
        assert words in promise.sentence(0.9)
    assert "nothing is promised: f may be below 0.6" in str(certify(lower, 0.6, points, 6))
    assert "however far" in str(certify(lower, -10.0, points, 3))
    assert "(0.62 d)^2" in str(certify(lower, 0.6, points, 3, p=2.0))
    assert "within 0.5 of here" in str(Certificate(-4.3339, 0.5, math.inf, closed=True))


def test_a_sentence_rounds_to_the_safe_side():
    said = str(Certificate(-1.0 / 3.0, 0.3199, 1.2301))
    assert "f >= -0.333334 closer than 0.319 of" in said
    assert "1.24 d" in said


@pytest.mark.parametrize("p", [0.5, -1.0, math.nan])
def test_a_power_below_one_is_refused(p):
    with pytest.raises(ValueError, match="a number >= 1"):
        least_fragile(np.zeros(2), 0.0, np.zeros((2, 1)), p=p)


@pytest.mark.parametrize("radius", [-0.1, math.nan, math.inf])
def test_a_radius_that_is_none_is_refused(radius):
    for call in (worst_value, highest_worst):
        with pytest.raises(ValueError, match="finite number >= 0"):
            call(np.zeros(2), radius, np.zeros((2, 1)))
