"""Explanation of a study: recommendation and evidence, as data and as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import FrozenTrial

from stoic.data import DISTRUSTED, SDS_95, Array
from stoic.integrations.optuna.certified import Certified
from stoic.integrations.optuna.confirmed import Confirmation
from stoic.integrations.optuna.diagnostics import PartialRow, Row
from stoic.integrations.optuna.earlier import SourceTrust
from stoic.integrations.optuna.executed import run_with
from stoic.integrations.optuna.possible import PossibleValues
from stoic.printable import ShownAsText, at_least, printable, probability, written

if TYPE_CHECKING:
    import pandas

Settings = Mapping[str, Any] | Sequence[Mapping[str, Any]]

SHOWN = 20  # entries of a list
_CANDIDATES = 5  # of a confirmation, in a text
_UNJUDGED = "no parameter is modelled, so no result is judged"


def _unknown(settings: Settings) -> tuple[Array, Array]:
    """Predict without a model: means of nan, infinite deviations."""
    n = 1 if isinstance(settings, Mapping) else len(settings)
    return np.full(n, np.nan), np.full(n, np.inf)


@dataclass(frozen=True)
class FrontPoint:
    """Setting of a recommended front.

    Attributes
    ----------
    trial:
        A trial that was run there, with trusted values: a complete one if there is any, else one
        that failed with some of them, the others being those of other trials there.
    mean, std:
        Posterior mean and standard deviation of each objective, (k,) both. The deviation is
        infinite where it is not known.
    feasible:
        Probability that all constraints hold there, None as of :class:`Explanation`.
    """

    trial: FrozenTrial
    mean: Array
    std: Array
    feasible: float | None = None

    @property
    def interval(self) -> Array:
        """95 % interval of each objective, (k, 2)."""
        return np.stack([self.mean - SDS_95 * self.std, self.mean + SDS_95 * self.std], axis=1)

    @property
    def estimates(self) -> list[str]:
        """Mean and interval of each objective for people."""
        return [
            f"{mean:.6g} ({low:.4g} to {high:.4g})" if high < math.inf else f"{mean:.6g} (unknown)"
            for mean, (low, high) in zip(self.mean.tolist(), self.interval.tolist(), strict=True)
        ]


@dataclass(frozen=True, repr=False)
class Explanation(ShownAsText):
    """Recommendation of a study and its evidence, in the user's units and direction.

    Attributes
    ----------
    observed_best:
        The trial with the best observed value; it may be an outlier.
    recommended:
        The trial that was run where the pessimistic confidence bound is best, of the settings with
        a result that is not distrusted if there are any: query its parameters again. With an aim,
        the one whose parameters, as they were suggested, have the best certificate. None if no
        trial has a value, or no trusted one has the values that are given.
    recommended_mean, recommended_std:
        Posterior mean and standard deviation of the objective there, or where ``untried`` is; with
        the default method hyperparameters are integrated out, as in ``predict``. The
        deviation is infinite where it is not known: where nothing is learned from other trials, and
        where hyperparameters are fitted and no two results differ, which leaves no scale to measure
        it in. Then it is at most the standard error that was reported with the trial.
    model_optimum:
        The parameters, tried or not, where the posterior mean is best.
    model_optimum_mean:
        The posterior mean there.
    rows:
        One for each complete trial that the model observed, in the order of trials.
    predict:
        From one setting or a list of k, each with all the parameters that such a setting has, to
        the posterior mean and standard deviation of the objective there, both (k,); at the nearest
        point of a grid, if the recipe has one.
    importances:
        Returns the name of each modelled parameter -> its total effect: the share of the variance
        of the posterior mean over the search space that is left when all others are known, of poor
        values as they are modelled, see :mod:`stoic.models.rescaling`. Largest first; empty without
        a model. With several objectives it takes the name of one.
    certified, certified_observed:
        How far the recommended setting, and that of the observed best, may be moved. None if there
        is no aim, or no scale to measure deviations in; a distrusted observed best has none either.
    left_out:
        Number of a finished trial that was run at no point of the recipe's grid -> where it was
        run. The model did not observe these.
    fixed:
        Name of a parameter -> value, where only settings with these values were compared:
        ``observed_best``, ``recommended`` and ``model_optimum`` have them. ``rows`` has all trials.
    untried:
        Of all settings with the values that are given, the one where the pessimistic confidence
        bound is best, if no trusted trial has these values, or if it is clearly better than the
        estimate of the best one that has; else None.
    instead_of:
        Number of that trial; None if there is none, or if it is recommended.
    infeasible:
        Numbers of the complete and pruned trials that violate a constraint as it was observed, or
        may (nan); of several objectives also the failed ones with some values. None of them is
        ``observed_best``; one is ``recommended`` only if the violation is likely an outlier or
        noise. Where constraints are not modelled none is, and none is in ``rows``.
    distrusted_constraints:
        Name of a constraint -> numbers of the trials whose value of it is distrusted, so that they
        count as neither kept nor violated.
    feasible:
        Probability that all constraints hold at the recommended setting, of a front the least one;
        None without constraints, or where they are not modelled.
    conditional:
        Names of the parameters that not all complete trials have, modelled where a trial has them.
    unmodelled:
        What trials have and the model does not use, a sentence each.
    possible:
        Range of the values that the objective can have; None if it is not declared.
    impossible:
        Number of a complete trial with a value outside of it -> that value. None of them is
        ``observed_best``, ``recommended`` or in ``rows``.
    penalties:
        Number of a complete trial whose value stands for a failure, since it is repeated exactly
        and far worse than nearly all others -> that value. They count as infeasible, and none is in
        ``rows``.
    repeated:
        That a value which failed runs may have reported is repeated exactly, and better than nearly
        all others; None where none is. It counts.
    undecided:
        Why the results contradict each other too much to recommend anything with confidence, and
        which queries would resolve it; None where they do not.
    repeats:
        Number of trusted trials at the recommended setting. One alone may be luck.
    failures:
        Number of trials at that setting that failed, and not by a transient cause.
    confirmation:
        Outcome of the confirming measurements; None if there are none, with an aim, and where
        values are given.
    recipe:
        Name of the recipe that judges, if it is not the default method.
    sources:
        The earlier studies that inform this one, and how much each is trusted.
    steep:
        Numbers of distrusted trials that are worse than expected beside others of this kind: rather
        a slope too steep for the model than outliers.
    partial:
        What the model has of each trial without a final value: pruned, or with a bound. None of
        them is recommended.
    objectives:
        Names of the objectives, if there are several. Then nothing is recommended alone: all that
        is about one best setting is None, nan or empty; ``rows`` has one for each value of a trial;
        and ``predict`` gives means and deviations of shape (k, number of objectives).
    directions:
        "minimize" or "maximize" for each of these.
    observed_front:
        Trials whose observed values no other one's dominate: no worse in all objectives, and better
        in one. Some of them may be outliers.
    front:
        Recommended front: of the settings with a trusted value of each objective, those whose
        posterior means no other one's dominate; in the order of the first objective, from its best.
    """

    observed_best: FrozenTrial | Any  # or None: with Any a script need not rule that out
    recommended: FrozenTrial | Any  # or None
    recommended_mean: float
    recommended_std: float
    model_optimum: dict[str, Any]
    model_optimum_mean: float
    rows: tuple[Row, ...]
    predict: Callable[[Settings], tuple[Array, Array]] = _unknown
    importances: Callable[..., dict[str, float]] = lambda *objective: {}
    certified: Certified | None = None
    certified_observed: Certified | None = None
    left_out: Mapping[int, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    untried: dict[str, Any] | None = None
    instead_of: int | None = None
    infeasible: tuple[int, ...] = ()
    distrusted_constraints: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    conditional: tuple[str, ...] = ()
    feasible: float | None = None
    unmodelled: tuple[str, ...] = ()
    repeated: str | None = None
    undecided: str | None = None
    repeats: int = 0
    failures: int = 0
    steep: tuple[int, ...] = ()
    confirmation: Confirmation | None = None
    possible: PossibleValues | None = None
    impossible: Mapping[int, float] = field(default_factory=dict)
    penalties: Mapping[int, float] = field(default_factory=dict)
    recipe: str | None = None
    sources: tuple[SourceTrust, ...] = ()
    partial: tuple[PartialRow, ...] = ()
    objectives: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    observed_front: tuple[FrozenTrial, ...] = ()
    front: tuple[FrontPoint, ...] = ()

    @property
    def trust(self) -> dict[int, dict[str, float]]:
        """Number of a trial -> objective -> trust of its value; "value" is the only objective."""
        found: dict[int, dict[str, float]] = {}
        for row in self.rows:
            found.setdefault(row.number, {})[row.objective or "value"] = row.trust
        return found

    @property
    def judged(self) -> bool:
        """True unless no result could be judged, since no parameter is modelled."""
        given = any(not math.isnan(row.trust) for row in self.rows)
        return given or not self.rows or self.predict is not _unknown

    def __str__(self) -> str:
        lines = best_lines(self) + doubt_lines(self)
        lines += [f"not modelled   {sentence}" for sentence in self.unmodelled]
        return "\n".join(map(printable, lines))

    @property
    def unconfirmed(self) -> bool:
        """True if a single trusted trial is at the recommended setting, and none confirmed it."""
        return self.repeats == 1 and self.confirmation is None

    @property
    def caveats(self) -> str:
        """What is said after the recommended result: measured once, failed there."""
        times = "once" if self.failures == 1 else f"{self.failures} times"
        failed = f", failed {times} there" * bool(self.failures)
        return ", once: not confirmed" * self.unconfirmed + failed

    def others(self, sign: str = "+-") -> str:
        """Say what all others expect where one result alone is recommended: it may be wrong.

        Not where the estimate is beyond both, as an average over many fits may be, while theirs is
        of one: then they say nothing against it.
        """
        number = self.recommended.number if self.recommended is not None else None
        rows = [row for row in self.rows if row.number == number and math.isfinite(row.sd)]
        if not (rows and self.unconfirmed):
            return ""
        low, high = sorted([rows[0].value, rows[0].expected])
        if not low <= self.recommended_mean <= high:
            return ""
        return f"; all others expect {expected(rows[0], sign)}"

    def trust_of(self, number: int) -> float:
        """Return the trust in a trial, by its number; nan if the model did not observe it."""
        return next((row.trust for row in self.rows if row.number == number), math.nan)

    def to_frame(self) -> pandas.DataFrame:
        """Return ``rows`` as a table of pandas, with a column for each parameter.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas

        frame = pandas.DataFrame(
            [
                {
                    "number": row.number,
                    **({} if row.objective is None else {"objective": row.objective}),
                    **{f"params_{name}": value for name, value in row.params.items()},
                    "value": row.value,
                    "expected": row.expected,
                    "sd": row.sd,
                    "residual": row.residual,
                    "trust": row.trust,
                }
                for row in self.rows
            ]
        )
        return frame.set_index("number") if len(frame) else frame


