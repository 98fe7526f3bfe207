"""The figure of constrained problems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.contest import constraints
from stoic.experiments.contest.constraints import PROBLEMS, SCENES, Outcome, Settings
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.figure import Cell

OPTIMA = {  # by SLSQP
    "Gardner": (0.78539816, 0.20887265),
    "Gramacy": (0.19512269, 0.40466537),
    "Hartmann 6": (0.2016895, 0.15001069, 0.47687398, 0.27533243, 0.31165161, 0.65730053),
    "welded beam": (0.008174684, 0.340453389, 0.902689300, 0.010679816),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_is_feasible_and_no_neighbour_is_better(name):
    problem, x = PROBLEMS[name], np.array(OPTIMA[name])
    value, *values = problem.formula(x)
    assert value == pytest.approx(problem.best, rel=1e-5)
    assert max(np.array(values) / problem.limits) <= 1e-4
    assert len(values) == len(problem.limits)
    steps = 1e-3 * np.random.default_rng(0).standard_normal((2000, problem.dim))
    for u in np.clip(x + steps, 0.0, 1.0):
        near, *limits = problem.formula(u)
        assert near >= problem.best - 1e-6 or max(limits) > 0.0


@pytest.mark.parametrize("scene", SCENES)
def test_a_study_has_a_row_for_each_recommendation(scene):
    settings = Settings(rounds=12)
    panel = scene + BETWEEN + "Gramacy"
    (own,) = constraints.run(settings, Cell(panel, DEFAULT, 0))
    assert own.feasible == (own.score < 1.0)
    assert 0.0 <= own.stated <= 1.0
    for method in ("random", "TPE"):
        rows = constraints.run(settings, Cell(panel, method, 0))
        assert [row.method for row in rows] == [method, method + EXPLAINED]
        assert rows[0].stated is None
        assert rows[0].tried == rows[1].tried > 0
    assert constraints.run(settings, Cell(panel, "random", 0)) == constraints.run(
        settings, Cell(panel, "random", 0)
    )


def rows_of(ours, theirs, feasible=True):
    """Rows of studies of one problem, with these scores."""
    return [
        Outcome(scene + BETWEEN + "Gramacy", method, seed, score, feasible, 0.9, 5)
        for scene in SCENES
        for method, score in ((DEFAULT, ours), ("TPE", theirs))
        for seed in range(4)
    ]


def test_claims_compare_with_the_best_peer():
    settings = replace(Settings(), problems=("Gramacy",), methods=(DEFAULT, "TPE"), trials=4)
    good = constraints.claims(settings, rows_of(0.01, 0.1))
    assert [claim.holds for claim in good] == [True] * 6
    bad = constraints.claims(settings, rows_of(0.1, 0.1))
    assert [claim.holds for claim in bad] == [True, True, True, True, False, True]
    assert bad[0].measured["ratio"] == pytest.approx(1.0)
    table = constraints.table(settings, rows_of(0.01, 0.1))
    assert len(table.rows) == 6
    assert constraints.plot(settings, rows_of(0.01, 0.1)).axes
