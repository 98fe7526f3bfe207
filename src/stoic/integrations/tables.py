"""Tables of inputs and results, as other libraries hold them: box, observations and model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from stoic import recipes
from stoic.data import DISTRUSTED, Array, Booleans, Observations, as_results
from stoic.domains import Box, Domain
from stoic.integrations.recipe import load
from stoic.learner import Learner
from stoic.models import LeaveOneOutGP
from stoic.models.window import Bounds
from stoic.posteriors.base import Model
from stoic.posteriors.fitting import extreme
from stoic.refusal import RefusalError

Recipe = Callable[[Domain], recipes.Parts | Learner]

# Far is so many times the width of four in five of the rows, and few one place for so many rows.
_FAR, _PLACES = 10.0, 50
# Distrusted results, at least, that say anything; and the spread of those beside a hill, in
# distances of its own.
_HILL, _LEVEL = 4, 0.05


def box_around(x: Array) -> Box:
    """Build a box in whose widths the lengthscales of the rows ``x`` (n, d) are measured.

    It is the smallest one that holds them, but for a few places far from all others: in units that
    hold these no lengthscale of the others is likely. With one of 120 rows at fifty times the width
    of the others, two of three fits were at R^2 of .8 instead of .999. A coordinate that is the
    same in all rows gets its own size, and at least 1.
    """
    lower, upper = x.min(axis=0), x.max(axis=0)
    # Two numbers closer than rounding are one.
    size = np.maximum(np.abs(lower), np.abs(upper))
    low = np.quantile(x, 0.1, axis=0, method="lower")
    high = np.quantile(x, 0.9, axis=0, method="higher")
    far = np.abs(x - 0.5 * (low + high)) > _FAR * (high - low)
    for k in np.flatnonzero(far.any(axis=0) & (high - low > 1e-12 * size)):
        if len(np.unique(x[far[:, k], k])) <= 1 + len(x) // _PLACES:
            near = x[~far[:, k], k]
            lower[k], upper[k] = near.min(), near.max()
    half = np.where(upper - lower > 1e-12 * size, 0.0, 0.5 * np.maximum(size, 1.0))
    return Box(lower - half, upper + half)


def observations_of(x: Array, y: Array, noise: Array | None = None) -> Observations:
    """Observations of the rows as given; a noise variance is nan where none was.

    Results that no model is right for are named in a warning.
    """
    for said in extreme(y):
        warnings.warn(said, UserWarning, stacklevel=3)
    variances = np.full(len(y), np.nan) if noise is None else noise
    return Observations(x, as_results(y), variances)


def among_their_kind(x: Array, kind: Booleans, others: Booleans) -> Booleans:
    """Mask of those rows of a ``kind`` that are nearer to another of it than to any of ``others``.

    All have shape (n,). A row at the same input is a repeat, and no neighbour of its kind.
    """
    found = np.zeros(len(x), dtype=np.bool_)
    for row in np.flatnonzero(kind):  # one at a time: all distances may be too many
        apart = cdist(x[[row]], x)[0]
        nearest = apart[kind & (apart > 0.0)].min(initial=np.inf)
        found[row] = nearest < apart[others].min(initial=np.inf)
    return found


def hill(u: Array, observed: Array, trust: Array) -> str | None:
    """Reason to take distrusted results for a hill of f, in a sentence; None if there is none.

    Where most results are at one level, to within a twentieth of what others are away from it, a
    model explains these to any precision, and the others cost little as outliers. But outliers have
    no neighbours of their kind: of four in forty at random, three have one in one case in 150.

    Parameters
    ----------
    u:
        Inputs in widths of the domain, shape (n, d).
    observed, trust:
        Of each result, shape (n,).
    """
    finite = np.isfinite(observed)
    u, observed, rejected = u[finite], observed[finite], trust[finite] < DISTRUSTED
    if np.count_nonzero(rejected) < _HILL or rejected.mean() > 0.5:
        return None
    away = np.abs(observed - np.median(observed[~rejected]))
    if np.quantile(away[~rejected], 0.8) > _LEVEL * np.median(away[rejected]):
        return None
    if among_their_kind(u, rejected, ~rejected)[rejected].mean() <= 0.5:
        return None
    count = np.count_nonzero(rejected)
    return (
        f"{count} distrusted results are side by side, and the {len(u) - count} others hardly "
        "differ from each other: that is what a hill in a plain looks like."
    )


def doubt(u: Array, observed: Array, trust: Array) -> str | None:
    """Reason to doubt that distrusted targets are outliers, in a sentence; None if there is none.

    They look like a :func:`hill`, or are more than half of the finite ones. Shapes as there.
    """
    rejected = trust[np.isfinite(observed)] < DISTRUSTED
    count = np.count_nonzero(rejected)
    if count >= _HILL and rejected.mean() > 0.5:
        return (
            f"{count} of {len(rejected)} finite results are distrusted: the model is that of a "
            "minority."
        )
    return hill(u, observed, trust)


def model_of(
    recipe: Recipe | str | None, model: Model | None, domain: Domain, bounds: Bounds | None = None
) -> Model:
    """Return ``model``, or if there is none that of a recipe, by default ``loo_gp_ucb``.

    A leave-one-out model gets ``bounds`` in place of its own, whose window about the optimum is for
    a search; by default it is exact for any number of rows.

    Raises
    ------
    RefusalError
        If both are given, or one is something else.
    """
    if model is not None:
        if recipe is not None:
            raise RefusalError(f"Give a recipe or a model, not both: got {recipe!r} and {model!r}.")
        if not callable(model) or isinstance(model, recipes.Recipe):
            raise RefusalError(
                "A model is one such as GaussianProcess(prior, defence, fitting), and a recipe is "
                f"given as recipe=, got model={model!r}."
            )
        return model
    made = load(recipes.loo_gp_ucb() if recipe is None else recipe)(domain)
    if not isinstance(made, recipes.Parts | Learner):
        raise RefusalError(f"The recipe {recipe!r} balances several models: give one of them.")
    model = made.model
    return replace(model, bounds=bounds) if isinstance(model, LeaveOneOutGP) else model