def certificate_lines(found: Certified) -> list[str]:
    """Format for people how far the recommended setting may be moved."""
    lines = []
    if (said := found.unreachable()) is not None:
        lines.append(f"threshold      {said}")
    return [*lines, f"certificate    {found.sentence()}"]


def _executed_lines(rows: Sequence[Row]) -> list[str]:
    """Count the trials that report what was run."""
    trials = {row.number: row for row in rows}  # one of the rows of its several objectives
    said = [row for row in trials.values() if row.executed is not None]
    if not said:
        return []
    refused = sum(bool(row.refused) for row in said)
    some = f", but for parts of {refused}, see below" * bool(refused)
    count = f"{len(said)} of {len(trials)} trials say what was run"
    return [f"executed       {count}, and count there{some}"]


def excluded_lines(known: Explanation) -> list[str]:
    """List the trials that violate a constraint, and complete ones that the model does not use."""
    lines = []
    if known.left_out:
        lines.append(f"not in model   {len(known.left_out)}, run at no point of the recipe's grid")
        lines += _first([f"  trial {number}: {where}" for number, where in known.left_out.items()])
    if known.infeasible:
        numbers = list(known.infeasible)
        lines.append(f"infeasible     {len(numbers)} violate a constraint, or may: {some(numbers)}")
    for name, doubtful in known.distrusted_constraints.items():
        lines.append(f"constraints    values of {name} that are distrusted: {some(list(doubtful))}")
    if known.impossible:
        lines.append(f"impossible     {len(known.impossible)} outside of {known.possible}")
        lines += _first([f"  trial {n}: observed {v:.6g}" for n, v in known.impossible.items()])
    for value in sorted(set(known.penalties.values())):
        numbers = [number for number, found in known.penalties.items() if found == value]
        lines.append(
            f"penalties      {len(numbers)} of {value:.6g}, far worse than nearly all others, count"
            f" as infeasible: {some(numbers)}"
        )
    return lines


