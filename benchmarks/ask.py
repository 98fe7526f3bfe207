"""One ask with a refit: RCGP beside the plain GP, BoTorch and Optuna's GPSampler, same data."""

from __future__ import annotations

import importlib.util
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import optuna

from stoic import Box, Learner, recipes
from stoic.recipes import Parts, Recipe

SIZES = ((50, 2), (150, 2), (100, 6), (300, 36))


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random((n, d))
    y = -3.0 * ((x - 0.4) ** 2).sum(axis=1) + np.sin(5.0 * x[:, 0])
    return x, y + 0.1 * rng.standard_normal(n)


def times(step: Callable[[int], object], repeats: int) -> float:
    """Median seconds of ``step(i)``."""
    taken = []
    for i in range(repeats):
        start = time.perf_counter()
        step(i)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def ours(recipe: Recipe[Parts], n: int, d: int, repeats: int) -> float:
    x, y = data(n + repeats, d)
    learner = Learner(Box(np.zeros(d), np.ones(d)), recipe)
    learner.tell(x[: n - 1], y[: n - 1])
    learner.ask(pending=[])

    def step(i: int) -> None:
        learner.tell(x[n - 1 + i], y[n - 1 + i])
        learner.ask(pending=[])

    return times(step, repeats)


def gp_sampler(n: int, d: int, repeats: int) -> float:
    x, y = data(n + repeats, d)
    space = {f"x{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(d)}
    study = optuna.create_study(
        sampler=optuna.samplers.GPSampler(seed=0, n_startup_trials=0, deterministic_objective=False)
    )
    study.add_trials([
        optuna.create_trial(
            params={f"x{k}": x[i, k] for k in range(d)}, distributions=space, value=-y[i]
        )
        for i in range(n - 1)
    ])  # fmt: skip
    study.tell(study.ask(space), -y[n - 1])  # the cold start is not counted, as for ours
    taken = []
    for i in range(repeats):
        start = time.perf_counter()
        trial = study.ask(space)
        taken.append(time.perf_counter() - start)
        study.tell(trial, -y[n - 1 + i])
    return statistics.median(taken)


def botorch(n: int, d: int, repeats: int) -> float:
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    x, y = data(n, d)
    X, Y = torch.tensor(x), torch.tensor(y)[:, None]
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()

    def step(i: int) -> None:
        torch.manual_seed(i)
        model = SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = UpperConfidenceBound(model, beta=4.0)
        optimize_acqf(acquisition, bounds=bounds, q=1, num_restarts=10, raw_samples=512)

    return times(step, repeats)


def main() -> None:
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    installed = all(importlib.util.find_spec(name) for name in ("torch", "botorch"))
    if not importlib.util.find_spec("greenlet"):
        print("  note: without greenlet Optuna's GPSampler searches its starts one by one")
    print("  median ms on one thread; of ours the ratio to GP-UCB, of the others that to A2")
    print(
        "     n   d    GP-UCB        FC (ratio)        A2 (ratio)"
        "   BoTorch (ratio)   GPSampler (ratio)"
    )
    for n, d in SIZES:
        repeats = 9 if n < 300 else 5
        plain = ours(recipes.gp_ucb(), n, d, repeats)
        fixed = ours(recipes.fc_rcgp_ucb(), n, d, repeats)
        robust = ours(recipes.a2_rcgp_ucb(), n, d, repeats)
        theirs = gp_sampler(n, d, repeats)
        torch = botorch(n, d, 3 if n < 300 else 1) if installed else float("nan")
        print(
            f"  {n:4d} {d:3d} {1e3 * plain:9.1f} {1e3 * fixed:9.1f} ({fixed / plain:4.1f})"
            f" {1e3 * robust:9.1f} ({robust / plain:4.1f})"
            f" {1e3 * torch:10.1f} ({torch / robust:4.1f}) {1e3 * theirs:10.1f}"
            f" ({theirs / robust:4.1f})",
            flush=True,
        )
    if not installed:
        print("  BoTorch is not installed: pip install 'stoic[botorch]' to see it here")
