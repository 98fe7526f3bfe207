"""Let a learner play against an environment, and keep the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from stoic.data import Array, Booleans, Choice, Outcome, Recommendation
from stoic.environment import Environment
from stoic.policies.base import Band


class Player(Protocol):
    """What a simulation needs of a learner."""

    def ask(self, n: int) -> list[Choice]:
        """Where to evaluate next: at most ``n`` choices, and at least one."""

    def tell(self, x: Array, y: Array) -> None:
        """What came out, shape (k,), at the executed ``x`` (k, d)."""

    def active(self) -> Booleans:
        """Which rows of a finite domain it has not ruled out, shape (N,)."""

    def recommend(self) -> Recommendation:
        """The estimated best."""


@runtime_checkable
class Believer(Protocol):
    """What some perturbations need of a learner besides."""

    def band(self) -> Band:
        """Where it believes f to be."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What happened, clean initial points first, then the rounds; n rows in all.

    Attributes
    ----------
    chosen:
        What the learner asked for, shape (n, d).
    executed:
        What was evaluated, shape (n, d).
    value:
        f at the executed points, noiseless, shape (n,).
    observed:
        What the learner was told, shape (n,); nan and infinities included.
    corrupted:
        Whether an adversary changed the observation, shape (n,).
    initial:
        How many rows were the clean design, told before round 1.
    best:
        The true maximum of f over the domain.
    recommended:
        f at the point recommended at the end; nan where no recommendation was asked for.
    """

    chosen: Array
    executed: Array
    value: Array
    observed: Array
    corrupted: Booleans
    initial: int
    best: float
    recommended: float = np.nan

    def __len__(self) -> int:
        return len(self.value)

    @property
    def regret(self) -> Array:
        """Instantaneous noiseless regret f(x*) - f(x), shape (n,), initial points included."""
        return self.best - self.value

    @property
    def cumulative_regret(self) -> Array:
        """Running sum of ``regret``, shape (n,)."""
        return np.cumsum(self.regret)

    @property
    def simple_regret(self) -> Array:
        """Regret of the truly best point so far, shape (n,); no learner knows which it is."""
        return self.best - np.maximum.accumulate(self.value)

    @property
    def inference_regret(self) -> float:
        """Regret of the point recommended at the end; nan where none was asked for."""
        return self.best - self.recommended


def run(
    learner: Player,
    environment: Environment,
    rounds: int,
    *,
    initial: int | Array = 0,
    batch: int = 1,
    recommend: bool = False,
) -> Trace:
    """Tell a clean design, then play ``rounds`` rounds of ask, step, tell.

    Parameters
    ----------
    learner:
        Anything with ``ask``, ``tell`` and ``recommend``; it is told executed points only.
    environment:
        The world; it may have been played before, and goes on from where it was.
    rounds:
        T, at least 0.
    initial:
        The clean design: points of shape (k, d), or how many the environment should draw.
    batch:
        How many rounds are asked for at once and told together. More than one is as good, and
        faster, for a learner that plans in epochs; any other then learns later.
    recommend:
        Whether to ask for a recommendation at the end.
    """
    if rounds < 0:
        raise ValueError(f"A number of rounds is at least 0, got {rounds}.")
    if batch < 1:
        raise ValueError(f"A batch has at least one round, got {batch}.")
    band = learner.band if isinstance(learner, Believer) else None
    design = environment.initial(initial)
    n, d = len(design) + rounds, environment.problem.domain.dim
    chosen, executed = np.empty((n, d)), np.empty((n, d))
    value, observed = np.empty(n), np.empty(n)
    corrupted = np.zeros(n, dtype=np.bool_)

    def record(row: int, x: Array, outcome: Outcome) -> None:
        chosen[row], executed[row] = x, outcome.x
        value[row], observed[row] = outcome.value, outcome.observed
        corrupted[row] = outcome.corrupted

    for row, outcome in enumerate(design):
        record(row, outcome.x, outcome)
    row = len(design)
    if row:
        learner.tell(executed[:row], observed[:row])
    while row < n:
        first = row
        for choice in learner.ask(min(batch, n - row)):
            record(row, choice.x, environment.step(choice.x, learner.active, band))
            row += 1
        learner.tell(executed[first:row], observed[first:row])

    recommended = np.nan
    if recommend:
        recommended = float(environment.problem.value(learner.recommend().x[None])[0])
    best = environment.problem.optimum.value
    return Trace(chosen, executed, value, observed, corrupted, len(design), best, recommended)
