"""Command that measures the best settings of a study again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from stoic.cli.app import Repeats, StorageClass, StorageUrl, StudyName, Timeout, Value, app
from stoic.cli.studies import load, open_store, settings
from stoic.cli.tuning import carry_out
from stoic.refusal import RefusalError

_MISSING = (
    "Which program measures a setting is missing: give the study file, or after -- the command "
    "with {NAME} where a parameter goes."
)


@app.command()
def confirm(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY.toml | [STUDY] -- COMMAND...",
            help="A study file; or the name of a study and, after --, the command.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        int,
        typer.Option("--trials", "-n", help="Confirming measurements altogether, at most."),
    ] = 10,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    timeout: Timeout = None,
    value: Value = None,
    repeats: Repeats = None,
) -> None:
    """Measure the settings of a study that may be the best again.

    Of any study, whatever sampler made it. Each measurement is an ordinary trial
    at a setting that was tried, where it decides most. It ends when the answer
    is settled, and says with which probability the recommended setting is the
    best of those tried, and by how much it may be worse.

    stoic confirm oven --trials 10 -- python bake.py {heat}
    """
    from optuna.study import get_all_study_names

    from stoic.tuning.request import from_file, from_study

    if trials < 1:
        raise RefusalError(f"--trials must be at least 1, got {trials}.")
    given = settings(
        name=study_name,
        storage=storage,
        timeout=timeout,
        value=value,
        confirm=trials,
        repeats=repeats,
    )
    if what and len(what) == 1 and what[0].endswith(".toml"):
        request = from_file(Path(what[0]), given)
        study = load(None, request.name, request.storage, storage_class, only_read=True)
    elif command := list(what or ()):
        if study_name is None:
            store = open_store(storage, storage_class, create=False)
            names = get_all_study_names(store)
            # The name of a study, or the program, if there is only one study
            if command[0] in names:
                study_name = command.pop(0)
            elif len(names) > 1:
                raise RefusalError(
                    f"There is no study {command[0]!r} in the storage; it holds {', '.join(names)}."
                )
        if not command:
            raise RefusalError(_MISSING)
        # For its parameters alone: carry_out opens the storage once more, to write
        study = load(None, study_name, storage, storage_class, only_read=True)
        request = from_study(study, command, given)
    else:
        raise RefusalError(_MISSING)
    # No further trials of the search: as many as there are.
    carry_out(replace(request, trials=0), storage_class, 60.0, keep_going=False)
