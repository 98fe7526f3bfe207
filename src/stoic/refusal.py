"""The error that a refused request of the user raises."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral


class RefusalError(ValueError):
    """Error of a request that cannot be carried out; its message is one sentence for the user.

    The message says what was given, what is needed and what to do. The command line prints it alone
    and exits with code 2; a caller from Python sees an ordinary `ValueError`.
    """


def meant(name: str, there: Iterable[str]) -> str:
    """Word which name may have been meant, or which there are."""
    names = list(there)
    listed = f"there are {', '.join(names) or 'none'}."
    return listed if (near := nearest(name, names)) is None else f"did you mean {near!r}?"


def nearest(name: str, there: Iterable[str], similar: float = 0.6) -> str | None:
    """Return the name that is so similar that it may have been meant."""
    return next(iter(difflib.get_close_matches(name, list(there), 1, similar)), None)


def check_callable(**given: object) -> None:
    """Refuse what is no function, by its name."""
    for name, function in given.items():
        if not callable(function):
            raise RefusalError(f"{name} must be a function, got {function!r}.")


def check_at_least(least: int, **given: int) -> None:
    """Refuse a number, by its name, that is less, or not whole."""
    for name, number in given.items():
        if not isinstance(number, Integral):
            raise RefusalError(f"{name} must be a whole number, got {number!r}.")
        if number < least:
            raise RefusalError(f"{name} must be at least {least}, got {number}.")
