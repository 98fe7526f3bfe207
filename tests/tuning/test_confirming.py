"""Confirmation, repeats and the end of a search, in ``tune`` and on the command line."""

import json
import math
import random
import sys
from dataclasses import replace

import optuna
import pytest
from optuna.terminator import Terminator
from optuna.trial import TrialState
from typer.testing import CliRunner

from stoic import Failed, tune
from stoic.cli import app
from stoic.integrations.optuna import NOISE, StoicSampler, confirm, explain
from stoic.integrations.optuna.confirming import CONFIRM, confirmations, confirms
from stoic.integrations.optuna.settling import remaining_gain
from stoic.integrations.optuna.terminator import NoiseEvaluator, RemainingGainEvaluator
from stoic.refusal import RefusalError
from stoic.tuning.ending import Ending
from stoic.tuning.program import Result
from stoic.tuning.repeats import repeated, surpassed_in
from stoic.tuning.stored import known_space
from stoic.tuning.trials import claim_confirmation
from stoic.tuning.worker import Worker

SPACE = {"x": "float(0, 1)"}


def noisy(seed=0, sd=0.05):
    rng = random.Random(seed)
    return lambda params: (params["x"] - 0.3) ** 2 + rng.gauss(0.0, sd)


# --- confirmation ---------------------------------------------------------------------------------


def test_tune_confirms_after_the_search_and_goes_on_where_it_was():
    storage = optuna.storages.InMemoryStorage()
    options = {"storage": storage, "study_name": "s", "seed": 0}
    first = tune(noisy(), SPACE, n_trials=12, confirm=2, **options)
    marked = [confirms(trial) for trial in first.study.trials]
    assert marked == [False] * 12 + [True] * sum(marked)
    assert 1 <= sum(marked) <= 2
    again = tune(noisy(1), SPACE, n_trials=12, confirm=2, **options)
    if not first.explanation.confirmation.settled:
        assert len(again.study.trials) == len(first.study.trials)
    longer = tune(noisy(2), SPACE, n_trials=14, confirm=2, **options)
    assert sum(not confirms(trial) for trial in longer.study.trials) == 14
    assert longer.x == dict(longer.explanation.confirmation.recommended.params)


def test_a_worker_that_was_too_slow_puts_its_measurement_back(monkeypatch):
    study = tune(noisy(), SPACE, n_trials=12, seed=0).study
    space = known_space(study)
    # Both workers see one measurement left; the other one begins it first.
    seen = confirmations(study.get_trials())
    monkeypatch.setattr("stoic.tuning.trials.confirmations", lambda trials: seen)
    assert claim_confirmation(study, space, 1, Worker.current()) is not None
    counts = iter([0, 1])
    monkeypatch.setattr("stoic.tuning.trials.confirmations", lambda trials: next(counts))
    assert claim_confirmation(study, space, 1, Worker.current()) is None
    assert [t.state.name for t in study.trials[12:]] == ["RUNNING", "WAITING"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"confirm": -1}, "confirm must be at least 0, got -1"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"until_settled": 0.0}, 'until_settled must be "noise" or a number above 0'),
        ({"until_settled": "soon"}, "got 'soon'"),
        (
            {"confirm": 3, "tolerance": {"x": 0.1}, "threshold": 0.5},
            "do not go with tolerances: leave out one of them",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given, said):
    with pytest.raises(RefusalError, match=said):
        tune(noisy(), SPACE, n_trials=2, **given)


PROGRAM = """
import os, random, sys
x = float(sys.argv[1])
random.seed(int(os.environ["STOIC_TRIAL"]))
print((x - 0.3) ** 2 + random.gauss(0.0, 0.05))
"""
STUDY = """
[study]
trials = 11
confirm = 1
seed = 0
[parameters]
x = "float(0, 1)"
[program]
command = ["{python}", "p.py", "{x}"]
"""


