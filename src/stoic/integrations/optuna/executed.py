"""Parameters that were executed instead of the suggested ones, as a trial reports them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from stoic.integrations.reported import finite
from stoic.refusal import RefusalError, meant

EXECUTED = (
    "stoic:executed"  # user attribute: dict of the parameters that were run as something else
)

_ROUNDING = 1e-9  # of the range: a value that was rounded in transit is not outside


class OutsideError(RefusalError):
    """A number outside of a parameter's range; ``nearest`` is the end that it is nearer to."""

    def __init__(self, message: str, nearest: float) -> None:
        super().__init__(message)
        self.nearest = nearest


class Executed(NamedTuple):
    """Executed parameters of a trial: all its ``params``, each in its range.

    And why parts of the report were ``refused``, or changed.
    """

    params: dict[str, Any]
    refused: tuple[str, ...]


def executed(trial: FrozenTrial) -> Executed | None:
    """Return what was run, if the user attribute ``stoic:executed`` reports it; else None.

    A parameter that is not reported was run as suggested. So, for all that is known, was one with
    an impossible value. A value outside of the range has no place in the model: it is moved to the
    nearest end, which is always nearer to it than the suggested value.
    """
    report = trial.user_attrs.get(EXECUTED)
    if report is None:
        return None
    if not isinstance(report, dict):
        reason = f"{report!r} is no dict of parameters. It counts where it was suggested"
        return Executed(dict(trial.params), (reason,))
    params, reasons = dict(trial.params), []
    for name, value in report.items():
        try:
            params[name] = check_executed(name, value, trial.distributions)
        except OutsideError as outside:
            params[name] = outside.nearest
            reasons.append(f"{outside} It counts at {outside.nearest:g}, the nearest end")
        except RefusalError as refusal:
            reasons.append(f"{refusal} It counts where it was suggested")
    return Executed(params, tuple(reasons))


def refused(trial: FrozenTrial) -> tuple[str, ...]:
    """Return why parts of what a trial was run with are not used, or changed."""
    run = executed(trial)
    return () if run is None else run.refused


def run_with(trial: FrozenTrial) -> dict[str, Any]:
    """Return the parameters that a trial was run with, as far as known: else the suggested ones."""
    run = executed(trial)
    return trial.params if run is None else run.params


def check_executed(name: str, value: object, space: dict[str, BaseDistribution]) -> Any:
    """Return the value, if the parameter can have had it; a number need not be on a step.

    Raises
    ------
    RefusalError
        If there is no such parameter, or the value is not a finite number in its range (then an
        :class:`OutsideError`), or not one of its choices.
    """
    distribution = space.get(name)
    if distribution is None:
        raise RefusalError(unknown(name, space))
    if isinstance(distribution, CategoricalDistribution):
        for choice in distribution.choices:
            if value == choice:
                return choice  # the choice itself: JSON may have made 1.0 of 1
        choices = ", ".join(map(str, distribution.choices))
        raise RefusalError(f"{name} cannot have been {value!r}: its choices are {choices}.")
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = distribution.low, distribution.high
    if not isinstance(value, int | float) or finite(value) is None:
        raise RefusalError(f"{name} cannot have been {value!r}: a finite number is needed.")
    slack = _ROUNDING * high - _ROUNDING * low  # high - low may overflow
    if not low - slack <= value <= high + slack:
        raise OutsideError(
            f"{name} was {value:.12g}, outside of its range, {low:.12g} to {high:.12g}: give a "
            "study a range that holds whatever may be run.",
            low if value < low else high,
        )
    return min(max(value, low), high)


def check_inside(name: str, value: object, space: dict[str, BaseDistribution]) -> Any:
    """As ``check_executed``, of what may be a slip outside of the range: say what to give then."""
    try:
        return check_executed(name, value, space)
    except OutsideError as outside:
        end = f"{outside.nearest:.12g}"
        raise RefusalError(f"{outside} For this trial give {end}, where it would count.") from None


def unknown(name: str, space: Iterable[str]) -> str:
    """Word the error that there is no such parameter, and which may have been meant."""
    return f"There is no parameter {name!r}: {meant(name, sorted(space))}"
