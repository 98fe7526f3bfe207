"""Intermediate values and bounds: of programs, functions, study files and by hand."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from typer.testing import CliRunner

from stoic import Measured
from stoic.cli import app
from stoic.integrations.optuna import CENSORED, explain
from stoic.integrations.optuna.confirming import confirms
from stoic.refusal import RefusalError
from stoic.tuning import tune
from stoic.tuning.program import Program
from stoic.tuning.pruning import PRUNERS, check_pruner
from stoic.tuning.reading import Reading
from stoic.tuning.request import Settings, from_file
from stoic.tuning.template import Template

TRAIN = """
import os, sys, time
x = float(sys.argv[1])
for step in range(1, 11):
    print(f"loss {(x - 0.3) ** 2 + 1 / step}", flush=True)
    time.sleep(float(os.environ.get("PAUSE", 0)))
    if step == 3 and "STUCK" in os.environ:
        time.sleep(600)
print((x - 0.3) ** 2 + 0.1)
"""


def program(code: str, rule: str = r"regex:^loss (\S+)") -> Program:
    escaped = code.replace("{", "{{").replace("}", "}}")
    template = Template((sys.executable, "-c", escaped, "{x}"))
    reading = Reading.of_lines(rule)
    return Program(template, Reading.parse("last-line"), Path.cwd(), 300, intermediate=reading)


def test_intermediate_values_come_as_they_are_printed():
    seen = []
    result = program(TRAIN).run({"x": 0.3}, reported=lambda value: seen.append(value))
    assert seen == pytest.approx([1.0 / step for step in range(1, 11)])
    assert result.value == pytest.approx(0.1)


def test_lines_in_pieces_nan_and_nonsense():
    code = (
        "import sys, time\n"
        "for piece in ('lo', 'ss 0.5', '\\nloss nan\\nloss many\\nother 3\\nloss 0.25\\nloss 9'):\n"
        "    print(piece, end='', flush=True); time.sleep(0.05)\n"
        "print()\nprint(7)"
    )
    seen = []
    assert program(code).run({"x": 0}, reported=lambda value: seen.append(value)).value == 7.0
    assert [str(value) for value in seen] == ["0.5", "nan", "0.25", "9.0"]


def test_values_that_are_slow_to_store_lose_no_output():
    code = "for k in range(4): print(f'loss {k}', 'x' * 70_000)\nprint('loss 9')\nprint(7)"
    seen = []

    def slowly(value):
        seen.append(value)
        time.sleep(0.4)
        return value == 9.0  # too late: it has ended

    result = program(code, r"regex:^loss (\d+)").run({"x": 0}, reported=slowly)
    assert seen == [0.0, 1.0, 2.0, 3.0, 9.0]
    assert result.value == 7.0 or result.pruned  # it waits until its output is read


def test_a_pruned_program_is_stopped_with_all_it_started(tmp_path):
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(p.pid))\n"
        "print('loss 3', flush=True)\n"
        "time.sleep(600)"
    )
    began = time.monotonic()
    result = program(code).run({"x": 0}, reported=lambda value: value == 3.0)
    assert (result.value, result.pruned, result.reason) == (None, True, "pruned")
    assert time.monotonic() - began < 120
    for _ in range(200):
        stat = Path(f"/proc/{child.read_text()}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the child still runs")


def test_a_program_says_that_its_value_is_a_bound():
    plain = replace(program(""), reading=Reading.parse("json:loss"), intermediate=None)

    def printing(line: object) -> object:
        code = f"print({json.dumps(json.dumps(line))})"
        return replace(plain, template=program(code).template).run({"x": 0})

    said = printing({"loss": 0.5, "censored": True, "standard_error": 0.1})
    assert (said.value, said.bound, said.pruned) == (None, 0.5, True)
    assert said.noise == pytest.approx(0.01)
    assert printing({"loss": 0.5, "censored": False}).value == 0.5
    assert printing({"loss": 0.5, "censored": "yes"}).value == 0.5
    assert printing({"censored": 0.0}).bound == 0.0  # and no value
    assert printing({"loss": 0.5, "censored": None}).bound is None


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("mediam", "regex:(.)", 1), "pruner must be stoic, median, hyperband, none, got 'mediam'"),
        (("median", None, 1), "'median' needs intermediate values"),
        ((None, "regex:(.)", 3), "of one measurement, and repeats is 3"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(arguments, match):
    with pytest.raises(RefusalError, match=match):
        check_pruner(*arguments)


def test_the_default_pruner_and_its_rule():
    assert check_pruner(None, None, 5) == "none"
    assert check_pruner(None, "json:loss", 1) == "stoic"
    assert all(check_pruner(name, "json:loss", 1) == name for name in PRUNERS)
    with pytest.raises(RefusalError, match="lines of their own"):
        Reading.of_lines("last-line")


def test_a_study_file_has_them_too(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(
        '[parameters]\nx = "float(0, 1)"\n[program]\ncommand = "true {x}"\n'
        "intermediate = 'regex:loss (.*)'\npruner = 'median'\n"
    )
    request = from_file(file, Settings())
    assert (request.pruner, request.program.intermediate.written) == ("median", "regex:loss (.*)")
    assert from_file(file, Settings(pruner="none")).pruner == "none"


@pytest.fixture
def stoic(tmp_path, monkeypatch):
    """The command line in a directory with a program, as a function of its words."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.setenv("STOIC_STORAGE", f"sqlite:///{tmp_path / 'x.db'}")
    url = f"sqlite:///{tmp_path / 'x.db'}"

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, [*words, "--storage", url])
        return result.output if result.exception is None else f"{result.exception}"

    run.url = url
    return run


