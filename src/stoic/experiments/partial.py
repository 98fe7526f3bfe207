"""Runs of a figure, kept as they come, so that an interrupted command goes on from them.

The file is text, a JSON value a line: what decides the results, and then each finished cell.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from inspect import getsourcefile
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

from stoic.experiments.figure import Cell, Figure
from stoic.refusal import RefusalError

_STOIC = Path(__file__).parents[1]


class Partial:
    """Finished cells of one figure, in a file that is removed once the results are written.

    Runs of other settings or of other code are set aside, with a sentence on standard error.

    Parameters
    ----------
    path:
        Path of the file, made with its directory when the first cell is finished.
    figure, settings:
        Figure and its settings.
    """

    def __init__(self, path: Path, figure: Figure[Any, Any], settings: Any) -> None:
        self.path = path
        self._row = _row(figure)
        if self._row is None:
            print(
                f"{figure.name}: no run is kept before the last one; annotate its function "
                "`run` with `-> list[Row]`, and they are.",
                file=sys.stderr,
            )
        plain = json.dumps(dataclasses.asdict(settings), default=str)  # a path as its text
        self._head = {
            "figure": figure.name,
            "settings": json.loads(plain),
            "version": version("stoic"),
            "code": _code(figure),
        }
        self._cells = self._read()

    def __len__(self) -> int:
        return len(self._cells)

    def find(self, cell: Cell) -> list[Any] | None:
        """Rows of a finished cell; None of another one."""
        return self._cells.get(cell)

    def keep(self, cell: Cell, rows: list[Any]) -> list[Any]:
        """Append a finished cell; return its rows as they will be read."""
        if self._row is None:
            return rows
        try:
            line = json.dumps([cell, rows], default=plain)
        except TypeError as error:
            raise RefusalError(
                f"A row holds numbers, texts, True, False and None, so that it can be kept: {error}"
            ) from error
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Without a cell the file holds a head at most: begin anew
            with self.path.open("a" if self._cells else "w", encoding="utf-8") as file:
                file.writelines([] if self._cells else [json.dumps(self._head) + "\n"])
                file.write(line + "\n")
        except OSError as error:
            raise RefusalError(
                f"Cannot write to {self.path.parent}: {error.strerror}; choose another --out."
            ) from error
        # Through JSON, as after an interruption: both ways give the same rows
        self._cells[cell] = [self._row(*row) for row in json.loads(line)[1]]
        return self._cells[cell]

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> dict[Cell, list[Any]]:
        row = self._row
        if row is None or not self.path.is_file():
            return {}
        text = self.path.read_bytes()
        # A process that was killed may leave half a line, behind which nothing can be appended.
        if half := len(text) - text.rfind(b"\n") - 1:
            os.truncate(self.path, len(text) - half)
        head, *lines = text[: len(text) - half].splitlines() or [b""]
        stored = _loaded(head)
        if json.dumps(stored) != json.dumps(self._head):  # nan is nan in a text
            aside = self.path.with_suffix(".old.jsonl")
            self.path.replace(aside)
            print(f"{aside} has runs of {self._others(stored)}: not used.", file=sys.stderr)
            return {}
        found = [value for line in lines if (value := _loaded(line)) is not None]
        return {Cell(*cell): [row(*values) for values in rows] for cell, rows in found}

    def _others(self, stored: Any) -> str:
        same = isinstance(stored, dict) and all(
            json.dumps(stored.get(key)) == json.dumps(self._head[key])
            for key in ("figure", "settings")
        )
        return "other code" if same else "other settings"


def _row(figure: Figure[Any, Any]) -> Callable[..., Any] | None:
    """Type of the rows, as ``run`` is annotated: ``list[Row]``."""
    # No annotation, another one than list[...], or names known to type checkers alone
    with suppress(KeyError, IndexError, NameError, TypeError):
        row: Callable[..., Any] = get_args(get_type_hints(figure.run)["return"])[0]
        return row
    return None


def _code(figure: Figure[Any, Any]) -> str:
    """Digest of the source of stoic, of the file that ``run`` is in and of what it imports there.

    What is imported beside that file, or below, counts if it has been imported by now.
    """
    files = sorted(_STOIC.rglob("*.py"))  # in an order that no file system decides
    with suppress(TypeError):  # of an object that is called like a function
        source = Path(getsourcefile(figure.run) or __file__).resolve()
        files += [source, *([] if source in files else _beside(source))]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _beside(source: Path) -> list[Path]:
    """Files of the imported modules in the folder of a file, or below, but for installed ones.

    Nor those of stoic: which of these are imported by now may differ from run to run.
    """
    modules = [module for module in sys.modules.values() if isinstance(module, ModuleType)]
    return sorted(
        path
        for path in {Path(vars(module).get("__file__") or "") for module in modules}
        if path.suffix == ".py"
        and source.parent in path.parents
        and "site-packages" not in path.parts
        and _STOIC not in path.parents
    )


def _loaded(line: bytes) -> Any:
    """Value of a line; None of a broken one."""
    with suppress(ValueError):
        return json.loads(line)
    return None


def plain(value: Any) -> Any:
    """Convert a scalar of NumPy, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"got {value!r}.")
