"""Output of commands: notes, tables, pictures."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stoic.printable import printable
from stoic.refusal import RefusalError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stoic.tuning.views.records import Record


def note(text: str) -> None:
    """Print a note to standard error, beside the output."""
    print(printable(text), file=sys.stderr)


def print_records(records: Sequence[Record] | Record, form: str, flatten: bool = False) -> None:
    """Print records in one of the formats; CSV in a file is in UTF-8, as it is read."""
    from stoic.tuning.views.records import render

    text = render(records, form, flatten)
    if form == "csv" and isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")
    print(text)


def check_format(form: str) -> None:
    """Refuse an unknown format of records."""
    from stoic.tuning.views.records import FORMATS

    if form not in FORMATS:
        raise RefusalError(f"format must be {', '.join(FORMATS)}, got {form!r}.")


def write_picture(path: Path | None, draw: Callable[[], Figure]) -> None:
    """Draw a picture into a file, if one is given."""
    from stoic.tuning.views.pictures import write_picture

    if path is not None:
        write_picture(draw(), path)
        note(f"Wrote {path}.")


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
    grid = Table(*headings, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        grid.add_row(*map(Text, row))  # brackets in a Text are no markup
    console.print(grid)
