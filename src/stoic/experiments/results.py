"""Results on disk: a picture, the raw rows, and the settings with the claims.

Results are never overwritten by results of other settings, and never half-written.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoic.experiments.figure import Claim, Figure, Table
from stoic.experiments.partial import plain
from stoic.refusal import RefusalError


@dataclass(frozen=True, slots=True)
class Results:
    """Results of a figure.

    Attributes
    ----------
    figure:
        Its name.
    settings:
        Settings that decided the results, as plain values.
    claims:
        Checked claims.
    table:
        Summary of the numbers.
    digests:
        Of each cell's rows, by which a repetition is compared to the last digit.
    png, csv, json:
        Paths of the written files.
    """

    figure: str
    settings: dict[str, Any]
    claims: tuple[Claim, ...]
    table: Table
    digests: tuple[str, ...]
    png: Path
    csv: Path
    json: Path

    def summary(self) -> dict[str, Any]:
        """``{"figure", "settings", "claims", "cells"}``: the content of the JSON file."""
        return _summary(self.figure, self.settings, self.claims, self.digests)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Paths of the files of one figure.

    Attributes
    ----------
    directory:
        Directory, made when needed.
    stem:
        Name of the files without their endings.
    """

    directory: Path
    stem: str

    @property
    def png(self) -> Path:
        return self.directory / f"{self.stem}.png"

    @property
    def csv(self) -> Path:
        return self.directory / f"{self.stem}.csv"

    @property
    def json(self) -> Path:
        return self.directory / f"{self.stem}.json"

    @property
    def partial(self) -> Path:
        return self.directory / f"{self.stem}.partial.jsonl"

    def check_free(self, settings: dict[str, Any]) -> None:
        """Refuse if there are results of other, or unknown, settings."""
        if self.directory.exists() and not self.directory.is_dir():
            raise RefusalError(f"{self.directory} is not a directory: choose another --out.")
        if not self.json.exists():
            if self.png.exists() or self.csv.exists():
                present = self.png if self.png.exists() else self.csv
                raise RefusalError(
                    f"{present} is there without {self.json.name}, so its settings are unknown: "
                    "choose another --out, or remove it."
                )
            return
        try:
            stored = json.loads(self.json.read_text(encoding="utf-8"))["settings"]
            differences = _differences(stored, settings)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RefusalError(
                f"{self.json} holds no settings that can be read: choose another --out, or remove "
                "it."
            ) from None
        if differences:
            raise RefusalError(
                f"{self.json} was made with other settings ({', '.join(differences)}): choose "
                "another --out, or remove it."
            )

    def like(self, settings: Any) -> Any:
        """Return settings with the numbers and names of the results that are here, if any are.

        Names of methods are among them: what was installed where the results were made.
        """
        try:
            stored = json.loads(self.json.read_text(encoding="utf-8"))["settings"]
            said = {field.name: stored.get(field.name) for field in dataclasses.fields(settings)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return settings  # without results that can be read, which is said where they are used
        known: dict[str, Any] = {}
        for name, value in said.items():
            now = getattr(settings, name)
            listed = isinstance(value, list) and isinstance(now, tuple)
            if isinstance(value, int | float) and isinstance(now, int | float):
                known[name] = value
            elif listed and all(isinstance(each, str) for each in (*value, *now)):
                known[name] = tuple(value)
        return dataclasses.replace(settings, **known)

    def make_directory(self) -> None:
        """Make the directory; refuse, in a sentence, one that cannot be made."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RefusalError(
                f"Cannot write to {self.directory}: {error.strerror}; choose another --out."
            ) from error

    def digests(self, settings: dict[str, Any]) -> list[str]:
        """Digests of the cells of the results that are here; refuse those of other settings."""
        if not self.json.exists():
            raise RefusalError(f"There are no results to check: {self.json} is not there.")
        self.check_free(settings)
        text = json.loads(self.json.read_text(encoding="utf-8")).get("cells")
        if not isinstance(text, str):
            raise RefusalError(
                f"{self.json} has no digests of its runs: make the figure again to check it."
            )
        return text.split()

    def write(
        self, figure: Figure[Any, Any], settings: Any, parts: Sequence[Sequence[Any]]
    ) -> Results:
        """Write the three files; the JSON file last, as it marks the others as complete.

        ``parts`` has the rows of each cell.
        """
        rows = [row for part in parts for row in part]
        digests = tuple(map(digest, parts))
        said = plain_settings(settings)
        # Again: another command may have written here while this one ran
        self.check_free(said)
        # Both before the first file is written: what fails here leaves no new file
        claims = figure.judge(settings, rows)
        picture = figure.plot(settings, rows)
        self.make_directory()
        _replace(self.csv, lambda path: _write_rows(path, rows))
        # No program name and version inside: the same results are the same bytes.
        metadata = {"Software": None}
        _replace(self.png, lambda path: picture.savefig(path, dpi=150, metadata=metadata))
        text = to_json(_summary(figure.name, said, claims, digests)) + "\n"
        _replace(self.json, lambda path: path.write_text(text, encoding="utf-8"))
        table = figure.table(settings, rows)
        return Results(figure.name, said, claims, table, digests, self.png, self.csv, self.json)


def digest(rows: Sequence[Any]) -> str:
    """Four hexadecimal digits that other rows have by chance only once in 65,536 times."""
    text = json.dumps(rows, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:4]


def plain_settings(settings: Any) -> dict[str, Any]:
    """Convert a settings dataclass to its values as read back from JSON."""
    plain: dict[str, Any] = json.loads(to_json(dataclasses.asdict(settings)))
    return plain


def to_json(value: Any) -> str:
    """JSON text; nan and infinities, which JSON cannot say, become null.

    A path becomes the name of its file: its directory is no part of the results.
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _summary(
    name: str, settings: dict[str, Any], claims: Sequence[Claim], digests: Sequence[str]
) -> dict[str, Any]:
    return {
        "figure": name,
        "settings": settings,
        "claims": [
            {
                "claim": claim.claim,
                "source": claim.source,
                "holds": claim.holds,
                "measured": dict(claim.measured),
            }
            for claim in claims
        ],
        "cells": " ".join(digests),
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.name if isinstance(value, Path) else value


def _differences(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    names = [*wanted, *(name for name in stored if name not in wanted)]
    return [
        f"{name}: {_brief(stored.get(name))}, not {_brief(wanted.get(name))}"
        for name in names
        if stored.get(name) != wanted.get(name)
    ]


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _write_rows(path: Path, rows: Sequence[Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0]._fields)
        # 1 and 0, which every reader of CSV takes for numbers
        writer.writerows([int(v) if isinstance(v, bool) else v for v in row] for row in rows)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside ``path``, then put it in place in one step."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        os.umask(mask := os.umask(0))  # it can only be read by being set
        temporary.chmod(0o666 & ~mask)  # ``mkstemp`` lets nobody else read it
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
