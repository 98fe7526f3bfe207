"""Docstrings, as Python programmers write them, as Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":\w+:`(~?)([\w.]+)`")
_CITATION = re.compile(r"\[([A-Z]\w*\d{4}[a-z]?)\]_?")


class Markdown(griffe.Extension):
    """Names in roles become code; citations stay as they are, and are no links of Markdown."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(docstring: str) -> str:
    """Return a docstring without what Markdown does not know."""
    return _CITATION.sub(r"\\[\1\\]", _ROLE.sub(_code, docstring))


def _code(match: re.Match[str]) -> str:
    short, target = match.groups()
    shown = target.rpartition(".")[2] if short else target
    return f"`{shown}`"
