"""Constraints of a program: read from its output, stored, told and recorded."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path

import optuna
import pytest

from stoic import Failed, Measured, cli, tune
from stoic.integrations.optuna import explain
from stoic.integrations.optuna.internals import constraints
from stoic.integrations.optuna.unmodelled import declared_constraints, violates
from stoic.refusal import RefusalError
from stoic.tuning.constraint import Constraint, parse_constraints, read_constraints
from stoic.tuning.program import Result
from stoic.tuning.repeats import repeated
from stoic.tuning.request import Settings, from_file

PROGRAM = """
import json, sys
x, y = float(sys.argv[1]), float(sys.argv[2])
found = {"loss": x + y, "latency": 1.2 - x - y, "size": {"mb": 10.0 * x}}
print("rate = ", 2.0 * y)
print(json.dumps(found))
"""


@pytest.fixture
def stoic(tmp_path, monkeypatch, capsys):
    """Run the command line in an empty directory; return what it printed and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    Path("program.py").write_text(PROGRAM)
    verbosity = optuna.logging.get_verbosity()

    def run(words: str) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "argv", ["stoic", *shlex.split(words)])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        printed = capsys.readouterr()
        return printed.out, printed.err, int(ending.value.code or 0)

    yield run
    optuna.logging.set_verbosity(verbosity)


def stored() -> optuna.Study:
    return optuna.load_study(study_name="stoic", storage="sqlite:///stoic.db")


TUNE = (
    "tune --param 'x=float(0, 1)' --param 'y=float(0, 1)' --value json:loss --seed 0 {} "
    "-- '{{python}}' program.py '{{x}}' '{{y}}'"
)


@pytest.mark.parametrize(
    ("written", "name", "outputs", "excess"),
    [
        ("latency <= 0.2", "latency", '{"latency": 0.5}', 0.3),
        ("latency>=0.2", "latency", '{"latency": 0.5}', -0.3),
        ("json:size.mb <= 1e3", "size.mb", '{"size": {"mb": 1000}}', 0.0),
        (r"regex:rate = (\S+) >= -2", r"regex:rate = (\S+)", "rate = 1\nrate = -3", 1.0),
        ("latency <= 0.2", "latency", '{"latency": NaN}', math.nan),
    ],
)
def test_a_constraint_is_an_output_and_its_limit(written, name, outputs, excess):
    constraint = Constraint.parse(written)
    assert (constraint.written, constraint.name) == (written, name)
    found, missing = read_constraints([constraint], outputs)
    assert found == pytest.approx({name: excess}, nan_ok=True)
    assert missing == {}


@pytest.mark.parametrize(
    "written",
    [
        "latency",
        "latency < 0.2",
        "latency <= fast",
        "<= 0.2",
        "latency <= nan",
        "",
        "0.5 <= latency <= 0.8",
        "0.5 >= latency <= 0.8",
        r"regex:lat=(\S+) <= 0.2 <= 3",
    ],
)
def test_another_form_is_refused_in_one_sentence(written):
    with pytest.raises(RefusalError, match=r"as in 'latency <= 0\.2'"):
        Constraint.parse(written)


def test_an_output_has_one_constraint():
    with pytest.raises(RefusalError, match="'a' has two"):
        parse_constraints(["a <= 1", "a >= 0"])
    with pytest.raises(RefusalError, match="no group"):
        parse_constraints(["regex:rate <= 1"])


def test_a_program_is_tuned_within_its_limits(stoic):
    limits = "--constraint 'latency <= 0.2' --constraint 'regex:rate = +(.*) >= 1.0'"
    out, err, code = stoic(TUNE.format(f"--trials 22 {limits}"))
    assert (code, err) == (0, "")
    assert "feasible       with probability" in out
    out, _, _ = stoic("show --json")
    record = json.loads(out)
    best = record["recommended"]
    assert best["feasible"] >= 0.9
    assert 1.0 <= best["params"]["x"] + best["params"]["y"] < 1.1
    assert best["params"]["y"] >= 0.5
    assert record["unmodelled"] == []
    trial = stored().trials[0]
    x, y = trial.params["x"], trial.params["y"]
    assert list(constraints(trial).values()) == pytest.approx([1.0 - x - y, 1.0 - 2.0 * y])
    assert record["infeasible"] == [t.number for t in stored().trials if violates(t)] != []


RULED = """
import json, sys
x, y = float(sys.argv[1]), float(sys.argv[2])
found = {"latency": 1.2 - x - y}
print(json.dumps(found if x + y < 1.0 or x > 0.9 else {**found, "loss": x + y, "gain": x}))
"""


