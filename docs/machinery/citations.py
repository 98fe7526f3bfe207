"""Citations lead to a page of references, which is made from the bibliography."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

_ENTRY = re.compile(r"^@\w+\{(?P<key>\w+),\n(?P<body>.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+)\s*=\s*\{(.*?)\},$", re.MULTILINE | re.DOTALL)
_ACCENTS = {r"\"o": "ö", r"\"u": "ü", r"\"a": "ä", r"\c{c}": "ç", r"\'e": "é", r"\'a": "á"}
_CITATION = re.compile(r"\[([A-Z]\w*\d{4}[a-z]?)\]_?")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of references."""
    bibliography = Path(config.docs_dir).parent / "references.bib"
    entries = _ENTRY.finditer(bibliography.read_text(encoding="utf-8"))
    lines = "\n\n".join(_entry(match["key"], match["body"]) for match in entries)
    files.append(File.generated(config, "references.md", content=f"# References\n\n{lines}\n"))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link every citation."""
    references = files.get_file_from_path("references.md")
    if references is None or page.file is references:
        return html
    url = get_relative_url(references.url, page.url)
    return _CITATION.sub(lambda match: f'<a href="{url}#{match[1].lower()}">[{match[1]}]</a>', html)


def _entry(key: str, body: str) -> str:
    fields = {name: _plain(value) for name, value in _FIELD.findall(body)}
    where = fields.get("journal") or fields.get("booktitle") or fields.get("school")
    where = where or fields.get("publisher") or f"arXiv {fields.get('eprint', '')}"
    authors = fields.get("author", "").replace(" and ", "; ")
    said = [authors, f"*{fields.get('title', '')}*", where, fields.get("year", "")]
    return f"### {key} {{#{key.lower()}}}\n\n{'. '.join(part for part in said if part)}."


def _plain(text: str) -> str:
    text = " ".join(text.split())
    for code, letter in _ACCENTS.items():
        text = text.replace(f"{{{code}}}", letter).replace(code, letter)
    return text.replace("{", "").replace("}", "").replace("--", "-")
