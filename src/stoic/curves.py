"""Learning curves: what the values of a run before its end say about its last one.

Values are to be maximised. No shape of the curves is assumed. Over finished runs the difference
between the final value and the value at a step has a median and a spread, both robust: a run that
was stopped at that step ends where its value and the median difference say, up to the spread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stoic.data import Array, as_results

FEWEST = 5  # finished runs that must reach a step
_FARTHEST = 3.0  # below finished runs, in ranges of them: it bounds what one that diverged says
_WINDOW = 3  # values of which the median is taken: one of them may be anything
_LATEST = 200  # finished runs; slopes have the square of it as their cost
_ROUNDING = 1e-12
# Finite-sample factors of the median absolute deviation of 2, 3, ... values [Croux1992]_.
_FACTORS = (1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107)


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """Values of one run at increasing steps, without those that are nan.

    Attributes
    ----------
    steps, values:
        Both of shape (k,); values may be infinite.
    """

    steps: Array
    values: Array

    @staticmethod
    def of(reported: Mapping[int, float], sign: float = 1.0) -> Curve:
        """Sort the values by step, and multiply them by ``sign``."""
        steps = np.array(sorted(reported), dtype=float)
        values = sign * as_results([reported[step] for step in sorted(reported)])
        known = ~np.isnan(values)
        return Curve(steps[known], values[known])

    def __len__(self) -> int:
        return len(self.steps)

    def count(self, step: float) -> int:
        """Count the values up to and at a step."""
        return int(np.searchsorted(self.steps, step, side="right"))

    def reaches(self, step: float) -> bool:
        """Return True if the run went on to a step, with a value before it or at it."""
        return len(self) > 0 and bool(self.steps[-1] >= step >= self.steps[0])

    def latest(self, step: float) -> float:
        """Last value up to a step; nan before the first."""
        k = self.count(step)
        return float(self.values[k - 1]) if k else math.nan

    def smoothed(self, step: float) -> float:
        """Median of the last three values up to a step, or of as many as there are."""
        k = self.count(step)
        with np.errstate(invalid="ignore"):  # of both infinities there is none
            return float(np.median(self.values[max(k - _WINDOW, 0) : k]))


class Predicted(NamedTuple):
    """Final value of a run that was stopped.

    Attributes
    ----------
    value, noise:
        Estimate, and the variance of its error; 0 if the finished runs differ in nothing.
    bound:
        True if the final value may as well be lower.
    """

    value: float
    noise: float
    bound: bool


@dataclass(frozen=True, eq=False)
class FinishedCurves:
    """Curves of finished runs, and their final values.

    Attributes
    ----------
    curves:
        Of n runs.
    finals:
        Shape (n,).
    """

    curves: Sequence[Curve]
    finals: Array
    _known: dict[float, tuple[Array, Array]] = field(default_factory=dict)  # a cache, by step

    def at(self, step: float) -> tuple[Array, Array]:
        """Smoothed values at a step and final values of the latest runs that reach it, both (k,).

        Both are finite.
        """
        if step not in self._known:
            pairs = [
                (curve.smoothed(step), final)
                for curve, final in zip(self.curves, self.finals, strict=True)
                if curve.reaches(step)
            ]
            both = np.array(pairs).reshape(-1, 2)
            both = both[np.isfinite(both).all(axis=1)][-_LATEST:]
            self._known[step] = both[:, 0], both[:, 1]
        return self._known[step]

    def predict(self, curve: Curve) -> Predicted | None:
        """Predict the final value of a run that was stopped; None if too few runs went so far.

        Each of its last three values predicts it, by the median difference from that step on, and
        the median of the three is taken: one of them may be anything. The same estimate of each
        finished run has an error. Their spread is the noise, and so is how much the error depends
        on the estimate (the Theil-Sen slope over finished runs), times the distance to them. A
        stopped run that was worse than all of them may have gained nothing, as one that diverged:
        then the estimate is a bound. It is at most three times as far below the second worst of
        them as that is below the second best: how far a run diverged says nothing more.
        """
        if not len(curve):
            return None
        steps = curve.steps[-_WINDOW:]
        reached = [k for k, run in enumerate(self.curves) if run.reaches(steps[-1])][-_LATEST:]
        if len(reached) < FEWEST:
            return None
        finals = self.finals[reached]
        then = np.array([[self.curves[k].latest(step) for step in steps] for k in reached])
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is nan, and left out
            gained = finals[:, None] - then
            gains = np.array([_median(column) for column in gained.T])
            estimates = np.array([_median(row) for row in then + gains])
            own = _median(curve.values[-_WINDOW:] + gains)
            errors = finals - estimates
        known = np.isfinite(errors)
        errors, estimates, n = errors[known], estimates[known], int(known.sum())
        if n < FEWEST or not math.isfinite(own):
            return None
        low, high = np.sort(estimates)[[1, -2]]
        least = float(low - _FARTHEST * (high - low))
        bound, own = own < max(float(estimates.min()), least), max(own, least)
        off = float(np.median(errors))
        spread = _factor(n) * 1.4826 * float(np.median(np.abs(errors - off)))
        extrapolated = _slope(estimates, errors) * (own - float(np.median(estimates)))
        # The median of n normal errors has the variance pi / (2 n), in units of theirs
        noise = spread**2 * (1.0 + 0.5 * math.pi / n) + extrapolated**2
        if noise < (_ROUNDING * (abs(own) + float(np.abs(gains).max()))) ** 2:
            noise = 0.0
        return Predicted(own + off, noise, bound)

    def hopeless(self, step: float, value: float, target: float, chance: float) -> bool | None:
        """Tell if a run with this value at a step ends below a target; None with too few runs.

        True if so few of the n finished runs that reached the step gained enough from it on, at
        most ``chance`` (n + 1) - 1, that a run which gains as they do has less than that
        chance. At least one of them must be allowed to have done so: it may be an outlier. nan is
        hopeless.
        """
        then, finals = self.at(step)
        # By rank among n + 1 exchangeable runs; a whole product may round to just below
        allowed = math.floor(chance * (len(finals) + 1) + 1e-9) - 1
        if allowed < 1:
            return None
        if math.isnan(value):
            return True
        enough = np.count_nonzero(value + (finals - then) >= target)
        return bool(enough <= allowed)


def _median(values: Array) -> float:
    """Median of the values that are not nan; nan if there are none."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else math.nan


def _factor(n: int) -> float:
    return _FACTORS[n - 2] if n < 10 else n / (n - 0.8)  # [Croux1992]_


def _slope(x: Array, y: Array) -> float:
    """Median of the slopes of all pairs with different ``x``; 0 without any."""
    i, j = np.triu_indices(len(x), 1)
    run = x[j] - x[i]
    apart = run != 0.0
    return float(np.median((y[j] - y[i])[apart] / run[apart])) if apart.any() else 0.0
