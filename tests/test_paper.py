"""The paper: every number in it is that of a figure, and what it cites is listed."""

from __future__ import annotations

import re

import pytest

from pages import ROOT
from scripts import load

TEXT = (ROOT / "paper/paper.md").read_text(encoding="utf-8")
_, FRONT, BODY = TEXT.split("---\n", 2)
TABLES = load(ROOT / "paper/tables.py")
ENTRY = re.compile(r"^@\w+\{(\w+),\n.*?^\}\n", re.MULTILINE | re.DOTALL)


def entries(path):
    return {match[1]: match[0] for match in ENTRY.finditer(path.read_text(encoding="utf-8"))}


def test_it_has_the_sections_of_the_journal():
    headings = re.findall(r"^# (.+)$", BODY, re.MULTILINE)
    assert headings[:3] == ["Summary", "Statement of need", "State of the field"]
    assert headings[-1] == "References"
    for field in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{field}:", FRONT, re.MULTILINE)
    prose = BODY
    for table in TABLES.TABLES.values():
        prose = prose.replace(table(), "")
    assert len(prose.split()) < 1750  # the journal's limit


def test_its_tables_are_those_of_the_figures():
    assert TABLES.filled(TEXT) == TEXT, "run: python paper/tables.py"


def test_no_number_stands_elsewhere():
    """A number in the prose could not be held to a figure."""
    prose = BODY
    for table in TABLES.TABLES.values():
        assert prose.count(table()) == 1
        prose = prose.replace(table(), "")
    prose = re.sub(r"\[@[^\]]+\]", "", prose)  # citations
    assert re.findall(r"\S*\d\S*", prose) == []


@pytest.mark.parametrize(("number", "written"), [(0.00154, "0.0015"), (37.9, "38"), (1.0, "1")])
def test_numbers_have_two_digits(number, written):
    assert TABLES.short(number) == written


def test_what_is_cited_is_listed_once():
    listed, shared = entries(ROOT / "paper/paper.bib"), entries(ROOT / "references.bib")
    assert {*re.findall(r"@(\w+)", "".join(re.findall(r"\[@[^\]]+\]", BODY)))} == {*listed}
    assert all(listed[key] == shared[key] for key in listed.keys() & shared.keys())
