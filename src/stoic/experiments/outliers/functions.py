"""Shared by the figures of functions: a noisy function, some of whose results are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stoic.adversaries import Adversary, Frequency, Gaussian
from stoic.environment import Environment
from stoic.experiments import claims
from stoic.experiments.figure import Cell, Claim
from stoic.experiments.methods import Method, Threat, method
from stoic.experiments.regret import Step, steps
from stoic.experiments.trials import Groups, comparison
from stoic.problems import Problem
from stoic.simulate import run as simulate


def play(
    settings: Any, cell: Cell, problem: Problem, adversary: Adversary | None, rounds: int
) -> list[Step]:
    """Play one method with one seed.

    Parameters
    ----------
    settings:
        Have ``initial``, the number of clean scrambled Sobol points that come first, and
        ``noise_sd``.
    cell:
        Panel, method and seed.
    problem:
        f.
    adversary:
        Replaces results, if given; the method knows how many.
    rounds:
        T.
    """
    environment = Environment(problem, Gaussian(settings.noise_sd), adversary, cell.seed)
    budget = environment.adversary.budget
    corruptions = budget.count if isinstance(budget, Frequency) else 0  # no adversary, no T_c
    learner = method(cell.method).build(problem.domain, Threat(corruptions, rounds), cell.seed)
    trace = simulate(learner, environment, rounds, initial=settings.initial, recommend=True)
    return steps(cell, trace)


def less(
    groups: Groups[Step],
    panel: str,
    ours: Sequence[Method],
    references: Sequence[Method],
    said: str,
    source: str = "",
) -> Iterator[Claim]:
    """Claims that each has less mean cumulative regret than each reference, if both were run.

    Parameters
    ----------
    groups:
        The trials.
    panel, said:
        Name of the panel, and its name in the claim.
    ours, references:
        The compared methods.
    source:
        Source of the claims.
    """
    for one in ours:
        for other in references:
            if (panel, one.name) in groups and (panel, other.name) in groups:
                numbers = comparison(groups[panel, one.name], groups[panel, other.name])
                sentence = f"{one.name} has less mean cumulative regret than {other.name}"
                yield claims.less(f"{said}: {sentence}.", numbers, source)
