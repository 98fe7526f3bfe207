"""How far settings may be moved: in words, in records and in a picture."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from stoic.integrations.optuna import EXECUTED, explain
from stoic.integrations.optuna.internals import constraint_attrs
from stoic.integrations.optuna.objective import RobustObjective, record_aim
from stoic.refusal import RefusalError
from stoic.tuning.views import moves, pictures
from stoic.tuning.views.certificate import Certificates
from stoic.tuning.views.moves import draw
from stoic.tuning.views.summary import Summary, certificate_record

SPACE = {"heat": FloatDistribution(0.0, 100.0), "rate": FloatDistribution(0.01, 100.0, log=True)}
SAID = {"threshold": 0.5, "tolerance": {"heat": 2.0}}


def bowl(heat, rate):
    return (heat - 60.0) ** 2 / 400.0 + np.log10(rate) ** 2


@pytest.fixture(params=[pytest.param("minimize", marks=pytest.mark.slow), "maximize"])
def study(request) -> optuna.Study:
    """30 noisy results of a bowl, and a lucky one beside its summit."""
    sign = 1.0 if request.param == "minimize" else -1.0
    made = optuna.create_study(study_name="oven", direction=request.param)
    rng = np.random.default_rng(0)
    rows = [(rng.uniform(0.0, 100.0), 10.0 ** rng.uniform(-2.0, 2.0)) for _ in range(30)]
    for heat, rate in [*rows, (44.0, 1.0)]:
        value = -0.1 if heat == 44.0 else bowl(heat, rate) + 0.2 * rng.normal()
        made.add_trial(
            create_trial(
                params={"heat": heat, "rate": rate}, distributions=SPACE, value=sign * value
            )
        )
    return made


def said(study, **other):
    sign = 1.0 if study.direction.name == "MINIMIZE" else -1.0
    return {**SAID, "threshold": sign * 0.5, **other}


def test_the_words(study):
    found = Certificates.of(study, said(study))
    lines = found.text().splitlines()
    op = "<= 0.5" if found.direction == "minimize" else ">= -0.5"
    assert lines[0].startswith("recommended    trial ")
    assert lines[2].startswith(f"certificate    value {op} as long as heat is closer than ")
    assert lines[3] == f"observed best  trial 30: observed {study.trials[30].value:g}"
    assert lines[4] == "               heat=44.0  rate=1.0"
    table = [line for line in lines if line.startswith("|")]
    assert [cell.strip() for cell in table[0].split("|")[1:-1]] == [
        "moved by (tolerances)",
        "recommended: guaranteed",
        "recommended: expected",
        "observed best: guaranteed",
        "observed best: expected",
    ]
    assert [line.split("|")[1].strip() for line in table[1:5]] == ["0", "0.5", "1", "1.5"]


def test_a_distrusted_observed_best_has_no_certificate(study):
    best = -1e6 if study.direction.name == "MINIMIZE" else 1e6
    params = {"heat": 55.0, "rate": 0.1}
    study.add_trial(create_trial(params=params, distributions=SPACE, value=best))
    found = Certificates.of(study, said(study))
    assert found.explanation.observed_best.number == 31
    assert list(found.both) == ["recommended"]
    lines = found.text().splitlines()
    assert any(
        line.startswith("observed best  trial 31") and "distrusted" in line for line in lines
    )


def test_a_certificate_of_an_undecided_study_says_so(study):
    found = Certificates.of(study, said(study))
    doubtful = replace(found, explanation=replace(found.explanation, undecided="they contradict."))
    assert "undecided      they contradict." in doubtful.text().splitlines()
    assert doubtful.record()["undecided"] == "they contradict."
    assert found.record()["undecided"] is None


def test_what_is_said_is_so(study):
    """The true bowl stays within the guaranteed values, at the sizes of the table and between."""
    found = Certificates.of(study, said(study)).explanation.certified
    heat, rate = found.params["heat"], found.params["rate"]
    assert abs(heat - 60.0) < 5.0
    sign = 1.0 if found.minimise else -1.0
    for size, worst in zip(found.curve.sizes, sign * found.curve.pessimistic, strict=True):
        moved = np.clip(heat + 2.0 * size * np.linspace(-1.0, 1.0, 21), 0.0, 100.0)
        assert np.max(bowl(moved, rate)) <= worst + 1e-3
    assert bowl(heat + found.within["heat"], rate) <= 0.5
    assert bowl(heat - found.within["heat"], rate) <= 0.5


def test_the_object_is_strict_json(study):
    found = Certificates.of(study, said(study, tolerance={"heat": 2.0, "rate": 1.1}))
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert record["study"] == "oven"
    assert record["observed_best"]["number"] == 30
    held = record["recommended"]["certificate"]
    assert held["value"] == said(study)["threshold"]
    assert held["within"]["rate"] == pytest.approx(1.1 ** held["radius"])
    assert held["reachable"]
    assert held["p"] == "inf"
    assert " and rate is less than a factor of" in held["sentence"]
    curve = record["recommended"]["curve"]
    assert {len(values) for values in curve.values()} == {121}
    # And what is out of reach.
    sign = 1.0 if found.direction == "minimize" else -1.0
    far = Certificates.of(study, said(study, threshold=-9.0 * sign))
    held = far.record()["recommended"]["certificate"]
    assert not held["reachable"]
    assert sign * held["best_possible"] > -9.0
    assert (held["within"], held["radius"]) == ({}, "-inf")
    assert f"threshold      {-9.0 * sign:g} is out of reach" in far.text()
    json.dumps(far.record(), allow_nan=False)


def test_what_the_study_was_begun_with_is_used_unless_something_else_is_said(study):
    with pytest.raises(RefusalError, match="give one, as in --tolerance heat=2"):
        Certificates.of(study, {})
    record_aim(study, RobustObjective(**said(study)))
    assert Certificates.of(study, {}).explanation.certified.aim == RobustObjective(**said(study))
    wider = Certificates.of(study, {"tolerance": {"heat": 4.0}}).explanation.certified
    narrow = Certificates.of(study, {}).explanation.certified
    assert wider.certificate.radius == pytest.approx(narrow.certificate.radius / 2.0, rel=0.05)
    stable = Certificates.of(study, {"policy": "stable", "radius": 2.0}).explanation.certified
    assert stable.aim == RobustObjective(policy="stable", radius=2.0, tolerance={"heat": 2.0})
    assert stable.within == {"heat": 4.0}
    with pytest.raises(RefusalError, match="no parameter 'haet': did you mean 'heat'"):
        Certificates.of(study, {"tolerance": {"haet": 2.0}})
    record_aim(study, RobustObjective(threshold="adaptive", margin=0.1, tolerance={"heat": 2.0}))
    number = Certificates.of(study, {"threshold": 0.5}).explanation.certified
    assert number.aim == RobustObjective(threshold=0.5, tolerance={"heat": 2.0})
    record_aim(study, RobustObjective(policy="stable", radius=2.0, tolerance={"heat": 2.0}))
    number = Certificates.of(study, {"threshold": 0.5}).explanation.certified
    assert number.aim == RobustObjective(threshold=0.5, tolerance={"heat": 2.0})
    record_aim(study, RobustObjective(**said(study)))
    # What is only asked about is not recorded.
    assert Certificates.of(study, {}).explanation.certified.aim == RobustObjective(**said(study))


def test_a_study_without_values_is_refused():
    empty = optuna.create_study()
    with pytest.raises(RefusalError, match="has a value yet"):
        Certificates.of(empty, SAID)


def test_the_summary_has_the_certificate(study):
    assert Summary.of(study).record()["certificate"] is None
    assert "certificate" not in Summary.of(study).text()
    record_aim(study, RobustObjective(**said(study)))
    summary = Summary.of(study)
    sentence = Certificates.of(study, {}).explanation.certified.sentence()
    assert f"certificate    {sentence}" in summary.text().splitlines()
    assert summary.record()["certificate"]["sentence"] == sentence
    sign = 1.0 if summary.direction == "minimize" else -1.0
    record_aim(study, RobustObjective(threshold=-9.0 * sign, tolerance={"heat": 2.0}))
    lines = Summary.of(study).text().splitlines()
    assert any(line.startswith(f"threshold      {-9.0 * sign:g} is out of reach") for line in lines)
    assert any(line.startswith("certificate    nothing: value ") for line in lines)


def test_the_summary_says_what_was_executed(study):
    for heat in (55.0, 612.0):
        study.add_trial(
            create_trial(
                params={"heat": 50.0, "rate": 1.0},
                distributions=SPACE,
                value=0.25,
                user_attrs={EXECUTED: {"heat": heat}},
            )
        )
    summary = Summary.of(study)
    lines = summary.text().splitlines()
    said = "2 of 33 trials say what was run, and count there, but for parts of 1, see below"
    assert f"executed       {said}" in lines
    assert any(line.startswith("not modelled   Trial 32: heat was 612") for line in lines)
    rows = summary.record()["trials"]
    assert "executed" not in rows[0]
    assert rows[31]["executed"] == {"heat": 55.0, "rate": 1.0}
    assert "refused" not in rows[31]
    assert "612" in rows[32]["refused"][0]


def test_the_picture(study):
    found = Certificates.of(study, said(study))
    picture = draw(found)
    FigureCanvasAgg(picture).draw()
    axes = picture.axes[0]
    thick = [line for line in axes.lines if line.get_linewidth() == 2.2]
    assert len(thick) == 2
    curve = found.explanation.certified.curve
    np.testing.assert_array_equal(thick[0].get_ydata(), curve.pessimistic)
    np.testing.assert_array_equal(thick[0].get_xdata(), curve.sizes)
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    assert marks[0].get_xdata()[0] == found.explanation.certified.certificate.radius
    assert marks[0].get_ydata()[0] == said(study)["threshold"]
    assert any(np.allclose(line.get_ydata(), said(study)["threshold"]) for line in axes.lines)
    assert "1 is heat 2" in axes.get_xlabel()


@pytest.mark.parametrize(
    "aim", [{"policy": "stable"}, {"threshold": 3.0}], ids=["one radius", "one value"]
)
def test_marks_that_are_close_are_said_apart(study, aim):
    sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
    aim = {name: sign * value if name == "threshold" else value for name, value in aim.items()}
    found = Certificates.of(study, {"tolerance": {"heat": 2.0}, **aim})
    assert len(found.both) == 2
    picture = draw(found)
    FigureCanvasAgg(picture).draw()
    one, other = (text.get_window_extent() for text in picture.axes[0].texts)
    assert one.y0 > other.y1 or other.y0 > one.y1


@pytest.mark.parametrize(
    "other", [{"threshold": 1e6}, {"threshold": -1e6}, {"tolerance": {"heat": 2.0, "rate": 1.2}}]
)
def test_pictures_of_promises_without_an_end_and_of_none(study, other):
    found = Certificates.of(study, said(study, **other))
    FigureCanvasAgg(draw(found)).draw()
    radii = {certified.certificate.radius for _, certified in found.both.values()}
    assert all(math.isinf(radius) for radius in radii) == ("threshold" in other)
    if math.inf in radii:
        assert "wherever heat is in range" in found.text()


def test_a_picture_is_written(study, tmp_path):
    found = Certificates.of(study, said(study))
    pictures.write_picture(moves.draw(found), tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(RefusalError, match="Cannot write"):
        pictures.write_picture(moves.draw(found), tmp_path / "no" / "c.png")


def test_one_setting_that_is_both_is_shown_once(study):
    only = optuna.create_study()
    for heat in np.linspace(0.0, 100.0, 21):
        only.add_trial(
            create_trial(
                params={"heat": heat},
                distributions={"heat": SPACE["heat"]},
                value=bowl(heat, 1.0),
            )
        )
    found = Certificates.of(only, SAID)
    assert list(found.both) == ["recommended"]
    assert "observed best" not in found.text()
    assert "observed_best" not in found.record()
    FigureCanvasAgg(draw(found)).draw()


def warm(limit, warmth=lambda heat: heat, best=None):
    """A motor that is as warm as it is driven, and is to stay below a limit."""
    study, rng = optuna.create_study(study_name="oven"), np.random.default_rng(1)
    for heat in [*rng.uniform(0.0, 100.0, 25), *([] if best is None else [best])]:
        params = {"heat": heat, "rate": 10.0 ** rng.uniform(-2.0, 2.0) if heat != best else 1.0}
        study.add_trial(
            create_trial(
                params=params,
                distributions=SPACE,
                value=bowl(**params),
                system_attrs=constraint_attrs({"warmth": warmth(heat) - limit}),
            )
        )
    aim = RobustObjective(threshold=0.5, tolerance={"heat": 2.0})
    return explain(study, aim=aim).certified


def test_how_far_constraints_hold_is_said_beside():
    certified = warm(75.0)
    near = (75.0 - certified.params["heat"]) / 2.0
    assert 0.95 * near < certified.constraints_radius <= near
    hold = "; constraints hold with a probability of 0.9 "
    assert f"{hold}as long as heat is closer than " in certified.sentence()
    assert certificate_record(certified)["constraints_radius"] == certified.constraints_radius
    anywhere = warm(140.0)
    assert anywhere.constraints_radius == math.inf
    assert anywhere.sentence().endswith(f"{hold}wherever heat is in range")
    active = warm(60.0, best=60.0 - 1e-6)
    # Nothing else is good enough
    assert active.sentence().endswith("; a constraint may be violated even without any move")


@pytest.mark.parametrize("above", [math.nan, math.inf, 1e6])
def test_violations_that_are_no_numbers_are_a_region_all_the_same(above):
    """Or numbers so large, side by side, that a model takes them for outliers."""
    certified = warm(0.0, lambda heat: above if heat > 75.0 else -1.0 - 1e-3 * heat)
    nearest = (75.0 - certified.params["heat"]) / 2.0
    assert 0.3 * nearest < certified.constraints_radius <= 1.2 * nearest
