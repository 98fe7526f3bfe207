from collections import Counter
from dataclasses import replace

import pytest

from stoic.experiments.figure import Cell
from stoic.experiments.methods import (
    A2,
    DIAGNOSTICS,
    DIAGNOSTICS_LOO,
    FC,
    GP,
    GP_LOO,
    LOO,
    RANDOM,
    RELEVANCE,
    STUDENT,
    STUDENT_LOO,
)
from stoic.experiments.outliers import forrester_clean, forrester_corrupted
from stoic.experiments.regret import Step
from stoic.experiments.trials import comparison, grouped


def row(panel, method, seed, final):
    return Step(panel, method, seed, 1, "0.5", 0.0, 0.0, False, final, final, 0.0)


def test_clean_claims_are_read_literally():
    settings = replace(forrester_clean.FIGURE.settings, trials=3)
    rows = [
        row("clean", method, seed, final)
        for method, finals in {
            GP.name: (90, 100, 110),  # 100 +- 5.8
            GP_LOO.name: (83, 93, 103),  # 93 +- 5.8
            FC.name: (80, 90, 100),  # 90: less regret, but not within an error
            A2.name: (95, 105, 115),  # 105: within
        }.items()
        for seed, final in enumerate(finals)
    ]
    verdicts = [claim.holds for claim in forrester_clean.claims(settings, rows)]
    assert verdicts == [False, True, True, True, True, True, False, False]


def test_corrupted_claims_are_read_literally():
    settings = forrester_corrupted.FIGURE.settings
    finals = {GP.name: 100.0, GP_LOO.name: 98.0, FC.name: 100.0, A2.name: 99.0, RANDOM.name: 99.5}
    finals |= {STUDENT.name: 101.0, STUDENT_LOO.name: 101.5, LOO.name: 99.0, DIAGNOSTICS.name: 97.0}
    finals[DIAGNOSTICS_LOO.name] = 97.5
    rows = [
        row(panel, method, seed, final)
        for panel in settings.adversaries
        for method, final in finals.items()
        for seed in range(3)
    ]
    # A peer on two of the three seeds, better than the mean of all three but not than these two.
    rows += [row("appendix", RELEVANCE.name, seed, 99.0 + 1e-3) for seed in (0, 2)]
    found = forrester_corrupted.claims(settings, rows)
    assert len(found) == 4 * (4 + 8 + 3 + 3 + 2) + 3
    of_the_paper = [claim for claim in found if claim.source != "ours"]
    assert len(of_the_paper) == 4 + 3 + 2
    assert all(claim.claim.startswith("Adversary of the appendix: ") for claim in of_the_paper)
    references = tuple(f"than {one.name}" for one in (GP_LOO, STUDENT_LOO, FC, A2))
    assert all(any(name in claim.claim for name in references) for claim in of_the_paper)
    verdicts = {claim.claim: claim.holds for claim in found}

    def holds(panel, ours, reference):
        return verdicts[
            f"Adversary of the {panel}: {ours.name} has less mean cumulative regret than "
            f"{reference.name}."
        ]

    for claim in found:
        if "in some of the trials" in claim.claim:
            assert claim.holds
            assert claim.measured["trials_with_less_regret"] == 3.0
        elif "in every round" in claim.claim:
            assert not claim.holds
            assert claim.measured["share_of_rounds"] == 0.0
    for panel in settings.adversaries:
        assert holds(panel, A2, GP)
        assert holds(panel, A2, RANDOM)
        assert not holds(panel, A2, DIAGNOSTICS)
        assert holds(panel, A2, STUDENT)
        assert not holds(panel, A2, GP_LOO)
        assert not holds(panel, FC, GP)
        assert not holds(panel, FC, RANDOM)
        assert holds(panel, FC, STUDENT)
        assert holds(panel, LOO, GP)
        assert not holds(panel, LOO, A2)
        assert not holds(panel, LOO, DIAGNOSTICS)
    assert holds("appendix", LOO, RELEVANCE)
    assert found[0].measured["trials"] == 3.0
    peers = [claim for claim in found if RELEVANCE.name in claim.claim]
    assert [claim.measured["trials"] for claim in peers] == [2.0, 2.0, 2.0]


