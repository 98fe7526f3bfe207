"""Trials from a table that was there before the study."""

import csv
import io
import json
import math
import shlex

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState

from stoic.integrations.optuna import CENSORED, EXECUTED, FAILED, NOISE, VALUES, explain
from stoic.integrations.optuna.internals import constraint_attrs, constraints
from stoic.integrations.optuna.unmodelled import FAILURE
from stoic.refusal import RefusalError
from stoic.tuning.constraint import parse_constraints
from stoic.tuning.space import parse_assignments
from stoic.tuning.table import read_table
from stoic.tuning.views.records import render, trial_record
from studies import add

SPACE = {"x": FloatDistribution(0.0, 1.0), "k": CategoricalDistribution(("a", "b"))}
OLD = """\
date,x,k,value,failed,standard_error
Monday,0.25,a,1.5,,0.1
Monday,0.75,b,,infeasible,
,1,a,nan,,
"""


@pytest.fixture
def table(tmp_path):
    def read(text, space=SPACE):
        path = tmp_path / "old.csv"
        path.write_text(text, encoding="utf-8")
        return read_table(path, space)

    return read


def test_rows_are_finished_trials(table):
    read = table("\ufeff" + OLD)  # as spreadsheets write it
    assert read.unused == ("date",)
    assert read.summary() == "added 3 trials: 1 complete, 2 fail; columns not used: date"
    study = optuna.create_study()
    assert read.without(study).trials == read.trials
    read.add_to(study)
    assert read.without(study).trials == ()
    first, second, third = study.trials[:3]
    assert (first.params, first.value) == ({"x": 0.25, "k": "a"}, 1.5)
    assert first.user_attrs == {NOISE: pytest.approx(0.01)}
    assert (second.state, second.user_attrs) == (TrialState.FAIL, {FAILED: "infeasible"})
    assert (third.state, third.params["x"]) == (TrialState.FAIL, 1.0)


def test_a_row_with_another_result_is_another_trial(table):
    study, x = optuna.create_study(), {"x": SPACE["x"]}
    rows = "x,value,failed,standard_error,censored,constraints_cost\n"
    first = f"{rows}0.5,,transient,,,\n0.1,2,,0.1,,3.0\n0.2,2,,,true,\n0.3,,,,,\n"
    table(first, x).add_to(study)
    study.ask(x)
    study.enqueue_trial({"x": 0.9})
    assert table(first, x).without(study).trials == ()
    rounded = first.replace("3.0", "3.00000000000004")
    assert table(rounded, x).without(study).trials == ()
    others = (
        ("0.5,,transient", "0.5,,infeasible"), ("3.0", "5.0"), ("2,,0.1", "2,,0.2"), ("true", ""),
        ("0.3", repr(study.trials[-2].params["x"])), ("0.3", "0.9"),
    )  # fmt: skip
    for old, other in others:
        assert len(table(first.replace(old, other), x).without(study).trials) == 1


@pytest.mark.parametrize("name", ["value", "number", "failed", "censored", "executed_x"])
def test_a_constraint_reads_no_column_that_is_something_else(table, name, tmp_path):
    text = "x,value,number,failed,censored,executed_x\n0.5,2,7,,,0.6\n"
    (tmp_path / "old.csv").write_text(text)
    limited, x = parse_constraints([f"{name} <= 1"]), {"x": SPACE["x"]}
    (read,) = read_table(tmp_path / "old.csv", x, limited).trials
    assert constraints(read) == {}
    (tmp_path / "old.csv").write_text(
        text.replace("x,v", f"outputs_{name},x,v").replace("0.5", "3,0.5")
    )
    (read,) = read_table(tmp_path / "old.csv", x, limited).trials
    assert list(constraints(read).values()) == [2.0]


def test_a_constraint_without_a_column_is_said(tmp_path):
    """Or refused, if a column is written otherwise."""
    path, limited = tmp_path / "old.csv", parse_constraints(["temp <= 80"])
    path.write_text("x,k,value\n0.5,a,2\n")
    read = read_table(path, SPACE, limited)
    assert read.summary().endswith("; no column for temp, of which nothing is known")
    path.write_text("x,k,value,Temp\n0.5,a,2,70\n")
    with pytest.raises(RefusalError, match="a column 'Temp', and 'temp <= 80' needs 'temp'"):
        read_table(path, SPACE, limited)


