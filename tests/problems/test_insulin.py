import importlib.util
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from stoic.problems import Problem, insulin
from stoic.problems.insulin import COLUMNS, DOSES, TARGET, glucose_after

TABLE = Path(__file__).parents[3] / "shared" / "data" / "postprandial_glucose.csv"
HEAD = ",".join(COLUMNS)
SIMULATOR = importlib.util.find_spec("simglucose") is not None


def written(tmp_path, rows, head=HEAD):
    path = tmp_path / "table.csv"
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows), ""]))
    return path


def rows_of(doses, meals, fasting=100.0):
    """Glucose rises by 1 with each gram and falls by 5 with each unit."""
    return [
        (fasting, meal, dose, fasting + meal - 5.0 * dose) for dose, meal in product(doses, meals)
    ]


def test_a_table_of_all_combinations(tmp_path):
    rows = rows_of((0, 3, 20), (10.0, 40.0)) + rows_of((0, 3), (10.0, 40.0), fasting=80.0)
    problem = insulin(written(tmp_path, reversed(rows)))
    assert isinstance(problem, Problem)
    # Meal by meal; 20 units are more than 15, and the others had less glucose before.
    assert problem.domain.points.tolist() == [[0, 10], [3, 10], [0, 40], [3, 40]]
    expected = [-abs(g - TARGET) for g in (110.0, 95.0, 140.0, 125.0)]
    np.testing.assert_allclose(problem.values, expected)
    assert problem.optimum.value == -2.5
    lower = insulin(written(tmp_path, rows), fasting=80.0)
    np.testing.assert_allclose(lower.values, [-abs(g - TARGET) for g in (90.0, 75.0, 120.0, 105.0)])


def test_the_table_of_the_paper():
    if not TABLE.exists():
        pytest.skip(f"needs {TABLE.name}, which is not part of the project")
    problem = insulin(TABLE)
    doses, meals = problem.domain.points.T
    assert sorted(set(doses.tolist())) == list(DOSES)
    assert (meals.min(), meals.max(), len(np.unique(meals))) == (0.0, 100.0, 36)
    assert problem.optimum.value > -0.1
    # Every announced meal has a dose that is near enough, and most doses are not.
    for meal in np.unique(meals[(meals >= 20.0) & (meals <= 80.0)]):
        of_meal = problem.values[meals == meal]
        assert of_meal.max() > -5.0
        assert np.mean(of_meal < -10.0) > 0.5


@pytest.mark.parametrize(
    ("rows", "head", "message"),
    [
        (rows_of((0, 3), (10.0,)), "a,b,c,d", r"needs the columns fasting_glucose_mg_dl, .*got"),
        ([(100, 10, 0, "high")], HEAD, r"line 2, needs four numbers"),
        ([(100, 10, 0)], HEAD, r"line 2, needs four numbers"),
        ([(100, 10, 0, 90), (100, 10, 1, "nan")], HEAD, r"line 3, has a number that is not finite"),
        ([(100, 10, 0, 90), (100, 10, 0, 91)], HEAD, r"line 3, gives 0 units with 10 g another"),
        (rows_of((0, 3), (10.0,), 80.0), HEAD, r"no row with a fasting glucose of 100 mg/dl"),
        (
            rows_of((0, 3), (10.0, 40.0))[1:],
            HEAD,
            r"lacks 1 of them: 0 units with 10 g is one",
        ),
    ],
)
def test_tables_that_are_none(rows, head, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        insulin(written(tmp_path, rows, head))


def test_the_same_result_twice_is_one(tmp_path):
    rows = rows_of((0, 3), (10.0,))
    assert len(insulin(written(tmp_path, rows + rows)).domain) == 2


@pytest.mark.skipif(SIMULATOR, reason="simglucose is installed")
def test_a_missing_simulator_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r"stoic\[insulin\].*environment of its own.*path of a"):
        insulin()


@pytest.mark.skipif(not SIMULATOR, reason="simglucose is not installed: it needs an environment")
def test_the_simulated_glucose():
    fasting = glucose_after(0.0, 0.0)
    assert fasting == pytest.approx(147.1, abs=0.01)  # of adult#003, who is at rest
    fed, treated = glucose_after(0.0, 50.0), glucose_after(5.0, 50.0)
    assert fed > treated > 0.0
    assert fed > fasting
    assert glucose_after(5.0, 50.0) == treated
    assert glucose_after(5.0, 50.0, "adult#002") != treated
    with pytest.raises(ValueError, match="no patient 'nobody'"):
        glucose_after(1.0, 10.0, "nobody")


@pytest.mark.parametrize("wrong", [(-1.0, 10.0), (1.0, np.nan), (np.inf, 10.0)])
def test_impossible_doses_and_meals(wrong):
    with pytest.raises(ValueError, match="finite numbers >= 0"):
        glucose_after(*wrong)
