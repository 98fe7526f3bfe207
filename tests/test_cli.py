"""The command line: what it prints, what it refuses, what it leaves behind."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from stoic import cli
from studies import add

SQUARE = ["--", sys.executable, "-S", "-c", "import sys; print(float(sys.argv[1]) ** 2)", "{x}"]
X = ["--param", "x=float(-1, 1)"]
UNIT = FloatDistribution(0.0, 1.0)
T = ["--threshold", "0.5"]


@dataclass
class Printed:
    code: int
    out: str
    err: str


@pytest.fixture
def stoic(tmp_path, monkeypatch, capsys):
    """Run the command line in this process, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    verbosity = optuna.logging.get_verbosity()

    def run(*arguments: str) -> Printed:
        monkeypatch.setattr(sys, "argv", ["stoic", *arguments])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        captured = capsys.readouterr()
        code = ending.value.code
        return Printed(code if isinstance(code, int) else 0, captured.out, captured.err)

    yield run
    optuna.logging.set_verbosity(verbosity)


@pytest.fixture
def unexplained(monkeypatch):
    """Lines of trials without a trust, which takes a fit each: for long studies."""
    monkeypatch.setattr("stoic.tuning.campaign.Explainer.__call__", lambda *_: None)


def write_study(text: str = "", **changes: str) -> str:
    content = text or (
        '[study]\ntrials = 3\n[parameters]\nx = "float(-1, 1)"\n'
        f"[program]\ncommand = {json.dumps(SQUARE[1:])}\n"
    )
    for old, new in changes.items():
        content = content.replace(old, new)
    Path("mine.toml").write_text(content)
    return "mine.toml"


def test_tune_show_and_the_mirrored_commands_agree(stoic):
    first = stoic("tune", *X, "--trials", "4", "--seed", "1", *SQUARE)
    assert first.code == 0
    lines = first.out.splitlines()
    assert lines[0].endswith("stoic.db: 0 of 4 trials are finished")
    assert [line.split()[:2] for line in lines[1:5]] == [["trial", str(i)] for i in range(4)]
    assert "study stoic (minimize): 4 trials: 4 complete" in lines
    summary = "\n".join(lines[5:]) + "\n"
    assert stoic("show").out == summary
    assert stoic("show", "stoic", "--storage", "sqlite:///stoic.db").out == summary

    record = json.loads(stoic("show", "--json").out)
    assert record["counts"] == {"complete": 4}
    listed = json.loads(stoic("trials", "-f", "json").out)
    assert [trial["number"] for trial in listed] == [0, 1, 2, 3]
    best = min(listed, key=lambda trial: trial["value"])
    assert json.loads(stoic("best-trial", "-f", "json").out)["number"] == best["number"]
    assert record["observed_best"]["number"] == best["number"]
    table = stoic("best-trial").out
    assert "observed best" in table
    assert "recommended" in table
    assert record["command"].endswith(f" {record['recommended']['params']['x']}")


def test_tuning_again_resumes_to_the_total(stoic):
    stoic("tune", *X, "--trials", "2", *SQUARE)
    again = stoic("tune", *X, "--trials", "3", *SQUARE)
    assert again.out.splitlines()[1].startswith("trial 2 ")
    assert "3 trials: 3 complete" in again.out
    done = stoic("tune", *X, "--trials", "3", *SQUARE)
    assert done.code == 0
    assert "\nstudy stoic (minimize): 3 trials" in done.out


def test_a_study_file(stoic):
    assert "study mine (minimize): 3 trials" in stoic("tune", write_study()).out
    assert "study mine (minimize): 3 trials" in stoic("show", "mine.toml").out
    more = stoic("tune", "mine.toml", "--trials", "4", "--storage", "sqlite:///other.db")
    assert "4 trials" in more.out
    assert Path("other.db").exists()


def test_the_command_runs_from_where_the_user_stands(stoic, monkeypatch):
    Path("there").mkdir()
    file = Path("there", write_study())
    Path("mine.toml").rename(file)
    shown = stoic("tune", str(file)).out
    assert f"its command was: cd {Path('there').absolute()} && " in shown
    monkeypatch.chdir("there")
    here = json.loads(stoic("show", "mine.toml", "--json").out)  # its storage is beside it
    assert not here["command"].startswith("cd ")


def test_the_storage_variable_is_honoured(stoic, monkeypatch):
    monkeypatch.setenv("OPTUNA_STORAGE", "sqlite:///there.db")
    stoic("tune", *X, "--trials", "1", *SQUARE)
    assert Path("there.db").exists()
    assert not Path("stoic.db").exists()
    assert "1 trials" in stoic("show").out


def test_when_everything_fails_the_reason_is_shown_and_the_code_is_1(stoic):
    code = "import sys; sys.exit('no GPU')"
    failed = stoic("tune", *X, "-n", "3", "--", sys.executable, "-S", "-c", code, "{x}")
    assert failed.code == 1
    assert "3 x exit code 1: trials 0, 1, 2" in failed.out
    assert "    no GPU" in failed.out


@pytest.mark.long
def test_lies_and_failures_are_told_apart(stoic, unexplained):
    code = (
        "import os, sys; n = int(os.environ['STOIC_TRIAL']); x = float(sys.argv[1]);"
        "print({12: 'nan', 14: '1e300', 16: '-inf', 17: -1e6}.get(n, x * x))"
    )
    code = code.replace("{", "{{").replace("}", "}}")
    program = ["--", sys.executable, "-S", "-c", code, "{x}"]
    tuned = stoic("tune", *X, "-n", "24", "--seed", "0", *program)
    assert (tuned.code, tuned.err) == (0, "")
    record = json.loads(stoic("show", "--json").out)
    assert record["counts"] == {"complete": 23, "fail": 1}
    assert record["failed"] == {"the value is nan": [12]}
    assert {14, 16, 17} <= set(record["distrusted"])
    assert record["observed_best"] == {
        "number": 17,
        "params": record["observed_best"]["params"],
        "value": -1e6,
    }
    assert record["recommended"]["value"] < 0.05
    assert next(row for row in record["trials"] if row["number"] == 16)["value"] == "-inf"


@pytest.mark.long
def test_failures_of_every_kind(stoic, unexplained):
    """The exit code of a program and its own word, from the command line to the summary."""
    code = (
        "import json, os, sys; x = float(sys.argv[1])\n"
        "told = json.dumps(dict(failed='transient'))\n"
        "if os.environ['STOIC_TRIAL'] == '2': print(told); sys.exit(1)\n"
        "if x > 0.2: sys.exit(3)\n"
        "print((x - 0.5) ** 2)"
    )
    program = ["--", sys.executable, "-S", "-c", code, "{x}"]
    options = ["--failed", "exit 3=infeasible", "--seed", "0", "-n", "30", "--startup", "8"]
    tuned = stoic("tune", *X, *options, *program)
    assert (tuned.code, tuned.err) == (0, "")
    assert "  failed: exit code 3 (infeasible)\n" in tuned.out
    record = json.loads(stoic("show", "--json").out)
    kinds = {failure["number"]: failure["kind"] for failure in record["failures"]}
    assert kinds.pop(2) == "transient"
    assert set(kinds.values()) == {"infeasible"}
    assert sum(number >= 8 for number in kinds) <= 9
    assert "  1 x exit code 1 (transient): trial 2\n" in stoic("show").out
    assert 0.0 < record["recommended"]["params"]["x"] <= 0.2
    assert record["model_optimum"]["params"]["x"] < 0.25

    number = str(json.loads(stoic("ask").out)["number"])
    told = stoic("tell", "--trial-number", number, "--failed", "bad")
    assert told.out == f"trial {number} is fail\n"
    assert json.loads(stoic("show", "--json").out)["failures"][-1]["kind"] == "bad"
    again = stoic("tell", "--trial-number", number, "--failed", "bad")
    assert again.code == 2


