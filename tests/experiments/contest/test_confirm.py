"""Figure of the confirmation: rows by hand, and claims that can fail."""

from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.contest import confirm
from stoic.experiments.contest.confirm import CONFIRMED, OBSERVED, TOP, Outcome

SMALL = replace(confirm.FIGURE.settings, trials=40, problems=("bowl3",))


def rows(probability=0.5, came=0.5, covered=0.95, ours=0.1, theirs=1.0):
    made = []
    for cell in confirm.FIGURE.cells(SMALL):
        k = cell.seed
        for way in (CONFIRMED, "", OBSERVED, TOP):
            mine = way == CONFIRMED
            loss = ours if mine else theirs
            made.append(
                Outcome(
                    cell.panel,
                    cell.method + way,
                    k,
                    loss=loss * (1.0 + 0.01 * k),
                    missed=loss * 0.5,
                    best=k < came * SMALL.trials,
                    probability=probability if mine else np.nan,
                    expected=0.01 if mine else np.nan,
                    covered=k < covered * SMALL.trials,
                    repeats_covered=True if mine else None,
                    measurements=10,
                    settled=False if mine else None,
                )
            )
    return made


@pytest.mark.parametrize(
    ("numbers", "holds"),
    [
        ({}, [True] * 8),
        ({"came": 0.1}, [False] + [True] * 7),  # overconfident
        ({"came": 0.95}, [False] + [True] * 7),
        ({"covered": 0.8}, [True, False] + [True] * 6),
        ({"covered": 1.0}, [True, False] + [True] * 6),  # too wide
        ({"ours": 0.8}, [True, True] + [False] * 6),
    ],
)
def test_each_claim_can_fail(numbers, holds):
    found = confirm.claims(SMALL, rows(**numbers))
    assert [claim.holds for claim in found] == holds
    assert all("(ours)" in claim.claim for claim in found)


def test_the_bins_hold_every_study():
    many = [
        row._replace(probability=p, best=p > 0.5)
        for row, p in zip(rows(), np.linspace(0.0, 1.0, 160), strict=True)
    ]
    bins = confirm._bins(many)
    assert len(bins) == confirm.BINS
    assert sum(len(came) for _, came in bins) == len(many)
    assert all(bins[-1][1])
    assert not any(bins[0][1])


def test_a_picture_and_a_table_are_made():
    assert confirm.plot(SMALL, rows()).axes
    table = confirm.table(SMALL, rows())
    assert all(len(line) == len(table.headings) for line in table.rows)


def test_a_study_is_finished_in_each_way():
    settings = replace(SMALL, trials=1, rounds=12, measurements=2, methods=("default", "TPE"))
    made = [row for cell in confirm.FIGURE.cells(settings) for row in confirm.run(settings, cell)]
    assert [row.method for row in made] == [
        "default" + OBSERVED, "default", "default" + CONFIRMED, "default" + TOP,
        "TPE" + OBSERVED, "TPE" + CONFIRMED, "TPE" + TOP,
    ]  # fmt: skip
    assert all(0.0 <= row.missed <= row.loss for row in made)
    for row in made:
        if row.method.endswith(CONFIRMED):
            assert row.measurements == 2 or row.settled
            assert 0.0 <= row.probability <= 1.0
