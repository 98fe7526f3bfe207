"""The command line: parse, call, print. Everything heavy is imported inside its command."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stoic.refusal import Refusal

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage

    from stoic.tuning.request import Request, Settings

app = typer.Typer(
    name="stoic",
    help="Bayesian optimization that keeps working when its data lie.",
    no_args_is_help=True,
    add_completion=False,
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
Which = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]",
        help="A study file or the name of a study; not needed if the storage holds only one.",
        show_default=False,
    ),
]
Format = Annotated[
    str, typer.Option("--format", "-f", help="Output format: value, json, table or yaml.")
]
Flatten = Annotated[bool, typer.Option("--flatten", help="Flatten nested columns such as params.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def main() -> None:
    """Run the command line; a request that is refused is one sentence and exit code 2."""
    try:
        app()
    except Refusal as refusal:
        print(f"stoic: {refusal}", file=sys.stderr)
        sys.exit(2)


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


@app.command()
def tune(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY.toml | -- COMMAND...",
            help="A study file; or, after --, a command with {NAME} where a parameter goes.",
            show_default=False,
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=RANGE",
            help="A parameter: 'lr=float(1e-5, 1e-1, log)', 'n=int(1, 10)', 'k=choice(a, b)'.",
            show_default=False,
        ),
    ] = None,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    direction: Annotated[
        str | None,
        typer.Option("--direction", help="minimize (the default) or maximize.", show_default=False),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            "-n",
            help="Finished trials the study shall have altogether, failed ones and those of "
            "earlier runs and other workers included; 50 if not said.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", help="Seconds a trial may take; then it is stopped and failed."),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            "--value",
            help="Where the value is in the standard output: last-line (the default), "
            "regex:PATTERN (group 1 of the last match) or json:KEY (of the last JSON line).",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the sampler.")] = None,
    startup: Annotated[
        int | None,
        typer.Option(
            "--startup",
            help="Quasi-random trials before the model decides; 10 if not said.",
            show_default=False,
        ),
    ] = None,
    failed: Annotated[
        list[str] | None,
        typer.Option(
            "--failed",
            metavar="ENDING=KIND",
            help="What a failure means: 'exit 3=infeasible', 'timeout=bad', 'signal=transient'.",
            show_default=False,
        ),
    ] = None,
    patience: Annotated[
        float, typer.Option("--patience", help="Seconds to wait for a locked SQLite file.")
    ] = 60.0,
) -> None:
    """Tune a program whose results may lie.

    Runs the program once a trial, without a shell, with the parameters in its
    arguments. Run it again to resume; run it several times at once to share the
    work. A non-zero exit, a timeout, nan or no value is a failed trial, never a
    made-up number.
    """
    from stoic.tuning.failure import parse_assignments

    request = _parse(
        what or [],
        param or [],
        _settings(
            name=study_name,
            storage=storage,
            direction=direction,
            trials=trials,
            timeout=timeout,
            value=value,
            seed=seed,
            startup=startup,
            failures=parse_assignments(failed or []),
        ),
    )
    _quiet()
    from rich.console import Console
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from stoic.tuning.campaign import earlier_command, open_request, run_request
    from stoic.tuning.display import display
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.summary import Summary

    # Small matrices: a second thread only waits, above all when several workers share the machine.
    threadpool_limits(limits=1, user_api="blas")
    study = open_request(request, storage_class, patience)
    earlier = earlier_command(study, request)
    if earlier is not None:
        print(f"note: earlier trials of this study ran another command: {earlier}", file=sys.stderr)
    with display(Console(), request.trials) as observer:
        signal = run_request(study, request, observer)
    if signal is not None:
        print(f"stopped by signal {signal}; run the same command again to resume")
    with in_one_sentence("Could not read the study"):
        summary = Summary.of(study)
    print(summary.text())
    if signal is not None:
        raise typer.Exit(128 + signal)
    if summary.explanation is None:
        raise typer.Exit(1)


@app.command()
def show(
    what: Which = None,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    json: Json = False,
) -> None:
    """Print what a study has come to: observed best, recommended, distrusted, failed."""
    study = _look_at_one(what, study_name, storage, storage_class)
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.summary import Summary

    with in_one_sentence("Could not read the study"):
        summary = Summary.of(study)
    print(_json(summary.record()) if json else summary.text())


@app.command()
def trust(
    what: Which = None,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE.png", help="Draw them over time, too.", show_default=False
        ),
    ] = None,
    form: Format = "table",
    json: Json = False,
) -> None:
    """Print which results are distrusted, how much and why.

    One line for each complete trial, distrusted ones first: what was told, what
    all other trials make one expect there (with its standard deviation), how far
    off that is in standard deviations of such a result, the plateau within which
    a result is believed entirely, and the trust from 0 to 1.
    """
    _check_format(form)
    from stoic.tuning.records import render
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.trust import Trust, check_picture

    if plot is not None:
        check_picture(plot)
    study = _look_at_one(what, study_name, storage, storage_class)
    with in_one_sentence("Could not read the study"):
        judged = Trust.of(study)
    if plot is not None:  # first: the table may go to a pipe that is closed early
        judged.plot(plot)
        print(f"Wrote {plot}.", file=sys.stderr)
    if json:
        print(_json(judged.record()))
    else:
        print(render(judged.lines() if form == "table" else judged.records(), form))


@app.command()
def report(
    what: Which = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.html", help="Where to write the page.")
    ] = Path("report.html"),
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
) -> None:
    """Write a page for a browser: history, trust, model, distrusted, failed.

    Everything is in the one file, so it opens offline.
    """
    study = _look_at_one(what, study_name, storage, storage_class)
    from stoic.tuning.report import Report
    from stoic.tuning.storage import in_one_sentence

    with in_one_sentence("Could not read the study"):
        judged = Report.of(study)
    judged.write(out)
    print(f"Wrote {out}.")


@app.command("create-study")
def create_study(
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    direction: Annotated[
        str, typer.Option("--direction", help="minimize or maximize.")
    ] = "minimize",
    skip_if_exists: Annotated[
        bool, typer.Option("--skip-if-exists", help="A study of that name is no error.")
    ] = False,
) -> None:
    """Create a study, and print its name."""
    _quiet()
    import optuna

    from stoic.tuning.request import check_direction
    from stoic.tuning.storage import in_one_sentence

    checked = check_direction(direction)
    opened = _open(storage, storage_class, create=True)
    try:
        with in_one_sentence("Could not create the study"):
            study = optuna.create_study(
                storage=opened,
                study_name=study_name,
                direction=checked,
                load_if_exists=skip_if_exists,
            )
    except optuna.exceptions.DuplicatedStudyError as error:
        raise Refusal(
            f"There is a study {study_name!r} already: give another name or --skip-if-exists."
        ) from error
    print(study.study_name)


@app.command()
def ask(
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    search_space: Annotated[
        str | None,
        typer.Option(
            "--search-space",
            help="JSON object: name of a parameter -> 'float(0, 1)', or Optuna's JSON for a "
            "distribution; if not given, the space the study was begun with.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the sampler.")] = None,
    startup: Annotated[
        int, typer.Option("--startup", help="Quasi-random trials before the model decides.")
    ] = 10,
    form: Format = "json",
    flatten: Flatten = False,
) -> None:
    """Create a trial and print its number and parameters; end it with `stoic tell`."""
    _quiet()
    from stoic.tuning.space import parse_json

    _check_format(form)
    space = None if search_space is None else parse_json(search_space)
    from stoic.integrations.optuna import StoicSampler
    from stoic.tuning.records import render
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.study import known_space

    sampler = StoicSampler(seed=seed, n_startup_trials=startup)
    study = _load(storage, storage_class, study_name, sampler)
    with in_one_sentence("Could not create a trial"):
        trial = study.ask(known_space(study) or {} if space is None else space)
    print(render({"number": trial.number, "params": dict(trial.params)}, form, flatten))


@app.command()
def tell(
    trial_number: Annotated[int, typer.Option("--trial-number", help="Number of the trial.")],
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    values: Annotated[
        float | None,
        typer.Option("--values", help="Objective value; nan is a failed trial."),
    ] = None,
    state: Annotated[str | None, typer.Option("--state", help="complete, pruned or fail.")] = None,
    failed: Annotated[
        str | None,
        typer.Option("--failed", metavar="KIND", help="It is: transient, infeasible or bad."),
    ] = None,
    skip_if_finished: Annotated[
        bool, typer.Option("--skip-if-finished", help="A finished trial is no error.")
    ] = False,
) -> None:
    """End a trial that was made by `stoic ask`, with a value or as failed."""
    _quiet()
    from stoic.tuning.failure import parse_kind
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.study import tell_number

    if values is None and state is None and failed is None:
        raise Refusal("There is nothing to tell: give --values, --state or --failed.")
    if state not in (None, "complete", "pruned", "fail"):
        raise Refusal(f"state must be complete, pruned or fail, got {state!r}.")
    kind = None if failed is None else parse_kind(failed, "failed")
    study = _load(storage, storage_class, study_name)
    with in_one_sentence(f"Could not tell trial {trial_number}"):
        told = tell_number(study, trial_number, values, state, skip_if_finished, kind)
    print(f"trial {told.number} is {told.state.name.lower()}")


@app.command()
def trials(
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    form: Format = "table",
    flatten: Flatten = False,
) -> None:
    """List the trials of a study."""
    _quiet()
    _check_format(form)
    from stoic.tuning.records import render, trial_record
    from stoic.tuning.storage import in_one_sentence

    study = _look_at(storage, storage_class, study_name)
    with in_one_sentence("Could not read the trials"):
        records = [trial_record(trial) for trial in study.trials]
    print(render(records, form, flatten))


@app.command("best-trial")
def best_trial(
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    form: Format = "table",
    flatten: Flatten = False,
) -> None:
    """Print the observed best trial, and beside it the recommended one."""
    _quiet()
    _check_format(form)
    from stoic.tuning.records import best_records, render
    from stoic.tuning.storage import in_one_sentence

    study = _look_at(storage, storage_class, study_name)
    with in_one_sentence("Could not read the trials"):
        records = best_records(study, form)
    print(render(records, form, flatten))


@app.command("list")
def list_figures() -> None:
    """List the figures that can be reproduced."""
    from stoic.experiments import catalogue

    figures = list(catalogue())
    width = max((len(figure.name) for figure in figures), default=0)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.title}")


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="Name of a figure, see stoic list.")],
    trials: Annotated[
        int | None, typer.Option("--trials", help="Independent runs for each method.")
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Rounds of each run.")] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", help="Processes; one per processor if not said.", show_default=False
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The first seed.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The table that a figure of real data is made of, or its directory.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Directory for the picture and the numbers.")
    ] = Path("results"),
    backend: Annotated[
        str, typer.Option("--backend", help="Where it runs: local, dask or ray.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            help="Scheduler of the cluster; if not said, one is started here.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a figure of a paper: picture, numbers, and whether the paper's claims hold."""
    from stoic.experiments import reproduce
    from stoic.experiments.sweep import check_backend

    reproduce(
        name,
        trials=trials,
        rounds=rounds,
        jobs=jobs,
        seed=seed,
        data=data,
        out=out,
        json=json,
        backend=check_backend(backend),
        address=address,
    )


