"""Statistics of trials: means with errors, and numbers with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stoic.data import SDS_95, Array, Integers

RESAMPLES = 2000  # of a bootstrap: 50 are beyond each end of a 95 % interval


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean over trials and its standard error, nan for a single trial."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Array) -> Estimate:
        """Estimate the mean from one value per trial, shape (trials,)."""
        return cls(float(values.mean()), deviation(values) / math.sqrt(len(values)))

    def __str__(self) -> str:
        error = "" if math.isnan(self.error) else f" ± {self.error:.3g}"
        return f"{self.mean:.4g}{error}"


def deviation(values: Array) -> float:
    """Sample standard deviation over the trials, shape (trials,); nan for a single one."""
    return float(values.std(ddof=1)) if len(values) > 1 else math.nan


def compared(ours: Array, theirs: Array) -> dict[str, float]:
    """Compare two samples of regret, shape (trials,), of the same trials."""
    mine, other, paired = (Estimate.of(each) for each in (ours, theirs, ours - theirs))
    return {
        "mean": mine.mean,
        "standard_error": mine.error,
        "reference_mean": other.mean,
        "reference_standard_error": other.error,
        "paired_difference": paired.mean,
        "paired_standard_error": paired.error,
        "trials_with_less_regret": float((ours < theirs).sum()),
        "trials": float(len(ours)),
    }


class Interval(NamedTuple):
    """Number with its 95 % interval; nan limits where there are too few trials for one."""

    value: float
    lower: float = math.nan
    upper: float = math.nan

    def text(self, spec: str = ".2g", scale: float = 1.0, unit: str = "") -> str:
        """Format; empty if there is no number, without an interval if there is none."""
        if math.isnan(self.value):
            return ""
        value, lower, upper = (f"{scale * number:{spec}}" for number in self)
        return value + unit + ("" if math.isnan(self.lower) else f" [{lower}, {upper}]")

    def __str__(self) -> str:
        return self.text()

    def named(self, name: str) -> dict[str, float]:
        """Label the three numbers, for a claim."""
        return {name: self.value, f"{name}, lower": self.lower, f"{name}, upper": self.upper}

    def limits(self, name: str) -> dict[str, float]:
        """Label them where a claim has one such number: its limits have no name."""
        return {name: self.value, "lower": self.lower, "upper": self.upper}


def share(happened: Sequence[bool | None] | Array, z: float = SDS_95) -> Interval:
    """Share of the trials in which an event happened, with Wilson's interval.

    Parameters
    ----------
    happened:
        True or false per trial. None, not known, does not count; the share of none is nan.
    z:
        Half of the interval of a normal variable, in standard deviations.
    """
    known = [bool(each) for each in happened if each is not None]
    n = len(known)
    if not n:
        return Interval(math.nan)
    p = sum(known) / n
    # The ends of the score interval solve |p - q| = z sqrt(q (1 - q) / n) for q
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))  # rounding may leave it


def draws(*size: int) -> Integers:
    """Trials of each resample, the last of ``size`` being their number."""
    # The same resamples every time: an interval depends on the rows alone
    return np.random.default_rng(0).integers(size[-1], size=(RESAMPLES, *size))


def bootstrap(values: Array, statistic: Callable[..., Array], fewest: int = 2) -> Interval:
    """Bootstrap a statistic of (problems, seeds): the seeds of each problem are resampled."""
    centre = float(statistic(values))
    if values.shape[1] < fewest:
        return Interval(centre)
    # (RESAMPLES, problems, seeds): problems are not resampled, as they were chosen, not drawn
    resampled = np.take_along_axis(values[None], draws(*values.shape), axis=2)
    samples = statistic(resampled.reshape(RESAMPLES, -1), axis=1)
    lower, upper = np.quantile(samples, (0.025, 0.975))
    return Interval(centre, float(lower), float(upper))


def mean_ratio(ours: Sequence[float] | Array, theirs: Sequence[float] | Array) -> Interval:
    """Ratio of the means of paired trials; whole pairs are resampled."""
    pairs = np.array([ours, theirs])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(pairs[0].mean() / pairs[1].mean())
        if pairs.shape[1] < 2:
            return Interval(value)
        means = pairs[:, draws(pairs.shape[1])].mean(axis=2)
        # nan where a resample has 0 / 0
        lower, upper = np.nanquantile(means[0] / means[1], (0.025, 0.975))
    return Interval(value, float(lower), float(upper))


def mean(values: Sequence[float] | Array) -> Interval:
    """Mean over trials, which are resampled."""
    return mean_ratio(values, np.ones(len(values)))
