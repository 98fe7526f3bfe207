"""Parameters become points of a box, and points parameters, without loss."""

import math

import numpy as np
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from stoic.integrations.optuna.encoding import Encoding, as_written

SPACE = {
    "category": CategoricalDistribution(("a", None, 3.5)),
    "count": IntDistribution(2, 11, step=3),
    "layers": IntDistribution(1, 1000, log=True),
    "rate": FloatDistribution(1e-6, 1e2, log=True),
    "shift": FloatDistribution(-7.0, 5.0),
    "share": FloatDistribution(0.0, 1.0, step=0.25),
    "wide": IntDistribution(0, 10**6),
}


def random_parameters(rng):
    return {
        "category": SPACE["category"].choices[rng.integers(3)],
        "count": int(rng.choice([2, 5, 8, 11])),
        "layers": int(rng.integers(1, 1001)),
        "rate": float(10 ** rng.uniform(-6, 2)),
        "shift": float(rng.uniform(-7, 5)),
        "share": float(rng.choice([0.0, 0.25, 0.5, 0.75, 1.0])),
        "wide": int(rng.integers(0, 10**6 + 1)),
    }


def test_there_and_back():
    encoding, rng = Encoding(SPACE), np.random.default_rng(0)
    assert encoding.box.dim == 3 + 6
    for _ in range(200):
        parameters = random_parameters(rng)
        point = encoding.encode(parameters)
        assert np.all((point >= 0.0) & (point <= 1.0))
        back = encoding.decode(point)
        for name in ("category", "count", "layers", "share", "wide"):
            assert back[name] == parameters[name], name
        assert back["rate"] == pytest.approx(parameters["rate"], rel=1e-12)
        assert back["shift"] == pytest.approx(parameters["shift"], abs=1e-12)
        # A point of a lattice is its own nearest point.
        np.testing.assert_allclose(encoding.box.snap(point[None])[0], point, atol=1e-12)


def test_any_point_of_the_box_is_a_legal_setting():
    encoding, rng = Encoding(SPACE), np.random.default_rng(1)
    points = np.vstack([rng.random((200, 9)), np.zeros((1, 9)), np.ones((1, 9))])
    for point in points:
        parameters = encoding.decode(encoding.box.snap(point[None])[0])
        assert encoding.contains(parameters)
        assert type(parameters["count"]) is int
        assert type(parameters["rate"]) is float


def test_the_ends_of_a_range_are_reached_exactly():
    encoding = Encoding(SPACE)
    low, high = encoding.decode(np.zeros(9)), encoding.decode(np.ones(9))
    for name in ("count", "layers", "rate", "shift", "share", "wide"):
        assert low[name] == SPACE[name].low
        assert high[name] == SPACE[name].high


def test_a_sobol_sequence_covers_every_parameter_evenly():
    encoding = Encoding(SPACE)
    drawn = [encoding.sobol(i, seed=5) for i in range(128)]
    assert all(encoding.contains(parameters) for parameters in drawn)
    for name, values in (("category", ("a", None, 3.5)), ("count", (2, 5, 8, 11))):
        counts = [sum(p[name] == value for p in drawn) for value in values]
        assert max(counts) - min(counts) <= 2, name
    assert sum(p["rate"] < 1e-2 for p in drawn) == pytest.approx(64, abs=1)
    assert drawn[7] == encoding.sobol(7, seed=5)
    assert drawn[7] != encoding.sobol(7, seed=6)


def test_values_that_do_not_belong_are_told_apart():
    encoding = Encoding(SPACE)
    assert encoding.admits("category", None)
    assert not encoding.admits("category", "z")
    assert not encoding.admits("shift", 5.1)
    assert not encoding.admits("shift", "wide")
    assert not encoding.admits("unknown", 1)
    assert not encoding.contains({"shift": 0.0})


MAX = 1.7e308
EXTREME = {
    "wider than a float": FloatDistribution(-MAX, MAX),
    "in such steps": FloatDistribution(-1e308, 1e308, step=1e307),
    "one subnormal": FloatDistribution(0.0, 5e-324),
    "one float": FloatDistribution(1.0, math.nextafter(1.0, 2.0)),
    "one float, log": FloatDistribution(1e100, math.nextafter(1e100, math.inf), log=True),
    "all floats, log": FloatDistribution(5e-324, MAX, log=True),
    "large": IntDistribution(-(2**62), 2**62),
    "large, in steps": IntDistribution(-(2**200), 2**200, step=2**190),
    "large but near": IntDistribution(2**62, 2**62 + 10),
    "large but near, log": IntDistribution(2**62, 2**62 + 5, log=True),
}


@pytest.mark.parametrize("distribution", EXTREME.values(), ids=EXTREME)
def test_a_range_of_any_width_is_a_unit_interval(distribution):
    encoding = Encoding({"x": distribution})
    low, high = distribution.low, distribution.high
    assert encoding.encode({"x": low}) == [0.0]
    assert encoding.encode({"x": high}) == [1.0]
    drawn = [encoding.decode(np.array([u]))["x"] for u in np.linspace(0.0, 1.0, 41)]
    assert (drawn[0], drawn[-1]) == (low, high)
    assert drawn == sorted(drawn)
    for value in drawn:
        assert type(value) is type(low)
        assert low <= value <= high
        (u,) = encoding.encode({"x": value})
        assert encoding.decode(np.array([u]))["x"] == pytest.approx(
            value, rel=1e-9, abs=1e-9 * high
        )
    for number in range(8):
        assert low <= encoding.sobol(number, seed=1)["x"] <= high


def test_large_integers_next_to_each_other_are_told_apart():
    for log in (False, True):
        encoding = Encoding({"x": IntDistribution(2**62, 2**62 + 10, log=log)})
        values = [2**62 + k for k in range(11)]
        points = [encoding.encode({"x": value}) for value in values]
        assert len(np.unique(points)) == 11
        assert [encoding.decode(point)["x"] for point in points] == values


@pytest.mark.parametrize(
    ("distribution", "text"),
    [
        (FloatDistribution(0.0, 1.0), "float(0, 1)"),
        (FloatDistribution(1e-5, 0.1, log=True), "float(1e-05, 0.1, log)"),
        (IntDistribution(1, 1_000_001, step=10), "int(1, 1000001, step=10)"),
        (IntDistribution(0, 10**400), "int(0, 10000000000000000000...)"),
        (CategoricalDistribution(["a", 2]), "choice(a, 2)"),
        (CategoricalDistribution([True, False]), "[true, false]"),
        (CategoricalDistribution([1, "x", None]), '[1, "x", null]'),
        (CategoricalDistribution(["True", "null"]), 'choice("True", "null")'),
    ],
    ids=["float", "log", "step", "huge", "choice", "bool", "null", "texts"],
)
def test_a_range_is_written_as_users_do(distribution, text):
    assert as_written(distribution) == text
