"""Limits of the results of a study: an undecided best, outliers that may be a slope."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr

from stoic.data import DISTRUSTED, Array, Booleans, Observations
from stoic.domains import Domain
from stoic.integrations.optuna.diagnostics import Row
from stoic.integrations.tables import among_their_kind, hill

_FEWEST = 10  # results; of fewer, leave-one-out means explain little also where nothing is wrong
_REJECTED = 1.0 / 3.0  # of the results: where half are outliers, which half cannot be identified
# Of the variance of the trusted results, explained by leave-one-out means: over four functions
# and 24 studies each at least 0.38 with 5 % noise, 0.56 with one outlier in ten and 0.85 without,
# and at most 0.16 in nine of ten studies where six results in ten were outliers.
_PREDICTED = 1.0 / 3.0
# Probability that outliers at random places are so often where good results are expected. Of 432
# sets of 20 to 80 random settings, with outliers and without, five are below it, and three of these
# recommend a setting that is worse than another one by a tenth of the range.
_BY_CHANCE = 0.01
_LATEST, _OFTEN = 20, 8  # results, and how many of them are distrusted where something has changed
_ONE_SIDE = 0.8  # of these
# Of few results the posterior means themselves have to explain as much. In 37 of 420 studies of
# five functions with 3 to 9 honest results they do not, and what is recommended loses .09 of the
# range (else .01); with two of the results wrong alike, in 172 of 420.


def flat(predict: Callable[[Array], tuple[Array, Array]], x: Array, values: Array) -> str | None:
    """Reason to doubt what few results recommend, in a sentence; ``None`` if there is none.

    ``values`` (n,) are the trusted results, at ``x`` (n, d), where ``predict`` gives the posterior
    means.
    """
    if not 3 <= len(values) < _FEWEST or not _differ(values):
        return None
    share = float(predict(x)[0].var() / values.var())
    if share >= _PREDICTED:
        return None
    return (
        f"the model explains {share:.0%} of the differences between {len(values)} results, by "
        "noise the rest: run more trials, or measure the recommended setting and the observed "
        "best again."
    )


def undecided(
    rows: Sequence[Row],
    recommended: float = -np.inf,
    sign: float = 1.0,
    what: str = "the recommended setting and the observed best",
) -> str | None:
    """Reason to recommend nothing with confidence, in a sentence; ``None`` if there is none.

    Rejected results that are worse than what is ``recommended`` do not count: the recommendation
    does not depend on them. ``sign`` is 1 if more is better, else -1; ``what`` is to be measured
    again.
    """
    rows = [row for row in rows if row.trust >= DISTRUSTED or sign * row.value > sign * recommended]
    finite = _finite(rows)
    trusted = [row for row in finite if row.trust >= DISTRUSTED]
    if len(finite) < _FEWEST or len(trusted) < 3:
        return None
    advice = f"measure {what} again, a few times each."
    rejected = len(finite) - len(trusted)
    if rejected >= _REJECTED * len(finite):
        return f"{rejected} of {len(finite)} results contradict the others: {advice}"
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array([row.value for row in trusted])
        error = values - np.array([row.expected for row in trusted])
        weights = _weights(trusted)
        total = weights @ (values - weights @ values) ** 2
        left = weights @ error**2
    if np.isfinite(total) and _differ(values) and left > (1.0 - _PREDICTED) * total:
        return f"the results of similar settings differ as much as those of others: {advice}"
    return None


def plain(domain: Domain, seen: Observations, trust: Array, recommended: float) -> str | None:
    """Reason to take distrusted results for a hill in a plain, in a sentence; None without one.

    Of those that are larger than what is ``recommended``; doubted lower ones decide nothing.
    """
    counts = (trust >= DISTRUSTED) | (seen.observed > recommended)
    return hill(seen.x[counts] / domain.widths, seen.observed[counts], trust[counts])


def changed(rows: Sequence[Row], sign: float) -> str | None:
    """Reason to think that the objective has changed lately, in a sentence; None if there is none.

    The latest results are often distrusted, to one side of what is expected, and those before are
    not. In four searches whose objective had moved, by 2 to 5 with a best value of 0, 8 to 16 of
    the last 20 results were, in four others 0 to 3.
    """
    finite = sorted(_finite(rows), key=lambda row: row.number)
    before, latest = finite[:-_LATEST], finite[-_LATEST:]
    off = [row for row in latest if row.trust < DISTRUSTED]
    earlier = sum(row.trust < DISTRUSTED for row in before)
    if len(before) < _LATEST or len(off) < _OFTEN or 2 * earlier * _LATEST > len(off) * len(before):
        return None
    worse = sum(sign * row.value < sign * row.expected for row in off)
    if max(worse, len(off) - worse) < _ONE_SIDE * len(off):
        return None
    return (
        f"{len(off)} of the last {_LATEST} results are distrusted, most of them "
        f"{'worse' if 2 * worse > len(off) else 'better'} than expected, and {earlier} of the "
        f"{len(before)} before: if the program or the machine has changed since, begin a new "
        "study, with this one as its warm start."
    )


def summit(rows: Sequence[Row], recommended: float, sign: float) -> str | None:
    """Reason to take distrusted results for a summit of f, in a sentence; None if there is none.

    Outliers may be anywhere. These are better than what is ``recommended``, and where others are
    good, too: by the rank sum test of what the others expect there.
    """
    finite = _finite(rows)
    better: list[Row] = []
    rest: list[Row] = []
    for row in finite:
        too_good = row.trust < DISTRUSTED and sign * row.value > sign * recommended
        (better if too_good else rest).append(row)
    if len(finite) < _FEWEST or len({repr(row.params) for row in better}) < 3 or not rest:
        return None
    those, others = (sign * np.array([row.expected for row in each]) for each in (better, rest))
    others.sort()
    pairs = len(those) * len(others)
    wins = 0.5 * sum(np.searchsorted(others, those, side).sum() for side in ("left", "right"))
    deviation = math.sqrt(pairs * (len(finite) + 1) / 12.0)
    if ndtr((0.5 * pairs - wins) / deviation) >= _BY_CHANCE:
        return None
    return (
        f"{len(those)} results are distrusted since they are too good, and are where others are "
        "good, too, while outliers may be anywhere: that is what a summit looks like that is "
        "narrower than the model expects."
    )


def _finite(rows: Sequence[Row]) -> list[Row]:
    """Select the rows whose result, and what the others expect there, are finite."""
    return [row for row in rows if np.isfinite(row.value) and np.isfinite(row.expected)]


def _weights(rows: Sequence[Row]) -> Array:
    """Weights of results, whose sum is 1: less where more noise is reported."""
    noise = np.array([row.noise_sd for row in rows])
    weights = np.ones(len(rows))
    # Without reports all have one noise
    if _differ(noise):
        spread = np.hypot(noise, [row.sd for row in rows])
        if 0.0 < (largest := spread.max()) < np.inf:
            weights = np.maximum(spread / largest, 1e-6) ** -2.0  # none is exact
    return np.asarray(weights / weights.sum())


def _differ(values: Array) -> bool:
    """Return True if values (n,) are not all one number, whose variance may be rounding."""
    return bool((values != values[0]).any())


def alone(row: Row, value: float, sign: float) -> str | None:
    """Reason to doubt that a setting is good enough, in a sentence; None if there is none.

    It is that the only result there, ``row``, is as good as ``value``, and the others expect less.
    Of thirteen studies that recommended a good setting for a threshold, with one result in twenty
    stuck at the largest value or 0, they did in two, one of them on a stuck result; of three that
    recommended a poor one, in all.
    """
    if not sign * row.expected < sign * value <= sign * row.value:
        return None
    return (
        f"the recommended setting rests on trial {row.number} alone: others expect "
        f"{row.expected:.6g} +- {row.sd:.2g} there, which is {'less' if sign > 0.0 else 'more'} "
        f"than {value:.6g}. Measure it again."
    )


def steep(x: Array, observed: Array, expected: Array, trust: Array) -> Booleans:
    """Flag the results that are rather on a steep slope than outliers, shape (n,).

    They are distrusted, worse (less) than expected, and another one of this kind, at another
    setting, is nearer than any trusted result. Where the objective falls off faster than elsewhere,
    as at the border of a plateau, a model with one lengthscale cannot follow; outliers have no
    neighbours of their kind.

    Parameters
    ----------
    x:
        Settings in units of their ranges, shape (n, d).
    observed, expected, trust:
        Of each result, shape (n,).
    """
    poor = (trust < DISTRUSTED) & np.isfinite(observed) & (observed < expected)
    falling = among_their_kind(x, poor, trust >= DISTRUSTED)
    return np.asarray(falling & (falling.sum() > 1))
