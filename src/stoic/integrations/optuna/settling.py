"""What further trials of a study can still gain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from stoic.data import Array
from stoic.domains.sobol import sobol_points
from stoic.integrations.optuna.confirming import Standing, standing
from stoic.integrations.optuna.objectives import check_single_objective, trials_of
from stoic.integrations.optuna.partial import has_value

_FEWEST = 10  # results; with fewer, the model has learned nothing from one trial about another
_SPREAD, _NEARBY = 256, 64  # points all over the domain, and about each of the best candidates
_BEST = 3  # candidates with points about them
_WIDTH = 0.05  # of the domain's widths: standard deviation of the points nearby
_DRAWS = 1024


class RemainingGain(NamedTuple):
    """Expected gain of further trials, in the user's units.

    Attributes
    ----------
    gain:
        Expected value of perfect information: the mean of the best value that is possible, less
        that of the best setting tried. No number of further trials can be expected to gain more.
        Infinite as long as there are too few results to tell.
    noise_sd:
        Standard deviation of the noise of one result; 0 if it is not known.
    """

    gain: float
    noise_sd: float


def remaining_gain(study: Study, trials: Sequence[FrozenTrial] | None = None) -> RemainingGain:
    """Estimate what further trials of a study can still gain.

    The best value possible is that over the tried settings, points all over the domain and points
    near the best settings, in joint draws from the posterior. A draw has a level, too, from 0 to 1:
    of what was not tried it has the points that are feasible with a larger probability.

    Parameters
    ----------
    study:
        Of any sampler; with one objective.
    trials:
        All of its trials; by default those it has now.
    """
    check_single_objective(study)
    trials = trials_of(study, trials)
    complete = sum(map(has_value, trials))
    found = standing(study, trials) if complete >= _FEWEST else None
    if found is None:
        return RemainingGain(math.inf, 0.0)
    elsewhere, k = _elsewhere(found), len(found.x)
    # Shape (_DRAWS, k + m): the first k columns are the tried settings. The seed is fixed, so that
    # the same trials give the same gain.
    rng = np.random.default_rng(0)
    draws = found.draws(np.concatenate([found.x, elsewhere]), _DRAWS, rng)
    if (feasible := found.synced.feasible(elsewhere)) is not None:
        draws[:, k:][rng.random((_DRAWS, 1)) >= feasible] = -np.inf
    best = draws[:, :k].mean(axis=0).max()
    gain = max(0.0, float(draws.max(axis=1).mean() - best))
    return RemainingGain(gain, math.sqrt(found.noise))


def _elsewhere(found: Standing) -> Array:
    """Points of the domain that may be better than what was tried, shape (m, d)."""
    box, points = found.synced.encoding.box, found.synced.points
    spread = box.lower + box.widths * sobol_points(box.dim, _SPREAD)
    best = found.x[np.argsort(-found.comparison.draws.mean(axis=0))[:_BEST]]
    steps = np.random.default_rng(1).standard_normal((_NEARBY, box.dim)) * _WIDTH * box.widths
    near = np.clip((best[:, None] + steps).reshape(-1, box.dim), box.lower, box.upper)
    return points.nearest(np.concatenate([spread, near]))
