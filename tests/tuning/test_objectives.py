"""Several objectives through the command line, study files and Python functions."""

from __future__ import annotations

import json
import math
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from scripts import trials_of
from stoic import Failed, Measured, tune_front
from stoic.cli.app import main
from stoic.integrations.optuna import NOISE, VALUES, explain
from stoic.refusal import RefusalError
from stoic.tuning.objectives import Objective, parse_objectives
from stoic.tuning.request import Settings, from_file
from stoic.tuning.views.front import draw
from studies import add

PROGRAM = """
import json, os, sys
x = float(sys.argv[1])
out = {"loss": (x - 0.2) ** 2, "gain": 100.0 - 100.0 * (x - 0.8) ** 2, "size": {"mb": x}}
if os.environ["STOIC_TRIAL"] == "2":
    out["gain"] = float("nan")
if os.environ["STOIC_TRIAL"] == "3":
    del out["gain"]
if os.environ["STOIC_TRIAL"] == "7":
    out["loss"] = 1e6
print(json.dumps(out | {"standard_error": [0.01, 2.0]}))
"""
STORAGE = "sqlite:///stoic.db"
GOAL = "--minimize loss --maximize gain"
TUNE = "tune --param x=float(0,1) --seed 1 {} -- {{python}} -S program.py {{x}}"


