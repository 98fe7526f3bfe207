"""Commands for single studies and trials, as Optuna has them."""

from __future__ import annotations

from typing import Annotated

import typer

from stoic.cli.app import (
    Fix,
    Flatten,
    Format,
    RecipeText,
    StorageClass,
    StorageUrl,
    StudyName,
    app,
)
from stoic.cli.printing import check_format, note
from stoic.cli.studies import given, load, look_at, look_with, open_store, quiet, written
from stoic.printable import printable
from stoic.refusal import Refusal


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
    quiet()
    import optuna

    from stoic.tuning.request import check_direction
    from stoic.tuning.storage import in_one_sentence

    checked = check_direction(direction)
    opened = open_store(storage, storage_class, create=True)
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
    print(printable(study.study_name))


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
    recipe: RecipeText = None,
    fix: Fix = None,
    form: Format = "json",
    flatten: Flatten = False,
) -> None:
    """Create a trial and print its number and parameters; end it with `stoic tell`.

    If the study was begun with tolerances or a recipe, they count here too.
    """
    quiet()
    from stoic.tuning.space import parse_json

    check_format(form)
    space = None if search_space is None else parse_json(search_space)
    from stoic.integrations.recipe import DEFAULT
    from stoic.tuning.campaign import ask_for
    from stoic.tuning.method import Method
    from stoic.tuning.records import render
    from stoic.tuning.storage import in_one_sentence

    study, said = load(storage, storage_class, study_name), written(recipe)
    for replaced in Method(recipe=said or DEFAULT).replaces(study):
        note(f"note: {replaced}")
    with in_one_sentence("Could not create a trial"):
        trial = ask_for(study, space, seed, startup, fix or [], said)
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
        typer.Option(
            "--failed", metavar="KIND", help="End it as failed: transient, infeasible or bad."
        ),
    ] = None,
    executed: Annotated[
        list[str] | None,
        typer.Option(
            "--executed",
            metavar="NAME=VALUE",
            help="What a parameter was run as, if not as it was asked.",
            show_default=False,
        ),
    ] = None,
    standard_error: Annotated[
        float | None,
        typer.Option("--standard-error", help="Of the value, above 0.", show_default=False),
    ] = None,
    skip_if_finished: Annotated[
        bool, typer.Option("--skip-if-finished", help="A finished trial is no error.")
    ] = False,
) -> None:
    """End a trial that was made by `stoic ask`, with a value or as failed."""
    quiet()
    from stoic.integrations.executed import noise_of
    from stoic.tuning.failure import parse_kind
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.study import tell_number

    if values is None and state is None and failed is None:
        raise Refusal("There is nothing to tell: give --values, --state or --failed.")
    if state not in (None, "complete", "pruned", "fail"):
        raise Refusal(f"state must be complete, pruned or fail, got {state!r}.")
    kind = None if failed is None else parse_kind(failed, "failed")
    noise = noise_of(standard_error)
    if standard_error is not None and noise is None:
        raise Refusal(f"standard-error must be a number above 0, got {standard_error:g}.")
    study = load(storage, storage_class, study_name)
    with in_one_sentence(f"Could not tell trial {trial_number}"):
        ended = tell_number(
            study, trial_number, values, state, skip_if_finished, kind, executed or [], noise
        )
    print(f"trial {ended.number} is {ended.state.name.lower()}")


@app.command()
def trials(
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    form: Format = "table",
    flatten: Flatten = False,
) -> None:
    """List the trials of a study."""
    quiet()
    check_format(form)
    from stoic.tuning.records import render, trial_record
    from stoic.tuning.storage import in_one_sentence

    study = look_at(storage, storage_class, study_name)
    with in_one_sentence("Could not read the trials"):
        records = [trial_record(trial) for trial in study.trials]
    print(render(records, form, flatten))


@app.command("best-trial")
def best_trial(
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    recipe: RecipeText = None,
    fix: Fix = None,
    form: Format = "table",
    flatten: Flatten = False,
) -> None:
    """Print the observed best trial, and beside it the recommended one.

    With --fix, of the trials with these values.
    """
    quiet()
    check_format(form)
    from stoic.tuning.records import best_records, render
    from stoic.tuning.storage import in_one_sentence

    study = look_at(storage, storage_class, study_name)
    with in_one_sentence("Could not read the trials"):
        records = best_records(study, form, look_with(study, recipe), given(study, fix))
    print(render(records, form, flatten))
