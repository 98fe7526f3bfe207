"""The figure of the Forrester function in both signs."""

from dataclasses import replace

import pytest

from stoic.experiments.figure import Cell
from stoic.experiments.methods import A2, GP, LOO, RANDOM, RELEVANCE
from stoic.experiments.outliers import both_signs, forrester_clean, forrester_corrupted
from stoic.experiments.regret import Step

SETTINGS = replace(both_signs.FIGURE.settings, peers=(RELEVANCE.name,))


def row(panel, method, seed, final, inference=0.0):
    return Step(panel, method, seed, 1, "0.5", 0.0, 0.0, False, final, final, inference)


def test_panels_are_signs_by_horizons_by_lies():
    games = both_signs.games(SETTINGS)
    assert list(games) == [
        f"{sign}, T = {rounds}, {lies}"
        for with_lies in (True, False)
        for sign in ("max f", "max -f")
        for rounds, count in ((30, 3), (100, 4))
        for lies in [f"{count} lies" if with_lies else "no lies"]
    ]
    assert [game.lies for game in games.values()] == [3, 4, 3, 4, 0, 0, 0, 0]


def test_peers_are_run_where_there_are_lies():
    cells = both_signs.FIGURE.cells(SETTINGS)
    assert len(cells) == len(set(cells)) == 8 * 3 * 20 + 4 * 5
    peers = [cell for cell in cells if cell.method == RELEVANCE.name]
    assert {cell.panel for cell in peers} == set(list(both_signs.games(SETTINGS))[:4])
    assert {cell.seed for cell in peers} == set(range(5))
    short = [
        cell for cell in both_signs.FIGURE.cells(replace(SETTINGS, peer_rounds=30)) if cell in peers
    ]
    assert short == [cell for cell in peers if "T = 30" in cell.panel]
    assert len(short) == 2 * 5


@pytest.mark.parametrize("panel", both_signs.games(SETTINGS))
def test_runs_meet_the_adversary_of_their_panel(panel):
    game = both_signs.games(SETTINGS)[panel]
    rows = both_signs.FIGURE.run(SETTINGS, Cell(panel, RANDOM.name, 3))
    assert len(rows) == 5 + game.rounds
    lies = [row for row in rows if row.corrupted]
    assert len(lies) == game.lies
    best = game.problem.optimum
    for lie in lies:
        distance = abs(float(lie.x) - best.x[0])
        assert (lie.observed, distance < 0.1, distance > 0.4) in (
            (-10.0, True, False),
            (25.0, False, True),
        )
    assert rows[0].regret == pytest.approx(best.value - rows[0].value)


def test_the_appendix_and_the_clean_figure_are_met_again():
    for panel, again, cell in (
        ("max f, T = 100, 4 lies", forrester_corrupted, Cell("appendix, at once", RANDOM.name, 2)),
        ("max f, T = 30, no lies", forrester_clean, Cell("clean", RANDOM.name, 2)),
    ):
        rows = both_signs.FIGURE.run(SETTINGS, Cell(panel, *cell[1:]))
        assert [row[1:] for row in rows] == [
            row[1:] for row in again.FIGURE.run(again.FIGURE.settings, cell)
        ]


def test_claims_are_read_literally_and_on_the_seeds_of_both():
    rows = []
    for panel, game in both_signs.games(SETTINGS).items():
        for seed, extra in enumerate((0.0, 0.0, -60.0)):  # the peer does not meet the last one
            rows.append(row(panel, GP.name, seed, 100.0))
            rows.append(row(panel, A2.name, seed, 100.0))
            sign = panel.startswith("max -f")
            loo = 106.0 if sign else 105.0
            rows.append(row(panel, LOO.name, seed, loo + (extra if game.lies else 0.0), 0.5))
            if game.lies and not extra:
                rows.append(row(panel, RELEVANCE.name, seed, 104.0 + 2.0 * sign, 0.4 + 0.1 * seed))
    found = both_signs.claims(replace(SETTINGS, trials=3, peer_trials=2), rows)
    assert len(found) == 4 * 4 + 4
    for claim in found:
        sign = claim.claim.startswith("max -f")
        if "no lies" in claim.claim:
            assert claim.holds == (not sign), claim
        elif "cumulative regret of relevance" in claim.claim:
            assert claim.holds == sign, claim  # equal is enough
            assert claim.measured["trials"] == 2.0
        elif "inference" in claim.claim:
            assert not claim.holds, claim  # 0.5 against 0.45
        elif claim.claim.split(": ")[1].startswith(LOO.name):
            assert claim.holds, claim
        else:
            assert not claim.holds, claim


def test_without_the_peer_nothing_is_claimed_of_it():
    settings = replace(SETTINGS, trials=1, rounds=1, peers=())
    cells = both_signs.FIGURE.cells(settings)
    assert {cell.method for cell in cells} == {GP.name, A2.name, LOO.name}
    rows = [step for cell in cells for step in both_signs.FIGURE.run(settings, cell)]
    assert not any("relevance" in claim.claim for claim in both_signs.claims(settings, rows))
    both_signs.plot(settings, rows)
