from dataclasses import dataclass

import numpy as np
import pytest

from stoic.domains import Box
from stoic.problems import Problem
from stoic.problems.programs import Runs, mean_of_runs


@dataclass(frozen=True)
class Echo:
    """Its result is its seed, plus a little of where it was run."""

    name = "echo"
    domain = Box([0.0, 0.0], [1.0, 1.0])

    def run(self, x, seed):
        return seed + 0.25 * x[0]


HERE, THERE = np.array([[0.0, 0.5]]), np.array([[1.0, 0.5]])


def test_runs_are_a_problem_whose_maximum_nobody_knows():
    problem = Runs(Echo(), 0)
    assert isinstance(problem, Problem)
    assert problem.name == "echo"
    assert problem.domain is Echo.domain
    assert np.isnan(problem.optimum.value)
    assert np.isnan(problem.optimum.x).all()


def test_asked_twice_it_runs_twice():
    problem = Runs(Echo(), 0)
    first, second = problem.value(HERE), problem.value(HERE)
    assert first.shape == (1,)
    assert first != second
    assert len(set(problem.value(np.repeat(HERE, 5, axis=0)).tolist())) == 5


def test_the_kth_run_has_the_kth_seed_whatever_was_asked():
    one, another, other_seed = Runs(Echo(), 3), Runs(Echo(), 3), Runs(Echo(), 4)
    one.value(HERE)
    another.value(THERE)
    other_seed.value(HERE)
    mine, theirs, others = (r.value(HERE)[0] for r in (one, another, other_seed))
    assert mine == theirs
    assert mine != others


def test_several_rows_are_as_many_questions():
    together = Runs(Echo(), 1).value(np.concatenate([HERE, THERE]))
    apart = Runs(Echo(), 1)
    assert together.tolist() == [apart.value(HERE)[0], apart.value(THERE)[0]]


def test_fresh_runs_are_none_of_those_that_were_seen():
    seen = Runs(Echo(), 0).value(np.repeat(HERE, 50, axis=0))
    assert mean_of_runs(Echo(), HERE[0], 1, 0) not in seen
    fresh = [mean_of_runs(Echo(), HERE[0], n, 0) for n in (1, 2)]
    assert fresh == [mean_of_runs(Echo(), HERE[0], n, 0) for n in (1, 2)]
    assert fresh[0] != fresh[1]


def test_a_point_of_another_space_is_refused():
    with pytest.raises(ValueError, match="2"):
        Runs(Echo(), 0).value(np.zeros((1, 3)))
