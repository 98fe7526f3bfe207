"""Durations of trials, for people."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from optuna.trial import FrozenTrial

_UNITS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))


def duration(seconds: float) -> str:
    """Format a duration in one or two units: ``0.31 s``, ``4 min 10 s``, ``2 h 5 min``."""
    if seconds < 60.0:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    name, size = next(unit for unit in _UNITS if seconds >= unit[1])
    below = {"d": ("h", 3600.0), "h": ("min", 60.0), "min": ("s", 1.0)}[name]
    rest = int(seconds % size / below[1])
    return f"{int(seconds // size)} {name}" + f" {rest} {below[0]}" * bool(rest)


def median_duration(trials: Iterable[FrozenTrial]) -> float | None:
    """Return the median duration of the trials that have a value, in seconds; None without any."""
    ended = [t.duration.total_seconds() for t in trials if t.values is not None and t.duration]
    return float(np.median(ended)) if ended else None