def test_the_command_line_confirms_shows_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    (tmp_path / "p.py").write_text(PROGRAM)
    (tmp_path / "bake.toml").write_text(STUDY)
    run = CliRunner().invoke
    tuned = run(app, ["tune", "bake.toml"])
    assert tuned.exit_code == 0, tuned.output
    assert "confirmed      1 measurement" in tuned.output
    assert ", once: not confirmed" not in tuned.output
    again = run(app, ["tune", "bake.toml"])
    assert "Nothing was left to do" in again.output
    longer = run(app, ["tune", "bake.toml", "--trials", "12"])
    assert "11 of 12 trials are finished" in longer.output
    assert "Nothing was left to do" not in longer.output
    more = run(app, ["confirm", "bake.toml", "--trials", "2"])
    assert more.exit_code == 0, more.output
    said = run(
        app, ["confirm", "--study-name", "bake", "-n", "3", "--", sys.executable, "p.py", "{x}"]
    )
    assert said.exit_code == 0, said.output
    assert "best with probability" in said.output
    shown = json.loads(run(app, ["show", "bake.toml", "--json"]).stdout)
    assert 1 <= shown["confirmation"]["measurements"] <= 3
    assert len(shown["trials"]) == 12 + shown["confirmation"]["measurements"]
    assert shown["recommended"]["params"] == shown["confirmation"]["candidates"][0]["params"]
    report = tmp_path / "report.html"
    pytest.importorskip("plotly")
    assert run(app, ["report", "bake.toml", "--out", str(report)]).exit_code == 0
    assert "Confirmed" in report.read_text()


def test_a_broken_program_counts_against_no_setting_and_the_study_is_named_first(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    (tmp_path / "p.py").write_text(
        "import sys\nprint('{\"loss\": %r}' % (float(sys.argv[1]) - 0.3) ** 2)"
    )
    program = ["--", sys.executable, "p.py", "{x}"]

    def stoic(*words, code=0):
        found = CliRunner().invoke(app, [*words, *program])
        assert found.exit_code == code
        return f"{found.output}{found.exception or ''}"

    def shown():
        return json.loads(CliRunner().invoke(app, ["show", "bake", "--json"]).stdout)

    rule = ["--value", "json:loss"]
    stoic(
        "tune", "--study-name", "bake", "--param", "x=float(0, 1)", "-n", "12", "--seed", "0", *rule
    )
    before = shown()["recommended"]["params"]
    wrong = ["--value", "json:los"]
    stoic("confirm", "bake", "--trials", "2", *wrong, code=1)
    assert shown()["recommended"]["params"] == before
    said = stoic("confirm", "bake", "--trials", "9", *wrong, code=1)
    assert (
        "note: until now values of this study were read by another rule: --value json:loss" in said
    )
    assert "2 of 9 measurements are taken" in said
    assert "The first 5 measurements failed" in said
    assert shown()["recommended"]["params"] == before
    assert shown()["confirmation"]["probability"] < 1.0
    assert shown()["confirmation"]["uncounted"] == 7
    printed = CliRunner().invoke(app, ["show", "bake"]).stdout
    assert "7 failed (not counted against a setting: 7)" in printed
    stoic("confirm", "bake", "--trials", "11")  # by the rule that its values were read by
    assert shown()["recommended"]["params"]["x"] == pytest.approx(0.3, abs=0.01)
    assert shown()["confirmation"]["failed"] == 7


def test_a_pruner_does_not_end_a_measurement():
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(6):
            trial.report(x + 1.0 * (trial.number > 19), step)  # all seem hopeless
            if trial.should_prune():
                raise optuna.TrialPruned
        return (x - 0.3) ** 2 + 0.1 * math.sin(37.0 * trial.number)

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=20)
    pruner = study.pruner
    outcome = confirm(study, objective, n_trials=4)
    assert outcome.measurements >= 1
    assert outcome.failed == 0
    assert study.pruner is pruner
    assert all(t.state == TrialState.COMPLETE for t in study.trials[20:])


