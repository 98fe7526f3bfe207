"""Linear growth or flattening of regret, by the share of it in the second half."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stoic.data import Array, Booleans
from stoic.experiments.claims import FLAT, LINEAR, share
from stoic.experiments.statistics import Estimate, compared, deviation
from stoic.experiments.trials import Trials

if TYPE_CHECKING:
    from stoic.experiments.corruption.trials import Row


def of_mean(trials: Trials[Row], among: Booleans | None = None) -> float:
    """Share of the mean curve over the trials, or over some of them; nan over none."""
    curves = trials.curves() if among is None else trials.curves()[among]
    return float(share(curves.mean(axis=0), trials.rounds)) if len(curves) else math.nan


def flat(trials: Trials[Row]) -> Booleans:
    """Mask of the trials that flatten, shape (trials,)."""
    return np.asarray(share(trials.curves(), trials.rounds) <= FLAT)


def linear(trials: Trials[Row]) -> Booleans:
    """Mask of the trials that grow linearly, shape (trials,)."""
    return np.asarray(share(trials.curves(), trials.rounds) >= LINEAR)


def last_slopes(trials: Trials[Row]) -> Array:
    """Regret a round between the last two rounds that were kept, shape (trials,)."""
    cumulative = np.hstack([np.zeros((len(trials.runs), 1)), trials.curves()])
    rounds = [0, *trials.rounds.tolist()]
    return np.asarray((cumulative[:, -1] - cumulative[:, -2]) / (rounds[-1] - rounds[-2]))


def less(ours: Trials[Row], theirs: Trials[Row]) -> dict[str, float]:
    """Compare the final regrets of two methods on the same trials."""
    return {
        **compared(ours.final(), theirs.final()),
        "standard_deviation": deviation(ours.final()),
        "reference_standard_deviation": deviation(theirs.final()),
    }


def measured(trials: Trials[Row]) -> dict[str, float]:
    """Compute the numbers behind a claim: of the mean curve first, then of single trials."""
    final = Estimate.of(trials.final())
    return {
        "share_in_second_half": of_mean(trials),
        "mean": final.mean,
        "standard_deviation": deviation(trials.final()),
        "standard_error": final.error,
        "regret_per_round_at_the_end": float(last_slopes(trials).mean()),
        "median_plays_of_the_best_arm": float(np.median(trials.final("best_plays"))),
        "trials": float(len(trials.runs)),
        "flat_trials": float(flat(trials).sum()),
        "linear_trials": float(linear(trials).sum()),
    }
