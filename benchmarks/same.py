"""Digests of queries of all recipes and of small figures: a change of names leaves them alone."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from stoic.balancing import build
from stoic.domains import Box, Domain
from stoic.experiments.reproduction import catalogue, with_options
from stoic.experiments.results import digest
from stoic.experiments.sweep import sweep
from stoic.kernels import RBF
from stoic.posteriors import Prior
from stoic.recipes import RECIPES, Recipe

ROUNDS = 100
BOX = Box([0.0, 0.0], [1.0, 1.0])
# Of parameters that have no default.
GIVEN: dict[str, Any] = {
    "prior": Prior(RBF(0.3), 0.01),
    "horizon": ROUNDS,
    "threshold": -0.5,
    "radius": 0.1,
}
# What they show takes minutes at any size, or needs data.
LEFT_OUT = ("outliers/tuning", "outliers/lunar-lander", "corruption/figure-1", "matrix", "contest/")


def main() -> None:
    for recipe in RECIPES:
        for name, domain in (("box", BOX), ("grid", BOX.grid(9))):
            print(f"  {recipe.__name__} {name}: {_queries(recipe, domain)}", flush=True)
    for figure in catalogue():
        if not figure.name.startswith(LEFT_OUT):
            print(f"  {figure.name}: {_rows(figure)}", flush=True)


def _queries(recipe: Callable[..., Recipe], domain: Domain) -> str:
    """Digest of a hundred queries; one result in twelve is an outlier, one in thirty is missing."""
    parameters = inspect.signature(recipe).parameters.values()
    needed = {p.name: GIVEN[p.name] for p in parameters if p.default is p.empty and p.name in GIVEN}
    rng = np.random.default_rng(0)
    x = []
    try:
        learner = build(domain, recipe(**needed), seed=0)
        for t in range(ROUNDS):
            choice = learner.ask()
            x.append(choice.x)
            value = -float(np.sum((choice.x - 0.3) ** 2)) + 0.1 * float(rng.standard_normal())
            value = 50.0 if t % 12 == 5 else float("nan") if t % 30 == 17 else value
            learner.tell(choice.x, value, choice=choice)
    except (TypeError, ValueError) as error:  # a recipe says which domain it needs
        return f"{type(error).__name__} after {len(x)} queries"
    return hashlib.sha256(np.array(x).tobytes()).hexdigest()[:16]


def _rows(figure: Any) -> str:
    """Digest of the rows of one trial of two rounds."""
    try:
        parts = sweep(figure, with_options(figure.settings, trials=1, rounds=2), jobs=1)
    except (ImportError, OSError, ValueError) as error:
        return type(error).__name__
    return hashlib.sha256(" ".join(map(digest, parts)).encode()).hexdigest()[:16]
