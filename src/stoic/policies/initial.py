"""Initial space-filling design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.confidence.base import Band
from stoic.data import Array, Booleans, Choice
from stoic.domains import Domain
from stoic.policies.base import Notes, Policy, View, choices_at


@dataclass(frozen=True, eq=False, slots=True)
class Design:
    """Remaining points of the design, and the state of the policy that follows."""

    left: Array
    then: Any


@dataclass(frozen=True)
class Initial(Policy):
    """``n`` points that cover the domain (scrambled Sobol on a box), then another policy.

    Observations from elsewhere count: the design ends once ``n`` are observed or pending. A query
    for a part of the domain goes to ``then`` at once.

    Guarantee
    ---------
    That of ``then``, from round n + 1 on.
    """

    then: Policy
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError(f"A design has a size >= 0, got {self.n}.")
        self.be_like(self.then)

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

    def recommend(self, view: View, state: Design, band: Band, tried: Array) -> tuple[int, Notes]:
        return self.then.recommend(view, state.then, band, tried)

    def band(self, view: View, state: Design) -> Band:
        return self.then.band(view, state.then)

    def active(self, view: View, state: Design) -> Booleans:
        return self.then.active(view, state.then)
