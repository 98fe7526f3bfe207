"""Linear growth or flattening of regret, by the share of it in the second half."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from stoic.data import Array, Booleans
from stoic.experiments.claims import FLAT, LINEAR, share
from stoic.experiments.corruption.algorithms import RGP_PE
from stoic.experiments.corruption.trials import EPOCHS, Settings, Trials, cells, grouped, run
from stoic.experiments.corruption.worlds import NO_ATTACK
from stoic.experiments.regret import Estimate, Run, comparison


def of_mean(trials: Trials, among: Booleans | None = None) -> float:
    """Share of the mean curve over the trials, or over some of them; nan over none."""
    curves = trials.cumulative if among is None else trials.cumulative[among]
    return float(share(curves.mean(axis=0), trials.rounds)) if len(curves) else math.nan


def flat(trials: Trials) -> Booleans:
    """Mask of the trials that flatten, shape (trials,)."""
    return np.asarray(share(trials.cumulative, trials.rounds) <= FLAT)


def linear(trials: Trials) -> Booleans:
    """Mask of the trials that grow linearly, shape (trials,)."""
    return np.asarray(share(trials.cumulative, trials.rounds) >= LINEAR)


def last_slopes(trials: Trials) -> Array:
    """Regret a round between the last two rounds that were kept, shape (trials,)."""
    nothing = np.zeros((len(trials.runs), 1))
    cumulative, rounds = np.hstack([nothing, trials.cumulative]), [0, *trials.rounds.tolist()]
    return np.asarray((cumulative[:, -1] - cumulative[:, -2]) / (rounds[-1] - rounds[-2]))


def less(ours: Trials, theirs: Trials) -> dict[str, float]:
    """Compare the final regrets of two methods on the same trials."""

    def as_run(trials: Trials) -> Run:
        return Run(trials.cumulative, np.full(len(trials.runs), math.nan))

    return {
        **comparison(as_run(ours), as_run(theirs)),
        "standard_deviation": deviation(ours),
        "reference_standard_deviation": deviation(theirs),
    }


def deviation(trials: Trials) -> float:
    """Sample standard deviation of the final regret over the trials; nan for a single one."""
    return float(trials.final.std(ddof=1)) if len(trials.runs) > 1 else math.nan


def settled_unattacked(settings: Settings) -> bool:
    """Play all learners without attack; return True if all is as the paper shows it.

    The mean regret of each flattens, and RGP-PE has one arm left after ``EPOCHS``. Both are
    presupposed of the function: an arm that was never played has a standard deviation of at most 1
    and, as neighbours of f1 correlate by 0.08, a mean near 0, so that GP-UCB, whose width
    sqrt(ln t) / 2 never exceeds 1.645 there, stays with the first arm it finds that is worth more;
    and arms within 4 width std of the maximum cannot be told from it.
    """
    alone = replace(settings, attacks=(NO_ATTACK,))
    for method in sorted({cell.method for cell in cells(alone)}):
        rows = [
            row for cell in cells(replace(alone, methods=(method,))) for row in run(alone, cell)
        ]
        [trials] = grouped(rows).values()
        left = max(row.active for row in trials.after(EPOCHS))
        if of_mean(trials) > FLAT or (method == RGP_PE.name and left > 1):
            return False
    return True


def measured(trials: Trials) -> dict[str, float]:
    """Compute the numbers behind a claim: of the mean curve first, then of single trials."""
    final = Estimate.of(trials.final)
    return {
        "share_in_second_half": of_mean(trials),
        "mean": final.mean,
        "standard_deviation": deviation(trials),
        "standard_error": final.error,
        "regret_per_round_at_the_end": float(last_slopes(trials).mean()),
        "median_plays_of_the_best_arm": float(np.median([row.best_plays for row in trials.ends])),
        "trials": float(len(trials.runs)),
        "flat_trials": float(flat(trials).sum()),
        "linear_trials": float(linear(trials).sum()),
    }
