"""Texts of others, such as a storage or a program, as a terminal or a page may show them."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""The text in one line, with whatever is no letter, sign or space escaped as in Python.

    A terminal obeys escape sequences, a newline forges a line, marks of direction turn what is read
    around, and half of a surrogate pair cannot be written at all: ``\x1b``, ``\n``, ``\u202e`` and
    ``\ud800`` say what is there.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in str(text)
    )
