"""The tutorial as an executed notebook, made from its page: part of ``make pictures``.

Needs what ``pip install --group pictures`` installs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n\n?", re.MULTILINE | re.DOTALL)


def cells(page: str) -> list[nbformat.NotebookNode]:
    """Make a cell of every block of Python and of the text between them.

    Pictures are left out: the code above them draws them again.
    """
    made = []
    for k, part in enumerate(_BLOCK.split(page)):  # text and code by turns
        part = part if k % 2 else _PICTURE.sub("", part)
        if part.strip():
            new = nbformat.v4.new_code_cell if k % 2 else nbformat.v4.new_markdown_cell
            made.append(new(part.strip(), id=f"cell-{len(made)}"))
    return made


def executed(page: Path, where: Path) -> str:
    """Run the Python of a page in the directory ``where``; return the notebook, with its output."""
    notebook = nbformat.v4.new_notebook(cells=cells(page.read_text(encoding="utf-8")))
    notebook.metadata["kernelspec"] = {
        "name": "python3", "display_name": "Python 3", "language": "python"
    }  # fmt: skip
    place = {"metadata": {"path": str(where)}}
    client = NotebookClient(notebook, timeout=600, record_timing=False, resources=place)
    # Without what other libraries say about this machine, with its paths.
    client.execute(env={**os.environ, "PYTHONWARNINGS": "ignore"})
    notebook.metadata.pop("language_info")  # the version of the Python that ran it
    return nbformat.writes(notebook) + "\n"
