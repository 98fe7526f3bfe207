"""The code of the examples, on their pages of the site."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_NAMED = re.compile(r"^`(examples/[\w/]+\.py)`$", re.MULTILINE)


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show the code of each file that is named on a line of its own."""
    if page.file.src_uri not in ("examples.md", "cluster.md"):
        return text
    root = Path(config.docs_dir).parent

    def code(match: re.Match[str]) -> str:
        shown = (root / match[1]).read_text(encoding="utf-8")
        return f'```python title="{match[1]}"\n{shown}```'

    return _NAMED.sub(code, text)
