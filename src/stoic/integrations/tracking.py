"""Numbers of a study after a trial, as trackers of experiments log them."""

from __future__ import annotations

import logging
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from types import TracebackType
from typing import Any, Self

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.data import DISTRUSTED, FAILURES
from stoic.integrations.optuna import Explanation, explain, failure_kind
from stoic.integrations.optuna.objectives import objective_names

log = logging.getLogger(__name__)

COLUMNS = ("number", "state", "value", "trust", "expected", "sd", "failed", "reason")
REASON = "failure"  # user attribute of a trial: why it has no value, in words


@dataclass(frozen=True)
class Snapshot:
    """Numbers of a study at one moment, in the user's units and direction.

    Attributes
    ----------
    number:
        Of the trial after which they were taken.
    metrics:
        Name -> finite number.
    recommended:
        Parameters of the recommended trial; empty as long as there is none.
    rows:
        One tuple of ``columns`` for each finished trial, and each of several objectives; None where
        there is no number.
    columns:
        Names of its entries: with several objectives the objective is the second.
    """

    number: int
    metrics: dict[str, float]
    recommended: dict[str, Any]
    rows: list[tuple[int | float | str | None, ...]]
    columns: tuple[str, ...] = COLUMNS


def snapshot(study: Study, trial: FrozenTrial) -> Snapshot:
    """Take the numbers of a study after a trial; costs one fit of the model."""
    several = len(study.directions) > 1
    finished = [each for each in study.get_trials(deepcopy=False) if each.state.is_finished()]
    failed = [each for each in finished if each.state == TrialState.FAIL]
    metrics: dict[str, float] = {"failed": len(failed)}
    for kind in FAILURES:
        metrics[f"failed_{kind}"] = sum(failure_kind(each) == kind for each in failed)
    known = None
    if any(each.state == TrialState.COMPLETE for each in finished):
        known = explain(study)
        metrics["distrusted"] = len({row.number for row in known.rows if row.trust < DISTRUSTED})
        metrics |= (_estimates_of_each if several else _estimates)(known, trial.number)
    if trial.state == TrialState.COMPLETE and trial.values is not None:
        # One value has no name
        names = [f".{name}" for name in objective_names(study)] if several else [""]
        metrics |= {f"value{n}": v for n, v in zip(names, trial.values, strict=False)}
    recommended = known.recommended if known is not None else None
    return Snapshot(
        trial.number,
        {name: float(each) for name, each in metrics.items() if math.isfinite(each)},
        {} if recommended is None else dict(recommended.params),
        _rows(finished, known, objective_names(study) if several else [None]),
        (COLUMNS[0], "objective", *COLUMNS[1:]) if several else COLUMNS,
    )


def _estimates(known: Explanation, number: int) -> dict[str, float]:
    """Return metrics of the recommendation, and the trust of one trial."""
    trust = {row.number: row.trust for row in known.rows}
    found: dict[str, float] = {}
    if number in trust:
        found["trust"] = trust[number]
    if known.observed_best is not None and known.observed_best.value is not None:
        found["observed_best"] = known.observed_best.value
    if known.recommended is not None:
        found["recommended_trial"] = known.recommended.number
        found["recommended_mean"] = known.recommended_mean
        found["recommended_std"] = known.recommended_std
    return found


def _estimates_of_each(known: Explanation, number: int) -> dict[str, float]:
    """Return metrics of the fronts, and the trust of each value of one trial."""
    found = {
        "recommended_front": float(len(known.front)),
        "observed_front": float(len(known.observed_front)),
    }
    own = (row for row in known.rows if row.number == number)
    return found | {f"trust.{row.objective}": row.trust for row in own}


def _rows(
    trials: Sequence[FrozenTrial], known: Explanation | None, objectives: Sequence[str | None]
) -> list[tuple[int | float | str | None, ...]]:
    rows = {} if known is None else {(row.number, row.objective): row for row in known.rows}
    table: list[tuple[int | float | str | None, ...]] = []
    for trial, objective in product(trials, objectives):
        row, failed = rows.get((trial.number, objective)), trial.state == TrialState.FAIL
        numbers = (None,) * 4 if row is None else (row.value, row.trust, row.expected, row.sd)
        table.append(
            (
                trial.number,
                *(() if objective is None else (objective,)),
                trial.state.name.lower(),
                *(each if each is None or math.isfinite(each) else None for each in numbers),
                failure_kind(trial) if failed else None,
                str(trial.user_attrs.get(REASON, "")) or None if failed else None,
            )
        )
    return table


class Tracker(ABC):
    """Callback of a study that logs a snapshot after each trial.

    Optuna's ``study.optimize(callbacks=[...])`` takes it, and so does ``stoic.tune(callback=...)``.
    As a context manager it closes what it has opened. A tracker that cannot be reached does not end
    a study: a log message says what was not logged.

    Parameters
    ----------
    every:
        A snapshot costs one fit of the model. 5 takes one after each fifth trial, and one at the
        end if the tracker is closed.

    Raises
    ------
    ValueError
        If ``every`` is less than 1.
    """

    def __init__(self, every: int) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1 trial, got {every}.")
        self.every = every
        self._last: tuple[Study, FrozenTrial] | None = None  # as long as it is not logged
        self._count = 0
        self._logging = threading.Lock()

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Log what is known after a trial."""
        with self._logging:  # of several threads of a study
            self._count += 1
            self._last = study, trial
            if self._count % self.every == 0:
                self._log()

    def _log(self) -> None:
        """Log the last trial, unless it has been."""
        if self._last is None:
            return
        study, trial = self._last
        # Outside of the try: an error here is not the server's, and must be seen
        taken = snapshot(study, trial)
        try:
            self.write(taken)
        except Exception as error:  # a server's, of any kind: the study goes on
            log.warning(
                "Trial %d could not be logged: %s: %s", trial.number, type(error).__name__, error
            )
        else:
            self._last = None

    @abstractmethod
    def write(self, taken: Snapshot) -> None:
        """Log a snapshot."""

    @abstractmethod
    def finish(self, failed: bool) -> None:
        """End what was opened, as a failure or not."""

    def close(self, *, failed: bool = False) -> None:
        """Log what has not been logged yet, and end what was opened."""
        self._log()
        self.finish(failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(failed=kind is not None)
