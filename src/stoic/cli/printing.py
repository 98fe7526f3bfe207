"""Output of commands: notes, tables, JSON."""

from __future__ import annotations

import sys

from stoic.printable import printable
from stoic.refusal import RefusalError


def note(text: str) -> None:
    """Print a note to standard error, beside the output."""
    print(printable(text), file=sys.stderr)


def check_format(form: str) -> None:
    """Refuse an unknown format of records."""
    from stoic.tuning.views.records import FORMATS

    if form not in FORMATS:
        raise RefusalError(f"format must be {', '.join(FORMATS)}, got {form!r}.")


def print_table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table that fits the terminal; elsewhere plain columns, nothing cut."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
        return
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        grid.add_column(heading)
    for row in rows:
        grid.add_row(*map(Text, row))  # brackets in a Text are no markup
    console.print(grid)
