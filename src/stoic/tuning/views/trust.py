"""Trust of each observed value of a study, and why: as records and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import Explanation, Row, failure_kind
from stoic.integrations.optuna.explanation import deviation, residual
from stoic.integrations.recipe import Recipe
from stoic.printable import written
from stoic.refusal import RefusalError
from stoic.tuning.explaining import explanation
from stoic.tuning.objectives import goal_of
from stoic.tuning.views.records import Record
from stoic.tuning.views.summary import (
    left_out_record,
    number,
    numbers,
    of_objective,
    unfinished_record,
)

_NUMBERS = ("expected", "sd", "residual", "centre", "half_width", "trust")


@dataclass(frozen=True)
class Trust:
    """Trust of each observed value of a study at one moment.

    Attributes
    ----------
    name, direction:
        Of the study.
    explanation:
        Explanation of its values, one row for each complete trial that is feasible.
    failed:
        Number of a failed trial, or of one that violates a constraint -> kind of failure, None if
        unknown.
    """

    name: str
    direction: str
    explanation: Explanation
    failed: dict[int, FailureKind | None]

    @classmethod
    def of(
        cls,
        study: optuna.Study,
        recipe: Recipe | None = None,
        possible: Sequence[float] | None = None,
    ) -> Trust:
        """Explain a study; arguments as of ``explanation``. Costs one fit of the model."""
        trials = study.get_trials(deepcopy=False)
        known = explanation(study, recipe, trials=trials, possible=possible)
        if known is None:
            raise RefusalError(f"No trial of the study {study.study_name!r} has a value yet.")
        kinds = ((t, failure_kind(t)) for t in trials)
        failed = {t.number: kind for t, kind in kinds if kind or t.state == TrialState.FAIL}
        partial = {row.number for row in known.partial}
        infeasible = (n for n in known.infeasible if n not in partial)
        failed |= dict.fromkeys(infeasible, "infeasible")  # as in the data of the model
        failed |= dict.fromkeys(known.penalties, "infeasible")
        failed |= dict.fromkeys(known.impossible, None)
        return cls(study.study_name, goal_of(study), known, failed)

    @property
    def rows(self) -> list[Row]:
        """Rows, distrusted ones first, else in the order of trials."""
        return sorted(self.explanation.rows, key=lambda row: (not row.distrusted, row.number))

    def records(self) -> list[Record]:
        """Return records in full precision, of numbers as in :meth:`Summary.record`."""
        return [
            {
                "number": row.number,
                **of_objective(row),
                "told": number(row.value),
                **numbers(row, _NUMBERS),
                "verdict": verdict(row),
            }
            for row in self.rows
        ]

    def lines(self) -> list[Record]:
        """Return records for people: six digits at most, and the plateau in one column."""
        return [
            {
                "number": row.number,
                **of_objective(row),
                "observed": written(row.value, row.sd),
                "expected": written(row.expected, row.sd) if row.predicted else "-",
                "sd": deviation(row.sd),
                "residual": residual(row),
                "plateau": _plateau(row),
                "trust": "-" if math.isnan(row.trust) else f"{row.trust:.2f}",
                "verdict": verdict(row),
            }
            for row in self.rows
        ]

    def record(self) -> dict[str, Any]:
        """Return a JSON object for programs."""
        return {
            "study": self.name,
            "direction": self.direction,
            "distrusted": list(dict.fromkeys(row.number for row in self.rows if row.distrusted)),
            "trials": self.records(),
            "left_out": left_out_record(self.explanation),
            "unfinished": unfinished_record(self.explanation),
            "failed": {str(failed): kind for failed, kind in self.failed.items()},
        }


def verdict(row: Row) -> str:
    """Return whether a value is trusted, and if not, on which side of its prediction it is."""
    if not row.distrusted:
        return "not judged" if math.isnan(row.trust) else "trusted"
    how = "left out" if row.trust == 0.0 else "distrusted"
    if row.value == row.expected:
        return how
    return f"{how}, too {'low' if row.value < row.expected else 'high'}"


def _plateau(row: Row) -> str | None:
    if row.centre is None or row.half_width is None:
        return None
    return f"{row.centre:.6g} +- {row.half_width:.2g}"