def test_confirm_needs_a_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["confirm"])
    assert isinstance(refused.exception, RefusalError)
    assert "Which program measures a setting is missing" in str(refused.exception)


# --- repeats --------------------------------------------------------------------------------------


def results(*values):
    made = iter(
        [Result(v, None, "", 1.0) if v is not None else Result(None, "no", "", 1.0) for v in values]
    )
    return lambda repeat: next(made)


def test_the_value_is_the_median_and_an_outlier_does_not_matter():
    found = repeated(results(1.0, 1e9, 1.2), 3, lambda: False)
    assert (found.value, found.seconds, found.noise) == (1.2, 3.0, None)


def known_so_far(values):
    """Each median that a search may stop at, with the noise that it is taken to have."""
    seen = []

    def surpassed(value, noise):
        seen.append((value, noise))
        return False

    repeated(results(*values), len(values), lambda: False, surpassed)
    return seen


def test_from_four_values_on_their_spread_is_the_noise():
    spread = 1.4826 * 0.1
    _, (value, noise) = known_so_far([0.9, 1.0, 1.1, 1.2, 1e6])
    assert value == 1.1
    assert noise == pytest.approx(math.pi / 2 / 5 * 4 / 2 * spread**2)
    assert known_so_far([1.0] * 5) == []  # equal values


def test_the_noise_is_right_on_average():
    rng = random.Random(0)
    found = [known_so_far([rng.gauss(0.0, 1.0) for _ in range(9)])[-1] for _ in range(500)]
    true = sum(value**2 for value, _ in found) / 500
    stated = sum(noise for _, noise in found) / 500
    assert 0.8 < stated / true < 2.0  # rather too large: Student's factor


