"""Warm starts: what a new study takes from earlier ones, and what it refuses or ignores."""

from __future__ import annotations

import json
import logging
import math
import sys

import numpy as np
import optuna
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler

from stoic import cli, tune
from stoic.integrations.optuna import StoicSampler, explain
from stoic.integrations.optuna.earlier import (
    WARM_START,
    EarlierStudy,
    record_sources,
    stored_names,
    stored_sources,
)
from stoic.integrations.optuna.encoding import Encoding
from stoic.integrations.optuna.internals import storage_of, study_id
from stoic.integrations.optuna.warm_start import learned
from stoic.refusal import RefusalError
from stoic.tuning.views.summary import Summary
from studies import add


def loss(x, y):
    return math.sin(5.0 * x) + (y - 0.3) ** 2


def suggested(trial):
    return trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)


def study_of(function, n=30, sampler=None, **changes):
    study = optuna.create_study(sampler=sampler or RandomSampler(seed=0), **changes)
    study.optimize(lambda trial: function(*suggested(trial)), n_trials=n)
    return study


def run(study, n=1):
    study.optimize(lambda trial: loss(*suggested(trial)), n_trials=n)


def attributes(study):
    return storage_of(study).get_study_system_attrs(study_id(study))


@pytest.fixture(scope="module")
def earlier():
    return study_of(loss, study_name="earlier")


