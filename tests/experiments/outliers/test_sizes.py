"""The figure of the sizes of lies."""

from dataclasses import replace

import pytest

from stoic.experiments.figure import Cell
from stoic.experiments.methods import A2, FC, GP, RANDOM, ROBUST
from stoic.experiments.outliers import sizes
from stoic.experiments.regret import Step

SETTINGS = sizes.FIGURE.settings
LOW, HIGH = sizes.SIGNS


def row(panel, method, seed, final):
    return Step(panel, method, seed, 1, "0.5", 0.0, 0.0, False, final, final, 0.0)


@pytest.mark.parametrize(("signs", "near"), [(LOW, -1.0), (HIGH, 1.0)])
@pytest.mark.parametrize("size", SETTINGS.sizes)
def test_lies_have_the_size_and_the_signs_of_their_panel(signs, near, size):
    rows = sizes.FIGURE.run(SETTINGS, Cell(f"{signs}: {size:.0e}", RANDOM.name, 3))
    lies = [row for row in rows if row.corrupted]
    assert len(lies) == 4
    for lie in lies:
        distance = abs(float(lie.x) - 1.0)  # the maximum is at 1
        assert distance < 0.1 or distance > 0.4
        assert lie.observed == (near if distance < 0.1 else -near) * size


def test_claims_are_read_literally():
    finals = {1e1: 300.0, 1e3: 100.0, 1e6: 114.0, 1e12: 86.0}
    rows = [
        row(f"{signs}: {size:.0e}", name, seed, final + more)
        for signs in sizes.SIGNS
        for size, final in finals.items()
        for name, more in {
            GP.name: 1.0,
            A2.name: 0.0,
            ROBUST.name: 0.0,
            # against the other sign it falls by 16 in the end
            FC.name: 2.0 - (4.0 if (signs, size) == (HIGH, 1e12) else 0.0),
        }.items()
        for seed in range(2)
    ]
    found = sizes.claims(SETTINGS, rows)
    steady = [claim for claim in found if "changes by less than 15 %" in claim.claim]
    assert len(found) - len(steady) == 2 * 4 * 3
    failed = [claim for claim in steady if not claim.holds]
    assert len(steady) == 12
    [failure] = failed
    assert failure.claim.startswith(f"{HIGH}: from lies of 1e+03 to lies of 1e+12")
    assert FC.name in failure.claim
    assert failure.measured["relative_change"] == pytest.approx(84.0 / 102.0 - 1.0)
    for claim in found:
        if claim not in steady:
            better = FC.name not in claim.claim or claim.claim.startswith(f"{HIGH}: 1e+12")
            assert claim.holds == better, claim


def test_a_picture_of_few_runs():
    settings = replace(SETTINGS, trials=1, rounds=1, sizes=(1e3, 1e6))
    rows = [
        step for cell in sizes.FIGURE.cells(settings) for step in sizes.FIGURE.run(settings, cell)
    ]
    left, _ = sizes.plot(settings, rows).axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["$10^{3}$", "$10^{6}$"]
    assert {line.get_label() for line in left.lines} >= set(settings.methods)
