"""Linear growth or flattening of regret, by the share of it in the second half."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stoic.data import Array, Booleans
from stoic.experiments.claims import FLAT, LINEAR, late, share
from stoic.experiments.corruption.algorithms import RGP_PE
from stoic.experiments.corruption.trials import Row, Settings, after, cells, run
from stoic.experiments.corruption.worlds import NO_ATTACK, WORLDS, draw
from stoic.experiments.statistics import Estimate, compared, deviation
from stoic.experiments.trials import Trials, grouped


def flat(trials: Trials[Row]) -> Booleans:
    """Mask of the trials that flatten, shape (trials,)."""
    return np.asarray(share(trials.curves(), trials.rounds) <= FLAT)


def linear(trials: Trials[Row]) -> Booleans:
    """Mask of the trials that grow linearly, shape (trials,)."""
    return np.asarray(share(trials.curves(), trials.rounds) >= LINEAR)


def last_slopes(trials: Trials[Row]) -> Array:
    """Regret a round between the last two rounds that were kept, shape (trials,)."""
    # (trials, 1 + n): a single kept round starts from 0
    cumulative = np.hstack([np.zeros((len(trials), 1)), trials.curves()])
    rounds = [0, *trials.rounds.tolist()]
    return np.asarray((cumulative[:, -1] - cumulative[:, -2]) / (rounds[-1] - rounds[-2]))


def less(ours: Trials[Row], theirs: Trials[Row]) -> dict[str, float]:
    """Compare the final regrets of two methods on the same trials."""
    return {
        **compared(ours.final(), theirs.final()),
        "standard_deviation": deviation(ours.final()),
        "reference_standard_deviation": deviation(theirs.final()),
    }


def settled_unattacked(settings: Settings) -> bool:
    """Return True if a draw is as the paper presupposes it without attack.

    That is, no arm but x* is worth more than the largest width of GP-UCB, the mean regret of each
    learner flattens, and RGP-PE has one arm left after ``EPOCHS``. An arm that was never played has
    a standard deviation of at most 1 and, as neighbours of f1 correlate by 0.08, a mean near 0, so
    that GP-UCB, whose width sqrt(ln t) / 2 never exceeds 1.645 there, stays with the first arm it
    finds that is worth more, in the trials that find it; and arms within 4 width std of the maximum
    cannot be distinguished from it.
    """
    world = WORLDS[settings.world]
    second = np.sort(draw(settings.world, settings.seed, settings.draw).problem.values)[-2]
    if second > world.round_width(None, settings.rounds):
        return False
    alone = replace(settings, attacks=(NO_ATTACK,))
    for method in sorted({cell.method for cell in cells(alone)}):
        played = cells(replace(alone, methods=(method,)))
        [trials] = grouped(row for cell in played for row in run(alone, cell)).values()
        left = max(row.active for row in after(trials))
        # By the mean curve, as the claims are; nan, no regret at all, is flat
        if late(trials) > FLAT or (method == RGP_PE.name and left > 1):
            return False
    return True


def measured(trials: Trials[Row]) -> dict[str, float]:
    """Compute the numbers behind a claim: of the mean curve first, then of single trials."""
    final = Estimate.of(trials.final())
    return {
        "share_in_second_half": late(trials),
        "mean": final.mean,
        "standard_deviation": deviation(trials.final()),
        "standard_error": final.error,
        "regret_per_round_at_the_end": float(last_slopes(trials).mean()),
        "median_plays_of_the_best_arm": float(np.median(trials.final("best_plays"))),
        "trials": float(len(trials)),
        "flat_trials": float(flat(trials).sum()),
        "linear_trials": float(linear(trials).sum()),
    }
