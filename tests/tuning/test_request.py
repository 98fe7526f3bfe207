"""Study files and options."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.distributions import FloatDistribution

from stoic.integrations.optuna.objective import RobustObjective
from stoic.integrations.recipe import parse
from stoic.refusal import RefusalError
from stoic.tuning.request import Settings, aim_arguments, from_file, from_options

GOOD = """
[study]
name = "mine"
direction = "maximize"
storage = "sqlite:///there.db"
trials = 7
seed = 3
startup = 4
[parameters]
lr = "float(1e-5, 1e-1, log)"
kind = ["a", "b"]
[program]
command = "{python} train.py {lr} {kind}"
value = "json:loss"
timeout = 2
directory = "inner"
[failures]
"exit code 3" = "infeasible"
timeout = "bad"
"""


@pytest.fixture(autouse=True)
def _no_storage_variable(monkeypatch):
    monkeypatch.delenv("OPTUNA_STORAGE", raising=False)


def write(tmp_path: Path, text: str, name: str = "study.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_says_everything(tmp_path):
    request = from_file(write(tmp_path, GOOD), Settings())
    assert (request.name, request.goal, request.storage) == (
        "mine",
        "maximize",
        f"sqlite:///{tmp_path}/there.db",
    )
    assert (request.trials, request.seed, request.startup) == (7, 3, 4)
    assert request.space["lr"] == FloatDistribution(1e-5, 1e-1, log=True)
    assert request.program.timeout == 2
    assert request.program.directory == tmp_path / "inner"
    assert request.program.template.arguments[1] == "train.py"
    assert request.program.reading.written == "json:loss"
    assert request.program.failures == {"exit 3": "infeasible", "timeout": "bad"}


def test_an_editor_may_have_written_a_mark_at_the_start(tmp_path):
    path = write(tmp_path, GOOD)
    expected = from_file(path, Settings())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert from_file(path, Settings()).space == expected.space


def test_the_command_line_goes_before_the_file(tmp_path):
    said = Settings(name="other", trials=9, timeout=5.0, value="last-line", storage="x", seed=0)
    said["failures"] = {"exit 3": "transient", "signal": "bad"}
    request = from_file(write(tmp_path, GOOD), said)
    assert (request.name, request.trials, request.storage) == ("other", 9, "x")
    assert request.program.timeout == 5
    assert request.program.reading.written == "last-line"
    assert request.program.failures == {
        "exit 3": "transient",
        "timeout": "bad",
        "signal": "bad",
    }
    assert request.seed == 0
    assert request.startup == 4


def test_the_defaults(tmp_path, monkeypatch):
    little = '[parameters]\nx = "float(0, 1)"\n[program]\ncommand = ["run", "{x}"]\n'
    request = from_file(write(tmp_path, little, "fast.toml"), Settings())
    assert (request.name, request.goal, request.storage, request.trials) == (
        "fast",
        "minimize",
        f"sqlite:///{tmp_path}/stoic.db",
        50,
    )
    assert request.program.directory == tmp_path
    assert request.program.timeout is None
    assert request.program.failures == {}
    assert from_file(write(tmp_path, little), Settings()).name == tmp_path.name
    monkeypatch.setenv("OPTUNA_STORAGE", "sqlite:///elsewhere.db")
    assert from_file(write(tmp_path, little), Settings()).storage == "sqlite:///elsewhere.db"


@pytest.mark.parametrize(
    "url", ["sqlite:////there.db", "postgresql://host/there", "sqlite:///:memory:", "://"]
)
def test_a_storage_that_is_nowhere_near_the_file_stays_as_it_is(tmp_path, url):
    changed = change("sqlite:///there.db", url)
    assert from_file(write(tmp_path, changed), Settings()).storage == url


def change(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            change("direction =", "directoin ="),
            "Unknown key 'directoin' in [study]: did you mean 'direction'",
        ),
        (change("timeout", "time"), "did you mean 'timeout'"),
        (change("[study]", "[stdy]"), "Unknown section 'stdy'"),
        (change('"maximize"', '"up"'), "minimize or maximize"),
        (change("trials = 7", "trials = 0"), "at least 1"),
        (change("trials = 7", "trials = 1.5"), "whole number"),
        (change("trials = 7", "trials = true"), "whole number"),
        (change("seed = 3", "seed = -1"), "seed must be"),
        (change("startup = 4", "startup = -4"), "startup must be"),
        (change("timeout = 2", "timeout = 0"), "timeout must be"),
        (change("timeout = 2", "timeout = inf"), "timeout must be"),
        (change("timeout = 2", 'timeout = "2"'), "must be a number"),
        (change('name = "mine"', "name = 3"), "must be a text"),
        (change("1e-5, 1e-1", "1e-1, 1e-5"), "empty"),
        (change("{lr}", ""), "'lr' is not used"),
        (change("{lr}", "{lr} {momentum}"), "no parameter 'momentum'"),
        (change('command = "{python} train.py {lr} {kind}"', ""), "no command"),
        (change('"{python} train.py {lr} {kind}"', "[1]"), "a text or a list of texts"),
        (change("json:loss", "jsn:loss"), "Cannot read a value"),
        (GOOD.split("[program]")[0], "no section [program]"),
        ('parameters = 3\n[program]\ncommand = "x"', "must be a section"),
        ('[parameters]\n[program]\ncommand = "x"', "nothing to tune"),
        (change('timeout = "bad"', 'timeout = "slow"'), "bad, got 'slow'"),
        (change('timeout = "bad"', "timeout = 3"), "bad, got 3"),
        (change("exit code 3", "exit code zero"), "does not end with 'exit code zero'"),
        ("failures = 3\n" + GOOD.split("[failures]")[0], "[failures] must be a section"),
        ("[study", "is not TOML"),
        ("[study]\ndirection = maximize", "needs quotes"),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_the_file(tmp_path, text, said):
    with pytest.raises(RefusalError) as refusal:
        from_file(write(tmp_path, text), Settings())
    assert said in str(refusal.value)
    assert "study.toml" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RefusalError, match="Cannot read the study file"):
        from_file(tmp_path / "none.toml", Settings())


def test_options_name_each_parameter_once():
    command = ["run", "{x}"]
    assert from_options(["x=float(0, 1)"], command, Settings()).name == "stoic"
    for wrong, said in (
        ([], "nothing to tune"),
        (["x=float(0, 1)", "x=int(0, 1)"], "given twice"),
        (["x"], "not NAME=RANGE"),
    ):
        with pytest.raises(RefusalError, match=said):
            from_options(wrong, command, Settings())
    with pytest.raises(RefusalError, match="no program"):
        from_options(["x=float(0, 1)"], [], Settings())


def test_the_study_file_of_the_documentation_is_one(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "tuning.md"
    written = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    request = from_file(write(tmp_path, written), Settings())
    assert request.name == "digits"
    assert request.space.keys() == {"lr", "momentum", "layers", "width", "kind"}


def test_the_study_file_of_the_example_is_one():
    example = Path(__file__).parents[2] / "examples" / "digits" / "study.toml"
    assert from_file(example, Settings()).space.keys() == {"C", "gamma"}


AIMED = (
    GOOD.replace("startup = 4", "startup = 4\nthreshold = 0.9\np = 2") + "[tolerance]\nlr = 1.5\n"
)


def test_tolerances_in_a_file(tmp_path):
    assert from_file(write(tmp_path, GOOD), Settings()).said == {}
    path = write(tmp_path, AIMED)
    request = from_file(path, Settings())
    assert RobustObjective.of(request.said) == RobustObjective(
        threshold=0.9, p=2, tolerance={"lr": 1.5}
    )
    assert request.fixed == {}
    said = aim_arguments({"tolerance": ["lr=2"], "threshold": "adaptive", "margin": 0.1, "p": None})
    assert said == {"threshold": "adaptive", "margin": 0.1, "tolerance": {"lr": 2.0}}
    text = AIMED.replace("threshold = 0.9\np = 2", 'threshold = "adaptive"\nmargin = 1')
    adaptive = write(tmp_path, text, "adaptive.toml")
    number = from_file(adaptive, Settings(aim=aim_arguments({"threshold": "0.8"})))
    assert RobustObjective.of(number.said) == RobustObjective(threshold=0.8, tolerance={"lr": 1.5})
    over = from_file(path, Settings(aim=said, fixed=("kind=b",)))
    assert RobustObjective.of(over.said) == RobustObjective(
        threshold="adaptive", margin=0.1, p=2, tolerance={"lr": 2.0}
    )
    assert over.fixed == {"kind": "b"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("lr = 1.5", "lrr = 1.5"), "There is no parameter 'lrr': did you mean 'lr'?"),
        (("lr = 1.5", "lr = 0.5"), "factor of at least 1"),
        (("lr = 1.5", "kind = 1.5"), "kind is a choice among a, b"),
        (("lr = 1.5", "lr = 1.0"), "nothing moves"),
        (("lr = 1.5", "lr = -1"), "must be a number >= 0, got -1"),
        (("lr = 1.5", 'lr = "2"'), "must be a number >= 0, got '2'"),
        (("threshold = 0.9", 'threshold = "high"'), "a number or"),
        (("threshold = 0.9", "threshold = nan"), "A threshold is a number"),
        (("threshold = 0.9", "threshold = true"), "threshold must be a number"),
        (("threshold = 0.9", "treshold = 0.9"), "did you mean 'threshold'"),
        (("threshold = 0.9", 'policy = "stable"'), "p does not go with"),
        (("threshold = 0.9", 'policy = "bold"'), "satisficing or stable"),
        (("p = 2", "p = 0.5"), "power"),
        (("p = 2", "probe = 1"), "probe must be true or false"),
    ],
)
def test_tolerances_that_make_no_sense_are_refused(tmp_path, change, reason):
    with pytest.raises(RefusalError, match=reason):
        from_file(write(tmp_path, AIMED.replace(*change)), Settings())


@pytest.mark.parametrize(
    ("tolerance", "threshold", "reason"),
    [
        (["lr"], None, "'lr' is not NAME=VALUE"),
        (["lr=big"], None, "The tolerance of 'lr' must be a number, got 'big'"),
        (["lr=2", "lr=3"], None, "given twice"),
        (["lr=2"], "high", "threshold must be a number, got 'high'"),
    ],
)
def test_what_the_command_line_says_wrongly_is_refused(tolerance, threshold, reason):
    with pytest.raises(RefusalError, match=reason):
        aim_arguments({"tolerance": tolerance, "threshold": threshold})


def test_a_recipe_in_a_file(tmp_path):
    path = write(tmp_path, GOOD.replace("seed = 3", 'seed = 3\nrecipe = "rgp_ucb( budget=5 )"'))
    assert from_file(path, Settings()).recipe == parse("rgp_ucb(budget=5)")
    assert from_file(write(tmp_path, GOOD), Settings()).recipe is None
    over = from_file(path, Settings(recipe=parse("gp_ucb")))
    assert over.recipe == parse("gp_ucb")
    inside = GOOD.replace("seed = 3", 'recipe = "methods.py:phased"')
    recipe = from_file(write(tmp_path, inside), Settings()).recipe
    assert recipe is not None
    assert recipe.directory == tmp_path  # and it is not run: there is none
    for wrong, reason in (('"rgp_ubc"', "did you mean 'rgp_ucb'"), ("3", "must be a text")):
        with pytest.raises(RefusalError, match=reason):
            from_file(write(tmp_path, GOOD.replace("seed = 3", f"recipe = {wrong}")), Settings())
