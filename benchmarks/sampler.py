"""One ask of a study: the default and others through Optuna, CPU milliseconds in the same run.

Once where all results are honest, and once where one in ten is too good by up to the range.
"""

from __future__ import annotations

import itertools
import statistics
import time
import warnings

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

from stoic.integrations.optuna import StoicSampler

SIZES = ((50, 2), (150, 2), (100, 6), (300, 36))  # results, parameters
ASKS = 7
WRONG = 0.1  # of the results


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    samplers = {
        "default": lambda: StoicSampler(seed=0),
        "loo_gp_ucb": lambda: StoicSampler(seed=0, recipe="loo_gp_ucb"),
    }
    try:
        import torch
    except ImportError:
        print("  GPSampler is left out: it needs torch, which is not installed")
    else:
        torch.set_num_threads(1)
        samplers["GPSampler"] = lambda: optuna.samplers.GPSampler(seed=0)
    print("  results, parameters", *(f"{name:>12}" for name in samplers), "  default / GPSampler")
    for wrong, (n, d) in itertools.product((0.0, WRONG), SIZES):
        studies = {name: _begun(n, d, make(), wrong) for name, make in samplers.items()}
        taken: dict[str, list[float]] = {name: [] for name in samplers}
        for _ in range(ASKS):
            for name, study in studies.items():
                start = time.process_time()
                trial = study.ask(_space(d))
                taken[name].append(1e3 * (time.process_time() - start))
                study.tell(trial, _value([trial.params[f"x{i}"] for i in range(d)]))
        # The first ask is from a cold start.
        middle = {name: statistics.median(times[1:]) for name, times in taken.items()}
        ratio = middle["default"] / middle["GPSampler"] if "GPSampler" in middle else float("nan")
        print(
            f"  {n:7d}, {d:2d}         ",
            *(f"{t:12.0f}" for t in middle.values()),
            f"  {ratio:.2f}",
            f"  {wrong:.0%} wrong" * (wrong > 0.0),
        )


def _space(d: int) -> dict[str, FloatDistribution]:
    return {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(d)}


def _value(x: list[float]) -> float:
    return float(sum((2.0 * u - 0.6) ** 2 * (1.0 + 0.2 * i) for i, u in enumerate(x)))


def _begun(
    n: int, d: int, sampler: optuna.samplers.BaseSampler, wrong: float = 0.0
) -> optuna.Study:
    """A study with ``n`` results at random places, slightly noisy, a share of them too good."""
    rng, other = np.random.default_rng([n, d]), np.random.default_rng([n, d, 1])
    span = _value([1.0] * d)
    study = optuna.create_study(sampler=sampler)
    for _ in range(n):
        x = rng.random(d)
        study.add_trial(
            optuna.create_trial(
                params={f"x{i}": float(u) for i, u in enumerate(x)},
                distributions=_space(d),
                value=_value(list(x))
                + 0.01 * float(rng.standard_normal())
                - (other.random() < wrong) * span * float(other.random()),
            )
        )
    return study
