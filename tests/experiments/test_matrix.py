"""The threat matrix: its worlds, how regret is made relative, and the tables made of it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stoic.adversaries import cube_root
from stoic.experiments.figure import Cell
from stoic.experiments.matrix import figure
from stoic.experiments.matrix.columns import COLUMNS
from stoic.experiments.matrix.figure import FIGURE, Row, Settings, claims, markdown, matrix, run
from stoic.experiments.matrix.worlds import BUDGET, ERROR, GAMES, THREATS, game, worst_within
from stoic.recipes import RECIPES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/figures/matrix.json"

# --- columns and rows -----------------------------------------------------------------------------


def test_every_recipe_is_a_column():
    assert {recipe.__name__ for recipe in RECIPES} | {"random search"} == set(COLUMNS)
    for column in COLUMNS.values():
        assert set(column.made_for) <= set(THREATS)


@pytest.mark.parametrize("method", COLUMNS)
def test_every_column_plays_on_every_game_and_is_told_what_it_is_made_for(method):
    for name in GAMES:
        player = COLUMNS[method].build(game(name, 0), 300, 5)
        assert len(player.ask_batch(1)) == 1
    told = {
        "rgp_ucb": lambda one: one.confidence.budget == BUDGET,
        "rgp_pe": lambda one: one.confidence.budget == BUDGET,
        "ec_gp_ucb": lambda one: one.confidence.error == ERROR,
        "stable_opt": lambda one: one.policy.radius == game(name, 0).radius,
        "advers_2": lambda one: one.policy.threshold == worst_within(game(name, 0)).max(),
    }
    if method in told:
        assert told[method](player)


@pytest.mark.parametrize("name", GAMES)
def test_games_are_of_the_same_scale_and_within_reach_of_their_priors(name):
    for seed in range(3):
        one = game(name, seed)
        assert 0.7 < one.problem.values.std() < 1.3
        sd = np.sqrt(one.prior.kernel.diagonal(one.problem.domain.points).max())
        assert np.abs(one.problem.values).max() < 4.0 * sd


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("threat", THREATS)
def test_worlds_do_what_they_say(threat, name):
    world = THREATS[threat].world(name, 1, 300)
    clean = THREATS["clean"].world(name, 1, 300)
    problem, truth = world.game.problem, clean.game.problem
    assert np.abs(problem.values - truth.values).max() == pytest.approx(THREATS[threat].error)
    changed, told = 0, []
    best = int(np.argmax(problem.values))
    far = int(np.argmax(np.linalg.norm(problem.domain.points - problem.optimum.x, axis=1)))
    for t in range(300):  # the best point and the farthest one in turn
        outcome = world.environment.step(problem.domain.points[(best, far)[t % 2]])
        changed += outcome.corrupted
        if outcome.corrupted:
            told.append(outcome.observed)
        assert world.best - outcome.value >= 0.0
    if "outliers" in threat:
        size = float(threat.split()[1])
        assert told == [size] * cube_root(300)
    elif "C = 50" in threat:
        assert 5 < changed < 300
        assert world.environment.spent.magnitude == pytest.approx(BUDGET, rel=1e-9)
    else:
        assert changed == 0


def test_moved_inputs_go_where_f_is_worst_and_the_best_choice_has_no_regret():
    for name in GAMES:
        world = THREATS["moved inputs"].world(name, 0, 10)
        points, values = world.game.problem.domain.points, world.game.problem.values
        worst = np.array(
            [
                values[np.linalg.norm(points - x, axis=1) <= world.game.radius * (1 + 1e-9)].min()
                for x in points
            ]
        )
        np.testing.assert_allclose(worst_within(world.game), worst)
        assert world.environment.step(points[worst.argmax()]).value == world.best == worst.max()
        assert world.best < values.max()


# --- entries --------------------------------------------------------------------------------------

TWO = Settings(
    trials=3,
    rounds=40,
    short=10,
    games=("f1", "Forrester"),
    threats=("clean", "outliers +10"),
    methods=("gp_ucb", "a2_rcgp_ucb", "loo_gp_ucb"),
)


def made(settings, regret):
    """Rows whose regret is ``regret(threat, game, method, seed, round)``."""
    rows = []
    for cell in FIGURE.cells(settings):
        threat, name = cell.panel.split(" / ")
        for mark in figure._marks(settings, cell.method):
            rows.append(Row(*cell, mark, regret(threat, name, cell.method, cell.seed, mark)))
    return rows


def some_regret(threat, name, method, seed, mark):
    base = {"gp_ucb": 4.0, "a2_rcgp_ucb": 2.0, "loo_gp_ucb": 1.0}[method]
    if threat == "outliers +10" and method == "gp_ucb":
        base = 40.0
    return (base + 0.1 * seed) * mark * (100.0 if name == "f1" else 1.0)


def test_an_entry_is_the_median_of_ratios_to_the_best_after_as_many_rounds():
    entries = matrix(TWO, made(TWO, some_regret))
    # After 40 rounds a2 has the least median, 2.1 a round; after 10 the slow one, 1.1 a round.
    assert entries["clean", "a2_rcgp_ucb"].median == pytest.approx(1.0)
    assert entries["clean", "gp_ucb"].median == pytest.approx(4.1 / 2.1)
    assert entries["outliers +10", "gp_ucb"].median == pytest.approx(40.1 / 2.1)
    assert entries["clean", "loo_gp_ucb"].median == pytest.approx(1.0)
    assert (entries["clean", "loo_gp_ucb"].rounds, entries["clean", "gp_ucb"].rounds) == (10, 40)
    for entry in entries.values():
        assert entry.number.lower <= entry.median <= entry.number.upper
    low, high = 4.0 / 2.1, 4.2 / 2.1
    number = entries["clean", "gp_ucb"].number
    assert low <= number.lower < number.upper <= high


def test_a_run_adds_up_and_rounds_are_nested():
    settings = replace(TWO, trials=1)
    cell = Cell("outliers +10 / f1", "gp_ucb", 2)
    short, full = run(settings, cell)
    assert (short.round, full.round) == (10, 40)
    assert 0.0 < short.cumulative_regret < full.cumulative_regret
    again = run(replace(settings, short=40), cell)
    # A sum of 40, and one of two parts: the last digit may differ.
    assert [row.cumulative_regret for row in again] == pytest.approx([full.cumulative_regret])
    (slow,) = run(settings, Cell("clean / f1", "loo_gp_ucb", 2))
    assert slow.round == 10


def test_claims_can_fail():
    def worse(threat, name, method, seed, mark):
        factor = 100.0 if method == "a2_rcgp_ucb" and threat == "outliers +10" else 1.0
        return factor * some_regret(threat, name, method, seed, mark)

    good = {c.claim.split(":")[0]: c for c in claims(TWO, made(TWO, some_regret))}
    bad = {c.claim.split(":")[0]: c for c in claims(TWO, made(TWO, worse))}
    assert good["a2_rcgp_ucb"].holds
    assert not bad["a2_rcgp_ucb"].holds
    assert good["gp_ucb"].holds  # 4.1 / 2.1 is less than 2
    assert good["a2_rcgp_ucb"].measured["clean"] == pytest.approx(1.0)


def test_a_slow_method_is_compared_after_as_many_rounds():
    """GP-UCB is the better one after 10 rounds, and ten times as bad after 40."""

    def regret(threat, name, method, seed, mark):
        if method == "gp_ucb" and mark == 40:
            return 400.0 + seed
        return {"gp_ucb": 1.0, "a2_rcgp_ucb": 40.0, "loo_gp_ucb": 1.5}[method]

    judged = {c.claim.split(":")[0]: c for c in claims(TWO, made(TWO, regret))}
    assert not judged["loo_gp_ucb"].holds
    assert judged["loo_gp_ucb"].measured["gp_ucb, outliers +10"] == pytest.approx(1.0)
    assert judged["a2_rcgp_ucb"].holds
    assert judged["a2_rcgp_ucb"].measured["gp_ucb, outliers +10"] == pytest.approx(10.025)


def test_balancing_is_judged_by_its_worst_row_and_by_its_learners():
    methods = ("gp_ucb", "a2_rcgp_ucb", "tgp_ucb", "rgp_ucb", "ec_gp_ucb", "any_threat")
    settings = replace(TWO, methods=methods)

    def holds(balanced):
        def regret(threat, name, method, seed, mark):
            spoilt = {"clean": "a2_rcgp_ucb", "outliers +10": "gp_ucb"}[threat]
            others = 9.0 if method == spoilt else 1.0
            if method in ("tgp_ucb", "rgp_ucb", "ec_gp_ucb"):
                others = 8.0
            return balanced if method == "any_threat" else others

        return [claim.holds for claim in claims(settings, made(settings, regret))[-2:]]

    assert holds(4.0) == [True, True]
    assert holds(6.0) == [True, False]
    assert holds(8.5) == [False, False]


# --- tables ---------------------------------------------------------------------------------------


def test_the_table_for_a_page_has_the_medians_of_the_json():
    rows = made(TWO, some_regret)
    found = [
        {"claim": claim.claim, "measured": dict(claim.measured)} for claim in claims(TWO, rows)
    ]
    plain = {"threats": list(TWO.threats), "methods": list(TWO.methods)}
    lines = markdown({"settings": plain, "claims": found}).splitlines()
    assert lines[0] == "| recipe | clean | +10 |"
    assert lines[2] == "| `gp_ucb` | **2.0** | 19 |"
    assert lines[3] == "| `a2_rcgp_ucb` | 1.0 | **1.0** |"
    assert lines[4] == "| `loo_gp_ucb` \\* | 1.0 | **1.0** |"


def test_the_table_on_every_page_is_that_of_the_results():
    """Wherever the table is shown it is the one that the JSON file says, line by line."""
    table = markdown(json.loads(RESULTS.read_text()))
    assert (ROOT / "docs/figures/matrix.md").read_text() == table
    head = table.splitlines()[0]
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        text = page.read_text()
        if re.search(r"^\| recipe \| clean \|", text, flags=re.MULTILINE):
            assert head in text
            assert table in text, page.name
