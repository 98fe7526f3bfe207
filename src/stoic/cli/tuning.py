"""Commands that run a study."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stoic.cli.options import argument, command
from stoic.cli.printing import note
from stoic.cli.studies import silence_optuna
from stoic.printable import printable
from stoic.refusal import RefusalError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from stoic.tuning.request import Request


@command(
    what=argument(
        "STUDY.toml | -- COMMAND...",
        "A study file; or, after --, a command with {NAME} where a parameter goes.",
    )
)
def tune(
    *,
    context: typer.Context,
    what: list[str] | None,
    param: list[str] | None,
    study_name: str | None,
    storage: str | None,
    storage_class: str | None,
    direction: str | None,
    trials: int | None,
    minimize: list[str] | None,
    maximize: list[str] | None,
    timeout: float | None,
    value: str | None,
    intermediate: str | None,
    pruner: str | None,
    seed: int | None,
    startup: int | None,
    recipe: str | None,
    failed: list[str] | None,
    threshold: str | None,
    margin: float | None,
    tolerance: list[str] | None,
    policy: str | None,
    radius: float | None,
    p: float | None,
    probe: bool | None,
    possible: tuple[float, float] | None,
    constraint: list[str] | None,
    warm_start: list[str] | None,
    fix: list[str] | None,
    keep_going: bool,
    confirm: int | None,
    repeats: int | None,
    until_settled: str | None,
    workers: int = 1,
    patience: float = 60.0,
) -> None:
    """Tune a program whose results may lie.

    Runs the program once a trial, without a shell, with the parameters in its
    arguments. Run it again to resume; run it several times at once to share the
    work. A non-zero exit, a timeout, nan or no value is a failed trial, never a
    made-up number; without a value but with a constraint that is violated it is
    a pruned one. For example:

    stoic tune --param 'lr=float(1e-5, 1e-1, log)' -- python train.py --lr {lr}

    With tolerances, looks for settings whose value stays good when they are
    moved. A program whose last line is JSON may say beside its value what was
    run instead, and how noisy the value is; with --value json:loss:
    {"loss": 0.3, "executed": {"heat": 61.2}, "standard_error": 0.02}

    With --maximize accuracy --minimize size, or more of these, looks for the
    settings where neither can get better without the other getting worse.
    """
    from stoic.tuning.request import from_file, from_options, of_options

    given, words = of_options(context.params), list(what or ())
    if len(words) != 1 or not words[0].endswith(".toml"):
        request = from_options(param or [], words, given)
    elif param:
        raise RefusalError("A study file has its own parameters: leave out --param.")
    else:
        request = from_file(Path(words[0]), given)
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
    from stoic.tuning.campaign import HopelessError, notes, open_request, run_request
    from stoic.tuning.explaining import explanation_of_run
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
    least = request.ending.until_settled
    if least is not None and signal is None and hopeless is None:
        trials = stored()
        count = searched(trials)
        if count < request.trials and request.ending.settled(study, trials):
            print(
                f"settled after {count} of {request.trials} trials: more of them are expected "
                f"to gain less than {'the noise' if least == 'noise' else least}"
            )
    if signal is not None:
        print(f"stopped by signal {signal}; run the same command again to resume")
    with in_one_sentence("Could not read the study"):
        trials = stored()
        known = explanation_of_run(study, method.recipe, request.fixed, trials)
        summary = Summary.around(study, trials, known)
    if known is not None and request.fixed.keys() - known.fixed.keys():
        note(
            "note: no setting that is known to be good has what was given: this is the whole study."
        )
    print(summary.text())
    if hopeless is not None:
        note(f"stoic: {hopeless}")
    if signal is not None:
        raise typer.Exit(128 + signal)  # as shells have it
    now = stored()
    if failed:
        codes_said = ", ".join(map(str, sorted(set(failed))))
        note(f"stoic: {len(failed)} of {workers} workers failed, with exit code {codes_said}.")
    elif hopeless is None and len(now) == len(before):
        anew = ", --study-name begins anew" * bool(request.trials)
        more = f"--trials {2 * (request.trials or request.ending.confirm)} goes on{anew}"
        if summary.settled and not request.trials:
            more = "the answer is settled"
        note(f"Nothing was left to do: {more}.")
    missing = bool(failed) and searched(now) < request.trials
    unconfirmed = not request.trials and _none_is_finite(now[len(before) :])
    if summary.empty or hopeless is not None or missing or unconfirmed:
        raise typer.Exit(1)


def _none_is_finite(trials: list[FrozenTrial]) -> bool:
    """Whether confirming trials, also those of others meanwhile, have ended without a value."""
    from stoic.integrations.optuna.confirming import confirms
    from stoic.integrations.optuna.partial import has_value

    confirming = [trial for trial in trials if confirms(trial)]
    if not confirming or not all(trial.state.is_finished() for trial in confirming):
        return False
    return not any(has_value(t) and math.isfinite(t.values[0]) for t in confirming)


def _say(line: str, error: bool) -> None:
    """Print a line of a worker."""
    print(line, file=sys.stderr if error else sys.stdout, flush=True)
