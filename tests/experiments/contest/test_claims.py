"""Figures of the contest: scores by hand, intervals, and claims that can fail."""

import math
from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.contest import (
    FIGURES,
    accuracy,
    comparison,
    confirm,
    constraints,
    development,
    final,
    long,
    narrow,
    objectives,
    ordinary,
    pruning,
    scores,
    warm,
)
from stoic.experiments.contest.cases import CASES
from stoic.experiments.contest.contenders import PEERS
from stoic.experiments.contest.studies import Outcome

NUMBERS = {
    "score": 0.1, "tried": 0.1, "truth": 0.0, "mean": 0.0, "lower": -1.0, "upper": 1.0,
    "covered": True, "outlier": False, "undecided": False, "outliers": 3, "failed": 0,
    "caught": 3, "rejected": 0, "settings": 60,
}  # fmt: skip


def rows_of(figure, settings, numbers):
    """Rows as if each study had come out as ``numbers(scene, method, seed)`` says."""
    rows = []
    for cell in figure.cells(settings):
        scene = cell.panel.split(" / ")[0]
        names = [cell.method]
        if cell.method in PEERS:
            names.append(cell.method + " + explain")
        for name in names:
            changed = NUMBERS | numbers(scene, name, cell.seed)
            rows.append(Outcome(cell.panel, name, cell.seed, **changed))
    return rows


# --- numbers --------------------------------------------------------------------------------------


def test_scores_by_hand():
    found = scores.by_scene(
        [
            Outcome("s / p", "m", seed, **NUMBERS | {"score": score})
            for seed, score in ((1, 0.01), (0, 1.0), (2, 0.0))
        ]
    )
    values = found["s", "m"].by_panel("score")
    np.testing.assert_array_equal(values, [[1.0, 0.01, 0.0]])  # by seed
    assert scores.geometric(values).value == pytest.approx((1.0 * 0.01 * 1e-5) ** (1 / 3))
    other = np.array([[0.5, 0.005, 1e-5, 7.0]])  # a fourth seed that the first does not have
    assert scores.ratio(values, other).value == pytest.approx(4 ** (1 / 3))


def test_a_ratio_is_paired():
    """Where every seed has the same ratio there is no doubt about it, however scores vary."""
    theirs = np.exp(np.random.default_rng(0).normal(size=(3, 10)))
    found = scores.ratio(0.25 * theirs, theirs)
    assert found == pytest.approx((0.25, 0.25, 0.25))
    wide = scores.geometric(theirs)
    assert wide.lower < 0.8 * wide.value < wide.value < wide.upper


# --- figures --------------------------------------------------------------------------------------

PAIR = {"clean": ("branin", "hart3"), "good": ("branin", "hart3")}
TWO = replace(
    development.FIGURE.settings,
    trials=2,
    rounds=4,
    games=PAIR,
    methods=("default", "TPE", "random"),
    few=(),
)


def test_every_contender_plays_on_the_same_seeds_and_the_slow_ones_on_the_first():
    settings = replace(TWO, methods=("default",), few=("TPE",), trials=3, few_trials=2)
    played = {}
    for cell in comparison.cells(settings):
        played.setdefault((cell.panel, cell.method), []).append(cell.seed)
    assert len(played) == 8
    for (_, method), seeds in played.items():
        assert seeds == ([0, 1, 2] if method == "default" else [0, 1])


def test_peers_that_are_left_out_are_named(capsys, monkeypatch):
    monkeypatch.setattr("stoic.experiments.contender.find_spec", lambda module: None)
    comparison.cells(TWO)
    said = [line.split(" is left out")[0] for line in capsys.readouterr().err.splitlines()]
    assert said == ["GPSampler", "CMA-ES", "relevance pursuit", "SMAC"]


def by_scene(figure, found):
    return {claim.claim.split(":")[0]: claim for claim in found}


