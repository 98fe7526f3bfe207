"""The pages of the reproduced figures, made from the results when the site is built."""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from docstrings import markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from stoic.experiments import catalogue
from stoic.experiments.figure import OURS, Figure

FAMILIES = {
    "outliers": "A few outliers of any size",
    "corruption": "Corrupted rewards",
    "heavy-tails": "Heavy-tailed noise",
    "inputs": "Moved inputs",
    "misspecification": "A wrong model",
    "matrix": "Every threat, every method",
    "contest": "The default against other optimizers",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each family of figures that has results."""
    results = Path(config.docs_dir) / "figures"
    for family, title in FAMILIES.items():
        figures = [
            figure
            for figure in catalogue()
            if figure.name.partition("/")[0] == family and _json(results, figure.name).exists()
        ]
        if not figures:
            continue
        claims = [claim for figure in figures for claim in _claims(results, figure)]
        parts = [f"# {title}", _INTRODUCTION, f"On this page: {held(claims)}"]
        told: dict[str, str] = {}
        parts += [_section(figure, results, told) for figure in figures]
        page = File.generated(config, f"gallery/{family}.md", content="\n\n".join(parts))
        files.append(page)
    overview = reproduced(results)
    files.append(File.generated(config, "gallery/reproduces.md", content=overview))
    return files


def reproduced(results: Path) -> str:
    """Return the page with a row for each figure of a paper: what holds, and why the rest fails."""
    notes = tomllib.loads((results / "reproduces.toml").read_text(encoding="utf-8"))
    by_paper: dict[str, list[tuple[Figure[Any, Any], list[dict[str, Any]]]]] = {}
    for figure in catalogue():
        if not _json(results, figure.name).exists():
            continue
        claims: dict[str, list[dict[str, Any]]] = {}
        for claim in _claims(results, figure):
            claims.setdefault(claim["source"].partition(",")[0], []).append(claim)
        for paper in claims.keys() - {OURS}:
            by_paper.setdefault(paper, []).append((figure, claims[paper]))
    every = [claim for figures in by_paper.values() for _, claims in figures for claim in claims]
    parts = ["# What reproduces", f"Of the papers' claims {_share(every)} hold.", _OVERVIEW]
    for paper, figures in sorted(by_paper.items()):
        held = _share([claim for _, claims in figures for claim in claims])
        parts.append(f"## [{paper}]\n\n{held} claims hold.")
        lines = ["| figure | claims that hold | how it was read | why others do not hold | time |"]
        lines.append("|---|---|---|---|---|")
        for figure, claims in figures:
            path = _json(results, figure.name)
            note = notes.get(figure.name, {})
            places = dict.fromkeys(claim["source"].partition(", ")[2] for claim in claims)
            place = " and ".join(places)
            link = f"[{place}]({figure.name.partition('/')[0]}.md#{path.stem})"
            command = f"`stoic reproduce {figure.name}`"
            said = map(note.get, ("reading", "cause", "time"))
            row = (f"{link}<br>{command}", _share(claims) + _failing(claims), *said)
            lines.append("| " + " | ".join(cell or "" for cell in row) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


_OVERVIEW = (
    "A claim is a sentence that a paper's text, caption or curve says, judged by the numbers of "
    "our run with the threshold that stands in it. Where a paper leaves its setting open, the "
    "third column has the reading. The time is that of one processor, by a sample of the runs. "
    "Claims of ours are on the pages of the figures."
)


def _share(claims: Sequence[Mapping[str, Any]]) -> str:
    return f"{sum(bool(claim['holds']) for claim in claims)} of {len(claims)}"


def _failing(claims: Sequence[Mapping[str, Any]]) -> str:
    """Name the claims that do not hold, behind a click."""
    names = [str(claim["claim"]).replace("|", "\\|") for claim in claims if not claim["holds"]]
    if not names:
        return ""
    return f"<details><summary>not these</summary>{'<br>'.join(names)}</details>"


_INTRODUCTION = (
    "Reproduced figures, with what the papers and we claim and what was measured here. A claim "
    "that does not hold is a finding, and stays in the list. The command above each picture draws "
    "it again, [quickly or on a cluster](../reproducing.md); a click on a picture enlarges it."
)
_HEADING = re.compile(r"^(.+)\n-{3,}$", re.MULTILINE)
_TABLE = "The numbers of the picture, bold where it has a frame:"
_FEW = 4  # numbers that are shown at once


def _json(results: Path, name: str) -> Path:
    return results / f"{name.replace('/', '-')}.json"


def _claims(results: Path, figure: Figure[Any, Any]) -> list[dict[str, Any]]:
    claims: list[dict[str, Any]]
    claims = json.loads(_json(results, figure.name).read_text(encoding="utf-8"))["claims"]
    return claims


def _section(figure: Figure[Any, Any], results: Path, told: dict[str, str]) -> str:
    """One figure. ``told`` says which texts the page has already, and where."""
    path, claims = _json(results, figure.name), _claims(results, figure)
    table = path.with_suffix(".md")
    lines = [
        f"## {figure.title} {{#{path.stem}}}",
        f"```console\nstoic reproduce {figure.name}\n```",
        f"[![{figure.title}](../figures/{path.stem}.png)](../figures/{path.stem}.png)",
        *([_TABLE, table.read_text(encoding="utf-8")] if table.exists() else []),
        *_described(figure, path.stem, told),
        *_noted(path.with_suffix(".notes.md")),
        held(claims),
        "| claim | source | holds | measured |\n|---|---|---|---|\n" + "\n".join(map(_row, claims)),
    ]
    return "\n\n".join(lines)


def _described(figure: Figure[Any, Any], place: str, told: dict[str, str]) -> list[str]:
    """Return how a figure's module of claims describes the experiment; once on a page."""
    module = figure.claims.__module__
    _, _, text = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n\n")
    if not text:
        return []
    if module in told:
        return [f"The experiment is described [above](#{told[module]})."]
    told[module] = place
    return [_folded("The experiment", markdown(_HEADING.sub(r"**\1**\n", text)))]


def _noted(path: Path) -> list[str]:
    """Return the notes on the kept results."""
    if not path.exists():
        return []
    return [_folded("What is seen, and why claims fail", path.read_text(encoding="utf-8"))]


def _folded(title: str, text: str) -> str:
    return f'??? note "{title}"\n\n{textwrap.indent(text, "    ")}'


def held(claims: Sequence[Mapping[str, Any]]) -> str:
    """Count the claims that hold, those of each paper by themselves."""
    counts: dict[str, list[bool]] = {}
    for claim in claims:
        counts.setdefault(claim["source"].partition(",")[0], []).append(bool(claim["holds"]))
    parts = [
        f"{sum(verdicts)} of {len(verdicts)} claims "
        + ("of ours" if paper == OURS else f"of [{paper}]")
        for paper, verdicts in sorted(counts.items(), key=lambda item: item[0] == OURS)
    ]
    return f"{' and '.join(parts)} hold."


def _row(claim: Mapping[str, Any]) -> str:
    text = str(claim["claim"]).replace("|", "\\|")
    numbers = _numbers(claim["measured"])
    verdict = "yes" if claim["holds"] else "**no**"
    return f"| {text} | {claim['source']} | {verdict} | {numbers} |"


def _numbers(measured: object) -> str:
    """All of them, behind a click if they are many."""
    if not isinstance(measured, Mapping):
        return _short(measured)
    shown = [f"{key.replace('_', ' ')} {_short(value)}" for key, value in measured.items()]
    if len(shown) <= _FEW:
        return "<br>".join(shown)
    first, rest = shown[: _FEW - 1], shown[_FEW - 1 :]
    more = f"<details><summary>{len(rest)} more</summary>{'<br>'.join(rest)}</details>"
    return "<br>".join(first) + more


def _short(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        return f"{float(value):.4g}"
    return str(value).replace("|", "\\|")
