"""Numbers that other software reports: None instead of what cannot be used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def noise_of(standard_error: object) -> float | None:
    """Noise variance of a value with this standard error; None if it is no number above 0."""
    error = finite(standard_error)
    if error is None or error <= 0.0:
        return None
    return error * error if 0.0 < error * error < math.inf else None


def unknown(standard_error: object) -> bool:
    """Return True for None and nan, or a list or mapping of nothing else."""
    if isinstance(standard_error, Mapping):
        return all(map(unknown, standard_error.values()))
    if isinstance(standard_error, list | tuple):
        return all(map(unknown, standard_error))
    return standard_error is None or standard_error != standard_error


def noises_of(standard_errors: object, names: Sequence[str]) -> tuple[float | None, ...] | None:
    """Noise variance of each objective, from a list or by name; None for one where it is unknown.

    That is nan or null, or left out by name. None alone if all are, or one is no number above 0.
    """
    by_name = standard_errors
    if isinstance(standard_errors, list | tuple) and len(standard_errors) == len(names):
        by_name = dict(zip(names, standard_errors, strict=True))
    if not isinstance(by_name, Mapping) or not by_name.keys() <= set(names):
        return None
    known = {name: error for name, error in by_name.items() if not unknown(error)}
    noises = {name: noise_of(error) for name, error in known.items()}
    if not noises or None in noises.values():
        return None
    return tuple(noises.get(name) for name in names)


def as_number(value: object) -> float:
    """Convert a number to a float, infinite if it is too large for one; nan if it is none."""
    if not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def finite(value: object) -> float | None:
    """Convert a number to a float; None if it is none, or not finite."""
    number = math.nan if isinstance(value, bool) else as_number(value)
    return number if math.isfinite(number) else None
