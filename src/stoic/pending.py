"""Pending choices: suggested, and without a result yet."""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from stoic.data import Array, Choice

# What identifies the choices of this process
_HERE, _COUNT = os.urandom(8), itertools.count()


class WaitingError(RuntimeError):
    """No point can be suggested before the pending results are observed."""


class NothingLeftError(ValueError):
    """A plan has no point left to suggest in the feasible subset of the domain."""


def check_count(n: int) -> None:
    """Refuse anything but a number of choices."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"Ask for at least one choice, a whole number of them, got n={n!r}.")


def listed(choices: Choice | Iterable[Choice]) -> list[Choice]:
    """Return one choice or several as a list, or refuse what is none."""
    these: list[Any] = [choices]
    if not isinstance(choices, Choice):
        with suppress(TypeError):  # what is no choice is refused below
            these = list(choices)
    if wrong := [each for each in these if not isinstance(each, Choice)]:
        raise ValueError(f"What is forgotten is a choice or several, got {wrong[0]!r:.200}.")
    return these


class Pending:
    """Choices that were suggested and have no result yet, oldest first.

    Adding, counting and answering at the point of a choice take constant time, however many are
    pending: a whole epoch of a phased policy may be. Two choices of the same point are two entries:
    each has a key of its own, which a copy, or one that was read from a file, has, too.
    """

    __slots__ = ("_at", "_choices", "_unfiled")

    def __init__(self) -> None:
        # Ordered dictionaries: the oldest entry of a plain one is found by scanning what was
        # deleted before it.
        self._choices: OrderedDict[object, Choice] = OrderedDict()
        self._at: dict[bytes, OrderedDict[object, None]] = {}
        self._unfiled: list[Choice] = []  # not in ``_at`` yet: a lone choice never needs to be

    def __reduce__(self) -> tuple[Callable[[Iterable[Choice]], Pending], tuple[list[Choice]]]:
        return _of, (list(self),)

    def __len__(self) -> int:
        return len(self._choices)

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._choices.values())

    def add(self, choices: Iterable[Choice]) -> None:
        """Append choices that were suggested."""
        for choice in choices:
            if choice._key is None:
                object.__setattr__(choice, "_key", (_HERE, next(_COUNT)))
            self._choices[choice._key] = choice
            self._unfiled.append(choice)

    def answer(self, x: Array, widths: Array) -> list[Choice | None]:
        """Remove the choices that results at ``x`` (n, d) answer, and return them; None if none.

        That is the oldest choice of the same point. A result where none is pending answers the
        nearest one that is left, in ``widths`` (d,): something was executed a little elsewhere.
        """
        if len(x) == len(self._choices) == 1:
            _, only = self._choices.popitem()
            self.clear()
            return [only]
        self._file()
        found = [self._at_place(point) for point in x]
        for row, answered in enumerate(found):
            if answered is None and self._choices:
                points = np.array([choice.x for choice in self])
                apart = (np.abs(points - x[row]) / widths).max(axis=1, initial=0.0)
                found[row] = self._pop(list(self._choices)[np.argmin(apart)])
        return found

    def remove(self, choice: Choice) -> Choice | None:
        """Remove a choice and return it; None if it is not pending."""
        self._file()
        return self._pop(choice._key)

    def forget(self, choices: Choice | Iterable[Choice] | None = None) -> list[Choice]:
        """Remove one choice, several, or by default all, and return those that were pending."""
        if choices is None:
            forgotten = list(self)
            self.clear()
            return forgotten
        found = map(self.remove, listed(choices))
        return [choice for choice in found if choice is not None]

    def _file(self) -> None:
        for new in self._unfiled:
            self._at.setdefault(_place(new.x), OrderedDict())[new._key] = None
        self._unfiled.clear()

    def _at_place(self, x: Array) -> Choice | None:
        same = self._at.get(_place(x))
        return None if same is None else self._pop(next(iter(same)))

    def _pop(self, key: object) -> Choice | None:
        removed = self._choices.pop(key, None)
        if removed is not None:
            place = _place(removed.x)
            siblings = self._at[place]
            del siblings[key]
            if not siblings:
                del self._at[place]
        return removed

    def clear(self) -> None:
        """Forget all of them: no result will come."""
        self._choices.clear()
        if self._at:
            self._at.clear()
        self._unfiled.clear()


def _of(choices: Iterable[Choice]) -> Pending:
    pending = Pending()
    pending.add(choices)
    return pending


def _place(x: Array) -> bytes:
    return (x + 0.0).tobytes()  # -0.0 is 0.0
