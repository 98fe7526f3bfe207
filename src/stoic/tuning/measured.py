"""Evaluation of a Python function for one trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import optuna
from optuna.trial import Trial

from stoic.data import IS_NAN, FailureKind
from stoic.integrations.reported import noise_of, noises_of
from stoic.refusal import RefusalError
from stoic.tuning.failure import Failed
from stoic.tuning.program import Result
from stoic.tuning.trials import finish


@dataclass(frozen=True)
class Measured:
    """Observation of an objective that reports more than a value.

    Attributes
    ----------
    value:
        As if it were returned alone. None, and no values, of a setting that is excluded: a
        constraint that is violated was known before anything was run.
    values:
        With several objectives the value of each, in their order or by name; nan where there is
        none.
    executed:
        Name of a parameter -> what was run instead of what was suggested; the result counts there.
    standard_error:
        Of the value, above 0, or of each of the values, in the same form; None if unknown. One of
        0, as of folds that all agree, says nothing of the noise and is unknown, too; so is nan. A
        value with an infinite one says nothing, and counts as nan.
    constraints:
        Name of a constraint -> its value, which satisfies it up to 0; nan if that is unknown.
    censored:
        True if the result is at least as bad as the value: a run was stopped when it could not
        become better.

    Raises
    ------
    RefusalError
        If there is not either a value or values, and no violated constraint, not a standard error
        for each, if one is negative, if several are bounds, or if names are needed and there are
        none.
    """

    value: float | None = None
    executed: Mapping[str, Any] | None = None
    standard_error: float | Sequence[float] | Mapping[str, float] | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)
    values: Sequence[float] | Mapping[str, float] | None = None
    censored: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.constraints, Mapping):
            raise RefusalError(
                'constraints has a value for each name, as in {"latency": 0.3}, got '
                f"{self.constraints!r}."
            )
        nothing = self.value is None and self.values is None
        if (self.value is not None and self.values is not None) or (nothing and not self.violated):
            raise RefusalError(
                "Measured needs a value, or with several objectives values=(...), one for each; or "
                "none, if the setting violates one of its constraints."
            )
        if self.censored and self.value is None:
            raise RefusalError("A bound is of one value: with several objectives leave it out.")
        if not isinstance(self.executed, Mapping | None):
            raise RefusalError(
                'executed has a value for each parameter that was run, as in {"lr": 0.1}, got '
                f"{self.executed!r}; the noise is standard_error=."
            )
        if self.standard_error is None:
            return
        named = isinstance(self.values, Mapping)
        errors: Any = self.standard_error
        if named:
            alike = isinstance(errors, Mapping) and set(errors) <= set(self.values or ())
            errors = [errors.get(name) for name in self.values or ()] if alike else ()
        try:
            errors = np.asarray(errors, dtype=float)
        except (TypeError, ValueError):  # no numbers
            errors = None
        shape = () if self.values is None else (len(self.values),)
        if errors is None or errors.shape != shape:
            needed = "a number"
            if self.values is not None:
                needed = f"one for each of the {len(self.values)} values"
            raise RefusalError(
                f"The standard error of a result is {needed}{', by name' * named}, got "
                f"{self.standard_error!r}."
            )
        if (errors < 0.0).any():
            raise RefusalError(f"A standard error is not negative, got {self.standard_error!r}.")

    @property
    def violated(self) -> list[str]:
        """Names of the constraints that are violated."""
        return [str(name) for name, excess in self.constraints.items() if excess > 0.0]


def measured(
    study: optuna.Study,
    trial: Trial,
    objective: Callable[[dict[str, Any]], Any],
    catch: tuple[type[Exception], ...],
    order: Sequence[str] = (),
    names: Sequence[str] = (),
) -> Result:
    """Evaluate an objective; several are in the order of ``names``, the study's in ``order``."""
    try:
        found = objective(dict(trial.params))
        if found is None:
            raise TypeError("the objective returned None")  # as float(None) does, in other words
        if not isinstance(found, Measured):
            found = Measured(values=found) if order else Measured(float(_scalar(found)))
        run_as = None if found.executed is None else _plain(found.executed)
        limits = {str(name): float(each) for name, each in found.constraints.items()}
        if found.value is None and found.values is None:
            return Result.excluded(found.violated, limits, Result(executed=run_as))
        if order:
            return _several(found, order, names, run_as, limits)
        if found.value is None:
            raise RefusalError(
                "The objective gave several values, and the study has one objective."
            )
        value = float(_scalar(found.value))
        error: Any = found.standard_error
        noise = noise_of(None if error is None else float(error))
        if error is not None and math.isinf(float(error)):
            return Result(failure="its standard error is infinite", executed=run_as)
    except Failed as failed:
        reason = failed.message[:200] or "said that it failed"
        return Result(failure=reason, kind=failed.kind)
    except catch as error:
        return Result(failure=f"{type(error).__name__}: {error}"[:200], error=error)
    except BaseException as error:
        kind: FailureKind | None = "transient" if isinstance(error, KeyboardInterrupt) else None
        # Else it would run for ever: this process may live on, and is no dead worker
        finish(study, trial, Result(failure=type(error).__name__, kind=kind))
        raise
    if math.isnan(value):
        if found.violated:
            return Result.excluded(found.violated, limits, Result(executed=run_as))
        return Result(failure=IS_NAN, executed=run_as)
    if found.censored:
        if not math.isfinite(value):
            return Result(failure=f"the bound {value:g} is no finite number")
        bound = Result.at_least_as_bad_as(value, noise)
        return replace(bound, executed=run_as, constraints=limits)
    return Result(value, executed=run_as, noise=noise, constraints=limits)


