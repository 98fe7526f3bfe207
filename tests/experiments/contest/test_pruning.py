"""The figure of the pruners: its curves, and a tiny one from end to end."""

from __future__ import annotations

import numpy as np
import pytest

from stoic.experiments.contest.pruning import FIGURE, PROBLEMS, Settings
from stoic.experiments.figure import Cell

TINY = Settings(trials=1, rounds=3, methods=("stoic, StoicPruner", "TPE, Median"))


def test_the_least_values_are_the_least():
    grid = np.linspace(0.0, 1.0, 41)
    for name in ("power laws", "crossing"):
        problem = PROBLEMS[name]
        finals = np.array([[problem.curve(x, y)[-1] for y in grid] for x in grid])
        assert finals.min() == pytest.approx(problem.least, abs=2e-3)
        assert problem.curve(0.5, 0.5).shape == (problem.epochs,)


def test_curves_cross():
    slow, fast = PROBLEMS["crossing"].curve(0.3, 0.15), PROBLEMS["crossing"].curve(0.3, 0.8)
    assert slow[3] > fast[3]
    assert slow[-1] < fast[-1]


def test_a_tiny_figure_from_end_to_end():
    settings = Settings(trials=1, rounds=3, methods=TINY.methods, problems=("crossing",))
    cells = FIGURE.cells(settings)
    assert len(cells) == 4
    rows = [row for cell in cells for row in FIGURE.run(settings, Cell(*cell))]
    for row in rows:
        assert 3 * 27 <= row.epochs < 4 * 27
        assert row.loss > -0.01
        assert 1 <= row.complete <= row.trials
    assert len(FIGURE.table(settings, rows).rows) == 4
    assert all(claim.measured for claim in FIGURE.judge(settings, rows))
    FIGURE.plot(settings, rows)
