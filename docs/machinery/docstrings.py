"""Docstrings, as Python programmers write them, as Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":\w+:`(~?)([\w.]+)`")
_CITATION = re.compile(r"\[([A-Z]\w*\d{4}[a-z]?)\]_?")


class Markdown(griffe.Extension):
    """Names in roles become code; citations stay as they are, and are no links of Markdown.

    Parameters that are described together, as in "low, high:", have each its own type and default:
    the parser gives all of them those of the first.
    """

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Correct the parameters of all functions and classes."""
        _correct(pkg)


def _correct(obj: griffe.Object) -> None:
    for member in obj.members.values():
        if isinstance(member, griffe.Object):
            _correct(member)
    own = getattr(obj, "parameters", None)
    if obj.docstring is None or own is None:
        return
    sections = griffe.parse_numpy(obj.docstring)
    for section in sections:
        if section.kind is griffe.DocstringSectionKind.parameters:
            for parameter in section.value:
                name = parameter.name.lstrip("*")
                if name in own:
                    parameter.annotation, parameter.value = own[name].annotation, own[name].default
    obj.docstring.__dict__["parsed"] = sections


def markdown(docstring: str) -> str:
    """Return a docstring without what Markdown does not know."""
    return _CITATION.sub(r"\\[\1\\]", _ROLE.sub(_code, docstring))


def _code(match: re.Match[str]) -> str:
    short, target = match.groups()
    shown = target.rpartition(".")[2] if short else target
    return f"`{shown}`"