def why(row: Row) -> str:
    """Format the observed value, its leave-one-out prediction and its trust."""
    observed = written(row.value, row.sd)
    return f"observed {observed}, expected {expected(row)}, trust {row.trust:.2f}"


def deviation(sd: float, digits: int = 2) -> str:
    """Format a standard deviation for people, to so many digits."""
    return f"{sd:.{digits}g}" if math.isfinite(sd) else "unknown"


def estimated(mean: float, sd: float, sign: str = "+-") -> str:
    """Format an estimate with its standard deviation for people."""
    return f"{written(mean, sd)} {sign} {deviation(sd)}"


def expected(row: Row, sign: str = "+-") -> str:
    """Format the leave-one-out prediction of a value."""
    return estimated(row.expected, row.sd, sign) if row.predicted else "unknown"


def residual(row: Row) -> str:
    """Format the leave-one-out residual; without a scale it is unknown."""
    return f"{row.residual:+.3g}" if math.isfinite(row.sd) else "-"


def setting(params: Mapping[str, Any]) -> str:
    """Format parameters in one line, in full precision; texts that look like others in quotes."""
    return "  ".join(f"{name}={_shown(value)}" for name, value in params.items())


def setting_lines(trial: FrozenTrial) -> list[str]:
    """Format the setting of a trial below its values, and what was run instead."""
    instead = f"was {ran}" if (ran := run_as(trial)) else ""
    return [f"{'':15}{line}" for line in (setting(trial.params), instead) if line]