@pytest.mark.long
def test_trust_says_which_results_are_distrusted_and_why(stoic, unexplained):
    code = (
        "import os, sys; n = int(os.environ['STOIC_TRIAL']); x = float(sys.argv[1]);"
        "print({12: 'nan', 14: '1e6', 16: 'inf', 17: -1e6}.get(n, x * x))"
    )
    code = code.replace("{", "{{").replace("}", "}}")
    how = ("-n", "20", "--seed", "0", "--recipe", "a2_rcgp_ucb(retries=1)")
    stoic("tune", *X, *how, "--", sys.executable, "-S", "-c", code, "{x}")

    table = stoic("trust", "stoic", "--plot", "trust.png")
    assert table.code == 0
    assert table.err == "Wrote trust.png.\n"
    assert Path("trust.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    heading, *rows = [line.split("|")[1:-1] for line in table.out.splitlines() if "|" in line]
    named = "number observed expected sd residual plateau trust verdict"
    assert [cell.strip() for cell in heading] == named.split()
    assert len(rows) == 19
    first = [[cell.strip() for cell in row] for row in rows[:3]]
    assert [(row[0], row[1], row[-1]) for row in first] == [
        ("14", "1e+06", "left out, too high"),
        ("16", "inf", "left out, too high"),
        ("17", "-1e+06", "left out, too low"),
    ]
    assert all(" +- " in row[5] for row in first)

    record = json.loads(stoic("trust", "--json").out)
    shown = json.loads(stoic("show", "--json").out)
    assert record["distrusted"] == shown["distrusted"] == [14, 16, 17]
    assert record["failed"] == {"12": None}
    listed = json.loads(stoic("trust", "-f", "json").out)
    assert listed == record["trials"]
    assert [row["trust"] for row in sorted(listed, key=lambda row: row["number"])] == [
        row["trust"] for row in shown["trials"]
    ]
    assert stoic("trust", "-f", "value").out.splitlines()[1].startswith("16 inf ")
    assert stoic("trust", "-f", "yaml").out.startswith("- number: 14\n  told: 1000000.0\n")


def test_create_ask_tell(stoic):
    assert stoic("create-study", "--study-name", "s", "--direction", "maximize").out == "s\n"
    again = stoic("create-study", "--study-name", "s")
    assert again.code == 2
    assert stoic("create-study", "--study-name", "s", "--skip-if-exists").out == "s\n"
    for other in (("--direction", "minimize"), ("--minimize", "loss")):
        refused = stoic("create-study", "--study-name", "s", "--skip-if-exists", *other)
        assert refused.code == 2
        assert "already, to maximize" in refused.err
    space = json.dumps({"x": "float(0, 1)", "k": ["a", "b"]})
    asked = json.loads(stoic("ask", "--study-name", "s", "--search-space", space).out)
    assert asked["number"] == 0
    assert asked["params"].keys() == {"x", "k"}
    flat = json.loads(stoic("ask", "--study-name", "s", "--search-space", space, "--flatten").out)
    assert flat.keys() == {"number", "params_x", "params_k"}
    told = stoic("tell", "--study-name", "s", "--trial-number", "0", "--values", "-3.5")
    assert told.out == "trial 0 is complete\n"
    failed = stoic("tell", "--study-name", "s", "--trial-number", "1", "--state", "fail")
    assert failed.out == "trial 1 is fail\n"
    assert stoic("tell", "--study-name", "s", "--trial-number", "1", "--values", "3").code == 2
    kept = stoic(
        "tell", "--study-name", "s", "--trial-number", "0", "--values", "9", "--skip-if-finished"
    )
    assert kept.code == 0
    assert "left out" in kept.err
    values = [trial["value"] for trial in json.loads(stoic("trials", "-f", "json").out)]
    assert values == [-3.5, None]


def test_a_study_with_branches_is_asked_and_confirmed(stoic):
    space = {"kind": CategoricalDistribution(["line", "curve"]), "slope": UNIT, "bend": UNIT}
    study = optuna.create_study(study_name="s", storage=f"sqlite:///{Path.cwd()}/stoic.db")
    for k in range(12):
        x = 0.1 * (k % 7)
        params = {"kind": "line", "slope": x} if k % 2 else {"kind": "curve", "bend": x}
        add(study, params, space, (x - 0.4) ** 2 + 0.3 * (k % 2))
    for asked in ((), ("--fix", "slope=0.5"), ("--fix", "kind=curve")):
        params = json.loads(stoic("ask", "s", *asked).out)["params"]
        assert params.keys() == {"kind", {"line": "slope", "curve": "bend"}[params["kind"]]}
        assert params.get("slope", 0.5) == 0.5 or asked != ("--fix", "slope=0.5")
    command = shlex.split("{python} -S -c 'import sys; print(len(sys.argv))' {kind}")
    options = shlex.split("--slope {slope} --bend {bend}")
    assert stoic("confirm", "s", "--trials", "2", "--", *command, *options).code == 0
    values = [t.value for t in study.get_trials() if t.value is not None]
    assert set(values[12:]) == {4.0}


def test_a_range_that_is_said_now_counts_whatever_the_branch(stoic):
    study = optuna.create_study(storage="sqlite:///s.db", study_name="s")
    kinds = CategoricalDistribution(["sgd", "adam"])
    for k in range(12):
        low, high = ((0.01, 1.0), (1e-5, 1e-2))[k % 2]
        space = {"kind": kinds, "rate": FloatDistribution(low, high, log=True)}
        add(study, {"kind": kinds.choices[k % 2], "rate": low * 10 ** (k / 8)}, space, (k - 5) ** 2)
    said = "--storage", "sqlite:///s.db", "--fix", "kind=adam", "-p", "rate=float(1e-7, 1e-6, log)"
    assert 1e-7 <= json.loads(stoic("ask", "s", *said).out)["params"]["rate"] <= 1e-6


def test_a_told_nan_is_why_a_trial_failed(stoic):
    assert stoic("create-study", "oven", *X).code == 0
    assert stoic("ask", "oven").code == 0
    assert stoic("tell", "0", "nan").out == "trial 0 is fail\n"
    assert json.loads(stoic("show", "--json").out)["failed"] == {"the value is nan": [0]}


def test_a_lab_s_first_commands(stoic):
    assert stoic("create-study", "oven").out == "oven\n"
    refused = stoic("ask", "oven")
    assert refused.code == 2
    assert "no search space yet: give its parameters" in refused.err
    assert stoic("trials", "oven", "--json").out == "[]\n"  # nothing was handed out
    asked = json.loads(stoic("ask", "oven", *X, "-p", "k=choice(a, b)").out)
    assert asked["params"].keys() == {"x", "k"}
    assert stoic("tell", "0", "-0.5").out == "trial 0 is complete\n"
    assert json.loads(stoic("trials", "oven", "--json").out)[0]["value"] == -0.5

    assert stoic("create-study", "other", *X).code == 0
    assert json.loads(stoic("ask", "other").out)["params"].keys() == {"x"}
    assert stoic("tell", "other", "0", "0.3").out == "trial 0 is complete\n"
    listed = json.loads(stoic("studies", "--json").out)
    assert [(row["name"], row["trials"]) for row in listed] == [("oven", 1), ("other", 1)]
    assert stoic("delete-study", "other", "--yes").out == "deleted other with 1 trials\n"
    assert stoic("studies", "-f", "value").out.startswith("oven minimize 1 ")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["tell"], "stoic tell NUMBER VALUE"),
        (["tell", "0"], "stoic tell 0 VALUE"),
        (["tell", "0", "good"], "must be a number, got 'good'."),
        (["tell", "7", "0.3"], "Cannot tell trial 7: the study 'a' has no trial."),
        (["tell", "a", "b"], "number of a trial is needed, got 'b'"),
        (["tell", "a", "0", "1", "2"], "One trial at a time"),
        (["tell", "--valeus", "3"], "no option --valeus"),
        (["tell", "a", "0", "1", "--study-name", "b"], "'a' or 'b'"),
        (["tell", "0", "1", "--csv", "a.csv"], "nothing but the study"),
        (["show", "a", "--study-name", "b"], "'a' or 'b'"),
        (["ask", "a", *X, "--search-space", "{}"], "leave out one of them"),
        (["delete-study"], "stoic delete-study NAME"),
        (["delete-study", "b", "-y"], "There is no study 'b' in the storage; it holds a."),
    ],
)
def test_words_that_make_no_sense_are_refused(stoic, words, reason):
    stoic("create-study", "a", *X)
    refused = stoic(*words)
    assert refused.code == 2
    assert reason in refused.err


