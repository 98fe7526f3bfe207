import math

import numpy as np
import pytest

from stoic.adversaries import Adversary, Gaussian, Replace, Unlimited
from stoic.environment import Environment
from stoic.experiments import regret
from stoic.experiments.contender import BLACK, Contender
from stoic.experiments.figure import Cell
from stoic.experiments.methods import RandomSearch
from stoic.experiments.trials import grouped
from stoic.problems import hosaki
from stoic.refusal import RefusalError
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


def test_a_table_counts_the_trials_of_each_method():
    def rows(method, seeds):
        return [r for seed in seeds for r in regret.steps(Cell("p", method, seed), trace(seed))]

    table = regret.against("m")(None, [*rows("m", (0, 1, 2)), *rows("n", (2,))])
    assert [row[:3] for row in table.rows] == [("p", "m", "3"), ("p", "n", "1")]
    assert table.rows[1][4] == "0"  # the same runs, on the seed of both


def test_a_curve_that_is_found_by_no_name_is_not_left_out_silently():
    rows = [
        row
        for method in ("plain", "robust")
        for row in regret.steps(Cell("p", method, 0), trace(0))
    ]

    def drawn(*names):
        methods = [Contender(name, None, BLACK) for name in names]
        panel = regret.Panel("p", "two hills", 4, methods)
        return regret.picture(grouped(rows), [[panel]], (4.0, 3.0), ["regret"], 3)[1]

    assert len(drawn("plain", "robust").flat[0].get_legend_handles_labels()[1]) == 2
    drawn("plain")  # the other one is in no line of it
    drawn("plain", "robust", "not run")
    with pytest.raises(RefusalError, match="rows of plain, robust, and none of gp_ucb: a"):
        drawn("gp_ucb", "robust")
