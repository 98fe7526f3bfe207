"""Inputs that were recommended elsewhere, before another policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.data import Array, Choice
from stoic.domains import PLACE
from stoic.policies.base import View, Wrapper, choices_at


@dataclass(frozen=True, eq=False)
class Recommended(Wrapper):
    """Query some inputs first, each once, then follow another policy.

    Inputs that were queried already, failed there or are pending are left out, and so are those
    outside of what may be chosen.

    Parameters
    ----------
    then:
        The policy that follows.
    places:
        The inputs, in order, each of shape (d,).

    Guarantee
    ---------
    That of ``then``, from round k + 1 on, for k inputs.
    """

    places: tuple[Array, ...]

    def choose(self, view: View, state: Any, n: int) -> tuple[list[Choice], Any]:
        queried = view.surrogate.history.observations.x  # those of a view may be a window
        known = np.concatenate([queried, view.pending, view.failures.x])
        left: list[Array] = []
        for place in self.places:
            # Two sources may recommend the same input: those before it count as known
            x = np.concatenate([known, *[other[None] for other in left]])
            apart = (np.abs(x - place) / view.domain.widths).max(axis=1, initial=0.0)
            if (apart > PLACE).all() and view.among.contains(place[None])[0]:
                left.append(place)
        choices = choices_at(view.domain, np.array(left[:n])) if left else []
        if len(choices) == n:
            return choices, state
        if choices:
            pending = np.concatenate([view.pending, *[choice.x[None] for choice in choices]])
            view = view._replace(pending=pending)
        others, state = self.then.choose(view, state, n - len(choices))
        return [*choices, *others], state