def test_peers_are_run_on_the_first_seeds_of_their_panels():
    settings = replace(forrester_corrupted.FIGURE.settings, peers=(RELEVANCE.name,), seed=7)
    found = [c for c in forrester_corrupted.cells(settings) if c.method == RELEVANCE.name]
    assert found == [Cell("appendix", RELEVANCE.name, seed) for seed in range(7, 12)]
    few = [c for c in forrester_corrupted.cells(replace(settings, trials=2)) if c in found]
    assert [c.seed for c in few] == [7, 8]
    without = forrester_corrupted.cells(replace(settings, peers=()))
    assert without == [c for c in forrester_corrupted.cells(settings) if c not in found]


def test_methods_of_the_papers_claims_have_more_seeds():
    settings = replace(forrester_corrupted.FIGURE.settings, trials=2)
    found = Counter(cell.method for cell in forrester_corrupted.cells(settings))
    assert {name for name, runs in found.items() if runs == 40} == set(settings.decisive)
    reference, robust = GP_LOO.name, {FC.name, A2.name}
    assert {reference} | robust < set(settings.decisive)
    assert {found[name] for name in settings.methods if name not in settings.decisive} == {8}


@pytest.mark.parametrize(
    ("panel", "lies"),
    [("text", {-10.0, 25.0}), ("appendix", {-10.0, 25.0}), ("code", {-20.0, 20.0})],
)
def test_corrupted_runs_meet_the_adversary_of_their_panel(panel, lies):
    settings = forrester_corrupted.FIGURE.settings
    rows = forrester_corrupted.FIGURE.run(settings, Cell(panel, RANDOM.name, 1))
    corrupted = [r for r in rows if r.corrupted]
    assert len(rows) == 105
    assert len(corrupted) == 4
    assert {r.observed for r in corrupted} <= lies
    assert all(r.round >= 1 for r in corrupted)
    if panel == "code":
        assert all(r.round >= k**3 for k, r in enumerate(corrupted, start=1))


def test_clean_runs_meet_none():
    rows = forrester_clean.FIGURE.run(
        forrester_clean.FIGURE.settings, Cell("clean", RANDOM.name, 1)
    )
    assert len(rows) == 35
    assert not any(r.corrupted for r in rows)


def test_a_run_depends_on_its_cell_alone():
    settings = replace(forrester_corrupted.FIGURE.settings, rounds=4)
    cell = Cell("code", A2.name, 2)
    assert repr(forrester_corrupted.FIGURE.run(settings, cell)) == repr(
        forrester_corrupted.FIGURE.run(settings, cell)
    )


@pytest.mark.slow
def test_robust_methods_beat_gp_ucb_under_every_adversary():
    settings = forrester_corrupted.FIGURE.settings
    for panel in settings.adversaries:
        rows = [
            step
            for name in (GP_LOO.name, FC.name, A2.name)
            for seed in range(settings.trials)
            for step in forrester_corrupted.FIGURE.run(settings, Cell(panel, name, seed))
        ]
        by_run = grouped(rows)
        for robust in (FC.name, A2.name):
            measured = comparison(by_run[panel, robust], by_run[panel, GP_LOO.name])
            assert measured["mean"] < measured["reference_mean"], (panel, robust, measured)


@pytest.mark.slow
def test_robustness_costs_nothing_when_nobody_lies():
    settings = forrester_clean.FIGURE.settings
    rows = [
        step
        for cell in forrester_clean.FIGURE.cells(settings)
        if cell.method in (GP.name, GP_LOO.name, FC.name, A2.name)
        for step in forrester_clean.FIGURE.run(settings, cell)
    ]
    costs = [c for c in forrester_clean.claims(settings, rows) if "at most" in c.claim]
    assert len(costs) == 4
    failed = [c for c in costs if not c.holds]
    assert not failed, failed
