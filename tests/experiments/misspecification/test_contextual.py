"""The figure of contextual balancing: its functions, its runs, and claims that can fail."""

from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.figure import Cell
from stoic.experiments.misspecification.contextual import (
    ALL,
    FIGURE,
    OWN,
    TURNS,
    Row,
    Settings,
    claims,
    run,
    table,
    taking_turns,
)

SMALL = Settings(errors=(0.0, 0.2), trials=2, rounds=150, actions=12, side=7)


def test_f_is_within_eps_of_a_function_of_the_stated_norm():
    for seed in range(3):
        clean = SMALL.problem(0.0, seed)
        assert clean.error == 0.0
        assert np.ptp(clean.near) > 0.3
        for error in (0.05, 0.4):
            wrong = SMALL.problem(error, seed)
            assert 0.9 * error < wrong.error <= error + 1e-12
            np.testing.assert_array_equal(wrong.near, clean.near)
            assert 0.0 <= wrong.truth.values.min() <= wrong.truth.values.max() <= 1.0
        kernel, points = SMALL.prior.kernel, SMALL.domain.points
        K = kernel(points, points) + 1e-10 * np.eye(len(points))
        h = clean.near - 0.5
        # Interpolation on the grid has the least norm of all functions with these values.
        assert h @ np.linalg.solve(K, h) <= clean.norm**2 * (1.0 + 1e-6)


def test_a_master_of_one_learner_is_that_learner():
    one = replace(SMALL, learners=1)
    (master,), (learner,) = (run(one, Cell("0.2", name, 3)) for name in (OWN, SMALL.alone[0]))
    assert master.regret == learner.regret > 0.0
    assert (master.plays, master.kept, master.wronged) == ("150", "1", 0)
    assert learner.plays == "0"


def test_learners_of_a_master_are_those_that_play_alone():
    master, widest = SMALL.master(0.5), SMALL.gain**-0.5
    errors = [learner.confidence.error for learner in master.learners]
    assert errors == pytest.approx([widest, widest / 2, widest / 4])
    assert not master.everything
    assert SMALL.master(0.5, everything=True).everything


@pytest.mark.slow  # the information that 20,000 rounds gain
def test_the_formula_has_three_learners():
    full = Settings()
    assert np.ceil(1.0 + 0.5 * np.log2(full.rounds / full.gain**2)) == full.learners


def test_turns_are_taken_by_the_same_learners_and_nobody_is_dropped():
    (row,) = run(SMALL, Cell("0.2", TURNS, 3))
    assert (row.plays, row.kept, row.wronged) == ("50 50 50", "1 2 3", 0)
    master = SMALL.master(0.5)
    turns = taking_turns(SMALL.master(0.5))
    for one, other in zip(master.learners, turns.learners, strict=True):
        assert one.confidence == other.confidence
    for _ in range(600):  # the last of them earns nothing, the others all there is
        choice = turns.ask()
        turns.tell(choice.x, float(choice.notes["learner"] < 2), choice=choice)
    assert turns.plays.tolist() == [200, 200, 200]


def made(own, turns, first, second, third, wronged=0, scatter=0.01):
    """Rows with these regrets, for both eps; the second twice as much."""
    settings = replace(SMALL, rounds=1000)
    names = zip(settings.methods, (own, own, turns, first, second, third), strict=True)
    regrets = dict(names)
    rows = []
    for cell in FIGURE.cells(settings):
        factor = 1.0 if cell.panel == "0" else 2.0
        kept = "1 2" if wronged and cell.method == OWN else "1 2 3"
        chance = scatter * cell.seed * (cell.method in (OWN, ALL))
        regret = factor * regrets[cell.method] + chance
        rows.append(Row(*cell, 0.2, 0.5, 25.0, regret, "300 300 400", kept, wronged))
    return settings, rows


def holds(*regrets, **changes):
    return [claim.holds for claim in claims(*made(*regrets, **changes))]


def test_claims_can_hold_and_fail():
    #            turns, worst alone        wronged  linear     robust wins
    rest = [True] + [True] * 2 + [False]
    assert holds(30.0, 35.0, 40.0, 20.0, 10.5) == [True, True] * 4 + rest
    assert holds(37.0, 35.0, 40.0, 20.0, 10.5) == [False, True] * 4 + rest
    assert holds(37.0, 39.0, 35.0, 20.0, 10.5) == [True, False] * 4 + rest
    # Less by 7.5 and 22.5, but the differences scatter: their standard error is 7.5.
    assert holds(30.0, 45.0, 45.0, 20.0, 10.5, scatter=15.0)[:8] == [False, False, True, True] * 2
    assert holds(30.0, 35.0, 40.0, 20.0, 10.5, wronged=1)[8] is False
    # (R(0.2) - R(0)) / (0.2 * 1000 * 5) = 1.1
    assert holds(1100.0, 1e3, 1e3, 1e3, 1e3)[9:11] == [False, False]


def test_the_table_names_who_played():
    settings, rows = made(30.0, 35.0, 40.0, 20.0, 10.0)
    lines = {line[:2]: line[2:] for line in table(settings, rows).rows}
    assert len(lines) == 12
    assert lines["0", OWN][1:] == ("3.00", "300 300 400", "0")
    assert lines["0", TURNS][1:] == ("3.50", "300 300 400", "0")
    assert lines["0", SMALL.alone[2]][1:] == ("1.00", "", "")
    assert lines["0.2", ALL][0].startswith("60")
