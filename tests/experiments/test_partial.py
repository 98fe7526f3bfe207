import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest
from matplotlib.figure import Figure as Picture
from typer.testing import CliRunner

from stoic.cli import app
from stoic.experiments import reproduction
from stoic.experiments.figure import Cell, Claim, Figure, Table
from stoic.experiments.partial import Partial
from stoic.experiments.reproduction import reproduce
from stoic.user_file import run_file

VALUES = (0.1 + 0.2, math.nan, -math.inf, 5e-324, 1e308 * 10, -0.0)


@dataclass(frozen=True)
class Settings:
    trials: int = 6
    data: Path = Path("table.csv")


class Row(NamedTuple):
    panel: str
    method: str
    seed: int
    value: float
    known: bool | None

    @property
    def large(self) -> bool:
        return self.value > 1e300


def cells(settings):
    return [Cell("p / q", "m", seed) for seed in range(settings.trials)]


def rows_of(cell):
    return [Row(*cell, value, known) for value in VALUES for known in (True, False, None)]


class Killed(BaseException):
    """As a signal that nothing handles."""


class Runs:
    """A run that ends with an error when it is called for some cell, and counts its calls."""

    def __init__(self, until=99, error=Killed):
        self.until, self.error, self.calls = until, error, 0

    def figure(self):
        def run(settings: Settings, cell: Cell) -> list[Row]:
            if cell.seed == self.until:
                raise self.error
            self.calls += 1
            return rows_of(cell)

        return replace(FIGURE, run=run)


def plot(settings, rows):
    picture = Picture()
    picture.add_subplot().plot([row.seed for row in rows])
    return picture


def claims(settings, rows):
    numbers = {f"{k}": row.value for k, row in enumerate(rows)}
    return (Claim("Some are large.", any(row.large for row in rows), numbers),)


FIGURE = Figure(
    "test/partial", "", Settings(), cells, None, plot, lambda s, rows: Table("", (), ()), claims
)


@pytest.fixture
def play(monkeypatch, tmp_path):
    """Reproduce the figure with these runs; return the bytes of its files."""

    def play(runs, out="out", **options):
        monkeypatch.setattr(reproduction, "find", lambda name: runs.figure())
        reproduce("test/partial", jobs=1, out=tmp_path / out, **options)
        return {path.name: path.read_bytes() for path in (tmp_path / out).iterdir()}

    return play


def test_a_killed_figure_goes_on_and_is_the_same_as_in_one_go(play, tmp_path, capsys):
    expected = play(Runs(), "whole")
    with pytest.raises(Killed):
        play(Runs(until=4))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["test-partial.partial.jsonl"]
    capsys.readouterr()
    rest = Runs()
    assert play(rest) == expected
    assert rest.calls == 2
    assert capsys.readouterr().err.splitlines()[0] == "test/partial: 4 of 6 runs were there."
    assert set(expected) == {f"test-partial.{kind}" for kind in ("csv", "json", "png")}


def test_half_a_line_is_run_again(play, tmp_path):
    expected = play(Runs(), "whole")
    with pytest.raises(Killed):
        play(Runs(until=3))
    file = tmp_path / "out" / "test-partial.partial.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(Killed):
        play(Runs(until=4))
    rest = Runs()
    assert play(rest) == expected
    assert rest.calls == 2


def test_runs_of_other_settings_or_code_are_set_aside(play, tmp_path, capsys):
    file = tmp_path / "out" / "test-partial.partial.jsonl"
    with pytest.raises(Killed):
        play(Runs(until=3))
    stored = file.read_text()
    again = Runs()
    play(again, trials=5)
    assert again.calls == 5
    assert "runs of other settings: not used" in capsys.readouterr().err
    assert file.with_suffix(".old.jsonl").read_text() == stored
    head, *lines = stored.splitlines()
    file.write_text("\n".join([json.dumps({**json.loads(head), "code": "0"}), *lines, ""]))
    partial = Partial(file, Runs().figure(), Settings())
    assert len(partial) == 0
    assert "runs of other code: not used" in capsys.readouterr().err


def test_the_code_is_also_what_a_user_s_file_imports_beside_it(tmp_path):
    (tmp_path / "imported_here.py").write_text("SLOPE = 1.0\n")
    figure = tmp_path / "own.py"
    figure.write_text(
        "import imported_here\ndef run(settings, cell) -> list: return [imported_here.SLOPE]\n"
    )

    def code():
        sys.modules.pop("imported_here", None)
        own = run_file(figure, "own_figure")
        return Partial(tmp_path / "p", replace(Runs().figure(), run=own.run), Settings())._head

    first = code()
    assert code() == first
    (tmp_path / "imported_here.py").write_text("SLOPE = -1.0\n")
    assert code()["code"] != first["code"]
    (tmp_path / "not_imported.py").write_text("")
    second = code()
    (tmp_path / "not_imported.py").unlink()
    assert code() == second


def test_ctrl_c_says_what_is_kept(play, tmp_path):
    runs = Runs(until=2, error=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt, match=r"^Interrupted; 2 of 6 runs .* goes on from them"):
        play(runs)
    command = ["reproduce", "test/partial", "--jobs", "1", "--out", str(tmp_path / "out")]
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == 130
    assert "Interrupted; 2 of 6 runs of test/partial are kept in" in ended.stderr
    with pytest.raises(KeyboardInterrupt, match="no run of test/partial was kept"):
        play(Runs(until=0, error=KeyboardInterrupt), "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_row_that_is_no_plain_value_is_refused(play, monkeypatch):
    monkeypatch.setitem(globals(), "VALUES", (object(),))
    with pytest.raises(ValueError, match="A row holds numbers"):
        play(Runs())
