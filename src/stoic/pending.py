"""Pending choices: suggested, and without a result yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from weakref import WeakSet

import numpy as np

from stoic.data import Array, Choice


class WaitingError(RuntimeError):
    """No point can be suggested before the pending results are observed."""


class NothingLeftError(ValueError):
    """A plan has no point left to suggest in the feasible subset of the domain."""


def check_count(n: int) -> None:
    """Refuse anything but a number of choices."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"Ask for at least one choice, a whole number of them, got n={n!r}.")


class Pending:
    """Choices that were suggested and have no result yet, oldest first.

    Adding, answering and counting take constant time, however many are pending: a whole epoch of a
    phased policy may be. Two choices of the same point are two entries; a choice is identified by
    itself, and one that was read from a file by its point.
    """

    __slots__ = ("_answered", "_at", "_choices", "_unfiled")

    def __init__(self) -> None:
        # Ordered dictionaries: the oldest entry of a plain one is found by scanning what was
        # deleted before it.
        self._choices: OrderedDict[int, Choice] = OrderedDict()
        self._at: dict[bytes, OrderedDict[int, None]] = {}
        self._answered: WeakSet[Choice] = WeakSet()  # those that were named and are still around
        self._unfiled: list[Choice] = []  # not in ``_at`` yet: a lone choice never needs to be

    def __reduce__(self) -> tuple[Callable[[Iterable[Choice]], Pending], tuple[list[Choice]]]:
        return _of, (list(self),)  # filed by identity, which a copy has anew

    def __len__(self) -> int:
        return len(self._choices)

    def __iter__(self) -> Iterator[Choice]:
        return iter(self._choices.values())

    def add(self, choices: Iterable[Choice]) -> None:
        """Append choices that were suggested."""
        for choice in choices:
            self._choices[id(choice)] = choice  # which keeps it alive, and its id unique
            self._unfiled.append(choice)

    def answer(self, x: Array, choice: Choice | None = None) -> Choice | None:
        """Remove the choice that a result at ``x`` (d,) answers, and return it; ``None`` if none.

        Without a ``choice`` that is the oldest choice of the same point, or, if this point was
        never suggested, the oldest of all: something was executed a little elsewhere. A copy of a
        ``choice`` answers the oldest one of its point.
        """
        if choice is None and len(self._choices) == 1:
            _, only = self._choices.popitem()
            self.clear()
            return only
        for new in self._unfiled:
            self._at.setdefault(_place(new.x), OrderedDict())[id(new)] = None
        self._unfiled.clear()
        if choice is not None:
            key = id(choice)
            if key in self._choices:
                self._answered.add(choice)
            elif choice not in self._answered:  # a copy, then
                key = next(iter(self._at.get(_place(choice.x), ())), key)
        else:
            same = self._at.get(_place(x)) or self._choices
            key = next(iter(same), 0)
        answered = self._choices.pop(key, None)
        if answered is not None:
            place = _place(answered.x)
            siblings = self._at[place]
            del siblings[key]
            if not siblings:
                del self._at[place]
        return answered

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