def test_a_source_is_the_mean_of_its_own_model_and_survives_its_record(earlier):
    source = learned(earlier)
    again = EarlierStudy.read(source.record())
    encoding = Encoding({"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)})
    x = np.random.default_rng(1).random((40, 2))
    mean, other = (each.on(encoding).moments(x)[1] for each in (source, again))
    assert_array_equal(mean, other)  # to the last bit: all workers use the same
    assert (again.name, again.trials, again.best) == ("earlier", 30, source.best)
    assert loss(**source.best) < -0.8
    # 30 noiseless results of a smooth function: larger is better.
    assert np.corrcoef(mean, [-loss(*point) for point in x])[0, 1] > 0.9


def test_names_decide_what_is_the_same_and_ranges_may_differ():
    study = optuna.create_study(study_name="wide", sampler=RandomSampler(seed=0))

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        gone, mixed = trial.suggest_float("gone", 0.0, 1.0), trial.suggest_float("mixed", 0, 1)
        return (math.log10(rate) + 2.0) ** 2 + (kind == "c") + gone + mixed

    study.optimize(objective, n_trials=40)
    source = learned(study)
    space = {
        "rate": FloatDistribution(0.0, 0.1),
        "kind": CategoricalDistribution(["z", "c", "a"]),
        "mixed": CategoricalDistribution([0, 1]),
        "new": IntDistribution(1, 9),
    }
    found = source.on(Encoding(space))
    own = Encoding(source.space)
    for rate, kind, same in ((1e-3, "a", "a"), (0.05, "c", "c"), (1e-6, "a", "a")):
        setting = {"rate": rate, "kind": kind, "mixed": 0, "new": 3}
        z = found.moments(Encoding(space).encode(setting)[None])[0][0]
        there = own.encode({**source.best, "rate": max(rate, 1e-4), "kind": same})
        assert_allclose(z, there, atol=0.15)  # 32 steps of a linear range: coarse in a logarithm
    wide = Encoding({"gone": FloatDistribution(-1.0, 3.0)})
    beyond = source.on(wide).moments(wide.encode({"gone": 2.5})[None])[0][0]
    assert beyond[own.parts["gone"].columns] == pytest.approx(2.5)  # extrapolated
    unknown = Encoding(space).encode({"rate": 0.01, "kind": "z", "mixed": 1, "new": 3})
    at = own.parts["kind"].columns
    assert_array_equal(found.moments(unknown[None])[0][0, at], 0.0)
    best = source.setting(space)
    assert best["rate"] == min(source.best["rate"], 0.1)
    assert best["new"] == 5
    assert "informs kind, rate, with gone, mixed as in its best" in source.sentence(space)
    # The last: none of its choices
    for other in ({"other": FloatDistribution(0, 1)}, {"kind": CategoricalDistribution(["z"])}):
        assert source.on(Encoding(other)) is None
        assert "no parameter of this study" in source.sentence(other)


def test_a_related_source_is_trusted_and_a_senseless_one_is_not(earlier):
    noise = iter(np.random.default_rng(5).standard_normal(40))
    senseless = study_of(
        lambda x, y: float(next(noise)), 40, RandomSampler(seed=3), study_name="senseless"
    )
    opposite = study_of(lambda x, y: -loss(x, y), study_name="opposite")
    sampler = StoicSampler(seed=0, warm_start=[earlier, senseless])
    study = study_of(lambda x, y: 100.0 + 7.0 * loss(x + 0.02, y), 20, sampler)
    first, second = explain(study).sources
    assert first.trust > 0.5 > 0.2 > second.trust
    assert not first.opposite
    assert "warm start     by earlier (30 results): trust" in Summary.of(study).text()
    assert Summary.of(study).record()["sources"][1]["name"] == "senseless"
    assert study.best_value < 100.0 - 6.5
    turned = study_of(loss, 20, StoicSampler(seed=0, warm_start=[opposite]))
    (only,) = explain(turned).sources
    assert only.trust > 0.5
    assert only.opposite
    assert "upside down" in only.sentence()


def test_an_outlier_in_a_source_is_judged_by_the_source():
    lying = study_of(loss, study_name="lying")
    add(lying, {"x": 0.05, "y": 0.9}, lying.trials[0].distributions, -1e6)
    assert learned(lying).best != {"x": 0.05, "y": 0.9}
    assert loss(**learned(lying).best) < -0.8


@pytest.mark.parametrize("known", [True, False])
def test_the_first_trial_is_the_best_of_the_source(earlier, known):
    space = earlier.trials[0].distributions if known else None
    study = study_of(loss, 3, StoicSampler(seed=0, warm_start=[earlier], search_space=space))
    assert study.trials[0].params == pytest.approx(learned(earlier).best)
    assert study.trials[1].params != study.trials[0].params


def test_a_new_parameter_is_in_the_middle_and_the_setting_is_tried_once(earlier):
    study = optuna.create_study(sampler=StoicSampler(seed=0, warm_start=[earlier]))
    study.optimize(lambda trial: suggested(trial)[0] + trial.suggest_float("new", 0.0, 2.0), 5)
    first, *others = [trial.params for trial in study.trials]
    assert first == pytest.approx(learned(earlier).best | {"new": 1.0})
    assert all(abs(other["x"] - first["x"]) > 1e-6 for other in others)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_of_the_source_do_not_matter(earlier, scale):
    found = []
    for unit in (1.0, scale):
        source = study_of(lambda x, y, unit=unit: unit * loss(x, y), 15, study_name="old")
        study = optuna.create_study(sampler=StoicSampler(seed=0, warm_start=[source]))
        run(study, 6)
        found.append([explain(study).sources[0].trust, *(t.params["x"] for t in study.trials)])
    assert_allclose(*found, atol=1e-3)


def test_it_is_said_that_a_source_informs_nothing_or_not_by_all(caplog):
    old = optuna.create_study(study_name="old", sampler=RandomSampler(seed=0))
    old.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) + trial.suggest_int("z", 0, 9), 5)
    for name, sentence in (("x", "with z as in its best setting"), ("w", "it has no parameter of")):
        sampler = StoicSampler(seed=0, warm_start=[old], n_startup_trials=2)
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial, name=name: trial.suggest_float(name, 0.0, 1.0), 3)
        assert sentence in str(explain(study))
        assert [r.levelname for r in caplog.records if sentence in r.message] == ["WARNING"]