def trials_of(stoic) -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name="s", storage=stoic.url).trials


def test_by_hand_a_step_is_told_and_a_bound(stoic):
    stoic("create-study", "s", "--param", "x=float(0, 1)")
    for number in range(9):
        stoic("ask", "s")
        for step in (1, 2, 3):
            assert stoic("tell", "s", str(number), str(number / step), "--step", str(step)) == (
                "go on\n"
            )
        stoic("tell", "s", str(number), str(number / 3))
    stoic("ask", "s")
    assert stoic("tell", "s", "9", "50", "--step", "1") == "go on\n"  # one value decides nothing
    assert stoic("tell", "s", "9", "50", "--step", "2") == "prune\n"
    assert "is pruned" in stoic("tell", "s", "9", "--state", "pruned")
    assert "no such trial is running" in stoic("tell", "s", "9", "50", "--step", "3")
    stoic("ask", "s")
    assert "nothing else goes with it" in stoic("tell", "s", "10", "5", "--step", "1", "--censored")
    assert "a bound does not go with a failure" in stoic(
        "tell", "s", "10", "5", "--censored", "--failed", "bad"
    )
    assert "is pruned" in stoic("tell", "s", "10", "5", "--censored")
    last = trials_of(stoic)[-1]
    assert (last.state, last.user_attrs[CENSORED]) == (TrialState.PRUNED, 5.0)
    assert "2 without a final value count" in stoic("show", "s")
    record = json.loads(stoic("show", "s", "--json"))
    assert [row["number"] for row in record["unfinished"]] == [9, 10]


def test_a_campaign_prunes_stores_and_resumes(stoic, monkeypatch):
    words = ["tune", "--param", "x=float(0, 1)", "--study-name", "s"]
    words += ["--intermediate", r"regex:^loss (\S+)", "--pruner", "median", "--seed", "0"]
    command = ["--", sys.executable, "train.py", "{x}"]

    def go_on(trials: int) -> str:
        found = CliRunner().invoke(
            app, [*words, "--storage", stoic.url, "-n", str(trials), *command]
        )
        return found.output

    monkeypatch.setenv("PAUSE", "0.1")  # else it has ended before it can be stopped
    go_on(6)
    shown = go_on(12)  # resumed
    pruned = [t for t in trials_of(stoic) if t.state == TrialState.PRUNED]
    assert len(trials_of(stoic)) == 12
    assert pruned
    assert all(t.intermediate_values for t in trials_of(stoic))
    assert all(t.value is None or t.state != TrialState.FAIL for t in trials_of(stoic))
    assert f"{len(pruned)} without a final value count" in shown
    assert "not stored" not in shown
    # a trial that times out after some values has failed, and they are stored
    monkeypatch.setenv("STUCK", "1")
    words += ["--timeout", "3", "--pruner", "none"]
    go_on(13)
    last = trials_of(stoic)[-1]
    assert len(last.intermediate_values) == 3
    assert last.state == TrialState.FAIL
    known = explain(optuna.load_study(study_name="s", storage=stoic.url))
    assert 12 not in [row.number for row in known.partial]


