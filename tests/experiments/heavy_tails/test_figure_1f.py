import math
from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.figure import Cell
from stoic.experiments.heavy_tails import truncation
from stoic.experiments.heavy_tails.truncation import (
    A_POINT_A_ROUND,
    FIGURE,
    ONE_POINT,
    ONE_SIGN,
    PLAIN,
    TRUNCATED,
    Row,
    Settings,
    claims,
    function,
    logarithmic,
    run,
)
from stoic.kernels import RBF

SETTINGS = Settings(trials=2, rounds=400)


def test_f_goes_from_0_to_1():
    f = function(SETTINGS)
    assert f.values.min() == 0.0
    assert f.values.max() == 1.0
    assert len(f.domain) == 100
    assert not np.allclose(f.values, function(replace(SETTINGS, draw=1)).values)


def test_cells_are_both_methods_under_all_readings():
    found = FIGURE.cells(Settings(seed=7))
    assert len(set(found)) == len(found) == 3 * 2 * 50
    assert {cell.seed for cell in found} == set(range(7, 57))


def test_the_width_is_the_logarithm():
    assert logarithmic(None, 1) == 0.0
    assert logarithmic(None, 10_000) == pytest.approx(math.log(1e4))


@pytest.mark.parametrize("reading", [ONE_SIGN, ONE_POINT, A_POINT_A_ROUND])
def test_huge_results_are_where_the_reading_says(reading):
    places = set()
    for seed in range(4):
        for method in (PLAIN, TRUNCATED):
            rows = run(SETTINGS, Cell(reading, method, seed))
            assert sum(row.plays for row in rows) == 400
            assert all(row.huge <= row.plays for row in rows)
            lied = [row for row in rows if row.huge]
            if reading != A_POINT_A_ROUND:
                assert all(row.huge == row.plays for row in lied)
                assert len(lied) <= 1  # none where the point is never played
            else:
                assert 0 < sum(row.huge for row in rows) < 20  # 4 are expected
                assert any(row.huge < row.plays for row in lied)
            places |= {row.x for row in lied}
    assert len(places) > 1


def posterior_mean(plays, totals, points):
    """The exact posterior mean of the per-point sums, by least squares in the kernel's space."""
    played = plays > 0
    K = RBF(0.2)(points, points[played])
    gram = K[played] + np.diag(1.0 / plays[played])
    return K @ np.linalg.solve(gram, totals[played] / plays[played])


def test_truncation_forgets_all_that_is_huge():
    # In 400 rounds the level is at most 400^(1/4) = 4.5, and f +- 10 is at least 9 in size.
    rows = run(SETTINGS, Cell(A_POINT_A_ROUND, TRUNCATED, 0))
    plays, huge, f = (np.array([getattr(r, k) for r in rows]) for k in ("plays", "huge", "value"))
    points = function(SETTINGS).domain.points
    expected = posterior_mean(plays, (plays - huge) * f, points)
    np.testing.assert_allclose([row.mean for row in rows], expected, atol=1e-9)


def test_both_methods_meet_the_same_point():
    for seed in range(3):
        at = [
            {row.x for row in run(SETTINGS, Cell(ONE_POINT, method, seed)) if row.huge}
            for method in (PLAIN, TRUNCATED)
        ]
        assert at[0] == at[1]


def test_one_sign_is_drawn_for_each_randomisation():
    # Without truncation huge results take the mean to their side, for some seeds to either.
    rows = [row for seed in range(8) for row in run(SETTINGS, Cell(ONE_SIGN, PLAIN, seed))]
    assert {np.sign(row.mean - row.value) for row in rows if row.huge} == {-1.0, 1.0}


def rows_of(method, means, std=0.05, f=(0.0, 1.0), plays=(10, 10)):
    """Posteriors at two points, a pair of means for each trial."""
    return [
        Row(ONE_POINT, method, seed, x, value, mean, std, played, 1)
        for seed, pair in enumerate(means)
        for x, value, mean, played in zip((0.0, 1.0), f, pair, plays, strict=True)
    ]


def verdicts(plain, truncated, std=0.05, plays=(5, 15)):
    settings = replace(SETTINGS, readings=(ONE_POINT,))
    rows = [*rows_of(PLAIN, plain), *rows_of(TRUNCATED, truncated, std, plays=plays)]
    return [claim.holds for claim in claims(settings, rows)], claims(settings, rows)


def test_claims_are_read_literally():
    good, bad = [(0.0, 0.96), (0.02, 0.98)], [(0.0, 0.5), (0.3, 0.9)]
    holds, found = verdicts(bad, good)
    assert holds == [True] * 5
    assert found[0].measured["error_of_the_average"] == pytest.approx(0.3)
    assert found[0].measured["mean_error"] == pytest.approx(0.4)
    assert found[1].measured["error_of_the_average"] == pytest.approx(0.03)
    assert found[1].measured["trials_within"] == 2.0
    assert found[3].measured["paired_difference"] == -5.0  # plays of the point with f = 0
    assert found[4].measured["paired_difference"] == pytest.approx(-0.37)
    assert verdicts(good, bad, plays=(10, 10))[0] == [False] * 5
    assert verdicts(bad, good, std=0.02)[0] == [True, True, False, True, True]
    # Errors that cancel in the average are seen run by run.
    holds, found = verdicts([(0.4, 1.0), (-0.4, 1.0)], good)
    assert holds == [False, True, True, True, True]
    assert found[0].measured["trials_within"] == 0.0


def test_posteriors_are_collected():
    rows = [*rows_of(PLAIN, [(0.1, 0.2), (0.3, 0.4)]), *rows_of(TRUNCATED, [(0.0, 0.0)])]
    found = truncation.posteriors(rows)
    assert list(found) == [(ONE_POINT, PLAIN), (ONE_POINT, TRUNCATED)]
    plain = found[ONE_POINT, PLAIN]
    assert plain.means.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert plain.mean.tolist() == pytest.approx([0.2, 0.3])
    assert plain.value.tolist() == [0.0, 1.0]


def test_the_table_has_a_line_for_each():
    rows = [
        row._replace(panel=reading)
        for reading in (ONE_POINT, A_POINT_A_ROUND)
        for method in (PLAIN, TRUNCATED)
        for row in rows_of(method, [(0.1, 0.9), (0.0, 0.7)])
    ]
    lines = truncation.table(SETTINGS, rows).rows
    assert len(lines) == 4
    assert lines[0] == (ONE_POINT, PLAIN, "0.200", "0.2 ± 0.1", "0.200", "0.3", "2")
