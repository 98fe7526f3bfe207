"""What the model does not use is in all that is printed of a study."""

from __future__ import annotations

import html
import json
import sys

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from stoic import cli
from stoic.integrations.optuna import explain
from stoic.integrations.optuna.unmodelled import unmodelled
from stoic.refusal import RefusalError
from stoic.tuning.views import pictures, timeline
from stoic.tuning.views.certificate import Certificates
from stoic.tuning.views.records import best_records
from stoic.tuning.views.report import Report
from stoic.tuning.views.summary import Summary
from stoic.tuning.views.trust import Trust

X, XM = ({name: FloatDistribution(0.0, 1.0) for name in names} for names in ("x", "xm"))


def study_of(*constraints: float | None) -> optuna.Study:
    """A trial with each of these constraints, or none; each has a better value."""
    study = optuna.create_study(study_name="s")
    for i, value in enumerate(constraints):
        study.add_trial(
            create_trial(
                value=1.0 - 0.1 * i,
                params={"x": 0.1 * i},
                distributions=X,
                system_attrs={} if value is None else {"constraints": [value]},
            )
        )
    return study


@pytest.fixture
def study() -> optuna.Study:
    """Trials 1 and 3 violate a constraint, 5 is pruned, 4 and 6 have steps of their own."""
    study = study_of(-1.0, 1.0, -1.0, 1.0)
    study.add_trial(create_trial(value=2.0, params={"x": 0.9, "m": 0.5}, distributions=XM))
    study.add_trial(create_trial(state=TrialState.PRUNED, params={"x": 0.95}, distributions=X))
    wide = X | {"m": FloatDistribution(0.0, 1.0, step=0.5)}
    study.add_trial(create_trial(value=2.1, params={"x": 0.8, "m": 0.5}, distributions=wide))
    return study


def test_the_words_and_the_record(study):
    summary = Summary.of(study)
    said = unmodelled(study.trials)
    assert [word for each in said for word in ("constraint", " m,", "pruned") if word in each] == [
        "constraint",
        " m,",
    ]
    lines = summary.text().splitlines()
    at = lines.index("infeasible     2 violate a constraint, or may: 1, 3")
    assert lines[at + 1 : at + 1 + len(said)] == [f"not modelled   {sentence}" for sentence in said]
    record = json.loads(json.dumps(summary.record(), allow_nan=False))
    assert record["observed_best"]["number"] == 2  # the best that is feasible
    assert (record["infeasible"], record["unmodelled"]) == ([1, 3], list(said))


def test_of_a_study_that_is_modelled_entirely_nothing_is_said():
    summary = Summary.of(study_of(None, None))
    assert not {"infeasible", "modelled"} & set(summary.text().split())
    assert (summary.record()["infeasible"], summary.record()["unmodelled"]) == ([], [])


def test_before_there_is_a_value_it_is_said_too():
    pruned = optuna.create_study()
    attrs = {"stoic:censored": "bad"}
    pruned.add_trial(create_trial(state=TrialState.PRUNED, user_attrs=attrs))
    assert "not modelled   Trial 0: stoic:censored is not used" in Summary.of(pruned).text()


def test_the_command_line_says_it(study, tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    optuna.copy_study(
        from_study_name="s", from_storage=study._storage, to_storage=url, to_study_name="s"
    )
    verbosity = optuna.logging.get_verbosity()
    for command in ("show", "trust"):
        monkeypatch.setattr(sys, "argv", ["stoic", command, "--storage", url])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        assert not ending.value.code
        printed = capsys.readouterr()
        assert "2 violate a constraint, or may: 1, 3" in (
            printed.out if command == "show" else printed.err
        )
        assert ("not modelled   " in printed.out) == (command == "show")
    optuna.logging.set_verbosity(verbosity)


def test_a_picture_marks_what_violates_a_constraint_as_infeasible(study, tmp_path):
    trust = Trust.of(study)
    assert trust.failed == {1: "infeasible", 3: "infeasible"}
    pictures.write_picture(timeline.draw(trust), tmp_path / "trust.svg")
    assert [row.number for row in trust.rows] == [0, 1, 2, 3, 4, 6]


def test_the_page_says_it(study):
    pytest.importorskip("plotly", reason="the extra report is not installed")
    page = Report.of(study).page()
    likely = f"feasible with probability {explain(study).feasible:.2f}"
    for sentence in (*unmodelled(study.trials), "2 violate a constraint, or may: 1, 3", likely):
        assert html.escape(sentence) in page


def test_where_all_violate_a_constraint_it_is_the_reason(tmp_path):
    study = study_of(1.0, 2.0)
    assert "observed best  none: no feasible trial has a finite value" in Summary.of(study).text()
    with pytest.raises(RefusalError, match="satisfies its constraints and has a finite value"):
        best_records(study, "json")
    with pytest.raises(RefusalError, match="satisfies its constraints yet"):
        Certificates.of(study, {"tolerance": {"x": 0.1}})
    pictures.write_picture(timeline.draw(Trust.of(study)), tmp_path / "trust.svg")


def test_where_all_violate_a_constraint_there_is_a_page():
    pytest.importorskip("plotly", reason="the extra report is not installed")
    assert "2 violate a constraint, or may: 0, 1" in Report.of(study_of(1.0, 2.0)).page()
