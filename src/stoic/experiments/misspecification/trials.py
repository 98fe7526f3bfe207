"""Runs of a misspecified model, and statistics of all runs of a method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stoic.adversaries import Gaussian
from stoic.data import Array
from stoic.environment import Environment
from stoic.experiments.figure import Cell
from stoic.experiments.misspecification.algorithms import Algorithm, Assumed
from stoic.experiments.statistics import Estimate, Interval, compared, draws
from stoic.experiments.trials import Trials
from stoic.posteriors.arms import Arms
from stoic.problems.misspecified import Approximated
from stoic.simulate import run as simulate


class Row(NamedTuple):
    """One run: a row of the CSV file. Regret and errors are in units of f.

    Attributes
    ----------
    norm, error:
        B, the norm that every method assumes, and eps: some known function of norm at most B is
        nowhere farther from f.
    error_at_least:
        No function of norm at most B is nearer; 0 where that was not computed.
    regret, half:
        Sums of f(x*) - f(x) over all rounds, and over the first half of them.
    best_plays, best_left:
        Number of plays of x*; and True if the method has not ruled it out.
    stretch:
        ||a||_1 at the end, where the posterior mean at x* is a'y; nan for a method in episodes.
    """

    panel: str
    method: str
    seed: int
    norm: float
    error: float
    error_at_least: float
    rounds: int
    regret: float
    half: float
    best_plays: int
    best_left: bool
    stretch: float


def play(
    cell: Cell, problem: Approximated, algorithm: Algorithm, assumed: Assumed, noise_sd: float
) -> Row:
    """Play one method on one function."""
    learner = algorithm.build(problem.domain, assumed)
    environment = Environment(problem, Gaussian(noise_sd), seed=cell.seed)
    trace = simulate(learner, environment, assumed.rounds, batch=algorithm.batch)
    best, regret = int(np.argmax(problem.truth.values)), trace.cumulative_regret
    posterior = learner.posterior
    # A method in episodes starts from the prior again: its last posterior has not seen all
    alone = algorithm.batch == 1 and isinstance(posterior, Arms)
    half = float(regret[assumed.rounds // 2 - 1]) if assumed.rounds > 1 else 0.0
    return Row(
        *cell, assumed.norm, assumed.error, problem.error_at_least, assumed.rounds,
        float(regret[-1]), half, int(np.count_nonzero(trace.regret == 0.0)),
        bool(learner.active()[best]),
        stretch(posterior, best) if alone and isinstance(posterior, Arms) else math.nan,
    )  # fmt: skip


def stretch(posterior: Arms, arm: int) -> float:
    """||a||_1, where the posterior mean at ``arm`` is a'y for results y.

    Results that are off by at most eps move the mean by at most eps ||a||_1; Lemma 2 bounds that by
    eps sqrt(n) std / sqrt(noise). All rows of one arm have the same weight.
    """
    played = np.flatnonzero(posterior.counts)
    points, noise = posterior.domain.points, posterior.prior.noise
    K = posterior.prior.kernel(points[played], points[played])
    k = posterior.prior.kernel(points[played], points[[arm]])[:, 0]
    # n results of an arm are one with noise / n, whose weight they share
    weights = np.linalg.solve(K + np.diag(noise / posterior.counts[played]), k)
    return float(np.abs(weights).sum())


def average(trials: Trials[Row]) -> Array:
    """R_T / T, shape (trials,)."""
    return np.array([row.regret / row.rounds for row in trials.ends])


def late(trials: Trials[Row]) -> float:
    """Share of the mean regret that fell in the second half of the rounds; nan for none."""
    total = sum(row.regret for row in trials.ends)
    return 1.0 - sum(row.half for row in trials.ends) / total if total else math.nan


def measured(trials: Trials[Row]) -> dict[str, float]:
    """Numbers behind a claim about these trials."""
    mean = Estimate.of(average(trials))
    return {
        "regret_per_round": mean.mean,
        "standard_error": mean.error,
        "share_in_second_half": late(trials),
        "trials": float(len(trials)),
        "trials_that_hold_the_best_possible": float(trials.final("best_left").sum()),
        "trials_that_played_the_best": float((trials.final("best_plays") > 0).sum()),
        "median_stretch": float(np.median(trials.final("stretch"))),
    }


def paired(ours: Trials[Row], theirs: Trials[Row]) -> dict[str, float]:
    """R_T / T of two methods on the same trials, and their difference."""
    numbers = compared(average(ours), average(theirs))
    return {
        "regret_per_round": numbers["mean"],
        "standard_error": numbers["standard_error"],
        "reference_regret_per_round": numbers["reference_mean"],
        "reference_standard_error": numbers["reference_standard_error"],
        **{key: numbers[key] for key in ("paired_difference", "paired_standard_error", "trials")},
    }


def text(number: Interval) -> str:
    """Format, with nan for what is not known."""
    return f"{number.value:.2f} [{number.lower:.2f}, {number.upper:.2f}]"


def slope(errors: Array, averages: Array) -> Interval:
    """d(R_T / T) / d eps by least squares; eps (m,) and R_T / T (trials, m)."""
    return _resampled(averages, lambda means: _line(errors, means))


def exponent(errors: Array, averages: Array) -> Interval:
    """p in R_T(eps) - R_T(0) ~ eps^p by least squares in logarithms of the means.

    The first of ``errors`` is 0. It is nan where some mean excess is not positive, and its interval
    where that is so in more than a twentieth of the resamples.
    """

    def fit(means: Array) -> Array:
        excess = means[..., 1:] - means[..., :1]
        positive = (excess > 0.0).all(axis=-1, keepdims=True)
        return _line(np.log(errors[1:]), np.log(np.where(positive, excess, math.nan)))

    return _resampled(averages, fit)


def _line(x: Array, y: Array) -> Array:
    """Slopes of ``y`` (..., m) over ``x`` (m,) by least squares, shape (...)."""
    centred = x - x.mean()
    square = float(centred @ centred)  # no slope through one eps
    return np.asarray(y @ centred) / (square or math.nan)


def _resampled(averages: Array, fit: Callable[[Array], Array]) -> Interval:
    """Bootstrap interval of a function of the mean over trials; whole trials are resampled."""
    value = float(fit(averages.mean(axis=0)))
    if len(averages) < 2:
        return Interval(value)
    # Means (RESAMPLES, m), slopes (RESAMPLES,)
    resampled = fit(averages[draws(len(averages))].mean(axis=1))
    if np.isnan(resampled).mean() > 0.05:
        return Interval(value)
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return Interval(value, float(low), float(high))
