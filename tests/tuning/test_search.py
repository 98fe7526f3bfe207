"""What is said now and what was said earlier: tolerances and recipes of a stored study."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from scripts import trials_of
from stoic import Box, recipes
from stoic.integrations.optuna.earlier import stored_names
from stoic.integrations.optuna.objective import RobustObjective, stored_aim
from stoic.integrations.optuna.possible import PossibleValues, stored_possible
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.recipe import RECIPE, load, parse
from stoic.refusal import RefusalError
from stoic.tuning.campaign import ask_for, open_request
from stoic.tuning.request import Settings, from_options
from stoic.tuning.search import Search, StudyMethod
from stoic.tuning.views import pictures, timeline
from stoic.tuning.views.report import Report
from stoic.tuning.views.trust import Trust

METHODS = """
from stoic import Learner, Prior, recipes
from stoic.kernels import RBF


def phased(box):
    return Learner(box.grid(9), recipes.rgp_pe(prior=Prior(RBF(0.4), 0.05), budget=0.1))
"""
RANGE = "x=float(-1, 1)"
SPACE = {"x": FloatDistribution(-1.0, 1.0)}
PHASED = "methods.py:phased"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a file of recipes and a storage."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "methods.py").write_text(METHODS)
    return tmp_path


def request(here: Path, **said):
    """What the command line would ask for."""
    if "recipe" in said:
        said["recipe"] = parse(said["recipe"])
    settings = Settings(storage=f"sqlite:///{here}/stoic.db", name="s", **said)
    return from_options([RANGE], ["{python}", "-c", "print({x})"], settings)


def begin(here: Path, **said) -> optuna.Study:
    study, method = open_request(request(here, **said))
    method.record(study)
    return study


def test_a_threshold_alone_keeps_the_stored_tolerances(here):
    begin(here, aim={"threshold": "adaptive", "margin": 0.5, "tolerance": {"x": 0.2}})
    study, method = open_request(request(here, aim={"threshold": 0.9}))
    assert method.aim == RobustObjective(threshold=0.9, tolerance={"x": 0.2})
    assert method.replaces(study) == [
        "until now this study was after something else: threshold adaptive, margin 0.5, "
        "tolerance x=0.2"
    ]
    method.record(study)
    assert stored_aim(study) == method.aim
    for said, aim in (
        ({}, method.aim),
        ({"p": 2.0}, RobustObjective(threshold=0.9, p=2.0, tolerance={"x": 0.2})),
        ({"tolerance": {"x": 0.1}}, RobustObjective(threshold=0.9, tolerance={"x": 0.1})),
        ({"policy": "stable"}, RobustObjective(policy="stable", tolerance={"x": 0.2})),
    ):
        assert open_request(request(here, aim=said))[1].aim == aim


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"aim": {"threshold": 0.9}}, "Which parameters may be moved"),
        ({"recipe": "missing.py:phased"}, "There is no file 'missing.py'"),
        ({"recipe": "methods.py:phase"}, "did you mean 'phased'"),
        ({"recipe": "rgp_ucb(budget=-1)"}, "cannot be used: A total corruption"),
        ({"recipe": PHASED, "aim": {"threshold": 1.0, "tolerance": {"x": 0.1}}}, "grid of 9"),
        ({"recipe": "any_threat", "aim": {"threshold": 1.0, "tolerance": {"x": 0.1}}}, "balances"),
    ],
)
def test_nothing_is_created_if_it_is_refused(here, said, match):
    with pytest.raises(RefusalError, match=match):
        open_request(request(here, **said))
    assert optuna.get_all_study_names(f"sqlite:///{here}/stoic.db") == []


def test_possible_values_are_kept_or_replaced_with_a_note(here):
    begin(here, possible=PossibleValues(0.0, math.inf))
    for said, notes in (
        ({}, []),
        ({"possible": PossibleValues(0.0, math.inf)}, []),
        (
            {"possible": PossibleValues(0.0, 1.0)},
            ["until now the possible values of this study were 0 to inf"],
        ),
    ):
        study, method = open_request(request(here, **said))
        assert method.replaces(study) == notes
        method.record(study)
    assert stored_possible(study) == PossibleValues(0.0, 1.0)


def test_a_warm_start_goes_on_without_the_earlier_study(here):
    earlier = optuna.create_study(storage=f"sqlite:///{here}/stoic.db", study_name="earlier")
    for x in (-0.5, 0.0, 0.5, 1.0):
        earlier.add_trial(
            optuna.create_trial(params={"x": x}, distributions=SPACE, value=(x - 0.2) ** 2)
        )
    study = begin(here, warm_start=["earlier"])
    assert stored_names(study) == ["earlier"]
    optuna.delete_study(study_name="earlier", storage=f"sqlite:///{here}/stoic.db")
    study, method = open_request(request(here, warm_start=["earlier"]))
    assert method.replaces(study) == []
    method.record(study)
    assert stored_names(study) == ["earlier"]
    with pytest.raises(RefusalError, match="no study 'another'"):
        open_request(request(here, warm_start=["another"]))


def test_a_recipe_is_kept_or_replaced(here):
    study = begin(here, recipe="gp_ucb( )")
    assert study.user_attrs[RECIPE] == "gp_ucb()"
    study, method = open_request(request(here))
    assert method.recipe == recipes.gp_ucb()
    assert method.replaces(study) == []
    study, method = open_request(request(here, recipe="rgp_ucb(budget=2)"))
    assert method.replaces(study) == ["until now this study used another recipe: gp_ucb()"]
    method.record(study)
    assert open_request(request(here))[1].recipe == recipes.rgp_ucb(budget=2)
    study.set_user_attr(RECIPE, "a_later_one(x=1)")
    with pytest.raises(RefusalError, match="cannot be used here: give a --recipe"):
        open_request(request(here))
    assert open_request(request(here, recipe="robust"))[1].recipe == recipes.robust()


def test_a_function_in_a_file_has_to_be_said_again(here):
    study = begin(here, recipe=PHASED)
    with pytest.raises(RefusalError, match=f"give --recipe {PHASED}, or another one"):
        open_request(request(here))
    with pytest.raises(RefusalError, match=f"give --recipe {PHASED}, or another one"):
        next(ask_for(study, Search(space={}, seed=0, startup=0), []))
    assert study.trials == []
    trial = next(ask_for(study, Search(space={}, seed=0, startup=0, recipe=parse(PHASED)), []))
    assert trial.params["x"] in np.linspace(-1.0, 1.0, 9)
    assert len(open_request(request(here, recipe=PHASED))[1].recipe(Box([0.0], [1.0])).domain) == 9


@pytest.mark.parametrize("high", [1.0, 2.0])
def test_a_study_from_elsewhere_keeps_the_ranges_of_its_trials(high):
    study = optuna.create_study()
    y, other = {"y": FloatDistribution(0.0, 1.0)}, {"y": FloatDistribution(0.0, high)}
    for params, space in (
        ({"x": 0.1}, SPACE),
        ({"x": 0.2, "y": 0.3}, SPACE | y),
        ({"x": 0.3, "y": 0.3}, SPACE | other),
    ):
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=1.0))
    sampler = StudyMethod().sampler(study, Search(space=SPACE | y))
    known = SPACE | other
    assert sampler.infer_relative_search_space(study, study.trials[0]) == known
    fresh = optuna.create_study()
    sampler = StudyMethod().sampler(fresh, Search(space=SPACE | y))
    assert sampler.infer_relative_search_space(fresh, study.trials[0]) == SPACE | y


def test_a_report_says_what_the_model_was_not_told(here):
    pytest.importorskip("plotly")
    recipe = parse(PHASED)
    study = begin(here, recipe=PHASED)
    study.enqueue_trial({"x": 0.123})
    for _ in range(7):
        trial = study.ask(SPACE)
        study.tell(trial, trial.params["x"] ** 2)
    page = Report.of(study, recipe.load()).page()
    assert "<p>not in model   1, run at no point of the recipe&#39;s grid</p>" in page
    assert "<p>trial 0: x=0.123</p>" in page
    assert "not in model" not in Report.of(study, recipes.gp_ucb()).page()
    judged = Trust.of(study, recipe.load())
    pictures.write_picture(timeline.draw(judged), here / "trust.png")
    assert judged.record()["left_out"] == {"0": "x=0.123"}
    assert [row.number for row in judged.rows] == list(range(1, 7))


PAUSE = "import sys, time; time.sleep(0.03); print((float(sys.argv[1]) - 0.3) ** 2)"


def start(here: Path, trials: int) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "stoic", "tune", "--storage", f"sqlite:///{here}/stoic.db",
        "--study-name", "s", "--param", RANGE, "--trials", str(trials), "--recipe", PHASED,
        "--", "{python}", "-S", "-c", PAUSE, "{x}",
    ]  # fmt: skip
    return subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def stand(learner):
    """Number of the epoch, what may still be the best, what is played of it and what is missing."""
    learner.ask(pending=[])
    epoch, _, told, _ = learner._state
    return epoch.number, epoch.active.tolist(), epoch.owed.tolist(), (epoch.owed - told).tolist()


@pytest.mark.slow
def test_two_processes_one_of_which_is_killed_play_one_plan(here):
    storage, trials = f"sqlite:///{here}/stoic.db", 34
    one, two = start(here, trials), start(here, trials)
    until = time.monotonic() + 300.0
    while time.monotonic() < until and not (
        (here / "stoic.db").exists() and len(_finished(storage)) >= 6
    ):
        time.sleep(0.05)
    one.send_signal(signal.SIGKILL)
    one.communicate()
    said, _ = two.communicate(timeout=600)
    assert two.returncode == 0, said
    resumed = start(here, trials)
    said, _ = resumed.communicate(timeout=600)
    assert resumed.returncode == 0, said
    assert "a file is not run" not in said  # it was given
    stored = trials_of(storage, "s")
    assert [trial.number for trial in stored] == list(range(trials))
    complete = [trial for trial in stored if trial.state == TrialState.COMPLETE]
    assert len(complete) >= trials - 1  # what the dead worker had begun
    for trial in complete:
        assert trial.value == pytest.approx((trial.params["x"] - 0.3) ** 2)
    # A point always has the same value, so the plan is that of a learner that is alone.
    campaign = SyncedLearner(optuna.load_study(study_name="s", storage=storage), SPACE, _phased())
    campaign.follow(stored)
    assert campaign.left_out == {}
    number, active, owed, missing = stand(campaign.learner)
    assert number >= 2
    alone, plays = _phased()(campaign.encoding.box), 0
    while (now := stand(alone))[0] < number:
        choice = alone.ask()
        alone.tell(choice.x, -((campaign.encoding.decode(choice.x)["x"] - 0.3) ** 2))
        plays += 1
    assert now[:3] == (number, active, owed)
    told = sum(owed) - sum(max(left, 0) for left in missing)
    # Two at once: at the end of an epoch, whoever comes second runs a play of the other again.
    assert 0 <= len(complete) - plays - told <= 2 * (number + 1)


def _finished(storage: str) -> list[optuna.trial.FrozenTrial]:
    try:
        return [trial for trial in trials_of(storage, "s") if trial.state.is_finished()]
    except Exception:  # the database is being made
        return []


def _phased():
    return load(PHASED)
