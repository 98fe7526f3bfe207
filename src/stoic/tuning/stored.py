"""Contents of a storage, read as data: refuse in one sentence what makes no sense there."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator

import optuna
from optuna.distributions import json_to_distribution
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.internals import queued_params
from stoic.refusal import RefusalError
from stoic.tuning.reading import Reading
from stoic.tuning.space import Space
from stoic.tuning.storage import TROUBLE, cause

SPACE = "stoic:space"  # of a study: the search space
COMMAND = "stoic:command"  # of a study: the program's arguments, with placeholders
VALUE = "stoic:value"  # of a study: the rule that reads the value of a trial, as it was written
DIRECTORY = "stoic:directory"  # of a study: where its program runs, for whoever runs it again


@contextlib.contextmanager
def as_data(what: str) -> Iterator[None]:
    """Turn whatever parsing stored data raises into a refusal that begins with ``what``.

    Use it only around that: Optuna raises nearly anything there, and our errors must be seen.
    """
    try:
        yield
    except (RefusalError, *TROUBLE):
        raise
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise RefusalError(f"{what}: {kind}{cause(error)}.") from error


def check_stored(study: optuna.Study) -> None:
    """Refuse a study that cannot be read because other software has written to it."""
    what = f"Cannot read the study {study.study_name!r}, in which something else has written"
    with as_data(what):
        objectives = len(study.directions)
        # Optuna copies them later on, and JSON that is nested too deep cannot be copied
        copy.deepcopy(study.user_attrs)
        for trial in study.get_trials(deepcopy=False):
            copy.deepcopy((trial.user_attrs, trial.system_attrs))
            if not _sound(trial, objectives):
                count = "no value, or several" if objectives == 1 else f"not {objectives} values"
                raise RefusalError(f"{what}: trial {trial.number} has {count}.")
            queued = queued_params(trial)
            if not trial.state.is_finished() and not isinstance(queued, dict):
                raise RefusalError(f"{what}: trial {trial.number} was queued with no parameters.")


def _sound(trial: FrozenTrial, objectives: int) -> bool:
    """Return True if a complete trial has a value of each objective, or any other at most that."""
    count = len(trial.values or ())
    return count == objectives if trial.state == TrialState.COMPLETE else count <= objectives


def known_space(study: optuna.Study) -> Space | None:
    """Return the search space a study was begun with; None if it has neither record nor trials."""
    record = study.user_attrs.get(SPACE)
    if isinstance(record, dict):
        with as_data(f"Cannot read the search space of the study {study.study_name!r}"):
            return {key: json_to_distribution(json.dumps(value)) for key, value in record.items()}
    met: Space = {}
    for trial in study.get_trials(deepcopy=False):
        met.update(trial.distributions)
    return met or None


def stored_command(study: optuna.Study) -> tuple[str, ...] | None:
    """Return the arguments of the program that a study was begun with; None if not recorded."""
    record = study.user_attrs.get(COMMAND)
    if isinstance(record, list) and all(isinstance(argument, str) for argument in record):
        return tuple(record)
    return None


def stored_rule(study: optuna.Study) -> str | None:
    """Return the rule by which values of earlier trials were read; None if none is recorded."""
    record = study.user_attrs.get(VALUE)
    with contextlib.suppress(RefusalError):
        return Reading.parse(record).written if isinstance(record, str) else None
    return None
