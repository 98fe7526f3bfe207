"""The maximum of the bound that a Box finds, against BoTorch's optimize_acqf."""

from __future__ import annotations

import importlib.util
import time
import warnings

import numpy as np

from stoic import Box, Prior
from stoic.data import Observations
from stoic.kernels import Matern52
from stoic.policies import Band, UpperConfidenceBound
from stoic.posteriors import Exact, as_observed

POSTERIORS = 50


def posterior(seed: int) -> tuple[Box, Exact]:
    """A random posterior: n and d vary, f is a draw from the prior at its rows."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 2, 3, 6, 10]))
    n = int(rng.integers(5, 120))
    x = rng.random((n, d))
    prior = Prior(Matern52(np.sqrt(d) * rng.uniform(0.1, 0.5, d)), 1e-2)
    K = prior.kernel(x, x) + 1e-2 * np.eye(n)
    y = np.linalg.cholesky(K) @ rng.standard_normal(n)
    rows = Observations(x, y, np.full(n, np.nan))
    return Box(np.zeros(d), np.ones(d)), Exact.condition(
        prior, as_observed, rows, as_observed(rows, prior)
    )


def theirs(exact: Exact, width: float, d: int, seed: int) -> tuple[float, float]:
    """The value of optimize_acqf on the same posterior, and its seconds."""
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.kernels import MaternKernel
    from gpytorch.means import ZeroMean

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    y = exact.L @ exact.residual
    kernel = MaternKernel(nu=2.5, ard_num_dims=d)
    kernel.lengthscale = torch.tensor(exact.prior.kernel.lengthscale)[None]  # type: ignore[attr-defined]
    X = torch.tensor(exact.x)
    model = SingleTaskGP(
        X,
        torch.tensor(y)[:, None],
        torch.full((len(y), 1), exact.prior.noise, dtype=torch.double),
        covar_module=kernel.double(),
        mean_module=ZeroMean(),
        outcome_transform=None,
    ).eval()
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    start = time.perf_counter()
    _, value = optimize_acqf(
        UpperConfidenceBound(model, beta=width**2),
        bounds=bounds,
        q=1,
        num_restarts=10,
        raw_samples=512,
    )
    return float(value), time.perf_counter() - start


def main() -> None:
    warnings.simplefilter("ignore")
    if not all(importlib.util.find_spec(name) for name in ("torch", "botorch")):
        print("  BoTorch is not installed: pip install 'stoic[botorch]'")
        return
    gaps, ratios = [], []
    for seed in range(POSTERIORS):
        box, exact = posterior(seed)
        start = time.perf_counter()
        peak = box.maximise(
            UpperConfidenceBound(Band(exact, 2.0)), np.random.default_rng(seed), exact.x
        )
        mine = time.perf_counter() - start
        value, seconds = theirs(exact, 2.0, box.dim, seed)
        gaps.append(peak.height - value)
        ratios.append(seconds / mine)
    gap = np.array(gaps)
    print(f"  ours - theirs: median {np.median(gap):.1e}, worst {gap.min():.1e}")
    print(f"  not worse by more than 1e-3: {100 * np.mean(gap >= -1e-3):.0f} % of {POSTERIORS}")
    print(f"  better by more than 1e-3:    {100 * np.mean(gap > 1e-3):.0f} %")
    print(f"  seconds, theirs / ours: median {np.median(ratios):.1f}")