@pytest.fixture
def stoic(tmp_path, monkeypatch, capsys):
    """Run the command line in a directory of its own: what it prints, and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    Path("program.py").write_text(PROGRAM)
    verbosity = optuna.logging.get_verbosity()

    def run(line):
        monkeypatch.setattr(sys, "argv", ["stoic", *shlex.split(line)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return said.out, said.err, code

    yield run
    optuna.logging.set_verbosity(verbosity)


def stored(name="stoic"):
    return optuna.load_study(storage=STORAGE, study_name=name)


def test_a_program_with_two_outputs_is_tuned_and_nothing_is_lost(stoic):
    out, _, code = stoic(TUNE.format(f"{GOAL} --trials 16"))
    assert code == 0
    assert "study stoic (minimize loss and maximize gain): 16 trials" in out
    assert "recommended    a front of " in out
    assert "trial 7, loss: observed 1e+06" in out
    study = stored()
    assert study.metric_names == ["loss", "gain"]
    for number, why in (
        (2, "gain is nan"),
        (3, "no value: the JSON has no key gain, it has 'loss, "),
    ):
        trial = study.trials[number]
        assert trial.state == TrialState.FAIL
        assert trial.user_attrs["failure"].startswith(why)
        assert trial.user_attrs[VALUES] == [(trial.params["x"] - 0.2) ** 2, None]
    assert study.trials[0].user_attrs[NOISE] == pytest.approx([1e-4, 4.0])
    record = json.loads(stoic("show --json")[0])
    assert record["objectives"] == ["loss", "gain"]
    assert record["trust"]["7"]["loss"] < 0.5 <= record["trust"]["7"]["gain"]
    assert record["trust"]["2"].keys() == {"loss"}
    assert record["distrusted"] == [7]
    assert record["recommended"] is record["observed_best"] is None
    for point in record["front"]:
        assert point["lower"]["gain"] <= point["mean"]["gain"] <= point["upper"]["gain"]
    known = explain(study)
    assert [point["number"] for point in record["front"]] == [p.trial.number for p in known.front]
    rows = json.loads(stoic("trust --json")[0])["trials"]
    assert {(row["number"], row["objective"]) for row in rows if row["trust"] < 0.5} == {
        (7, "loss")
    }
    listed = json.loads(stoic("trials --json")[0])
    assert listed[2]["values"] == {"loss": study.trials[2].user_attrs[VALUES][0], "gain": None}


def test_a_run_goes_on_with_the_recorded_objectives(stoic):
    assert stoic(TUNE.format(f"{GOAL} --trials 2"))[2] == 0
    assert stoic(TUNE.format("--trials 5"))[2] == 0
    assert stoic(TUNE.format("--maximize gain --minimize loss --trials 6"))[2] == 0
    assert len(stored().trials) == 6
    for wrong, said in (
        ("--minimize loss --minimize gain", "is to minimize loss and maximize gain, not to"),
        ("--minimize loss --maximize size.mb", "not to minimize loss and maximize size.mb"),
        ("--direction maximize", "leave out direction and value"),
        ("--value json:loss", "leave out direction and value"),
        ("--recipe gp_ucb", "recipe works with one objective"),
        ("--confirm 3", "confirm works with one objective"),
    ):
        _, err, code = stoic(TUNE.format(f"{wrong} --trials 9"))
        assert (code, said in err) == (2, True), err
    assert len(stored().trials) == 6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (f"{GOAL} --direction minimize", "direction says the same"),
        (f"{GOAL} --value last-line", "value says the same"),
        (f"{GOAL} --confirm 5", "confirm works with one objective, and there are 2"),
        (f"{GOAL} --until-settled noise", "until_settled works with one objective"),
        (f"{GOAL} --repeats 3", "repeats works with one objective"),
        (f"{GOAL} --possible 0 1", "possible works with one objective"),
        (f"{GOAL} --tolerance x=0.1", "a tolerance works with one objective"),
        (f"{GOAL} --minimize gain", "'gain' is given twice"),
        ("--minimize a --minimize b --minimize c --minimize d", "At most 3 objectives"),
        ("--minimize regex:( --minimize b", "The regular expression '(' is wrong"),
    ],
)
def test_bad_requests_get_a_sentence_and_create_nothing(stoic, options, said):
    _, err, code = stoic(TUNE.format(options))
    assert (code, said in err) == (2, True), err
    assert not Path("stoic.db").exists()


def test_one_output_to_maximize_is_one_objective(stoic):
    out, _, code = stoic(TUNE.format("--maximize size.mb --trials 3"))
    assert code == 0
    assert "study stoic (maximize): 3 trials" in out
    assert [trial.value for trial in stored().trials] == [t.params["x"] for t in stored().trials]


def test_values_are_told_by_the_name_of_an_objective_alone(stoic):
    rule = "regex:t=([0-9.]+)"
    goals = f"--minimize loss --maximize '{rule}'"
    assert stoic(f"create-study b --param 'x=float(0, 1)' {goals}")[2] == 0
    stoic("ask b")
    assert f"loss 0.5, {rule} 7" in stoic(f"tell b 0 '{rule}=7' loss=0.5")[0]
    stoic("create-study c --param 'x=float(0, 1)'")
    stoic("ask c")
    _, err, code = stoic("tell c 0 x=0.3")
    assert (code, "one objective without a name, and 'x' is none" in err) == (2, True)


def test_ask_and_tell_one_value_for_each_objective(stoic):
    _, err, code = stoic(f"create-study stoic --param 'x=float(0, 1)' {GOAL}")
    assert code == 0
    assert "values in this order: loss, gain" in err
    for number in range(5):
        assert json.loads(stoic("ask")[0])["number"] == number
    assert stoic("tell 0 0.31 12.0")[0] == "trial 0 is complete: loss 0.31, gain 12\n"
    assert "loss 0.5, gain 10" in stoic("tell stoic 1 --values 0.5 --values 10")[0]
    assert stoic("tell 2 nan 11.0")[0] == "trial 2 is fail\n"
    assert "loss 0.2, gain 9" in stoic("tell 4 gain=9 loss=0.2")[0]
    study = stored()
    numbers = [0, 1, 4]
    values = [study.trials[number].values for number in numbers]
    assert values == [[0.31, 12.0], [0.5, 10.0], [0.2, 9.0]]
    assert study.trials[2].user_attrs[VALUES] == [None, 11.0]
    for wrong in ("0.3", "0.3 1 2"):
        _, err, code = stoic(f"tell 3 {wrong}")
        assert code == 2
        assert "has loss, gain: give one of each" in err
    _, err, code = stoic("tell 3 loss=0.3 gian=1")
    assert (code, "has the objectives loss, gain, and 'gian' is none" in err) == (2, True)
    _, err, code = stoic("tell 3 loss=0.3")
    assert (code, "The value of gain is missing" in err) == (2, True)
    _, err, code = stoic("tell 3 loss=0.3 --values 3")
    assert (code, "say the same" in err) == (2, True)
    assert stored().trials[3].state == TrialState.RUNNING
    assert stoic("tell 3 --failed infeasible")[0] == "trial 3 is fail\n"
    for line, said in (
        ("best-trial", "stoic show prints its front"),
        ("certify --tolerance x=0.1", "stoic show prints its front"),
        ("trust --plot x.png", "stoic show --plot draws its front"),
        ("confirm --trials 3 -- {python} -S program.py {x}", "one objective"),
    ):
        _, err, code = stoic(line)
        assert (code, said in err) == (2, True), err
    assert "minimize/maximize" in stoic("studies")[0]


def test_each_objective_has_a_standard_error(stoic):
    stoic(f"create-study stoic --param 'x=float(0, 1)' {GOAL}")
    for error, said in (
        ("0.1", "standard-error must be a number above 0 for each of loss, gain, got 0.1:"),
        ("loss=nan", "above 0 for each of loss, gain, got loss=nan: leave it out"),
        ("loss=0.1 --standard-error gian=1", "'gian' is none"),
        ("0.1 --standard-error 0", "above 0 for each of loss, gain, got 0.1 and 0:"),
    ):
        stoic("ask")
        _, err, code = stoic(f"tell 0 1 2 --standard-error {error}")
        assert (code, said in err) == (2, True), err
    errors = (
        "--standard-error gain=2 --standard-error loss=0.1",
        "--standard-error 0.1 --standard-error 2",
    )
    for number, error in enumerate(errors):
        assert stoic(f"tell {number} 0.3 12 {error}")[2] == 0
    noises = [trial.user_attrs[NOISE] for trial in stored().trials[:2]]
    assert noises == [pytest.approx([0.01, 4.0])] * 2
    for number, error in ((2, "gain=2"), (3, "loss=nan --standard-error gain=2")):
        assert stoic(f"tell {number} 0.3 12 --standard-error {error}")[2] == 0
        assert stored().trials[number].user_attrs[NOISE] == [None, 4.0]
    stoic("ask")
    _, err, code = stoic("tell 4 0.3 12 --standard-error many --standard-error 1")
    assert (code, "A standard error must be a number, got 'many'" in err) == (2, True), err


def test_a_batch_of_several_objectives_is_a_table(stoic):
    Path("old.csv").write_text("x,loss,gain\n0.1,1,30\n0.9,2,20\n")
    made = stoic(f"create-study stoic --param 'x=float(0, 1)' {GOAL} --from-csv old.csv")
    assert "added 2 trials: 2 complete" in made[1]
    header, *rows = stoic("ask -n 3 -f csv")[0].splitlines()
    # What is empty may come later, and nan does not
    filled = [f"{row},{said}" for row, said in zip(rows, ("22,0.4", "21,", "nan,0.5"), strict=True)]
    Path("batch.csv").write_text("\n".join([f"{header},gain,loss", *filled]))
    for count in (2, 0):  # the second time there is nothing new
        assert (
            f"ended {count} running trials; 1 without a value" in stoic("tell --csv batch.csv")[0]
        )
    trials = stored().trials
    assert [t.values for t in trials] == [[1.0, 30.0], [2.0, 20.0], [0.4, 22.0], None, None]
    assert trials[4].user_attrs[VALUES] == [0.5, None]
    filled[1] += "0.6"
    Path("batch.csv").write_text("\n".join([f"{header},gain,loss", *filled]))
    assert "ended 1 running trial\n" in stoic("tell --csv batch.csv")[0]
    assert stored().trials[3].values == [0.6, 21.0]
    changed = stoic("tell 2 0.5 22")[1]
    assert "stoic create-study --from-csv FILE --minimize loss --maximize gain`" in changed


def test_with_several_objectives_a_trial_that_says_what_was_run_counts_once(stoic):
    stoic(f"create-study stoic --param 'x=float(0, 1)' {GOAL}")
    for number, executed in enumerate(("", "--executed x=0.5", "")):
        stoic("ask")
        stoic(f"tell {number} 0.{number + 3} 12 {executed}")
    assert "executed       1 of 3 trials say what was run" in stoic("show")[0]
    stoic("ask")
    stoic("tell 3 0.1 30 --executed x=0.5")
    assert "was run as x=0.5\n" in stoic("show")[0]
    front = json.loads(stoic("show --json")[0])["front"]
    assert {"x": 0.5} in [point.get("executed") for point in front]


def test_nothing_is_confirmed_and_no_trial_is_left(stoic):
    stoic(f"create-study stoic --param 'x=float(0, 1)' {GOAL}")
    _, err, code = stoic("ask --confirm 2")
    assert (code, "one objective" in err) == (2, True), err
    assert stored().trials == []


def test_more_values_than_objectives_are_refused_for_one_objective(stoic):
    stoic("create-study stoic --param 'x=float(0, 1)'")
    stoic("ask")
    _, err, code = stoic("tell 0 1 2")
    assert code == 2
    assert "has one objective" in err


def test_a_study_file_has_objectives(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        '[study]\nminimize = ["latency"]\nmaximize = ["score.mean", "regex:acc=(.*)"]\n'
        '[parameters]\nx = "float(0, 1)"\n[program]\ncommand = "run {x}"\n'
    )
    assert from_file(path, Settings()).program.objectives == (
        Objective("latency", "minimize"),
        Objective("score.mean", "maximize"),
        Objective("regex:acc=(.*)", "maximize"),
    )
    given = Settings(objectives=parse_objectives(["a", "b"], None))
    assert [each.name for each in from_file(path, given).program.objectives] == ["a", "b"]


def test_a_study_of_optuna_without_names_gets_them(stoic):
    optuna.create_study(storage=STORAGE, study_name="stoic", directions=["minimize", "maximize"])
    assert stoic(TUNE.format(f"{GOAL} --trials 2"))[2] == 0
    assert stored().metric_names == ["loss", "gain"]


SPACE = {"x": "float(0, 1)", "y": "float(0, 1)"}


def objective(params):
    x, y = params["x"], params["y"]
    return (x - 0.2) ** 2 + y**2, 100.0 - 100.0 * (x - 0.8) ** 2 - 10.0 * y


DIRECTIONS = {"loss": "minimize", "gain": "maximize"}


def test_a_function_with_two_objectives_is_tuned():
    numbers = iter(range(100))

    def measured(params):
        number, values = next(numbers), list(objective(params))
        if number == 4:
            values[0] = math.nan
        if number == 5:
            raise Failed("transient", "the machine went down")
        if number == 6:
            return 1.0, 2.0, 3.0
        return Measured(values=values, standard_error=[0.01, 1.0])

    result = tune_front(measured, SPACE, DIRECTIONS, n_trials=18, seed=0)
    assert len(result.front) >= 4
    assert all(point.trial.params["y"] < 0.3 for point in result.front)
    trials = result.study.trials
    assert trials[4].user_attrs[VALUES][0] is None
    assert trials[6].user_attrs[VALUES] == [1.0, 2.0, 3.0]
    assert "3 values, and the study has 2 objectives" in trials[6].user_attrs["failure"]
    assert result.failure_kinds == {5: "transient"}
    assert set(result.trust[4]) == {"gain"}
    assert str(result) == result.text
    assert "recommended    a front of" in result.text


def test_the_legend_of_a_front_counts_trials_and_not_marks_of_one_panel():
    names = ["minimize"] * 3
    study = optuna.create_study(directions=names)
    for number, x in enumerate(np.linspace(0.0, 1.0, 15)):
        values = [x**2, (1.0 - x) ** 2, (x - 0.5) ** 2 + 50.0 * (number == 7)]
        add(study, {"x": x}, {"x": FloatDistribution(0.0, 1.0)}, values)
    known = explain(study)
    picture = draw(replace(known, infeasible=(2, 3, 7)))
    labels = [text.get_text() for text in picture.legends[0].get_texts()]
    assert labels[:3] == ["violates a constraint (2)", "trusted (12)", "a value distrusted (1)"]
    assert labels[-1] == f"recommended front ({len(known.front)})"
    # The first panel lacks the value that is distrusted
    marks = [
        {line.get_label(): len(line.get_xdata()) for line in axes.lines} for axes in picture.axes
    ]
    assert [panel["a value distrusted (1)"] for panel in marks] == [0, 1, 1]
    assert all(sum(panel[label] for label in labels[:3]) == 15 for panel in marks)


def test_directions_in_another_order_continue_the_same_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    given = {"storage": url, "study_name": "s", "seed": 0}
    tune_front(objective, SPACE, DIRECTIONS, n_trials=3, **given)
    turned = dict(reversed(DIRECTIONS.items()))
    result = tune_front(lambda p: objective(p)[::-1], SPACE, turned, n_trials=6, **given)
    for trial in result.study.trials:
        assert trial.values == pytest.approx(objective(trial.params))
    with pytest.raises(RefusalError, match="is to minimize loss and maximize gain"):
        tune_front(objective, SPACE, {"loss": "minimize", "b": "maximize"}, n_trials=8, **given)


def test_values_by_name_are_the_same_as_in_their_order(tmp_path):
    def by_name(params):
        first, second = objective(params)
        return {"gain": second, "loss": first}

    def with_errors(params):
        return Measured(values=by_name(params), standard_error={"gain": 2.0, "loss": 1.0})

    def mistyped(params):
        return by_name(params) | {"lost": 1.0}

    where = {"storage": f"sqlite:///{tmp_path}/x.db", "study_name": "s", "n_startup_trials": 9}
    goals = {"loss": "minimize", "gain": "maximize"}
    inorder = tune_front(objective, SPACE, goals, n_trials=5, seed=0)
    named = tune_front(by_name, SPACE, goals, n_trials=5, seed=0, **where)
    assert [t.values for t in named.study.trials] == [t.values for t in inorder.study.trials]
    turned = dict(reversed(goals.items()))
    more = tune_front(with_errors, SPACE, turned, n_trials=6, **where).study.trials[-1]
    assert tuple(more.values) == objective(more.params)
    assert more.user_attrs["stoic:noise"] == [1.0, 4.0]
    last = tune_front(mistyped, SPACE, goals, n_trials=7, **where).study.trials[-1]
    assert "'gain', 'loss', 'lost', and the objectives are 'loss', 'gain'" in str(last.user_attrs)
    with pytest.raises(RefusalError, match="each of the 2 values, by name, got"):
        Measured(values={"a": 1.0, "b": 2.0}, standard_error=[1.0, 2.0])


def test_bad_requests_of_python_are_refused():
    with pytest.raises(RefusalError, match="two or three objectives, got 1"):
        tune_front(objective, SPACE, {"loss": "minimize"})
    with pytest.raises(RefusalError, match="direction must be"):
        tune_front(objective, SPACE, {"loss": "minimize", "gain": "up"})
    with pytest.raises(RefusalError, match="a value, or with several objectives values"):
        Measured()
    with pytest.raises(RuntimeError, match="has usable values"):
        tune_front(lambda p: (math.nan, math.nan), SPACE, DIRECTIONS, n_trials=2)


def workers(directory, trials, count):
    command = [
        sys.executable, "-m", "stoic", "tune", "--storage", f"sqlite:///{directory / 'x.db'}",
        "--study-name", "s", "--param", "x=float(0, 1)", "--seed", "3", "--startup", "4",
        *shlex.split(GOAL), "--trials", str(trials), "--", "{python}", "-S", "program.py", "{x}",
    ]  # fmt: skip
    (directory / "program.py").write_text(f"import time\ntime.sleep(0.1)\n{PROGRAM}")
    return [
        subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL) for _ in range(count)
    ]


def test_several_workers_one_of_them_killed_share_a_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    first, second = workers(tmp_path, 14, 2)
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if (tmp_path / "x.db").exists() and second.poll() is None:
            done = [t for t in _trials(url) if t.state.is_finished()]
            if len(done) >= 3:
                break
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert second.wait(timeout=120) == 0
    (resumed,) = workers(tmp_path, 16, 1)
    assert resumed.wait(timeout=120) == 0
    trials = trials_of(url, "s")
    assert [trial.number for trial in trials] == list(range(16))
    assert all(trial.state.is_finished() for trial in trials)
    for trial in trials:
        if trial.state == TrialState.COMPLETE and trial.number != 7:
            x = trial.params["x"]
            expected = [(x - 0.2) ** 2, 100.0 - 100.0 * (x - 0.8) ** 2]
            np.testing.assert_allclose(trial.values, expected, rtol=1e-12)
    lost = [t for t in trials if t.user_attrs.get("failure") == "its worker died"]
    assert len(lost) <= 1
    assert explain(optuna.load_study(storage=url, study_name="s")).front


def _trials(url):
    try:
        return trials_of(url, "s")
    except Exception:  # the first worker is creating it
        return []
