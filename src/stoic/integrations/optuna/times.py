"""Times of trials: those of Optuna have no zone, those of a trial that was added may have one."""

from __future__ import annotations

import datetime

from optuna.trial import FrozenTrial

_NEVER = datetime.datetime.min


def start_of(trial: FrozenTrial) -> datetime.datetime | None:
    """Start of a trial, in local time; None if it is not known."""
    return _local(trial.datetime_start)


def end_of(trial: FrozenTrial | None) -> tuple[datetime.datetime, int]:
    """End of a trial in local time, and its number; before all others if it is not known."""
    if trial is None:
        return _NEVER, -1
    return _local(trial.datetime_complete) or _NEVER, trial.number


def _local(time: datetime.datetime | None) -> datetime.datetime | None:
    return time if time is None or time.tzinfo is None else time.astimezone().replace(tzinfo=None)