def test_a_corrected_setting_of_a_trial_that_ended_is_no_other_trial(table):
    """It was added, so that one result counted twice."""
    study = optuna.create_study()
    add(study, {"x": 0.25, "k": "a"}, SPACE, 1.5)
    add(study, {"x": 0.5, "k": "b"}, SPACE, 2.5)
    header = "number,x,k,value\n"
    with pytest.raises(RefusalError, match=r"Trial 0 ended with x=0\.25, and its row has 0\.75"):
        table(header + "0,0.75,a,1.5\n").numbered(study)
    assert table(header + "0,0.75,a,1.25\n1,0.1,a,2.5\n").numbered(study) == {}  # of another study
    assert list(table(header + "0,0.25,a,1.5\n").numbered(study)) == [0]


@pytest.mark.parametrize("digits", [9, 15])
def test_what_a_spreadsheet_rounded_is_known(table, digits):
    """Excel keeps 15 digits, and writes 9 of them into a CSV file."""
    study, rng = optuna.create_study(), np.random.default_rng(0)
    for k in range(20):
        add(study, {"x": rng.random(), "k": "ab"[k % 2]}, SPACE, rng.normal())
    running = study.ask(SPACE)
    printed = render([trial_record(trial) for trial in study.trials], "csv")

    def shown(cell):
        return f"{float(cell):.{digits}g}".replace(".", ",") if "." in cell else cell

    lines = [";".join(map(shown, line.split(","))) for line in printed.splitlines()]
    assert table("\n".join(lines)).without(study).trials == ()
    assert table("\n".join(lines)).numbered(study) == {}
    unnamed = "\n".join(line.partition(";")[2] for line in lines)  # without numbers
    assert table(unnamed).without(study).trials == ()
    x, k = shown(str(running.params["x"])), running.params["k"]
    assert list(table(f"number;x;k;value\n20;{x};{k};1,5\n").numbered(study)) == [20]


def test_a_corrected_value_in_what_was_exported_is_refused(table):
    """It was added beside the wrong one."""
    study = optuna.create_study()
    add(study, {"x": 0.25, "k": "a"}, SPACE, 45.0)
    printed = render([trial_record(trial) for trial in study.trials], "csv")
    with pytest.raises(RefusalError, match=r"Trial 0 has ended with 45\.0, and its row has 0\.45"):
        table(printed.replace("45.0", "0.45")).numbered(study)
    other = table(printed.replace("0.25", "0.35").replace("45.0", "0.45"))
    assert other.numbered(study) == {}  # of another study
    assert len(other.without(study).trials) == 1


@pytest.mark.parametrize(
    ("column", "same", "other", "reason"),
    [
        ("standard_error", "0.1", "0.2", "a standard error"),
        ("executed_x", "0.3", "0.4", "an executed parameter"),
        ("constraints_c", "-0.2", "0.1", "a value of the constraint"),
    ],
)
def test_what_stands_beside_a_value_that_was_read_before_cannot_be_changed(
    table, column, same, other, reason
):
    """It was left out without a word: a second test of a batch whose first had ended it."""
    study = optuna.create_study()
    add(study, {"x": 0.25, "k": "a"}, SPACE, 1.5)
    header, row = "number,x,k,value", "0,0.25,a,1.5"
    assert list(table(f"{header}\n{row}\n").numbered(study)) == [0]
    with pytest.raises(RefusalError, match=f"Trial 0 has ended, and its row has {reason}"):
        table(f"{header},{column}\n{row},{other}\n").numbered(study)
    study = optuna.create_study()
    table(f"{header},{column}\n{row},{same}\n").add_to(study)
    assert list(table(f"{header}\n{row}\n").numbered(study)) == [0]
    assert list(table(f"{header},{column}\n{row},{same}\n").numbered(study)) == [0]
    with pytest.raises(RefusalError, match=f"its row has {reason}"):
        table(f"{header},{column}\n{row},{other}\n").numbered(study)