@pytest.mark.parametrize(
    ("clean", "wrong", "holds"), [(1.09, 0.49, True), (1.11, 0.51, False), (0.4, 1.0, None)]
)
def test_claims_can_fail(clean, wrong, holds):
    def numbers(scene, method, seed):
        if "explain" in method or method == "random":
            return {"score": 5.0 if method == "random" else 0.001}
        factor = {"clean": clean, "good": wrong}[scene] if method == "default" else 1.0
        return {"score": factor * (0.1 + 0.05 * seed)}

    rows = rows_of(development.FIGURE, TWO, numbers)
    found = by_scene(development.FIGURE, development.FIGURE.claims(TWO, rows))
    assert found["clean"].measured["ratio"] == pytest.approx(clean)
    assert "best peer's, TPE" in found["clean"].claim  # not what explain makes of its trials
    assert found["clean"].measured["TPE + explain"] == pytest.approx(0.001)
    assert found["clean"].holds is (holds is not False)
    assert found["1e6 too good"].holds is (holds is True)


def test_a_line_of_the_table():
    def numbers(scene, method, seed):
        return {"score": 0.2 if method == "default" else 0.4, "outlier": seed == 0}

    table = development.FIGURE.table(TWO, rows_of(development.FIGURE, TWO, numbers))
    assert len(table.rows) == 2 * 5  # default, and each peer twice
    first = dict(zip(table.headings, table.rows[0], strict=True))
    assert first["contender"] == "default"
    assert first["studies"] == "4"
    assert first["score"] == "0.2 [0.2, 0.2]"
    assert first["ratio"] == "0.5 [0.5, 0.5]"
    assert first["outlier"] == "50%"
    assert dict(zip(table.headings, table.rows[1], strict=True))["ratio"] == "best peer"


ORDINARY = replace(ordinary.FIGURE.settings, trials=2, rounds=3, methods=("default", "TPE"))


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, 3),  # 60 % without a word of doubt, and intervals that always cover
        ({"outlier": True}, 6),
        ({"undecided": True}, 3),
        ({"undecided": None}, 4),
        ({"covered": False}, 3 + 2),
    ],
)
def test_claims_about_ordinary_outliers_can_fail(changes, broken):
    """Two studies of four functions: 100 % or 0 % of everything, but for the coverage."""
    settings = replace(ORDINARY, trials=20)

    def numbers(scene, method, seed):
        covered = seed % 20 != 0 or scene.startswith("10 %, little")  # 95 %, and 100 % there
        if scene == "none, little noise":
            covered = True
        return {"covered": covered, "undecided": False} | changes

    found = ordinary.claims(settings, rows_of(ordinary.FIGURE, settings, numbers))
    assert len(found) == 9
    assert sum(not claim.holds for claim in found) == broken, [c for c in found if not c.holds]
    assert found[0].measured["studies"] == 3 * 4 * 20


NARROW = replace(narrow.FIGURE.settings, trials=2, methods=("default", "TPE"))


def test_claims_about_narrow_truths_can_fail():
    def good(case, method, seed):
        tries = {"30": 30, "100": 100}.get(case, 40)
        return {"score": 0.001, "tried": 0.001, "settings": tries, "failed": 3}

    def bad(case, method, seed):
        if method != "default":
            return good(case, method, seed)
        score = 0.9 if seed == 1 else 0.001  # one study in two
        return {"score": score, "tried": score, "settings": 29, "failed": 9, "rejected": 8}

    assert all(c.holds for c in narrow.claims(NARROW, rows_of(narrow.FIGURE, NARROW, good)))
    found = narrow.claims(NARROW, rows_of(narrow.FIGURE, NARROW, bad))
    assert len(found) == len(CASES) + 1
    assert not any(claim.holds for claim in found)
    assert all(claim.measured for claim in found)


ACCURACY = replace(accuracy.FIGURE.settings, trials=3, methods=("default", "TPE", "random"))


