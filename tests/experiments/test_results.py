import csv
import json
import math
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from matplotlib.figure import Figure as Picture

from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.results import Shelf, digest, plain_settings, to_json


@dataclass(frozen=True)
class Settings:
    trials: int = 3
    names: tuple[str, ...] = ("a", "b")


class Row(NamedTuple):
    seed: int
    observed: float
    corrupted: bool


def plot(settings, rows):
    picture = Picture()
    picture.add_subplot().plot([row.seed for row in rows])
    return picture


FIGURE = Figure(
    "test/results",
    "",
    Settings(),
    lambda settings: [Cell("p", "m", 0)],
    lambda settings, cell: [Row(0, 1.5, False), Row(1, math.nan, True)],
    plot,
    lambda settings, rows: Table("", ("seed",), (("0",),)),
    lambda settings, rows: (Claim("It holds.", True, {"error": math.nan, "mean": 2.0}),),
)
PARTS = [FIGURE.run(Settings(), Cell("p", "m", 0))]


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "new" / "directory", "test-results")


def test_three_files_and_nothing_else(shelf):
    results = shelf.write(FIGURE, Settings(), PARTS)
    names = sorted(path.name for path in shelf.directory.iterdir())
    assert names == ["test-results.csv", "test-results.json", "test-results.png"]
    assert results.png.read_bytes().startswith(b"\x89PNG")
    with results.csv.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["seed", "observed", "corrupted"], ["0", "1.5", "0"], ["1", "nan", "1"]]
    assert json.loads(results.json.read_text()) == {
        "figure": "test/results",
        "settings": {"trials": 3, "names": ["a", "b"]},
        "claims": [
            {
                "claim": "It holds.",
                "source": "ours",
                "holds": True,
                "measured": {"error": None, "mean": 2.0},
            }
        ],
        "cells": digest(PARTS[0]),
    }


def test_the_same_settings_write_the_same_bytes_again(shelf):
    results = shelf.write(FIGURE, Settings(), PARTS)
    before = [path.read_bytes() for path in (results.png, results.csv, results.json)]
    shelf.write(FIGURE, Settings(), PARTS)
    assert [path.read_bytes() for path in (results.png, results.csv, results.json)] == before


def test_other_settings_are_refused_and_change_nothing(shelf):
    results = shelf.write(FIGURE, Settings(), PARTS)
    before = [path.read_bytes() for path in (results.png, results.csv, results.json)]
    with pytest.raises(ValueError, match=r"other settings \(trials: 3, not 4\).*remove it\.$"):
        shelf.write(FIGURE, Settings(4), PARTS)
    assert [path.read_bytes() for path in (results.png, results.csv, results.json)] == before


def test_a_setting_that_was_not_known_then_is_a_difference(shelf):
    shelf.write(FIGURE, Settings(), PARTS)
    with pytest.raises(ValueError, match="noise: null, not 1"):
        shelf.check_free({**plain_settings(Settings()), "noise": 1})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"settings": 3}', "null"])
def test_results_of_unknown_settings_are_refused(shelf, text):
    shelf.directory.mkdir(parents=True)
    shelf.json.write_text(text)
    with pytest.raises(ValueError, match="no settings that can be read"):
        shelf.check_free(plain_settings(Settings()))


def test_a_picture_without_settings_is_not_overwritten(shelf):
    shelf.directory.mkdir(parents=True)
    shelf.png.write_bytes(b"mine")
    with pytest.raises(ValueError, match="settings are unknown"):
        shelf.write(FIGURE, Settings(), PARTS)
    assert shelf.png.read_bytes() == b"mine"


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is not a directory"):
        Shelf(tmp_path / "file", "x").check_free({})


def test_a_failure_while_writing_leaves_no_json_and_no_scraps(shelf, monkeypatch):
    def broken(self, *args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(Picture, "savefig", broken)
    with pytest.raises(OSError, match="disk full"):
        shelf.write(FIGURE, Settings(), PARTS)
    assert not shelf.json.exists()
    assert not shelf.png.exists()
    assert [path.name for path in shelf.directory.iterdir()] == ["test-results.csv"]


def test_json_has_no_words_of_its_own():
    text = to_json({"a": [math.inf, -math.inf, math.nan, (1.0, {"b": math.nan})]})
    assert json.loads(text) == {"a": [None, None, None, [1.0, {"b": None}]]}


def test_a_path_is_recorded_by_the_name_of_its_file(tmp_path):
    assert json.loads(to_json({"data": tmp_path / "table.csv"})) == {"data": "table.csv"}
