"""Outliers: a fit and a choice of each defence, beside relevance pursuit, on the same lies."""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np

from stoic import Box, Learner, recipes
from stoic.experiments.peers import RelevancePursuit
from stoic.recipes import Parts, Recipe

SIZES = ((30, 2), (100, 2), (100, 6))
LIES = 0.1  # of the results, each by 10 to 100 times the range of the function
RECIPES = (
    recipes.gp_ucb(),
    recipes.a2_rcgp_ucb(),
    recipes.diagnostics_gp_ucb(),
    recipes.loo_gp_ucb(),
)


def function(x: np.ndarray) -> np.ndarray:
    return -3.0 * ((x - 0.4) ** 2).sum(axis=1) + np.sin(5.0 * x[:, 0])


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and results; one in ten lies, of either sign."""
    rng = np.random.default_rng(0)
    x = rng.random((n, d))
    y = function(x) + 0.1 * rng.standard_normal(n)
    lies = rng.permutation(n)[: round(LIES * n)]
    y[lies] += rng.choice([-1.0, 1.0], len(lies)) * 10.0 ** rng.uniform(1.5, 2.5, len(lies))
    return x, y


def measured(step: Callable[[], float], repeats: int) -> tuple[float, float]:
    """Median seconds of ``step``, and what it returned last."""
    taken, found = [], float("nan")
    for _ in range(repeats):
        start = time.perf_counter()
        found = step()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), found


def ours(recipe: Recipe[Parts], n: int, d: int) -> tuple[float, float]:
    x, y = data(n, d)
    elsewhere = np.random.default_rng(1).random((500, d))

    def step() -> float:
        learner = Learner(Box(np.zeros(d), np.ones(d)), recipe, seed=0)
        learner.tell(x, y)
        learner.ask()
        mean, _ = learner.posterior.predict(elsewhere)
        return float(np.sqrt(np.mean((mean - function(elsewhere)) ** 2)))

    return measured(step, 5)


def relevance_pursuit(n: int, d: int) -> tuple[float, float]:
    import torch

    torch.set_num_threads(1)
    x, y = data(n, d)
    elsewhere = np.random.default_rng(1).random((500, d))

    def step() -> float:
        player = RelevancePursuit(Box(np.zeros(d), np.ones(d)), 0)
        player.tell(x, y)
        player.ask_batch(1)
        with torch.no_grad():
            mean = player.fitted().posterior(torch.tensor(elsewhere)).mean[:, 0].numpy()
        return float(np.sqrt(np.mean((mean - function(elsewhere)) ** 2)))

    return measured(step, 1)


def main() -> None:
    warnings.simplefilter("ignore")
    installed = all(importlib.util.find_spec(name) for name in ("torch", "botorch"))
    print(
        "  median ms from a cold start, and RMSE against f, whose standard deviation is about 0.7"
    )
    names = [recipe.write.__name__ for recipe in RECIPES] + ["relevance pursuit"]
    print("     n   d " + "".join(f"{name:>24s}" for name in names))
    for n, d in SIZES:
        found = [ours(recipe, n, d) for recipe in RECIPES]
        if installed:
            found.append(relevance_pursuit(n, d))
        shown = "".join(f"{1e3 * taken:14.0f}  ({error:6.2f})" for taken, error in found)
        print(f"  {n:4d} {d:3d} {shown}", flush=True)
    if not installed:
        print("  BoTorch is not installed: pip install 'stoic[botorch]' to see relevance pursuit")
