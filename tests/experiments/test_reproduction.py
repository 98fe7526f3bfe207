import csv
import importlib.util
import json
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import pages
from stoic.experiments import catalogue, find, repeat, reproduce
from stoic.experiments.outliers import tuning
from stoic.experiments.reproduction import with_options
from stoic.problems.tuning import digits_mean
from stoic.refusal import RefusalError

TINY = {
    "outliers/weights": {},
    "outliers/forrester-clean": {"trials": 2, "rounds": 2},
    "outliers/forrester-corrupted": {"trials": 1, "rounds": 1},
    "outliers/sizes": {"trials": 1, "rounds": 1},
    "outliers/both-signs": {"trials": 1, "rounds": 1},
    "outliers/tuning": {"trials": 1, "rounds": 2, "data": None},  # with data it needs torch
    "outliers/lunar-lander": {"trials": 1, "rounds": 2},
    "corruption/figure-1": {"trials": 1, "rounds": 2},
    "corruption/figure-4": {"trials": 1},
    **{
        f"corruption/figure-{k}{draws}": {"trials": 1, "rounds": 2}
        for k in (2, 3, 5, 6)
        for draws in ("", "-ten-draws")
    },
    **{f"heavy-tails/figure-1{k}": {"trials": 1, "rounds": 2} for k in "abcdef"},
    "inputs/figure-2": {},
    **{f"inputs/figure-{k}": {"trials": 1, "rounds": 2} for k in (3, 4)},
    "inputs/figure-5": {},
    **{f"inputs/figure-{k}": {"trials": 1, "rounds": 2} for k in (6, "6-text", 7, 8, 9, 10)},
    **{f"inputs/{name}": {"trials": 1, "rounds": 2} for name in ("table-2", "with-outliers")},
    "misspecification/regret-vs-eps": {"trials": 1, "rounds": 2},
    "misspecification/kernel-mismatch": {"trials": 1, "rounds": 2},
    "misspecification/contextual": {"trials": 1, "rounds": 2},
    "misspecification/untested": {"trials": 1, "rounds": 2},
    "matrix": {"trials": 1, "rounds": 2},
    "contest/quick": {"trials": 1, "rounds": 2},
}
# Hundreds of studies at least: contest/ has tests of parts of them.
LARGE = [
    f"contest/{name}"
    for name in (
        "development",
        "accuracy",
        "ordinary",
        "confirm",
        "narrow",
        "conditional",
        "constraints",
        "objectives",
        "pruning",
        "penalties",
        "few-values",
        "latency",
        "warm-start",
        "tables",
        "long",
        "final",
        "held-out",
    )
]


def test_the_catalogue_is_complete_and_described():
    names = [figure.name for figure in catalogue()]
    assert names == [*TINY, *LARGE]
    assert all(figure.title and not figure.title.endswith(".") for figure in catalogue())
    assert find("outliers/weights") is catalogue()[0]


# One of each kind for each change; others run the same code in another world.
FIRST = [
    "outliers/weights",
    "outliers/forrester-clean",
    "corruption/figure-2",
    "heavy-tails/figure-1a",
    "inputs/figure-8",
    "misspecification/regret-vs-eps",
]


LAST = {f"outliers/{name}" for name in ("forrester-corrupted", "tuning", "both-signs")} | {"matrix"}


def simulated(name):
    """The robot of some figures, and the lander, come with an extra."""
    robots = [f"corruption/figure-{k}" for k in (1, 3, 6)]
    needed = ["Box2D"] if name in robots else []
    if name == "outliers/lunar-lander":
        needed = ["gymnasium", "Box2D"]
    missing = [library for library in needed if importlib.util.find_spec(library) is None]
    marks = [pytest.mark.skip(f"{missing[0]} is not installed")] if missing else []
    if name not in FIRST:
        marks.append(pytest.mark.slow if name in LAST else pytest.mark.long)
    return pytest.param(name, marks=marks)


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """What tuning is measured by takes more than a minute: a few nodes will do here.

    So will a few of the dots of a picture, which take longer than what is in it.
    """
    draw = Figure.savefig
    monkeypatch.setattr(tuning, "digits_mean", lambda nodes, trainings: digits_mean((2, 2), 1))
    monkeypatch.setattr(Figure, "savefig", lambda *to, **how: draw(*to, **{**how, "dpi": 40}))


KEYS = re.findall(r"@\w+\{(\w+),", (pages.ROOT / "references.bib").read_text(encoding="utf-8"))
KEPT = sorted((pages.ROOT / "docs/figures").glob("*.json"))