CURVES = """
import sys, time
x, number = float(sys.argv[1]), len(open("runs").readlines())
open("runs", "a").write("run\\n")
for step in range(1, 6):
    print(f"loss {(x - 0.3) ** 2 + 1 / step}", flush=True)
    time.sleep(0.02)
    while number in (8, 16) and step == 3 and not open("go").read():
        time.sleep(0.02)
print((x - 0.3) ** 2 + 0.2 + 0.01 * (number % 3))
"""


@pytest.mark.long
def test_killed_in_a_trial_and_in_the_confirmation_nothing_is_lost(tmp_path):
    """The ninth run and the third of the confirmation hang after three values."""
    (tmp_path / "train.py").write_text(CURVES)
    (tmp_path / "runs").touch()
    (tmp_path / "go").touch()
    url = f"sqlite:///{tmp_path / 'x.db'}"
    words = ["tune", "--storage", url, "--study-name", "s", "--param", "x=float(0, 1)"]
    words += ["--intermediate", r"regex:^loss (\S+)", "--pruner", "stoic", "--seed", "0"]
    words += ["-n", "14", "--confirm", "4", "--", "{python}", "-S", "train.py", "{x}"]

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "stoic", *words]
        return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)

    def stored() -> list[optuna.trial.FrozenTrial]:
        return optuna.load_study(study_name="s", storage=url).trials

    def running(number: int) -> bool:
        if len((tmp_path / "runs").read_text().split()) <= number:
            return False
        last = stored()[-1]
        return last.state == TrialState.RUNNING and len(last.intermediate_values) == 3

    before: list[optuna.trial.FrozenTrial] = []
    for hangs in (8, 16):
        process, until = start(), time.monotonic() + 300.0
        while not running(hangs):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = stored()
    assert confirms(before[-1])  # the second one is a measurement
    (tmp_path / "go").write_text("go")
    assert start().wait(timeout=300) == 0
    after = stored()
    for then, now in zip(before[:-1], after[: len(before) - 1], strict=True):
        assert (now.number, now.state, now.values) == (then.number, then.state, then.values)
        assert now.intermediate_values == then.intermediate_values
    lost = [t for t in after if t.user_attrs.get("failure") == "its worker died"]
    assert [t.number for t in lost] == [8, len(before) - 1]
    assert all(len(t.intermediate_values) == 3 for t in lost)
    measured = [t for t in after if confirms(t) and t.state == TrialState.COMPLETE]
    assert sum(not confirms(t) for t in after) == 14
    assert 1 <= len(measured) <= 4
    known = explain(optuna.load_study(study_name="s", storage=url))
    assert known.confirmation is not None


def test_a_rule_that_reads_nothing_is_said(stoic):
    words = [
        "tune",
        "--param",
        "x=float(0, 1)",
        "--study-name",
        "s",
        "-n",
        "2",
        "--storage",
        stoic.url,
    ]
    rule = ["--intermediate", r"regex:^epoc (\S+)"]
    said = CliRunner().invoke(app, [*words, *rule, "--", sys.executable, "train.py", "{x}"]).output
    assert said.count("printed no intermediate value: no line has what regex:^epoc") == 1


def test_a_function_says_that_its_value_is_a_bound():
    def objective(params):
        loss = (params["x"] - 0.3) ** 2
        return Measured(0.2, censored=True) if loss > 0.2 else loss

    found = tune(objective, {"x": "float(0, 1)"}, n_trials=14, seed=0)
    bounded = [t for t in found.study.trials if t.state == TrialState.PRUNED]
    assert bounded
    assert all(t.user_attrs[CENSORED] == 0.2 for t in bounded)
    assert all(math.isnan(found.func_vals[t.number]) for t in bounded)
    assert abs(found.x["x"] - 0.3) < 0.05
    failed = tune(
        lambda params: Measured(math.inf, censored=True) if params["x"] > 0.5 else 1.0,
        {"x": "float(0, 1)"},
        n_trials=4,
        seed=0,
    )
    assert "the bound inf is no finite number" in failed.failures
