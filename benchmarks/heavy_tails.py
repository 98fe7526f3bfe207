"""Rounds of ATA-GP-UCB against the double sum as it is written, and of TGP-UCB against GP-UCB."""

from __future__ import annotations

import math
import statistics
import time

import numpy as np

from stoic import Finite, Learner, Prior, recipes
from stoic.confidence import Schedule, Theory
from stoic.kernels import RBF
from stoic.posteriors.features import Features, Fourier, Nystroem
from stoic.posteriors.levels import FeatureLevel

ARMS = Finite(np.linspace(0.0, 1.0, 100))
SIZES = (100, 300, 1_000, 3_000, 10_000, 20_000)
HORIZON = SIZES[-1]


def history(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Arms of ``n`` plays, more of them where f is large, and results with heavy tails."""
    rng = np.random.default_rng(0)
    f = np.sin(7.0 * ARMS.points[:, 0])
    arms = rng.choice(100, size=n, p=np.exp(f) / np.exp(f).sum())
    return arms, f[arms] + rng.standard_t(3, n)


def ours(lengthscale: float, features: Features, n: int, rounds: int = 300) -> float:
    """Seconds a round, tell and ask, after ``n`` results."""
    learner = Learner(
        ARMS,
        recipes.ata_gp_ucb(
            prior=Prior(RBF(lengthscale), 1.0),
            features=features,
            moment=4.0,
            theory=Theory("practice", horizon=HORIZON),
        ),
    )
    arms, y = history(n + rounds)
    learner.tell(ARMS.points[arms[:n]], y[:n])
    learner.ask(pending=[])
    start = time.perf_counter()
    for i in range(n, n + rounds):
        learner.tell(ARMS.points[arms[i]], y[i])
        learner.ask(pending=[])
    return (time.perf_counter() - start) / rounds


def double_sum(Phi: np.ndarray, y: np.ndarray, b: float) -> np.ndarray:
    """theta from the whole history, in array operations: O(m^2 n)."""
    eigenvalues, Q = np.linalg.eigh(Phi.T @ Phi + np.eye(Phi.shape[1]))
    root = (Q / np.sqrt(eigenvalues)) @ Q.T
    parts = (Phi @ root) * y[:, None]
    theta: np.ndarray = root @ np.where(np.abs(parts) <= b, parts, 0.0).sum(axis=0)
    return theta


def double_loop(Phi: np.ndarray, y: np.ndarray, b: float) -> np.ndarray:
    """The same, the two sums as two loops."""
    n, m = Phi.shape
    eigenvalues, Q = np.linalg.eigh(Phi.T @ Phi + np.eye(m))
    root = (Q / np.sqrt(eigenvalues)) @ Q.T
    u, results = (Phi @ root).tolist(), y.tolist()
    r = np.zeros(m)
    for i in range(m):
        for tau in range(n):
            part = u[tau][i] * results[tau]
            if abs(part) <= b:
                r[i] += part
    theta: np.ndarray = root @ r
    return theta


def literal(lengthscale: float, n: int) -> tuple[float, float]:
    """Seconds of theta alone after ``n`` results: in array operations, and in loops."""
    learner = Learner(
        ARMS, recipes.ata_gp_ucb(prior=Prior(RBF(lengthscale), 1.0), features=Fourier(64))
    )
    embedding = learner.model(ARMS, learner.observations).embedding  # type: ignore[attr-defined]
    arms, y = history(n)
    Phi = embedding.phi(ARMS.points)[arms]
    b = FeatureLevel(HORIZON)(n, 64, 4.0, 1.0)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        double_sum(Phi, y, b)
        taken.append(time.perf_counter() - start)
    start = time.perf_counter()
    double_loop(Phi, y, b)
    return statistics.median(taken), time.perf_counter() - start


def adaptive() -> None:
    for lengthscale, what in ((0.2, "smooth"), (0.02, "rough")):
        print(f"  ATA, 100 arms, 64 quadrature features, l = {lengthscale} ({what}); us a round")
        print("        n      ours   double sum (ratio)      in loops  (ratio)")
        fast, arrays, loops = [], [], []
        for n in SIZES:
            fast.append(ours(lengthscale, Fourier(64), n))
            array, loop = literal(lengthscale, n)
            arrays.append(array)
            loops.append(loop)
            print(
                f"   {n:6d} {1e6 * fast[-1]:9.0f} {1e6 * array:12.0f} ({array / fast[-1]:5.1f})"
                f" {1e6 * loop:13.0f} ({loop / fast[-1]:6.1f})",
                flush=True,
            )
        steps = np.arange(1, HORIZON + 1)
        total = [float(np.interp(steps, SIZES, curve).sum()) for curve in (fast, arrays, loops)]
        print(
            f"   {HORIZON} rounds, by interpolation: {total[0]:.1f} s against {total[1]:.0f} s"
            f" ({total[1] / total[0]:.0f} x) and {total[2]:.0f} s ({total[2] / total[0]:.0f} x)"
        )
    print("  ATA, 100 arms, l = 0.2, n = 20000; us a round")
    for name, features in (
        ("Nystroem", Nystroem(0.1, HORIZON)),
        ("Nystroem, principal", Nystroem(0.1, HORIZON, principal=True)),
    ):
        print(f"    {name:20s} {1e6 * ours(0.2, features, 20_000):7.0f}")


def rounds_of(learner: Learner, f: np.ndarray, noise: np.ndarray) -> float:
    start = time.perf_counter()
    for draw in noise:
        choice = learner.ask()
        learner.tell(choice.x, f[choice.arm] + draw)
    return (time.perf_counter() - start) / len(noise)


def growing() -> None:
    """The loop of ``python -m benchmarks rounds``, in turns so that both see the same machine."""
    axis = np.linspace(-5.0, 5.0, 10)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    prior = Prior(RBF(0.5), 1.0)
    rng = np.random.default_rng(1)
    f = rng.standard_normal(100)
    noise = 0.02 * rng.standard_normal(10_000)
    narrow = Schedule(0.5 / math.sqrt(2.0), 1.0, 0.0)
    makers = {
        "GP-UCB": lambda: Learner(Finite(points), recipes.gp_ucb(prior=prior, confidence=narrow)),
        "TGP-UCB, the same width": lambda: Learner(
            Finite(points), recipes.tgp_ucb(prior=prior, moment=4.0, confidence=narrow)
        ),
        "TGP-UCB": lambda: Learner(Finite(points), recipes.tgp_ucb(prior=prior, moment=4.0)),
    }
    taken: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(9):
        for name, make in makers.items():
            taken[name].append(rounds_of(make(), f, noise))
    base = taken["GP-UCB"]
    print(f"  100 arms, {len(noise)} rounds, median of 9")
    for name, times in taken.items():
        ratio = statistics.median(a / b for a, b in zip(times, base, strict=True))
        print(f"    {name:24s} {1e6 * statistics.median(times):7.1f} us a round, {ratio:4.2f} x")


def main() -> None:
    growing()
    adaptive()
