"""Run a learner against an environment, and record its regret."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from stoic.confidence.base import Band
from stoic.data import Array, Booleans, Choice, Outcome, Recommendation
from stoic.environment import Environment
from stoic.pending import WaitingError
from stoic.problems.base import Optimum

# A maximum that was found by a search may be too low by so much of it, or of the range of f
_ROUNDING, _TINY = 1e-6, 1e-12


class Player(Protocol):
    """Interface of a learner that a simulation needs."""

    def ask_batch(self, n: int) -> list[Choice]:
        """Suggest at most ``n`` points to evaluate, and at least one."""

    def tell(self, x: Array, y: Array) -> None:
        """Observe results ``y``, shape (k,), at the executed ``x`` (k, d)."""

    def active(self) -> Booleans:
        """Mask of the rows of a finite domain that are not ruled out, shape (N,)."""

    def recommend(self) -> Recommendation:
        """Recommend the estimated optimum."""


@runtime_checkable
class Believer(Protocol):
    """Interface of a learner that some perturbations need in addition."""

    def band(self) -> Band:
        """Confidence band of f."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """History of a run, clean initial points first, then the rounds; n rows in all.

    Attributes
    ----------
    chosen:
        The points that the learner suggested, shape (n, d).
    executed:
        The points that were evaluated, shape (n, d).
    value:
        f at the executed points, noiseless, shape (n,).
    observed:
        The results that the learner observed, shape (n,); nan and infinities included.
    corrupted:
        True where an adversary changed the observation, shape (n,).
    initial:
        Number of rows of the clean design, observed before round 1.
    best:
        The true maximum of f over the domain.
    recommended:
        f at the point recommended at the end; nan without a recommendation.
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
        """Regret of the truly best point so far, shape (n,), which no learner knows."""
        return self.best - np.maximum.accumulate(self.value)

    @property
    def inference_regret(self) -> float:
        """Regret of the point recommended at the end; nan if there is none."""
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
    """Evaluate a clean design, then play ``rounds`` rounds of ask, step, tell.

    Parameters
    ----------
    learner:
        A learner, or anything with ``ask_batch``, ``tell``, ``recommend`` and ``active``. It
        observes executed points only, and nothing may be pending.
    environment:
        The environment; it may have been played before, and goes on from where it was.
    rounds:
        T, at least 0.
    initial:
        The clean design: points of shape (k, d), or the number that the environment shall draw.
    batch:
        Number of rounds that are suggested and observed together. More than one is as good, and
        faster, for a learner that plans in epochs; any other then learns later.
    recommend:
        True for a recommendation at the end.
    """
    if rounds < 0:
        raise ValueError(f"A number of rounds is at least 0, got {rounds}.")
    if batch < 1:
        raise ValueError(f"A batch has at least one round, got {batch}.")
    optimum = environment.problem.optimum
    if not isinstance(optimum, Optimum):
        raise TypeError(f"The optimum of a problem is an Optimum(x, value), got {optimum!r}.")
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
        choices = learner.ask_batch(min(batch, n - row))
        if not choices:
            raise WaitingError(
                f"The learner suggests nothing in round {row - len(design) + 1}: it waits for "
                "results of choices made before, so tell them or call forget_pending(); or its "
                "policy chose none."
            )
        for choice in choices:
            record(row, choice.x, environment.step(choice.x, learner.active, band))
            row += 1
        learner.tell(executed[first:row], observed[first:row])

    recommended = np.nan
    if recommend:
        recommended = float(environment.problem.value(learner.recommend().x[None])[0])
    best = optimum.value
    known = value[np.isfinite(value)]
    most = known.max(initial=-np.inf)
    if most - best > _TINY and most - best > _ROUNDING * max(abs(best), np.ptp(known)):
        warnings.warn(
            f"The optimum of the problem is {best:.10g}, but f is {most:.10g} at "
            f"{executed[value == most][0]}: regret to that optimum is negative.",
            stacklevel=2,
        )
    return Trace(chosen, executed, value, observed, corrupted, len(design), best, recommended)
