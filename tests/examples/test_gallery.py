"""The ten short examples: each runs, finds what it is about, and is in the gallery."""

from __future__ import annotations

import re

import optuna
import pytest
from optuna.trial import TrialState

from pages import ROOT
from scripts import load

EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}


def near(goal, within):
    return pytest.approx(goal, abs=within)


def change_the_sampler(params):
    assert params == {"x": near(0.3, 0.1), "y": near(-1.0, 0.1)}


def which_trial(found):
    distrusted, params = found
    assert {6, 17} <= {*distrusted}
    assert params["x"] == near(0.3, 0.15)


def own_loop(x):
    assert list(x) == [near(0.3, 0.15), near(-1.0, 0.15)]


def kinds_of_failure(params):
    assert 0.5 < params["x"] <= 0.7
    assert params["y"] == near(0.5, 0.15)


def try_again(found):
    calls, trials = found
    assert len(calls) == len(trials) + 1  # one of them was run twice
    assert calls[3] == calls[4]
    failed = [trial for trial in trials if trial.state == TrialState.FAIL]
    assert {trial.user_attrs["stoic:failed"] for trial in failed} == {"infeasible"}


def noise_of_each(params):
    assert params["x"] == near(0.3, 0.2)


def not_as_planned(heat):
    assert heat == near(45.0, 0.5)


def beside_a_cliff(heat):
    assert heat == near(70.0, 3.0)


def given_weather(litres):
    assert litres == near(0.6, 0.1)


def many_workers(x):
    assert list(x) == [near(0.3, 0.15), near(-1.0, 0.15)]


LONG = {"beside_a_cliff", "own_loop"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in EXAMPLES]
)
def test_an_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    globals()[name](load(EXAMPLES[name]).main())
    assert [*tmp_path.iterdir()] == []  # it leaves nothing behind


def test_there_are_ten_and_all_are_in_the_gallery():
    assert len(EXAMPLES) == 10
    page = (ROOT / "docs/examples.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^`examples/(\w+)\.py`$", page, re.MULTILINE)) == [*EXAMPLES]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name):
    assert len(EXAMPLES[name].read_text(encoding="utf-8").splitlines()) <= 35
