"""Requests to tune a program: from a study file, or from the options of the command line."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

import optuna

from stoic.data import FailureKind
from stoic.integrations.optuna.encoding import Encoding, met, searched
from stoic.integrations.optuna.objective import (
    ARGUMENTS,
    RobustArguments,
    RobustObjective,
    check_arguments,
    merge_over,
)
from stoic.integrations.optuna.objectives import check_single_objective
from stoic.integrations.optuna.possible import PossibleValues
from stoic.integrations.recipe import Recipe, parse
from stoic.refusal import RefusalError, check_at_least
from stoic.tuning.constraint import Constraint, parse_constraints
from stoic.tuning.ending import Amount, Ending, read_amount
from stoic.tuning.failure import parse_assignments as parse_failures
from stoic.tuning.failure import parse_rules
from stoic.tuning.objectives import Objective, check_direction, parse_objectives
from stoic.tuning.program import Program
from stoic.tuning.pruning import check_pruner
from stoic.tuning.reading import Reading
from stoic.tuning.search import Search
from stoic.tuning.space import (
    Space,
    parse_assignments,
    parse_fixed,
    parse_named,
    parse_space,
    read_number,
)
from stoic.tuning.storage import beside, storage_url
from stoic.tuning.stored import known_space
from stoic.tuning.study import check_study_name
from stoic.tuning.template import Template

Table = Mapping[str, Any]


class Settings(TypedDict, total=False):
    """Settings of a study file or of the command line, as far as they are given.

    Those of a search are as of ``Search``, and ``aim`` is what is said there; those of a program
    as of ``Program``, its readings as they are written. ``fixed`` has NAME=VALUE, and ``pruner`` a
    name in ``stoic.tuning.pruning``.
    """

    name: str
    direction: str
    storage: str
    trials: int
    timeout: float
    value: str
    seed: int
    startup: int
    failures: Mapping[str, FailureKind]
    aim: RobustArguments
    fixed: Sequence[str]
    recipe: Recipe
    possible: PossibleValues
    constraints: tuple[Constraint, ...]
    objectives: tuple[Objective, ...]
    confirm: int
    repeats: int
    until_settled: Amount
    intermediate: str
    pruner: str
    warm_start: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Request(Search):
    """Valid request of a campaign; its program and storage are checked when it begins.

    Attributes
    ----------
    storage:
        URL.
    program:
        The program that a trial runs.
    value:
        How its value is read, as it was written; None as of earlier trials.
    pruner:
        Name in ``stoic.tuning.pruning``.
    """

    storage: str
    program: Program
    value: str | None = None
    pruner: str = "none"


def from_options(assignments: Sequence[str], command: Sequence[str], settings: Settings) -> Request:
    """Make a request from ``--param`` texts and the command after ``--``."""
    if not assignments:
        raise RefusalError("There is nothing to tune: give a study file, or --param NAME=RANGE.")
    return _request(parse_assignments(assignments), command, Path.cwd(), settings, "stoic")


def from_study(study: optuna.Study, command: Sequence[str], settings: Settings) -> Request:
    """Make a request to run a command with the parameters of a stored study."""
    space = known_space(study)
    if not space:
        raise RefusalError(
            f"The study {study.study_name!r} has no parameters yet: run stoic tune first."
        )
    check_single_objective(study)
    settings = {**settings, "direction": study.direction.name.lower()}
    return _request(space, command, Path.cwd(), settings, study.study_name)


def from_file(path: Path, settings: Settings, by_hand: bool = False) -> Request:
    """Make a request from a study file; ``settings`` override the file.

    If its trials are run ``by_hand``, it needs no program.

    The program runs in the directory of the file unless the file names another one; a storage that
    is a file of a relative path is there, too.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise RefusalError(
            f"Cannot read the study file {str(path)!r}: {error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        quotes = '; a text needs quotes, as in direction = "maximize"'
        hint = quotes * ("Invalid value" in str(error))
        raise RefusalError(f"{path} is not TOML: {error}{hint}.") from error
    try:
        return _from_tables(content, path, settings, by_hand)
    except RefusalError as refusal:
        raise RefusalError(f"{path}: {refusal}") from refusal


def of_options(given: Table) -> Settings:
    """Parse the options of the command line, by the names of its parameters."""
    settled = given.get("until_settled")
    return _settings(
        given,
        name=given.get("study_name"),
        fixed=given.get("fix"),
        failures=parse_failures(given.get("failed") or ()),
        aim=aim_arguments(given),
        constraints=given.get("constraint"),
        until_settled=None if settled is None else read_amount(settled),
    )


def aim_arguments(given: Table) -> RobustArguments:
    """Return the arguments of ``RobustObjective`` among the options of the command line."""
    said = {name: given.get(name) for name in ARGUMENTS}
    said["tolerance"] = {
        name: read_number(f"The tolerance of {name!r}", text)
        for name, text in parse_named(said["tolerance"] or ()).items()
    }
    if said["threshold"] not in (None, "adaptive"):
        said["threshold"] = read_number("threshold", said["threshold"])
    return check_arguments(said)


def _settings(said: Table, directory: Path = Path(), **more: Any) -> Settings:
    """Parse settings, with texts as a file or the command line has them; leave out what is None."""
    said = {**said, **more}
    found = {name: said.get(name) for name in Settings.__annotations__}
    found["recipe"] = None if found["recipe"] is None else parse(found["recipe"], directory)
    found["possible"] = PossibleValues.of(found["possible"])
    found["constraints"] = parse_constraints(found["constraints"] or ())
    found["objectives"] = parse_objectives(said.get("minimize"), said.get("maximize"))
    given = {name: value for name, value in found.items() if value not in (None, (), [])}
    return cast("Settings", given)


def _from_tables(content: Table, path: Path, settings: Settings, by_hand: bool) -> Request:
    _known(content, _SECTIONS, "section")
    for section, required in _SECTIONS.items():
        if required and section not in content and not (by_hand and section == "program"):
            hint = ": without one, `stoic create-study`, `ask` and `tell` run trials by hand"
            raise RefusalError(f"There is no section [{section}]{hint * (section == 'program')}.")
        if not isinstance(content.get(section, {}), dict):
            raise RefusalError(f"[{section}] must be a section, not a value.")
    study = _values(content.get("study", {}), _STUDY, "study")
    program = _values(content.get("program", {"command": []}), _PROGRAM, "program")
    if "command" not in program:
        raise RefusalError("[program] has no command.")
    if not (isinstance(program["command"], str) or _TEXTS[0](program["command"])):
        raise RefusalError("command in [program] must be a text or a list of texts.")
    here = path.absolute().parent
    file = _settings(
        study | program,
        path.parent,
        storage=beside(here, study.get("storage")),
        failures=parse_rules(content.get("failures", {})),
        aim=check_arguments(
            {name: study.get(name) for name in _AIM} | {"tolerance": content.get("tolerance")}
        ),
        warm_start=[
            f"{beside(here, url)}::{name}" if url else named
            for named in study.get("warm_start", ())
            for url, _, name in [named.rpartition("::")]
        ],
    )
    # These two are combined part by part; anything else replaces what is in the file
    merged = file | settings
    merged["failures"] = {**file.get("failures", {}), **settings.get("failures", {})}
    merged["aim"] = merge_over(settings.get("aim", {}), file.get("aim", {}))
    directory = path.parent / program.get("directory", ".")
    name = path.stem if path.stem != "study" else here.name or "study"
    space = parse_space(content["parameters"])
    return _request(space, program["command"], directory, merged, name, by_hand)


def _request(
    space: Space,
    command: str | Sequence[str],
    directory: Path,
    settings: Settings,
    name: str,
    by_hand: bool = False,
) -> Request:
    objectives, template = settings.get("objectives", ()), Template.parse(command)
    direction, value = settings.get("direction"), settings.get("value")
    if objectives and (direction or value):
        beside = "direction" if direction else "value"
        raise RefusalError(
            f"minimize and maximize name the objectives, so {beside} says the same: leave it out."
        )
    # A single one is an ordinary study, with all that works with one objective
    if len(objectives) == 1:
        direction, value = objectives[0].direction, objectives[0].reading.written
        objectives = ()
    goal = check_direction(direction or "minimize")
    trials, startup = settings.get("trials", 50), settings.get("startup", 10)
    seed, timeout, repeats = (
        settings.get("seed"),
        settings.get("timeout"),
        settings.get("repeats", 1),
    )
    check_at_least(1, trials=trials)
    check_at_least(0, startup=startup)
    if seed is not None and not 0 <= seed < 2**32:
        raise RefusalError(f"seed must be between 0 and 2**32 - 1, got {seed}.")
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise RefusalError(f"timeout must be a number of seconds above 0, got {timeout:g}.")
    check_study_name(settings.get("name"))
    if template.arguments or not by_hand:
        template.check(space)
    said, fixed = settings.get("aim", {}), settings.get("fixed", ())
    ending = Ending(settings.get("confirm", 0), settings.get("until_settled"))
    ending.check("--fix" if fixed else "tolerances" if said else None)
    reading, intermediate = Reading.parse(value or "last-line"), settings.get("intermediate")
    pruner = check_pruner(settings.get("pruner"), intermediate, repeats)
    program = Program(
        template,
        reading,
        directory,
        timeout,
        settings.get("failures", {}),
        settings.get("constraints", ()),
        objectives,
        None if intermediate is None else Reading.of_lines(intermediate),
    )
    if said.get("tolerance"):  # else a stored study may have one
        free = searched(space)
        RobustObjective(**said).distance(Encoding(free, met=met(free, ())))
    check_at_least(1, repeats=repeats)
    request = Request(
        name=settings.get("name", name),
        goal=objectives or goal,
        storage=storage_url(settings.get("storage")),
        trials=trials,
        seed=seed,
        startup=startup,
        space=space,
        program=program,
        value=value,
        said=said,
        recipe=settings.get("recipe"),
        possible=settings.get("possible"),
        fixed=parse_fixed(fixed, space),
        ending=ending,
        repeats=repeats,
        pruner=pruner,
        warm_start=tuple(settings.get("warm_start", ())),
    )
    check_objectives(request, objectives)
    return request


def check_objectives(request: Request, objectives: Sequence[Objective]) -> None:
    """Refuse what works with one objective, if there are several."""
    asked = {
        "confirm": request.ending.confirm,
        "until_settled": request.ending.until_settled,
        "recipe": request.recipe,
        "possible": request.possible,
        "a tolerance": request.said.get("tolerance") or request.said.get("threshold"),
        "repeats": request.repeats > 1,
        "intermediate": request.program.intermediate,
        "warm_start": request.warm_start,
    }
    names = [name for name, given in asked.items() if given]
    if objectives and names:
        raise RefusalError(
            f"{names[0]} works with one objective, and there are {len(objectives)}: leave it out."
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)  # true is an int in Python


def _is_number(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float)


# What a value of a study file must be: the test, and in words
_ANY = (lambda value: True, "")
_TEXT = (lambda value: isinstance(value, str) and value != "", "a text")
_TEXTS = (
    lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "a list of texts",
)
_WHOLE = (_is_whole, "a whole number")
_NUMBER = (_is_number, "a number")
_AMOUNT = (lambda value: value == "noise" or _is_number(value), 'a number, or "noise"')

Kind = tuple[Callable[[Any], bool], str]

_SECTIONS = {  # and whether it must be there
    "study": False, "parameters": True, "program": True, "failures": False, "tolerance": False,
}  # fmt: skip
_AIM = tuple(name for name in ARGUMENTS if name != "tolerance")  # which is a section
_STUDY: Mapping[str, Kind] = {
    **dict.fromkeys(("name", "direction", "storage", "recipe"), _TEXT),
    **dict.fromkeys(("trials", "seed", "startup", "confirm", "repeats"), _WHOLE),
    **dict.fromkeys(("constraints", "warm_start", "minimize", "maximize"), _TEXTS),
    "until_settled": _AMOUNT,
    **dict.fromkeys(("possible", *_AIM), _ANY),  # checked where they are used
}
_PROGRAM: Mapping[str, Kind] = {
    **dict.fromkeys(("value", "intermediate", "pruner", "directory"), _TEXT),
    "timeout": _NUMBER,
    "command": _ANY,
}


def _values(table: Table, kinds: Mapping[str, Kind], section: str) -> dict[str, Any]:
    """Return the values of a section, each of its kind."""
    _known(table, kinds, "key", f"in [{section}]")
    for key, value in table.items():
        valid, words = kinds[key]
        if not valid(value):
            raise RefusalError(f"{key} must be {words}, got {value!r}.")
    return dict(table)


def _known(table: Table, valid: Table, what: str, where: str = "in the study file") -> None:
    for key in table:
        if key in valid:
            continue
        for section, keys in (("study", _STUDY), ("program", _PROGRAM)):
            if key in keys:
                raise RefusalError(f"Unknown {what} {key!r} {where}: it belongs in [{section}].")
        # With this cutoff there always is a nearest one
        near = difflib.get_close_matches(key, list(valid), n=1, cutoff=0.0)[0]
        raise RefusalError(f"Unknown {what} {key!r} {where}: did you mean {near!r}?")
