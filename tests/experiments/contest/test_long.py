"""The problems of the figure of thousands of trials, and what it says of studies."""

from functools import partial

import numpy as np
import pytest

from stoic.experiments.contest.control import CONTROL, _engine, landing, way
from stoic.experiments.contest.long import FIGURE, Row, Settings, claims, table
from stoic.experiments.figure import Cell
from stoic.experiments.trials import marks
from stoic.problems.lunar_lander import episode, simulator

HEURISTIC = np.array([0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.0, 0.5, 0.05, 0.05])
SMALL = Settings(trials=2, rounds=30, problems=("hart6", "rover60"))


def test_a_way_costs_its_length_its_obstacles_and_its_ends():
    straight = np.linspace(0.05, 0.95, 30)
    diagonal = np.stack([straight, straight], axis=1)

    def value(points):
        return way((points.ravel() + 0.1) / 1.2)

    clear = 5.0 - 0.05 * 0.9 * np.sqrt(2.0)
    hit = clear - value(diagonal)
    assert 0.0 < hit < 20.0 * 0.9 * np.sqrt(2.0)  # some obstacles are on the diagonal
    assert hit / 20.0 == pytest.approx(0.37, abs=0.01)  # 0.37 of its length
    # Ends that are 0.02 off in both coordinates cost 0.4 each, if all else were the same
    moved = value(diagonal * [1.0, 1.0] + [0.0, 0.0]) - value(0.98 * (diagonal - 0.5) + 0.5)
    assert 0.2 < moved < 1.2
    outside = np.stack([straight, np.full(30, 1.1)], axis=1)
    ends = 10.0 * (1.05 + 0.15)
    assert value(outside) == pytest.approx(5.0 - 0.9 * 20.05 - ends, abs=0.02)
    assert np.isfinite(way(np.ones(60)))  # all points are one


def test_gymnasiums_own_controller_lands():
    gymnasium = pytest.importorskip("gymnasium.envs.box2d.lunar_lander")
    assert landing(HEURISTIC / 2.0) > 200.0
    # Its first episode is that of the library's function, action by action
    lander, total = simulator(), 0.0
    lander.continuous = False
    state, _ = lander.reset(seed=0)
    for _ in range(1000):
        state, reward, ended, _, _ = lander.step(gymnasium.heuristic(lander, state))
        total += float(reward)
        if ended:
            break
    assert episode(partial(_engine, HEURISTIC), 0) == pytest.approx(total)


def test_a_study_has_rows_for_each_mark_and_a_recommendation_at_the_end():
    for method in SMALL.methods:
        rows = FIGURE.run(SMALL, Cell("wrong / hart6", method, 3))
        assert [row.round for row in rows] == marks(30, 50)
        assert np.all(np.diff([row.tried for row in rows]) <= 0.0)
        assert rows[-1].recommended >= rows[-1].tried
        assert all(row.recommended is None for row in rows[:-1])


def test_claims_count_the_problems_on_which_the_default_is_best():
    def row(cell, tried):
        return Row(*cell, 30, tried, 2.0 * tried)

    cells = [Cell(f"{scene} / {name}", method, seed)
             for scene in ("clean", "wrong") for name in Settings().problems
             for method in ("default", "TPE") for seed in (0, 1)]  # fmt: skip
    worse = {"clean / hart6", "clean / ackley10", "clean / rover60", "wrong / levy20"}
    rows = [
        row(cell, 0.1 if cell.method == "TPE" else 0.2 if cell.panel in worse else 0.05)
        for cell in cells
    ]
    settings = Settings(trials=2, methods=("default", "TPE"))
    made = claims(settings, rows)
    assert [claim.holds for claim in made] == [False, False, True, True]
    assert [claim.measured["problems"] for claim in made] == [2.0, 2.0, 4.0, 4.0]
    assert made[1].measured["hart6, default"] == pytest.approx(0.4)
    assert len(table(settings, rows).rows) == 20
    assert len(FIGURE.plot(settings, rows).axes) == 10


def test_the_medians_are_those_of_random_points():
    points = np.random.default_rng(3).random((500, 60))
    rover = CONTROL["rover60"]
    assert np.median(rover.formula(points)) == pytest.approx(rover.median, abs=0.5)
