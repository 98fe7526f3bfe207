"""Which results are distrusted, in records and in a picture."""

from __future__ import annotations

import json
import math

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from stoic.integrations.optuna import Explanation, Row
from stoic.printable import written
from stoic.refusal import RefusalError
from stoic.tuning.views import pictures, timeline
from stoic.tuning.views.timeline import draw, limits
from stoic.tuning.views.trust import Trust, verdict

ROWS = (
    Row(0, 0.5, 0.52, 0.03, 1.0, 0.04, 0.51, 0.2),
    Row(1, 1e6, 0.6, 0.03, 0.0, 0.04, 0.6, 0.2),
    Row(3, 0.75, 0.7, 0.05, 0.93, 0.0),
    Row(4, -math.inf, 0.72, 0.06, 0.0, 0.04, 0.72, 0.2),
    Row(5, 0.85, 0.72, 0.06, 0.31, 0.08, 0.72, 0.1),
    Row(6, -1e300, 0.72, 0.06, 0.0, 0.04, 0.72, 0.2),
)


def judged(rows=ROWS, **failed) -> Trust:
    space = {"x": FloatDistribution(0, 1)}
    best = create_trial(value=0.75, params={"x": 0.5}, distributions=space)
    best.number = 3
    known = Explanation(best, best, 0.74, 0.02, {"x": 0.45}, 0.8, rows)
    return Trust("s", "maximize", known, failed.get("failed", {2: "infeasible", 7: None}))


def test_distrusted_ones_come_first_and_the_reason_is_there():
    records = judged().records()
    assert [record["number"] for record in records] == [1, 4, 5, 6, 0, 3]
    assert records[2] == {
        "number": 5,
        "told": 0.85,
        "expected": 0.72,
        "sd": 0.06,
        "residual": pytest.approx(1.3),  # 0.13 in units of 0.1 = hypot(0.06, 0.08)
        "centre": 0.72,
        "half_width": 0.1,
        "trust": 0.31,
        "verdict": "distrusted, too high",
    }
    assert [record["verdict"] for record in records] == [
        "left out, too high",
        "left out, too low",
        "distrusted, too high",
        "left out, too low",
        "trusted",
        "trusted",
    ]
    assert records[-1]["half_width"] is None
    assert records[1]["told"] == records[1]["residual"] == "-inf"


def test_the_lines_are_short_and_the_object_is_strict_json():
    line = judged().lines()[2]
    assert line["plateau"] == "0.72 +- 0.1"
    assert line["residual"] == "+1.3"
    assert judged().lines()[-1]["plateau"] is None
    record = json.loads(json.dumps(judged().record(), allow_nan=False))
    assert record["distrusted"] == [1, 4, 5, 6]
    assert record["failed"] == {"2": "infeasible", "7": None}
    assert record["direction"] == "maximize"


def test_a_value_as_expected_lies_on_no_side():
    assert verdict(Row(0, 1.0, 1.0, 0.1, 0.2)) == "distrusted"
    assert verdict(Row(0, math.inf, math.inf, 0.0, 0.0)) == "left out"
    assert verdict(Row(0, math.inf, -0.0, math.inf, 0.0)) == "left out, too high"


def test_a_value_has_the_digits_that_its_deviation_tells_apart():
    assert written(1e9 + 0.25, 6.4e-6) == "1000000000.25"
    assert written(1e6, 6.4e-6) == "1e+06"
    assert written(1.23456789, 0.1) == written(1.23456789, math.inf) == "1.23457"
    assert written(math.inf, 0.1) == "inf"


def test_lies_do_not_move_the_axis():
    low, high = limits(list(ROWS))
    assert (low, high) == limits([row for row in ROWS if row.trust >= 0.5 or row.number == 5])
    assert low == pytest.approx(0.49 - 0.35 * (0.78 - 0.49))
    assert high == pytest.approx(0.78 + 0.35 * (0.78 - 0.49))
    for rows in (
        [],
        [Row(0, 3.0, 3.0, 0.0, 1.0)],
        [Row(0, 0.0, 0.0, 0.0, 1.0)],
        [Row(0, math.inf, math.inf, 0.0, 1.0)],
        [Row(0, -1e308, 0.0, 0.0, 1.0), Row(1, 1e308, 0.0, 0.0, 1.0)],
    ):
        low, high = limits(rows)
        assert math.isfinite(low)
        assert math.isfinite(high)
        assert low < high


def test_what_is_off_the_scale_is_an_arrow_at_the_edge_with_its_value():
    picture = draw(judged())
    axes, colours = picture.axes
    low, high = axes.get_ylim()
    assert {(text.get_text(), text.xy) for text in axes.texts} == {
        ("1e+06", (1, high)),
        ("-inf", (4, low)),
        ("-1e+300", (6, low)),
    }
    points = [
        (round(x), y)
        for drawn in axes.collections
        if isinstance(drawn, PathCollection) and drawn.get_offset_transform() == axes.transData
        for x, y in drawn.get_offsets()
    ]
    assert sorted(points) == sorted(
        [(0, 0.5), (3, 0.75), (5, 0.85), (3, 0.75), (1, high), (4, low), (6, low)]
    )
    assert axes.get_ylabel() == "observed value (maximize)"
    assert colours.get_ylabel().startswith("trust")
    (legend,) = picture.legends
    assert {text.get_text() for text in legend.get_texts()} == {
        "expected from all others, +- sd",
        "trusted (2)",
        "distrusted (4)",
        "failed: infeasible (1)",
        "failed (1)",
        "recommended (trial 3)",
    }


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:1],
        (Row(0, math.inf, math.inf, 0.0, 1.0),),
        (Row(0, -1e308, 0.0, 1.0, 1.0), Row(1, 1e308, 0.0, 1.0, 1.0)),
        tuple(Row(i, (-10.0) ** i, 0.0, 1.0, 0.0) for i in range(60)),
        tuple(Row(i, 2.0, 2.0, 0.0, 1.0) for i in range(300)),
    ],
    ids=["one", "infinite", "huge", "all distrusted", "constant"],
)
def test_any_study_can_be_drawn(rows, tmp_path):
    FigureCanvasAgg(draw(judged(rows))).draw()
    pictures.write_picture(timeline.draw(judged(rows)), tmp_path / "a.svg")
    assert "trust in each result" in (tmp_path / "a.svg").read_text()


def test_a_picture_that_cannot_be_written_is_refused(tmp_path):
    for name in ("a", "a.txt", ".png", "no/a.png"):
        with pytest.raises(RefusalError):
            pictures.check_picture(tmp_path / name)
    pictures.check_picture(tmp_path / "a.PNG")
    (tmp_path / "there.png").mkdir()
    with pytest.raises(RefusalError, match="Cannot write"):
        pictures.write_picture(timeline.draw(judged()), tmp_path / "there.png")
