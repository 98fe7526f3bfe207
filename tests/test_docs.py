"""What the documentation says is so: its Python runs, its links lead somewhere, none is missing."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from itertools import pairwise

import pytest
import typer.main

import pages
from stoic.cli import app
from stoic.confidence import CONFIDENCES
from stoic.experiments import catalogue, find
from stoic.experiments.contest import accuracy
from stoic.experiments.figure import OURS
from stoic.recipes import RECIPES

CUSTOMS = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
LINKED = [*pages.PAGES, *(pages.ROOT / name for name in CUSTOMS)]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def heading_anchors(text):
    """The anchors of a page's headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ +(.+)$", re.sub(pages.FENCE, "", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


# An extra; the first scripts have a test of their own, test_start.py.
NEEDS = {"botorch.md": "botorch", "scikit-learn.md": "sklearn"}
ALONE = [page for page in pages.PAGES if page.name != "start.md"]


WHOLE = ("choosing.md", "coming-from.md", "tuning.md", "tutorial.md")  # campaigns


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=[pytest.mark.long] if p.name in WHOLE else []) for p in ALONE],
    ids=lambda page: page.name,
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pages.run(page)


def test_the_notebook_of_the_tutorial_has_its_code_and_what_it_shows():
    notebook = json.loads((pages.ROOT / "docs/tutorial.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    blocks = pages.blocks(pages.ROOT / "docs/tutorial.md")
    page = [text.strip() for kind, _, text in blocks if kind == "python"]
    assert ["".join(cell["source"]) for cell in code] == page, "make pictures"
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    shown = [out for cell in code for out in cell["outputs"]]
    assert {out["output_type"] for out in shown} == {"stream", "display_data"}  # no error
    assert sum("image/png" in out.get("data", {}) for out in shown) == 2
    printed = "".join(line for out in shown for line in out.get("text", []))
    assert "best value: 9.9\n" in printed
    assert "/" not in printed  # no path of a machine


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_blocks_say_what_they_are(page):
    """A block without a language would neither run nor be known not to."""
    assert {language for language, _, _ in pages.blocks(page)} <= {
        "python", "console", "toml", "yaml", "text", "bibtex"
    }  # fmt: skip


def commands(page):
    """The words of every call of stoic in a page's blocks for the shell."""
    for language, _, code in pages.blocks(page):
        if language != "console":
            continue
        for line in code.replace("\\\n", " ").splitlines():
            words = ["&&", *shlex.split(line.removeprefix("$ "), comments=True), "&&"]
            breaks = [number for number, word in enumerate(words) if word == "&&"]
            calls = (words[a + 1 : b] for a, b in pairwise(breaks))
            yield from (call[1:] for call in calls if call[:1] == ["stoic"])


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_the_commands_of_a_page_exist(page):
    """Parsed, not run: a command, an option or a figure that is not there is an error."""
    known = typer.main.get_command(app)
    for name, *words in commands(page):
        parsed = known.commands[name].make_context(name, words).params
        for figure in parsed["names"] or () if name == "reproduce" else ():
            if ".py:" not in figure:  # which test_extending runs
                find(figure)


def test_commands_are_found_in_the_pages():
    found = {call[0] for page in LINKED for call in commands(page)}
    assert found >= {"tune", "trust", "report", "certify", "list", "reproduce"}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(re.sub(pages.FENCE, "", text)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in heading_anchors(file.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_what_is_cited_is_listed(page):
    text = page.read_text(encoding="utf-8")
    bibliography = (pages.ROOT / "references.bib").read_text(encoding="utf-8")
    listed = {*re.findall(r"@\w+\{(\w+),", bibliography), *re.findall(r"^- \[(\w+)\]", text, re.M)}
    assert set(re.findall(r"\[([A-Z]\w*\d{4}[a-z]?)\]", text)) <= listed


def test_the_numbers_under_the_first_picture_are_the_figure_s():
    summary = json.loads((pages.ROOT / "docs/figures/contest-accuracy.json").read_text())
    settings = summary["settings"]
    said = f"is tuned in {settings['rounds']} trials, {settings['trials']} times"
    for page in ("README.md", "docs/index.md"):
        assert said in (pages.ROOT / page).read_text(encoding="utf-8")
    assert accuracy.markdown(summary) in (pages.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_numbers_about_ordinary_outliers_are_the_figure_s():
    summary = json.loads((pages.ROOT / "docs/figures/contest-ordinary.json").read_text())
    claims = {claim["claim"]: claim["measured"] for claim in summary["claims"]}

    def measured(start):
        return next(numbers for claim, numbers in claims.items() if claim.startswith(start))

    tenth, most = measured("10 % outliers, each size"), measured("60 % outliers")
    said = " ".join((pages.ROOT / "README.md").read_text(encoding="utf-8").split())
    pairs = summary["settings"]["trials"] * len(summary["settings"]["problems"])
    for sentence in (
        f"in studies of {summary['settings']['rounds']} trials",
        f"in {tenth['default'] * tenth['studies']:.0f} of {tenth['studies']:.0f} (three sizes in "
        f"{pairs} pairs of function and seed) and TPE in {100 * tenth['TPE']:.0f} %",
        f"undecided in {100 * most['default']:.0f} %",
    ):
        assert sentence in said
    covers = [100 * n["default"] for claim, n in claims.items() if "interval covers" in claim]
    assert f"{min(covers):.0f} to {max(covers):.0f} % cover the truth" in said


def test_a_claim_of_a_paper_that_does_not_hold_has_a_cause():
    results = pages.ROOT / "docs/figures"
    causes = tomllib.loads((results / "reproduces.toml").read_text(encoding="utf-8"))
    assert causes.keys() <= {figure.name for figure in catalogue()}
    for path in results.glob("*.json"):
        summary = json.loads(path.read_text(encoding="utf-8"))
        of_papers = [claim["holds"] for claim in summary["claims"] if claim["source"] != OURS]
        assert all(of_papers) == ("cause" not in causes.get(summary["figure"], {})), path


def test_every_recipe_has_its_guarantees_explained():
    text = (pages.ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    for recipe in RECIPES:
        assert f"## `{recipe.__name__}`" in text
        assert "Guarantee" in (recipe.__doc__ or "")
    for width in CONFIDENCES:
        assert f"| `{width.__name__}` |" in text