def test_a_table_is_added_as_a_whole_or_not_at_all(stoic, monkeypatch):
    Path("old.csv").write_text("x,value\n0.1,3\n0.9,4\n")
    with monkeypatch.context() as patch:
        one = optuna.Study.add_trial

        def interrupted(study, trials):
            one(study, next(iter(trials)))
            raise KeyboardInterrupt

        patch.setattr(optuna.Study, "add_trials", interrupted)
        stopped = stoic("create-study", "s", "--from-csv", "old.csv", *X)
    assert stopped.code != 0
    assert "there is no such study" in stopped.err
    assert stoic("studies", "-f", "json").out.strip() == "[]"
    with monkeypatch.context() as patch:  # somebody else has begun a trial in it
        patch.setattr(optuna.Study, "add_trials", lambda study, _: (study.ask(), 1 / 0))
        with pytest.raises(ZeroDivisionError):
            stoic("create-study", "s", "--from-csv", "old.csv", *X)
    assert '"s"' in stoic("studies", "-f", "json").out
    stoic("delete-study", "s", "-y")
    assert "added 2 trials" in stoic("create-study", "s", "--from-csv", "old.csv", *X).err


def test_a_table_becomes_a_study_and_is_told(stoic):
    Path("old.csv").write_text("x,value,who\n0.1,3,me\n0.9,,me\n")
    suggested = stoic("create-study", "s", "--from-csv", "old.csv")
    assert "--param 'x=float(0.1, 0.9)'" in suggested.err
    assert stoic("studies").code == 2  # nothing was created
    made = stoic("create-study", "s", "--from-csv", "old.csv", *X)
    assert made.out == "s\n"
    assert made.err == "added 2 trials: 1 complete, 1 fail; columns not used: who\n"
    again = stoic("tell", "s", "--csv", "old.csv")
    assert again.out == "added 0 trials: none; columns not used: who\n"
    assert "2 of 2 rows had been read before" in again.err
    Path("more.csv").write_text("x,value\n0.5,2\n0.1,3\n0.1,3\n")
    more = stoic("tell", "s", "--csv", "more.csv")
    assert more.out == "added 2 trials: 2 complete\n"  # one of two repeats was there
    assert "1 of 3 rows had been read before" in more.err
    assert (
        stoic("tell", "s", "--csv", "more.csv", "--repeats").out == "added 3 trials: 3 complete\n"
    )
    assert stoic("tell", "s", "0", "1", "--repeats").code == 2
    rows = list(csv.DictReader(stoic("trials", "-f", "csv").out.splitlines()))
    assert [row["value"] for row in rows] == ["3.0", "", "2.0", "3.0", "2.0", "3.0", "3.0"]
    assert rows[0]["params_x"] == "0.1"


def test_rows_of_an_earlier_range_are_known(stoic):
    Path("old.csv").write_text("x,value\n0.1,3\n0.3,1\n0.9,2\n")
    stoic("create-study", "s", "--from-csv", "old.csv", *X)
    stoic("ask", "s", "--param", "x=float(0.5, 2)")
    again = stoic("tell", "s", "--csv", "old.csv")
    assert (again.code, again.out) == (0, "added 0 trials: none\n")
    given = stoic("show", "s", "--fix", "x=0.3")
    assert (given.code, "trial 1" in given.out) == (0, True)
    Path("old.csv").write_text("x,value\n0.1,3\n0.4,1\n")
    new = stoic("tell", "s", "--csv", "old.csv")
    assert (new.code, "x=0.4: x cannot be 0.4: it is float(0.5, 2)" in new.err) == (2, True)
    assert len(json.loads(stoic("trials", "s", "-f", "json").out)) == 4


@pytest.mark.skipif(
    not hasattr(optuna.Trial, "set_constraint"), reason="before Optuna 5 constraints have no names"
)
def test_a_table_has_the_outputs_of_a_constraint_and_not_their_distance_from_a_limit(stoic):
    limited = ["create-study", *X, "--constraint"]
    stoic(*limited, "cost <= 40", "--study-name", "a", "--possible", "0", "9")
    for number, (x, cost) in enumerate([(0.1, 30.0), (0.9, 60.0)]):
        stoic("ask", "a", "--fix", f"x={x}")
        stoic("tell", "a", str(number), "5", "--constraint", f"cost={cost}")
    changed = stoic("tell", "a", "1", "6")
    assert changed.code == 2
    options = "--direction minimize --constraint 'cost <= 40' --possible 0 9`"
    assert f"stoic create-study --from-csv FILE {options}" in changed.err
    Path("a.csv").write_text(exported := stoic("trials", "a", "-f", "csv").out)
    rows = list(csv.DictReader(exported.splitlines()))
    assert [row["outputs_cost"] for row in rows] == ["30.0", "60.0"]
    assert [row["constraints_cost"] for row in rows] == ["-10.0", "20.0"]
    Path("own.csv").write_text("x,value,cost\n0.1,5,30\n0.9,5,60\n")
    for file, study in (("a.csv", "b"), ("own.csv", "c")):
        stoic(*limited, "cost <= 20", "--study-name", study, "--from-csv", file)
        found = json.loads(stoic("trials", study, "--json").out)
        assert [trial["constraints"]["cost"] for trial in found] == [10.0, 40.0]
    # What the study has declared counts, though the command does not say it again
    Path("more.csv").write_text("x,value,cost\n0.5,5,25\n")
    stoic("create-study", "c", *X, "--skip-if-exists", "--from-csv", "more.csv")
    assert json.loads(stoic("trials", "c", "--json").out)[-1]["outputs"] == {"cost": 25.0}
    Path("optuna.csv").write_text("x,value,constraints_cost\n0.1,5,-10\n")
    refused = stoic(*limited, "cost <= 20", "--study-name", "d", "--from-csv", "optuna.csv")
    assert refused.code == 2
    assert "needs a column 'cost' with the output itself" in refused.err
    assert stoic("create-study", "e", *X, "--from-csv", "optuna.csv").code == 0  # holds up to 0


