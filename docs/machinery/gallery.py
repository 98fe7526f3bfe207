"""The pages of the reproduced figures, made from the results when the site is built."""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from docstrings import markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from stoic.experiments import catalogue
from stoic.experiments.figure import Figure

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
        parts = [f"# {title}", _INTRODUCTION]
        told: dict[str, str] = {}
        parts += [_section(figure, results, told) for figure in figures]
        page = File.generated(config, f"gallery/{family}.md", content="\n\n".join(parts))
        files.append(page)
    return files


_INTRODUCTION = (
    "Reproduced figures, with what the papers claim and what was measured here. A claim that does "
    "not hold is a finding, and stays in the list. The command above each picture draws it again, "
    "[quickly or on a cluster](../reproducing.md); a click on a picture enlarges it."
)
_HEADING = re.compile(r"^(.+)\n-{3,}$", re.MULTILINE)
_TABLE = "The numbers of the picture, bold where it has a frame:"
_FEW = 4  # numbers that are shown at once


def _json(results: Path, name: str) -> Path:
    return results / f"{name.replace('/', '-')}.json"


def _section(figure: Figure[Any, Any], results: Path, told: dict[str, str]) -> str:
    """One figure. ``told`` says which texts the page has already, and where."""
    path = _json(results, figure.name)
    claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
    table = path.with_suffix(".md")
    held = sum(bool(claim["holds"]) for claim in claims)
    lines = [
        f"## {figure.title} {{#{path.stem}}}",
        f"```console\nstoic reproduce {figure.name}\n```",
        f"[![{figure.title}](../figures/{path.stem}.png)](../figures/{path.stem}.png)",
        *([_TABLE, table.read_text(encoding="utf-8")] if table.exists() else []),
        *_seen(figure, path.stem, told),
        f"{held} of {len(claims)} claims hold.",
        "| claim | holds | measured |\n|---|---|---|\n" + "\n".join(map(_row, claims)),
    ]
    return "\n\n".join(lines)


def _seen(figure: Figure[Any, Any], place: str, told: dict[str, str]) -> list[str]:
    """Return what a figure's module of claims says about the picture; once on a page."""
    module = figure.claims.__module__
    _, _, text = inspect.cleandoc(sys.modules[module].__doc__ or "").partition("\n\n")
    if not text:
        return []
    if module in told:
        return [f"What is seen, and why claims fail, is told [above](#{told[module]})."]
    told[module] = place
    text = markdown(_HEADING.sub(r"**\1**\n", text))
    return ['??? note "What is seen, and why claims fail"', textwrap.indent(text, "    ")]


def _row(claim: Mapping[str, Any]) -> str:
    text = str(claim["claim"]).replace("|", "\\|")
    numbers = _numbers(claim["measured"])
    return f"| {text} | {'yes' if claim['holds'] else '**no**'} | {numbers} |"


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
