"""Kinds of failure, as objectives and programs report them."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence

from stoic.data import FAILURES, FailureKind
from stoic.refusal import RefusalError

_KINDS = ", ".join(FAILURES)
_ENDINGS = "exit 3, exit, signal SIGKILL, signal, timeout or nan"


class Failed(Exception):  # noqa: N818 - an objective reports it, it is no error of ours
    """Exception by which an objective reports why there is no value.

    Parameters
    ----------
    kind:
        "transient": the cause has nothing to do with the parameters, so they may be tried again;
        "infeasible": there is no value at such parameters, so the search avoids the region; "bad":
        the run failed because the parameters are bad, which the search avoids in the same way.
    message:
        The reason, for people.

    Raises
    ------
    ValueError
        If the kind is another one.
    """

    def __init__(self, kind: FailureKind, message: str = "") -> None:
        if kind not in FAILURES:
            raise ValueError(f"Failed takes one of the kinds {_KINDS}, got {kind!r}.")
        super().__init__(kind, message)  # both, or it could not be pickled
        self.kind: FailureKind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message or self.kind


def parse_kind(text: object, where: str) -> FailureKind:
    """Return ``text`` if it is a kind of failure."""
    if text not in FAILURES:
        raise RefusalError(f"{where} must be one of {_KINDS}, got {text!r}.")
    return text


def parse_rules(table: Mapping[str, object]) -> dict[str, FailureKind]:
    """Parse rules for failures: ending of a program, in its shortest words -> kind.

    Parameters
    ----------
    table:
        "exit 3" (or "exit code 3"), "exit" for any other code but 0, "signal SIGKILL" (or
        "signal KILL", "signal 9"), "signal" for any other, "timeout" or "nan" -> kind.
    """
    rules: dict[str, FailureKind] = {}
    for written, kind in table.items():
        ending = _ending(written)
        if ending in rules:
            raise RefusalError(f"The failure {written!r} is given twice.")
        rules[ending] = parse_kind(kind, f"The kind of the failure {written!r}")
    return rules


def parse_assignments(texts: Sequence[str]) -> dict[str, FailureKind]:
    """Parse rules for failures from texts such as "exit 3=infeasible"."""
    table: dict[str, object] = {}
    for text in texts:
        ending, equals, kind = (part.strip() for part in text.partition("="))
        if not equals:
            raise RefusalError(f"{text!r} is not ENDING=KIND, as in 'exit 3=infeasible'.")
        if ending in table:
            raise RefusalError(f"The failure {ending!r} is given twice.")
        table[ending] = kind
    return parse_rules(table)


def _ending(written: str) -> str:
    words = written.lower().split()
    if words[:2] == ["exit", "code"]:
        del words[1]
    match words:
        case ["exit" | "signal" | "timeout" | "nan" as alone]:
            return alone
        case ["exit", code] if re.fullmatch(r"\d{1,3}", code, re.ASCII) and 1 <= int(code) <= 255:
            return f"exit {int(code)}"
        case ["signal", name] if (number := _signal(name)) is not None:
            return f"signal {number}"
    raise RefusalError(f"A program does not end with {written!r}: write {_ENDINGS}.")


def _signal(name: str) -> int | None:
    if re.fullmatch(r"\d{1,2}", name, re.ASCII):
        return int(name) or None  # 0 is no signal
    known = signal.Signals.__members__
    found = known.get(name.upper(), known.get(f"SIG{name.upper()}"))
    return None if found is None else int(found)
