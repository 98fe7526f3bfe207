"""The figure of several objectives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.contest import objectives
from stoic.experiments.contest.contenders import DEFAULT, EXPLAINED
from stoic.experiments.contest.objectives import PROBLEMS, SCENES, Outcome, Settings
from stoic.experiments.contest.scores import BETWEEN
from stoic.experiments.figure import Cell
from stoic.pareto import hypervolume


def front(name, n=400):
    """Points of the known front, shape (m, d)."""
    u = np.linspace(0.0, 1.0, n)
    if name in ("ZDT1", "ZDT2"):
        return np.column_stack([u, np.zeros((n, 3))])
    a, b = np.meshgrid(u[::19], u[::19])  # both ends
    return np.column_stack([a.ravel(), b.ravel(), np.full((a.size, 3), 0.5)])


@pytest.mark.parametrize(("name", "left"), [("ZDT1", 0.01), ("ZDT2", 0.01), ("DTLZ2", 0.25)])
def test_points_of_the_known_front_leave_next_to_nothing(name, left):
    problem = PROBLEMS[name]
    values = np.array([problem.formula(x) for x in front(name)])
    assert 0.0 < problem.missing(values) < left
    assert values.min(axis=0) == pytest.approx(problem.ideal, abs=1e-9)
    assert problem.missing(np.empty((0, len(problem.ideal)))) == 1.0
    assert problem.missing(np.array([problem.nadir]) * 2.0) == 1.0


def test_the_truss_has_the_published_ends():
    """Of the RE suite: ideal and nadir point of RE21."""
    problem = PROBLEMS["truss"]
    ends = [problem.formula(np.array(u)) for u in ([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0])]
    assert ends[0] == pytest.approx((problem.ideal[0], problem.nadir[1]), rel=1e-6)
    assert ends[1] == pytest.approx((problem.nadir[0], problem.ideal[1]), rel=1e-6)


@pytest.mark.parametrize("name", ["ZDT1", "ZDT2", "DTLZ2", "truss"])
def test_nothing_dominates_more_than_the_largest_volume(name):
    problem = PROBLEMS[name]
    values = np.array(
        [problem.formula(u) for u in np.random.default_rng(0).random((300, problem.dim))]
    )
    scaled = (np.array(problem.ideal) - values) / problem.units
    assert hypervolume(scaled, np.full(len(problem.ideal), -1.1)) < problem.volume
    assert 0.0 < problem.missing(values) < 1.0


@pytest.mark.parametrize("scene", SCENES)
def test_a_study_has_a_row_for_each_recommendation(scene):
    settings = Settings(rounds=12)
    panel = scene + BETWEEN + "ZDT2"
    (own,) = objectives.run(settings, Cell(panel, DEFAULT, 0))
    assert own.tried <= own.score <= 1.0
    assert own.points >= 1
    assert 0.0 <= own.covered <= 1.0
    rows = objectives.run(settings, Cell(panel, "random", 0))
    assert [row.method for row in rows] == ["random", "random" + EXPLAINED]
    assert rows[0].covered is None
    assert rows[0].tried == rows[1].tried <= min(row.score for row in rows)
    assert rows == objectives.run(settings, Cell(panel, "random", 0))


def rows_of(ours, theirs, covered=0.95):
    """Rows of studies of one problem, with these scores."""
    return [
        Outcome(scene + BETWEEN + "ZDT1", method, seed, score, score, 9, covered)
        for scene in SCENES
        for method, score in ((DEFAULT, ours), ("TPE", theirs))
        for seed in range(4)
    ]


def test_claims_compare_with_the_best_peer():
    settings = replace(Settings(), problems=("ZDT1",), methods=(DEFAULT, "TPE"), trials=4)
    assert [claim.holds for claim in objectives.claims(settings, rows_of(0.01, 0.1))] == [True] * 4
    bad = objectives.claims(settings, rows_of(0.1, 0.1, 0.5))
    assert [claim.holds for claim in bad] == [True, False, False, False]
    assert bad[0].measured["ratio"] == pytest.approx(1.0)
    assert len(objectives.table(settings, rows_of(0.01, 0.1)).rows) == 4
    assert objectives.plot(settings, rows_of(0.01, 0.1)).axes
