"""Stochastic programs as problems: f is the mean of their results, and may be unknown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import numpy as np

from stoic.data import Array
from stoic.domains import Domain, as_points
from stoic.problems.base import Optimum


class Program(Protocol):
    """Stochastic program: a run at a point ends in a number."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def domain(self) -> Domain:
        """Domain of the program."""

    def run(self, x: Array, seed: int) -> float:
        """Run at ``x`` (d,): the same result for the same seed, another one for another."""


class Runs:
    """Program as a problem of an environment: its noise is within, and each query is a run.

    Unlike any other problem it is not a function: a repeated query is a new run. The k-th run has
    the k-th seed of a stream whatever was queried before, so methods that meet the same ``seed``
    are compared on the same draws. f is the mean of a result; since a point is chosen before its
    run, a sum of results has the mean of the sum of f.

    Parameters
    ----------
    program:
        The program.
    seed:
        Of the stream of seeds.

    Attributes
    ----------
    optimum:
        All nan: unknown.
    """

    def __init__(self, program: Program, seed: int) -> None:
        self.program = program
        self.name, self.domain = program.name, program.domain
        self.optimum = Optimum(np.full(program.domain.dim, np.nan), np.nan)
        self._seeds = seeds(seed, 0)

    def value(self, x: Array) -> Array:
        """Run at each row of ``x`` (m, d), shape (m,)."""
        points = as_points(x, self.domain.dim)
        return np.array([self.program.run(point, next(self._seeds)) for point in points])


def mean_of_runs(program: Program, x: Array, runs: int, seed: int) -> float:
    """Average the results at ``x`` (d,) of runs that no ``Runs`` of this seed has made."""
    return float(np.mean([program.run(x, fresh) for fresh in islice(seeds(seed, 1), runs)]))


def seeds(seed: int, stream: int) -> Iterator[int]:
    """Generate seeds of runs, without end; each stream of the same seed is another one."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, stream]))
    while True:
        yield int(rng.integers(2**31))
