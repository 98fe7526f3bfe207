"""Command that measures the best settings of a study again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stoic.cli.options import argument, command, option
from stoic.cli.studies import Place
from stoic.cli.tuning import carry_out
from stoic.refusal import RefusalError

_MISSING = (
    "Which program measures a setting is missing: give the study file, or after -- the command "
    "with {NAME} where a parameter goes."
)


@command(
    what=argument(
        "STUDY.toml | [STUDY] -- COMMAND...",
        "A study file; or the name of a study and, after --, the command.",
    ),
    trials=option("Confirming measurements altogether, at most.", "--trials", "-n"),
)
def confirm(
    *,
    what: list[str] | None,
    trials: int = 10,
    study_name: str | None,
    storage: str | None,
    storage_class: str | None,
    timeout: float | None,
    value: str | None,
    repeats: int | None,
) -> None:
    """Measure the settings of a study that may be the best again.

    Of any study, whatever sampler made it. Each measurement is an ordinary trial
    at a setting that was tried, where it decides most. It ends when the answer
    is settled, and says with which probability the recommended setting is the
    best of those tried, and by how much it may be worse.

    stoic confirm oven --trials 10 -- python bake.py {heat}
    """
    from optuna.study import get_all_study_names

    from stoic.tuning.request import from_file, from_study, of_options

    if trials < 1:
        raise RefusalError(f"--trials must be at least 1, got {trials}.")
    given = of_options(
        {
            "study_name": study_name, "storage": storage, "timeout": timeout, "value": value,
            "confirm": trials, "repeats": repeats,
        }
    )  # fmt: skip
    place = Place(None, study_name, storage, storage_class)
    if what and len(what) == 1 and what[0].endswith(".toml"):
        request = from_file(Path(what[0]), given)
        Place(None, request.name, request.storage, storage_class).load(only_read=True)
    elif words := list(what or ()):
        if study_name is None:
            names = get_all_study_names(place.open())
            # The name of a study, or the program, if there is only one study
            if words[0] in names:
                place = replace(place, study_name=words.pop(0))
            elif len(names) > 1:
                raise RefusalError(
                    f"There is no study {words[0]!r} in the storage; it holds {', '.join(names)}."
                )
        if not words:
            raise RefusalError(_MISSING)
        # For its parameters alone: carry_out opens the storage once more, to write
        request = from_study(place.load(only_read=True), words, given)
    else:
        raise RefusalError(_MISSING)
    # No further trials of the search: as many as there are.
    carry_out(replace(request, trials=0), storage_class, 60.0, keep_going=False)
