"""Trials: the runs of one method in one panel, whatever the columns of their rows are."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from stoic.data import Array, Integers
from stoic.experiments.contender import Contender
from stoic.experiments.statistics import compared

R = TypeVar("R")
REGRET = "cumulative_regret"


@dataclass(frozen=True, eq=False)  # without slots, which a generic class that is frozen cannot have
class Trials(Generic[R]):
    """Runs of one method, in one panel or in several.

    Attributes
    ----------
    runs:
        Rows of each trial, one trial a panel and seed.
    """

    runs: tuple[tuple[Any, ...], ...]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the trials."""
        return tuple(run[0].seed for run in self.runs)

    @property
    def rounds(self) -> Integers:
        """Kept rounds, shape (n,)."""
        return np.array([row.round for row in self.runs[0]])

    @property
    def ends(self) -> tuple[R, ...]:
        """Last row of each trial."""
        return tuple(run[-1] for run in self.runs)

    def curves(self, column: str = REGRET) -> Array:
        """One column, shape (trials, n)."""
        return np.array([[getattr(row, column) for row in run] for run in self.runs])

    def final(self, column: str = REGRET) -> Array:
        """One column at the end of each trial, shape (trials,)."""
        return np.array([getattr(row, column) for row in self.ends])

    def known(self, column: str) -> list[Any]:
        """One column at the end of the trials, but for None."""
        return [value for value in self.final(column).tolist() if value is not None]

    def by_panel(self, column: str) -> Array:
        """One column at the end, shape (panels, trials), seeds rising."""
        found: dict[str, dict[int, float]] = {}
        row: Any
        for row in self.ends:
            found.setdefault(row.panel, {})[row.seed] = getattr(row, column)
        return np.array([[of[k] for k in sorted(of)] for of in found.values()], dtype=float)

    def among(self, seeds: Container[int]) -> Trials[R]:
        """Select the trials that have one of the ``seeds``, in rising order."""
        by_seed = dict(zip(self.seeds, self.runs, strict=True))
        return Trials(tuple(by_seed[seed] for seed in sorted(by_seed) if seed in seeds))


# By panel and method.
Groups = dict[tuple[str, str], Trials[R]]


def grouped(rows: Iterable[R], part: Callable[[str], str] = str) -> Groups[R]:
    """Trials of each panel, or ``part`` of its name, and method, in the order of the rows."""
    collected: dict[tuple[str, str], dict[tuple[str, int], list[Any]]] = {}
    row: Any
    for row in rows:
        runs = collected.setdefault((part(row.panel), row.method), {})
        runs.setdefault((row.panel, row.seed), []).append(row)
    return {key: Trials(tuple(map(tuple, runs.values()))) for key, runs in collected.items()}


def comparison(ours: Trials[Any], theirs: Trials[Any], column: str = REGRET) -> dict[str, float]:
    """Compare a column at the end, on the seeds of both."""
    pair = ours.among(theirs.seeds), theirs.among(ours.seeds)
    return compared(*(trials.final(column) for trials in pair))


def marks(rounds: int, most: int = 200) -> list[int]:
    """Select at most so many rounds to keep, rising: with the last one and the middle one."""
    even = np.rint(np.linspace(0.0, rounds, min(most, rounds) + 1)).astype(int)
    return sorted({*even.tolist(), rounds // 2} - {0})  # rounds begin at 1


def names(*contenders: Contender[..., Any]) -> tuple[str, ...]:
    """List the names of methods for the settings."""
    return tuple(one.name for one in contenders)
