import math
from dataclasses import replace

import numpy as np
import pytest

from stoic.defences import Trust
from stoic.defences.anchored import Anchored
from stoic.experiments.inputs import comparison, outliers
from stoic.experiments.inputs.algorithms import (
    ADVERS_1,
    ADVERS_2,
    ADVERS_G,
    STABLE,
    STABLE_03,
    STABLE_3,
    STABLE_4,
    STABLE_HALF,
    STABLE_THIRD,
)
from stoic.experiments.inputs.comparison import FIGURES
from stoic.experiments.inputs.trials import Row

BY_NUMBER = {figure.name.partition("-")[2]: figure for figure in FIGURES}
# Regret after 1, 2, 3 and 4 rounds: a line, and a curve that has stopped rising.
LINE, FLAT = (1.0, 2.0, 3.0, 4.0), (2.0, 3.0, 3.0, 3.1)


def rows_of(panels, curves):
    """Two trials of each method; a pair of curves is lenient and satisficing.

    f is below the threshold where the lenient curve rises by more than 0.2.
    """
    rows = []
    for panel in panels:
        for name, both in curves.items():
            lenient, satisficing = both if isinstance(both[0], tuple) else (both, both)
            below = np.cumsum(np.diff(lenient, prepend=0.0) > 0.2).tolist()
            kept = list(enumerate(zip(lenient, satisficing, below, strict=True), start=1))
            for seed, factor in ((0, 0.5), (1, 1.5)):
                rows += [
                    Row(panel, name, seed, t, factor * a, factor * b, missed)
                    for t, (a, b, missed) in kept
                ]
    return rows


def scaled(curve, factor):
    return tuple(factor * value for value in curve)


def judged(number, curves, other=None):
    """Verdicts; the panels with a second radius have the ``other`` curves."""
    figure = BY_NUMBER[number]
    settings = replace(figure.settings, rounds=4, trials=2)
    panels = list(settings.panels)
    first = [name for name in panels if settings.panels[name][1] == settings.radii[0]]
    rows = rows_of(first, curves) + rows_of([p for p in panels if p not in first], other or curves)
    found = figure.claims(settings, rows)
    # Everything that is drawn and tabulated can be.
    assert figure.plot(settings, rows).axes
    assert len(figure.table(settings, rows).rows) == len(panels) * len(settings.methods)
    return found


def test_figure_3_as_published_and_not():
    curves = {
        ADVERS_1.name: scaled(LINE, 2.0),
        ADVERS_2.name: scaled(FLAT, 0.5),
        ADVERS_G.name: FLAT,
        STABLE.name: FLAT,
        STABLE_4.name: scaled(LINE, 3.0),
        STABLE_HALF.name: scaled(LINE, 4.0),
    }
    linear = {name: scaled(LINE, 2.0) for name in curves}
    linear[ADVERS_G.name] = LINE
    linear[STABLE_4.name] = linear[STABLE_HALF.name] = scaled(LINE, 3.0)
    found = judged("3", curves, linear)
    assert len(found) == 3 * (1 + 2 + 2 + 3 + 2) + 3 * 3
    assert all(claim.holds for claim in found)
    worse = {**curves, ADVERS_2.name: LINE, STABLE_4.name: FLAT, ADVERS_1.name: scaled(LINE, 3.5)}
    found = judged("3", worse, {**linear, STABLE.name: scaled(FLAT, 0.1)})
    assert [claim.holds for claim in found[:5]] == [False, False, True, False, True]
    assert [claim.holds for claim in found[5:8]] == [False, False, True]
    assert [claim.holds for claim in found[8:10]] == [False, True]
    assert found[8].measured["rounds_below_the_threshold"] == 1.0
    assert [claim.holds for claim in found[-3:]] == [False, False, True]
    shares = [found[k].measured["share_in_second_half"] for k in (0, 1)]
    assert shares == pytest.approx([0.5, 0.1 / 3.1])
    worse = {**linear, ADVERS_2.name: scaled(LINE, 4.0)}
    found = judged("3", {**curves, ADVERS_1.name: FLAT}, worse)
    assert [claim.holds for claim in found[8:10]] == [True, False]
    assert [claim.holds for claim in found[-3:]] == [True, True, False]


def test_figure_4_is_linear_for_all_and_right_for_one():
    curves = {
        ADVERS_1.name: scaled(LINE, 2.0),
        ADVERS_2.name: scaled(LINE, 2.0),
        STABLE.name: LINE,
        STABLE_3.name: scaled(LINE, 3.0),
        STABLE_THIRD.name: scaled(LINE, 3.0),
    }
    found = judged("4", curves)
    assert [claim.holds for claim in found] == [True] * 6
    found = judged("4", {**curves, STABLE_THIRD.name: scaled(LINE, 0.5), ADVERS_1.name: FLAT})
    assert [claim.holds for claim in found] == [False, True, False, True, False, False]


