"""Escaping of text from a storage or a program, before a terminal or a page shows it."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""Escape all unprintable characters as in Python, so that the text is one line.

    A terminal obeys escape sequences, a newline forges a line, marks of direction reverse the text,
    and half of a surrogate pair cannot be written at all: they become ``\x1b``, ``\n``, ``\u202e``
    and ``\ud800``.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in str(text)
    )