def run_as(trial: FrozenTrial) -> str:
    """Format what was run instead of a trial's setting; empty if that was."""
    ran = run_with(trial)
    return f"run as {setting(ran)}" if ran != trial.params else ""


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) and _looks_otherwise(value) else str(value)


def _looks_otherwise(text: str) -> bool:
    """Return True if a text looks like no text, another value, or further parameters."""
    if text in ("", "True", "False", "None") or text[0] in "'\"" or re.search(r"[\s=]", text):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _confirmation_lines(found: Confirmation) -> list[str]:
    """Format for people: the outcome, and the candidates that are left."""
    lines = [f"confirmed      {found.sentence()}"]
    for candidate in found.candidates[:_CANDIDATES]:
        count, failed = candidate.measurements, candidate.failures
        lines.append(
            f"  trial {candidate.number}: {estimated(candidate.mean, candidate.std)}, best with "
            f"probability {candidate.probability:.2f}, measured {count} time{'s' * (count != 1)}"
            + f", failed {failed} time{'s' * (failed != 1)}"
            * bool(failed)
        )
    more = len(found.candidates) - _CANDIDATES
    return lines + [f"  and {more} more, see stoic show --json"] * (more > 0)


def _front_lines(known: Explanation) -> list[str]:
    """Format the observed front, and the recommended one with its intervals."""
    lines = [f"objectives     {', '.join(known.objectives)}"]
    numbers = [trial.number for trial in known.observed_front]
    count = (
        f"{len(numbers)} trial{'s' * (len(numbers) != 1)}: {some(numbers)}" if numbers else "none"
    )
    lines.append(f"observed front {count}")
    if not known.front:
        unsettled = "no setting has a trusted value of each objective"
        doubted = set().union(*known.distrusted_constraints.values())
        if known.fixed and not known.observed_front:
            unsettled = "no feasible trial" if known.infeasible else "no trial"
            unsettled += " with a value of each objective has these values"
        elif known.infeasible and {t.number for t in known.observed_front} <= doubted:
            unsettled = "no setting is known to be feasible"
        return [*lines, f"recommended    none: {unsettled if known.judged else _UNJUDGED}"]
    lines.append(f"recommended    a front of {len(known.front)}, by trusted means; 95 % intervals:")
    for point in known.front[:SHOWN]:
        named = zip(known.objectives, point.estimates, strict=True)
        estimates = ", ".join(f"{name} {estimate}" for name, estimate in named)
        lines.append(f"  trial {point.trial.number}: {estimates}")
        lines += setting_lines(point.trial)
    lines += rest(len(known.front))
    if known.feasible is not None:
        lines.append(f"feasible       each with probability {at_least(known.feasible)}")
    if known.undecided is not None:
        lines.append(f"undecided      {known.undecided}")
    return lines


