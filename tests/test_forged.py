"""What a storage contains is data: nothing in it ends in a traceback, hangs, or moves a cursor."""

from __future__ import annotations

import io
import logging
import math
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial
from rich.console import Console

from stoic import cli
from stoic.refusal import RefusalError
from stoic.tuning.program import Result
from stoic.tuning.storage import open_storage
from stoic.tuning.trials import claim
from stoic.tuning.views.display import LiveTable
from stoic.tuning.worker import Worker
from studies import add

EVIL = "a\x1b[31mb\nfake line\r\u202ec\x00"
STORAGE = "forged.log"  # a journal: making the tables of a database takes longer than a test
HUGE = 10**400
DEEP: list[object] = []
for _ in range(500):
    DEEP = [DEEP]
SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)}
LOOKS = ("show", "trust", "trials", "best-trial", "certify", "report", "ask", "tune")
MORE = {
    "certify": ["--tolerance", "x=0.1", "--threshold", "0.3"],
    "tune": [
        *["--study-name", "s", "--param", "x=float(0, 1)", "--param", "n=int(1, 5)"],
        *["--trials", "7", "--startup", "0", "--", "echo", "{x}{n}"],
    ],
}


@pytest.fixture
def study(tmp_path, monkeypatch) -> optuna.Study:
    """Of another hand, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(logging.getLogger(), "handlers", logging.getLogger().handlers[:])
    storage = open_storage(STORAGE, create=True, kind="JournalFileBackend")
    study = optuna.create_study(storage=storage, study_name="s")
    for i in range(4):
        params = {"x": i / 4, "n": 1 + i}
        add(study, params, SPACE, (i / 4 - 0.4) ** 2)
    return study


def look(capsys, monkeypatch, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    more = [] if "--study-name" in arguments else MORE.get(arguments[0], [])
    command, *said = arguments
    argv = ["stoic", command, "--storage", STORAGE, *said, *more]
    monkeypatch.setattr(sys, "argv", argv)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as ending:
            cli.main()
    printed = capsys.readouterr()
    return int(ending.value.code or 0), printed.out, printed.err


def check_lines(text: str) -> None:
    for line in text.split("\n"):
        assert line.isprintable(), line
        assert not line.startswith("fake line")


def check_all(capsys, monkeypatch, commands=LOOKS) -> None:
    """Each command does what it is for, or refuses in one sentence."""
    capsys.readouterr()
    for command in commands:
        code, out, err = look(capsys, monkeypatch, command)
        check_lines(out + err)
        assert code in (0, 2), (command, code, err)
        if code == 2:
            assert err.strip().split("\n")[-1].startswith("stoic: "), (command, err)


def evil_name(study: optuna.Study) -> None:
    distributions = {EVIL: FloatDistribution(0, 1), "k": CategoricalDistribution([EVIL, "[red]b"])}
    for i in range(4):
        params = {EVIL: i / 4, "k": EVIL}
        add(study, params, distributions, i)


def evil_failure(study: optuna.Study) -> None:
    trial = study.ask(SPACE)
    trial.set_user_attr("failure", EVIL)
    trial.set_user_attr("stderr", f"{EVIL}\n{EVIL}\x1b]0;owned\x07")
    trial.set_user_attr(EVIL, EVIL)
    study.tell(trial, state=TrialState.FAIL)


def evil_holder(study: optuna.Study) -> None:
    trial = study.ask(SPACE)
    record = {"host": EVIL, "boot": EVIL, "pid": 1, "started": EVIL}
    study._storage.set_trial_system_attr(trial._trial_id, "stoic:worker", record)


def evil_texts(study: optuna.Study) -> None:
    study.set_user_attr("stoic:command", ["run", EVIL, "{x}{n}"])
    study.set_user_attr("stoic:recipe", "a\x1b[31m\u202e.py:f")


def evil_report(study: optuna.Study) -> None:
    trial = study.ask(SPACE)
    trial.set_user_attr("stoic:executed", {"x": EVIL, EVIL: 1})
    study.tell(trial, 0.1)


def evil_queue(study: optuna.Study) -> None:
    study.enqueue_trial({"x": 7.0, EVIL: EVIL})


def test_what_others_wrote_is_shown_escaped(study, capsys, monkeypatch):
    for forge in (evil_failure, evil_holder, evil_texts, evil_report, evil_queue):
        forge(study)
    check_all(capsys, monkeypatch)
    if find_spec("plotly") is not None:  # else the report was refused, and that was checked
        page = Path("report.html").read_text(encoding="utf-8")
        assert "\x1b[31m" not in page
        assert "\x00" not in page


def test_names_of_studies_and_parameters_are_shown_escaped(study, capsys, monkeypatch):
    other = optuna.create_study(storage=study._storage, study_name=EVIL)
    evil_name(other)
    code, _, err = look(capsys, monkeypatch, "show")
    assert code == 2
    check_lines(err)
    optuna.delete_study(storage=study._storage, study_name="s")
    check_all(capsys, monkeypatch, LOOKS[:4])
    _, out, _ = look(capsys, monkeypatch, "show")
    assert out.startswith(r"study a\x1b[31mb\nfake line\r\u202ec\x00 (minimize)")


def test_the_command_of_a_storage_is_no_advice(study, capsys, monkeypatch):
    study.set_user_attr("stoic:command", ["rm", "-rf", "{x}{n}"])
    _, out, _ = look(capsys, monkeypatch, "show")
    assert "run it again" not in out
    assert "storage says   its command was: rm -rf " in out


def test_the_live_table_shows_no_control_characters(study):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system=None, width=200, height=40)
    table = LiveTable(3, console)
    table.rows.append((9, {EVIL: f"[red]{EVIL}"}, EVIL, ""))
    table.notes.append(EVIL)
    trial = study.trials[0]
    table.ended(trial, Result(None, EVIL, "", 0.0), lambda: None)
    console.print(table._draw())
    check_lines(file.getvalue())
    assert r"[red]a\x1b" in file.getvalue()


RANGES: list[object] = [
    None, [1], 3, HUGE, EVIL, DEEP,
    {"name": "FloatDistribution"},
    {"name": EVIL, "attributes": {}},
    {"name": "FloatDistribution", "attributes": {"low": 0, "high": HUGE}},
    {"name": "FloatDistribution", "attributes": {"low": -1.7e308, "high": 1.7e308}},
    {"name": "FloatDistribution", "attributes": {"low": float("nan"), "high": 1}},
    {"name": "FloatDistribution", "attributes": {"low": 0, "high": 1e300, "step": 1e-300}},
    {"name": "IntDistribution", "attributes": {"low": 0, "high": HUGE}},
    {"name": "CategoricalDistribution", "attributes": {"choices": []}},
    {"name": "CategoricalDistribution", "attributes": {"choices": list(range(30_000))}},
]  # fmt: skip


@pytest.mark.parametrize("entry", RANGES, ids=lambda entry: str(entry)[:60].replace("\x00", ""))
def test_a_search_space_that_is_none_is_refused(study, entry, capsys, monkeypatch):
    study.set_user_attr("stoic:space", {"x": entry})
    check_all(capsys, monkeypatch, ("ask", "tune"))


RECIPES = [
    "gp_ucb(initial=1000000000)",
    "ata_gp_ucb(nodes=1000000)",
    "stable_opt(radius=1.0, candidates=1000000000)",
    "rgp_ucb(budget=1e999)",
    f"rgp_ucb(budget={HUGE})",
    "fc_rcgp_ucb(shape=-1.0)",
    "a2_rcgp_ucb(half_width=-1.0)",
    f"gp_ucb(initial={'9' * 5000})",
    "-" * 100_000 + "1",
    "(" * 900,
    "-" * 900 + "1",
    "[" * 100_000 + "]" * 100_000,
    "x" * 1_000_000,
    "gp_ucb\x1b[31m",
]


@pytest.mark.parametrize("text", RECIPES, ids=lambda text: text[:30])
def test_a_recipe_of_which_nothing_can_be_made_is_refused(study, text, capsys, monkeypatch):
    study.set_user_attr("stoic:recipe", text)
    check_all(capsys, monkeypatch, ("show",))
    code, _, err = look(capsys, monkeypatch, "tune")
    check_lines(err)
    assert code == 2
    assert "recipe" in err


JUNK: list[object] = [
    None, HUGE, float("nan"), float("inf"), True, "", EVIL, [], [1], {},
    {"x": None}, {"x": HUGE}, {"x": [1]}, {"x": float("nan")}, {EVIL: EVIL},
]  # fmt: skip


@pytest.mark.parametrize("value", JUNK, ids=lambda value: str(value)[:30].replace("\x00", ""))
def test_attributes_that_make_no_sense(study, value, capsys, monkeypatch):
    for name in ("stoic:command", "stoic:recipe", "stoic:aim", "stoic:trust:0-199"):
        study.set_user_attr(name, value)
    for state in (TrialState.COMPLETE, TrialState.FAIL):
        trial = study.ask(SPACE)
        for name in ("stoic:executed", "stoic:noise", "stoic:failed", "failure", "stderr"):
            trial.set_user_attr(name, value)
        study.tell(trial, 0.3 if state == TrialState.COMPLETE else None, state)
    trial = study.ask(SPACE)
    for name in ("stoic:worker", "stoic:program", "stoic:chosen", "stoic:run"):
        study._storage.set_trial_system_attr(trial._trial_id, name, value)
    check_all(capsys, monkeypatch, ("show", "trials", "tune"))


@pytest.mark.parametrize(
    "aim",
    [
        {"tolerance": {"x": HUGE}},
        {"tolerance": {"x": 0.1}, "threshold": HUGE},
        {"tolerance": {"x": 0.1}, "threshold": 0.1, "p": HUGE},
        {"tolerance": {"x": 0.1}, "radius": HUGE},
        {"tolerance": {"x": 0.1}, "policy": []},
    ],
    ids=str,
)
def test_tolerances_that_make_no_sense(study, aim, capsys, monkeypatch):
    study.set_user_attr("stoic:aim", aim)
    check_all(capsys, monkeypatch, ("show", "tune"))


def test_values_that_no_study_has(study, capsys, monkeypatch):
    trial = study.ask(SPACE)
    study._storage.set_trial_state_values(trial._trial_id, TrialState.COMPLETE, [1.0, 2.0])
    code, _, err = look(capsys, monkeypatch, "show")
    assert code == 2
    assert "trial 4 has no value, or several" in err


@pytest.mark.parametrize("value", ["--evil", "; touch evil", None, math.inf, math.nan, [1], {}])
@pytest.mark.parametrize("kind", ["float", "int", "choice"])
def test_what_is_no_value_of_a_parameter_is_in_no_argument_of_a_program(value, kind):
    space = {
        "float": FloatDistribution(0.0, 1.0),
        "int": IntDistribution(1, 9),
        "choice": CategoricalDistribution(("a", 1, None)),
    }
    if kind == "choice" and value is None:
        value = "b"
    made = optuna.create_study()
    waiting = create_trial(state=TrialState.WAITING)
    waiting.distributions, waiting._params = {kind: space[kind]}, {kind: value}
    made._storage.create_new_trial(made._study_id, waiting)
    with pytest.raises(RefusalError, match="Cannot begin trial 0 with what is stored for it"):
        claim(made, {kind: space[kind]}, 3, Worker.current())


def test_a_queue_that_makes_no_sense(study, capsys, monkeypatch):
    monkeypatch.setattr("stoic.integrations.optuna.turns._LONGEST", 0.1)  # nobody else is there
    for queued in ({"x": "abc"}, [1], EVIL, {"n": HUGE}, {"x": None}):
        attributes = {"fixed_params": queued}
        waiting = create_trial(state=TrialState.WAITING, system_attrs=attributes)
        study._storage.create_new_trial(study._study_id, waiting)
        check_all(capsys, monkeypatch, ("show", "ask", "tune"))