def is_source(text):
    """Whether it is ours, or the place in a paper of the bibliography."""
    key, _, place = text.partition(", ")
    return text == "ours" or (key in KEYS and bool(place))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_every_claim_that_is_kept_has_a_source(path):
    summary = json.loads(path.read_text(encoding="utf-8"))
    own = find(summary["figure"]).source
    assert is_source(own)
    keys = {own.partition(", ")[0], "ours"}
    for claim in summary["claims"]:
        assert is_source(claim["source"]), claim["claim"]
        assert "Not in the paper" not in claim["claim"] or claim["source"] == "ours"
        # A paper without experiments has theorems; a figure of ours is of no other paper.
        assert claim["source"].partition(", ")[0] in keys | {"Bogunovic2021b"}


@pytest.mark.parametrize("name", [simulated(name) for name in TINY])
def test_json_is_one_object_and_nothing_else(name, tmp_path, tables, capsys):
    reproduce(name, **{"data": tables, **TINY[name]}, jobs=1, out=tmp_path, json=True)
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {"figure", "settings", "claims", "cells"}
    assert printed["figure"] == name
    assert printed["claims"]
    for claim in printed["claims"]:
        assert set(claim) == {"claim", "source", "holds", "measured"}
        assert is_source(claim["source"])
        assert isinstance(claim["holds"], bool)
        assert claim["measured"]
    for option, value in TINY[name].items():
        assert printed["settings"][option] == value
    stem = name.replace("/", "-")
    assert json.loads((tmp_path / f"{stem}.json").read_text()) == printed
    assert (tmp_path / f"{stem}.png").read_bytes().startswith(b"\x89PNG")


def test_results_depend_on_the_seed_and_not_on_the_jobs(tmp_path_factory):
    def rows(jobs, seed):
        out = tmp_path_factory.mktemp("out")
        reproduce("outliers/forrester-clean", trials=2, rounds=2, jobs=jobs, seed=seed, out=out)
        return (out / "outliers-forrester-clean.csv").read_bytes()

    first = rows(1, 3)
    assert rows(2, 3) == first
    assert rows(1, 4) != first


def test_trials_share_their_initial_design_between_methods(tmp_path):
    reproduce("outliers/forrester-clean", trials=2, rounds=1, jobs=1, out=tmp_path)
    with (tmp_path / "outliers-forrester-clean.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    designs = {}
    for row in rows:
        if row["round"] == "0":
            told = (row["x"], row["observed"])
            designs.setdefault(row["seed"], {}).setdefault(row["method"], []).append(told)
    assert len(designs) == 2
    for by_method in designs.values():
        first, *others = by_method.values()
        assert len(first) == 5
        assert all(design == first for design in others)


def test_a_table_is_printed_and_says_where_the_files_are(tmp_path, capsys):
    results = reproduce("outliers/weights", out=tmp_path)
    out = capsys.readouterr().out
    assert "plateau-IMQ" in out
    assert str(results.png) in out.replace("\n", "")
    assert all(claim.claim in out for claim in results.claims)


def test_runs_are_repeated_to_the_last_digit(tmp_path, capsys):
    name, options = "outliers/forrester-clean", {"trials": 2, "rounds": 3, "out": tmp_path}
    with pytest.raises(ValueError, match="no results to check"):
        repeat(name, 2, **options)
    results = reproduce(name, **options, jobs=1)
    assert repeat(name, 3, **options, jobs=1) == []
    assert "3 of 3 runs are the same" in capsys.readouterr().out
    assert repeat(name, 3, jobs=1, out=tmp_path) == []  # with the options of the results
    text = results.json.read_text()
    stored = json.loads(text)
    first = stored["cells"][:4]
    wrong = {**stored, "cells": stored["cells"].replace(first, "0000" if first != "0000" else "1")}
    results.json.write_text(json.dumps(wrong))
    different = repeat(name, 1000, **options, jobs=1)
    assert [cell.seed for cell in different] == [0]
    assert "another result: " in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"other settings \(rounds: 3, not 4\)"):
        repeat(name, 1, **{**options, "rounds": 4})
    results.json.write_text(json.dumps({**stored, "cells": None}))
    with pytest.raises(ValueError, match="no digests"):
        repeat(name, 1, **options)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        repeat(name, 0, **options)


