"""Choices against moves of the input: time and memory on 10,000 points, rounds on 4,096."""

from __future__ import annotations

import math
import statistics
import time
import tracemalloc

import numpy as np

from stoic import Box, Learner, Prior, recipes
from stoic.adversaries import Gaussian, LowestBound
from stoic.distances import Distance
from stoic.environment import Environment
from stoic.kernels import RBF, Scaled
from stoic.problems import Tabulated, polynomial
from stoic.recipes import Parts, Recipe
from stoic.satisficing import fragility, worst_value
from stoic.simulate import run


def choices() -> None:
    """One ``ask`` each, after every 25 results of the worst places to be moved to."""
    problem = polynomial().on_grid(100)
    points = problem.domain.points
    prior = Prior(Scaled(RBF(np.array([0.5, 0.5])), 400.0), 1.0)
    kernel = Distance.of_kernel(prior.kernel)
    methods: dict[str, Recipe[Parts]] = {
        "AdveRS-1": recipes.advers_1(prior=prior, threshold=-10.0),
        "AdveRS-2": recipes.advers_2(prior=prior, threshold=-10.0),
        "AdveRS-G, p = 3": recipes.advers_g(prior=prior, threshold=-10.0, p=3.0),
        "StableOpt, r = 0.25": recipes.stable_opt(prior=prior, radius=0.25),
        "StableOpt, r = 0.5": recipes.stable_opt(prior=prior, radius=0.5),
        "StableOpt, r = 2": recipes.stable_opt(prior=prior, radius=2.0),
        "AdveRS-1, kernel metric": recipes.advers_1(prior=prior, threshold=-10.0, distance=kernel),
        "AdveRS-2, kernel metric": recipes.advers_2(prior=prior, threshold=-10.0, distance=kernel),
        "StableOpt, kernel metric": recipes.stable_opt(prior=prior, radius=0.5, distance=kernel),
    }
    print(f"  {len(points)} points of the polynomial, one choice (median, worst), peak memory")
    for name, recipe in methods.items():
        learner = Learner(problem.domain, recipe)
        world = Environment(problem, Gaussian(1.0), perturbation=LowestBound(0.5))
        taken, peak = [], 0.0
        for t in range(100):
            x = learner.ask(pending=[]).x
            outcome = world.step(x, band=learner.band)
            learner.tell(outcome.x, outcome.observed)
            learner.band()  # the posterior is not what is measured
            if t % 10 == 0:
                start = time.perf_counter()
                learner.ask(pending=[])
                taken.append(time.perf_counter() - start)
        tracemalloc.start()
        learner.ask(pending=[])
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        print(
            f"    {name:26s} {1e3 * statistics.median(taken):7.1f} ms,{1e3 * max(taken):7.1f} ms,"
            f" {peak:6.1f} MB",
            flush=True,
        )
    f = problem.value(points)
    for name, compute in (
        ("all fragilities", lambda: fragility(f, -10.0, points)),
        ("all worst values", lambda: worst_value(f, 0.5, points)),
    ):
        start = time.perf_counter()
        compute()
        print(f"    {name:26s} {1e3 * (time.perf_counter() - start):7.1f} ms, block by block")


def rounds() -> None:
    """As large as the pendulum: 4,096 points in four dimensions, 250 rounds."""
    domain = Box([-3.0, -3.0, -3.0, 1.0], [2.0, 2.0, 2.0, 5.0]).grid(8)
    rng = np.random.default_rng(0)
    prior = Prior(RBF(np.array([1.5, 1.5, 2.0, 1.0])), 0.1)
    centres = rng.integers(len(domain), size=30)
    f = prior.kernel(domain.points, domain.points[centres]) @ rng.standard_normal(30)
    problem = Tabulated("draw", domain, np.clip((f - f.mean()) / f.std(), -2.0, 2.0))
    print("  4096 points in 4 dimensions, 250 rounds, inputs moved to the lowest bound within 2")
    for name, recipe in (
        ("AdveRS-1", recipes.advers_1(prior=prior, threshold=0.0)),
        ("AdveRS-2", recipes.advers_2(prior=prior, threshold=0.0)),
        ("StableOpt, r = 2", recipes.stable_opt(prior=prior, radius=2.0)),
        ("StableOpt, r = 0.6", recipes.stable_opt(prior=prior, radius=0.6)),
    ):
        world = Environment(problem, Gaussian(math.sqrt(0.1)), perturbation=LowestBound(2.0))
        start = time.perf_counter()
        run(Learner(domain, recipe), world, 250)
        each = (time.perf_counter() - start) / 250
        print(f"    {name:20s} {1e3 * each:6.1f} ms a round; 100 runs {each * 25_000 / 120:5.1f} "
              "minutes on 2 cores", flush=True)  # fmt: skip


def main() -> None:
    choices()
    rounds()
