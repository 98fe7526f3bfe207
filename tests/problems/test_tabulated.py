import numpy as np
import pytest

from stoic.domains import Finite
from stoic.problems import Problem, Tabulated

POINTS = Finite(np.array([[3.0, 1.0], [4.0, -2.0], [5.0, 0.0]]))


def test_values_are_found_by_their_points():
    problem = Tabulated("three", POINTS, np.array([1.0, 7.0, 7.0]))
    assert isinstance(problem, Problem)
    assert problem.value(POINTS.points[[2, 0, 2]]).tolist() == [7.0, 1.0, 7.0]
    assert problem.optimum.value == 7.0
    assert problem.optimum.x.tolist() == [4.0, -2.0]  # ties: the lowest row
    with pytest.raises(ValueError, match="not one of the 3 points"):
        problem.value(np.array([[3.0, 1.5]]))


def test_a_table_is_its_own():
    given = np.array([1.0, 2.0, 3.0])
    problem = Tabulated("three", POINTS, given)
    given[0] = 9.0
    assert problem.value(POINTS.points)[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        problem.values[0] = 9.0
    problem.value(POINTS.points)[0] = 9.0
    assert problem.value(POINTS.points)[0] == 1.0


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 2.0, np.nan], [[1.0, 2.0, 3.0]]])
def test_tables_that_do_not_fit_are_refused(values):
    with pytest.raises(ValueError, match="one finite value for each of its 3 points"):
        Tabulated("three", POINTS, np.array(values))
