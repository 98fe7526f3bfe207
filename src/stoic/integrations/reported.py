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


def noises_of(standard_errors: object, names: Sequence[str]) -> tuple[float, ...] | None:
    """Noise variance of each objective, from a list or by name; None if one of them has none."""
    by_name = standard_errors
    if isinstance(standard_errors, list | tuple) and len(standard_errors) == len(names):
        by_name = dict(zip(names, standard_errors, strict=True))
    if not isinstance(by_name, Mapping) or by_name.keys() != set(names):
        return None
    found = [noise for name in names if (noise := noise_of(by_name[name])) is not None]
    return tuple(found) if len(found) == len(names) else None


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
