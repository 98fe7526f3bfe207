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
from stoic.integrations.optuna.explanation import SHOWN, best_lines, doubt_lines, rest, some
from stoic.integrations.optuna.unmodelled import all_unusable, unmodelled
from stoic.integrations.recipe import Recipe
from stoic.printable import printable
from stoic.tuning.explaining import explanation
from stoic.tuning.objectives import goal_of
from stoic.tuning.stored import DIRECTORY, stored_command
from stoic.tuning.template import Template, fixed_values
from stoic.tuning.trials import FAILURE, failure_kinds, failures, holder, last_error


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
        """Summarise a study, by default by its own recipe; costs one fit of the model.

        Parameters
        ----------
        study:
            May go on meanwhile: it is read once.
        recipe:
            Whose model is used.
        fixed:
            Values of parameters that the best settings must have.
        possible:
            Range of the value, by default the one that is recorded with the study.

        Raises
        ------
        RefusalError
            If a trial cannot have had one of these values.
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
        """Return a JSON object for programs; an infinite number is the text "inf" or "-inf"."""
        known = self.explanation
        recommended = None
        said = None if known is None else known.feasible
        feasible = {} if said is None else {"feasible": said}
        if known is not None and known.recommended is not None:
            recommended = {
                "number": known.recommended.number,
                "params": known.recommended.params,
                "value": number(known.recommended.value),
                "mean": number(known.recommended_mean),
                "std": number(known.recommended_std),
                **feasible,
            }
        elif known is not None and known.untried is not None:
            recommended = {
                "number": None,
                "params": known.untried,
                "value": None,
                "mean": number(known.recommended_mean),
                "std": number(known.recommended_std),
                **feasible,
            }
        several = {} if known is None or not known.objectives else front_record(known)
        return {
            "study": self.name,
            "direction": self.direction,
            **several,
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
            "distrusted": sorted({row.number for row in self.distrusted}),
            "left_out": {} if known is None else left_out_record(known),
            "undecided": None if known is None else known.undecided,
            "repeats": 0 if known is None else known.repeats,
            "confirmation": None
            if known is None or known.confirmation is None
            else known.confirmation.record(),
            "steep": [] if known is None else list(known.steep),
            "infeasible": [] if known is None else list(known.infeasible),
            "distrusted_constraints": {}
            if known is None
            else {name: list(those) for name, those in known.distrusted_constraints.items()},
            "impossible": {}
            if known is None
            else {str(key): number(value) for key, value in known.impossible.items()},
            "unfinished": [] if known is None else unfinished_record(known),
            "conditional": [] if known is None else list(known.conditional),
            "sources": [] if known is None else [vars(source) for source in known.sources],
            "unmodelled": list(self.unmodelled),
            "trials": [
                {
                    "number": row.number,
                    **({} if row.objective is None else {"objective": row.objective}),
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


def front_record(known: Explanation) -> dict[str, Any]:
    """Return the fronts of a study with several objectives, for programs."""

    def named(values: Iterable[float]) -> dict[str, Any]:
        return dict(zip(known.objectives, map(number, map(float, values)), strict=True))

    return {
        "objectives": list(known.objectives),
        "observed_front": [
            {"number": trial.number, "params": trial.params, "values": named(trial.values)}
            for trial in known.observed_front
        ],
        "front": [
            {
                "number": point.trial.number,
                "params": point.trial.params,
                "mean": named(point.mean),
                "std": named(point.std),
                "lower": named(point.interval[:, 0]),
                "upper": named(point.interval[:, 1]),
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
        "sentence": found.sentence(),
    }


def unfinished_record(known: Explanation) -> list[dict[str, Any]]:
    """Return for programs what the model has of each trial without a final value."""
    return [{**vars(row), "value": number(row.value)} for row in known.partial]


def left_out_record(known: Explanation) -> dict[str, str]:
    """Return the same for programs: number of a trial -> where it was run."""
    return {str(number): where for number, where in known.left_out.items()}


def number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold."""
    if value is None or math.isfinite(value):
        return value
    return str(value)


def _command(study: optuna.Study, recommended: FrozenTrial | None) -> str | None:
    arguments = stored_command(study)
    if recommended is None or arguments is None:
        return None
    try:
        values = fixed_values(recommended.number) | recommended.params
        command = shlex.join(Template(arguments).fill(values))
    except (KeyError, ValueError):  # recorded by other software
        return None
    directory = study.user_attrs.get(DIRECTORY)
    if not isinstance(directory, str) or Path(directory) == Path.cwd():
        return command
    return f"cd {shlex.quote(directory)} && {command}"


def _observed(trial: FrozenTrial | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {"number": trial.number, "params": trial.params, "value": number(trial.value)}