def test_a_batch_is_a_table_whose_values_are_filled_in(stoic):
    space = ["--param", "heat=float(20, 90)", "--param", "k=choice(a, b)"]
    stoic("create-study", "oven", *space, "--constraint", "cost <= 5")
    asked = stoic("ask", "oven", "-n", "5", "-f", "csv").out
    header, *lines = asked.splitlines()
    assert header == "number,params_heat,params_k"
    assert len(json.loads(stoic("ask", "oven", "-n", "2").out)) == 2
    assert stoic("ask", "oven", "-n", "0").code == 2
    ends = ["71.5,,3,", ",,,", ",infeasible,,", "nan,,,", "66,,9,0.5"]
    filled = [f"{line},{end}" for line, end in zip(lines, ends, strict=True)]
    new = "44,30.0,a,12,,1,"  # no number of a trial
    table = [f"{header},value,failed,cost,standard_error", *filled[::-1], new]
    Path("plate.csv").write_text("\n".join(table))
    told = stoic("tell", "oven", "--csv", "plate.csv")
    assert told.out == (
        "ended 4 running trials; 1 without a value run on\nadded 1 trial: 1 complete\n"
    )
    found = json.loads(stoic("trials", "oven", "--json").out)
    states = ["COMPLETE", "RUNNING", "FAIL", "FAIL", "COMPLETE", "RUNNING", "RUNNING", "COMPLETE"]
    assert [trial["state"] for trial in found] == states
    assert [found[k]["value"] for k in (0, 4, 7)] == [71.5, 66.0, 12.0]
    limits = [list(found[k]["constraints"].values()) for k in (0, 4, 7)]
    assert limits == [[-2.0], [4.0], [-4.0]]
    assert found[2]["user_attrs"] == {"stoic:failed": "infeasible"}
    assert found[4]["user_attrs"] == {"stoic:noise": 0.25}
    again = stoic("tell", "oven", "--csv", "plate.csv")  # once more
    assert "ended 0 running trials; 1 without a value run on" in again.out
    assert len(json.loads(stoic("trials", "oven", "--json").out)) == 8
    for old, other, said in (
        ("71.5,,3", "17.5,,3", "Trial 0 has ended with 71.5, and its row has 17.5"),
        (lines[1], "1,30.5,a", "Trial 1 runs with heat="),
    ):
        Path("other.csv").write_text("\n".join(table).replace(old, other))
        refused = stoic("tell", "oven", "--csv", "other.csv")
        assert refused.code == 2
        assert said in refused.err


BENCH = """
[study]
direction = "maximize"
threshold = 4
[parameters]
x = "float(0, 10)"
[tolerance]
x = 0.5
"""


def test_a_study_file_without_a_program_is_run_by_hand(stoic):
    Path("oven.toml").write_text(BENCH)
    assert stoic("create-study", "oven.toml").out == "oven\n"
    for k in range(8):
        x = json.loads(stoic("ask", "oven.toml").out)["params"]["x"]
        assert stoic("tell", "oven.toml", str(k), str(5.0 - (x - 6.0) ** 2 / 9.0)).code == 0
    assert "value >= 4" in stoic("certify", "oven").out
    for old, new in (("x = 0.5", "x = 0.25"), ("threshold = 4", "threshold = 3")):
        Path("oven.toml").write_text(BENCH.replace(old, new))
        certified = stoic("certify", "oven.toml").out
        assert certified != stoic("certify", "oven").out
        assert stoic("ask", "oven.toml").code == 0  # it counts from now on
        assert certified == stoic("certify", "oven").out
    refused = stoic("ask", "oven", "--confirm", "2", "--fix", "x=1")
    assert "leave out --fix, --param" in refused.err
    noted = BENCH.replace("x = 0.5", "x = 0.75")
    Path("oven.toml").write_text(noted)
    assert "until now this study was after something else" in stoic("ask", "oven.toml").err
    Path("oven.toml").write_text(noted.replace("maximize", "minimize"))
    assert "is to maximize, not to minimize" in stoic("ask", "oven.toml").err
    Path("oven.toml").write_text(noted)
    for command, said in (
        (["tune", "oven.toml"], "no section [program]: without one, `stoic create-study`"),
        (["create-study", "oven.toml"], "There is a study 'oven' already"),
        (["create-study", "oven.toml", "--direction", "minimize"], "A study file has its own"),
        (["ask", "oven.toml", "--confirm", "2"], "confirm compares settings as they were run"),
    ):
        refused = stoic(*command)
        assert (refused.code, said in refused.err) == (2, True), refused.err
    Path("plain.toml").write_text('[study]\nconfirm = 3\n[parameters]\nx = "float(0, 1)"\n')
    assert "stoic ask --confirm K measures" in stoic("create-study", "plain.toml").err
    Path("oven.toml").write_text(BENCH.replace("10", "20"))
    assert "another search space" in stoic("ask", "oven.toml").err


def test_a_setting_is_measured_again_by_hand(stoic):
    stoic("create-study", "s", *X)
    tried = []
    for k in range(12):
        tried.append(json.loads(stoic("ask", "s", "--seed", "0").out)["params"])
        stoic("tell", "s", str(k), str((tried[-1]["x"] - 0.3) ** 2 + 0.01 * (k % 3)))
    asked = stoic("ask", "s", "--seed", "0", "--confirm", "1")
    assert json.loads(asked.out)["params"] in tried
    assert "measured again: trial 12." in asked.err
    stoic("tell", "s", "12", "0.01")
    assert "1 measurement" in stoic("show", "s").out
    more = stoic("ask", "s", "--seed", "0", "--confirm", "1")
    assert "1 of 1 trials go on with the search" in more.err
    # Without a parameter that no result has yet
    assert (
        "y"
        in json.loads(stoic("ask", "s", "--seed", "0", "--param", "y=float(0, 1)").out)["params"]
    )
    assert json.loads(stoic("ask", "s", "--seed", "0", "--confirm", "2").out)["params"] in tried


def test_values_that_cannot_be_are_said_and_kept(stoic):
    program = [sys.executable, "-S", "-c", "import sys; print(3 * float(sys.argv[1]))", "{x}"]
    new = ["tune", "-p", "x=float(0, 1)", "-n", "6", "--seed", "0"]
    tuned = stoic(*new, "--possible", "0", "1", "--", *program)
    outside = [t for t in json.loads(stoic("trials", "--json").out) if t["value"] > 1]
    assert outside
    assert tuned.out.count("impossible: outside of 0 to 1") == len(outside)
    narrower = json.loads(stoic("show", "--json", "--possible", "0", "1e-6").out)
    assert len(narrower["impossible"]) > len(outside)
    assert all(t["told"] <= 1e-6 for t in json.loads(
        stoic("trust", "--json", "--possible", "0", "1e-6").out)["trials"])  # fmt: skip
    record = json.loads(stoic("show", "--json").out)
    assert record["impossible"].keys() == {str(trial["number"]) for trial in outside}
    resumed = stoic("tune", "-p", "x=float(0, 1)", "-n", "7", "--", *program)
    assert "\nimpossible     " in resumed.out
    Path("study.toml").write_text(
        '[study]\nname = "file"\npossible = [0, 1]\n[parameters]\nx = "float(0, 1)"\n'
        '[program]\ncommand = "echo {x}"\n'
    )
    assert stoic("tune", "study.toml", "-n", "2").code == 0
    wrong = Path("study.toml").read_text().replace("[0, 1]", "[1, 0]")
    Path("wrong.toml").write_text(wrong)
    assert "possible needs a low value and a higher one" in stoic("tune", "wrong.toml").err
    assert stoic("create-study", "old", "--possible", "-1", "1").code == 0


def test_a_program_that_never_says_what_is_constrained_is_stopped(stoic):
    program = [sys.executable, "-S", "-c", 'print(\'{{"value": 1, "latency": 2}}\')', "{x}"]
    asked = ["--value", "json:value", "--constraint", "latancy <= 3"]
    stopped = stoic("tune", *X, "-n", "7", *asked, "--", *program)
    assert stopped.code == 1
    assert "first 5 trials say nothing of a constraint" in stopped.err
    assert "'value, latency'" in stopped.err
    assert "5 trials: 5 complete" in stopped.out
    kept = stoic("tune", *X, "-n", "7", *asked, "--keep-going", "--", *program)
    assert "7 trials: 7 complete" in kept.out
    # Also where what it prints is not the same each time
    program[3] = 'import sys; print(\'{{"value": 1, "at%s": 2}}\' % sys.argv[1])'
    other = stoic("tune", *X, "-n", "7", *asked, "--study-name", "other", "--", *program)
    assert other.code == 1
    assert "first 5 trials say nothing of a constraint, latancy <= 3" in other.err


