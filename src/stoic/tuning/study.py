"""Studies that several workers share: made, found, and continued."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path

import optuna
from optuna.distributions import check_distribution_compatibility, distribution_to_json
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from stoic.integrations.optuna.encoding import as_written
from stoic.integrations.optuna.objectives import check_objectives
from stoic.refusal import RefusalError
from stoic.tuning.objectives import Direction, Objective, goal_of, merge_objectives
from stoic.tuning.space import Space
from stoic.tuning.storage import in_one_sentence, open_storage, patiently
from stoic.tuning.stored import COMMAND, DIRECTORY, SPACE, as_data, check_stored, known_space


def open_study(
    storage: BaseStorage,
    name: str | None,
    direction: Direction | Sequence[Objective],
    space: Space,
    sampler: BaseSampler,
    command: tuple[str, ...] | None = None,
    directory: Path | None = None,
) -> optuna.Study:
    """Create a study, or load the one of that name, if it has this search space and direction.

    The command and its directory are recorded with a new one. With several objectives they are
    given instead of a direction.
    """
    objectives = () if isinstance(direction, str) else tuple(direction)
    directions = [direction] if isinstance(direction, str) else [e.direction for e in direction]

    def opened() -> optuna.Study:
        # Each step finds what an earlier attempt, or another worker, has already done
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            directions=directions,
            sampler=sampler,
            load_if_exists=True,
        )
        # Optuna loads the study of that name whatever its directions are
        if objectives:
            name_objectives(study, objectives)
            merge_objectives(study, objectives)
        elif (stored := goal_of(study)) != direction:
            raise RefusalError(
                f"The study {study.study_name!r} exists and is to {stored}, not to {direction}: "
                "give another --study-name or the same direction."
            )
        adopt_space(study, space)
        if command is not None and study.user_attrs.get(COMMAND) is None:
            study.set_user_attr(COMMAND, list(command))
            if directory is not None:
                study.set_user_attr(DIRECTORY, str(directory.absolute()))
        return study

    return patiently(opened, f"Could not open the study {name!r}")


def check_study_name(name: str | None) -> None:
    """Refuse a name without a letter: of a variable of a shell that is not set."""
    if name is not None and not name.strip():
        raise RefusalError(f"The name of a study is empty: {name!r}.")


def name_objectives(study: optuna.Study, objectives: Sequence[Objective]) -> None:
    """Record the names of the objectives with a new study."""
    if study.metric_names is None and len(study.directions) == len(objectives):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names([objective.name for objective in objectives])


def adopt_space(study: optuna.Study, space: Space) -> None:
    """Record the search space of a new study; refuse another one than a study has."""
    known = known_space(study)
    if known is None:
        record_space(study, space)
    elif known != space:
        raise RefusalError(
            f"The study {study.study_name!r} exists with another search space "
            f"({_difference(known, space)}): give the same parameters, or another --study-name, "
            f"with --warm-start {shlex.quote(study.study_name)} to learn from this one; in Python, "
            "another study_name, and warm_start=[study]."
        )


def check_changes(known: Space, changed: Space) -> None:
    """Refuse changes of parameters that one study cannot have."""
    for name in known.keys() & changed.keys():
        try:
            check_distribution_compatibility(known[name], changed[name])
        except ValueError as error:
            old, new = as_written(known[name]), as_written(changed[name])
            raise RefusalError(
                f"The parameter {name} is {old} in this study and cannot become {new}: only the "
                "ends of a range of numbers may change. Make a new study: from the table of "
                "`stoic trials -f csv`, --from-csv takes over the trials that fit; --warm-start "
                "learns from this one."
            ) from error


def record_space(study: optuna.Study, space: Space) -> None:
    """Record the search space that trials of a study have from now on."""
    record = {key: json.loads(distribution_to_json(value)) for key, value in space.items()}
    study.set_user_attr(SPACE, record)


def find_study(storage: BaseStorage, name: str) -> optuna.Study | None:
    """Load the study of that name, None if there is none."""

    def load() -> optuna.Study | None:
        try:
            return _checked(optuna.load_study(storage=storage, study_name=name))
        except KeyError:
            return None  # Optuna's answer where there is no such name

    what = f"Could not look for the study {name!r}"
    with as_data(what):
        return patiently(load, what)


def load_study(storage: BaseStorage, name: str | None) -> optuna.Study:
    """Load the study of that name, or without a name the only one there is."""
    what = "Cannot read the storage"
    with as_data(what), in_one_sentence(what):
        names = optuna.get_all_study_names(storage) if name is None else [name]
        if len(names) != 1:
            raise RefusalError(
                f"The storage holds {len(names)} studies ({', '.join(names)}): "
                "say which with --study-name."
                if names
                else "The storage holds no study."
            )
        try:
            study = optuna.load_study(storage=storage, study_name=names[0])
        except KeyError as error:
            raise RefusalError(
                f"There is no study {name!r} in the storage; "
                f"it holds {', '.join(optuna.get_all_study_names(storage)) or 'none'}."
            ) from error
    return _checked(study)


def _checked(study: optuna.Study) -> optuna.Study:
    check_objectives(study)
    check_stored(study)
    return study


def earlier_studies(
    named: Sequence[str | optuna.Study], storage: BaseStorage | None, own: str | None
) -> list[optuna.Study]:
    """Load the studies that inform a new one: NAME in ``storage``, or URL::NAME in another one.

    One that is a study already stays as it is.
    """
    found = []
    for text in named:
        if not isinstance(text, str):
            found.append(text)
            continue
        url, elsewhere, name = text.rpartition("::")
        if not name or (elsewhere and not url):
            raise RefusalError(
                f"A warm start is the NAME of a study, or STORAGE::NAME, got {text!r}."
            )
        if not elsewhere and name == own:
            raise RefusalError(f"The study {own!r} cannot warm itself.")
        if not elsewhere and storage is None:
            raise RefusalError(
                f"There is no study {name!r} in the storage, which is new: for one in another "
                f"storage give STORAGE::{name}."
            )
        opened = open_storage(url, create=False, only_read=True) if elsewhere else storage
        assert opened is not None
        found.append(load_study(opened, name))
    return found


def _difference(known: Space, asked: Space) -> str:
    for name in known.keys() | asked.keys():
        if name not in asked:
            return f"it has {name!r}, the request does not"
        if name not in known:
            return f"it has no {name!r}"
        if known[name] != asked[name]:
            it, request = as_written(known[name]), as_written(asked[name])
            return f"{name!r} is {it} in it, and {request} in the request"
    raise AssertionError("the spaces are equal")