@app.command()
def bounds(
    kernel: Annotated[str, typer.Option("--kernel", help="linear, se or matern.")],
    dim: Annotated[int, typer.Option("--dim", help="Dimensions of the domain.")],
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds T of the campaign.")],
    budget: Annotated[
        str,
        typer.Option("--budget", help="Largest sum C of absolute corruptions; or unknown."),
    ] = "unknown",
    nu: Annotated[
        float | None, typer.Option("--nu", help="Smoothness, for a matern kernel.")
    ] = None,
    norm: Annotated[float, typer.Option("--norm", help="Largest norm B of the objective.")] = 1.0,
    json: Json = False,
) -> None:
    """Print what the methods against corrupted results promise: orders of their regret.

    Constants and logarithms are left out, but for those with the dimension in
    their exponent. Corruption up to what is free of charge costs no more than
    a constant factor.
    """
    from stoic.theory import Family, records

    try:
        C = None if budget == "unknown" else float(budget)
    except ValueError as error:
        raise Refusal(f"The budget is a number or unknown, got {budget!r}.") from error
    rows = records(Family(kernel, dim, nu), rounds, C, norm)
    if json:
        asked = {"kernel": kernel, "nu": nu, "dim": dim, "rounds": rounds, "norm": norm}
        print(_json({**asked, "budget": "unknown" if C is None else C, "bounds": rows}))
        return
    _print_table(
        ("method", "order of the regret", "value", "sublinear", "free of charge"),
        [
            (
                str(row["method"]),
                str(row["order"]),
                f"{row['value']:.3g}" + " (trivial)" * bool(row["trivial"]),
                "no" if row["tolerance"] is None else f"C < T^{row['tolerance']:.3g}",
                f"C < {row['free']} = {row['free_value']:.3g}",
            )
            for row in rows
        ],
    )


