"""Rounds of GP-UCB, RGP-UCB and RGP-PE under attack, against a refit in every round (CPU time)."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from stoic import Prior
from stoic.adversaries import Adversary, Gaussian, Magnitude
from stoic.environment import Environment
from stoic.experiments.corruption.algorithms import GP_UCB, RGP_PE, RGP_UCB, Algorithm
from stoic.experiments.corruption.worlds import F1, draw
from stoic.kernels import RBF
from stoic.policies import RareSwitching
from stoic.problems import f1
from stoic.simulate import run

T, BUDGET = 50_000, 50.0
TIE = 1e-9  # heights that are closer are tied, and may be told apart differently
Array = np.ndarray


def played(algorithm: Algorithm) -> tuple[float, Array, Array]:
    """CPU seconds of a whole simulation under Top-3, the arms played and what was told."""
    problem = draw("f1", 0).problem
    adversary = Adversary(F1.attack("Top-3", problem), Magnitude(BUDGET))
    environment = Environment(problem, Gaussian(0.02), adversary, seed=0)
    learner = algorithm.build(F1, problem, BUDGET)
    start = time.process_time()
    trace = run(learner, environment, T, batch=algorithm.batch)
    seconds = time.process_time() - start
    arms = problem.domain.locate(trace.executed)
    assert arms is not None
    return seconds, arms, trace.observed


def refit(K: Array, counts: Array, sums: Array) -> tuple[Array, Array, float]:
    """Mean, variance and log det(I + K_t) from the distinct arms, noise 1 / count."""
    arms = np.flatnonzero(counts)
    if not len(arms):
        return np.zeros(len(K)), K.diagonal().copy(), 0.0
    noisy = K[np.ix_(arms, arms)] + np.diag(1.0 / counts[arms])
    factor = cho_factor(noisy, lower=True)
    cross = K[arms]
    solved = cho_solve(factor, cross)
    mean = solved.T @ (sums[arms] / counts[arms])
    variance = K.diagonal() - np.einsum("ij,ij->j", cross, solved)
    growth = 2.0 * np.log(factor[0].diagonal()).sum() + np.log(counts[arms]).sum()
    return mean, variance, float(growth)


def literal_ucb(K: Array, arms: Array, observed: Array, enlargement: float) -> float:
    """CPU seconds of a refit in every round; its choices are those that were played."""
    counts, sums = np.zeros(len(K)), np.zeros(len(K))
    start = time.process_time()
    for t, (arm, y) in enumerate(zip(arms.tolist(), observed.tolist(), strict=True), start=1):
        mean, variance, _ = refit(K, counts, sums)
        width = 0.5 * math.sqrt(math.log(t)) + enlargement
        upper = mean + width * np.sqrt(np.maximum(variance, 0.0))
        assert upper[arm] >= upper.max() - TIE, (t, arm, int(upper.argmax()))
        counts[arm] += 1.0
        sums[arm] += y
    return time.process_time() - start


def literal_pe(K: Array, arms: Array, observed: Array) -> float:
    """CPU seconds of Algorithm 1 line by line; its epochs are those that were played."""
    N, active, done, epoch = len(K), np.ones(len(K), dtype=bool), 0, 0
    start = time.process_time()
    while done < len(arms):
        length = 2 ** (epoch + 1)
        order, counts, none = [], np.zeros(N), np.zeros(N)
        _, looked_up, before = refit(K, counts, none)
        for _ in range(length):
            _, variance, growth = refit(K, counts, none)
            if growth - before > math.log(2.0) + TIE:  # exactly 2 is not more than 2
                looked_up, before = variance, growth
            among = np.where(active, looked_up, -np.inf)
            arm = int(np.argmax(among >= among.max() * (1.0 - TIE)))
            if not counts[arm]:
                order.append(arm)
            counts[arm] += 1.0
        plays = np.maximum(counts[order], math.ceil(0.5 * length)).astype(int)
        plan = np.repeat(order, plays)
        those = slice(done, done + len(plan))
        assert (plan[: len(arms) - done] == arms[those]).all(), epoch
        done += len(plan)
        if done > len(arms):
            break
        u = np.bincount(arms[those], minlength=N).astype(float)
        sums = np.bincount(arms[those], observed[those], minlength=N)
        mean, variance, _ = refit(K, u, sums)
        half = (4.0 + 0.1 * BUDGET / math.sqrt(u.sum())) * np.sqrt(np.maximum(variance, 0.0))
        active &= mean + half >= (mean - half)[active].max()
        epoch += 1
    return time.process_time() - start


def compare(algorithm: Algorithm, literal: Callable[[Array, Array], float]) -> None:
    """One line: ours, theirs, and the ratio."""
    seconds, arms, observed = played(algorithm)
    theirs = literal(arms, observed)
    print(
        f"  {algorithm.learner:8s} {T / seconds:8.0f} rounds a second ({1e6 * seconds / T:5.1f} us)"
        f"   with refits {T / theirs:6.0f} ({1e6 * theirs / T:6.1f} us)   ratio "
        f"{theirs / seconds:5.1f}",
        flush=True,
    )


def selection() -> None:
    """The plan of one long epoch, of all arms."""
    domain, taken = f1(0).domain, []
    for _ in range(9):
        start = time.process_time()
        plan = RareSwitching()(
            Prior(RBF(0.5), 1.0), domain, np.ones(len(domain), dtype=np.bool_), 13
        )
        taken.append(time.process_time() - start)
    print(
        f"  an epoch of 2^14 on {len(domain)} arms is planned in "
        f"{1e3 * statistics.median(taken):.1f} ms ({len(plan.arms)} distinct arms)"
    )


def main() -> None:
    points = f1(0).domain.points
    K = RBF(0.5)(points, points)
    compare(GP_UCB, lambda arms, told: literal_ucb(K, arms, told, 0.0))
    compare(RGP_UCB, lambda arms, told: literal_ucb(K, arms, told, 0.1 * BUDGET))
    compare(RGP_PE, lambda arms, told: literal_pe(K, arms, told))
    selection()
