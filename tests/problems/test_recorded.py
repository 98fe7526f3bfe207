import math
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.spatial.distance import pdist

from stoic.adversaries.noise import Empirical
from stoic.domains import Finite
from stoic.kernels import RBF, Linear
from stoic.problems import Problem, Records, light_sensors, stocks

DATA = Path(__file__).parents[3] / "shared" / "data"


def given(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs {name}, which is not part of the project")
    return path


def check(records, arms):
    """What holds for all records, whatever is in them."""
    problem, noise = records.problem, Empirical(records.rewards)
    assert isinstance(problem, Problem)
    assert len(problem.domain) == len(records.labels) == arms
    assert problem.optimum.value == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(problem.values * records.unit, records.readings.mean(axis=0))
    # Of every arm, the mean reward is f: the regret is about what is rewarded.
    days = range(len(records.rewards))
    for arm in (0, arms - 1):
        mean = np.mean([noise.apply(problem.values[arm], day, arm) for day in days])
        assert mean == pytest.approx(problem.values[arm], rel=1e-12)
    x = problem.domain.points
    K = records.kernel(x, x)
    np.testing.assert_allclose(K.diagonal(), 1.0)
    assert np.linalg.eigvalsh(K)[0] > -1e-9
    # v bounds every arm, the mean over all arms does not.
    squares = (records.rewards**2).mean(axis=0)
    assert noise.moment(1.0, 1.0) == squares.max()
    return squares


def test_the_stocks_of_the_paper():
    records = stocks(given("stocks_2016_2019.csv"))
    squares = check(records, 29)
    assert records.rewards.shape == (823, 29)
    assert records.labels[0] == "AAPL"
    assert records.labels[int(records.problem.optimum.x[0])] == "BA"
    assert records.unit == pytest.approx(237.33, abs=0.01)
    assert squares.max() == pytest.approx(1.18, abs=0.005)
    assert squares.mean() == pytest.approx(0.256, abs=0.0005)
    assert np.count_nonzero(squares > squares.mean()) == 9
    x = records.problem.domain.points
    np.testing.assert_allclose(records.kernel(x, x), np.corrcoef(records.readings.T), atol=1e-12)


def test_the_stocks_that_come_with_skfolio(monkeypatch):
    pytest.importorskip("skfolio", reason="the extra `problems` is not installed")

    def refuse(*_):
        raise AssertionError("nothing may be downloaded")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    records = stocks()
    check(records, 20)
    assert len(records.rewards) == 823  # the same days


def test_light_sensors():
    records = light_sensors(given("light_sensors_2005.mat"))
    squares = check(records, 41)
    assert records.rewards.shape == (192, 41)
    assert squares.max() == pytest.approx(1.28, abs=0.005)
    assert squares.mean() == pytest.approx(0.422, abs=0.0005)
    assert np.count_nonzero(squares > squares.mean()) == 16
    x = records.problem.domain.points
    assert x.tolist() == [[float(row)] for row in range(41)]
    # Train readings, not the test readings that are rewards.
    assert not np.allclose(records.kernel(x, x), np.corrcoef(records.readings.T), atol=0.05)


def test_light_sensors_by_their_positions():
    path = given("light_sensors_2005.mat")
    by_row, by_position = light_sensors(path), light_sensors(path, inputs="positions")
    check(by_position, 41)
    np.testing.assert_array_equal(by_row.rewards, by_position.rewards)
    np.testing.assert_array_equal(by_row.problem.values, by_position.problem.values)
    points = by_position.problem.domain.points
    assert points.min(axis=0).tolist() == [0.0, 0.0]
    assert points.max(axis=0).tolist() == [1.0, 1.0]
    K = by_position.kernel(points, points)
    np.testing.assert_allclose(K[0, 1:], np.exp(-(pdist(points)[:40] ** 2) / 0.2))


def prices(tmp_path, text):
    path = tmp_path / "prices.csv"
    path.write_text(text)
    return path


def test_a_table_of_prices_by_hand(tmp_path):
    path = prices(
        tmp_path,
        "Date,A,B\n2016-01-01,99,99\n2016-01-04,1,30\n2017-05-05,3,10\n2019-04-11,99,99\n",
    )
    records = stocks(path)
    assert records.labels == ("A", "B")
    assert records.unit == 20.0
    assert records.readings.tolist() == [[1.0, 30.0], [3.0, 10.0]]
    assert records.problem.values.tolist() == [0.1, 1.0]
    assert records.problem.optimum.x.tolist() == [1.0]
    x = records.problem.domain.points
    np.testing.assert_allclose(records.kernel(x, x), [[1.0, -1.0], [-1.0, 1.0]])
    check(records, 2)


def sensors(tmp_path, **fields):
    rng = np.random.default_rng(0)
    data = {
        "train": {"sensordata": rng.uniform(1.0, 9.0, (30, 4))},
        "test": {"sensordata": rng.uniform(1.0, 9.0, (7, 4))},
        "coords": np.array([[20.0, 5.0], [30.0, 5.0], [20.0, 9.0], [25.0, 7.0]]),
    }
    path = tmp_path / "sensors.mat"
    savemat(path, {"data": {**data, **fields}})
    return path, {**data, **fields}


def test_a_table_of_readings_by_hand(tmp_path):
    path, data = sensors(tmp_path)
    records = light_sensors(path)
    check(records, 4)
    np.testing.assert_allclose(records.readings, data["test"]["sensordata"])
    x = records.problem.domain.points
    expected = np.corrcoef(data["train"]["sensordata"].T)
    np.testing.assert_allclose(records.kernel(x, x), expected, atol=1e-12)
    positions = light_sensors(path, inputs="positions").problem.domain.points
    assert positions.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs a column 'Date'"),
        ("Day,A\n2016-01-04,1\n", r"needs a column 'Date' and then tickers, got \['Day', 'A'\]"),
        ("Date,A\n2016-01-04,one\n", "line 2, is not a day and its prices"),
        ("Date,A\n2016-01-04,1\n04/01/16,1\n", "line 3, is not a day"),
        ("Date,A,B\n2016-01-04,1\n", "line 2, needs a finite price for each of 2 tickers, got 1"),
        ("Date,A\n2011-01-04,1\n", "no day from 2016-01-04 to 2019-04-10"),
        ("Date,A,B\n2016-01-04,1,2\n2016-01-05,1,3\n", r"never changes .* leave out \[0\]"),
        ("Date,A\n2016-01-04,nan\n2016-01-05,1\n", "line 2, needs a finite price"),
    ],
)
def test_other_tables_of_prices_are_refused(tmp_path, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        stocks(prices(tmp_path, text))


def test_other_files_of_readings_are_refused(tmp_path):
    path, _ = sensors(tmp_path, train=3.0)
    with pytest.raises(ValueError, match=r"needs a struct 'data' with train\.sensordata"):
        light_sensors(path)
    with pytest.raises(ValueError, match="needs a struct 'data'"):
        light_sensors(prices(tmp_path, "Date,A\n" * 100))
    path, _ = sensors(tmp_path, test={"sensordata": np.ones((3, 5))})
    with pytest.raises(ValueError, match=r"a column for each of 4 arms, got shape \(3, 5\)"):
        light_sensors(path)
    with pytest.raises(ValueError, match="'rows' or 'positions', got 'coords'"):
        light_sensors(path, inputs="coords")
    with pytest.raises(FileNotFoundError):
        light_sensors(tmp_path / "nothing.mat")


def test_records_without_a_positive_mean_are_refused():
    rows = Finite(np.arange(2.0))
    for readings in (-np.ones((3, 2)), np.full((3, 2), math.inf)):
        with pytest.raises(ValueError, match="positive largest mean"):
            Records("losses", rows, Linear(), readings, ("a", "b"))
    with pytest.raises(ValueError, match="a column for each of 2 arms"):
        Records("empty", rows, RBF(), np.ones((0, 2)), ("a", "b"))


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skfolio", None)
    monkeypatch.setitem(sys.modules, "skfolio.datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'stoic\[problems\]', or give the path"):
        stocks()
