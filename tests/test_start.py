"""The first script in each place, as a newcomer runs it: alone, in an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pages

NEEDS = {"BoTorch": "botorch", "scikit-learn": "sklearn"}  # an extra
# Where the numbers are in what is printed: what is near the best, and what was not believed.
FOUND = {
    "Command line": r"^recommended .*\n(.*)$",
    "BoTorch": r"^next:(.*\])",
    "scikit-learn": r"^at the best:(.*)$",
}
DOUBTED = {"Command line": r"^distrusted +1\n +trial (\d+):"}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def places() -> dict[str, list[tuple[str, int, str]]]:
    """The blocks of each section."""
    page = pages.ROOT / "docs/start.md"
    headings = re.finditer(r"^## (.+)$", text := page.read_text(encoding="utf-8"), re.MULTILINE)
    starts = [(text.count("\n", 0, match.start()) + 1, match[1]) for match in headings]
    sections: dict[str, list[tuple[str, int, str]]] = {name: [] for _, name in starts}
    for block in pages.blocks(page):
        *_, name = (name for line, name in starts if line < block[1])
        sections[name].append(block)
    return sections


PLACES = places()


def test_there_are_five():
    assert list(PLACES) == ["Command line", "Optuna", "Ask and tell", "BoTorch", "scikit-learn"]


@pytest.mark.parametrize("place", PLACES)
def test_a_script_is_short(place):
    lines = sum(code.count("\n") for _, _, code in PLACES[place])
    assert 0 < lines < 20


def said(directory: Path, blocks: list[tuple[str, int, str]]) -> str:
    """What the scripts and commands of a section print, one after another."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    unset = ("PYTHONPATH", "OPTUNA_STORAGE")
    environment = {k: v for k, v in os.environ.items() if k not in unset}
    environment |= {"PATH": path, "COLUMNS": "120"}
    printed = ""
    for language, _, code in blocks:
        if named := re.match(r"# (\w+\.py)\n", code):  # a file that the commands use
            (directory / named[1]).write_text(code, encoding="utf-8")
            continue
        interpreter = {"python": [sys.executable, "-c"], "console": ["bash", "-euc"]}[language]
        ran = subprocess.run(
            [*interpreter, code], cwd=directory, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        printed += ran.stdout
    return printed


# The first of them for each change.
@pytest.mark.parametrize(
    "place", [pytest.param(p, marks=[] if p == "Optuna" else pytest.mark.long) for p in PLACES]
)
def test_a_script_survives_a_crash_and_a_lie(place, tmp_path):
    if place in NEEDS:
        pytest.importorskip(NEEDS[place])
    printed = said(tmp_path, PLACES[place])
    best, within = ([0.0], 0.05) if place == "scikit-learn" else ([0.3, -1.0], 0.2)
    found = re.search(FOUND.get(place, r"^recommended:(.*)$"), printed, re.MULTILINE)
    assert found, printed
    assert [float(n) for n in NUMBER.findall(found[1])] == pytest.approx(best, abs=within)
    doubted = re.search(DOUBTED.get(place, r"^not believed:(.*)$"), printed, re.MULTILINE)
    assert doubted, printed
    # A crash is listed apart from the lies where there is a word for it.
    crash = [] if place in ("Command line", "Optuna") else [7]
    assert [int(n) for n in NUMBER.findall(doubted[1])] == [*crash, 12]