def test_a_bound_is_read_again(table):
    study = optuna.create_study()
    add(study, {"x": 0.25, "k": "a"}, SPACE, state=TrialState.PRUNED, attrs={CENSORED: 1.5})
    row = "number,x,k,value,censored\n0,0.25,a,{},true\n"
    assert list(table(row.format("1.5")).numbered(study)) == [0]
    with pytest.raises(RefusalError, match=r"has ended with 1\.5, and its row has 2\.5"):
        table(row.format("2.5")).numbered(study)


def test_a_limit_may_have_been_from_the_other_side(tmp_path):
    path, limited = tmp_path / "old.csv", parse_constraints(["c >= 0.1"])
    rows = [f"0.{k},a,2,0.{k},{0.1 * k - 0.2:g}\n" for k in range(1, 5)]  # c <= 0.2
    path.write_text("".join(["x,k,value,outputs_c,constraints_c\n", *rows]))
    read = read_table(path, SPACE, limited)
    found = [next(iter(constraints(trial).values())) for trial in read.trials]
    assert found == pytest.approx([0.0, -0.1, -0.2, -0.3])


def test_columns_that_contradict_each_other_are_refused(table, tmp_path):
    both = "x,k,value,standard_error,user_attrs_stoic:noise\n0.5,a,2,{},0.04\n"
    assert table(both.format("0.2")).trials[0].user_attrs[NOISE] == 0.04
    reason = "standard_error is 0.3 and user_attrs_stoic:noise is 0.04, a variance: they contradict"
    with pytest.raises(RefusalError, match=reason):
        table(both.format("0.3"))
    path, limited = tmp_path / "old.csv", parse_constraints(["c <= 0.45"])
    for distance in ("-0.02", ""):
        path.write_text(f"x,k,value,outputs_c,constraints_c\n0.5,a,2,0.43,{distance}\n")
        (excess,) = constraints(read_table(path, SPACE, limited).trials[0]).values()
        assert excess == pytest.approx(-0.02)
    header = "x,k,value,outputs_c,constraints_c\n"
    for limit in (0.45, 0.4):  # that of the old study may have been another one
        rows = [f"0.{k},a,2,{0.4 + 0.01 * k:g},{0.4 + 0.01 * k - limit:g}\n" for k in range(1, 4)]
        path.write_text("".join([header, *rows]))
        assert len(read_table(path, SPACE, limited).trials) == 3
        path.write_text("".join([header, *rows, "0.5,a,2,0.43,0.07\n"]))
        reason = (
            r"line 5: outputs_c is 0\.43 and constraints_c, its distance from the limit, is 0\.07"
        )
        with pytest.raises(RefusalError, match=reason):
            read_table(path, SPACE, limited)


