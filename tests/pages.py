"""The pages of the documentation, and how to run the Python on them."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, int, str]]:
    """Language, first line and text of every fenced block of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        (match[1], text.count("\n", 0, match.start(2)) + 1, match[2])
        for match in FENCE.finditer(text)
    ]


def run(page: Path) -> types.ModuleType:
    """Execute the Python of a page from top to bottom, as one module of its own."""
    module = types.ModuleType(f"page_{page.stem}")
    sys.modules[module.__name__] = module  # where dataclasses look for the names in annotations
    for language, line, code in blocks(page):
        if language == "python":
            # Blank lines in front, so that an error points into the page.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), module.__dict__)
    return module
