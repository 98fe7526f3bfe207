"""Requests to tune: from a study file, or from the options of the command line."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
from stoic.refusal import RefusalError
from stoic.tuning.constraint import Constraint, parse_constraints
from stoic.tuning.ending import Amount, Ending
from stoic.tuning.failure import parse_rules
from stoic.tuning.objectives import Direction, Objective, check_direction, parse_objectives
from stoic.tuning.program import Program
from stoic.tuning.pruning import check_pruner
from stoic.tuning.reading import Reading
from stoic.tuning.repeats import check_repeats
from stoic.tuning.space import Space, parse_assignments, parse_fixed, parse_named, parse_space
from stoic.tuning.storage import beside, storage_url
from stoic.tuning.stored import known_space
from stoic.tuning.template import Template

_SECTIONS = ("study", "parameters", "program", "failures", "tolerance")
_OPTIONAL = ("study", "failures", "tolerance")
_AIM = tuple(name for name in ARGUMENTS if name != "tolerance")  # which is a section
_DIRECTIONS = ("minimize", "maximize")  # each a list of outputs
_ENDING = ("confirm", "repeats", "until_settled")
_STUDY = (
    "name", "direction", "storage", "trials", "seed", "startup", "recipe", "possible",
    "constraints", "warm_start", *_DIRECTIONS, *_ENDING, *_AIM,
)  # fmt: skip
_PROGRAM = ("command", "value", "intermediate", "pruner", "timeout", "directory")


@dataclass(frozen=True)
class Settings:
    """Settings of a study file or of the command line; None means not given.

    Attributes
    ----------
    name:
        Of the study.
    direction:
        "minimize" or "maximize".
    storage:
        URL.
    trials:
        Total number of finished trials.
    timeout:
        Seconds a trial may take.
    value:
        Rule that reads the value, see ``stoic.tuning.reading.FORMS``.
    seed:
        Of the sampler.
    startup:
        Trials from a quasi-random sequence before the model decides.
    failures:
        Ending of the program -> kind of failure.
    aim:
        Where inputs move: arguments of ``stoic.integrations.optuna.RobustObjective``.
    fixed:
        NAME=VALUE of the parameters that are fixed in this run.
    recipe:
        The method.
    possible:
        Range of the values that the objective can have.
    constraints:
        Outputs with a limit.
    objectives:
        Outputs to minimise or to maximise, in the place of ``direction`` and ``value``.
    confirm, until_settled:
        See ``stoic.tuning.ending.Ending``.
    repeats:
        Measurements of a trial.
    intermediate, pruner:
        Rule that reads intermediate values from lines, and a name in ``stoic.tuning.pruning``.
    warm_start:
        NAME or URL::NAME of earlier studies.
    """

    name: str | None = None
    direction: str | None = None
    storage: str | None = None
    trials: int | None = None
    timeout: float | None = None
    value: str | None = None
    seed: int | None = None
    startup: int | None = None
    failures: Mapping[str, FailureKind] | None = None
    aim: RobustArguments | None = None
    fixed: Sequence[str] = ()
    recipe: Recipe | None = None
    possible: PossibleValues | None = None
    constraints: tuple[Constraint, ...] | None = None
    objectives: tuple[Objective, ...] | None = None
    confirm: int | None = None
    repeats: int | None = None
    until_settled: Amount | None = None
    intermediate: str | None = None
    pruner: str | None = None
    warm_start: Sequence[str] | None = None

    def over(self, other: Settings) -> Settings:
        """Return these settings; where they give none, those of ``other``."""
        said = {key: value for key, value in vars(self).items() if value is not None}
        # These two are combined part by part; anything else replaces what was there
        failures = {**(other.failures or {}), **(self.failures or {})}
        aim = merge_over(self.aim or {}, other.aim or {})
        return replace(other, **said | {"failures": failures, "aim": aim})


@dataclass(frozen=True)
class Request:
    """Valid request of a campaign; its program and storage are checked when it begins.

    Attributes
    ----------
    name, direction, storage, trials, seed, startup:
        See ``Settings``.
    space:
        Name of a parameter -> its distribution.
    program:
        The program that a trial runs.
    said:
        Where inputs move: arguments of ``stoic.integrations.optuna.RobustObjective``.
    recipe, possible:
        The method, and the range of the values; None if the request gives none.
    fixed:
        Name of a parameter -> its value in this run.
    ending:
        When the search stops, and what is measured again after it.
    repeats:
        Measurements of a trial.
    pruner:
        Name in ``stoic.tuning.pruning``.
    warm_start:
        NAME or URL::NAME of the earlier studies that inform it.
    """

    name: str
    direction: Direction
    storage: str
    trials: int
    seed: int | None
    startup: int
    space: Space
    program: Program
    said: RobustArguments
    recipe: Recipe | None
    possible: PossibleValues | None
    fixed: Mapping[str, Any]
    ending: Ending = field(default_factory=Ending)
    repeats: int = 1
    pruner: str = "none"
    warm_start: tuple[str, ...] = ()


def from_options(assignments: Sequence[str], command: Sequence[str], settings: Settings) -> Request:
    """Make a request from ``--param`` texts and the command after ``--``."""
    if not assignments:
        raise RefusalError("There is nothing to tune: give a study file, or --param NAME=RANGE.")
    return _request(
        parse_assignments(assignments), Template.parse(list(command)), Path.cwd(), settings, "stoic"
    )


def from_study(study: optuna.Study, command: Sequence[str], settings: Settings) -> Request:
    """Make a request to run a command with the parameters of a stored study."""
    space = known_space(study)
    if not space:
        raise RefusalError(
            f"The study {study.study_name!r} has no parameters yet: run stoic tune first."
        )
    check_single_objective(study)
    given = replace(settings, direction=study.direction.name.lower())
    return _request(space, Template.parse(list(command)), Path.cwd(), given, study.study_name)


def from_file(path: Path, settings: Settings) -> Request:
    """Make a request from a study file; ``settings`` override the file.

    The program runs in the directory of the file unless the file names another one; a storage that
    is a file of a relative path is there, too.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RefusalError(
            f"Cannot read the study file {str(path)!r}: {error.strerror}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        quotes = '; a text needs quotes, as in direction = "maximize"'
        hint = quotes * ("Invalid value" in str(error))
        raise RefusalError(f"{path} is not TOML: {error}{hint}.") from error
    try:
        return _from_tables(content, path, settings)
    except RefusalError as refusal:
        raise RefusalError(f"{path}: {refusal}") from refusal


def _from_tables(content: Mapping[str, Any], path: Path, settings: Settings) -> Request:
    _known(content, _SECTIONS, "section")
    for section in _SECTIONS:
        if section not in _OPTIONAL and section not in content:
            raise RefusalError(f"There is no section [{section}].")
        if not isinstance(content.get(section, {}), dict):
            raise RefusalError(f"[{section}] must be a section, not a value.")
    study, program = content.get("study", {}), content["program"]
    _known(study, _STUDY, "key", "in [study]")
    _known(program, _PROGRAM, "key", "in [program]")
    if "command" not in program:
        raise RefusalError("[program] has no command.")
    command = program["command"]
    if not isinstance(command, str) and not (
        isinstance(command, list) and all(isinstance(argument, str) for argument in command)
    ):
        raise RefusalError("command in [program] must be a text or a list of texts.")
    recipe = _text(study, "recipe")
    file = Settings(
        name=_text(study, "name"),
        direction=_text(study, "direction"),
        storage=beside(path.absolute().parent, _text(study, "storage")),
        trials=_whole(study, "trials"),
        seed=_whole(study, "seed"),
        startup=_whole(study, "startup"),
        timeout=_number(program, "timeout"),
        value=_text(program, "value"),
        intermediate=_text(program, "intermediate"),
        pruner=_text(program, "pruner"),
        failures=parse_rules(content.get("failures", {})),
        aim=check_arguments(
            {name: study.get(name) for name in _AIM} | {"tolerance": content.get("tolerance")}
        ),
        recipe=None if recipe is None else parse(recipe, path.parent),
        possible=PossibleValues.of(study.get("possible")),
        constraints=parse_constraints(_texts(study, "constraints")),
        objectives=parse_objectives(*(_texts(study, key) for key in _DIRECTIONS)),
        confirm=_whole(study, "confirm"),
        repeats=_whole(study, "repeats"),
        warm_start=[
            f"{beside(path.absolute().parent, url)}::{name}" if url else named
            for named in _texts(study, "warm_start")
            for url, _, name in [named.rpartition("::")]
        ],
        until_settled=_amount(study, "until_settled"),
    )
    directory = path.parent / (_text(program, "directory") or ".")
    name = path.stem if path.stem != "study" else path.absolute().parent.name or "study"
    return _request(
        parse_space(content["parameters"]),
        Template.parse(command),
        directory,
        settings.over(file),
        name,
    )


def _request(
    space: Space, template: Template, directory: Path, settings: Settings, name: str
) -> Request:
    objectives = settings.objectives or ()
    if objectives and (settings.direction or settings.value):
        beside = "direction" if settings.direction else "value"
        raise RefusalError(
            f"minimize and maximize name the objectives, so {beside} says the same: leave it out."
        )
    # A single one is an ordinary study, with all that works with one objective
    if len(objectives) == 1:
        settings = replace(
            settings, direction=objectives[0].direction, value=objectives[0].reading.written
        )
        objectives = ()
    direction = check_direction(settings.direction or "minimize")
    trials = 50 if settings.trials is None else settings.trials
    startup = 10 if settings.startup is None else settings.startup
    timeout = settings.timeout
    if trials < 1:
        raise RefusalError(f"trials must be at least 1, got {trials}.")
    if startup < 0:
        raise RefusalError(f"startup must be at least 0, got {startup}.")
    if settings.seed is not None and not 0 <= settings.seed < 2**32:
        raise RefusalError(f"seed must be between 0 and 2**32 - 1, got {settings.seed}.")
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise RefusalError(f"timeout must be a number of seconds above 0, got {timeout:g}.")
    template.check(space)
    ending = Ending(settings.confirm or 0, settings.until_settled)
    ending.check("--fix" if settings.fixed else "tolerances" if settings.aim else None)
    reading = Reading.parse(settings.value or "last-line")
    pruner = check_pruner(settings.pruner, settings.intermediate, settings.repeats or 1)
    program = Program(
        template,
        reading,
        directory,
        timeout,
        settings.failures or {},
        settings.constraints or (),
        objectives,
        None if settings.intermediate is None else Reading.of_lines(settings.intermediate),
    )
    said = settings.aim or {}
    if said.get("tolerance"):  # else a stored study may have one
        free = searched(space)
        RobustObjective(**said).distance(Encoding(free, met=met(free, ())))
    request = Request(
        name=settings.name or name,
        direction=direction,
        storage=storage_url(settings.storage),
        trials=trials,
        seed=settings.seed,
        startup=startup,
        space=space,
        program=program,
        said=said,
        recipe=settings.recipe,
        possible=settings.possible,
        fixed=parse_fixed(settings.fixed, space),
        ending=ending,
        repeats=check_repeats(1 if settings.repeats is None else settings.repeats),
        pruner=pruner,
        warm_start=tuple(settings.warm_start or ()),
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


def aim_arguments(tolerance: Sequence[str], **said: object) -> RobustArguments:
    """Return the arguments of ``RobustObjective`` that the command line gives.

    Parameters
    ----------
    tolerance:
        NAME=VALUE, one for each parameter that moves.
    said:
        The other arguments; the threshold is a text.

    Raises
    ------
    RefusalError
        If a text should be a number and is none.
    """
    sizes = {
        name: _read(f"The tolerance of {name!r}", text)
        for name, text in parse_named(tolerance).items()
    }
    if isinstance(threshold := said.get("threshold"), str) and threshold != "adaptive":
        said["threshold"] = _read("threshold", threshold)
    return check_arguments({**said, "tolerance": sizes})


def _read(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise RefusalError(f"{what} must be a number, got {text!r}.") from error


def _known(
    table: Mapping[str, Any], valid: Iterable[str], what: str, where: str = "in the study file"
) -> None:
    for key in table:
        if key not in valid:
            for section, keys in (("study", _STUDY), ("program", _PROGRAM)):
                if key in keys:
                    raise RefusalError(
                        f"Unknown {what} {key!r} {where}: it belongs in [{section}]."
                    )
            # With this cutoff there always is a nearest one
            near = difflib.get_close_matches(key, list(valid), n=1, cutoff=0.0)[0]
            raise RefusalError(f"Unknown {what} {key!r} {where}: did you mean {near!r}?")


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not (isinstance(value, str) and value):
        raise RefusalError(f"{key} must be a text, got {value!r}.")
    return value


def _texts(table: Mapping[str, Any], key: str) -> list[str]:
    values = table.get(key, [])
    if not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
        raise RefusalError(f"{key} must be a list of texts, got {values!r}.")
    return values


def _whole(table: Mapping[str, Any], key: str) -> int | None:
    value = table.get(key)
    # In Python, true is an int
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise RefusalError(f"{key} must be a whole number, got {value!r}.")
    return value


def _amount(table: Mapping[str, Any], key: str) -> Amount | None:
    value = table.get(key)
    if isinstance(value, str | bool) and value != "noise":
        raise RefusalError(f'{key} must be a number, or "noise", got {value!r}.')
    return "noise" if value == "noise" else _number(table, key)


def _number(table: Mapping[str, Any], key: str) -> float | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise RefusalError(f"{key} must be a number, got {value!r}.")
    return value