def test_a_branch_of_the_source_that_was_not_seen_yet_is_no_warning(caplog):
    def branches(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float(f"of {kind}", 0.0, 1.0)

    old = optuna.create_study(study_name="old", sampler=RandomSampler(seed=0))
    old.optimize(branches, 12)
    study = optuna.create_study(sampler=StoicSampler(seed=0, warm_start=[old]))
    study.optimize(branches, 12)
    assert "as in its best setting" not in caplog.text
    assert explain(study).sources[0].unshared == ""


def test_a_resumed_study_and_another_worker_use_what_is_recorded(earlier):
    storage = optuna.storages.InMemoryStorage()
    source = study_of(loss, 15, study_name="growing", storage=storage)
    study = study_of(loss, 8, StoicSampler(seed=1, warm_start=[source]), storage=storage)
    recorded = attributes(study)
    assert stored_names(study) == ["growing"]
    run(source, 5)
    for sampler in (StoicSampler(seed=1, warm_start=[source]), StoicSampler(seed=1)):
        other = optuna.load_study(study_name=study.study_name, storage=storage, sampler=sampler)
        run(other, 3)
        assert [each.trials for each in other.sampler._synced.sources] == [15]
    assert attributes(study) == recorded
    other.sampler = StoicSampler(seed=1, warm_start=[earlier])
    run(other)
    assert [each.name for each in stored_sources(study)] == ["earlier"]  # a later one has priority


def test_a_long_source_is_given_by_its_window():
    long = study_of(loss, 300, study_name="long")
    source = learned(long)
    assert source.trials == 300
    assert 256 < len(source.z) <= 384
    encoding = Encoding(long.trials[0].distributions)
    x = np.random.default_rng(1).random((40, 2))
    mean = source.on(encoding).moments(x)[1]
    assert np.corrcoef(mean, [-loss(*point) for point in x])[0, 1] > 0.95


def test_nothing_is_recorded_without_a_warm_start():
    study = study_of(loss, 12, StoicSampler(seed=0))
    assert WARM_START not in attributes(study)
    assert explain(study).sources == ()


def test_another_study_of_the_same_name_is_another_source(earlier):
    def warmed(source):
        study.sampler = StoicSampler(seed=0, warm_start=[source])
        run(study)
        return [(each.name, each.trials) for each in explain(study).sources]

    other = study_of(loss, 12, RandomSampler(seed=5), study_name=earlier.study_name)
    study = optuna.create_study()
    first, second = warmed(earlier), warmed(other)
    assert second == [(earlier.study_name, 12)] != first
    with pytest.raises(RefusalError, match="different names"):
        StoicSampler(warm_start=[earlier, other])


def test_the_choice_none_is_a_choice():
    space = {"c": CategoricalDistribution((None, "a", "b"))}
    source = optuna.create_study(study_name="old", sampler=RandomSampler(seed=0))

    def objective(trial):
        c = trial.suggest_categorical("c", (None, "a", "b"))
        return 0.0 if c is None else 1.0 + trial.number % 3

    source.optimize(objective, n_trials=12)
    assert learned(source).value("c", space["c"]) is None
    study = optuna.create_study(sampler=StoicSampler(seed=0, warm_start=[source]))
    study.optimize(objective, n_trials=1)
    assert study.trials[0].params == {"c": None}


def test_a_source_that_was_deleted_after_its_use_is_not_needed():
    storage = optuna.storages.InMemoryStorage()
    source = study_of(loss, 12, study_name="old", storage=storage)
    study = study_of(loss, 1, StoicSampler(seed=0, warm_start=[source]))
    again = StoicSampler(seed=0, warm_start=[source])
    optuna.delete_study(study_name="old", storage=storage)
    study.sampler = again
    run(study)
    assert [each.name for each in explain(study).sources] == ["old"]


def test_a_source_that_was_deleted_before_its_use_is_said():
    storage = optuna.storages.InMemoryStorage()
    source = optuna.create_study(study_name="old", storage=storage)
    sampler = StoicSampler(seed=0, warm_start=[source])
    optuna.delete_study(study_name="old", storage=storage)
    with pytest.raises(RefusalError, match="was deleted"):
        study_of(loss, 1, sampler)


def test_a_large_record_is_in_pieces(earlier):
    study = optuna.create_study()
    source = learned(study_of(loss, 200, study_name="x" * 40_000))
    record_sources(study, [source, learned(earlier)])
    texts = [each for key, each in attributes(study).items() if key.startswith(WARM_START + ":")]
    assert len(texts) > 1
    assert max(map(len, texts)) <= 30_000
    assert [each.record() for each in stored_sources(study)] == [
        source.record(), learned(earlier).record()
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"rows": []},
        {"rows": [[0.1, 0.2, 1.0, -1.0]]},
        {"rows": [[0.1, 0.2, math.inf, 1.0]]},
        {"rows": [[0.1, 0.2, 1.0]]},
        {"rows": "many"},
        {"lengthscales": [1.0, 0.0]},
        {"lengthscales": [1.0]},
        {"variance": "1e999"},
        {"best": 3},
        {"name": None},
        {"best": "nothing"},
        {"space": {"x": {"name": "NoDistribution", "attributes": {}}}},
        {"space": {"x": 3}},
        {"space": {}},
    ],
)
def test_a_record_that_is_none_is_no_source(earlier, change):
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    record = json.dumps(json.loads(learned(earlier).record()) | change)
    with pytest.raises(ValueError, match=r"\w"):
        EarlierStudy.read(record)
    storage, key = storage_of(study), study_id(study)
    storage.set_study_system_attr(key, f"{WARM_START}:d:0", json.dumps([record]))
    for head in ({"of": "d", "pieces": 1, "names": ["a"]}, {"pieces": 10**9}, {"pieces": "d"}, 7):
        storage.set_study_system_attr(key, WARM_START, head)
        assert stored_sources(study) == ()
    run(study, 3)
    assert explain(study).sources == ()


