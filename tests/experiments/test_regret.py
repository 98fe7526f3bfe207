import math

import numpy as np
import pytest

from stoic.adversaries import Adversary, Gaussian, Replace, Unlimited
from stoic.environment import Environment
from stoic.experiments import regret
from stoic.experiments.figure import Cell
from stoic.experiments.methods import RandomSearch
from stoic.problems import hosaki
from stoic.simulate import run


def trace(seed):
    problem = hosaki()
    lies = Adversary(Replace({2: math.nan}), Unlimited())
    environment = Environment(problem, Gaussian(1.0), lies, seed)
    learner = RandomSearch(problem.domain, seed)
    return run(learner, environment, 4, initial=3, recommend=True)


def test_rows_say_what_the_trace_says():
    one = trace(0)
    rows = regret.steps(Cell("p", "m", 0), one)
    assert [row.round for row in rows] == [0, 0, 0, 1, 2, 3, 4]
    assert [row.corrupted for row in rows] == [False] * 4 + [True] + [False] * 2
    assert math.isnan(rows[4].observed)
    np.testing.assert_array_equal([[*map(float, row.x.split())] for row in rows], one.executed)
    np.testing.assert_allclose([row.cumulative_regret for row in rows], one.cumulative_regret)
    assert {row.inference_regret for row in rows} == {one.inference_regret}


def test_trials_are_collected_by_panel_and_method():
    rows = [
        row
        for method in ("m", "n")
        for seed in (4, 5, 6)
        for row in regret.steps(Cell("p", method, seed), trace(seed))
    ]
    by_run = regret.runs(rows)
    assert list(by_run) == [("p", "m"), ("p", "n")]
    expected = np.array([trace(seed).cumulative_regret for seed in (4, 5, 6)])
    np.testing.assert_allclose(by_run["p", "n"].cumulative, expected)
    np.testing.assert_allclose(by_run["p", "m"].final, expected[:, -1])


def test_estimate_by_hand():
    estimate = regret.Estimate.of(np.array([1.0, 2.0, 6.0]))
    assert estimate.mean == 3.0
    assert estimate.error == pytest.approx(math.sqrt(7.0 / 3.0))  # variance (4 + 1 + 9) / 2 = 7
    assert math.isnan(regret.Estimate.of(np.array([2.0])).error)
    assert str(regret.Estimate.of(np.array([2.0]))) == "2"


def test_comparison_is_paired():
    ours = regret.Run(np.array([[0.0, 1.0], [0.0, 11.0]]), np.zeros(2))
    theirs = regret.Run(np.array([[0.0, 3.0], [0.0, 13.0]]), np.zeros(2))
    measured = regret.comparison(ours, theirs)
    assert measured["mean"] == 6.0
    assert measured["standard_error"] == pytest.approx(5.0)
    assert measured["reference_mean"] == 8.0
    assert measured["paired_difference"] == -2.0
    assert measured["paired_standard_error"] == 0.0
    assert measured["trials_with_less_regret"] == 2.0


def test_comparison_is_on_the_seeds_of_both():
    ours = regret.Run(np.array([[1.0], [2.0], [9.0]]), np.array([0.1, 0.2, 0.9]), (3, 4, 5))
    theirs = regret.Run(np.array([[7.0], [2.0], [4.0]]), np.array([0.7, 0.3, 0.4]), (8, 4, 3))
    measured = regret.comparison(ours, theirs)
    assert measured["trials"] == 2.0
    assert measured["mean"] == 1.5
    assert measured["reference_mean"] == 3.0
    assert measured["paired_standard_error"] == pytest.approx(1.5)  # of -3 and 0
    inference = regret.inference_comparison(ours, theirs)
    assert inference["paired_difference"] == pytest.approx(-0.2)  # of -0.3 and -0.1
    assert inference["trials_with_less_regret"] == 2.0


def test_a_table_counts_the_trials_of_each_method():
    def rows(method, seeds):
        return [r for seed in seeds for r in regret.steps(Cell("p", method, seed), trace(seed))]

    table = regret.table([*rows("m", (0, 1, 2)), *rows("n", (2,))], "m")
    assert [row[:3] for row in table.rows] == [("p", "m", "3"), ("p", "n", "1")]
    assert table.rows[1][4] == "0"  # the same runs, on the seed of both
