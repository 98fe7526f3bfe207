"""Commands that run a study."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stoic.cli.app import (
    Constraint,
    Fix,
    Margin,
    Maximize,
    Minimize,
    Param,
    PolicyName,
    Possible,
    Power,
    Probe,
    Radius,
    RecipeText,
    Repeats,
    StorageClass,
    StorageUrl,
    StudyName,
    Threshold,
    Timeout,
    Tolerance,
    Value,
    WarmStart,
    app,
)
from stoic.cli.printing import note
from stoic.cli.studies import parse, settings, silence_optuna, written
from stoic.printable import printable

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from stoic.tuning.request import Request


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
    param: Param = None,
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
    minimize: Minimize = None,
    maximize: Maximize = None,
    timeout: Timeout = None,
    value: Value = None,
    intermediate: Annotated[
        str | None,
        typer.Option(
            "--intermediate",
            metavar="RULE",
            help="Where intermediate values are, in lines of their own, as they come: "
            "regex:PATTERN or json:KEY.",
            show_default=False,
        ),
    ] = None,
    pruner: Annotated[
        str | None,
        typer.Option(
            "--pruner",
            help="What stops a trial by its intermediate values: stoic (the default), median, "
            "hyperband or none.",
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
    recipe: RecipeText = None,
    failed: Annotated[
        list[str] | None,
        typer.Option(
            "--failed",
            metavar="ENDING=KIND",
            help="What a failure means: 'exit 3=infeasible', 'timeout=bad', 'signal=transient'.",
            show_default=False,
        ),
    ] = None,
    threshold: Threshold = None,
    margin: Margin = None,
    tolerance: Tolerance = None,
    policy: PolicyName = None,
    radius: Radius = None,
    p: Power = None,
    probe: Probe = None,
    possible: Possible = None,
    constraint: Constraint = None,
    warm_start: WarmStart = None,
    fix: Fix = None,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Go on, too, if the first five trials all fail."),
    ] = False,
    confirm: Annotated[
        int | None,
        typer.Option(
            "--confirm",
            metavar="K",
            help="Measure the settings that may be the best again at the end, up to K times "
            "altogether.",
            show_default=False,
        ),
    ] = None,
    repeats: Repeats = None,
    until_settled: Annotated[
        str | None,
        typer.Option(
            "--until-settled",
            metavar="AMOUNT",
            help="Stop the search when more trials can gain less than that: a number, or noise "
            "for the noise's standard deviation.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option("--workers", metavar="N", help="Processes on this machine that share it."),
    ] = 1,
    patience: Annotated[
        float, typer.Option("--patience", help="Seconds to wait for a locked SQLite file.")
    ] = 60.0,
) -> None:
    """Tune a program whose results may lie.

    Runs the program once a trial, without a shell, with the parameters in its
    arguments. Run it again to resume; run it several times at once to share the
    work. A non-zero exit, a timeout, nan or no value is a failed trial, never a
    made-up number. For example:

    stoic tune --param 'lr=float(1e-5, 1e-1, log)' -- python train.py --lr {lr}

    With tolerances, looks for settings whose value stays good when they are
    moved. A program whose last line is JSON may say beside its value what was
    run instead, and how noisy the value is; with --value json:loss:
    {"loss": 0.3, "executed": {"heat": 61.2}, "standard_error": 0.02}

    With --maximize accuracy --minimize size, or more of these, looks for the
    settings where neither can get better without the other getting worse.
    """
    from stoic.integrations.optuna.possible import PossibleValues
    from stoic.tuning.constraint import parse_constraints
    from stoic.tuning.ending import read_amount
    from stoic.tuning.failure import parse_assignments
    from stoic.tuning.objectives import parse_objectives
    from stoic.tuning.request import aim_arguments

    request = parse(
        what or [],
        param or [],
        settings(
            name=study_name,
            storage=storage,
            direction=direction,
            trials=trials,
            timeout=timeout,
            value=value,
            intermediate=intermediate,
            pruner=pruner,
            seed=seed,
            startup=startup,
            failures=parse_assignments(failed or []),
            aim=aim_arguments(
                tolerance or [],
                threshold=threshold,
                margin=margin,
                policy=policy,
                radius=radius,
                p=p,
                probe=probe,
            ),
            fixed=tuple(fix or ()),
            recipe=written(recipe),
            possible=PossibleValues.of(possible),
            constraints=parse_constraints(constraint) if constraint else None,
            objectives=parse_objectives(minimize, maximize) or None,
            warm_start=warm_start,
            confirm=confirm,
            repeats=repeats,
            until_settled=None if until_settled is None else read_amount(until_settled),
        ),
    )
    carry_out(request, storage_class, patience, keep_going, workers)


def carry_out(
    request: Request,
    storage_class: str | None,
    patience: float,
    keep_going: bool = True,
    workers: int = 1,
) -> None:
    """Run a request, print the summary, and exit with its code.

    Several ``workers`` are processes with the command line of this one.
    """
    silence_optuna()
    from rich.console import Console
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from stoic.integrations.optuna.confirming import confirmations
    from stoic.tuning.campaign import (
        HopelessError,
        notes,
        open_request,
        run_request,
    )
    from stoic.tuning.storage import in_one_sentence, patiently, shown
    from stoic.tuning.views.display import display
    from stoic.tuning.views.summary import Summary
    from stoic.tuning.workers import alone, check_workers, run_workers

    check_workers(workers, request.storage)
    # Matrices are small: a second thread only waits, above all with several workers on the machine.
    threadpool_limits(limits=1, user_api="blas")
    study, method = open_request(request, storage_class, patience)
    for said in patiently(lambda: notes(study, request, method), "Could not read the study"):
        note(f"note: {said}")

    def stored() -> list[FrozenTrial]:
        return patiently(lambda: study.get_trials(deepcopy=False), "Could not read the study")

    def searched(trials: list[FrozenTrial]) -> int:
        return sum(t.state.is_finished() for t in trials) - confirmations(trials)

    before, signal, hopeless = stored(), None, None
    failed: list[int] = []  # exit codes of workers
    confirmed = confirmations(before)
    stand = f"{searched(before)} of {request.trials} trials are finished"
    if not request.trials:  # to confirm what was found
        stand = f"{confirmed} of {request.ending.confirm} measurements are taken"
    print(printable(f"study {study.study_name} in {shown(request.storage)}: {stand}"), flush=True)
    if workers > 1:
        method.record(study)  # before any of them chooses
        stop, codes = run_workers(workers, alone(sys.argv[1:]), _say)
        signal, failed = stop.signal, [code for code in codes if code]
    else:
        with display(Console(), request.trials + request.ending.confirm) as observer:
            try:
                signal = run_request(study, request, method, observer, keep_going)
            except HopelessError as error:
                hopeless = error
    if request.ending.until_settled is not None and signal is None and hopeless is None:
        trials = stored()
        count = searched(trials)
        if count < request.trials and request.ending.settled(study, trials):
            least = request.ending.until_settled
            print(
                f"settled after {count} of {request.trials} trials: more of them are expected "
                f"to gain less than {'the noise' if least == 'noise' else least}"
            )
    if signal is not None:
        print(f"stopped by signal {signal}; run the same command again to resume")
    with in_one_sentence("Could not read the study"):
        summary = Summary.of(study, method.recipe)
    print(summary.text())
    if hopeless is not None:
        note(f"stoic: {hopeless}")
    if failed and signal is None:
        codes_said = ", ".join(map(str, sorted(set(failed))))
        note(f"stoic: {len(failed)} of {workers} workers failed, with exit code {codes_said}.")
    elif signal is None and hopeless is None and len(stored()) == len(before):
        anew = ", --study-name begins anew" * bool(request.trials)
        more = 2 * (request.trials or request.ending.confirm)
        note(f"Nothing was left to do: --trials {more} goes on{anew}.")
    if signal is not None:
        raise typer.Exit(128 + signal)  # as shells have it
    missing = bool(failed) and searched(stored()) < request.trials
    if summary.explanation is None or hopeless is not None or missing:
        raise typer.Exit(1)


def _say(line: str, error: bool) -> None:
    """Print a line of a worker."""
    print(line, file=sys.stderr if error else sys.stdout, flush=True)