def test_a_best_setting_of_somebody_else_is_within_the_ranges(earlier):
    text = learned(earlier).record()
    space = {"x": FloatDistribution(0.0, 1.0), "n": IntDistribution(1, 9)}
    for value in (math.nan, 10**400, [1], "a", True, None):
        record = json.dumps(json.loads(text) | {"best": {"x": value, "n": value}})
        setting = EarlierStudy.read(record).setting(space)
        assert 0.0 <= setting["x"] <= 1.0
        assert setting["n"] in range(1, 10)


def test_choices_that_no_storage_can_hold_are_refused():
    study = optuna.create_study(study_name="odd", sampler=RandomSampler(seed=0))
    choices = (object(), object())
    with pytest.warns(UserWarning, match="persistent storage"):
        study.optimize(
            lambda trial: choices.index(trial.suggest_categorical("kind", choices)), n_trials=6
        )
    with pytest.raises(RefusalError, match="choices that no storage can hold"):
        learned(study)


def test_what_cannot_be_is_refused_in_a_sentence(earlier):
    for given in ("earlier", [3], earlier):
        with pytest.raises(RefusalError, match="list of Optuna studies"):
            StoicSampler(warm_start=given)
    with pytest.raises(RefusalError, match="named twice"):
        StoicSampler(warm_start=[earlier, earlier])
    with pytest.raises(RefusalError, match="leave out the recipe gp_ucb"):
        StoicSampler(warm_start=[earlier], recipe="gp_ucb")
    with pytest.raises(RefusalError, match="leave out tolerances"):
        StoicSampler(warm_start=[earlier], tolerance={"x": 0.1}, threshold=1.0)
    few = study_of(loss, 2, study_name="few")
    with pytest.raises(RefusalError, match="it has 2 results, and at least 3"):
        tune(lambda params: loss(**params), {"x": "float(0, 1)"}, n_trials=5, warm_start=[few])
    few.sampler = StoicSampler(warm_start=[few])
    with pytest.raises(RefusalError, match="cannot warm itself"):
        run(few)


