"""Commands for single studies and trials, as Optuna has them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stoic.cli.options import argument, command, option
from stoic.cli.printing import check_format, note, print_records
from stoic.cli.studies import Place, check_single, given, look_with, silence_optuna
from stoic.printable import printable
from stoic.refusal import RefusalError

if TYPE_CHECKING:
    import optuna

    from stoic.tuning.table import Table
    from stoic.tuning.views.records import Record


@command(
    "create-study",
    what=argument("NAME | STUDY.toml", "Of the study, or a study file, which needs no program."),
    from_csv=option(
        "Finished trials to begin with: a column for each parameter, and value.", metavar="FILE.csv"
    ),
    skip_if_exists=option("A study of that name is no error.", "--skip-if-exists"),
)
def create_study(
    *,
    param: list[str] | None,
    from_csv: Path | None,
    possible: tuple[float, float] | None,
    constraint: list[str] | None,
    warm_start: list[str] | None,
    place: Place,
    direction: str | None,
    minimize: list[str] | None,
    maximize: list[str] | None,
    skip_if_exists: bool,
) -> None:
    """Create a study, and print its name."""
    silence_optuna()
    import optuna

    from stoic.integrations.optuna.objectives import objective_names
    from stoic.integrations.optuna.possible import PossibleValues
    from stoic.tuning.constraint import declare_constraints, merge_constraints, parse_constraints
    from stoic.tuning.ending import Ending
    from stoic.tuning.objectives import check_direction, merge_objectives, parse_objectives
    from stoic.tuning.search import Search, StudyMethod
    from stoic.tuning.space import parse_assignments
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.study import adopt_space, name_objectives
    from stoic.tuning.table import read_table

    objectives = parse_objectives(minimize, maximize)
    if objectives and direction is not None:
        raise RefusalError("--minimize and --maximize say the direction: leave out --direction.")
    values, limits = PossibleValues.of(possible), parse_constraints(constraint or [])
    search = Search(
        space=parse_assignments(param or []),
        name=place.name,
        possible=values,
        warm_start=warm_start or (),
    )
    if (request := place.request) is not None:
        if param or constraint or warm_start or possible or objectives or direction is not None:
            raise RefusalError(
                "A study file has its own parameters, constraints and direction: leave out all but "
                "--from-csv and --skip-if-exists."
            )
        place, search, limits = place.of(request), request, request.program.constraints
        if isinstance(request.goal, str):
            direction = request.goal
        else:
            objectives = request.goal
    given = {"--possible": values, "--warm-start": search.warm_start or None}
    beside = next((option for option, value in given.items() if value is not None), None)
    if len(objectives) > 1 and beside is not None:
        raise RefusalError(f"{beside} works with one objective: leave it out.")
    directions = [each.direction for each in objectives] or [
        check_direction(direction or "minimize")
    ]
    space = search.space
    # Before the storage is opened: a table that is refused creates no file
    named = [each.name for each in objectives] if len(objectives) > 1 else []
    rows = None if from_csv is None else read_table(from_csv, space, limits, named)
    name, opened = place.name, place.open(create=True)
    method = StudyMethod.of(None, search, opened)
    method.check(space)
    try:
        with in_one_sentence("Could not create the study"):
            study = optuna.create_study(
                storage=opened,
                study_name=name,
                directions=directions,
                load_if_exists=skip_if_exists,
            )
            stored = [each.name.lower() for each in study.directions]
            if (direction is not None or objectives) and stored != directions:
                raise RefusalError(
                    f"There is a study {name!r} already, to {' and '.join(stored)}: give another "
                    "name, or the same direction."
                )
            if objectives:
                name_objectives(study, objectives)
                if len(objectives) > 1:
                    merge_objectives(study, objectives)
            if space:
                adopt_space(study, space)
            method.record(study)
            if limits:
                declare_constraints(study, merge_constraints(study, limits))
            if rows is not None and from_csv is not None:
                if skip_if_exists:  # it may have other constraints
                    limits = merge_constraints(study, limits)
                    rows = read_table(from_csv, space, limits, objective_names(study))
                new = _without_known(rows, study)
                try:
                    new.add_to(study)
                except BaseException:
                    # Only what this has created, and nobody else has added to
                    if not skip_if_exists and rows.is_cut_off(study):
                        optuna.delete_study(study_name=study.study_name, storage=opened)
                        note("Not all rows could be added, so there is no such study.")
                    raise
                note(new.summary())
    except optuna.exceptions.DuplicatedStudyError as error:
        raise RefusalError(
            f"There is a study {name!r} already: give another name or --skip-if-exists."
        ) from error
    print(printable(study.study_name))
    if request is not None and (request.ending != Ending() or request.repeats > 1):
        note(
            "note: confirm, until_settled and repeats of the file are for stoic tune; by hand, "
            "stoic ask --confirm K measures settings again."
        )
    if len(objectives) > 1:
        names = ", ".join(printable(each) for each in objective_names(study))
        note(f"note: a trial has its values in this order: {names}.")


def _ended(rows: Table, study: optuna.Study) -> Table:
    """End the running trials that rows have the numbers of; return the rows without a number."""
    from stoic.tuning.by_hand import end_running

    numbered = rows.numbered(study)
    running = {n: both for n, both in numbered.items() if not both[0].state.is_finished()}
    ended = sorted(running.keys() - rows.empty)
    for number in ended:
        end_running(study, *running[number])
    if numbered:
        left = len(running) - len(ended)
        run_on = f"; {left} without a value run on" * bool(left)
        print(f"ended {len(ended)} running trial{'s' * (len(ended) != 1)}{run_on}")
    return replace(rows, trials=tuple(row for row in rows.trials if row.number not in numbered))


def _without_known(rows: Table, study: optuna.Study) -> Table:
    """Return the rows that a study has not, and say how many it has."""
    new = rows.without(study)
    if count := len(rows.trials) - len(new.trials):
        note(
            f"note: {count} of {len(rows.trials)} rows had been read before: a trial there has the "
            "parameters and the result. What was measured again is added from a file of its own, "
            "with `stoic tell STUDY --csv FILE --repeats`."
        )
    return new


@command()
def studies(
    *, storage: str | None, storage_class: str | None, form: str = "table", json: bool
) -> None:
    """List the studies of a storage."""
    check_format(form)
    import optuna

    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.records import study_record

    opened = Place(None, None, storage, storage_class).open(only_read=True)
    with in_one_sentence("Could not read the storage"):
        records = [study_record(each) for each in optuna.get_all_study_summaries(opened)]
    print_records(records, "json" if json else form)


@command(
    "delete-study",
    what=argument("NAME", "Of the study."),
    yes=option("Do not ask.", "--yes", "-y"),
)
def delete_study(*, place: Place, yes: bool) -> None:
    """Delete a study with all its trials."""
    import optuna

    from stoic.tuning.storage import in_one_sentence

    name = place.name
    if name is None:
        raise RefusalError("Which study is to be deleted is missing: stoic delete-study NAME.")
    opened = place.open()
    with in_one_sentence("Could not delete the study"):
        summaries = {each.study_name: each for each in optuna.get_all_study_summaries(opened)}
        if name not in summaries:
            names = ", ".join(summaries) or "none"
            raise RefusalError(f"There is no study {name!r} in the storage; it holds {names}.")
        count = summaries[name].n_trials
        if not yes:
            typer.confirm(f"Delete {printable(name)} with {count} trials?", abort=True, err=True)
        optuna.delete_study(study_name=name, storage=opened)
    print(f"deleted {printable(name)} with {count} trials")


@command(
    search_space=option(
        "JSON object: name of a parameter -> 'float(0, 1)', or Optuna's JSON for a "
        "distribution: all parameters of this trial; if not given, those of the study."
    ),
    trials=option("Number of trials, a batch.", "--trials", "-n"),
    confirm=option(
        "Measure the settings that may be the best again, as long as the study has fewer such "
        "trials and the answer is not settled.",
        metavar="K",
    ),
)
def ask(
    *,
    param: list[str] | None,
    place: Place,
    search_space: str | None,
    seed: int | None,
    startup: int | None,
    recipe: str | None,
    fix: list[str] | None,
    confirm: int = 0,
    trials: int = 1,
    form: str = "json",
    flatten: bool,
) -> None:
    """Create a trial and print its number and parameters; end it with `stoic tell`.

    With -n 8 it is a batch of eight: in the table that --format csv prints, add a column value, and
    `stoic tell --csv` ends all trials that have one.

    A --param adds a parameter to the study or changes its range, from this trial on. If the study
    was begun with tolerances or a recipe, or its study file has them, they count here too.
    """
    check_format(form)
    from stoic.integrations.optuna.confirming import confirms
    from stoic.integrations.recipe import DEFAULT, parse
    from stoic.refusal import meant
    from stoic.tuning.campaign import ask_for, open_request
    from stoic.tuning.search import Search, StudyMethod
    from stoic.tuning.space import parse_assignments, parse_json
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.stored import known_space

    if search_space is not None and param:
        raise RefusalError("--param and --search-space say the same: leave out one of them.")
    space = {} if search_space is None else parse_json(search_space)
    changed = parse_assignments(param or [])
    if trials < 1:
        raise RefusalError(f"-n is a number of trials, at least 1, got {trials}.")
    if confirm and (fix or changed or space):
        raise RefusalError(
            "--confirm measures settings that were run: leave out --fix, --param and "
            "--search-space."
        )
    request, study = place.request, place.load()
    method = None if recipe is None else parse(recipe)
    search = Search(space=space, recipe=method)
    if request is not None:
        study, begun = open_request(request, place.storage_class)
        for replaced in begun.replaces(study):
            note(f"note: {replaced}")
        begun.record(study)
        search = replace(search, seed=request.seed, startup=request.startup)
    search = search if seed is None else replace(search, seed=seed)
    search = search if startup is None else replace(search, startup=startup)
    known = known_space(study) or {} if changed else {}
    for replaced in StudyMethod(recipe=method or DEFAULT).replaces(study):
        note(f"note: {replaced}")
    with in_one_sentence("Could not create a trial"):
        records: list[Record] = []
        again = []
        try:
            for trial in ask_for(study, search, fix or [], changed, trials, confirm):
                records.append({"number": trial.number, "params": dict(trial.params)})
                again.append(confirms(trial))
        finally:  # also those that were begun before one was refused
            if records:
                print_records(records if trials > 1 else records[0], form, flatten)
    for name in [name for name in changed if known and name not in known]:
        note(f"note: {name!r} is a new parameter from this trial on; {meant(name, known)}")
    if numbers := [str(r["number"]) for r, one in zip(records, again, strict=True) if one]:
        note(f"note: a setting that was run is measured again: trial {', '.join(numbers)}.")
    if confirm and not all(again):
        note(
            f"note: {again.count(False)} of {len(again)} trials go on with the search: the answer "
            f"is settled, the first trials are not complete yet, or {confirm} measurements were "
            "begun."
        )


@command(
    context={"ignore_unknown_options": True},  # a value may be -0.5
    what=argument(
        "[STUDY] NUMBER [VALUE...]",
        "The trial and its value, as in: stoic tell 3 0.31; with several objectives one "
        "of each: stoic tell 3 loss=0.31 seconds=12.0, or without names in the order of the "
        "study: those to minimize come first",
    ),
    trial_number=option("Number of the trial."),
    values=option("Objective value, once for each objective; nan is a failed trial."),
    state=option("complete, pruned or fail."),
    failed=option("End it as failed: transient, infeasible or bad.", metavar="KIND"),
    executed=option(
        "What a parameter was run as, if not as it was suggested.", metavar="NAME=VALUE"
    ),
    standard_error=option("Of the value, above 0; NAME=ERROR for each of several."),
    constraint=option("An output that has a limit, as in latency=0.31.", metavar="NAME=OUTPUT"),
    censored=option("The value is a bound: the result is as bad, or worse.", "--censored"),
    step=option(
        "The value is an intermediate one, at this step: the trial goes on, and the "
        "answer is whether it should."
    ),
    skip_if_finished=option("A finished trial is no error.", "--skip-if-finished"),
    csv=option(
        "Add its rows as finished trials: a column for each parameter, and value.",
        metavar="FILE.csv",
    ),
    repeats=option(
        "With --csv: also rows whose parameters and result a trial there has.", "--repeats"
    ),
)
def tell(
    *,
    what: list[str] | None,
    trial_number: int | None,
    study_name: str | None,
    storage: str | None,
    storage_class: str | None,
    values: list[float] | None,
    state: str | None,
    failed: str | None,
    executed: list[str] | None,
    standard_error: list[str] | None,
    constraint: list[str] | None,
    censored: bool,
    step: int | None,
    skip_if_finished: bool,
    csv: Path | None,
    repeats: bool,
) -> None:
    """End a trial that was made by `stoic ask`, with a value or as failed.

    With --csv, add trials that were run elsewhere.
    """
    from stoic.integrations.optuna.objectives import objective_names
    from stoic.tuning.by_hand import tell_number
    from stoic.tuning.failure import parse_kind
    from stoic.tuning.objectives import in_order, parse_values
    from stoic.tuning.pruning import report_number
    from stoic.tuning.space import read_number
    from stoic.tuning.storage import in_one_sentence

    name, trial_number, words = _told(what or [], study_name, trial_number)
    if words and values:
        raise RefusalError(f"--values and {' '.join(words)!r} say the same: leave out one of them.")
    named = parse_values(words) if any("=" in word for word in words) else {}
    if words:
        values = list(named.values()) or [read_number("A value", word) for word in words]
    place = Place(name, None, storage, storage_class)
    said: list[object] = [values, state, failed, censored or None]
    said += [*(standard_error or []), *(executed or []), *(constraint or [])]
    if csv is not None:
        if any(each is not None for each in (trial_number, step, *said)):
            raise RefusalError("--csv has its own numbers and values: give nothing but the study.")
        from stoic.tuning.constraint import merge_constraints
        from stoic.tuning.stored import known_space
        from stoic.tuning.table import read_table

        study = place.load()
        space, limits = known_space(study) or {}, merge_constraints(study, ())
        trials = study.get_trials(deepcopy=False)
        rows = read_table(csv, space, limits, objective_names(study), trials)
        with in_one_sentence("Could not add the trials"):
            left = _ended(rows, study)
            new = left if repeats else _without_known(left, study)
            new.check(space)
            new.add_to(study)
        # Of a batch there are no others
        if left.trials or left.unused or not rows.trials:
            print(new.summary())
        elif left.unlimited:
            print(left.lacking())
        return
    if repeats:
        raise RefusalError("--repeats is about the rows of a table: give it with --csv.")
    if trial_number is None:
        raise RefusalError("Which trial is missing: stoic tell NUMBER VALUE.")
    if values is None and state is None and failed is None:
        raise RefusalError(
            f"There is nothing to tell: give a value, stoic tell {trial_number} VALUE, or --state "
            "or --failed."
        )
    if step is not None:
        if values is None or len(values) != 1 or any(each is not None for each in said[1:]):
            raise RefusalError("--step has one intermediate value, and nothing else goes with it.")
        study = place.load()
        check_single(study, "--step")
        values = in_order(study, named) if named else values
        with in_one_sentence(f"Could not tell a step of trial {trial_number}"):
            pruned = report_number(study, trial_number, step, values[0])
        print("prune" if pruned else "go on")
        return
    if state not in (None, "complete", "pruned", "fail"):
        raise RefusalError(f"state must be complete, pruned or fail, got {state!r}.")
    kind = None if failed is None else parse_kind(failed, "failed")
    study = place.load()
    if censored:
        check_single(study, "--censored", "tell the values that are known, and nan for others")
    values = in_order(study, named) if named else values
    noise = _noise(study, standard_error) if standard_error else None
    with in_one_sentence(f"Could not tell trial {trial_number}"):
        ended_before = skip_if_finished and any(
            trial.number == trial_number and trial.state.is_finished()
            for trial in study.get_trials(deepcopy=False)
        )
        ended = tell_number(
            study,
            trial_number,
            values,
            state,
            skip_if_finished,
            kind,
            executed or [],
            noise,
            constraint or [],
            censored,
        )
    of_each = ""
    if (names := objective_names(study)) and ended.values:
        pairs = zip(names, ended.values, strict=True)
        of_each = ": " + ", ".join(f"{printable(name)} {value:g}" for name, value in pairs)
    print(f"trial {ended.number} is {ended.state.name.lower()}{of_each}")
    if ended_before:
        note(f"note: trial {ended.number} had ended before, and what was told now is left out.")


def _noise(study: optuna.Study, words: list[str]) -> float | tuple[float | None, ...]:
    """Noise variance of a value, or of each of several, from their standard errors."""
    from stoic.integrations.optuna.objectives import objective_names
    from stoic.integrations.reported import noise_of, noises_of
    from stoic.tuning.objectives import in_order, parse_values
    from stoic.tuning.space import read_number

    names = objective_names(study)
    if any("=" in word for word in words):
        given = parse_values(words, "standard error")
        errors = in_order(study, dict.fromkeys(names, math.nan) | given, "standard error")
    else:
        errors = [read_number("A standard error", word) for word in words]
    noise = noises_of(errors, names) if names else noise_of(errors[0])
    if noise is None or (not names and len(errors) > 1):
        of_each = f" for each of {', '.join(map(printable, names))}" if names else ""
        raise RefusalError(
            f"standard-error must be a number above 0{of_each}, got {' and '.join(words)}: leave "
            "it out where it is not known."
        )
    return noise


def _told(
    words: list[str], name: str | None, number: int | None
) -> tuple[str | None, int | None, list[str]]:
    """Study, number of a trial and what is left of the words of `stoic tell`, and its options."""
    words = list(words)
    for word in words:
        # ignore_unknown_options lets a mistyped option through
        if word.startswith("--"):
            raise RefusalError(f"stoic tell has no option {word}: see stoic tell --help.")
    # With --trial-number the first word is a study, also one that is called 3
    if words and not (words[0].isdecimal() and number is None):
        name = Place(words.pop(0), name, None, None).name
    if words and number is None:
        if not words[0].isdecimal():
            raise RefusalError(f"The number of a trial is needed, got {words[0]!r}.")
        number = int(words.pop(0))
    return name, number, words


@command()
def trials(*, place: Place, form: str = "table", flatten: bool, json: bool) -> None:
    """List the trials of a study."""
    form = "json" if json else form
    check_format(form)
    from stoic.integrations.optuna.objectives import objective_names
    from stoic.tuning.constraint import merge_constraints
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.records import trial_record

    study = place.load(only_read=True)
    with in_one_sentence("Could not read the trials"):
        names = objective_names(study)
        limited = merge_constraints(study, ())
        records = [trial_record(trial, names, limited) for trial in study.trials]
    print_records(records, form, flatten)


@command("best-trial")
def best_trial(
    *,
    place: Place,
    recipe: str | None,
    fix: list[str] | None,
    form: str = "table",
    flatten: bool,
    json: bool,
) -> None:
    """Print the observed best trial, and beside it the recommended one.

    With --fix, of the trials with these values.
    """
    form = "json" if json else form
    check_format(form)
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.records import best_records

    study = place.load(only_read=True)
    check_single(study, "best-trial", "stoic show prints its front")
    with in_one_sentence("Could not read the trials"):
        records = best_records(study, form, look_with(study, recipe), given(study, fix))
    print_records(records, form, flatten)