@pytest.mark.parametrize(
    ("values", "value", "run_as"),
    [
        ((2.0, 4.0), 4.0, 1),  # of two that were run differently the worse one
        ((4.0, 2.0), 4.0, 0),
        ((2.0, 2.0, 9.0, 4.0), 4.0, 3),
        ((2.0, 4.0, 9.0), 4.0, 1),
        ((0.0, math.inf, math.inf), math.inf, 1),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_result_of_repeats_that_were_run_differently_is_one_of_them(
    values, value, run_as, sign
):
    runs = [
        Result(-sign * value, executed={"t": k}, noise=k + 1.0, constraints={"c": -1.0 - k})
        for k, value in enumerate(values)
    ]
    found = repeated(runs.__getitem__, len(runs), bool, sign=sign)
    assert (found.value, found.executed) == (-sign * value, {"t": run_as})
    if len(runs) % 2 == 0:
        assert (found.noise, found.constraints) == (run_as + 1.0, {"c": -1.0 - run_as})


def test_the_median_of_two_that_were_run_alike_is_between_them():
    runs = [Result(value, executed={"t": 1.0}) for value in (2.0, 4.0)]
    found = repeated(runs.__getitem__, 2, bool)
    assert (found.value, found.executed) == (3.0, {"t": 1.0})


def test_the_noise_of_repeats_is_left_to_the_model_of_all_trials():
    """Stated by the spread of five values, intervals of 95 % covered 57 % of 30 studies."""
    inside = 0
    for seed in range(8):
        found = tune(noisy(seed, 0.1), {"x": "float(-1, 1)"}, n_trials=15, seed=seed, repeats=5)
        assert all(NOISE not in trial.user_attrs for trial in found.study.trials)
        inside += abs(found.fun - (found.x["x"] - 0.3) ** 2) < 2.0 * found.fun_std
    assert inside >= 7


def test_reported_noise_is_kept():
    noises = iter([Result(v, None, "", 0.0, noise=0.04) for v in (1.0, 2.0)])
    assert repeated(lambda repeat: next(noises), 2, lambda: False).noise == pytest.approx(0.02)


def test_half_of_the_measurements_must_succeed():
    assert repeated(results(1.0, None, 3.0), 3, lambda: False).value == 2.0
    assert repeated(results(None, None, 3.0), 3, lambda: False).failure == "no"
    assert repeated(results(1.0, None), 2, lambda: False).value is None
    one = Result(None, "exploded", "", 0.0, "bad")
    assert repeated(lambda repeat: one, 1, lambda: False) is one


@pytest.mark.parametrize(
    ("values", "bounds", "sign", "median", "bound"),
    [
        ([0.4, 0.45], [0.5], -1.0, 0.45, None),  # whatever the third would have been
        ([0.4, 0.55], [0.5], -1.0, None, 0.5),  # between .5 and .55
        ([0.4], [0.5, 0.6], -1.0, None, 0.5),
        ([], [0.5, 0.6, 0.4], -1.0, None, 0.5),  # the third is not run, and might be good
        ([0.1, 0.1], [0.5, 0.5], -1.0, None, 0.3),
        ([0.9, 0.8], [0.5], 1.0, 0.8, None),  # maximise: at most .5
        ([0.9, 0.8], [0.85], 1.0, None, 0.85),
        ([0.4, 0.5, 0.6], [0.7, None], -1.0, 0.55, None),
    ],
)
def test_of_a_run_that_gave_a_bound_the_median_knows_the_side(values, bounds, sign, median, bound):
    runs = [Result(value) for value in values] + [
        Result(failure="no") if each is None else Result.at_least_as_bad_as(each) for each in bounds
    ]
    found = repeated(runs.__getitem__, len(runs), bool, sign=sign)
    assert (found.value, found.bound) == (median, bound)
    assert found.pruned == (bound is not None)


@pytest.mark.parametrize("values", [(0.1, None), (None, 0.1), (0.1, 0.1, None, None)])
def test_the_order_of_values_and_bounds_does_not_matter(values):
    runs = [Result.at_least_as_bad_as(0.5) if each is None else Result(each) for each in values]
    for ordered in (runs, runs[::-1]):
        assert repeated(ordered.__getitem__, len(runs), bool).bound == 0.3


def test_a_trial_that_is_clearly_surpassed_is_not_measured_further():
    study = optuna.create_study()
    for value, noise in ((-1e9, None), (0.1, 1e-4), (0.5, 1e-4)):  # the best one lies
        attributes = {} if noise is None else {NOISE: noise}
        study.add_trial(optuna.create_trial(value=value, user_attrs=attributes))
    surpassed = surpassed_in(study)

    def count(values):
        left = iter(values)
        repeated(lambda repeat: Result(next(left), None, "", 0.1), 9, lambda: False, surpassed)
        return 9 - len(list(left))

    assert count([1.01, 0.99, 1.02, 0.98, *[1.0] * 5]) == 4
    assert count([0.14, 0.1, 0.12, 0.09, *[0.1] * 5]) == 9
    assert count([1.01, 0.0, 2.0, 0.5, *[1.0] * 5]) > 4  # nothing is clear yet
    one = optuna.create_study()
    one.add_trial(optuna.create_trial(value=0.0))
    assert not surpassed_in(one)(1.0, 1e-6)  # it may be an outlier


def test_a_program_knows_which_of_its_runs_this_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    (tmp_path / "p.py").write_text(
        "import os, sys\n"
        "with open('log', 'a') as log:\n"
        "    print(sys.argv[2:], os.environ['STOIC_REPEAT'], file=log)\n"
        "print(sys.argv[1])"
    )
    words = ["tune", "--param", "x=float(0, 1)", "-n", "2", "--repeats", "2"]
    program = ["--", sys.executable, "p.py", "{x}", "{trial}", "{repeat}"]
    assert CliRunner().invoke(app, [*words, *program]).exit_code == 0
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines == [f"['{trial}', '{run}'] {run}" for trial in (0, 1) for run in (0, 1)]


def test_the_end_of_a_search_that_is_settled_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)
    words = [
        "tune",
        "--param",
        "x=float(0, 1)",
        "-n",
        "60",
        "--until-settled",
        "0.05",
        "--seed",
        "0",
    ]
    program = [
        "--",
        sys.executable,
        "-c",
        "import sys; print((float(sys.argv[1]) - .3) ** 2)",
        "{x}",
    ]
    said = CliRunner().invoke(app, [*words, *program]).output
    assert " of 60 trials: more of them are expected to gain less than 0.05" in said


def test_tune_repeats_each_trial():
    count = []

    def objective(params):
        count.append(params["x"])
        if len(count) == 2:
            raise Failed("transient", "again")
        return params["x"] + 0.01 * len(count)

    tune(objective, SPACE, n_trials=2, repeats=5, seed=0)
    assert len(count) == 10
    assert len(set(count)) == 2


# --- the end of a search --------------------------------------------------------------------------


def test_a_search_ends_when_more_trials_gain_little():
    result = tune(noisy(sd=0.001), SPACE, n_trials=40, seed=0, until_settled=0.02)
    assert 20 <= len(result.study.trials) < 40
    assert (result.x["x"] - 0.3) ** 2 < 0.02
    assert remaining_gain(result.study).gain < 0.02


def test_a_search_is_not_settled_while_it_is_undecided(monkeypatch):
    study = tune(noisy(sd=0.001), SPACE, n_trials=20, seed=0).study
    assert Ending(until_settled=0.02).settled(study, study.trials)
    assert not Ending(until_settled=0.02).settled(study, study.trials[:19])
    undecided = replace(explain(study), undecided="Results contradict each other.")
    monkeypatch.setattr("stoic.tuning.ending.explain", lambda *args, **given: undecided)
    assert not Ending(until_settled=0.02).settled(study, study.trials)


def test_the_gain_falls_and_begins_unknown():
    study = tune(noisy(sd=0.01), SPACE, n_trials=25, seed=0).study
    trials = study.get_trials()
    assert remaining_gain(study, trials[:5]).gain == math.inf
    early, late = remaining_gain(study, trials[:10]), remaining_gain(study)
    assert 0.0 <= late.gain < early.gain
    assert 0.003 < late.noise_sd < 0.03


def test_what_violates_a_constraint_is_no_gain():
    rng = random.Random(0)
    sampler = StoicSampler(seed=0, constraints_func=lambda trial: [trial.params["x"] - 0.5])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda t: 10.0 * t.suggest_float("x", 0, 1) + rng.gauss(0.0, 0.05), n_trials=20)
    assert explain(study).recommended.params["x"] > 0.45
    assert remaining_gain(study).gain < 0.2  # 5 beyond the limit


