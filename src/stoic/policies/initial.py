"""Initial space-filling design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.data import Array, Choice
from stoic.domains import Domain
from stoic.policies.base import View, Wrapper, choices_at


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """Remaining points of the design, and the state of the policy that follows."""

    left: Array
    then: Any


@dataclass(frozen=True)
class Initial(Wrapper):
    """``n`` points that cover the domain (scrambled Sobol on a box), then another policy.

    Observations from elsewhere count: the design ends once ``n`` are observed or pending. A query
    for a part of the domain goes to ``then`` at once.

    Guarantee
    ---------
    That of ``then``, from round n + 1 on.
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError(f"A design has a size >= 0, got {self.n}.")
        super().__post_init__()

    def theirs(self, state: Design) -> Any:
        return state.then

    def start(self, domain: Domain) -> Design:
        return Design(np.empty((0, domain.dim)), self.then.start(domain))

    def choose(self, view: View, state: Design, n: int) -> tuple[list[Choice], Design]:
        missing = self.n - len(view.observations) - len(view.pending)
        if missing <= 0 or view.among is not view.domain:
            choices, then = self.then.choose(view, state.then, n)
            return choices, Design(state.left, then)
        left = state.left
        # At the start, or where suggestions failed or were forgotten
        if not len(left):
            left = view.domain.spread(self.n, view.rng)[-missing:]
        handed, left = left[: min(n, missing)], left[min(n, missing) :]
        return choices_at(view.domain, handed), Design(left, state.then)