def test_figure_6_has_both_regrets():
    curves = {
        ADVERS_1.name: (scaled(LINE, 2.0), FLAT),
        ADVERS_2.name: (scaled(FLAT, 0.5), FLAT),
        STABLE.name: FLAT,
        STABLE_3.name: scaled(LINE, 3.0),
        STABLE_03.name: scaled(LINE, 3.0),
    }
    found = judged("6", curves)
    assert [claim.holds for claim in found[:-1]] == [True] * 9 * 3
    assert 0.0 < found[-1].measured["share_of_points_below"] < 1.0
    found = judged("6", {**curves, ADVERS_1.name: (FLAT, LINE), ADVERS_2.name: (LINE, FLAT)})
    assert [c.holds for c in found[:4]] == [False, False, True, True]
    assert [c.holds for c in found[4:9]] == [False, True, True, False, True]


@pytest.mark.parametrize("number", ["7", "8", "10"])
def test_robust_satisficing_regret_flattens_for_advers(number):
    names = BY_NUMBER[number].settings.methods
    curves = dict.fromkeys(names, (LINE, FLAT))
    found = judged(number, {**curves, names[-1]: (FLAT, LINE)})
    assert all(claim.holds for claim in found)
    found = judged(number, {**curves, ADVERS_1.name: (FLAT, LINE)})
    assert [claim.holds for claim in found if "AdveRS-1 " in claim.claim] == [False] * (
        1 if number == "8" else 3
    )
    if number == "10":
        assert not found[-1].holds  # nowhere is StableOpt linear


def test_figure_9_compares_with_wrong_radii():
    names = BY_NUMBER["9"].settings.methods
    curves = {**{name: scaled(LINE, 3.0) for name in names}, ADVERS_2.name: FLAT}
    curves[ADVERS_1.name] = LINE
    found = judged("9", curves)
    assert len(found) == 18
    assert all(claim.holds for claim in found)


def test_no_regret_at_all_is_flat_and_not_linear():
    nothing = (0.0, 0.0, 0.0, 0.0)
    curves = dict.fromkeys(BY_NUMBER["7"].settings.methods, nothing)
    assert all(claim.holds for claim in judged("7", curves))
    assert not judged("10", curves)[-1].holds


def test_only_the_model_differs():
    assert outliers.ALGORITHMS.keys() == set(outliers.Settings().methods)
    here = outliers.world(outliers.MISSPECIFIED, 12)
    defended, plain = (algorithm.build(here, -10.0, 0.5, 0) for algorithm in outliers.PAIRS[0])
    assert plain.model.defence == Trust()
    assert isinstance(defended.model.defence, Anchored)
    assert type(defended.policy) is type(plain.policy)
    assert (defended.policy.p, defended.policy.threshold) == (math.inf, -10.0)
    assert (plain.policy.p, plain.policy.threshold) == (math.inf, -10.0)
    assert defended.confidence == plain.confidence


def test_outliers_come_when_they_are_released_and_do_not_count():
    settings = outliers.Settings(trials=1, rounds=10, side=12)
    told = []

    class Spy:
        def __init__(self, learner):
            self.learner = learner

        def __getattr__(self, name):
            return getattr(self.learner, name)

        def tell(self, x, y):
            told.extend(np.atleast_1d(y).tolist())
            self.learner.tell(x, y)

    plain = outliers.ADVERS
    spied = replace(plain, build=lambda *arguments: Spy(plain.build(*arguments)))
    original = dict(outliers.ALGORITHMS)
    outliers.ALGORITHMS[plain.name] = spied
    try:
        for panel in settings.panels:
            told.clear()
            cell = next(
                cell for cell in outliers.FIGURE.cells(settings) if cell[:2] == (panel, plain.name)
            )
            rows = outliers.run(settings, cell)
            assert len(told) == 20
            lies = [k + 1 for k, y in enumerate(told[10:]) if abs(y) == 200.0]
            assert lies == ([] if panel == outliers.CLEAN else [1, 8])
            assert rows[-1].round == 10
            assert 0.0 <= rows[-1].satisficing_regret <= rows[-1].lenient_regret < 600.0
    finally:
        outliers.ALGORITHMS.update(original)


def test_claims_about_outliers():
    settings = outliers.Settings(trials=2, rounds=4)
    (a2, plain), (stable_a2, stable) = outliers.PAIRS
    good = {a2.name: FLAT, plain.name: scaled(LINE, 9.0), stable_a2.name: FLAT, stable.name: FLAT}
    rows = rows_of(settings.panels, {**good, stable.name: scaled(LINE, 9.0)})
    found = outliers.claims(settings, rows)
    assert len(found) == 12
    assert all(claim.holds for claim in found)
    assert outliers.plot(settings, rows).axes
    bad = rows_of(settings.panels, {**good, a2.name: scaled(LINE, 99.0)})
    by_claim = [claim.holds for claim in outliers.claims(settings, bad)]
    assert by_claim == [True, False, True, True] + [False, False, False, True] * 2
    assert comparison.table(settings, rows).rows
