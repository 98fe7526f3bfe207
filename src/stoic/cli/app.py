"""The command ``stoic``: shared options and exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import sys
from typing import Annotated

import typer

from stoic.printable import printable
from stoic.refusal import RefusalError

app = typer.Typer(
    name="stoic",
    help="Bayesian optimization that keeps working when its data lie.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Begin with: stoic tune --param 'lr=float(0, 1)' -- python train.py --lr {lr}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

StorageUrl = Annotated[
    str | None,
    typer.Option(
        "--storage",
        envvar="OPTUNA_STORAGE",
        help="Database URL, e.g. sqlite:///stoic.db, which is the default.",
        show_default=False,
    ),
]
StorageClass = Annotated[
    str | None,
    typer.Option("--storage-class", help="RDBStorage, JournalFileBackend or JournalRedisBackend."),
]
StudyName = Annotated[str | None, typer.Option("--study-name", help="Name of the study.")]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", help="Seconds a trial may take; then it is stopped and failed."),
]
Value = Annotated[
    str | None,
    typer.Option(
        "--value",
        help="Where the value is in the standard output: last-line (the default), "
        "regex:PATTERN (group 1 of the last match) or json:KEY (of the last JSON line).",
        show_default=False,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        metavar="N",
        help="Measure each trial up to N times and take the median; 1 if not said.",
        show_default=False,
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=RANGE",
        help="A parameter: 'lr=float(1e-5, 1e-1, log)', 'n=int(1, 10)', 'k=choice(a, b)'.",
        show_default=False,
    ),
]
Which = Annotated[
    str | None,
    typer.Argument(
        metavar="STUDY",
        help="A study file or the name of a study; not needed if the storage holds only one.",
        show_default=False,
    ),
]
Format = Annotated[
    str, typer.Option("--format", "-f", help="Output format: value, json, table, yaml or csv.")
]
Flatten = Annotated[bool, typer.Option("--flatten", help="Flatten nested columns such as params.")]
Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance",
        metavar="NAME=SIZE",
        help="By how much a parameter may be moved, in its unit; a factor if it is log-scaled.",
        show_default=False,
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        metavar="VALUE",
        help="A value that is good enough, which shall hold as far away as possible; or adaptive.",
        show_default=False,
    ),
]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin",
        help="By how much worse than the best an adaptive threshold may be.",
        show_default=False,
    ),
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="satisficing (what a threshold means) or stable: the best worst value in reach.",
        show_default=False,
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        "--radius", help="For stable: moves are within so many tolerances; 1.", show_default=False
    ),
]
Power = Annotated[
    float | None,
    typer.Option(
        "--p",
        metavar="POWER",
        help="How a value may get worse than the threshold with the distance d: (k d)^p; inf.",
        show_default=False,
    ),
]
Probe = Annotated[
    bool | None,
    typer.Option(
        "--probe/--no-probe",
        help="Whether trials are run where a move of the chosen setting may hurt most; if not "
        "said, until a trial says what was executed.",
        show_default=False,
    ),
]
RecipeText = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="RECIPE",
        help="The method: a name such as gp_ucb, with arguments as in 'rgp_ucb(budget=5)', or "
        "FILE.py:FUNCTION; by default that of the study, else robust.",
        show_default=False,
    ),
]
Possible = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--possible",
        metavar="LOW HIGH",
        help="The values that there can be, as in 0 1: what is outside is no observation.",
        show_default=False,
    ),
]
WarmStart = Annotated[
    list[str] | None,
    typer.Option(
        "--warm-start",
        metavar="STUDY",
        help="An earlier study that informs this one, as far as they agree: its name, or "
        "STORAGE::NAME. Repeat it for several.",
        show_default=False,
    ),
]
Constraint = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="'KEY <= LIMIT'",
        help="A limit of another output: 'latency <= 0.2' for a key of the last JSON line, or "
        "'regex:PATTERN >= 3'.",
        show_default=False,
    ),
]
Minimize = Annotated[
    list[str] | None,
    typer.Option(
        "--minimize",
        metavar="KEY",
        help="An output to minimize, a key of the last JSON line or 'regex:PATTERN'; two or three "
        "of these and of --maximize are objectives of which a front is sought.",
        show_default=False,
    ),
]
Maximize = Annotated[
    list[str] | None,
    typer.Option("--maximize", metavar="KEY", help="An output to maximize.", show_default=False),
]
Fix = Annotated[
    list[str] | None,
    typer.Option(
        "--fix",
        metavar="NAME=VALUE",
        help="A parameter that is given this time; the others are chosen for it.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def main() -> None:
    """Run the command line; a refused request ends with one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the encoding may lack a letter
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except RefusalError as refusal:
        print(printable(f"stoic: {refusal}"), file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        # A closed terminal takes no summary: the trial is stored, and the exit code the signal's
        if error.errno != errno.EIO or not _hung_up():
            raise
        sys.exit(128 + signal.SIGHUP)


def _hung_up() -> bool:
    """Return True if the terminal was closed; then discard all further output."""
    nowhere, closed = os.open(os.devnull, os.O_WRONLY), False
    for stream in (1, 2):
        # A terminal that was closed is still a device, and no terminal to isatty
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            os.dup2(nowhere, stream)
            closed = True
    return closed


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"stoic {version('stoic')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
