"""Shared by the figures of functions: a noisy function, some of whose results are replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stoic.adversaries import Adversary, Frequency, Gaussian
from stoic.environment import Environment
from stoic.experiments import claims, regret
from stoic.experiments.figure import Cell, Claim
from stoic.experiments.methods import Method, Threat, method
from stoic.experiments.regret import Run, Step
from stoic.problems import Problem
from stoic.simulate import run as simulate


def play(
    cell: Cell,
    problem: Problem,
    adversary: Adversary | None,
    *,
    rounds: int,
    initial: int,
    noise_sd: float,
) -> list[Step]:
    """Play one method with one seed.

    Parameters
    ----------
    cell:
        Panel, method and seed.
    problem:
        f.
    adversary:
        Replaces results, if given; the method knows how many.
    rounds, initial:
        T, and the number of clean scrambled Sobol points that come first.
    """
    environment = Environment(problem, Gaussian(noise_sd), adversary, cell.seed)
    budget = environment.adversary.budget
    corruptions = budget.count if isinstance(budget, Frequency) else 0
    learner = method(cell.method).build(problem.domain, Threat(corruptions, rounds), cell.seed)
    trace = simulate(learner, environment, rounds, initial=initial, recommend=True)
    return regret.steps(cell, trace)


def less(
    by_run: Mapping[tuple[str, str], Run],
    panel: str,
    ours: Sequence[Method],
    references: Sequence[Method],
    said: str,
    source: str = "",
) -> Iterator[Claim]:
    """Claims that each has less mean cumulative regret than each reference, if both were run.

    Parameters
    ----------
    by_run:
        The trials of each (panel, method).
    panel:
        Name of the panel.
    ours, references:
        The compared methods.
    said:
        Name of the panel in the claim.
    source:
        Source of the claims.
    """
    for one in ours:
        for reference in references:
            if (panel, one.name) in by_run and (panel, reference.name) in by_run:
                measured = regret.comparison(by_run[panel, one.name], by_run[panel, reference.name])
                sentence = (
                    f"{said}: {one.name} has less mean cumulative regret than {reference.name}."
                )
                yield claims.less(sentence, measured, source)