def test_each_of_several_objectives_has_a_column(tmp_path):
    path, names = tmp_path / "old.csv", ("loss", "x")
    header = "x,k,loss,values_x,standard_error_loss,standard_error,failed\n"
    rows = "0.1,a,1,30,0.1,7,\n0.2,b,,20,,,\n0.3,a,,,,,bad\n0.4,b,nan,nan,,,\n"
    path.write_text(header + rows)
    read = read_table(path, SPACE, parse_constraints(["loss <= 0.5"]), names)
    assert read.summary() == "added 4 trials: 1 complete, 3 fail; columns not used: standard_error"
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.set_metric_names(list(names))
    read.add_to(study)
    whole, part, failed, none = study.trials
    assert (whole.params["x"], whole.values) == (0.1, [1.0, 30.0])
    assert whole.user_attrs == {NOISE: [pytest.approx(0.01), None]}
    assert list(constraints(whole).values()) == [0.5]  # an objective may have a limit
    assert (part.values, part.user_attrs) == (None, {VALUES: [None, 20.0]})
    assert (failed.user_attrs, none.user_attrs) == ({FAILED: "bad"}, {})
    path.write_text(render([trial_record(t, names) for t in study.trials], "csv"))
    again = read_table(path, SPACE, (), names)
    assert again.without(study).trials == ()
    assert again.numbered(study) == {}
    assert [t.user_attrs.get(NOISE) for t in again.trials] == [
        t.user_attrs.get(NOISE) for t in study.trials
    ]
    path.write_text("number,x,k,loss,values_x\n0,0.1,a,2,30\n")
    with pytest.raises(RefusalError, match=r"ended with 1\.0 and 30\.0, and its row has 2\.0 and"):
        read_table(path, SPACE, (), names).numbered(study)
    for header, reason in (
        ("x,k,loss,value", "needs a column 'x' for the results"),
        ("x,k,value", "needs a column 'loss'"),
    ):
        path.write_text(f"{header}\n{',1' * (header.count(',') + 1)}\n".replace("\n,", "\n"))
        with pytest.raises(RefusalError, match=reason):
            read_table(path, SPACE, (), names)
    errors = "x,k,loss,values_x,standard_error_loss,standard_error_x,user_attrs_stoic:noise\n"
    path.write_text(f'{errors}0.1,a,1,30,0.1,0.123456789,"[0.01, 0.015241579]"\n')
    (agreed,) = read_table(path, SPACE, (), names).trials
    assert agreed.user_attrs[NOISE] == [0.01, 0.015241579]
    path.write_text(f'{errors}0.1,a,1,30,0.1,0.2,"[0.01, 0.01]"\n')
    with pytest.raises(RefusalError, match="standard_error_loss and standard_error_x is"):
        read_table(path, SPACE, (), names)
    study = optuna.create_study(directions=["minimize", "maximize"])
    row = "number,x,k,loss,values_x,standard_error_x\n0,0.1,a,1,30,{}\n"
    path.write_text(row.format(0.123456789))
    read_table(path, SPACE, (), names).add_to(study)
    path.write_text(row.format(0.12345679))
    assert list(read_table(path, SPACE, (), names).numbered(study)) == [0]
    assert read_table(path, SPACE, (), names).without(study).trials == ()
    path.write_text("x,k,values_loss,values_x\n0.1,a,2,30\n")
    (limited,) = read_table(path, SPACE, parse_constraints(["loss <= 0.5"]), names).trials
    assert list(constraints(limited).values()) == [1.5]
    path.write_text("x,k,loss,values_x,failed\n0.1,a,1,,bad\n")
    with pytest.raises(RefusalError, match="a failure does not go with the value 1"):
        read_table(path, SPACE, (), names)


def test_columns_that_may_be_meant_otherwise(table):
    """Those of what was executed are refused before a trial ends."""
    (read,) = table("x,k,value,executed_params_x\n0.5,a,2,0.6\n").trials
    assert read.user_attrs[EXECUTED] == {"x": 0.6}
    with pytest.raises(RefusalError, match=r"'executed_xx'\. There is no parameter 'xx': did you"):
        table("x,k,value,executed_xx\n0.5,a,2,0.6\n")
    said = table("x,k,value,std_error\n0.5,a,2,0.6\n").summary()
    assert said.endswith("; columns not used: std_error (did you mean standard_error?)")
    assert len(table("x;k;value;;\n0,5;a;2;;\n").trials) == 1  # cells that were cleared


def test_what_was_exported_need_not_have_each_parameter(table):
    """After a parameter was added; of the two that run nothing is known."""
    exported = """\
number,value,params_k,params_x,state
0,1.5,,0.25,COMPLETE
1,2.5,a,0.75,COMPLETE
2,,b,0.5,RUNNING
3,,b,0.5,RUNNING
"""
    read = table(exported)
    assert [trial.params for trial in read.trials] == [{"x": 0.25}, {"x": 0.75, "k": "a"}]
    assert read.trials[0].distributions == {"x": SPACE["x"]}
    assert read.summary() == (
        "added 2 trials: 2 complete; 2 rows left out, since the trial has not ended"
    )
    batch = table("number,params_k,params_x,value\n0,,0.25,1.5\n")  # as stoic ask -n writes it
    assert [(trial.number, trial.params) for trial in batch.trials] == [(0, {"x": 0.25})]
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.25})
    assert batch.numbered(study) == {}  # nobody runs it yet
    with pytest.raises(RefusalError, match="There is no parameter 'k'"):
        table(exported.replace("state\n", "state,executed_k\n").replace("COMPLETE", "COMPLETE,a"))
    with pytest.raises(RefusalError, match="the cell of k is empty"):
        table(exported, SPACE | {"k": CategoricalDistribution(("", "a"))})
    with pytest.raises(RefusalError, match="the cell of k is empty"):
        table("x,k,value\n0.25,,1.5\n")