def test_what_fails_is_no_gain():
    study = optuna.create_study(direction="maximize", sampler=StoicSampler(seed=0))
    study.optimize(
        lambda t: x if (x := t.suggest_float("x", 0, 1)) < 0.5 else math.nan, n_trials=25
    )
    assert remaining_gain(study).gain < 0.1


@pytest.mark.filterwarnings("ignore:.*terminator.*deprecated:FutureWarning")
def test_optunas_terminator_takes_the_evaluators():
    study = tune(noisy(), SPACE, n_trials=25, seed=0).study
    done = Terminator(RemainingGainEvaluator(), NoiseEvaluator(), min_n_trials=10)
    gain, noise_sd = remaining_gain(study)
    assert done.should_terminate(study) == (gain < noise_sd)
    assert RemainingGainEvaluator().evaluate(study.trials, study.direction) == gain
    assert not Terminator(
        RemainingGainEvaluator(), NoiseEvaluator(), min_n_trials=26
    ).should_terminate(study)


def test_duplicates_cost_and_break_nothing():
    study = tune(noisy(), SPACE, n_trials=10, seed=0).study
    for _ in range(12):
        study.enqueue_trial({"x": 0.25}, user_attrs={CONFIRM: True})
    study.optimize(lambda trial: noisy(trial.number)({"x": trial.suggest_float("x", 0, 1)}), 12)
    assert remaining_gain(study).gain < math.inf
