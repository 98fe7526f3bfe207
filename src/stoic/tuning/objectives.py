"""Objectives of a study with several: outputs of the program to minimise or to maximise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import optuna
from optuna.study import StudyDirection

from stoic.integrations.optuna.objectives import objective_names
from stoic.objectives import MOST
from stoic.refusal import RefusalError
from stoic.tuning.reading import NoValueError, Reading
from stoic.tuning.space import read_number

Direction = Literal["minimize", "maximize"]
DIRECTIONS: tuple[Direction, ...] = ("minimize", "maximize")


def check_direction(direction: str) -> Direction:
    """Return ``direction`` if it is valid."""
    given = direction.name if isinstance(direction, StudyDirection) else direction
    for known in DIRECTIONS:
        if isinstance(given, str) and given.lower() in (known, known.replace("z", "s"), known[:3]):
            return known
    raise RefusalError(f"direction must be minimize or maximize, got {direction!r}.")


@dataclass(frozen=True)
class Objective:
    """Output to minimise or to maximise.

    Attributes
    ----------
    name:
        The JSON key, or the rule if it is another one; the study's metric name.
    direction:
        "minimize" or "maximize".
    """

    name: str
    direction: Direction

    @property
    def reading(self) -> Reading:
        """Rule that reads it from text."""
        return Reading.of_output(self.name)

    def __str__(self) -> str:
        return f"{self.direction} {self.name}"


def parse_objectives(
    minimize: Iterable[str] | None, maximize: Iterable[str] | None
) -> tuple[Objective, ...]:
    """Parse outputs to minimise and to maximise, in this order."""
    found = [
        Objective(output.strip().removeprefix("json:"), direction)
        for direction, outputs in zip(DIRECTIONS, (minimize, maximize), strict=True)
        for output in outputs or ()
    ]
    names = [objective.name for objective in found]
    for objective in found:
        _ = objective.reading
        if names.count(objective.name) > 1:
            raise RefusalError(f"The output {objective.name!r} is given twice as an objective.")
    if len(found) > MOST:
        raise RefusalError(
            f"At most {MOST} objectives can be optimized together, got {len(found)}: make "
            "constraints of the others."
        )
    return tuple(found)


def stored_objectives(study: optuna.Study) -> tuple[Objective, ...]:
    """Return the objectives of a study; empty if it has one."""
    directions = (check_direction(each.name.lower()) for each in study.directions)
    return tuple(map(Objective, objective_names(study), directions))


def merge_objectives(
    study: optuna.Study | None, given: Sequence[Objective]
) -> tuple[Objective, ...]:
    """Return the objectives of a study, in its order, or of a new one those ``given``."""
    stored = () if study is None else stored_objectives(study)
    if study is None or not given:
        return stored or tuple(given)
    if study.metric_names is None and [e.direction for e in stored] == [e.direction for e in given]:
        return tuple(given)  # which names them
    if set(stored) != set(given):
        raise RefusalError(
            f"The study {study.study_name!r} exists and is to {goal_of(study)}, not to "
            f"{written(given)}: give another --study-name or the same objectives."
        )
    return stored


def parse_values(words: Sequence[str], what: str = "value") -> dict[str, float]:
    """Parse values, or what else each objective has, that are given as NAME=VALUE."""
    values: dict[str, float] = {}
    for word in words:
        name, equals, text = word.rpartition("=")  # a rule that reads an output may have one, too
        if not name or not equals or name in values:
            raise RefusalError(
                f"{what.capitalize()}s by name are NAME=NUMBER, each name once, got {word!r}."
            )
        values[name] = read_number(f"The {what} of {name}", text)
    return values


def in_order(study: optuna.Study, values: Mapping[str, float], what: str = "value") -> list[float]:
    """Return values by name in the order of a study's objectives, all of which are given."""
    names = objective_names(study) or tuple(study.metric_names or ())
    there = f"the objectives {', '.join(names)}" if names else "one objective without a name"
    for name in values:
        if name not in names:
            raise RefusalError(f"The study {study.study_name!r} has {there}, and {name!r} is none.")
    for name in names:
        if name not in values:
            raise RefusalError(f"The {what} of {name} is missing: nan if it is not known.")
    return [values[name] for name in names]


def written(objectives: Sequence[Objective]) -> str:
    """Write objectives for people."""
    return " and ".join(map(str, objectives))


def goal_of(study: optuna.Study) -> str:
    """Return the direction of a study, or those of its objectives, in words."""
    return written(stored_objectives(study)) or study.direction.name.lower()


def read_values(
    objectives: Sequence[Objective], text: str
) -> tuple[tuple[float, ...], dict[str, NoValueError]]:
    """Read the value of each objective from what a program printed, nan where there is none.

    Also why there is none, by the name of the objective.
    """
    values, errors = [], {}
    for objective in objectives:
        try:
            values.append(objective.reading.find(text))
        except NoValueError as error:
            values.append(math.nan)
            errors[objective.name] = error
    return tuple(values), errors
