"""Escaping of text from a storage or a program, before a terminal or a page shows it."""

from __future__ import annotations

import html
import json
import math
from typing import Any


class ShownInNotebooks:
    """Object that a notebook shows by its ``str``."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class ShownAsText(ShownInNotebooks):
    """Result that shows itself by its ``str`` everywhere: its fields would be a wall."""

    def __repr__(self) -> str:
        return str(self)


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


def written(value: float | None, sd: float) -> str:
    """Format a value to six digits, or to as many more as its standard deviation tells apart."""
    if value is None:
        return "unknown"
    texts = [f"{value:.{digits}g}" for digits in range(6, 16)]
    enough = (t for t in texts if not 0.0 < sd < math.inf or abs(float(t) - value) <= 0.1 * sd)
    return next(enough, texts[0])


def probability(of: float) -> str:
    """Format a probability, rounded down: only what is certain is 1."""
    return f"{math.floor(100.0 * of + 1e-9) / 100.0:.2f}"


def at_least(of: float) -> str:
    """Format the least of several probabilities."""
    return text if (text := probability(of)) == "1.00" else f"{text} or more"


def is_json_object(text: str | bytes) -> bool:
    """Return True for a text that is JSON with keys."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def to_json(value: Any, indent: int | None = None) -> str:
    """Format as strict JSON: nan and infinities, which it does not have, are text for float()."""
    return json.dumps(_sayable(value), indent=indent, default=str, allow_nan=False)


def _sayable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