def _parse(what: list[str], param: list[str], settings: Settings) -> Request:
    from stoic.tuning.request import from_file, from_options

    if len(what) == 1 and what[0].endswith(".toml"):
        if param:
            raise Refusal("A study file has its own parameters: leave out --param.")
        return from_file(Path(what[0]), settings)
    return from_options(param, what, settings)


def _settings(**said: Any) -> Settings:
    from stoic.tuning.request import Settings

    return Settings(**said)


def _open(storage: str | None, kind: str | None, *, create: bool) -> BaseStorage:
    from stoic.tuning.storage import open_storage, storage_url

    return open_storage(storage_url(storage), create=create, kind=kind)


def _load(
    storage: str | None, kind: str | None, name: str | None, sampler: BaseSampler | None = None
) -> Study:
    """A study to ask or to tell."""
    _quiet()
    from stoic.tuning.study import load_study

    return load_study(_open(storage, kind, create=False), name, sampler)


def _look_at(storage: str | None, kind: str | None, name: str | None) -> Study:
    """A study that is only read."""
    _quiet()
    from stoic.tuning.storage import open_storage, storage_url
    from stoic.tuning.study import load_study

    opened = open_storage(storage_url(storage), create=False, kind=kind, only_read=True)
    return load_study(opened, name)