def test_another_encoding_is_said(tmp_path):
    path = tmp_path / "old.csv"
    path.write_bytes("x,value,note\n0.5,1.5,gr\u00fcn\n".encode("latin-1"))
    with pytest.raises(RefusalError, match="it is not in UTF-8"):
        read_table(path, SPACE)


def test_what_trials_prints_is_read_again(table):
    study = optuna.create_study()
    study.add_trial(optuna.create_trial(
        params={"x": 0.5, "k": "a"}, distributions=SPACE, value=math.inf,
        system_attrs=constraint_attrs({"a": -0.5, "b c": 1.0}),
    ))  # fmt: skip
    study.enqueue_trial({"x": 0.1, "k": "b"})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2
                   + len(trial.suggest_categorical("k", ["a", "b"])), n_trials=4)  # fmt: skip
    printed = render([trial_record(trial) for trial in study.trials], "csv")
    again = optuna.create_study()
    table(printed).add_to(again)
    assert [t.params for t in again.trials] == [t.params for t in study.trials]
    assert [t.value for t in again.trials] == [t.value for t in study.trials]
    assert list(map(constraints, again.trials)) == list(map(constraints, study.trials))


def test_a_choice_of_none_comes_back(table):
    space = {"k": CategoricalDistribution([None, "a"]), "x": FloatDistribution(0.0, 1.0)}
    study = optuna.create_study()
    for k, params in enumerate([{"k": None, "x": 0.1}, {"k": "a", "x": 0.2}, {"x": 0.3}]):
        own = {name: space[name] for name in params}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=own, value=float(k)))
    printed = render([trial_record(trial) for trial in study.trials], "csv")
    again = table(printed, space).trials
    assert [trial.params for trial in again] == [trial.params for trial in study.trials]


@pytest.mark.filterwarnings("ignore:Choices for a categorical")
def test_repeated_rows_are_counted_where_choices_are_lists(table):
    study = optuna.create_study()
    space = {"k": CategoricalDistribution([[1, 2], [3]])}
    study.add_trial(optuna.create_trial(params={"k": [3]}, distributions=space, value=1.0))
    assert table("k,value\n[3],1.0\n", space).without(study).trials == ()


def test_records_are_strict_json():
    trial = optuna.create_trial(
        params={"x": 0.5, "k": "a"}, distributions=SPACE, value=-math.inf,
        system_attrs=constraint_attrs({"a": math.nan}),
    )  # fmt: skip
    record = json.loads(render(trial_record(trial), "json"), parse_constant=pytest.fail)
    assert (record["value"], list(record["constraints"].values())) == ("-inf", ["nan"])


def test_failures_errors_bounds_and_states_come_back_too(table):
    study = optuna.create_study()
    for number, (value, state, said) in enumerate([
        (1.0, TrialState.COMPLETE, {NOISE: 0.04}), (2.0, TrialState.COMPLETE, {CENSORED: True}),
        (None, TrialState.FAIL, {FAILED: "infeasible", FAILURE: "exit code 3"}),
        (None, TrialState.PRUNED, {CENSORED: 3.5}),
        (3.0, TrialState.COMPLETE, {EXECUTED: {"x": 0.625, "k": "b"}}),
    ]):  # fmt: skip
        study.add_trial(optuna.create_trial(
            state=state, value=value, params={"x": number / 8, "k": "a"}, distributions=SPACE,
            user_attrs=said,
        ))  # fmt: skip
    study.ask()  # is running, and no result
    printed = render([trial_record(trial) for trial in study.trials], "csv")
    again = optuna.create_study()
    read = table(printed)
    read.add_to(again)
    assert read.unused == ()
    assert [(t.state, t.value, t.user_attrs) for t in again.trials] == [
        (t.state, t.value, t.user_attrs) for t in study.trials[:5]
    ]


