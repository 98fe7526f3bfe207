"""Problems of other libraries: COCO's bbob and bbob-noisy, BoTorch's corrupted Hartmann function.

The noise of the last two is their own, drawn by their libraries in the order of the results. It is
paired, too: it does not depend on the queries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution

from stoic.data import Array
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.libraries import load
from stoic.experiments.contest.scenes import LENGTH, Draws, Ground, Params

# Noise-free twins in `bbob` of the noisy functions; 116 to 118 and 125 to 127 have none.
TWINS: dict[int, int] = {
    **dict.fromkeys((101, 102, 103, 107, 108, 109), 1),  # sphere
    **dict.fromkeys((104, 105, 106, 110, 111, 112), 8),  # Rosenbrock
    **dict.fromkeys((113, 114, 115), 7),  # step ellipsoid
    **dict.fromkeys((119, 120, 121), 14),  # different powers
    **dict.fromkeys((122, 123, 124), 17),  # Schaffer F7
    **dict.fromkeys((128, 129, 130), 21),  # Gallagher's 101 peaks
}
# The noise goes round: Gaussian, uniform and Cauchy, which hits a fifth of the results.
KINDS = {"gauss": 101, "uniform": 102, "cauchy": 103}
_INSTANCES = 15  # number of instances in the suite
_APART = 200  # offset of the noise between consecutive seeds, in results
_SHIFT = 7  # and between consecutive functions: else all hit the same trials
_UNIFORM = 2000  # points behind the median


def function_and_dim(name: str) -> tuple[int, int]:
    """Read the number of a function of COCO and its dimension from a name such as ``f3 d2``."""
    function, dim = name.split()
    return int(function[1:]), int(dim[1:])


def functions(kind: str) -> tuple[int, ...]:
    """List the noisy functions with one kind of noise that have a noise-free twin."""
    return tuple(sorted(f for f in TWINS if (f - KINDS[kind]) % 3 == 0))


@dataclass(frozen=True, eq=False)
class Bbob(Ground):
    """Function of COCO's bbob.

    Attributes
    ----------
    name, dim:
        Name such as ``f3 d2``; and d.
    clean:
        COCO's problem, minimised.
    best, median:
        Maximum of the negated problem, and its median at uniform points.
    """

    name: str
    dim: int
    clean: Any
    best: float
    median: float
    sign = -1.0

    @property
    def space(self) -> dict[str, BaseDistribution]:
        return {f"x{k}": FloatDistribution(-5.0, 5.0) for k in range(self.dim)}

    @property
    def span(self) -> float:
        return self.best - self.median

    def truth(self, params: Params) -> float:
        return -float(self.clean(self._point(params)))

    def at(self, u: Array) -> Params:
        return dict(zip(self.space, (10.0 * u - 5.0).tolist(), strict=True))

    def score(self, params: Params) -> float:
        return (self.best - self.truth(params)) / self.span

    def _point(self, params: Params) -> Array:
        return np.array([params[f"x{k}"] for k in range(self.dim)])


@dataclass(frozen=True, eq=False)
class BbobNoisy(Bbob):
    """Noisy function of bbob-noisy with its noise-free twin. Observing advances the noise.

    Attributes
    ----------
    noisy:
        COCO's noisy problem; ``clean`` is its twin.
    suite:
        Kept alive: COCO frees the noisy problem otherwise.
    """

    noisy: Any
    suite: Any

    def run(self, params: Params, t: int, draws: Draws) -> float:
        return -float(self.noisy(self._point(params)))


def bbob(function: int, dim: int, seed: int) -> Ground:
    """Load a function of bbob; each seed has an instance of it.

    Raises
    ------
    RefusalError
        If COCO's module is missing.
    """
    return Bbob(f"f{function} d{dim}", dim, *_clean(function, dim, 1 + seed % _INSTANCES))


def bbob_noisy(function: int, dim: int, seed: int) -> Ground:
    """Build a fresh noisy problem; each seed has an instance and a stretch of the noise.

    COCO has one stream of noise in a process: play one problem at a time. A fresh suite begins it
    anew, so the results before the stretch are thrown away.

    Raises
    ------
    RefusalError
        If COCO's module is missing.
    """
    instance = 1 + seed % _INSTANCES
    twin = _clean(TWINS[function], dim, instance)
    # The suite numbers its functions from 1.
    chosen = f"function_indices:{function - 100} dimensions:{dim} instance_indices:{instance}"
    suite = _coco().Suite("bbob-noisy", "", chosen)
    noisy = suite[0]
    for _ in range(_APART * seed + _SHIFT * (function - 100)):
        noisy(np.zeros(dim))
    return BbobNoisy(f"f{function} d{dim}", dim, *twin, noisy, suite)


@cache
def _clean(function: int, dim: int, instance: int) -> tuple[Any, float, float]:
    """Load a function of bbob, and compute its ``best`` and ``median``."""
    clean = _coco().BareProblem("bbob", function, dim, instance)
    # The same points for every function and instance
    points = np.random.default_rng(0).uniform(-5.0, 5.0, (_UNIFORM, dim))
    median = -float(np.median([clean(x) for x in points]))
    return clean, -float(clean.best_value()), median


def _coco() -> Any:
    return load("A function of COCO", "coco-experiment", "cocoex")[0]


def corrupted_hartmann6(kind: str, seed: int) -> Ground:
    """Hartmann 6 by BoTorch's ``CorruptedTestProblem`` [Ament2024]_: one result in ten corrupted.

    Outliers are 100 (``"constant"``) or values of random points (``"elsewhere"``).

    Raises
    ------
    RefusalError
        If BoTorch is missing.
    """
    modules = ("botorch.test_functions.base", "botorch.test_functions.synthetic", "torch")
    needing = "The corrupted Hartmann function"
    base, synthetic, torch = load(needing, "BoTorch", *modules, extra="botorch")
    hartmann = synthetic.Hartmann(dim=6, negate=True)
    outlier = {"constant": _hundred, "elsewhere": _random_value}[kind]
    # LENGTH seed + t for result t: no two studies share one
    seeds: Iterator[int] = iter(range(LENGTH * seed, LENGTH * (seed + 1)))
    problem = base.CorruptedTestProblem(hartmann, outlier, outlier_fraction=0.1, seeds=seeds)

    def observe(x: Array) -> float:
        with torch.random.fork_rng():  # it seeds the generator that all of torch shares
            return float(problem(torch.tensor(x[None])))

    return replace(FUNCTIONS["hart6"], observe=observe)


def _hundred(problem: Any, X: Any, bounds: Any) -> Any:
    return import_module("torch").full(X.shape[:-1], 100.0, dtype=X.dtype)


def _random_value(problem: Any, X: Any, bounds: Any) -> Any:
    return problem(import_module("torch").rand_like(X), noise=False)