def test_ask_adds_a_parameter_or_widens_its_range_from_then_on(stoic):
    stoic("create-study", "s", "--param", "x=float(0, 1)", "--param", "k=choice(a, b)")
    for number, given in enumerate([[], ["x=float(0, 2)"], [], ["y=int(1, 9)"], []]):
        asked = stoic("ask", "s", *(f"--param={text}" for text in given))
        new = "note: 'y' is a new parameter from this trial on; there are x, k."
        assert (new in asked.err) == (given == ["y=int(1, 9)"])
        params = json.loads(asked.out)["params"]
        assert params.keys() == {"x", "k", "y"} if number > 2 else {"x", "k"}
        assert stoic("tell", "s", str(number), "0.5").code == 0
    assert json.loads(stoic("ask", "s", "--fix", "x=1.7").out)["params"]["x"] == 1.7
    refused = stoic("ask", "s", "--param", "k=choice(a, b, c)")
    assert refused.code == 2
    assert "k is choice(a, b) in this study and cannot become choice(a, b, c)" in refused.err
    assert "--from-csv takes over the trials that fit" in refused.err
    other = stoic("ask", "s", "--search-space", '{"x": "float(0, 1)", "k": "choice(a, c)"}')
    assert other.code == 2
    assert "k is choice(a, b) in this study and cannot become choice(a, c)" in other.err
    assert "1 running" in stoic("show", "s").out  # that of --fix: none was begun
    alone = json.loads(stoic("ask", "s", "--search-space", '{"x": "float(0, 1)"}').out)
    assert alone["params"].keys() == {"x"}


def test_a_program_that_fails_from_the_start_is_stopped_and_goes_on(stoic):
    broken = [sys.executable, "-S", "-c", "import os, sys; sys.exit('typo')", "{x}"]
    first = stoic("tune", *X, "-n", "7", "--", *broken)
    assert first.code == 1
    assert "The first 5 trials failed, the last one so: exit code 1." in first.err
    assert first.out.count("failed: exit code 1") == 5
    told = ["--study-name", "f", "--failed", "exit 1=infeasible"]
    assert stoic("tune", *X, "-n", "6", *told, "--", *broken).out.count("failed: exit") == 6
    kept = stoic("tune", *X, "-n", "6", "--study-name", "k", "--keep-going", "--", *broken)
    assert kept.out.count("failed: exit code 1") == 6
    fixed = stoic("tune", *X, "-n", "7", "--study-name", "stoic", *SQUARE)
    assert "7 trials: 2 complete, 5 fail" in fixed.out
    again = stoic("tune", *X, "-n", "7", "--study-name", "stoic", *SQUARE)
    assert again.out.startswith("study stoic in sqlite:////")
    assert again.out.splitlines()[0].endswith("/stoic.db: 7 of 7 trials are finished")
    assert "Nothing was left to do: --trials 14 goes on" in again.err


def test_ask_knows_the_space_of_a_tuned_study_and_never_looks_abandoned(stoic):
    stoic("tune", *X, "-n", "2", *SQUARE)
    asked = json.loads(stoic("ask").out)
    assert asked["number"] == 2
    assert -1 <= asked["params"]["x"] <= 1
    more = stoic("tune", *X, "-n", "5", *SQUARE)
    assert "running        trial 2, by somebody who left no name" in more.out
    assert "4 complete, 1 running" in more.out


OVEN = """
import json, math, os, random, sys
heat, n, trial = float(sys.argv[1]), int(sys.argv[2]), int(os.environ["STOIC_TRIAL"])
run = min(max(heat + random.Random(trial).uniform(-2, 2), 0.0), 100.0)
wide, narrow = math.exp(-(((run - 70) / 8) ** 2)), math.exp(-(((run - 30) / 1.5) ** 2))
told = dict(loss=1 - 0.95 * narrow - 0.8 * wide + 0.01 * (n - 5) ** 2, standard_error=0.01)
told["executed"] = dict(heat=612.0 if trial == 3 else run)
print(json.dumps(told))
"""
HEAT = ["-p", "heat=float(0, 100)", "-p", "n=int(1, 9)", "--value", "json:loss"]
AIM = ["--threshold", "0.4", "--tolerance", "heat=2"]


