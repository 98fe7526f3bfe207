"""What a study has come to, in words, in JSON and on a terminal."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
from rich.console import Console

from stoic.integrations.optuna import FAILED, Explanation, Row
from stoic.refusal import RefusalError
from stoic.tuning import explaining
from stoic.tuning.program import Result
from stoic.tuning.study import COMMAND, open_study
from stoic.tuning.views.display import Lines, LiveTable, display
from stoic.tuning.views.durations import duration
from stoic.tuning.views.records import best_records, render, trial_record
from stoic.tuning.views.report import Report
from stoic.tuning.views.summary import Summary
from stoic.tuning.views.trust import Trust

SPACE = {"x": FloatDistribution(0, 1), "k": CategoricalDistribution(["a", "b"])}


def add(study: optuna.Study, x: float, value: float | None, **user_attrs: str) -> FrozenTrial:
    study.add_trial(
        create_trial(
            state=TrialState.FAIL if value is None else TrialState.COMPLETE,
            value=value,
            params={"x": x, "k": "a"},
            distributions=SPACE,
            user_attrs=user_attrs,
        )
    )
    return study.trials[-1]


@pytest.fixture
def study(monkeypatch) -> optuna.Study:
    """Five trials and what is thought of them: made up here, so that the words can be checked."""
    made = open_study(
        optuna.storages.InMemoryStorage(), "s", "maximize", SPACE, RandomSampler(), ("run", "{x}")
    )
    add(made, 0.1, 0.5)
    add(made, 0.2, 1e6)
    disk = {"failure": "exit code 1", "stderr": "Traceback\nOSError: disk full"}
    add(made, 0.3, None, **disk, **{FAILED: "transient"})
    add(made, 0.4, 0.75)
    add(made, 0.5, -math.inf)
    add(made, 0.6, None, failure="exit code 1")
    made.ask()

    def explain(study: optuna.Study, recipe: None, **which: object) -> Explanation:
        trials = study.trials
        return Explanation(
            observed_best=trials[1],
            recommended=trials[3],
            recommended_mean=0.74,
            recommended_std=0.02,
            model_optimum={"x": 0.45, "k": "a"},
            model_optimum_mean=0.8,
            rows=(
                Row(0, 0.5, 0.52, 0.03, 1.0),
                Row(1, 1e6, 0.6, 0.03, 0.0),
                Row(3, 0.75, 0.7, 0.05, 0.93),
                Row(4, -math.inf, 0.72, 0.06, 0.0),
            ),
            left_out={7: "x=0.7, k=a"},
        )

    monkeypatch.setattr(explaining, "explain", explain)
    return made


def test_the_words(study):
    assert Summary.of(study).text().splitlines() == [
        "study s (maximize): 7 trials: 4 complete, 2 fail, 1 running",
        "observed best  trial 1: observed 1e+06, distrusted (trust 0.00)",
        "               x=0.2  k=a",
        "recommended    trial 3: estimated 0.74 +- 0.02, observed 0.75",
        "               x=0.4  k=a",
        "storage says   its command was: run 0.4",
        "distrusted     2",
        "  trial 1: observed 1e+06, expected 0.6 +- 0.03, trust 0.00",
        "  trial 4: observed -inf, expected 0.72 +- 0.06, trust 0.00",
        "not in model   1, run at no point of the recipe's grid",
        "  trial 7: x=0.7, k=a",
        "failed         2",
        "  1 x exit code 1 (transient): trial 2",
        "    OSError: disk full",
        "  1 x exit code 1: trial 5",
        "    OSError: disk full",
        "running        trial 6, by somebody who left no name "
        "(if that is gone: stoic tell s 6 --failed transient)",
    ]


def test_the_record_is_strict_json(study):
    text = json.dumps(Summary.of(study).record(), allow_nan=False)
    record = json.loads(text)
    assert record["observed_best"] == {"number": 1, "params": {"x": 0.2, "k": "a"}, "value": 1e6}
    assert record["recommended"]["number"] == 3
    assert record["recommended"]["mean"] == 0.74
    assert record["distrusted"] == [1, 4]
    assert record["left_out"] == {"7": "x=0.7, k=a"}
    assert record["trials"][3] == {
        "number": 4,
        "value": "-inf",
        "expected": 0.72,
        "sd": 0.06,
        "trust": 0.0,
    }
    assert record["failed"] == {"exit code 1": [2, 5]}
    assert record["failures"] == [
        {"number": 2, "reason": "exit code 1", "kind": "transient"},
        {"number": 5, "reason": "exit code 1", "kind": None},
    ]
    assert record["running"] == {"6": "somebody who left no name"}
    assert record["command"] == "run 0.4"


def test_a_study_that_goes_on_is_read_once(monkeypatch):
    going = optuna.create_study(sampler=RandomSampler(seed=0))
    going.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    read = going.get_trials

    def meanwhile(*said: object, **more: object) -> list[FrozenTrial]:
        trials = read(*said, **more)
        going.add_trial(trials[0])
        going.add_trial(create_trial(state=TrialState.FAIL))
        return trials

    monkeypatch.setattr(going, "get_trials", meanwhile)
    summary = Summary.of(going)
    assert summary.counts == {"complete": 5}
    assert [row.number for row in summary.explanation.rows] == [0, 1, 2, 3, 4]
    trust = Trust.of(going)
    assert len(trust.rows) == 6
    assert trust.failed.keys() == {6}


def test_what_is_given_is_said():
    lived = optuna.create_study(study_name="l", sampler=RandomSampler(seed=1))
    for number in range(12):
        trial = lived.ask(SPACE)
        lived.tell(trial, abs(trial.params["x"] - 0.5) + 0.01 * number)
    number, x = min(
        ((t.number, t.params["x"]) for t in lived.trials if t.params["k"] == "b"),
        key=lambda pair: lived.trials[pair[0]].value,
    )
    summary = Summary.of(lived, None, {"k": "b"})
    lines = summary.text().splitlines()
    assert lines[1] == "given          k=b, for which this is the best:"
    assert lines[2].startswith(f"observed best  trial {number}: observed ")
    assert lines[3] == f"               x={x}  k=b"
    assert summary.record()["fixed"] == {"k": "b"}
    assert summary.record()["recommended"]["params"]["k"] == "b"
    assert best_records(lived, "json", None, {"k": "b"})["number"] == number

    summary = Summary.of(lived, None, {"x": 0.25})
    lines = summary.text().splitlines()
    assert lines[1:3] == [
        "given          x=0.25, for which this is the best:",
        "observed best  none: no such trial has a finite value",
    ]
    assert lines[3].startswith(
        "recommended    by the model alone, no such trial is trusted: estimated "
    )
    assert lines[3].endswith(", not run")
    assert lines[4].lstrip().split() in (["k=a", "x=0.25"], ["k=b", "x=0.25"])
    recommended = json.loads(json.dumps(summary.record()))["recommended"]
    assert (recommended["number"], recommended["value"]) == (None, None)
    assert recommended["params"]["x"] == 0.25
    assert recommended["mean"] == summary.explanation.recommended_mean
    assert summary.record()["command"] is None
    with pytest.raises(RefusalError, match=r"study 'l' with x=0\.25 is trusted"):
        best_records(lived, "table", None, {"x": 0.25})


def test_a_study_without_a_value_is_summarised_too():
    empty = optuna.create_study()
    assert "no trial has a value yet" in Summary.of(empty).text()
    record = Summary.of(empty).record()
    assert record["observed_best"] is record["recommended"] is record["model_optimum"] is None
    with pytest.raises(RefusalError, match="has a finite value yet"):
        best_records(empty, "json")


def test_a_command_recorded_by_something_else_is_left_out(study):
    for recorded in (["run", "{unknown}"], ["run", "{"], "run {x}", 3):
        study.set_user_attr(COMMAND, recorded)
        assert Summary.of(study).command is None


def test_many_failures_take_one_line(study):
    for _ in range(30):
        add(study, 0.5, None, failure="timeout after 5 s")
    lines = Summary.of(study).text().splitlines()
    assert (
        "  30 x timeout after 5 s: trials 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 and 18 more"
        in lines
    )


def test_many_reasons_take_a_page(study):
    for number in range(40):
        add(study, 0.5, None, failure=f"cannot start: error {number}")
    lines = Summary.of(study).text().splitlines()
    assert "  1 x exit code 1: trial 5" in lines  # the most frequent first
    assert "  and 22 more, see stoic show --json" in lines
    assert len(Summary.of(study).record()["failed"]) == 41


def test_a_pipe_gets_one_line_for_each_trial(study):
    out = io.StringIO()
    console = Console(file=out)
    calls = []

    def explain() -> Explanation | None:
        calls.append(1)
        return explaining.explanation(study)

    with display(console, 10) as observer:
        assert isinstance(observer, Lines)
        observer.orphaned([3, 4])
        observer.ended(study.trials[1], Result(1e6, None, "", 1.0), explain)
        failed = Result(None, "exit code 1", "", 1.0, "transient")
        observer.ended(study.trials[2], failed, explain)
        observer.ended(study.trials[5], Result(0.5, None, "", 1.0), lambda: None)
    assert out.getvalue().splitlines() == [
        "trials 3, 4  failed: its worker died (transient)",
        "trial 1  x=0.2  k=a  value 1e+06  trust 0.00 (distrusted)  "
        "recommended trial 3 (0.74 +- 0.02)",
        "trial 2  x=0.3  k=a  failed: exit code 1 (transient)  recommended trial 3 (0.74 +- 0.02)",
        "trial 5  x=0.6  k=a  value 0.5  not stored: somebody else ended it as fail",
    ]
    assert len(calls) == 2, "explaining costs a fit: once a trial"


WHY = "2 of 4 results contradict the others: measure again."


@pytest.fixture
def contradictory(study, monkeypatch):
    """The same, and the best is unknown."""
    known = replace(explaining.explanation(study), undecided=WHY, repeats=1)
    monkeypatch.setattr("stoic.tuning.explaining.explain", lambda *_, **__: known)
    return study


def test_everything_says_that_a_study_is_undecided_and_the_best_unconfirmed(contradictory):
    known = explaining.explanation(contradictory)
    text = Summary.of(contradictory).text()
    assert f"undecided      {WHY}" in text
    assert "observed 0.75, once: not confirmed" in text
    cards = {card.title: card for card in Report.of(contradictory).cards()}
    assert cards["Undecided"].text == WHY
    said = "trial 3, observed 0.75, once: not confirmed; all others expect 0.7 ± 0.05"
    assert cards["Recommended"].text == said
    assert "once: not confirmed; all others expect 0.7 +- 0.05\n" in text
    assert "others expect" not in str(replace(known, repeats=2))
    assert "others expect" not in str(replace(known, recommended_mean=0.65))  # beyond both
    assert "not confirmed, failed 2 times there" in str(replace(known, failures=2))
    decided, result = replace(known, undecided=None), Result(0.5, None, "", 1.0)
    trial, out = contradictory.trials[0], io.StringIO()
    with display(Console(file=out), 10) as observer:
        for thought in (decided, known, None, known):
            observer.ended(trial, result, lambda thought=thought: thought)
    first, second, why, _, last = out.getvalue().splitlines()
    assert "undecided" not in first
    assert second == last
    assert second.endswith("recommended trial 3 (0.74 +- 0.02, undecided)")
    assert why == f"undecided: {WHY}", "once"
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=30)
    with display(console, 10) as observer:
        observer.ended(trial, result, lambda: known)
        drawn = Console(file=io.StringIO(), width=100, record=True)
        drawn.print(observer._draw())
    assert f"undecided: {WHY}" in drawn.export_text()


def test_the_live_table_shows_trust_and_the_recommended_trial(study):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=30, color_system=None)
    with display(console, 10) as observer:
        assert isinstance(observer, LiveTable)
        for number in (0, 1, 2, 3):
            trial = study.trials[number]
            observer.begun(Trial(study, trial._trial_id))
            value = trial.value if trial.values else None
            result = Result(value, None if trial.values else "exit code 1", "", 1.0)
            observer.ended(trial, result, lambda: explaining.explanation(study))
        drawn = Console(file=io.StringIO(), width=100, record=True)
        drawn.print(observer._draw())
    text = drawn.export_text()
    rows = [line.split() for line in text.splitlines()]
    cells = [[word for word in row if word not in "│┃|"] for row in rows]
    assert ["0", "0.1", "a", "0.5", "0", "s", "1.00"] in cells
    assert ["1", "0.2", "a", "1e+06", "0", "s", "0.00"] in cells
    assert ["2", "0.3", "a", "exit", "code", "1", "0", "s"] in cells
    assert ["3", "0.4", "a", "0.75", "0", "s", "0.93", "<--"] in cells
    assert "4 of 10 trials begun in " in text
    assert ", 0 s each; recommended so far: trial 3 (0.74 +- 0.02)" in text


def test_durations_are_said_in_one_or_two_units():
    said = {0.0: "0 s", 0.312: "0.31 s", 9.97: "10 s", 59.4: "59 s", 250.0: "4 min 10 s"}
    said |= {240.0: "4 min", 7500.0: "2 h 5 min", 90000.0: "1 d 1 h"}
    assert {seconds: duration(seconds) for seconds in said} == said


def test_a_table_longer_than_the_screen_shows_its_end(study):
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=20)
    table = LiveTable(1000, console)
    for number in range(500):
        table.rows.append((number, {"x": 0.5}, "1", ""))
    assert table._table().row_count == 12


def test_the_formats(study):
    listed = [trial_record(trial) for trial in study.trials[:2]]
    assert json.loads(render(listed, "json"))[1]["params"] == {"x": 0.2, "k": "a"}
    assert json.loads(render(listed[0], "json", flatten=True))["params_x"] == 0.1
    assert "params:\n    x: 0.1" in render(listed, "yaml")
    assert render([{"a": 1, "b": None}, {"a": 22, "c": "x"}], "value") == "1  \n22  x"
    assert render([{"a": 1, "b": "x"}, {"a": 22, "b": None}], "table").splitlines() == [
        "+----+---+",
        "|  a | b |",
        "+----+---+",
        "|  1 | x |",
        "| 22 |   |",
        "+----+---+",
    ]
    assert render([], "json") == "[]"
    assert "+" in render([], "table")


def test_the_columns_are_those_of_optuna(study):
    record = trial_record(study.trials[0])
    assert list(record) == [
        "number",
        "value",
        "datetime_start",
        "datetime_complete",
        "duration",
        "params",
        "user_attrs",
        "state",
    ]


def test_best_and_recommended_are_both_named(study):
    both = best_records(study, "table")
    assert [(row["which"], row["number"]) for row in both] == [
        ("observed best", 1),
        ("recommended", 3),
    ]
    nested = best_records(study, "json")
    assert nested["number"] == 1
    assert nested["recommended"]["number"] == 3
    assert nested["recommended"]["mean"] == 0.74


@pytest.mark.parametrize("values", [[2.0], [1.0, 1.0], [math.inf, 1.0]])
def test_without_a_scale_nobody_expects_anything(values):
    study = optuna.create_study()
    for x, value in zip((0.2, 0.9), values, strict=False):
        params, space = {"x": x}, {"x": SPACE["x"]}
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=value))
    said = str(explaining.explanation(study))
    assert "once: not confirmed" in said
    assert "others expect" not in said