def test_a_constraint_that_is_nan_is_not_one_that_was_not_reported(table):
    study = optuna.create_study()
    for excess in ({"size": -1.0}, {"size": math.nan}, {}):
        study.add_trial(optuna.create_trial(
            value=1.0, params={"x": 0.5, "k": "a"}, distributions=SPACE,
            system_attrs=constraint_attrs(excess) if excess else None,
        ))  # fmt: skip
    read = table(render([trial_record(trial) for trial in study.trials], "csv"))
    found = [constraints(trial) for trial in read.trials]
    assert found[0] == {"size": -1.0}
    assert math.isnan(found[1]["size"])
    assert found[2] == {}


def test_a_column_says_what_was_run_instead(table):
    read = table("x,executed_x,executed_k,k,value\n0.5,0.4,,a,1.5\n0.75,,b,a,2\n")
    assert [t.user_attrs[EXECUTED] for t in read.trials] == [{"x": 0.4}, {"k": "b"}]
    assert read.unused == ()
    with pytest.raises(RefusalError) as refused:
        table("x,executed_x,value\n0.5,0.4,1\n0.6,0.7,2\n", {})
    assert "executed_x" not in str(refused.value)
    # What a program reported is kept as it was stored, and judged later
    read = table("x,k,value,user_attrs_stoic:executed\n0.5,a,1,\"{'x': 7.0, 'y': nan}\"\n")
    assert read.trials[0].user_attrs[EXECUTED] == {"x": 7.0, "y": None}
    for cell, reason in (
        ("1.5", "x was 1.5, outside of its range.* For this trial give 1, where it"),
        ("hot", "x cannot have been 'hot': a finite number is needed"),
    ):
        with pytest.raises(RefusalError, match=f"line 2: .*{reason}"):
            table(f"x,executed_x,k,value\n0.5,{cell},a,1\n")
    for text in ("{'x': 0.4", "[1]", "{'x': " * 200):
        with pytest.raises(RefusalError, match="line 2: user_attrs_stoic:executed must be as in"):
            table(f'x,k,value,user_attrs_stoic:executed\n0.5,a,1,"{text}"\n')


def test_cells_that_nothing_is_read_from_may_be_missing(table):
    assert len(table("x,k,value,comment,failed\n0.5,a,1\n0.6,b,2,hi\n").trials) == 2


def test_a_column_says_that_a_value_is_a_bound(table):
    read = table("x,k,value,censored\n0.5,a,1.5,true\n0.75,b,2,false\n1,b,2.5,\n")
    assert [t.user_attrs.get(CENSORED) for t in read.trials] == [True, None, None]


