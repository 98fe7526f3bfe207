"""Certificates of how far settings may be moved: as a table, as records and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from stoic.data import DISTRUSTED
from stoic.integrations.optuna import Certified, Explanation, explain
from stoic.integrations.optuna.certified import SHOWN
from stoic.integrations.optuna.explanation import certificate_lines, setting_lines
from stoic.integrations.optuna.objective import RobustArguments, RobustObjective
from stoic.integrations.recipe import Recipe
from stoic.printable import printable
from stoic.refusal import RefusalError
from stoic.tuning.views.records import Record, render
from stoic.tuning.views.summary import certificate_record, number


@dataclass(frozen=True)
class Certificates:
    """Certificates under input perturbations: of the recommended setting and the observed best.

    Attributes
    ----------
    name, direction:
        Of the study.
    explanation:
        Explanation of the study, with certificates.
    """

    name: str
    direction: str
    explanation: Explanation

    @classmethod
    def of(
        cls, study: optuna.Study, said: RobustArguments, recipe: Recipe | None = None
    ) -> Certificates:
        """Certify a study; costs one fit of the model.

        Parameters
        ----------
        study:
            Whose settings to certify.
        said:
            Arguments of ``stoic.integrations.optuna.RobustObjective``, before those of the study.
        recipe:
            Whose model is used, by default that of the study.
        """
        aim = RobustObjective.of(said, study)
        if aim is None:
            raise RefusalError(
                f"Nothing is known about moves in the study {study.study_name!r}: give one, "
                "as in --tolerance heat=2."
            )
        complete = [
            trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False)
        ]
        if not any(complete):
            raise RefusalError(f"No trial of the study {study.study_name!r} has a value yet.")
        known = explain(study, recipe=recipe, aim=aim)
        if known.infeasible and known.recommended is None:
            raise RefusalError(
                f"No trial of the study {study.study_name!r} satisfies its constraints yet, so "
                "there is no setting to certify."
            )
        if known.certified is None:
            raise RefusalError(
                f"The trials of the study {study.study_name!r} share no parameter, or no two of "
                "their values differ, so nothing is known about moves."
            )
        return cls(study.study_name, study.direction.name.lower(), known)

    @property
    def both(self) -> dict[str, tuple[FrozenTrial, Certified]]:
        """Recommended and observed best trials, the latter only if it is another one."""
        known = self.explanation
        assert known.recommended is not None
        assert known.certified is not None
        found = {"recommended": (known.recommended, known.certified)}
        best, certified = known.observed_best, known.certified_observed
        if best is not None and certified is not None and best.number != known.recommended.number:
            found["observed best"] = (best, certified)
        return found

    def text(self) -> str:
        """Format for people: both settings, their certificates, and a table of worst values."""
        lines = []
        for which, (trial, found) in self.both.items():
            where = ", where inputs move" * (which == "recommended")
            lines.append(f"{which:<14} trial {trial.number}{where}: observed {trial.value:.6g}")
            lines += setting_lines(trial) + certificate_lines(found)
        best = self.explanation.observed_best
        if best is not None and (trust := self.explanation.trust_of(best.number)) < DISTRUSTED:
            lines.append(
                f"observed best  trial {best.number}: observed {best.value:.6g}, distrusted "
                f"(trust {trust:.2f}), so without a certificate"
            )
        if self.explanation.undecided is not None:
            lines.append(f"undecided      {self.explanation.undecided}")
        return "\n".join([*map(printable, lines), render(self.lines(), "table")])

    def lines(self) -> list[Record]:
        """Worst values within some distances: by the confidence bound (2 sd), and by the mean."""
        rows = []
        curves = {which: found.curve for which, (_, found) in self.both.items()}
        for size in SHOWN:
            row: Record = {"moved by (tolerances)": f"{size:g}"}
            for which, curve in curves.items():
                # A round size may be missed by the last digits of linspace
                at = int(np.searchsorted(curve.sizes, size - 1e-9))
                if at < len(curve.sizes):
                    row[f"{which}: guaranteed"] = f"{curve.pessimistic[at]:.6g}"
                    row[f"{which}: expected"] = f"{curve.expected[at]:.6g}"
            if len(row) > 1:
                rows.append(row)
        return rows

    def record(self) -> dict[str, Any]:
        """Return a JSON object for programs, with the curves."""
        return {
            "study": self.name,
            "direction": self.direction,
            "undecided": self.explanation.undecided,
            **{
                which.replace(" ", "_"): {
                    "number": trial.number,
                    "params": dict(trial.params),
                    "told": number(trial.value),
                    "certificate": certificate_record(found),
                    "curve": {
                        "tolerances": found.curve.sizes.tolist(),
                        "pessimistic": found.curve.pessimistic.tolist(),
                        "expected": found.curve.expected.tolist(),
                        "optimistic": found.curve.optimistic.tolist(),
                    },
                }
                for which, (trial, found) in self.both.items()
            },
        }
