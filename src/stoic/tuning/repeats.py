"""Repeated measurements of one trial, aggregated robustly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from optuna.study import Study, StudyDirection

from stoic.data import Array
from stoic.integrations.optuna.partial import has_value, noise_variance
from stoic.integrations.optuna.possible import PossibleValues, is_result
from stoic.integrations.optuna.unmodelled import violates
from stoic.integrations.reported import noise_of
from stoic.tuning.program import Result
from stoic.tuning.storage import patiently

# Fewest values whose spread says what the noise is: the variance of a mean of n of them is s^2 / n
# times (n - 1) / (n - 3), that of Student's t, which is infinite for fewer.
_FEWEST = 4
_RIVALS, _CLEARLY = 2, 3.0  # the second best value; in standard deviations
_NORMAL = 1.4826  # median absolute deviations in a standard deviation
_MEDIAN = math.pi / 2.0  # variance of a median of normal values, times n / s^2


def repeated(
    measure: Callable[[int], Result],
    repeats: int,
    stopped: Callable[[], bool],
    surpassed: Callable[[float, float], bool] = lambda value, noise: False,
    possible: PossibleValues | None = None,
    sign: float = -1.0,
) -> Result:
    """Measure a trial at most ``repeats`` times, with the numbers from 0; its value is the median.

    ``sign`` is 1 to maximise, -1 to minimise.

    From four values on, it ends when their median, with the noise variance that their spread
    suggests, is ``surpassed``: more measurements are for settings that may be among the best.

    A minority of outliers or failures does not change it much, nor one of values that are not
    ``possible``. If half or more failed, the trial fails for the last reason. A run that gave a
    bound is somewhere beyond it: where this leaves the median open, it is a bound itself. What was
    executed is that of the measurement which has the median; of two beside it that were executed
    differently the worse one is the result. Unless its noise is reported, the model learns it from
    all trials: that of a few values is known too badly from their own spread.
    """
    results = []
    for number in range(repeats):
        results.append(measure(number))
        kept, bounded, failed = _sorted(results, possible)
        # With so many failures it is one, and of so many bounds it has one, whatever others are
        if 2 * len(failed) >= repeats or 2 * len(bounded) > repeats:
            return _aggregated(results, possible, sign, repeats - len(results))
        if stopped():
            break
        if len(kept) < _FEWEST:
            continue
        middle = _aggregated(results, possible, sign)
        noise = middle.noise or _spread(np.array([result.value for result in kept], dtype=float))
        if middle.value is not None and noise is not None and surpassed(middle.value, noise):
            break
    return _aggregated(results, possible, sign)


def surpassed_in(
    study: Study, possible: PossibleValues | None = None
) -> Callable[[float, float], bool]:
    """Return a test whether a value is clearly worse than the second best feasible one.

    It takes the value and its noise variance. A value that is not ``possible`` does not count, and
    the best one alone may be an outlier. Clearly is by three standard deviations of the difference;
    a value without a reported noise is taken to have that of the one that is tested.
    """

    def surpassed(value: float, noise: float) -> bool:
        sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
        trials = patiently(lambda: study.get_trials(deepcopy=False), "Could not read the study")
        rivals = [t for t in trials if has_value(t) and not violates(t)]
        values = sorted(
            ((sign * t.value, noise_variance(t)) for t in rivals if is_result(t.value, possible)),
            key=lambda pair: pair[0],
        )
        if len(values) < _RIVALS:
            return False
        rival, known = values[-_RIVALS]
        return rival - sign * value > _CLEARLY * math.sqrt(noise + (known or noise))

    return surpassed


def _sorted(
    results: Sequence[Result], possible: PossibleValues | None
) -> tuple[list[Result], list[Result], list[Result]]:
    """Return the results with a value that counts, those with a bound, and the failed ones."""
    kept = [result for result in results if is_result(result.value, possible)]
    others = [result for result in results if not is_result(result.value, possible)]
    bounded = [result for result in others if result.bound is not None]
    return kept, bounded, [result for result in others if result.bound is None]


def _aggregated(
    results: Sequence[Result], possible: PossibleValues | None, sign: float, unknown: int = 0
) -> Result:
    """Median of the results; the last failure if half or more failed.

    Beside bounds, the ``unknown`` results that were left out might be as good as can be.
    """
    if len(results) == 1:
        return results[0]
    kept, bounded, failed = _sorted(results, possible)
    if failed and 2 * len(failed) >= len(results):
        return failed[-1]
    values = np.array([result.value for result in kept], dtype=float)
    bounds = np.array([result.bound for result in bounded], dtype=float)
    with np.errstate(invalid="ignore"):
        # The runs that gave bounds were at least as bad as these, and perhaps as bad as can be
        others = np.full(unknown, sign * math.inf)
        middle = float(np.median(np.concatenate([values, bounds, others])))
        worst = float(np.median(np.concatenate([values, np.full(len(bounds), -sign * math.inf)])))
    if math.isnan(middle):
        return Result(failure="the results are inf and -inf, which have no median")
    seconds = sum(result.seconds for result in results)
    constraints = _medians([result.constraints for result in kept + bounded])
    if middle != worst:
        beyond = Result.at_least_as_bad_as(middle)
        return replace(beyond, seconds=seconds, constraints=constraints)
    # Those with a bound are worse than all of these
    ordered = sorted(kept, key=lambda result: -sign * (result.value or 0.0))
    n, last = len(kept) + len(bounded), len(kept) - 1
    better, worse = (ordered[min(k, last)] for k in ((n - 1) // 2, n // 2))
    if better.executed != worse.executed:
        return replace(worse, seconds=seconds)
    return replace(
        worse,
        value=middle,
        noise=_noise([result.noise for result in kept], len(kept)),
        seconds=seconds,
        constraints=constraints,
    )


def _medians(of_each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Median of each constraint; nan if half or more of its values are, which sort last."""
    values = {name: [of[name] for of in of_each if name in of] for name in set().union(*of_each)}
    return {name: float(np.sort(each)[len(each) // 2]) for name, each in sorted(values.items())}


def _noise(reported: Sequence[float | None], n: int) -> float | None:
    """Noise variance of the median of n values, if all report theirs."""
    known = [noise for noise in reported if noise is not None]
    if len(known) < n:
        return None
    # The median of one or two values is their mean
    return float(np.median(known)) * _MEDIAN / n if n > 2 else float(np.mean(known)) / n


def _spread(values: Array) -> float | None:
    """Noise variance of the median of values (n,), by their spread; None if that is none."""
    n = len(values)
    with np.errstate(invalid="ignore"):  # inf - inf
        spread = _NORMAL * float(np.median(np.abs(values - np.median(values))))
    return noise_of(math.sqrt(_MEDIAN / n * (n - 1) / (n - 3)) * spread)
