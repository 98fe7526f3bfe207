"""Data types shared by all parts: observations, failures, targets, choices, recommendations.

Three quantities are easily confused and never share a name here: ``value`` is f(x), which only the
simulation knows; ``observed`` is the reported result; a Gaussian process conditions on ``targets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]

LARGEST = 1e150  # size of a result that is computed with: its square is a number too
DISTRUSTED = 0.5  # a result with less trust is distrusted
SDS_95 = 1.959963984540054  # half of a normal 95 % interval, in standard deviations
VARIANCES = 1e-300, 1e300  # range of a noise variance that is computed with


def numbers(values: object, what: str) -> Array:
    """Convert to an array of numbers; masked ones are nan. ``what`` begins a refusal."""
    try:
        if not isinstance(values, float) and getattr(getattr(values, "dtype", 0), "kind", 0) != "f":
            _refuse_times(values)
        if isinstance(values, np.ma.MaskedArray):
            return np.asarray(np.ma.filled(values.astype(float), np.nan))
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        got = f"{values!r:.200}"
        raise ValueError(f"{what} is a number or an array of numbers, got {got}.") from error


def _refuse_times(values: object) -> None:
    """Raise TypeError for dates and durations, of which NumPy makes the number of their units."""
    known = np.asarray(values)
    times = known.dtype.kind in "mM"
    if known.dtype.kind == "O":
        times = any(isinstance(each, np.datetime64 | np.timedelta64) for each in known.flat)
    if times:
        raise TypeError("A time is no number.")


def are_variances(noise: Array) -> bool:
    """Return True if all are noise variances: positive and finite, or nan where not known."""
    return bool(np.all(np.isnan(noise) | ((noise > 0.0) & np.isfinite(noise))))


def as_results(y: object) -> Array:
    """Results as a new array (n,), finite ones clipped to ``LARGEST`` in size.

    A posterior mean is a sum of multiples of results: beyond, it would be nan.
    """
    results = np.array(numbers(y, "A result")).reshape(-1)
    if len(results) == 1 and abs(results.item()) <= LARGEST:  # the hot path of a finite domain
        return results
    return np.clip(results, -LARGEST, LARGEST, out=results, where=np.isfinite(results))


@dataclass(frozen=True, eq=False, slots=True)
class Observations:
    """Observations, raw and in order; a slice of them is again ``Observations``.

    Attributes
    ----------
    x:
        Executed inputs, shape (n, d), finite.
    observed:
        Reported result of each, shape (n,), see :func:`as_results`. nan and infinities are legal: a
        crash, an outlier.
    noise:
        Noise *variance* reported with each observation, shape (n,); nan where there is none, and
        then the prior's noise applies.
    arms:
        Row numbers in a finite domain, shape (n,); ``None`` on a continuous one.
    start:
        Number of the first row: not 0 in a tail that extends what came before it.
    censored:
        Mask of the rows whose result is at most ``observed``, shape (n,); ``None`` if there are
        none. Models are given pseudo-observations there, see :mod:`stoic.models.censored`.
    step:
        Step of the results if it is known, 0 if there is none; None for that of ``observed``
        (:func:`~stoic.posteriors.scales.step_of`).
    """

    x: Array
    observed: Array
    noise: Array
    arms: Integers | None = None
    start: int = 0
    censored: Booleans | None = None
    step: float | None = None

    def __len__(self) -> int:
        return len(self.observed)

    @staticmethod
    def none(dim: int, finite: bool) -> Observations:
        """No observations, of inputs with ``dim`` coordinates; with arms on a finite domain."""
        arms = np.empty(0, dtype=np.intp) if finite else None
        return Observations(np.empty((0, dim)), np.empty(0), np.empty(0), arms)

    def only(self, rows: Integers | Booleans | slice, start: int = 0) -> Observations:
        """Subset of these rows, as if nothing else had been observed before ``start``."""
        arms = None if self.arms is None else self.arms[rows]
        censored = None if self.censored is None else self.censored[rows]
        return Observations(
            self.x[rows], self.observed[rows], self.noise[rows], arms, start, censored, self.step
        )

    def since(self, row: int) -> Observations:
        """Observations from ``row`` on, which keep their numbers; views."""
        return self.only(slice(row, None), self.start + row)

    def until(self, row: int) -> Observations:
        """Observations before ``row``, as views."""
        return self.only(slice(row), self.start)

    @property
    def measured(self) -> Booleans:
        """Mask of the rows that are not censored, shape (n,)."""
        return np.ones(len(self), dtype=bool) if self.censored is None else ~self.censored

    def own_noise(self, noise: float) -> Array:
        """Noise variance of each row, shape (n,): the reported one, else ``noise``."""
        if len(self.noise) == 1:  # one row at a time is the hot path of a finite domain
            reported = self.noise.item()
            return np.array((noise if reported != reported else reported,))  # != itself: nan
        return np.where(np.isnan(self.noise), noise, self.noise)


FailureKind = Literal["transient", "infeasible", "bad"]
FAILURES: tuple[FailureKind, ...] = get_args(FailureKind)
IS_NAN = "the value is nan"  # why an evaluation failed, as people read it


@dataclass(frozen=True, eq=False, slots=True)
class Failures:
    """Evaluations without a result, in order. They are no evidence about the size of f.

    Attributes
    ----------
    x:
        Inputs, shape (k, d).
    kinds:
        Reason of each. ``"transient"``: independent of the input (a machine went down), so the
        input may be queried again; the third one in a row at one place, without a result since, is
        infeasible, unless three places or more failed in a row and something answered after that:
        that was the machine, for once. ``"infeasible"``: there is no result at such inputs (parts
        collide, memory runs out), so a classifier of where this happens keeps away from there.
        ``"bad"``: the setting failed because it is bad (a run diverged). It is kept away from in
        the same way: a low value in its place would pull f down where the best often is, beside.
    """

    x: Array
    kinds: tuple[FailureKind, ...]

    def __len__(self) -> int:
        return len(self.kinds)

    def of(self, *kinds: FailureKind) -> Array:
        """Points with a failure of these kinds, shape (k, d)."""
        if not self.kinds:
            return self.x
        return self.x[[row for row, kind in enumerate(self.kinds) if kind in kinds]]

    @property
    def of_settings(self) -> Array:
        """Points whose failure the input caused: infeasible or bad ones, shape (k, d)."""
        return self.of("infeasible", "bad")


@dataclass(frozen=True, eq=False, slots=True)
class Targets:
    """Pseudo-observations that a Gaussian process is conditioned on instead of the raw ones.

    Attributes
    ----------
    values:
        Pseudo-observations, shape (n,), finite.
    noise:
        Noise variance of each row, shape (n,), positive; infinite rows are left out of the solve.
    trust:
        Weight in [0, 1] of each row, shape (n,): 1 is an inlier, 0 a rejected observation.
    """

    values: Array
    noise: Array
    trust: Array

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False, slots=True)
class Choice:
    """A point to evaluate next.

    Attributes
    ----------
    x:
        The point, shape (d,).
    arm:
        Its row number in a finite domain; ``None`` on a continuous one.
    notes:
        The policy's remarks on the choice, by name (a certificate, a reason).
    """

    x: Array
    arm: int | None = None
    notes: Mapping[str, object] = field(default_factory=dict)
    _key: object = field(default=None, init=False, repr=False)  # see ``stoic.pending``


@dataclass(frozen=True, eq=False, slots=True)
class Outcome:
    """Simulated evaluation of a chosen point.

    Attributes
    ----------
    x:
        The executed point, shape (d,); it may differ from the chosen one.
    value:
        f(x), noiseless; for computing regret, never for the learner.
    observed:
        The result that the learner observes; nan and infinities included.
    corrupted:
        True if an adversary changed ``observed``.
    """

    x: Array
    value: float
    observed: float
    corrupted: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Recommendation:
    """Estimated optimum, which need not be the highest observation.

    Attributes
    ----------
    x:
        Of the points tried, shape (d,): the one whose lower confidence bound is best, or the one
        that the policy recommends. In a part of the domain it may be one that was not tried.
    mean, lower, upper:
        Posterior mean and confidence bounds of f at ``x``. The bounds are infinite where
        hyperparameters are fitted and the results do not differ: nothing has a scale then.
    model_x:
        Maximiser of the posterior mean over the whole domain, tried or not, shape (d,).
    model_mean:
        The posterior mean at ``model_x``.
    notes:
        The policy's remarks on it, as in a :class:`Choice`: a certificate, if it has one.
    """

    x: Array
    mean: float
    lower: float
    upper: float
    model_x: Array
    model_mean: float
    notes: Mapping[str, object] = field(default_factory=dict)