def test_another_method_says_that_it_does_not_use_the_record(earlier, caplog):
    study = study_of(loss, 4, StoicSampler(seed=0, warm_start=[earlier]))
    study.sampler = StoicSampler(seed=0, recipe="gp_ucb", n_startup_trials=0)
    with caplog.at_level(logging.WARNING):
        run(study, 2)
    assert caplog.text.count("earlier studies") == 1
    assert explain(study, recipe="gp_ucb").sources == ()


def test_a_function_is_tuned_warm(earlier):
    space = {"x": "float(0, 1)", "y": "float(0, 1)"}
    result = tune(lambda p: loss(**p), space, n_trials=6, seed=0, warm_start=[earlier])
    assert result.x_iters[0] == pytest.approx(learned(earlier).best)
    assert [source.name for source in result.explanation.sources] == ["earlier"]


LOSS = "import sys, math; x, y = map(float, sys.argv[1:]); print(math.sin(5 * x) + (y - .3) ** 2)"
COMMAND = ["--", sys.executable, "-S", "-c", LOSS, "{x}", "{y}"]
SPACE = ["--param", "x=float(0, 1)", "--param", "y=float(0, 1)"]


@pytest.fixture
def stoic(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["stoic", *arguments])
        with pytest.raises(SystemExit) as ending:
            cli.main()
        captured = capsys.readouterr()
        return ending.value.code or 0, captured.out + captured.err

    return run


def test_the_command_line_names_studies(stoic, tmp_path):
    study_of(loss, 12, study_name="old", storage="sqlite:///stoic.db")
    begun = ["tune", "--study-name", "new", "--seed", "1", *SPACE]
    code, out = stoic(*begun, "--warm-start", "old", "-n", "4", *COMMAND)
    assert (code, "warm start     by old (12 results): trust" in out) == (0, True)
    code, out = stoic(*begun, "-n", "5", *COMMAND)  # resumed
    assert (code, "warm start     by old (12 results): trust" in out) == (0, True)
    assert stoic("create-study", "asked", "--warm-start", "old", *SPACE)[0] == 0
    code, out = stoic("ask", "--study-name", "asked")
    best = learned(optuna.load_study(study_name="old", storage="sqlite:///stoic.db")).best
    assert json.loads(out)["params"] == pytest.approx(best)
    url = f"sqlite:///{tmp_path}/stoic.db"
    other = ["--storage", "sqlite:///other.db", "--warm-start"]
    code, out = stoic("tune", *SPACE, *other, f"{url}::old", "-n", "2", *COMMAND)
    assert (code, "by old (12 results)" in out) == (0, True)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("none", "There is no study 'none' in the storage; it holds old."),
        ("::old", "A warm start is the NAME of a study, or STORAGE::NAME, got '::old'."),
        ("sqlite:///nowhere.db::old", "There is no storage at sqlite:///nowhere.db"),
        ("new", "The study 'new' cannot warm itself."),
    ],
)
def test_what_is_not_there_creates_nothing(stoic, tmp_path, named, sentence):
    study_of(loss, 5, study_name="old", storage="sqlite:///stoic.db")
    begun = ["tune", "--study-name", "new", *SPACE, "--warm-start", named, "-n", "4"]
    code, out = stoic(*begun, *COMMAND)
    assert code != 0
    assert sentence in out
    assert optuna.get_all_study_names("sqlite:///stoic.db") == ["old"]
    (tmp_path / "stoic.db").unlink()
    code, out = stoic(*begun, *COMMAND)
    assert code != 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.toml").write_text(
        '[study]\nwarm_start = ["old"]\n[parameters]\nx = "float(0, 1)"\n'
        f"[program]\ncommand = {json.dumps([*COMMAND[1:-1], '1'])}\n"
    )
    code, out = stoic("tune", "a.toml")
    assert "There is no study 'old' in the storage, which is new" in out
