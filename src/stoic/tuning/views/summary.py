"""Summary of a study: observed best, recommended, distrusted and failed trials, and why."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import Certified, Explanation, Row
from stoic.integrations.optuna.executed import executed
from stoic.integrations.optuna.explanation import SHOWN, best_lines, doubt_lines, rest, some
from stoic.integrations.optuna.unmodelled import FAILURE, all_unusable, unmodelled
from stoic.integrations.recipe import Recipe
from stoic.printable import printable
from stoic.tuning.explaining import explanation
from stoic.tuning.objectives import goal_of
from stoic.tuning.stored import DIRECTORY, stored_command
from stoic.tuning.template import Template, fixed_values
from stoic.tuning.trials import failure_kinds, failures, holder, last_error


@dataclass(frozen=True)
class Summary:
    """Summary of a study at one moment.

    Attributes
    ----------
    name, direction:
        Of the study.
    counts:
        State in lower case -> number of trials in it, states without a trial left out.
    explanation:
        Explanation of its values; None before there is any.
    failures:
        Reason -> numbers of the trials that failed for it.
    kinds:
        Number of a failed trial -> kind of failure, if known.
    said:
        Reason -> last line of standard error of the last such trial, if any.
    running:
        Number of a running trial -> its worker, and whether that is alive.
    command:
        Command of the recommended trial, from the current directory, as the storage says; None if
        it does not.
    unmodelled:
        Sentences on what the model does not use.
    """

    name: str
    direction: str
    counts: Mapping[str, int]
    explanation: Explanation | None
    failures: Mapping[str, list[int]]
    kinds: Mapping[int, FailureKind]
    said: Mapping[str, str]
    running: Mapping[int, tuple[str, bool | None]]
    command: str | None
    unmodelled: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        study: optuna.Study,
        recipe: Recipe | None = None,
        fixed: Mapping[str, Any] | None = None,
        possible: Sequence[float] | None = None,
    ) -> Summary:
        """Summarise a study, which may go on meanwhile; arguments as of ``explanation``.

        Costs one fit of the model.
        """
        trials = study.get_trials(deepcopy=False)
        return cls.around(study, trials, explanation(study, recipe, fixed, trials, possible))

    @classmethod
    def around(
        cls, study: optuna.Study, trials: list[FrozenTrial], known: Explanation | None
    ) -> Summary:
        """Summarise a study around its explanation, both of these trials."""
        states = [trial.state.name.lower() for trial in trials]
        return cls(
            name=study.study_name,
            direction=goal_of(study),
            counts={state: states.count(state) for state in sorted(set(states))},
            explanation=known,
            failures=failures(trials),
            kinds=failure_kinds(trials),
            said={
                str(trial.user_attrs.get(FAILURE)): last
                for trial in trials
                if (last := last_error(trial))
            },
            running={
                trial.number: holder(trial) for trial in trials if trial.state == TrialState.RUNNING
            },
            command=_command(study, known.recommended if known else None),
            unmodelled=unmodelled(trials) + all_unusable(trials, len(study.directions))
            if known is None
            else known.unmodelled,
        )

    @property
    def distrusted(self) -> list[Row]:
        """Rows with a trust below ``DISTRUSTED``, in the order of trials."""
        if self.explanation is None:
            return []
        return [row for row in self.explanation.rows if row.distrusted]

    @property
    def empty(self) -> bool:
        """True if no trial has a finite value, feasible or not."""
        known = self.explanation
        return known is None or not (
            known.observed_best
            or known.recommended
            or known.untried
            or known.observed_front
            or known.infeasible
        )

    @property
    def settled(self) -> bool:
        """True if further confirming measurements are not needed."""
        found = None if self.explanation is None else self.explanation.confirmation
        return found is not None and found.settled

    def text(self) -> str:
        """Format the summary for people, in several lines."""
        counts = ", ".join(f"{count} {state}" for state, count in self.counts.items())
        lines = [
            f"study {self.name} ({self.direction}): {sum(self.counts.values())} trials"
            + (f": {counts}" if counts else "")
        ]
        known = self.explanation
        if known is None:
            lines.append("observed best  none: no trial has a value yet")
        else:
            lines += best_lines(known)
            if self.command is not None:
                lines.append(f"storage says   its command was: {self.command}")
            lines += doubt_lines(known)
        lines += [f"not modelled   {sentence}" for sentence in self.unmodelled]
        failed = sum(len(numbers) for numbers in self.failures.values())
        lines.append(f"failed         {failed or 'none'}")
        entries = [entry for reason in self.failures for entry in self._failed_for(reason)]
        lines += [line for entry in entries[:SHOWN] for line in entry] + rest(len(entries))
        for number, (who, alive) in self.running.items():
            again = shlex.join(["stoic", "tell", self.name, str(number), "--failed", "transient"])
            note = {
                True: "",
                False: ", which is dead: the next stoic tune marks it as failed",
                None: f" (if that is gone: {again})",
            }[alive]
            lines.append(f"running        trial {number}, by {who}{note}")
        return "\n".join(map(printable, lines))

    def _failed_for(self, reason: str) -> list[list[str]]:
        """Format each kind of failure with this reason, and the last line of standard error."""
        by_kind: dict[FailureKind | None, list[int]] = {}
        for failed in self.failures[reason]:
            by_kind.setdefault(self.kinds.get(failed), []).append(failed)
        said = [f"    {self.said[reason]}"] if reason in self.said else []
        return [
            [
                f"  {len(numbers)} x {reason}{'' if kind is None else f' ({kind})'}: "
                f"trial{'s' * (len(numbers) > 1)} {some(numbers)}",
                *said,
            ]
            for kind, numbers in by_kind.items()
        ]

    def record(self) -> dict[str, Any]:
        """Return a JSON object for programs.

        An infinite number is the text "inf" or "-inf", and what is unknown is null.
        """
        known = self.explanation
        several = {} if known is None or not known.objectives else front_record(known)
        record: dict[str, Any] = {
            "study": self.name, "direction": self.direction, **several, "fixed": {},
            "counts": dict(self.counts), "observed_best": None, "recommended": None,
            "certificate": None, "model_optimum": None,
            "distrusted": sorted({row.number for row in self.distrusted}),
            "left_out": {}, "repeated": None, "undecided": None, "repeats": 0, "confirmation": None,
            "steep": [],
            "infeasible": [], "distrusted_constraints": {}, "impossible": {}, "penalties": {},
            "unfinished": [], "recipe": None,
            "conditional": [], "sources": [], "unmodelled": list(self.unmodelled), "trials": [],
            "failed": {reason: list(numbers) for reason, numbers in self.failures.items()},
            "failures": [
                {"number": number, "reason": reason, "kind": self.kinds.get(number)}
                for number, reason in sorted(
                    (number, reason) for reason, those in self.failures.items() for number in those
                )
            ],
            "running": {str(key): who for key, (who, _) in self.running.items()},
            "command": self.command,
        }  # fmt: skip
        return record if known is None else record | _explanation_record(known)


def _explanation_record(known: Explanation) -> dict[str, Any]:
    best = known.observed_best
    found = None if known.confirmation is None else known.confirmation.record()
    optimum = None
    if known.model_optimum:
        optimum = {"params": known.model_optimum, "mean": number(known.model_optimum_mean)}
    return {
        "fixed": dict(known.fixed),
        "observed_best": None if best is None else _trial_record(best),
        "recommended": _recommended_record(known),
        "certificate": None if known.certified is None else certificate_record(known.certified),
        "model_optimum": optimum,
        "left_out": left_out_record(known),
        "repeated": known.repeated,
        "undecided": known.undecided,
        "repeats": known.repeats,
        "confirmation": found,
        "steep": list(known.steep),
        "infeasible": list(known.infeasible),
        "distrusted_constraints": {k: list(v) for k, v in known.distrusted_constraints.items()},
        "impossible": {str(key): number(value) for key, value in known.impossible.items()},
        "penalties": {str(key): number(value) for key, value in known.penalties.items()},
        "unfinished": unfinished_record(known),
        "conditional": list(known.conditional),
        "recipe": known.recipe,
        "sources": [vars(source) for source in known.sources],
        "trials": [
            {
                "number": row.number,
                **of_objective(row),
                **numbers(row, ("value", "expected", "sd", "trust")),
                **({} if row.executed is None else {"executed": dict(row.executed)}),
                **({"refused": list(row.refused)} if row.refused else {}),
            }
            for row in known.rows
        ],
    }


def _recommended_record(known: Explanation) -> dict[str, Any] | None:
    if known.recommended is not None:
        found = _trial_record(known.recommended)
    elif known.untried is not None:
        found = {"number": None, "params": known.untried, "value": None}
        found["instead_of"] = known.instead_of
    else:
        return None
    found |= {"mean": number(known.recommended_mean), "std": number(known.recommended_std)}
    found["failures"] = known.failures
    return found if known.feasible is None else found | {"feasible": known.feasible}


def _trial_record(trial: FrozenTrial) -> dict[str, Any]:
    return {"number": trial.number, **_params_record(trial), "value": number(trial.value)}


def _params_record(trial: FrozenTrial) -> dict[str, Any]:
    ran = executed(trial)
    return {"params": trial.params} | ({} if ran is None else {"executed": ran.params})


def of_objective(row: Row) -> dict[str, Any]:
    """Return the objective that a row is of, if there are several."""
    return {} if row.objective is None else {"objective": row.objective}


def front_record(known: Explanation) -> dict[str, Any]:
    """Return the fronts of a study with several objectives, for programs."""

    def named(values: Iterable[float]) -> dict[str, Any]:
        return dict(zip(known.objectives, map(number, map(float, values)), strict=True))

    return {
        "objectives": list(known.objectives),
        "observed_front": [
            {"number": trial.number, **_params_record(trial), "values": named(trial.values)}
            for trial in known.observed_front
        ],
        "front": [
            {
                "number": point.trial.number,
                **_params_record(point.trial),
                "mean": named(point.mean),
                "std": named(point.std),
                "lower": named(point.interval[:, 0]),
                "upper": named(point.interval[:, 1]),
                **({} if point.feasible is None else {"feasible": point.feasible}),
            }
            for point in known.front
        ],
        "trust": {
            str(trial): {name: number(each) for name, each in trust.items()}
            for trial, trust in known.trust.items()
        },
    }


def certificate_record(found: Certified) -> dict[str, Any]:
    """Return the certificate for programs; ``within`` is empty if nothing is certified."""
    held = found.certificate
    return {
        "aim": found.aim.record(),
        "params": dict(found.params),
        "value": number(held.value),
        "radius": number(held.radius),
        "closed": held.closed,
        "fragility": number(held.fragility),
        "p": number(held.p),
        "within": {name: number(far) for name, far in found.within.items()},
        "reachable": found.reached is None,
        "best_possible": number(found.reached),
        "constraints_radius": number(found.constraints_radius),
        "sentence": found.sentence(),
    }


def unfinished_record(known: Explanation) -> list[dict[str, Any]]:
    """Return for programs what the model has of each trial without a final value."""
    return [{**vars(row), "value": number(row.value)} for row in known.partial]


def left_out_record(known: Explanation) -> dict[str, str]:
    """Return the same for programs: number of a trial -> where it was run."""
    return {str(number): where for number, where in known.left_out.items()}


def number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold; nan, which is unknown, is None."""
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def numbers(row: Row, names: Sequence[str]) -> dict[str, float | str | None]:
    """Return numbers of a row by their names; an expectation that is unknown is None."""
    found = {name: number(getattr(row, name)) for name in names}
    return found if row.predicted else found | {"expected": None}


def _command(study: optuna.Study, recommended: FrozenTrial | None) -> str | None:
    arguments = stored_command(study)
    if recommended is None or arguments is None:
        return None
    try:
        values = fixed_values(recommended.number) | recommended.params
        template = Template(arguments)
        if not template.placeholders <= values.keys():
            return None
        command = shlex.join(template.fill(values))
    except ValueError:  # recorded by other software
        return None
    directory = study.user_attrs.get(DIRECTORY)
    if not isinstance(directory, str) or Path(directory) == Path.cwd():
        return command
    return f"cd {shlex.quote(directory)} && {command}"