@pytest.mark.parametrize("goal", ["--value json:loss", "--minimize loss --maximize gain"])
def test_a_run_that_prints_an_excluded_constraint_alone_is_pruned(stoic, goal):
    Path("program.py").write_text(RULED)
    words = TUNE.format("--trials 12 --constraint 'latency <= 0.2'")
    out, _, code = stoic(words.replace("--value json:loss", goal))
    assert code == 0
    trials = stored().trials
    excess = [1.0 - trial.params["x"] - trial.params["y"] for trial in trials]
    assert [list(constraints(t).values()) for t in trials] == [[pytest.approx(e)] for e in excess]
    for trial, beyond in zip(trials, excess, strict=True):
        state = "PRUNED" if beyond > 0.0 else "FAIL" if trial.params["x"] > 0.9 else "COMPLETE"
        assert trial.state.name == state
    assert {trial.state.name for trial in trials} == {"PRUNED", "FAIL", "COMPLETE"}
    assert "no value: the JSON has no key loss" in out


TIGHT = """
import json, sys
x, y = float(sys.argv[1]), float(sys.argv[2])
found = {"sum": x + y}
print(json.dumps(found if x + y > 0.15 else {**found, "loss": x, "latency": y}))
"""


def test_trials_that_a_rule_excludes_say_nothing_of_the_program(stoic, caplog):
    """So neither a value nor another constraint is missing, and a mistake is seen in the others."""
    Path("program.py").write_text(TIGHT)
    limits = "--constraint 'sum <= 0.15' --constraint 'latency <= 0.1' --trials 14"
    out, err, code = stoic(TUNE.format(limits))
    assert (code, err, caplog.messages) == (0, "", [])
    assert "violates sum <= 0.15" in out
    excluded = [t for t in stored().trials if t.state.name == "PRUNED"]
    assert 5 <= len(excluded) < 14
    assert all(t.user_attrs["failure"] == "violates sum <= 0.15" for t in excluded)
    words = TUNE.replace("loss", "los").replace("tune", "tune --study-name typo", 1)
    out, err, code = stoic(words.format(limits.replace("14", "40")))
    assert code == 1
    assert "first 5 trials failed" in err
    assert "the JSON has no key los" in err


def test_a_run_goes_on_with_the_recorded_constraints(stoic):
    assert stoic(TUNE.format("--trials 3 --constraint 'latency <= 0.2'"))[2] == 0
    assert stoic(TUNE.format("--trials 5"))[2] == 0
    assert all(len(constraints(trial)) == 1 for trial in stored().trials)
    _, err, code = stoic(TUNE.format("--trials 7 --constraint 'latency <= 0.3'"))
    assert code == 2
    assert "has the constraint 'latency <= 0.2', not 'latency <= 0.3'" in err
    assert stoic(TUNE.format("--trials 7 --constraint 'size.mb <= 5'"))[2] == 0
    assert declared_constraints(stored()) == {
        "latency": "latency <= 0.2",
        "size.mb": "size.mb <= 5",
    }
    (said,) = explain(stored()).unmodelled
    assert "constraint size.mb count for the objective and not for it: 0, 1, 2 and 2 more" in said


def test_a_standard_error_that_is_none_is_said_once(stoic, caplog):
    program = "import json, sys; print(json.dumps(dict(loss=1, standard_error=%s)))"
    for name, error, count in (("a", "0", 1), ("b", "0.1", 0), ("c", "[0.1]", 1)):
        command = f"tune --study-name {name} --param 'x=float(0, 1)' --trials 2 --value json:loss"
        assert (
            stoic(f"{command} -- {sys.executable} -c {shlex.quote(program % error)} {{x}}")[2] == 0
        )
        said = [r.getMessage() for r in caplog.records if "standard_error" in r.getMessage()]
        assert len(said) == count
        caplog.clear()
        got = "0.0" if error == "0" else error
        wrong = f"Trial 0: standard_error must be a number above 0, got {got}. Its value counts"
        assert not count or wrong in said[0]
    command = "tune --study-name d --param 'x=float(0, 1)' --trials 2 --minimize loss --maximize n"
    several = program.replace("loss=1", "loss=1, n=2") % "0.1"
    assert stoic(f"{command} -- {sys.executable} -c {shlex.quote(several)} {{x}}")[2] == 0
    (said,) = [r.getMessage() for r in caplog.records if "standard_error" in r.getMessage()]
    assert "must be a number above 0 for each of loss, n, got 0.1. Its values count without" in said