def test_other_settings_are_refused_before_anything_runs(tmp_path, monkeypatch):
    name = "outliers/forrester-clean"
    reproduce(name, trials=1, rounds=1, jobs=1, out=tmp_path)
    monkeypatch.setattr("stoic.experiments.reproduction.sweep", None)
    with pytest.raises(ValueError, match=r"other settings \(rounds: 1, not 2\)"):
        reproduce(name, trials=1, rounds=2, jobs=1, out=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials is at least 1, got 0"),
        ({"rounds": -1}, "rounds is at least 1, got -1"),
        ({"seed": -2}, "seed is at least 0, got -2"),
        ({"jobs": 0}, "jobs is at least 1, got 0"),
    ],
)
def test_impossible_numbers_are_refused(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce("outliers/forrester-clean", **options, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_figure_is_refused_with_the_names(tmp_path):
    with pytest.raises(ValueError, match=r"no figure 'weights': choose one of outliers/weights, "):
        reproduce("weights", out=tmp_path)


MINE = """
from dataclasses import dataclass
from typing import NamedTuple

from matplotlib.figure import Figure as Picture

from stoic.experiments import Cell, Claim, Figure, Table


@dataclass(frozen=True)
class Settings:
    trials: int = 3


class Row(NamedTuple):
    seed: int
    square: int


def cells(settings):
    return [Cell("mine", "square", seed) for seed in range(settings.trials)]


def run(settings, cell):
    return [Row(cell.seed, cell.seed**2)]


def claims(settings, rows):
    return (Claim("It rises.", rows[-1].square > 0, {"last": float(rows[-1].square)}),)


def plot(settings, rows):
    return Picture()


def table(settings, rows):
    return Table("Squares.", ("n",), ((str(len(rows)),),))


FIGURE = Figure("mine/squares", "Squares", Settings(), cells, run, plot, table, claims)
"""


@pytest.mark.parametrize(("jobs", "backend"), [(1, "local"), (2, "local"), (1, "dask")])
def test_a_figure_of_the_users_own_file_runs(jobs, backend, tmp_path):
    if backend == "dask":
        pytest.importorskip("distributed", reason="the extra dask is not installed")
    (tmp_path / "mine.py").write_text(MINE)
    name, out = f"{tmp_path / 'mine.py'}:FIGURE", tmp_path / "out"
    results = reproduce(name, jobs=jobs, out=out, backend=backend)
    assert results.summary()["claims"] == [
        {"claim": "It rises.", "source": "ours", "holds": True, "measured": {"last": 4.0}}
    ]
    assert (out / "mine-squares.csv").read_text() == "seed,square\n0,0\n1,1\n2,4\n"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_needs_a_library_is_refused_in_a_sentence(jobs, tmp_path):
    needs = re.sub(r"(def run\(.*\n)", r"\1    import no_such_library\n", MINE)
    (tmp_path / "mine.py").write_text(needs)
    with pytest.raises(RefusalError, match=r"mine/squares needs a library: No module .*no_such"):
        reproduce(f"{tmp_path / 'mine.py'}:FIGURE", jobs=jobs, out=tmp_path / "out")


def test_a_file_without_the_figure_is_refused(tmp_path):
    file = tmp_path / "mine.py"
    with pytest.raises(ValueError, match=r"no file .*mine\.py"):
        find(f"{file}:FIGURE")
    file.write_text("FIGURE = 3")
    for name in ("FIGURE", "OTHER"):
        with pytest.raises(ValueError, match=f"no Figure called '{name}'"):
            find(f"{file}:{name}")


def test_options_that_a_figure_does_not_have_change_nothing():
    settings = find("outliers/weights").settings
    assert with_options(settings, trials=3, rounds=None, seed=1) == settings


def test_trials_that_are_given_are_those_of_every_method():
    settings = find("outliers/forrester-corrupted").settings
    assert settings.more > 1
    assert with_options(settings, rounds=9).more == settings.more
    few = with_options(settings, trials=2)
    assert (few.trials, few.more) == (2, 1)
    assert with_options(settings, trials=settings.trials) == settings


def test_data_are_said_by_path_and_recorded_by_name(tables, tmp_path):
    name, tiny = "heavy-tails/figure-1e", {"trials": 1, "rounds": 1, "jobs": 1, "out": tmp_path}
    reproduce(name, **tiny, data=tables / "light_sensors_2005.mat")
    text = (tmp_path / "heavy-tails-figure-1e.json").read_text()
    assert json.loads(text)["settings"]["data"] == "light_sensors_2005.mat"
    assert str(tables) not in text
    # Of a directory the same file is meant: the same settings.
    reproduce(name, **tiny, data=tables)


def test_a_single_trial_has_no_standard_error(tmp_path):
    results = reproduce("outliers/forrester-clean", trials=1, rounds=1, jobs=1, out=tmp_path)
    within = results.claims[0]
    assert np.isnan(within.measured["standard_error"])
    assert not within.holds