def _look_at_one(
    what: str | None, name: str | None, storage: str | None, kind: str | None
) -> Study:
    """The study of a study file, or of a name, to be read."""
    if what is not None and what.endswith(".toml"):
        from stoic.tuning.request import from_file

        request = from_file(Path(what), _settings(storage=storage, name=name))
        return _look_at(request.storage, kind, request.name)
    return _look_at(storage, kind, what or name)


def _quiet() -> None:
    """Optuna reports every trial and every experimental part; here that is said otherwise."""
    import warnings

    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


def _check_format(form: str) -> None:
    from stoic.tuning.records import FORMATS

    if form not in FORMATS:
        raise Refusal(f"format must be {', '.join(FORMATS)}, got {form!r}.")


def _print_table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table that fits the terminal; elsewhere plain columns, nothing cut."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        for row in (headings, *rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
        return
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        grid.add_column(heading)
    for row in rows:
        grid.add_row(*map(Text, row))
    console.print(grid)


def _json(record: dict[str, Any]) -> str:
    import json

    return json.dumps(_sayable(record), indent=2, default=str, allow_nan=False)


def _sayable(value: Any) -> Any:
    """nan and infinities, which JSON cannot say, as text: what float() reads."""
    if isinstance(value, dict):
        return {key: _sayable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
