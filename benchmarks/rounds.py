"""Rounds of GP-UCB on a finite domain: cost a round, growth, memory."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
from scipy.linalg import blas

from stoic import Finite, Prior, recipes
from stoic.confidence import Schedule
from stoic.kernels import RBF
from stoic.learner import Learner


def bare(covariance: np.ndarray, f: np.ndarray, rounds: int) -> float:
    """Seconds a round of the same arithmetic with nothing around it."""
    S, mean = np.array(covariance), np.zeros(len(f))
    noise = 0.02 * np.random.default_rng(0).standard_normal(rounds)
    start = time.perf_counter()
    for t in range(rounds):
        arm = int((mean + 2.0 * np.sqrt(np.maximum(S.diagonal(), 0.0))).argmax())
        row = S[arm].copy()
        gain = 1.0 / (1.0 + row[arm])
        mean += row * ((f[arm] + noise[t] - mean[arm]) * gain)
        blas.dger(-gain, row, row, a=S.T, overwrite_a=1)
    return (time.perf_counter() - start) / rounds


def small() -> None:
    axis = np.linspace(-5.0, 5.0, 10)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    prior = Prior(RBF(0.5), 1.0)
    K = prior.kernel(points, points)
    rng = np.random.default_rng(1)
    f = np.linalg.cholesky(K + 1e-10 * np.eye(100)) @ rng.standard_normal(100)
    rounds = 50_000
    noise = 0.02 * rng.standard_normal(rounds)
    reference = bare(K, f, 20_000)
    learner = Learner(
        Finite(points),
        recipes.gp_ucb(prior=prior, confidence=Schedule(0.5 / np.sqrt(2.0), 1.0, 0.0)),
    )
    marks, start = {}, time.perf_counter()
    for t in range(rounds):
        choice = learner.ask()
        assert choice.arm is not None
        learner.tell(choice.x, f[choice.arm] + noise[t])
        if t + 1 in (rounds // 10, rounds // 2, rounds):
            marks[t + 1] = (time.perf_counter() - start) / (t + 1)
    print(f"  100 arms, bare BLAS          {1e6 * reference:7.1f} us a round")
    for t, seconds in marks.items():
        print(
            f"  100 arms, {t:6d} rounds      {1e6 * seconds:7.1f} us a round,"
            f" {seconds / reference:4.1f} x bare"
        )


def replays(arms: int, rounds: int) -> dict[int, float]:
    """Seconds a round of replays, by the number of distinct arms played, which stays.

    Once the number of rounds has doubled all is solved afresh, so they are half of all rounds.
    """
    rng = np.random.default_rng(2)
    domain = Finite(rng.uniform(-5.0, 5.0, (arms, 2)))
    seconds = {}
    for distinct in (25, 50, 100, 200):
        learner = Learner(domain, recipes.gp_ucb(prior=Prior(RBF(1.0), 0.1)))
        first = rng.permutation(arms)[:distinct]
        played = np.concatenate([first, rng.choice(first, rounds - distinct)])
        learner.tell(domain.points[played], rng.standard_normal(rounds))
        learner.ask(pending=[])
        start = time.perf_counter()
        for arm in rng.choice(first, rounds):
            learner.tell(domain.points[arm], rng.standard_normal())
            learner.ask(pending=[])
        seconds[distinct] = (time.perf_counter() - start) / rounds
    return seconds


def large() -> None:
    N = 10_000
    print(f"  {N} arms:")
    for distinct, seconds in replays(N, 500).items():
        print(f"    {distinct:4d} played  {1e6 * seconds:8.0f} us a round")
    tracemalloc.start()
    replays(N, 200)
    print(f"    peak {tracemalloc.get_traced_memory()[1] / 2**20:.1f} MB")
    tracemalloc.stop()


def main() -> None:
    small()
    large()
