"""Options of the commands, a row for each, and how a command takes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import ParameterInfo

from stoic.cli.app import app
from stoic.cli.studies import Place

Command = Callable[..., None]


def option(text: str, *names: str, metavar: str | None = None, **more: Any) -> ParameterInfo:
    """Build an option; without ``names`` it is called as the parameter that takes it."""
    info: ParameterInfo = typer.Option(*names, help=text, metavar=metavar, **more)
    return info


def argument(metavar: str, text: str) -> ParameterInfo:
    """Build an argument that may be left out."""
    info: ParameterInfo = typer.Argument(metavar=metavar, help=text)
    return info


# By the name of the parameter.
OPTIONS: Mapping[str, ParameterInfo] = {
    "what": argument(
        "STUDY", "A study file or the name of a study; not needed if the storage holds only one."
    ),
    "study_name": option("Name of the study."),
    "storage": option(
        "Database URL, e.g. sqlite:///stoic.db, which is the default.", envvar="OPTUNA_STORAGE"
    ),
    "storage_class": option("RDBStorage, JournalFileBackend or JournalRedisBackend."),
    # What is searched
    "param": option(
        "A parameter: 'lr=float(1e-5, 1e-1, log)', 'n=int(1, 10)', 'k=choice(a, b)'.",
        "--param", "-p", metavar="NAME=RANGE",
    ),
    "direction": option("minimize (the default) or maximize."),
    "minimize": option(
        "An output to minimize, a key of the last JSON line or 'regex:PATTERN'; two or three "
        "of these and of --maximize are objectives of which a front is sought.",
        metavar="KEY",
    ),
    "maximize": option("An output to maximize.", metavar="KEY"),
    "constraint": option(
        "A limit of another output: 'latency <= 0.2' for a key of the last JSON line, or "
        "'regex:PATTERN >= 3'.",
        metavar="'KEY <= LIMIT'",
    ),
    "possible": option(
        "The values that there can be, as in 0 1: what is outside counts as nan.",
        metavar="LOW HIGH",
    ),
    "fix": option(
        "A parameter that is given this time; the others are chosen for it.", metavar="NAME=VALUE"
    ),
    # Where inputs move
    "tolerance": option(
        "By how much a parameter may be moved, in its unit; a factor if it is log-scaled.",
        metavar="NAME=SIZE",
    ),
    "threshold": option(
        "A value that is good enough, which shall hold as far away as possible; or adaptive.",
        metavar="VALUE",
    ),
    "margin": option("By how much worse than the best an adaptive threshold may be."),
    "policy": option(
        "satisficing (what a threshold means) or stable: the best worst value in reach."
    ),
    "radius": option("For stable: moves are within so many tolerances; 1."),
    "p": option(
        "How a value may get worse than the threshold with the distance d: (k d)^p; inf.",
        metavar="POWER",
    ),
    "probe": option(
        "Whether trials are run where a move of the chosen setting may hurt most; if not "
        "said, until a trial says what was executed.",
        "--probe/--no-probe",
    ),
    # How it is searched
    "recipe": option(
        "The method: a name such as gp_ucb, with arguments as in 'rgp_ucb(budget=5)', or "
        "FILE.py:FUNCTION; by default that of the study, else robust.",
        metavar="RECIPE",
    ),
    "warm_start": option(
        "An earlier study that informs this one, as far as they agree: its name, or "
        "STORAGE::NAME. Repeat it for several.",
        metavar="STUDY",
    ),
    "seed": option("Seed of the sampler."),
    "startup": option("Quasi-random trials before the model decides; 10 if not said."),
    "trials": option(
        "Finished trials the study shall have altogether, failed ones and those of "
        "earlier runs and other workers included; 50 if not said.",
        "--trials", "-n",
    ),
    "confirm": option(
        "Measure the settings that may be the best again at the end, up to K times altogether.",
        metavar="K",
    ),
    "repeats": option(
        "Measure each trial up to N times and take the median; 1 if not said.", metavar="N"
    ),
    "until_settled": option(
        "Stop the search when more trials can gain less than that: a number, or noise "
        "for the noise's standard deviation.",
        metavar="AMOUNT",
    ),
    "keep_going": option(
        "Go on, too, if the first five trials all fail, or ten in a row of a transient cause.",
        "--keep-going",
    ),
    "workers": option("Processes on this machine that share it.", metavar="N"),
    "patience": option("Seconds to wait for a locked SQLite file."),
    # The program
    "timeout": option("Seconds that a run, or each repeat, may take; then it is stopped."),
    "value": option(
        "Where the value is in the standard output: last-line (the default), "
        "regex:PATTERN (group 1 of the last match) or json:KEY (of the last JSON line)."
    ),
    "intermediate": option(
        "Where intermediate values are, in lines of their own, as they come: "
        "regex:PATTERN or json:KEY.",
        metavar="RULE",
    ),
    "pruner": option(
        "What stops a trial by its intermediate values: stoic (the default), median, "
        "hyperband or none."
    ),
    "failed": option(
        "What a failure means: 'exit 3=infeasible', 'timeout=bad', 'signal=transient'.",
        metavar="ENDING=KIND",
    ),
    # Output
    "form": option("Output format: value, json, table, yaml or csv.", "--format", "-f"),
    "flatten": option("Flatten nested columns such as params.", "--flatten"),
    "json": option("Print one JSON object.", "--json"),
    "plot": option("Draw it, too.", metavar="FILE.png"),
}  # fmt: skip


def command(
    command_name: str | None = None, /, context: dict[str, Any] | None = None, **own: ParameterInfo
) -> Callable[[Command], Command]:
    """Add a function to the commands.

    Its keyword parameters are options: its ``own`` ones, or rows of ``OPTIONS``. One without a
    default is False for a flag, None if it may be that, and else required. A :class:`Place` stands
    for the options that it is made of.
    """
    rows = {**OPTIONS, **own}
    parts = get_type_hints(Place)

    def register(function: Command) -> Command:
        hints, parameters = get_type_hints(function), []
        place = next((each for each, kind in hints.items() if kind is Place), None)
        for each in inspect.signature(function).parameters.values():
            if hints[each.name] is typer.Context:
                parameters.append(each.replace(annotation=typer.Context))
                continue
            for name, kind in (
                parts if each.name == place else {each.name: hints[each.name]}
            ).items():
                default = each.default
                if default is each.empty:
                    default = False if kind is bool else None if _optional(kind) else default
                annotation = Annotated[kind, rows[name]]  # type: ignore[valid-type]
                parameters.append(each.replace(name=name, default=default, annotation=annotation))

        @functools.wraps(function)
        def called(**given: Any) -> None:
            if place is not None:
                given[place] = Place(*(given.pop(part) for part in parts))
            function(**given)

        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        app.command(command_name, context_settings=context)(called)
        return function

    return register


def _optional(kind: object) -> bool:
    return type(None) in get_args(kind)