def test_old_results_are_judged_as_all_others(table):
    rows = [(k / 20, (k / 20 - 0.3) ** 2) for k in range(21)]
    rows[7] = (rows[7][0], -1e6)
    file = io.StringIO()
    csv.writer(file).writerows([("x", "value"), *rows])
    study = optuna.create_study()
    table(file.getvalue(), {"x": FloatDistribution(0.0, 1.0)}).add_to(study)
    known = explain(study)
    assert [row.number for row in known.rows if row.trust < 0.5] == [7]
    assert math.isclose(known.recommended.params["x"], 0.3, abs_tol=0.051)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("0.25", "1.25", r"line 2: x cannot be 1.25: it is float\(0, 1\)"),
        ("0.75,b", "0.75,c", r"line 3: k cannot be c: it is choice\(a, b\)"),
        ("0.75,b", "0.75,", "line 3: the cell of k is empty"),
        ("1.5,", "good,", "line 2: value must be a number, or empty, got 'good'"),
        ("1.5,,", "1.5,bad,", "line 2: a failure does not go with the value 1.5"),
        ("infeasible", "broken", "line 3: failed must be one of"),
        (",0.1\n", ",0,1\n", r"line 2: there are more cells than columns \(1 is beyond the last\)"),
        ("a,nan,,\n", "a\n", "line 4: there are fewer cells than columns"),
        (",0.1\n", ",-1\n", "line 2: standard_error must be a number above 0"),
        ("value", "result", "needs a column 'value' for the results: there are date, x, k, result"),
        ("date", "x", "2 columns 'x'"),
        (",k,", ",kind,", "no column for k"),
    ],
)
def test_a_wrong_cell_is_named_and_nothing_is_added(table, old, new, reason):
    with pytest.raises(RefusalError, match=reason):
        table(OLD.replace(old, new, 1))


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_a_spreadsheet_may_have_other_marks(table, mark, decimal):
    """Semicolons or tabs between columns, and then commas in numbers."""
    text = OLD.replace(",", mark).replace(".", decimal)
    as_usual, read = table(OLD).trials, table(text).trials
    assert [(t.params, t.value, t.user_attrs) for t in read[:2]] == [
        (t.params, t.value, t.user_attrs) for t in as_usual[:2]
    ]
    assert read[2].params == as_usual[2].params
    assert read[2].value is None


def test_a_choice_may_have_a_comma_where_it_is_no_decimal_mark(table):
    space = parse_assignments(["x=float(0, 2)", "k=choice('1,5', '2,5')"])
    read = table("x;k;value\n0,5;1,5;1e3\n1,25;2,5;-7,5e-2\n", space)
    assert [trial.params for trial in read.trials] == [
        {"x": 0.5, "k": "1,5"},
        {"x": 1.25, "k": "2,5"},
    ]
    assert [trial.value for trial in read.trials] == [1e3, -0.075]


def test_two_decimal_marks_in_one_file_are_refused(table):
    """Of 1,500 and 2.5 the comma may be that of a thousand."""
    with pytest.raises(RefusalError, match=r"has '1,500' and '0\.25': write numbers with the same"):
        table("x;k;value\n0.25;a;1,500\n")


def test_without_ranges_it_suggests_those_of_the_data(table):
    with pytest.raises(
        RefusalError, match=r"--param 'x=float\(0.25, 1\)' --param 'k=choice\(a, b\)'"
    ):
        table(OLD, {})


def test_what_it_suggests_can_be_copied(table):
    """Choices with commas and quotes, and a column that cannot name a parameter."""
    text = 'x,k,größe x,value\n1,"a,b",1,0\n2,it\'s,2,1\n3,c d,3,2\n'
    with pytest.raises(RefusalError) as refused:
        table(text, {})
    options = shlex.split(str(refused.value).partition("may be: ")[2])
    assert options[::2] == ["--param"] * 2
    space = parse_assignments(options[1::2])
    assert space["k"] == CategoricalDistribution(["a,b", "c d", "it's"])
    assert len(table(text.replace("größe x", "note"), space).trials) == 3
    assert "'größe x' cannot name a parameter: use the letters" in str(refused.value)


def test_the_ranges_that_it_suggests_hold_the_data(table):
    ends = ((39.278870206326246, 71.029557), (1000001.5, 2000003.7), (-1e-7 / 3, 1 / 3))
    for low, high in ends:
        text = f"x,value\n{low!r},0\n{high!r},1\n"
        with pytest.raises(RefusalError) as refused:
            table(text, {})
        option = shlex.split(str(refused.value).partition("may be: ")[2])[1]
        space = parse_assignments([option])
        assert space["x"].high - space["x"].low < 1.001 * (high - low)
        assert [trial.params["x"] for trial in table(text, space).trials] == [low, high]


def test_it_suggests_no_attribute_as_a_parameter(table):
    text = "params_x,value,user_attrs_stoic:noise,user_attrs_host\n1,2,.1,a\n2,3,.2,b\n"
    with pytest.raises(RefusalError, match=r"may be: --param 'x=int\(1, 2\)'$"):
        table(text, {})


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RefusalError, match="Cannot read"):
        read_table(tmp_path / "no.csv", SPACE)