def test_a_name_that_no_output_has_is_said_and_nothing_is_lost(stoic, caplog):
    out, _, code = stoic(TUNE.format("--trials 4 --constraint 'lattency <= 0.2'"))
    assert code == 0
    (said,) = [r.getMessage() for r in caplog.records if "lattency" in r.getMessage()]
    assert "the JSON has no key lattency" in said
    assert "counts for the objective and not for the constraint" in said
    assert "Trials without a value of the constraint lattency" in out
    assert [len(constraints(trial)) for trial in stored().trials] == [0] * 4
    assert all(trial.value is not None for trial in stored().trials)


def test_ask_and_tell_a_constraint(stoic):
    stoic("create-study stoic --param 'x=float(0, 1)' --constraint 'latency <= 0.2'")
    for number, latency in enumerate((0.5, 0.1, math.nan)):
        stoic("ask")
        out, _, code = stoic(f"tell {number} {1.0 + number} --constraint latency={latency}")
        assert (code, out) == (0, f"trial {number} is complete\n")
    found = [constraints(trial)[name] for trial in stored().trials for name in constraints(trial)]
    assert found == pytest.approx([0.3, -0.1, math.nan], nan_ok=True)
    stoic("ask")
    for wrong, said in (
        ("latncy=0.1", "has no constraint 'latncy'; it has latency"),
        ("latency=fast", "must be a number, got 'fast'"),
    ):
        _, err, code = stoic(f"tell 3 1.0 --constraint {wrong}")
        assert (code, said in err) == (2, True)
    assert stored().trials[3].state == optuna.trial.TrialState.RUNNING
    assert "not a number" in stoic("show")[0]


def test_a_study_file_has_constraints(tmp_path):
    path = tmp_path / "study.toml"
    text = (
        '[study]\nconstraints = ["latency <= 0.2", "size >= 1"]\n[parameters]\nx = "float(0, 1)"\n'
        '[program]\ncommand = "run {x}"\n'
    )
    path.write_text(text)
    names = [each.name for each in from_file(path, Settings()).program.constraints]
    assert names == ["latency", "size"]
    given = Settings(constraints=parse_constraints(["a <= 1"]))
    assert [each.name for each in from_file(path, given).program.constraints] == ["a"]
    path.write_text(text.replace('["latency <= 0.2", "size >= 1"]', '"latency <= 0.2"'))
    with pytest.raises(RefusalError, match="constraints must be a list of texts"):
        from_file(path, Settings())


@pytest.mark.parametrize("value", [None, math.nan])
def test_a_function_says_which_settings_a_rule_excludes(value):
    def ruled(p):
        beyond = {"sum": sum(p.values()) - 1.0}
        if beyond["sum"] > 0.0:
            return Measured(value, constraints=beyond)
        return Measured(sum((x - 0.3) ** 2 for x in p.values()), constraints=beyond)

    found = tune(ruled, dict.fromkeys("abcd", "float(0, 1)"), n_trials=30, seed=2)
    states = [trial.state.name for trial in found.study.trials]
    assert set(states) == {"PRUNED", "COMPLETE"}
    assert states[:2] == ["PRUNED"] * 2
    assert states.count("PRUNED") <= 8
    assert found.recommended.value < 0.02
    with pytest.raises(RefusalError, match="violates one of its constraints"):
        Measured(constraints={"sum": -1.0})


def test_a_function_says_its_constraints():
    def objective(params):
        if params["x"] > 0.95:
            raise Failed("infeasible", "too far")
        return Measured(params["x"] + params["y"], constraints={"sum": 1.0 - sum(params.values())})

    space = {"x": "float(0, 1)", "y": "float(0, 1)"}
    result = tune(objective, space, n_trials=22, seed=0)
    assert 1.0 <= result.fun < 1.1
    assert result.explanation.feasible >= 0.9

    def never(params):
        return Measured(params["x"], constraints={"c": 1.0 + params["x"]})

    with pytest.raises(RuntimeError, match="no setting is known to be feasible"):
        tune(never, space, n_trials=4, seed=0)


def test_the_median_of_repeats_counts_for_constraints_too():
    told = iter([{"a": 1.0, "b": math.nan}, {"a": -2.0, "b": 3.0}, {"a": 50.0, "b": -1.0}])
    found = repeated(
        lambda repeat: Result(1.0, None, "", 0.0, constraints=next(told)), 3, stopped=lambda: False
    )
    assert found.constraints == {"a": 1.0, "b": 3.0}
