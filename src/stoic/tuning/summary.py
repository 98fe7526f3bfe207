"""Summary of a study: observed best, recommended, distrusted and failed trials, and why."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import Certified, Explanation, Row
from stoic.integrations.recipe import Recipe
from stoic.integrations.unmodelled import unmodelled
from stoic.printable import printable
from stoic.tuning.campaign import explanation
from stoic.tuning.confirming import confirmation_lines
from stoic.tuning.stored import stored_command
from stoic.tuning.study import (
    ERRORS,
    FAILURE,
    failure_kinds,
    failures,
    holder,
)
from stoic.tuning.template import Template, fixed_values

DISTRUSTED = 0.5  # a trial with less trust is distrusted
_SHOWN = 20  # entries of a list


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
        Command of the recommended trial, as the storage says; None if it does not.
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
    ) -> Summary:
        """Summarise a study, by default by its own recipe; costs one fit of the model.

        Parameters
        ----------
        study:
            May go on meanwhile: it is read once.
        recipe:
            Whose model is used.
        fixed:
            Values of parameters that the best settings must have.

        Raises
        ------
        Refusal
            If a trial cannot have had one of these values.
        """
        trials = study.get_trials(deepcopy=False)
        states = [trial.state.name.lower() for trial in trials]
        known = explanation(study, recipe, fixed, trials)
        return cls(
            name=study.study_name,
            direction=study.direction.name.lower(),
            counts={state: states.count(state) for state in sorted(set(states))},
            explanation=known,
            failures=failures(trials),
            kinds=failure_kinds(trials),
            said={
                str(trial.user_attrs.get(FAILURE)): str(trial.user_attrs[ERRORS]).splitlines()[-1]
                for trial in trials
                if trial.user_attrs.get(ERRORS)
            },
            running={
                trial.number: holder(trial) for trial in trials if trial.state == TrialState.RUNNING
            },
            command=_command(study, known.recommended if known else None),
            unmodelled=unmodelled(trials),
        )

    @property
    def distrusted(self) -> list[Row]:
        """Rows with a trust below ``DISTRUSTED``, in the order of trials."""
        if self.explanation is None:
            return []
        return [row for row in self.explanation.rows if row.trust < DISTRUSTED]

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
            if known.fixed:
                lines.append(f"given          {setting(known.fixed)}, for which this is the best:")
            lines += _best_lines(known)
            if known.certified is not None:
                lines += certificate_lines(known.certified)
            lines += confirmation_lines(known.confirmation)
            if self.command is not None:
                lines.append(f"storage says   its command was: {self.command}")
            lines.append(f"distrusted     {len(self.distrusted) or 'none'}")
            lines += _first([f"  trial {row.number}: {why(row)}" for row in self.distrusted])
            if known.steep:
                those = _some(list(known.steep))
                lines.append(
                    f"steep slope    rather than outliers, beside each other: trials {those}"
                )
            lines += _executed_lines(known.rows)
            lines += left_out_lines(known)
            lines += infeasible_lines(known)
        lines += [f"not modelled   {sentence}" for sentence in self.unmodelled]
        failed = sum(len(numbers) for numbers in self.failures.values())
        lines.append(f"failed         {failed or 'none'}")
        entries = [entry for reason in self.failures for entry in self._failed_for(reason)]
        lines += [line for entry in entries[:_SHOWN] for line in entry] + _rest(len(entries))
        for number, (who, alive) in self.running.items():
            note = {
                True: "",
                False: ", which is dead: the next stoic tune marks it as failed",
                None: f" (if that is gone: stoic tell --trial-number {number} --failed transient)",
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
                f"trial{'s' * (len(numbers) > 1)} {_some(numbers)}",
                *said,
            ]
            for kind, numbers in by_kind.items()
        ]

    def record(self) -> dict[str, Any]:
        """Return a JSON object for programs; an infinite number is the text "inf" or "-inf"."""
        known = self.explanation
        recommended = None
        if known is not None and known.recommended is not None:
            recommended = {
                "number": known.recommended.number,
                "params": known.recommended.params,
                "value": number(known.recommended.value),
                "mean": number(known.recommended_mean),
                "std": number(known.recommended_std),
            }
        elif known is not None and known.untried is not None:
            recommended = {
                "number": None,
                "params": known.untried,
                "value": None,
                "mean": number(known.recommended_mean),
                "std": number(known.recommended_std),
            }
        return {
            "study": self.name,
            "direction": self.direction,
            "fixed": {} if known is None else dict(known.fixed),
            "counts": dict(self.counts),
            "observed_best": None if known is None else _observed(known.observed_best),
            "recommended": recommended,
            "certificate": None
            if known is None or known.certified is None
            else certificate_record(known.certified),
            "model_optimum": None
            if known is None
            else {"params": known.model_optimum, "mean": number(known.model_optimum_mean)},
            "distrusted": [row.number for row in self.distrusted],
            "left_out": {} if known is None else left_out_record(known),
            "undecided": None if known is None else known.undecided,
            "repeats": 0 if known is None else known.repeats,
            "confirmation": None
            if known is None or known.confirmation is None
            else known.confirmation.record(),
            "steep": [] if known is None else list(known.steep),
            "infeasible": [] if known is None else list(known.infeasible),
            "unmodelled": list(self.unmodelled),
            "trials": [
                {
                    "number": row.number,
                    "value": number(row.value),
                    "expected": number(row.expected),
                    "sd": number(row.sd),
                    "trust": number(row.trust),
                    **({} if row.executed is None else {"executed": dict(row.executed)}),
                    **({"refused": list(row.refused)} if row.refused else {}),
                }
                for row in (known.rows if known else ())
            ],
            "failed": {reason: list(numbers) for reason, numbers in self.failures.items()},
            "failures": [
                {"number": number, "reason": reason, "kind": self.kinds.get(number)}
                for number, reason in sorted(
                    (number, reason) for reason, those in self.failures.items() for number in those
                )
            ],
            "running": {str(key): who for key, (who, _) in self.running.items()},
            "command": self.command,
        }


def certificate_lines(found: Certified) -> list[str]:
    """Format for people how far the recommended setting may be moved."""
    lines = []
    if (said := found.unreachable()) is not None:
        lines.append(f"threshold      {said}")
    return [*lines, f"certificate    {found.sentence()}"]


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
        "sentence": found.sentence(),
    }


def _executed_lines(rows: Sequence[Row]) -> list[str]:
    """Count the trials that report what was run, and list the reports that were refused."""
    said = [row for row in rows if row.executed is not None]
    if not said:
        return []
    lines = [
        f"executed       {len(said)} of {len(rows)} trials say what was run; it is what is told"
    ]
    return lines + _first(
        [f"  trial {row.number}: {reason}" for row in said for reason in row.refused]
    )


def left_out_lines(known: Explanation) -> list[str]:
    """List the trials outside of the recipe's grid, which the model does not use, if any."""
    if not known.left_out:
        return []
    return [
        f"not in model   {len(known.left_out)}, run at no point of the recipe's grid",
        *_first([f"  trial {number}: {where}" for number, where in known.left_out.items()]),
    ]


