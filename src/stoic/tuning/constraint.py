"""Constraints of a study: outputs of the program, each with a limit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import optuna

from stoic.integrations.optuna.unmodelled import CONSTRAINTS, declared_constraints
from stoic.refusal import RefusalError
from stoic.tuning.reading import NotANumberError, NoValueError, Reading

_FORM = re.compile(r"(?P<output>.+?)\s*(?P<side><=|>=)\s*(?P<limit>[^<>=\s]+)", re.DOTALL)


@dataclass(frozen=True)
class Constraint:
    """Output with a limit, as in ``latency <= 0.2``.

    Attributes
    ----------
    written:
        As the user wrote it.
    name:
        Of the output: the JSON key, or the rule if it is another one.
    reading:
        Rule that reads the output from text.
    sign, limit:
        It holds where sign (output - limit) <= 0.
    """

    written: str
    name: str
    reading: Reading
    sign: float
    limit: float

    @classmethod
    def parse(cls, written: str) -> Constraint:
        """Parse a text; an output without a rule is a JSON key."""
        found = _FORM.fullmatch(written.strip())
        try:
            limit = float(found["limit"]) if found else math.nan
        except ValueError:
            limit = math.nan
        if found is None or not math.isfinite(limit):
            raise RefusalError(
                f"A constraint is an output and its limit, as in 'latency <= 0.2', got {written!r}."
            )
        output = found["output"].removeprefix("json:")
        key = not output.startswith("regex:")
        if _FORM.fullmatch(output) or (key and set(output) & set("<>=")):
            raise RefusalError(
                f"A constraint has one limit, as in 'latency <= 0.2', got {written!r}: for two "
                "limits print the output under two names."
            )
        sign = 1.0 if found["side"] == "<=" else -1.0
        return cls(written, output, Reading.of_output(output), sign, limit)

    def excess(self, output: float) -> float:
        """Return by how much an output violates it; at most 0 if it holds."""
        return self.sign * (output - self.limit)

    def output(self, excess: float) -> float:
        """Return the output that violates it by so much, to twelve digits."""
        return float(f"{self.limit + self.sign * excess:.12g}")


def parse_constraints(texts: Iterable[str]) -> tuple[Constraint, ...]:
    """Parse the constraints of a study."""
    parsed = tuple(map(Constraint.parse, texts))
    names = [constraint.name for constraint in parsed]
    for name in names:
        if names.count(name) > 1:
            raise RefusalError(f"The output {name!r} has two constraints, and may have one.")
    return parsed


def read_constraints(
    constraints: Sequence[Constraint], text: str
) -> tuple[dict[str, float], dict[str, str]]:
    """Read by how much each constraint is violated; nan where the output is nan.

    Also why the output of each other constraint, as it was written, is not in the text.
    """
    excess, missing = {}, {}
    for constraint in constraints:
        try:
            excess[constraint.name] = constraint.excess(constraint.reading.find(text))
        except NotANumberError:
            excess[constraint.name] = math.nan
        except NoValueError as error:
            missing[constraint.written] = str(error)
    return excess, missing


def merge_constraints(
    study: optuna.Study | None, given: Sequence[Constraint]
) -> tuple[Constraint, ...]:
    """Combine the constraints of a study, which is None for a new one, with those given now."""
    stored = {} if study is None else declared_constraints(study)
    together = {name: Constraint.parse(written) for name, written in stored.items()}
    for constraint in given:
        known = together.setdefault(constraint.name, constraint)
        if (known.sign, known.limit) != (constraint.sign, constraint.limit):
            raise RefusalError(
                f"The study has the constraint {known.written!r}, not {constraint.written!r}: give "
                "another --study-name or the same constraint."
            )
    return tuple(together.values())


def declare_constraints(study: optuna.Study, constraints: Sequence[Constraint]) -> None:
    """Record the constraints of a study."""
    record = {constraint.name: constraint.written for constraint in constraints}
    if record != declared_constraints(study):
        study.set_user_attr(CONSTRAINTS, record)


def observed_constraints(study: optuna.Study, texts: Sequence[str]) -> dict[str, float]:
    """Return by how much the constraints of a study are violated, from ``NAME=OUTPUT`` each."""
    known = {constraint.name: constraint for constraint in merge_constraints(study, ())}
    excess: dict[str, float] = {}
    for text in texts:
        # The last one: a name may be a regular expression with others
        name, equals, output = (part.strip() for part in text.rpartition("="))
        if not equals:
            raise RefusalError(f"An output is given as NAME=VALUE, got {text!r}.")
        if name in excess:
            raise RefusalError(f"The output {name!r} is given twice.")
        if name not in known:
            there = ", ".join(known) or "none: create-study --constraint 'latency <= 0.2' has one"
            raise RefusalError(
                f"The study {study.study_name!r} has no constraint {name or text!r}; it has "
                f"{there}."
            )
        try:
            excess[name] = known[name].excess(float(output))
        except ValueError as error:
            raise RefusalError(f"The output {name!r} must be a number, got {output!r}.") from error
    return excess