@pytest.mark.parametrize(
    ("wrong", "right", "holds"),
    [(0.95, 0.95, [True, True, True]), (0.6, 0.9, [False, False, False]), (0.75, 0.96, [1, 0, 1])],
)
def test_claims_about_the_accuracy_can_fail(wrong, right, holds):
    def numbers(scene, method, seed):
        accuracy = {"TPE": 0.7, "random": 0.5}.get(method, 0.9) if scene == "wrong" else 0.95
        if method == "default":
            accuracy = {"wrong": wrong, "right": right}[scene]
        return {"truth": accuracy + 0.001 * seed, "tried": 0.03, "outlier": seed == 0}

    rows = rows_of(accuracy.FIGURE, ACCURACY, numbers)
    found = accuracy.claims(ACCURACY, rows)
    assert [claim.holds for claim in found] == holds
    assert all("best peer" in claim.claim and "TPE" in claim.claim for claim in found)
    assert found[0].measured["gain"] == pytest.approx(wrong - 0.7)
    assert found[1].measured["best tried"] == pytest.approx(0.97)
    line = accuracy.table(ACCURACY, rows).rows[1]
    assert line == ("TPE", "70.1 [70.0, 70.2]", "95.1 [95.0, 95.2]", *2 * ("33.3 [6.1, 79.2]",))
    summary = {
        "settings": {"methods": ["default", "TPE"]},
        "claims": [{"claim": claim.claim, "measured": claim.measured} for claim in found],
    }
    line = "| 70.1 % [70.0, 70.2] | 90.1 % [90.0, 90.2] | 95.1 % [95.0, 95.2] | 33 % |\n"
    assert accuracy.markdown(summary).endswith(f"| Optuna TPE {line}")


@pytest.mark.parametrize(
    "figure",
    [
        f
        for f in FIGURES
        if f
        not in (
            confirm.FIGURE,
            constraints.FIGURE,
            long.FIGURE,
            objectives.FIGURE,
            pruning.FIGURE,
            warm.FIGURE,
        )
    ],  # with rows of their own
    ids=lambda figure: figure.name,
)
def test_pictures_and_tables_are_made_of_any_rows(figure, monkeypatch):
    monkeypatch.setattr(final, "trained", lambda *_: None)  # its libraries are extras
    for build in ("bbob", "bbob_noisy", "corrupted_hartmann6"):
        monkeypatch.setattr(final.suites, build, lambda *_: None)
    settings = replace(figure.settings, trials=2)
    if hasattr(settings, "games"):
        games = {scene: problems[:1] for scene, problems in settings.games.items()}
        settings = replace(settings, games=games)

    def numbers(scene, method, seed):
        return {"undecided": None, "score": 0.01 * (1 + seed + len(method))}

    rows = rows_of(figure, settings, numbers)
    picture = figure.plot(settings, rows)
    assert picture.axes
    table = figure.table(settings, rows)
    assert all(len(line) == len(table.headings) for line in table.rows)
    assert figure.claims(settings, rows)
    assert all("(ours)" in claim.claim for claim in figure.claims(settings, rows))


@pytest.mark.parametrize(
    ("figure", "settings", "skip"),
    [
        (development.FIGURE, replace(TWO, trials=1, games={"nan": ("branin",)}), ()),
        (accuracy.FIGURE, replace(ACCURACY, trials=1, rounds=3), ()),
        (ordinary.FIGURE, replace(ORDINARY, trials=1, conditions=("10 %", "20 %, longer")), ()),
        (narrow.FIGURE, replace(NARROW, trials=1, rounds=3), ("levy20", "bowl40")),
    ],
    ids=["development", "accuracy", "ordinary", "narrow"],
)
def test_a_figure_runs(figure, settings, skip):
    cells = [cell for cell in figure.cells(settings) if cell.panel.split(" / ")[0] not in skip]
    rows = [row for cell in cells for row in figure.run(settings, cell)]
    assert len(rows) == sum(2 if cell.method in PEERS else 1 for cell in cells)
    assert all(math.isfinite(row.score) for row in rows)
    longer = [row for row in rows if row.panel.startswith("20 %")]
    assert all(row.settings == 6 for row in longer)
