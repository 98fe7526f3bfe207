"""Rules that read the value of a trial from the output of a program."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stoic.data import FAILURES, IS_NAN, FailureKind
from stoic.integrations.reported import finite
from stoic.printable import is_json_object
from stoic.refusal import RefusalError

FORMS = "last-line, regex:PATTERN (group 1 of the last match) or json:KEY (of the last JSON line)"

_NUMBER = re.compile(
    r"[+-]?((\d+(\.\d*)?|\.\d+)([ed][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE | re.ASCII
)  # with D for the exponent, as Fortran writes it
_WITH_UNIT = re.compile(
    rf"(?=[+-]?\.?\d){_NUMBER.pattern}\s*(?P<unit>%|[^\W\d_]{{1,12}})", re.IGNORECASE
)
_WITH_COMMA = re.compile(
    r"[+-]?(\d+,\d+(e[+-]?\d+)?|\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})+,\d*)",
    re.IGNORECASE | re.ASCII,
)
_COMMA = "a number with a comma: the decimal mark is a point"
_EXPONENT = re.compile(r"[de][+-]?\d+(?![\w.])", re.IGNORECASE | re.ASCII)
# Right before a match: digits, or a sign that is no hyphen
_BEGUN = re.compile(r"(?:(?<![\w.)\]])[+-][\d.]*|[\d.]+)$", re.ASCII)
_NAMED = re.compile(rf"(\w[\w ]*[:=])\s*{_NUMBER.pattern}", re.IGNORECASE | re.ASCII)


class NoValueError(ValueError):
    """Error for output that holds no number where the rule expects one.

    Attributes
    ----------
    reason:
        The message, the same for all outputs with this defect.
    found:
        Text that is there instead, in short; empty if there is none.
    """

    def __init__(self, reason: str, found: str = "") -> None:
        super().__init__(reason)
        self.found = found


class NotANumberError(NoValueError):
    """Error for a number that is nan."""


@dataclass(frozen=True)
class Reading:
    """Rule that reads a number from text.

    Attributes
    ----------
    written:
        The rule as the user wrote it, one of ``FORMS``.
    find:
        Text -> the number, possibly infinite, never nan; raises ``NoValueError``.
    """

    written: str
    find: Callable[[str], float]

    @classmethod
    def parse(cls, written: str) -> Reading:
        """Parse a rule."""
        kind, _, rule = written.partition(":")
        if written == "last-line":
            return cls(written, _from_last_line)
        if kind == "regex":
            try:
                pattern = re.compile(rule, re.MULTILINE)
            except re.error as error:
                raise RefusalError(f"The regular expression {rule!r} is wrong: {error}.") from error
            if pattern.groups < 1:
                raise RefusalError(
                    f"The regular expression {rule!r} has no group: put parentheses around the "
                    "number, as in 'loss=(.*)'."
                )
            # $ is the end of a line, also of a program that ends them as Windows does
            return cls(written, lambda text: _from_pattern(pattern, text.replace("\r\n", "\n")))
        if kind == "json":
            keys = rule.split(".")
            if not all(keys):
                raise RefusalError(
                    f"{written!r} names no JSON key: write json:KEY or json:KEY.KEY."
                )
            return cls(written, lambda text: _from_json(keys, text))
        raise RefusalError(f"Cannot read a value from {written!r}: write {FORMS}.")

    @classmethod
    def of_output(cls, output: str) -> Reading:
        """Parse an output: a key of JSON, or ``regex:PATTERN``."""
        return cls.parse(output if output.startswith("regex:") else f"json:{output}")

    @classmethod
    def of_lines(cls, written: str) -> Reading:
        """Parse a rule that finds a number in some lines of the output, each by itself."""
        if written == "last-line":
            raise RefusalError(
                "Intermediate values are in lines of their own: write regex:PATTERN or json:KEY, "
                "got 'last-line'."
            )
        return cls.parse(written)


@dataclass(frozen=True)
class Beside:
    """Report of a program beside the value, as keys of its last line of JSON.

    A key that holds anything else is ignored, but for a ``"standard_error"``.

    Attributes
    ----------
    failed:
        The kind of failure, ``"failed": KIND``; there is no value then.
    executed:
        Name of a parameter -> what was run, ``"executed": {NAME: VALUE, ...}``.
    standard_error:
        What it says is that of the value, or those of several; None if nothing.
    censored:
        ``"censored": true`` if the value is a bound, at least as bad as which it would have become;
        a number is the bound of a run without a value.
    """

    failed: FailureKind | None = None
    executed: Mapping[str, Any] | None = None
    standard_error: object = None
    censored: bool | float = False

    @classmethod
    def find(cls, text: str) -> Beside:
        """Parse the report in a text."""
        try:
            found = _last_json(text)
        except NoValueError:
            return cls()
        if not isinstance(found, dict):
            return cls()
        kind, run, bound = (found.get(key) for key in ("failed", "executed", "censored"))
        return cls(
            failed=next((known for known in FAILURES if kind == known), None),
            executed=run if isinstance(run, dict) and run else None,
            standard_error=found.get("standard_error"),
            censored=True if bound is True else False if (n := finite(bound)) is None else n,
        )


def _from_last_line(text: str) -> float:
    lines = text.rstrip().splitlines()
    if not lines:
        raise NoValueError("no value: the program printed nothing to standard output")
    last, hint = lines[-1].strip(), None
    if _NUMBER.fullmatch(last):
        return _number(last, "the last line")
    if is_json_object(last):
        hint = "JSON, add --value json:KEY"
    elif with_unit := _WITH_UNIT.fullmatch(last):
        kind, group = _without(with_unit["unit"])
        hint = f"{kind}, add --value 'regex:{group}'"
    elif _WITH_COMMA.fullmatch(last):
        hint = _COMMA
    elif named := _NAMED.fullmatch(last):
        hint = f"no number, add --value 'regex:{named[1]}\\s*(\\S+)'"
    if hint is not None:
        raise NoValueError(f"no value: the last line is {hint}", _brief(last))
    return _number(last, "the last line")


def _from_pattern(pattern: re.Pattern[str], text: str) -> float:
    matches = list(pattern.finditer(text))
    last = matches[-1] if matches else None
    if last is None or last[1] is None:
        raise NoValueError(f"no value: nothing matches {pattern.pattern!r}")
    place, found = f"what {pattern.pattern!r} matches", last[1].strip()
    # A pattern that says what follows the number means it
    open_ended = last.end() == last.end(1) and not re.search("[a-z]", found, re.IGNORECASE)
    if open_ended and _NUMBER.fullmatch(found) and (rest := _EXPONENT.match(text, last.end(1))):
        raise NoValueError(
            f"no value: {place} ends before the exponent, let the group be (\\S+)",
            _brief(found + rest[0]),
        )
    begun = _BEGUN.search(text, 0, last.start(1)) if last.start() == last.start(1) else None
    if begun and _NUMBER.fullmatch(begun[0] + found):
        raise NoValueError(
            f"no value: {place} is the end of a number, let the group be (\\S+)",
            _brief(begun[0] + found),
        )
    if len(matches) > 1 and text[matches[-2].end() : last.start(1)] == ",":
        raise NoValueError(
            f"no value: {place} may lack its thousands, print no commas, or begin the pattern "
            "with ','",
            _brief(matches[-2][0] + "," + found),
        )
    if _WITH_COMMA.fullmatch(found):
        raise NoValueError(f"no value: {place} is {_COMMA}", _brief(found))
    # Not the letter of an exponent that the pattern leaves out
    if (unit := _WITH_UNIT.fullmatch(found)) and unit["unit"].lower() not in ("e", "d"):
        kind, group = _without(unit["unit"])
        hint = f"{kind}, let the group be the number, as {group}"
        raise NoValueError(f"no value: {place} is {hint}", _brief(found))
    return _number(found, place)


def _without(unit: str) -> tuple[str, str]:
    """Say what a number with a unit is, and the pattern that reads it."""
    return "a percentage" if unit == "%" else f"a number of {unit}", rf"(\S+?)\s*{unit}"


def _last_json(text: str) -> Any:
    for line in reversed(text.splitlines()):
        # A bare number is JSON, too, and no report
        if line.lstrip()[:1] not in ("{", "["):
            continue
        try:
            # An integer may have more digits than int() reads, or a float holds
            return json.loads(line, parse_int=float)
        except (ValueError, RecursionError):
            continue
    raise NoValueError("no value: no line of the output is JSON")


def _from_json(keys: list[str], text: str) -> float:
    found = _last_json(text)
    for depth, key in enumerate(keys):
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            there = f", it has {_brief(', '.join(found))}" if isinstance(found, dict) else ""
            missing = ".".join(keys[: depth + 1])
            raise NoValueError(f"no value: the JSON has no key {missing}{there}")
    if not isinstance(found, float):
        raise NoValueError(f"no value: {'.'.join(keys)} is no number", _brief(json.dumps(found)))
    return _not_nan(found)


def _number(text: str, place: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise NoValueError(f"no value: {place} is no number", _brief(text))
    return _not_nan(float(text.lower().replace("d", "e")))


def _not_nan(number: float) -> float:
    if math.isnan(number):
        raise NotANumberError(IS_NAN)
    return number


def _brief(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
