import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import halfnorm, kstest, uniform

from stoic.distances import Distance
from stoic.experiments.figure import Cell
from stoic.experiments.inputs import averages, solutions
from stoic.experiments.inputs.averages import (
    KNOWN,
    LEARNED,
    PRINTED,
    THRESHOLDS,
    learned_values,
    moved_values,
)
from stoic.experiments.inputs.solutions import (
    FIGURE_2,
    FIGURE_5,
    RS_1,
    RS_2,
    RS_G,
    Guaranteed,
    claims_sizes,
    kept,
    robust,
    solution,
)
from stoic.experiments.inputs.worlds import polynomial_on
from stoic.problems import polynomial

SETTINGS = FIGURE_2.settings


def rows_of(figure, settings):
    return [row for cell in figure.cells(settings) for row in figure.run(settings, cell)]


def test_figure_2_shows_the_known_facts():
    by_name = {row.method: row for row in rows_of(FIGURE_2, SETTINGS)}
    assert list(by_name) == list(SETTINGS.names)
    one, two = by_name[RS_1], by_name[RS_2]
    assert (one.x1, one.x2) == pytest.approx((0.727, 1.020), abs=5e-4)
    assert one.fragility == pytest.approx(20.08, abs=0.005)
    assert (two.x1, two.x2) == pytest.approx((0.224, 0.677), abs=5e-4)
    assert two.critical_radius == pytest.approx(0.943, abs=5e-4)
    right = by_name[robust(0.5)]
    assert (right.x1, right.x2) == pytest.approx((-0.195, 0.285), abs=5e-4)
    assert right.worst == pytest.approx(-4.333, abs=5e-4)
    assert math.isinf(by_name[robust(2.0)].fragility)
    found = FIGURE_2.claims(SETTINGS, list(by_name.values()))
    assert len(found) == 5
    assert all(claim.holds for claim in found)