def best_lines(known: Explanation) -> list[str]:
    """Format the observed best and the recommended setting, with its certificate; or the fronts."""
    lines = []
    if known.fixed:
        lines.append(f"given          {setting(known.fixed)}, for which this is the best:")
    if known.objectives:
        return lines + _front_lines(known)
    best, sd = known.observed_best, known.recommended_std
    if best is None:
        such = "such " * bool(known.fixed) + "feasible " * bool(known.infeasible)
        lines.append(f"observed best  none: no {such}trial has a finite value")
    else:
        trust = known.trust_of(best.number)
        note = f", distrusted (trust {trust:.2f})" if trust < DISTRUSTED else ""
        lines.append(
            f"observed best  trial {best.number}: observed {written(best.value, sd)}{note}"
        )
        lines += setting_lines(best)
    if known.untried is not None:
        alone = "no such trial is trusted"
        if known.instead_of is not None:
            alone = f"clearly better than trial {known.instead_of}"
        lines.append(
            f"recommended    by the model alone, {alone}: estimated "
            f"{estimated(known.recommended_mean, sd)}, not run"
        )
        lines.append(f"               {setting(known.untried)}")
    elif known.recommended is None:
        none = ": no setting is known to be feasible" * bool(known.infeasible)
        if not known.judged:
            none = f": {_UNJUDGED}"
        lines.append(f"recommended    none{none}")
    else:
        unjudged = f"; {_UNJUDGED}" * (not known.judged)
        lines.append(
            f"recommended    trial {known.recommended.number}: estimated "
            f"{estimated(known.recommended_mean, sd)}, observed "
            f"{written(known.recommended.value, sd)}{known.caveats}{known.others()}{unjudged}"
        )
        lines += setting_lines(known.recommended)
    if known.feasible is not None:
        own = known.recommended is not None and known.recommended.number in known.infeasible
        though = ", though its own values violate a constraint" * own
        lines.append(f"feasible       with probability {probability(known.feasible)}{though}")
    if known.repeated is not None:
        lines.append(f"repeated       {known.repeated}")
    if known.undecided is not None:
        lines.append(f"undecided      {known.undecided}")
    if known.certified is not None:
        lines += certificate_lines(known.certified)
    if known.confirmation is not None:
        lines += _confirmation_lines(known.confirmation)
    return lines


def doubt_lines(known: Explanation) -> list[str]:
    """List the trials that are distrusted, and those that the model does not use."""
    distrusted = [r for r in known.rows if r.distrusted and r.number not in known.steep]
    lines = [] if known.recipe is None else [f"judged by      {known.recipe}"]
    lines += [f"warm start     {source.sentence()}" for source in known.sources]
    count = str(len(distrusted) or "none")
    if distrusted and known.objectives:
        values, trials = len(distrusted), len({row.number for row in distrusted})
        count = f"{values} value{'s' * (values > 1)} of {trials} trial{'s' * (trials > 1)}"
    lines.append(f"distrusted     {count}")
    # Of many, those that are off by most, in the order of trials
    distrusted.sort(key=lambda row: -abs(row.value - row.expected))
    distrusted = sorted(distrusted[:SHOWN], key=lambda row: row.number) + distrusted[SHOWN:]
    lines += _first([f"  {row.of}: {why(row)}" for row in distrusted])
    lines += unfinished_lines(known.partial)
    if known.steep:
        lines.append(
            f"steep slope    {len(known.steep)} more that count as little, worse than expected "
            "beside each other, rather than outliers at random: trials "
            f"{some(list(known.steep))}"
        )
    if known.conditional:
        names = ", ".join(known.conditional)
        lines.append(f"conditional    modelled in the trials that have them: {names}")
    lines += _executed_lines(known.rows)
    return lines + excluded_lines(known)


def unfinished_lines(partial: Sequence[PartialRow]) -> list[str]:
    """Count the trials without a final value, and list those that the others contradict."""
    if not partial:
        return []
    bounds = sum(row.censored for row in partial)
    counts = [
        f"{count} {what}"
        for count, what in (
            (len(partial) - bounds, "as their intermediate values predict"),
            (bounds, "as at least as bad as a bound"),
        )
        if count
    ]
    lines = [f"unfinished     {len(partial)} without a final value count: {', '.join(counts)}"]
    return lines + _first(
        [
            f"  trial {row.number}: {row.sentence()}, which others contradict: "
            f"trust {row.trust:.2f}"
            for row in partial
            if row.trust < DISTRUSTED
        ]
    )


def _first(lines: list[str]) -> list[str]:
    return lines[:SHOWN] + rest(len(lines))


def rest(count: int) -> list[str]:
    """Count the entries that a list leaves out, if it does."""
    return [f"  and {count - SHOWN} more, see stoic show --json"] if count > SHOWN else []


def some(numbers: list[int], most: int = 12) -> str:
    """List some numbers, and how many more there are."""
    shown = ", ".join(map(str, numbers[:most]))
    return shown + (f" and {len(numbers) - most} more" if len(numbers) > most else "")
