"""Landing on the moon with a linear policy, simulated by gymnasium: 36 parameters.

The task of [Ezzerg2026]_, section 5.5. The environment is LunarLander-v3 [Towers2024]_: eight
numbers are observed, four engines may be fired (none, left, main, right).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from stoic.data import Array
from stoic.domains import Box
from stoic.problems.base import outside

STATES, ACTIONS = 8, 4
DIM = ACTIONS * (STATES + 1)
BOUND = 2.0


def landing(x: Array, seed: int, steps: int = 1000) -> float:
    """Simulate one episode, and return the sum of its rewards.

    The policy fires the engine k with the largest w_k' s + b_k (ties: the lowest). ``x`` (36,)
    holds the rows (w_k, b_k) one after another: [Ezzerg2026]_ gives the number of parameters, and
    this is the linear policy that has it.

    Parameters
    ----------
    x:
        The parameters, shape (36,).
    seed:
        Of the moon's surface, the first push and the engines: the same seed is the same episode.
    steps:
        It ends then, if the lander has neither crashed nor left nor come to rest.
    """
    parameters = np.asarray(x, dtype=np.float64)
    if parameters.shape != (DIM,) or not np.isfinite(parameters).all():
        raise ValueError(
            f"A policy is {DIM} finite numbers, got shape {parameters.shape} with "
            f"{np.count_nonzero(~np.isfinite(parameters))} that are not finite."
        )
    table = parameters.reshape(ACTIONS, STATES + 1)
    # (4, 8) and (4,), contiguous for a product at every step
    weights, offsets = np.ascontiguousarray(table[:, :STATES]), table[:, STATES].copy()
    return episode(lambda state: int((weights @ state + offsets).argmax()), seed, steps)


def episode(engine: Callable[[Array], int], seed: int, steps: int = 1000) -> float:
    """Sum the rewards of one episode, in which ``engine`` says which one to fire in a state."""
    lander = simulator()
    state, _ = lander.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        state, reward, ended, _, _ = lander.step(engine(state))
        total += float(reward)
        if ended:
            break
    return total


@dataclass(frozen=True, eq=False)
class LunarLander:
    """Mean return of a linear policy over a few episodes, on [-2, 2]^36.

    f is the expected return. A soft landing returns more than 200. Of policies drawn at random half
    have results between -630 and -310 and one in thirty is below -1000, the value that the
    adversary of [Ezzerg2026]_ reports: it is no outlier by its size. The standard deviation of a
    result at one policy is 30 to 200.

    Parameters
    ----------
    episodes:
        Number of episodes in the mean.
    steps:
        Maximum length of an episode.
    """

    episodes: int = 4
    steps: int = 1000
    domain: Box = field(
        default_factory=lambda: Box(np.full(DIM, -BOUND), np.full(DIM, BOUND)), init=False
    )
    name = "lunar-lander"

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.steps < 1:
            raise ValueError(
                "A result needs at least one episode of one step, got "
                f"episodes={self.episodes}, steps={self.steps}."
            )

    def run(self, x: Array, seed: int) -> float:
        """Average over episodes whose seeds are drawn from ``seed``."""
        rng = np.random.default_rng(seed)
        starts = rng.integers(2**31, size=self.episodes).tolist()
        return float(np.mean([landing(x, start, self.steps) for start in starts]))


@cache
def simulator() -> Any:
    """One simulator a process, without the wrappers that check every step: a third of the time."""
    module = "gymnasium.envs.box2d.lunar_lander"
    return outside(module, "LunarLander needs gymnasium with Box2D").LunarLander()