def test_claims_of_figure_2_can_fail():
    rows = rows_of(FIGURE_2, SETTINGS)
    spoiled = [row._replace(worst=-9.0, value=-9.0, critical_radius=1.6) for row in rows]
    assert [c.holds for c in FIGURE_2.claims(SETTINGS, spoiled)] == [False] * 3 + [True] * 2
    spoiled = [row._replace(worst=-11.0) for row in rows]
    assert [c.holds for c in FIGURE_2.claims(SETTINGS, spoiled)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("name", [RS_2, RS_G, robust(0.25)])
def test_figure_5_is_a_staircase_and_its_area(name):
    settings = replace(SETTINGS, side=30, largest=1.0)
    rows = FIGURE_5.run(settings, Cell("polynomial", name, 0))
    problem = polynomial_on(30)
    x = solution(name, -10.0, 30)
    far = Distance()(problem.domain.points[[x]], problem.domain.points)[0]
    sizes = np.array([row.size for row in rows])
    np.testing.assert_allclose(sizes, np.arange(101) / 100.0)
    expected = [problem.values[far <= size * (1.0 + 1e-9)].min() for size in sizes]
    np.testing.assert_array_equal([row.worst for row in rows], expected)
    short = np.maximum(-10.0 - np.array(expected), 0.0)
    assert rows[-1].area == pytest.approx(0.01 * short[1:].sum())
    assert rows[0].area == 0.0
    good = sizes[np.array(expected) >= -10.0]
    assert kept(settings, rows) == good.max()


def sizes_of(levels):
    """Guaranteed values and areas: at 0, 1 and 2."""
    return [
        Guaranteed("polynomial", name, 0, float(k), worst, area)
        for name, (worsts, final) in levels.items()
        for k, (worst, area) in enumerate(zip(worsts, (0.0, 0.0, final), strict=True))
    ]


def test_claims_of_figure_5_are_read_literally():
    settings = replace(SETTINGS, radii=(0.5,))
    levels = {
        RS_1: ((0.0, -20.0, -20.0), 3.0),
        RS_2: ((0.0, 0.0, -30.0), 4.0),
        RS_G: ((0.0, -20.0, -20.0), 3.0),
        robust(0.5): ((-20.0, -20.0, -40.0), 5.0),
    }
    assert [c.holds for c in claims_sizes(settings, sizes_of(levels))] == [True] * 4
    assert math.isnan(kept(settings, sizes_of({robust(0.5): levels[robust(0.5)]})))
    worse = {**levels, RS_2: ((0.0, -20.0, -30.0), 5.0), RS_1: ((0.0, -20.0, -20.0), 6.0)}
    assert not any(c.holds for c in claims_sizes(settings, sizes_of(worse)))


def table_rows(numbers):
    settings = averages.Settings(trials=1, readings=(KNOWN,))
    rows = [
        averages.Row(averages.panel(KNOWN, tau), name, 0, tau, value, value)
        for name, values in numbers.items()
        for tau, value in zip(THRESHOLDS, values, strict=True)
    ]
    return settings, rows


def test_the_printed_table_has_the_printed_order():
    found = averages.claims(*table_rows(PRINTED))
    assert len(found) == 4 * 5
    assert {claim.source for claim in found} == {"ours"}  # of known f
    assert all(claim.holds for claim in found)
    assert {claim.measured["in_the_paper"] for claim in found} == {1.0}
    assert found[0].measured["RS-2, ours"] == found[0].measured["RS-2, paper"] == 0.18


def test_another_order_is_another_order():
    one_less = {**PRINTED, robust(0.57): (0.0,) * 5}
    holds = np.reshape([c.holds for c in averages.claims(*table_rows(one_less))], (5, 4))
    assert holds[:, :3].tolist() == [[False, True, True]] * 5
    assert holds[:, 3].tolist() == [False, True, True, True, False]  # 0.32 > 0.24; 12.81 > 12.58
    two_less = {**one_less, robust(1.05): (0.0,) * 5}
    holds = np.reshape([c.holds for c in averages.claims(*table_rows(two_less))], (5, 4))
    assert holds[:, :3].tolist() == [[False, False, True]] * 5
    first = {**PRINTED, RS_1: (0.0,) * 5}
    found = averages.claims(*table_rows(first))
    assert [claim.holds for claim in found] == [False, False, False, True] * 5
    assert {claim.measured["in_the_paper"] for claim in found} == {1.0}


def test_moves_end_at_the_box_and_are_the_same_for_all():
    corner = np.array([3.2, 4.4])
    values = moved_values(corner, 5, 0.3, 400)
    steps = averages.steps(np.random.default_rng(5), 400, 0.3)
    inside = np.minimum(corner + steps, corner)
    np.testing.assert_allclose(values, polynomial().value(inside))
    assert np.mean(values == polynomial().value(corner[None])[0]) == pytest.approx(0.25, abs=0.06)


def test_the_length_of_a_move_is_normal_and_its_direction_uniform():
    steps = averages.steps(np.random.default_rng(0), 4000, 0.3)
    lengths = np.hypot(*steps.T)
    assert kstest(lengths, halfnorm(scale=0.3).cdf).pvalue > 0.01
    assert kstest(np.arctan2(*steps.T), uniform(-np.pi, 2.0 * np.pi).cdf).pvalue > 0.01


def test_what_is_learned_depends_on_tau_only_where_it_is_known():
    settings = averages.Settings(trials=1, rounds=12, coarse_side=12, readings=(LEARNED,))
    rows = rows_of(averages.TABLE_2, settings)
    assert len(rows) == 5 * 7
    assert [c.source for c in averages.claims(settings, rows)] == ["", "ours", "", ""] * 5
    values = learned_values(robust(0.57), None, 0, 0.3, 12, 12)
    for row in rows:
        if row.method == robust(0.57):
            expected = np.maximum(row.threshold - values, 0.0).mean()
            assert row.lenient_regret == pytest.approx(expected)
    low, high = (learned_values(RS_2, tau, 0, 0.3, 12, 12) for tau in (-30.0, 10.0))
    assert not np.array_equal(low, high)


def test_known_solutions_are_moved():
    settings = averages.Settings(trials=1, moves=50, side=30)
    (row,) = averages.run(settings, Cell(averages.panel(KNOWN, -10.0), RS_2, 7))
    x = polynomial_on(30).domain.points[solutions.solution(RS_2, -10.0, 30)]
    lost = np.maximum(-10.0 - moved_values(x, 7, 0.3, 50), 0.0)
    assert row.lenient_regret == pytest.approx(lost.mean())
    assert row.printed == 0.72


def test_the_table_prints_ours_beside_theirs():
    settings, rows = table_rows(dict.fromkeys(PRINTED, (1.0,) * 5))
    lines = {line[0]: line[1:] for line in averages.table(settings, rows).rows}
    assert lines[RS_2] == (
        "1.00 | 0.18",
        "1.00 | 0.32",
        "1.00 | 0.72",
        "1.00 | 1.99",
        "1.00 | 3.14",
    )
