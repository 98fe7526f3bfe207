"""Search spaces from texts: ``float(1e-5, 1e-1, log)``, ``int(1, 10)``, ``choice(a, b)``."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    json_to_distribution,
)

from stoic.integrations.optuna.encoding import check_fixed, literal
from stoic.refusal import RefusalError

Space = dict[str, BaseDistribution]

FORMS = "float(low, high[, log | step=s]), int(low, high[, log | step=s]) or choice(a, b, ...)"

_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SCALE = re.compile("q?log.*|q?uniform|linear")  # the third of a range of other libraries
_ITEM = re.compile(r"""\s*("[^"]*"|'[^']*'|[^,"']*)\s*(?:,|$)""")


def parse_space(entries: Mapping[str, object], in_python: bool = False) -> Space:
    """Parse a whole search space: name of a parameter -> its range.

    A range is a text in one of the ``FORMS``, a list of choices, or an Optuna distribution, which
    is used as it is. ``in_python`` names are any texts, and choices are literals of Python: no
    program has to get them as they were written.
    """
    if not entries:
        raise RefusalError("There is nothing to tune: give at least one parameter.")
    if not isinstance(entries, Mapping):
        raise RefusalError(f"A search space is a dict from names to ranges, got {entries!r}.")
    return {
        check_name(name, in_python): parse_range(name, entry, in_python)
        for name, entry in entries.items()
    }


def parse_assignments(texts: Sequence[str]) -> Space:
    """Parse the ``NAME=RANGE`` of the command line."""
    space: Space = {}
    for text in texts:
        name, equals, written = text.partition("=")
        name = name.strip()
        if not equals:
            raise RefusalError(f"--param {text!r} is not NAME=RANGE, with RANGE one of {FORMS}.")
        if name in space:
            raise RefusalError(f"The parameter {name!r} is given twice.")
        space[check_name(name)] = parse_range(name, written)
    return space