def _several(
    found: Measured,
    order: Sequence[str],
    names: Sequence[str],
    run_as: Mapping[str, Any] | None,
    limits: Mapping[str, float],
) -> Result:
    """Return the result of several objectives, in the order of the study's."""
    given: Any = [found.value] if found.values is None else found.values
    if isinstance(given, Mapping):
        if set(given) != set(order):
            came, needed = (", ".join(map(repr, each)) for each in (given, names))
            return Result(failure=f"the values are of {came}, and the objectives are {needed}")
        values = tuple(float(given[name]) for name in order)
    else:
        values = tuple(map(float, given))
        if len(values) != len(order):
            reason = (
                f"the objective gave {len(values)} values, and the study has {len(order)} "
                "objectives"
            )
            return Result(failure=reason, executed=run_as, values=values)
        values = tuple(values[names.index(name)] for name in order)
    errors: Any = found.standard_error
    if errors is not None and found.values is not None:
        if not isinstance(errors, Mapping):
            errors = dict(zip(names, errors, strict=True))
        errors = {name: float(e) for name, e in errors.items() if e}  # of 0 it is unknown
        known = zip(order, values, strict=True)
        values = tuple(math.nan if math.isinf(errors.get(n, 0.0)) else value for n, value in known)
    result = Result(values[0], executed=run_as, constraints=limits, values=values)
    if nans := sum(map(math.isnan, values)):
        reason = f"{nans} of {len(values)} values are nan"
        return replace(result, value=None, failure=reason)
    if isinstance(errors, Mapping):
        result = replace(result, noises=noises_of(errors, order))
    return result


def _plain(executed: Mapping[str, Any]) -> dict[str, Any]:
    """Convert for a storage: numbers of other libraries to Python's, and the rest to text."""

    def held(value: Any) -> Any:
        value = _scalar(value)
        return value if isinstance(value, str | int | float | None) else repr(value)

    return {str(name): held(value) for name, value in executed.items()}


def _scalar(value: Any) -> Any:
    """Return the only entry of an array or tensor that has one, nan if it is masked."""
    # The shape () of a scalar has the product 1
    if math.prod(getattr(value, "shape", [0])) != 1:
        return value
    return math.nan if np.ma.is_masked(value) else value.item()