def infeasible_lines(known: Explanation) -> list[str]:
    """List the complete trials that violate a constraint, if there are any."""
    numbers = list(known.infeasible)
    return [f"infeasible     {len(numbers)} violate a constraint: {_some(numbers)}"] * bool(numbers)


def left_out_record(known: Explanation) -> dict[str, str]:
    """Return the same for programs: number of a trial -> where it was run."""
    return {str(number): where for number, where in known.left_out.items()}


def why(row: Row) -> str:
    """Format the observed value, its leave-one-out prediction and its trust."""
    return (
        f"told {row.value:.6g}, expected {row.expected:.6g} +- {deviation(row.sd)}, "
        f"trust {row.trust:.2f}"
    )


def deviation(sd: float, digits: int = 2) -> str:
    """Format a standard deviation for people, to so many digits."""
    return f"{sd:.{digits}g}" if math.isfinite(sd) else "unknown"


def number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold."""
    if value is None or math.isfinite(value):
        return value
    return str(value)


def setting(params: Mapping[str, Any]) -> str:
    """Format parameters in one line, in full precision."""
    return "  ".join(f"{name}={value}" for name, value in params.items())


def _best_lines(known: Explanation) -> list[str]:
    lines = []
    best = known.observed_best
    if best is None:
        such = "such " * bool(known.fixed) + "feasible " * bool(known.infeasible)
        lines.append(f"observed best  none: no {such}value is finite")
    else:
        trust = next((row.trust for row in known.rows if row.number == best.number), math.nan)
        note = f", distrusted (trust {trust:.2f})" if trust < DISTRUSTED else ""
        lines.append(f"observed best  trial {best.number}: told {best.value:.6g}{note}")
        lines.append(f"               {setting(best.params)}")
    if known.untried is not None:
        lines.append(
            "recommended    by the model alone, no such trial is believed: estimated "
            f"{known.recommended_mean:.6g} +- {deviation(known.recommended_std)}, not run"
        )
        lines.append(f"               {setting(known.untried)}")
    elif known.recommended is None:
        lines.append("recommended    none")
    else:
        lines.append(
            f"recommended    trial {known.recommended.number}: estimated "
            f"{known.recommended_mean:.6g} +- {deviation(known.recommended_std)}, "
            f"told {known.recommended.value:.6g}"
            + (", once: not confirmed" if known.repeats == 1 else "")
        )
        lines.append(f"               {setting(known.recommended.params)}")
        run = {row.number: row.executed for row in known.rows}.get(known.recommended.number)
        if run is not None and run != known.recommended.params:
            lines.append(f"               was run as {setting(run)}")
    if known.undecided is not None:
        lines.append(f"undecided      {known.undecided}")
    return lines


def _command(study: optuna.Study, recommended: FrozenTrial | None) -> str | None:
    arguments = stored_command(study)
    if recommended is None or arguments is None:
        return None
    try:
        values = fixed_values(recommended.number) | recommended.params
        return shlex.join(Template(arguments).fill(values))
    except (KeyError, ValueError):  # recorded by other software
        return None


def _observed(trial: FrozenTrial | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {"number": trial.number, "params": trial.params, "value": number(trial.value)}


def _first(lines: list[str]) -> list[str]:
    return lines[:_SHOWN] + _rest(len(lines))


def _rest(count: int) -> list[str]:
    return [f"  and {count - _SHOWN} more, see stoic show --json"] if count > _SHOWN else []


def _some(numbers: list[int], most: int = 12) -> str:
    shown = ", ".join(map(str, numbers[:most]))
    return shown + (f" and {len(numbers) - most} more" if len(numbers) > most else "")