def parse_named(texts: Sequence[str]) -> dict[str, str]:
    """Parse several ``NAME=VALUE`` of the command line."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise RefusalError(f"{text!r} is not NAME=VALUE.")
        if name in found:
            raise RefusalError(f"A value of {name!r} is given twice.")
        found[name] = value
    return found


def read_number(what: str, text: str) -> float:
    """Read a number from a text; a refusal begins with ``what`` it is."""
    try:
        return float(text)
    except ValueError as error:
        raise RefusalError(f"{what} must be a number, got {text!r}.") from error


def parse_as(distribution: BaseDistribution | None, text: str) -> Any:
    """Parse a value as the parameter's own type, if it can be read as one."""
    if isinstance(distribution, CategoricalDistribution):
        choices, value = distribution.choices, literal(text)
        if isinstance(value, str) and value in choices:  # in quotes the text, beside None
            return value
        same = [c for c in choices if text == str(c) or text == json.dumps(c, default=str)]
        if not same and not isinstance(value, str):
            # Another spelling of a number, or of true; 1 is not true
            meant = [literal(str(choice)) for choice in choices]
            pairs = zip(choices, meant, strict=True)
            same = [c for c, each in pairs if type(each) is type(value) and each == value]
        # Of None and the text None the former: the other one is that in quotes
        same = [choice for choice in same if not isinstance(choice, str)] or same
        return same[0] if len(same) == 1 else text
    # 2.5 for an integer stays 2.5, and is refused with the range by whoever checks it
    for read in (float,) if isinstance(distribution, FloatDistribution) else (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def parse_fixed(texts: Sequence[str], space: Space) -> dict[str, Any]:
    """Parse the ``NAME=VALUE`` that fix parameters."""
    fixed = {name: parse_as(space.get(name), text) for name, text in parse_named(texts).items()}
    check_fixed(fixed, space, "the study has")
    return fixed


def parse_json(text: str) -> Space:
    """Parse a search space from a JSON object; a range may also be Optuna's JSON for it."""
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise RefusalError(f"The search space is not JSON: {error}.") from error
    if not isinstance(entries, dict):
        raise RefusalError("The search space must be a JSON object: {NAME: RANGE, ...}.")
    for name, entry in entries.items():
        if isinstance(entry, dict):
            try:
                entries[name] = json_to_distribution(json.dumps(entry))
            except (ValueError, KeyError, TypeError) as error:
                raise RefusalError(
                    f"The search space has a distribution that Optuna refuses: {error}."
                ) from error
    return parse_space(entries)


def check_name(name: object, in_python: bool = False) -> str:
    """Return ``name`` if it is valid for a parameter."""
    if in_python and isinstance(name, str) and name.strip() and "=" not in name:
        return name
    if in_python:
        raise RefusalError(f"A name of a parameter is a text without '=', got {name!r}.")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise RefusalError(
            f"{name!r} cannot name a parameter: use the letters a to z and A to Z, digits, '_', "
            "'.' and '-', beginning with a letter or '_'."
        )
    return name


def parse_range(name: str, entry: object, in_python: bool = False) -> BaseDistribution:
    """Parse the range of the parameter ``name``; see ``parse_space``."""
    if isinstance(entry, BaseDistribution):
        return entry
    try:
        return _range(entry, literal if in_python else _constant)
    except RefusalError as refusal:
        raise RefusalError(f"{name}: {refusal}") from None


def _range(entry: object, read: Callable[[str], Any]) -> BaseDistribution:
    if isinstance(entry, str) and entry.lstrip().startswith("["):
        with contextlib.suppress(ValueError):
            entry = json.loads(entry)
    if isinstance(entry, list | tuple):
        entry = [each.item() if isinstance(each, np.generic) else each for each in entry]
        _refuse_bounds(entry)
        return _choice(list(entry))
    call = _CALL.fullmatch(entry) if isinstance(entry, str) else None
    if call is None or call[1] not in ("float", "int", "choice"):
        raise RefusalError(f"{entry!r} is not a range; write {FORMS}.")
    items = _split(call[0], call[2])
    return _choice(list(map(read, items))) if call[1] == "choice" else _number(call, items)


def _refuse_bounds(entry: Sequence[Any]) -> None:
    """Refuse a pair of numbers, alone or before a word, which other libraries take for a range."""
    pair = [item for item in entry[:2] if isinstance(item, int | float)]
    pair = [item for item in pair if not isinstance(item, bool)]
    scales = [item for item in entry[2:] if isinstance(item, str) and _SCALE.fullmatch(item)]
    if len(pair) < 2 or len(entry) > 3 or len(scales) < len(entry) - 2:
        return
    kind = "int" if all(isinstance(item, int) for item in pair) else "float"
    low, high = pair
    log = ", log" * any("log" in item for item in scales)
    raise RefusalError(
        f"{entry!r} may be a range or a choice: for a range write "
        f"'{kind}({low}, {high}{log})', for a choice 'choice({low}, {high})'."
    )


def _split(entry: str, inside: str) -> list[str]:
    items: list[str] = []
    position = 0
    while position < len(inside):
        item = _ITEM.match(inside, position)
        if item is None:
            raise RefusalError(f"cannot read {entry!r} after {inside[:position]!r}.")
        items.append(item[1].strip())
        position = item.end()
    if not all(items) or inside.rstrip().endswith(","):
        raise RefusalError(f"{entry!r} has an empty item between its commas.")
    return items


def _number(call: re.Match[str], items: Sequence[str]) -> BaseDistribution:
    entry, is_int = call[0], call[1] == "int"
    ends = [item for item in items if item != "log" and "=" not in item]
    if len(ends) != 2:
        raise RefusalError(f"{entry!r} needs a low and a high; write {FORMS}.")
    log, step = False, None
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if key == "log" and (not equals or value.lower() in ("true", "false")):
            log = value.lower() != "false"
        elif key == "step":
            step = value
        elif equals:
            raise RefusalError(f"{entry!r} has an unknown option {key!r}; it may be log, step.")
    entry, read = entry.strip(), _int if is_int else _float
    low, high = (read(entry, end) for end in ends)
    if not low < high:
        raise RefusalError(f"the range {entry} is empty: low must be below high.")
    if not math.isfinite(high - low):
        raise RefusalError(f"the range {entry} is too wide: high - low must be finite.")
    if log and low <= 0:
        raise RefusalError(f"{entry} is logarithmic, so low must be above 0.")
    kind: Callable[..., BaseDistribution] = IntDistribution if is_int else FloatDistribution
    if step is None:
        return kind(low, high, log=log)
    width = read(entry, step)
    if log:
        raise RefusalError(f"{entry} has both log and step; choose one.")
    if not 0 < width <= high - low:
        raise RefusalError(f"the step of {entry} must be above 0 and at most high - low.")
    # In floats, 0.3 / 0.1 is less than 3
    count = math.floor((high - low) / width * (1 + 1e-12) + 1e-9)
    last = low + count * width
    if not math.isclose(last, high, rel_tol=1e-9, abs_tol=1e-9 * width):
        raise RefusalError(
            f"the step of {entry} does not divide the range; "
            f"the last value would be {last:.12g}: write that as high."
        )
    return kind(low, high, step=width)


def _int(entry: str, text: str) -> int:
    # More digits than a float holds: the width of the range would be an OverflowError
    if not re.fullmatch(r"[+-]?\d{1,300}", text):
        raise RefusalError(f"{text!r} in {entry} is not a whole number of at most 300 digits.")
    return int(text)


def _float(entry: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise RefusalError(f"{text!r} in {entry} is not a finite number.")
    return number


def _constant(text: str) -> str | int | float | None:
    """Parse a choice: a number only if it would be written back exactly so, else the text."""
    value = literal(text)
    exact = isinstance(value, int | float) and str(value) == text
    quoted = text[:1] in ("'", '"')
    return value if quoted or (exact and not isinstance(value, bool)) else text


def _choice(choices: list[Any]) -> CategoricalDistribution:
    for choice in choices:
        if not isinstance(choice, str | int | float | None):
            raise RefusalError(f"a choice is a text, a number, true/false or None, not {choice!r}.")
    # 1 and "1" are the same argument of a program, and 1 and 1.0 the same choice of Optuna
    if min(len({str(choice) for choice in choices}), len(set(choices))) < len(choices):
        raise RefusalError(f"a choice is given twice in {choices}.")
    if len(choices) < 2:
        raise RefusalError(f"choice needs at least two values, got {choices}.")
    return CategoricalDistribution(choices)