@pytest.mark.slow
def test_tolerances_from_the_command_line_to_the_certificate(stoic, caplog, unexplained):
    Path("oven.py").write_text(OVEN)
    oven = ["--", sys.executable, "-S", "oven.py", "{heat}", "{n}"]
    tuned = stoic("tune", *HEAT, *AIM, "-n", "24", "--seed", "0", *oven)
    assert (tuned.code, tuned.err.count("\n")) == (0, 1)
    assert tuned.err.startswith("Trial 3: heat was 612, outside of its range")
    # Said on the line of the trial, in the log, and in the summary.
    assert "  executed heat=" in tuned.out.splitlines()[1]
    assert [record.message for record in caplog.records if "612" in record.message] == [
        "Trial 3: heat was 612, outside of its range, 0 to 100: give a study a range that holds "
        "whatever may be run. It counts at 100, the nearest end."
    ]
    assert "\nnot modelled   Trial 3: heat was 612, outside of its range, 0 to 100:" in tuned.out

    shown = stoic("show")
    certificate = next(line for line in shown.out.splitlines() if line.startswith("certificate"))
    assert certificate in tuned.out
    assert certificate.startswith("certificate    value <= 0.4 as long as heat is closer than ")
    record = json.loads(stoic("show", "--json").out)
    held = record["certificate"]
    assert abs(held["params"]["heat"] - 70.0) < 4.0
    assert 0.5 < held["within"]["heat"] <= 4.3
    assert held["sentence"] in certificate
    assert record["trials"][0]["executed"].keys() == {"heat", "n"}
    listed = json.loads(stoic("trials", "-f", "json").out)
    assert listed[0]["user_attrs"]["stoic:noise"] == pytest.approx(1e-4)

    certified = stoic("certify", "--plot", "c.png")
    assert (certified.code, certified.err) == (0, "Wrote c.png.\n")
    assert certificate in certified.out
    assert Path("c.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    same = json.loads(stoic("certify", "--json").out)["recommended"]["certificate"]
    assert same == held
    stable = json.loads(stoic("certify", "--policy", "stable", "--radius", "2", "--json").out)
    assert stable["recommended"]["certificate"]["within"] == {"heat": 4.0}
    sloped = json.loads(stoic("certify", "--p", "1", "--json").out)["recommended"]["certificate"]
    assert " at a distance of d tolerances" in sloped["sentence"]
    number = stoic("certify", "--policy", "stable", "--threshold", "0.5")
    assert "does not go with the policy stable" in number.err

    # A resumed run without a word about it is after the same; another word replaces it.
    resumed = stoic("tune", *HEAT, "-n", "25", *oven)
    assert (resumed.err, "value <= 0.4" in resumed.out) == ("", True)
    other = stoic("tune", *HEAT, "-n", "26", "--threshold", "0.6", "--tolerance", "heat=3",
                  "--no-probe", *oven)  # fmt: skip
    assert other.err == (
        "note: until now this study was after something else: threshold 0.4, tolerance heat=2\n"
    )
    assert "value <= 0.6" in stoic("show").out
    far = stoic("tune", *HEAT, "-n", "26", "--threshold", "-1", "--tolerance", "heat=3", *oven)
    assert "probe False" in far.err
    assert (
        "\nthreshold      -1 is out of reach: no setting is expected to have a value below "
        in far.out
    )


@pytest.mark.long
def test_what_is_given_is_given_and_what_it_was_is_told(stoic, unexplained):
    Path("oven.py").write_text(OVEN)
    oven = ["--", sys.executable, "-S", "oven.py", "{heat}", "{n}"]
    fixed = stoic("tune", *HEAT, "-n", "12", "--startup", "8", "--fix", "n=7", *oven)
    assert fixed.code == 0
    assert "\ngiven          n=7, for which this is the best:\n" in fixed.out
    listed = json.loads(stoic("trials", "-f", "json").out)
    assert {trial["params"]["n"] for trial in listed} == {7}

    asked = json.loads(stoic("ask", "--fix", "heat=64.5").out)
    other_n = 2 if asked["params"]["n"] != 2 else 3  # which no trial has
    assert (asked["number"], asked["params"]["heat"]) == (12, 64.5)
    told = ["tell", "--trial-number", "12", "--values", "0.4"]
    refused = stoic(*told, "--executed", "heat=101")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "outside of its range, 0 to 100" in refused.err
    assert refused.err.endswith("For this trial give 100, where it would count.\n")
    assert stoic(*told, "--executed", "heat=66", "--standard-error", "0.1").code == 0
    last = json.loads(stoic("trials", "-f", "json").out)[-1]
    assert last["user_attrs"]["stoic:executed"] == {"heat": 66.0}
    assert last["user_attrs"]["stoic:noise"] == pytest.approx(0.01)
    assert json.loads(stoic("show", "--json").out)["trials"][-1]["executed"]["heat"] == 66.0

    shown = stoic("show", "--fix", "n=7").out
    assert "\ngiven          n=7, for which this is the best:\nobserved best  trial " in shown
    assert "  n=7\n" in shown
    other = stoic("show", "--fix", "n=2", "--fix", "heat=50")
    assert "\nrecommended    by the model alone, no such trial is trusted: " in other.out
    assert "\n               heat=50.0  n=2\n" in other.out
    assert json.loads(stoic("best-trial", "--fix", "n=7", "-f", "json").out)["params"]["n"] == 7

    for arguments, said in (
        (["ask", "--fix", "haet=3"], "did you mean 'heat'"),
        (["ask", "--fix", "heat=300"], "heat cannot be 300"),
        (["show", "--fix", "haet=3"], "did you mean 'heat'"),
        (["show", "--fix", "heat=300"], "heat cannot be 300"),
        (["best-trial", "--fix", f"n={other_n}"], f"with n={other_n} is trusted"),
        ([*told, "--standard-error", "0"], "a number above 0"),
        (["certify"], "as in --tolerance heat=2"),
        (["certify", "--tolerance", "haet=2"], "did you mean 'heat'"),
    ):
        refused = stoic(*arguments)
        assert refused.code == 2
        assert said in refused.err
    assert len(json.loads(stoic("trials", "-f", "json").out)) == 13


REFUSED = {
    "nothing to do": (["tune"], "nothing to tune"),
    "no command": (["tune", *X], "no program"),
    "no parameter": (["tune", *SQUARE], "nothing to tune"),
    "no placeholder": (["tune", *X, "-p", "y=float(0, 1)", *SQUARE], "'y' is not used"),
    "no such parameter": (["tune", *X, *SQUARE, "{y}"], "no parameter 'y'"),
    "empty range": (["tune", "-p", "x=float(1, 0)", *SQUARE], "empty"),
    "log of nothing": (["tune", "-p", "x=float(0, 1, log)", *SQUARE], "above 0"),
    "twice": (["tune", *X, *X, *SQUARE], "given twice"),
    "no such program": (["tune", *X, "--", "no-such-program", "{x}"], "Cannot find the program"),
    "direction": (["tune", *X, "--direction", "up", *SQUARE], "minimize or maximize"),
    "trials": (["tune", *X, "--trials", "0", *SQUARE], "at least 1"),
    "timeout": (["tune", *X, "--timeout", "-1", *SQUARE], "timeout must be"),
    "value": (["tune", *X, "--value", "regex:(", *SQUARE], "regular expression"),
    "no such file": (["tune", "none.toml"], "Cannot read the study file"),
    "file and parameters": (["tune", "none.toml", *X], "leave out --param"),
    "storage directory": (["tune", *X, "--storage", "sqlite:///no/x.db", *SQUARE], "no directory"),
    "storage nonsense": (["tune", *X, "--storage", "nonsense", *SQUARE], "not a database URL"),
    "storage class": (["tune", *X, "--storage-class", "X", *SQUARE], "Unknown storage class"),
    "show nothing": (["show"], "There is no storage"),
    "trust nothing": (["trust"], "There is no storage"),
    "trust in a format": (["trust", "-f", "xml"], "format must be"),
    "picture of no kind": (["trust", "--plot", "a.txt"], "must end with a format of pictures"),
    "picture nowhere": (["trust", "--plot", "no/a.png"], "no directory 'no' for the picture"),
    "trials of nothing": (["trials"], "There is no storage"),
    "best of nothing": (["best-trial"], "There is no storage"),
    "ask nothing": (["ask"], "There is no storage"),
    "ask not JSON": (["ask", "--search-space", "{"], "not JSON"),
    "tell nothing": (["tell", "--trial-number", "0"], "nothing to tell"),
    "tell a kind": (["tell", "--trial-number", "0", "--failed", "oom"], "must be one of"),
    "kind of an ending": (["tune", *X, "--failed", "exit 3=oom", *SQUARE], "must be one of"),
    "ending": (["tune", *X, "--failed", "explosion=bad", *SQUARE], "does not end with"),
    "no kind": (["tune", *X, "--failed", "timeout", *SQUARE], "not ENDING=KIND"),
    "tell a state": (["tell", "--trial-number", "0", "--state", "lost"], "state must be"),
    "tell nobody": (["tell", "--trial-number", "0", "--values", "1"], "There is no storage"),
    "format": (["trials", "-f", "xml"], "format must be"),
    "tolerance of nothing": (["tune", *X, *T, "--tolerance", "y=1", *SQUARE], "no parameter 'y'"),
    "tolerance alone": (["tune", *X, "--tolerance", "x", *SQUARE], "not NAME=VALUE"),
    "threshold alone": (["tune", *X, *T, *SQUARE], "Which parameters may be moved"),
    "threshold": (["tune", *X, "--threshold", "high", *SQUARE], "must be a number, got 'high'"),
    "policy": (["tune", *X, "--policy", "bold", "--tolerance", "x=1", *SQUARE], "or stable"),
    "fix": (["tune", *X, "--fix", "x=7", *SQUARE], "x cannot be 7"),
    "certify nothing": (["certify"], "There is no storage"),
    "certify nowhere": (["certify", "--plot", "no/a.png"], "no directory 'no' for the picture"),
    "no name": (["tune", *X, "--study-name", "", *SQUARE], "name of a study is empty: ''"),
    "create no name": (["create-study", " "], "name of a study is empty: ' '"),
    "create": (["create-study", "--direction", "up"], "minimize or maximize"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_one_sentence_and_leaves_nothing(stoic, arguments, said):
    refused = stoic(*arguments)
    assert refused.code == 2
    assert refused.out == ""
    assert said in refused.err
    assert refused.err.startswith("stoic: ")
    assert refused.err.count("\n") == 1
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trials": "trails"}, "Unknown key 'trails' in [study]: did you mean 'trials'?"),
        ({"command": "comand"}, "did you mean 'command'?"),
        ({"[study]": "[studies]"}, "did you mean 'study'?"),
        ({"float(-1, 1)": "float(1, 1)"}, "empty"),
        ({"{x}": ""}, "'x' is not used"),
        ({"command = ": 'command = ""\n# '}, "There is no program to run: give a command"),
    ],
)
def test_a_wrong_study_file_is_refused_too(stoic, change, said):
    refused = stoic("tune", write_study(**change))
    assert refused.code == 2
    assert said in refused.err
    assert refused.err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["mine.toml"]


def test_a_study_with_another_space_or_direction_is_refused_and_left_as_it_is(stoic):
    stoic("tune", *X, "-n", "2", *SQUARE)
    before = stoic("trials", "-f", "json").out
    for arguments, said in (
        ([*X, "--direction", "maximize"], "is to minimize, not to maximize"),
        (["-p", "x=float(-2, 1)"], "another search space"),
    ):
        refused = stoic("tune", *arguments, "-n", "9", *SQUARE)
        assert refused.code == 2
        assert said in refused.err
        assert "--study-name" in refused.err
    assert stoic("trials", "-f", "json").out == before
    unknown = stoic("show", "nobody")
    assert unknown.code == 2
    assert "it holds stoic" in unknown.err


def test_another_command_for_the_same_study_is_pointed_out(stoic):
    first = stoic("tune", *X, "-n", "1", *SQUARE)
    assert first.err == ""
    other = stoic("tune", *X, "-n", "2", "--", "{python}", "-S", "-c", "print(1)", "{x}")
    assert other.code == 0
    assert other.err.startswith("note: the storage says that earlier trials ran another command: ")


def test_how_a_value_was_read_is_remembered(stoic):
    program = ["--", "{python}", "-S", "-c", 'print(\'{{"a": 1, "b": 2}}\')', "{x}"]
    assert stoic("tune", *X, "-n", "1", "--value", "json:a", *program).err == ""
    again = stoic("tune", *X, "-n", "2", *program)
    assert (again.code, again.err) == (0, "")
    other = stoic("tune", *X, "-n", "3", "--value", "json:b", *program)
    assert other.err.startswith("note: until now values of this study were read by another rule")
    assert [each["value"] for each in json.loads(stoic("trials", "-f", "json").out)] == [1, 1, 2]


def test_without_a_finite_value_there_is_nothing_to_rely_on(stoic):
    tuned = stoic("tune", *X, "-n", "2", "--", "{python}", "-S", "-c", "print('inf')", "{x}")
    assert tuned.code == 1
    record = json.loads(stoic("show", "--json").out)
    assert record["model_optimum"] is record["recommended"] is None
    assert [each["expected"] for each in record["trials"]] == [None, None]
    assert [each["sd"] for each in record["trials"]] == ["inf", "inf"]
    [first, _] = json.loads(stoic("trust", "--json").out)["trials"]
    assert first["expected"] is None


def test_a_read_only_database_can_be_shown(stoic, monkeypatch):
    monkeypatch.setattr("stoic.integrations.optuna.turns._LONGEST", 0.1)
    stoic("tune", *X, "-n", "2", *SQUARE)
    url = "sqlite:///file:stoic.db?mode=ro&uri=true"
    for command in ("show", "trials", "best-trial"):
        assert stoic(command, "--storage", url).out == stoic(command).out
    refused = stoic("ask", "--storage", url)
    assert refused.code == 2
    assert "readonly" in refused.err


def test_a_report_is_one_file(stoic):
    pytest.importorskip("plotly", reason="the extra report is not installed")
    stoic("tune", *X, "--trials", "6", "--study-name", "squares", *SQUARE)
    made = stoic("report", "squares", "--out", "page.html")
    assert (made.code, made.out) == (0, "Wrote page.html.\n")
    assert "<title>squares (minimize)</title>" in Path("page.html").read_text()
    refused = stoic("report", "cubes")
    assert refused.code == 2
    assert "cubes" in refused.err


def test_a_figure_runs_somewhere(stoic):
    refused = stoic("reproduce", "outliers/weights", "--backend", "slurm")
    assert (refused.code, refused.err) == (
        2, "stoic: The backend is one of local, dask, ray, got 'slurm'.\n",
    )  # fmt: skip
    assert stoic("reproduce", "outliers/weights", "--address", "tcp://there").code == 2
    for option in (["--json"], ["--backend", "dask"], ["--address", "tcp://there"]):
        refused = stoic("reproduce", "outliers/weights", "--check", "2", *option)
        assert refused.code == 2
        assert f"leave out {option[0]}" in refused.err or f"or {option[0]}" in refused.err


def test_trust_in_a_study_without_a_value_is_refused(stoic):
    stoic("create-study", "--study-name", "s")
    refused = stoic("trust", "--plot", "a.png")
    assert refused.code == 2
    assert refused.err == "stoic: No trial of the study 's' has a value yet.\n"
    assert not Path("a.png").exists()


def test_a_locked_database_is_waited_for_and_then_one_sentence(stoic):
    import sqlite3

    stoic("tune", *X, "-n", "1", *SQUARE)
    held = sqlite3.connect("stoic.db", isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    refused = stoic("tune", *X, "-n", "2", "--patience", "0.2", *SQUARE)
    held.close()
    assert refused.code == 2
    assert "database is locked" in refused.err
    assert refused.err.count("\n") == 1


def test_figures_are_listed_and_an_unknown_one_is_refused(stoic):
    listed = stoic("list")
    assert listed.code == 0
    assert any(line.startswith("outliers/weights ") for line in listed.out.splitlines())
    refused = stoic("reproduce", "outliers/nothing")
    assert refused.code == 2
    assert "outliers/weights" in refused.err
    assert refused.err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_a_figure_is_reproduced(stoic):
    made = stoic("reproduce", "outliers/weights", "--out", "here", "--json")
    assert made.code == 0
    assert json.loads(made.out)["figure"] == "outliers/weights"
    assert {path.suffix for path in Path("here").iterdir()} == {".png", ".csv", ".json"}


def test_figures_are_reproduced_one_after_another(stoic):
    refused = stoic("reproduce", "outliers/weights", "outliers/none")  # before the first one
    assert (refused.code, list(Path().iterdir())) == (2, [])
    assert refused.err.startswith("stoic: There is no figure 'outliers/none'")
    made = stoic("reproduce", "heavy-tails/figure-1e", "outliers/weights", "--out", ".")
    assert made.code == 2  # what one lacks does not stop the others
    assert "heavy-tails/figure-1e: The light sensors need their table" in made.err
    assert len(list(Path().glob("outliers-weights.*"))) == 3
    refused = stoic("reproduce")
    assert (refused.code, "say --all" in refused.err) == (2, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
@pytest.mark.parametrize("arguments", [["list"], ["--version"]])  # more and less than a buffer
def test_an_output_that_cannot_be_written_is_said(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "stoic", *arguments]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "stoic: Cannot write the output: No space left on device.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
def test_errors_that_cannot_be_written_leave_the_exit_code():
    for arguments in (["list"], ["reproduce", "outliers/none"]):
        with open("/dev/full", "w") as full:
            command = [sys.executable, "-m", "stoic", *arguments]
            assert subprocess.run(command, stdout=full, stderr=full).returncode == 2


def test_all_figures_are_every_one_but_those_that_run_once(stoic, monkeypatch):
    made = []
    monkeypatch.setattr("stoic.experiments.reproduce", lambda name, **_: made.append(name))
    assert stoic("reproduce", "--all").code == 0
    assert "outliers/weights" in made
    assert not {"contest/final", "contest/held-out"} & {*made}


def test_a_figure_of_real_data_says_what_it_lacks(stoic):
    for data in ([], ["--data", "nothing.mat"]):
        refused = stoic("reproduce", "heavy-tails/figure-1e", *data)
        assert refused.code == 2
        assert "--data with the path" in refused.err
        assert refused.err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_bounds_are_printed(stoic):
    asked = ["bounds", "--kernel", "matern", "--nu", "2.5", "--dim", "2", "--rounds", "50000"]
    printed = stoic(*asked, "--budget", "50")
    assert printed.code == 0
    heading, *rows = printed.out.splitlines()
    assert heading.startswith("method")
    assert len(rows) == 5
    (pe,) = (row for row in rows if row.startswith("RGP-PE "))
    assert "T^0.643 + C T^0.429" in pe
    assert len({row.index("C < T^") for row in rows}) == 1  # columns stay columns

    record = json.loads(stoic(*asked, "--json").out)
    assert record["budget"] == "unknown"
    assert [row["order"] for row in record["bounds"]][2] == "T^0.643"
    assert json.loads(stoic(*asked, "--budget", "50", "--json").out)["budget"] == 50.0


def test_bounds_that_no_float_can_hold_are_json(stoic):
    # (ln 100)^600 is beyond 1e308.
    asked = ["bounds", "--kernel", "se", "--dim", "600", "--rounds", "100", "--budget", "5"]
    printed = stoic(*asked, "--json")
    assert printed.code == 0

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    rows = json.loads(printed.out, parse_constant=refuse)["bounds"]
    assert "inf" in [row["value"] for row in rows]
    assert all(float(row["value"]) > 0.0 for row in rows)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (["--kernel", "rbf"], "one of linear, se, matern, got 'rbf'"),
        (["--kernel", "matern"], "such as 2.5"),
        (["--kernel", "se", "--budget", "ten"], "a number or unknown, got 'ten'"),
        (["--kernel", "se", "--budget", "-1"], "not negative"),
    ],
)
def test_bounds_that_do_not_exist_are_refused(stoic, options, answer):
    refused = stoic("bounds", *options, "--dim", "2", "--rounds", "100")
    assert refused.code == 2
    assert answer in refused.err
    assert refused.err.count("\n") == 1


def test_the_version(stoic):
    assert stoic("--version").out.split()[0] == "stoic"


def test_an_unknown_option_is_code_2_without_a_traceback(stoic):
    refused = stoic("tune", "--nonsense")
    assert refused.code == 2
    assert "Traceback" not in refused.err


def test_help_imports_nothing_heavy():
    """What makes `stoic --help` quick; the time itself is for the benchmarks."""
    code = (
        "import sys, stoic.cli as cli\n"
        "sys.argv = ['stoic', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'optuna', 'scipy', 'matplotlib', 'sqlalchemy', 'joblib'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    assert "tune" in ran.stdout


def test_a_closed_pipe_ends_quietly(tmp_path):
    command = [sys.executable, "-m", "stoic", "tune", *X, "-n", "100000", *SQUARE]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"study stoic in sqlite")
    assert process.stdout.readline().startswith(b"trial 0")
    process.stdout.close()
    _, errors = process.communicate(timeout=300)
    assert b"Traceback" not in errors


METHODS = """
from stoic import Learner, Prior, recipes
from stoic.kernels import RBF


def phased(box):
    return Learner(box.grid(9), recipes.rgp_pe(prior=Prior(RBF(0.4), 0.05), budget=0.1))
"""


@pytest.mark.long
def test_a_recipe_is_recorded_and_looked_with(stoic):
    study = [*X, "--trials", "4", "--startup", "2", "--recipe", "gp_ucb"]
    assert stoic("tune", *study, *SQUARE).code == 0
    untold = stoic("tune", *X, "--trials", "5", "--startup", "2", *SQUARE)
    assert "recipe" not in untold.err
    own = json.loads(stoic("show", "--json").out)
    assert own == json.loads(stoic("show", "--json", "--recipe", "gp_ucb").out)
    other = json.loads(stoic("show", "--json", "--recipe", "robust").out)
    assert own["trials"] != other["trials"]
    assert stoic("tune", *X, "--trials", "6", "--recipe", "robust", *SQUARE).err == (
        "note: until now this study used another recipe: gp_ucb()\n"
    )
    assert json.loads(stoic("ask").out)["number"] == 6
    assert stoic("ask", "--recipe", "gp_ucb( )").err == (
        "note: until now this study used another recipe: robust()\n"
    )
    for command in (["show"], ["ask"], ["tune", *X, *SQUARE]):
        command[1:1] = ["--recipe", "rgp_ubc"]
        refused = stoic(*command)
        assert (refused.code, refused.err) == (
            2, "stoic: There is no recipe 'rgp_ubc': did you mean 'rgp_ucb'?\n"
        )  # fmt: skip


def test_a_file_that_a_storage_names_is_not_run_by_looking(stoic):
    said = ["--recipe", "methods.py:phased"]
    Path("methods.py").write_text(METHODS)
    Path("mine.toml").write_text(
        f"[study]\ntrials = 8\nname = 'stoic'\nrecipe = '{said[1]}'\n[parameters]\n"
        f"x = 'float(-1, 1)'\n[program]\ncommand = {json.dumps(SQUARE[1:])}\n"
    )
    assert stoic("tune", "mine.toml").code == 0
    off = json.loads(stoic("ask", *said, "--fix", "x=0.3").out)["number"]
    assert off == 8
    stoic("tell", "--trial-number", "8", "--values", "0.09")
    shown = stoic("show", *said)
    assert shown.err == ""
    assert "not in model   1, run at no point of the recipe's grid\n  trial 8: x=0.3\n" in shown.out
    trusted = stoic("trust", *said)
    assert (
        trusted.err == "not in model   1, run at no point of the recipe's grid\n  trial 8: x=0.3\n"
    )
    assert json.loads(stoic("trust", *said, "--json").out)["left_out"] == {"8": "x=0.3"}
    tolerances = ["--tolerance", "x=0.1", *T]
    refused = stoic("certify", *said, *tolerances)
    assert (refused.code, "a grid of 9 points" in refused.err) == (2, True)
    Path("methods.py").write_text("raise SystemExit('this was run')")
    commands = [
        ["show"],
        ["show", "mine.toml"],
        ["trust"],
        ["certify", *tolerances],
        ["best-trial"],
    ]
    for command in commands:
        looked = stoic(*command)
        assert looked.code == 0
        assert looked.err == (
            "note: What follows is as robust judges. The study's recipe is methods.py:phased, "
            "and a file is not run only because a storage names it: give it as --recipe, or "
            "recipe=.\n"
        )
    resumed = stoic("tune", *X, "--trials", "9", *SQUARE)
    assert resumed.code == 2
    assert "give --recipe methods.py:phased, or another one" in resumed.err


def test_an_outage_stops_a_campaign_that_has_worked(unexplained, stoic, tmp_path):
    gone = tmp_path / "gone"
    code = f"import os, sys; print(sys.argv[1]); sys.exit(7 * os.path.exists({str(gone)!r}))"
    command = ["--failed", "exit 7=transient", "--", sys.executable, "-S", "-c", code, "{x}"]
    assert stoic("tune", *X, "-n", "6", *command).code == 0
    gone.touch()
    stopped = stoic("tune", *X, "-n", "40", *command)
    assert stopped.code == 1
    assert "The last 10 trials failed, and not because of their parameters" in stopped.err
    assert "10 x exit code 7 (transient): trials 6, 7, 8" in stopped.out
    kept = stoic("tune", *X, "-n", "28", "--keep-going", *command)
    assert "22 x exit code 7 (transient)" in kept.out
    gone.unlink()
    assert "32 trials: 10 complete" in stoic("tune", *X, "-n", "32", *command).out


def test_a_program_whose_values_are_all_impossible_is_stopped(stoic):
    percent = [sys.executable, "-S", "-c", "import sys; print(90 + float(sys.argv[1]))", "{x}"]
    stopped = stoic("tune", *X, "-n", "7", "--possible", "0", "1", "--", *percent)
    assert stopped.code == 1
    assert "The first 5 trials failed" in stopped.err
    assert "not possible, which is 0 to 1" in stopped.err
    fixed = stoic("tune", *X, "-n", "6", "--possible", "0", "100", "--", *percent)
    assert "6 trials: 6 complete" in fixed.out
