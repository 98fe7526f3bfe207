"""Features of a study that the model lacks: refused, or reported in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any, Self

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.data import FAILURES, FailureKind
from stoic.integrations.optuna.choices import ChoiceNumbers
from stoic.integrations.optuna.coordinates import Branches, Numbers
from stoic.integrations.optuna.encoding import as_written, number_text, spanning
from stoic.integrations.optuna.executed import refused
from stoic.integrations.optuna.internals import constraints, possible, same_range
from stoic.integrations.optuna.noise import too_wide
from stoic.integrations.optuna.objective import AIM, stored_aim
from stoic.integrations.optuna.objectives import NOISE, VALUES, measured, noises_of, states_bound
from stoic.integrations.optuna.partial import bound_trouble, diverged, has_value, noise_variance
from stoic.integrations.optuna.possible import POSSIBLE, stored_possible
from stoic.integrations.recipe import RECIPE, stored_recipe

CONSTRAINTS = "stoic:constraints"  # of a study: name of an output -> its constraint, as written

CONFIRM = "stoic:confirm"  # user attribute: True for a confirming measurement
FAILURE = "failure"  # why a trial of ``stoic tune`` has no value, in a sentence
FAILED = "stoic:failed"  # user attribute: why a trial has no value, one of stoic.data.FAILURES

# Of all changes between one trial and the next, those between trials of one branch: one in five.
_RARELY = 5

WITH_RESULT = (TrialState.COMPLETE, TrialState.PRUNED)

_NUMBER = int | float | None  # of an objective; None where there is none
_LISTED = 3  # trials; a sentence that had all would be another one after each trial


class Parameters:
    """Parameters of the trials of a study that grows; a trial is read once, when it has ended.

    With several ``objectives`` one that failed with some of their values counts as complete.
    """

    def __init__(self, objectives: int = 1) -> None:
        self._objectives = objectives
        self._seen: set[int] = set()  # numbers of trials
        self._ranges: dict[str, BaseDistribution] = {}  # of complete trials, of each all together
        self._latest: dict[str, tuple[int, BaseDistribution]] = {}  # trial, and its range
        self._places: dict[str, tuple[int, int]] = {}  # where that is: trial, and place in it
        self._changed: set[str] = set()  # names with several steps, or choices
        self._counts: Counter[str] = Counter()  # of complete trials that have a parameter
        self._complete = 0  # of complete trials that have any
        self._several: set[str] = set()  # names with several ranges
        self._all: list[FrozenTrial] = []  # the complete ones
        self._branches: dict[str, Branches] = {}  # in the only space that is asked for
        self._branched = 0  # number of complete trials then
        self._others: list[FrozenTrial] = []  # failed and pruned ones
        self._running: list[FrozenTrial] = []  # those that have parameters

    @classmethod
    def of(cls, trials: Iterable[FrozenTrial], objectives: int = 1) -> Self:
        """Read these trials."""
        parameters = cls(objectives)
        parameters.follow(trials)
        return parameters

    def note_running(self, trials: Sequence[FrozenTrial]) -> None:
        """Note those that began after all that have ended: an earlier one may have been killed."""
        latest = list(takewhile(lambda trial: not trial.state.is_finished(), reversed(trials)))
        self._running = [trial for trial in reversed(latest) if trial.distributions]

    def follow(self, trials: Iterable[FrozenTrial]) -> None:
        """Read the trials that have ended since the last call, of all trials."""
        for trial in trials:
            if trial.number in self._seen or not trial.state.is_finished():
                continue
            self._seen.add(trial.number)
            if measured(trial, self._objectives):
                self._add(trial)
            elif trial.distributions:
                self._others.append(trial)

    def _add(self, trial: FrozenTrial) -> None:
        self._complete += bool(trial.distributions)
        self._all.append(trial)
        for place, (name, distribution) in enumerate(trial.distributions.items()):
            self._counts[name] += 1
            if not same_range(self._ranges.get(name, distribution), distribution):
                self._several.add(name)
            _widen(self._ranges, name, distribution, self._changed)
            if self._latest.get(name, (-1, None))[0] < trial.number:
                self._latest[name] = trial.number, distribution
            at = (trial.number, place)
            self._places[name] = min(self._places.get(name, at), at)

    def shown_by(self, trial: FrozenTrial) -> bool:
        """Return True if a trial shows which parameters a setting has.

        A complete one does; and if there are any, one that failed or was pruned after a parameter
        that no complete one has, so that a branch where everything fails is modelled, too. Without
        any those do that a rule excluded, which are no reason to search at random.
        """
        if measured(trial, self._objectives):
            return bool(trial.distributions)
        if not self._complete:
            return bool(trial.distributions) and ruled_out(trial)
        ended = trial.state in (TrialState.FAIL, TrialState.PRUNED)
        return ended and bool(trial.distributions.keys() - self._ranges)

    def modelled(self, shared: bool = False) -> dict[str, BaseDistribution]:
        """Return the parameters that some trial shows, each with the range of all trials together.

        Those that other trials have with another step, or with other choices, are left out. Only
        those that are ``shared`` by all complete trials, sorted, where inputs move: a tolerance is
        one of every setting. A trial that ended before it had parameters says nothing about which
        there are. The ranges of running ones count, of parameters that are modelled anyway.
        """
        if shared:
            names = sorted(self._ranges.keys() - self._changed)
            common = [n for n in names if self._counts[n] == self._complete]
            return self._widened({n: self._ranges[n] for n in common})
        names = sorted(self._ranges, key=self._places.__getitem__)
        space, changed = {name: self._ranges[name] for name in names}, set(self._changed)
        shown = list(filter(self.shown_by, self._others))
        if self._complete:  # names of complete ones only become more
            self._others = shown
        for trial in sorted(shown, key=lambda trial: trial.number):
            for name, distribution in trial.distributions.items():
                _widen(space, name, distribution, changed)
        return self._widened({name: d for name, d in space.items() if name not in changed})

    def _widened(self, space: dict[str, BaseDistribution]) -> dict[str, BaseDistribution]:
        """Widen the ranges to those of running trials: the next one of a batch may have them."""
        for trial in self._running:
            for name in trial.distributions.keys() & space.keys():
                space[name] = spanning(space[name], trial.distributions[name]) or space[name]
        return space

    def branches(self, space: Mapping[str, BaseDistribution]) -> dict[str, Branches]:
        """Return the numbers in ``space`` whose range depends on a choice, by name.

        Trials go back and forth between ranges, and those with one choice hardly do: a range that
        was changed on the way is none of these, but may have been in a branch.
        """
        if self._branched != len(self._all):
            trials = sorted(self._all, key=lambda trial: trial.number) if self._several else []
            found = ((name, _branches(name, space, trials)) for name in sorted(self._several))
            self._branches = {name: of for name, of in found if of is not None}
            self._branched = len(self._all)
        return self._branches

    def narrowed(self, space: Mapping[str, BaseDistribution]) -> dict[str, Numbers]:
        """Return the latest trials' ranges that lack a part of those in ``space``."""
        found = {}
        running = {
            name: (t.number, d) for t in self._running for name, d in t.distributions.items()
        }
        for name, (number, latest) in self._latest.items():
            if running.get(name, (-1,))[0] > number:
                latest = running[name][1]
            if name not in space or not isinstance(latest, Numbers) or latest == space[name]:
                continue
            if (together := spanning(latest, space[name])) is not None and together != latest:
                found[name] = latest
        return found

    def outdated(self, params: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, ...]:
        """Describe numbers that the latest trials cannot have, and that were not ``given``.

        Of trials with the same choices, and of ranges that were changed on the way: where trials go
        back and forth, none is the latest.
        """
        if not (names := sorted(self._several & params.keys() - given.keys())):
            return ()
        found = []
        kinds = {n for n, (_, d) in self._latest.items() if isinstance(d, CategoricalDistribution)}
        choices = {name: params[name] for name in kinds & params.keys()}
        alike = [t for t in self._all if choices.items() <= {**choices, **t.params}.items()]
        alike.sort(key=lambda trial: trial.number)
        for name in names:
            ranges = [t.distributions[name] for t in alike if name in t.distributions]
            if not (ranges and isinstance(ranges[-1], Numbers)):
                continue
            in_runs = len(set(map(as_written, ranges))) == _switches(ranges) + 1
            if in_runs and not possible(ranges[-1], params[name]):
                found.append(
                    f"The recommended {name}, {number_text(params[name])}, is outside of the "
                    f"range that the latest trials have, {as_written(ranges[-1])}: none inside "
                    "promises as much."
                )
        return tuple(found)

    def conditional(self, space: Iterable[str]) -> tuple[str, ...]:
        """Return the names in ``space`` that not all complete trials with parameters have."""
        return tuple(name for name in space if self._counts[name] < self._complete)


def _branches(
    name: str, space: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial]
) -> Branches | None:
    """Return the ranges of a parameter by the choice that decides about them, if there is one.

    Of several the one that takes the fewest values.
    """
    whole = space.get(name)
    having = [trial for trial in trials if name in trial.distributions]
    ranges = [trial.distributions[name] for trial in having]
    switches = _switches(ranges)
    if not isinstance(whole, Numbers) or switches < 2:
        return None
    best = None
    for by, choices in space.items():
        if not isinstance(choices, CategoricalDistribution):
            continue
        number = ChoiceNumbers(choices)
        if not all(by in trial.params and trial.params[by] in number for trial in having):
            continue
        own: dict[int, list[Any]] = {}
        for trial, d in zip(having, ranges, strict=True):
            own.setdefault(number(trial.params[by]), []).append(d)
        found = {choice: _together(of) for choice, of in own.items()}
        # A branch that was widened changed once; where a choice says nothing all of them do
        changes = sum(map(_switches, own.values()))
        again = [choice for choice, of in own.items() if len(of) > 1]
        fits = changes * _RARELY <= switches and 2 * len(again) > len(own)
        fits &= len({as_written(found[choice]) for choice in again}) > 1
        inside = all(
            (both := spanning(whole, d)) and same_range(both, whole) for d in found.values()
        )
        if fits and inside and (best is None or len(found) < len(best.ranges)):
            best = Branches(by, choices, found)
    return best


def _switches(ranges: Sequence[BaseDistribution]) -> int:
    return sum(not same_range(one, other) for one, other in pairwise(ranges))


def _together(ranges: Sequence[Numbers]) -> Numbers:
    """Return the range of all together; of those on different steps the last one."""
    found = ranges[0]
    for each in ranges[1:]:
        both = spanning(found, each)
        found = both if isinstance(both, Numbers) else each
    return found


def _widen(
    ranges: dict[str, BaseDistribution], name: str, other: BaseDistribution, changed: set[str]
) -> None:
    """Add a trial's range of a parameter to those before; or its name to the ``changed`` ones."""
    if (together := spanning(ranges.setdefault(name, other), other)) is None:
        changed.add(name)
    else:
        ranges[name] = together


def modelled_space(
    trials: Iterable[FrozenTrial], shared: bool = False, objectives: int = 1
) -> dict[str, BaseDistribution]:
    """Return the parameters that are modelled, see :meth:`Parameters.modelled`."""
    return Parameters.of(trials, objectives).modelled(shared)


def branches_of(trials: Iterable[FrozenTrial]) -> dict[str, Branches]:
    """Return the parameters whose range depends on a choice, see :meth:`Parameters.branches`."""
    parameters = Parameters.of(trials)
    return parameters.branches(parameters.modelled())


def declared_constraints(study: Study) -> dict[str, str]:
    """Return the constraints that are recorded with a study, by name, as they were written."""
    record = study.user_attrs.get(CONSTRAINTS)
    if not isinstance(record, dict):
        return {}
    return {str(name): text for name, text in record.items() if isinstance(text, str)}


def violates(trial: FrozenTrial) -> bool:
    """Return True if a trial violates a constraint, or is not known to satisfy it (nan)."""
    return not all(value <= 0.0 for value in constraints(trial).values())


def violating(trials: Iterable[FrozenTrial]) -> tuple[int, ...]:
    """Numbers of the complete and pruned trials that violate a constraint, or may."""
    return tuple(t.number for t in trials if t.state in WITH_RESULT and violates(t))


def failure_kind(trial: FrozenTrial) -> FailureKind | None:
    """Kind of a trial's failure; None if that is not known, or it did not fail.

    A trial without a result whose last intermediate value is not finite diverged, and is ``"bad"``.
    """
    said = trial.user_attrs.get(FAILED) if trial.state == TrialState.FAIL else None
    kind = next((known for known in FAILURES if said == known), None)
    return "bad" if kind is None and diverged(trial) else kind


def ruled_out(trial: FrozenTrial) -> bool:
    """Return True if a trial was pruned before it had any value, as its constraints may not hold.

    So nothing is known of its objective: a setting beyond a limit may well have a better value, and
    one within it is not likelier to fail.
    """
    known = trial.intermediate_values or states_bound(trial)
    return trial.state == TrialState.PRUNED and not known and violates(trial)


def excluded_by(trial: FrozenTrial) -> dict[str, float]:
    """Return the values of constraints that excluded a trial; none if nothing is known of a size.

    Of a trial that was :func:`ruled_out`: others that are nan were not measured.
    """
    found = {name: excess for name, excess in constraints(trial).items() if not math.isnan(excess)}
    return found if ruled_out(trial) and 0.0 < max(found.values(), default=0.0) < math.inf else {}


def unmodelled(
    trials: Sequence[FrozenTrial],
    space: Mapping[str, BaseDistribution] | None = None,
    constrained: bool = True,
    declared: Iterable[str] = (),
    partial: bool = True,
    known: dict[int, bool] | None = None,
    given: Mapping[str, BaseDistribution] | None = None,
    objectives: int = 1,
) -> tuple[str, ...]:
    """Describe what trials have and the model does not use, a sentence for each thing.

    Parameters
    ----------
    trials:
        All trials of a study.
    space:
        The parameters that are modelled; by default :func:`modelled_space`.
    constrained:
        True if constraints are modelled.
    declared:
        Names of constraints that trials should have.
    partial:
        True if trials without a final value are modelled.
    objectives:
        Number of objectives.
    known:
        Number of a complete trial -> whether its values are in the ``space``; what is not there is
        looked up and added.
    given:
        Where the ``space`` was given, whatever trials have: the parameters that they have.
    """
    known = {} if known is None else known
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    sentences = _unknown_constraints(complete, declared)
    if not constrained and any(constraints(trial) for trial in trials):
        sentences.append(
            "A trial that violates a constraint is avoided as infeasible: by how much it violates "
            "it, and its value, are not modelled."
        )
    if space is None:
        space = modelled_space(trials, objectives=objectives)
    if space and (bare := [t.number for t in complete if not t.distributions]):
        sentences.append(f"Trials without parameters are not modelled: {_listed(bare)}.")
    choices = {
        name: ChoiceNumbers(d)
        for name, d in space.items()
        if isinstance(d, CategoricalDistribution)
    }

    def inside(name: str, value: Any) -> bool:
        return value in choices[name] if name in choices else possible(space[name], value)

    for trial in complete:
        if trial.number not in known:
            values = trial.params.items()
            known[trial.number] = all(inside(name, v) for name, v in values if name in space)
    if outside := [trial.number for trial in complete if not known[trial.number]]:
        sentences.append(
            "Trials with a value that is out of its parameter's range are not modelled: "
            f"{_listed(outside)}."
        )
    if names := set[str]().union(*(trial.distributions for trial in complete)) - space.keys():
        listed = ", ".join(sorted(names))
        why = f"search_space does not have {listed}: what it lacks"
        if given is None:
            why = f"Not all trials have {listed}, with the same step or choices: that"
        sentences.append(
            f"{why} is drawn at random, or by the independent sampler, and not modelled."
        )
    if given is not None and complete:
        sentences += _not_as_given(space, given)
    because = "With several objectives" if objectives > 1 else "With this recipe"
    if not partial and any(t.state == TrialState.PRUNED and not ruled_out(t) for t in trials):
        sentences.append(
            f"{because} a pruned trial counts as a result that is not a number: its "
            "intermediate values are not used."
        )
    if not partial and (bounds := [t.number for t in trials if states_bound(t)]):
        sentences.append(
            f"{because} bounds are not modelled, as those of trials {_listed(bounds)}."
        )
    return tuple(sentences)


def _not_as_given(
    space: Mapping[str, BaseDistribution], known: Mapping[str, BaseDistribution]
) -> list[str]:
    """Describe how a given space differs from the parameters that trials have."""
    sentences = []
    if unused := sorted(space.keys() - known.keys()):
        sentences.append(
            f"search_space has {', '.join(unused)}, which no complete trial has so far with that "
            "step or these choices: until one has, the values that are chosen for it are not used."
        )
    for name in sorted(space.keys() & known.keys()):
        together = spanning(space[name], known[name])
        if together is None or not same_range(together, space[name]):
            sentences.append(
                f"search_space has {name} as {as_written(space[name])} and trials have it as "
                f"{as_written(known[name])}: only what both have is searched."
            )
    return sentences


def all_unusable(trials: Sequence[FrozenTrial], objectives: int = 1) -> tuple[str, ...]:
    """Describe attributes of trials, and parts of what was run, that are of no use, the first."""
    found: dict[str, tuple[str, list[int]]] = {}
    for trial in trials:
        for reason in unusable(trial, objectives):
            _, numbers = found.setdefault(reason.partition(" ")[0], (reason, []))
            numbers.append(trial.number)
    parts = [(trial.number, reason) for trial in trials for reason in refused(trial)]
    more = sorted({number for number, _ in parts[_LISTED:]})
    return (
        *(
            f"Trial {first}: {reason}."
            + f" Likewise trial{'s' * (len(others) > 1)} {_listed(others)}." * bool(others)
            for reason, (first, *others) in found.values()
        ),
        *(f"Trial {number}: {reason}." for number, reason in parts[:_LISTED]),
        *[f"More that was run is not used as reported: trials {_listed(more)}."] * bool(more),
        *(too_wide(list(filter(has_value, trials))) if objectives == 1 else ()),
    )


def unusable(trial: FrozenTrial, objectives: int = 1, state: TrialState | None = None) -> list[str]:
    """Name the attributes of a trial that are of no use, since something else is in them.

    ``state`` is that of a trial that is about to end.
    """
    reasons = []
    # By the number of objectives: a trial that is about to end has no values yet
    several = objectives > 1
    used = noises_of(trial, objectives) if several else noise_variance(trial)
    if NOISE in trial.user_attrs and used is None:
        noise = trial.user_attrs[NOISE]
        each = f", one for each of the {objectives} objectives" * several
        reasons.append(f"{NOISE} is not used: it must be a variance above 0{each}, got {noise!r}")
    elif isinstance(used, np.ndarray):
        pairs = zip(trial.user_attrs[NOISE], used, strict=True)
        if bad := [given for given, n in pairs if given is not None and math.isnan(n)]:
            reasons.append(f"{NOISE} is used in part: {bad[0]!r} is no variance above 0")
    if FAILED in trial.user_attrs and trial.user_attrs[FAILED] not in FAILURES:
        kind, kinds = trial.user_attrs[FAILED], ", ".join(FAILURES)
        reasons.append(f"{FAILED} is not used: it must be one of {kinds}, got {kind!r}")
    elif FAILED in trial.user_attrs and (state or trial.state) == TrialState.COMPLETE:
        reasons.append(
            f"{FAILED} is not used: the trial has a value, and one that fails ends without any"
        )
    if not isinstance(confirms := trial.user_attrs.get(CONFIRM), bool | None):
        reasons.append(f"{CONFIRM} is not used: it must be True or False, got {confirms!r}")
    values = trial.user_attrs.get(VALUES)
    as_needed = isinstance(values, list) and len(values) == objectives
    if several and not (values is None or as_needed or FAILURE in trial.user_attrs):
        needed = f"a list of {objectives} numbers, one for each objective"
        reasons.append(f"{VALUES} is not used: it must be {needed}, got {values!r}")
    given = values if several and isinstance(values, list) and as_needed else []
    if bad := [v for v in given if isinstance(v, bool) or not isinstance(v, _NUMBER)]:
        reasons.append(f"{VALUES} is used in part: {bad[0]!r} is no number")
    if (trouble := bound_trouble(trial)) is not None:
        reasons.append(trouble)
    return reasons


def unusable_records(study: Study) -> tuple[str, ...]:
    """Name what is recorded with a study and of no use, since something else is in it."""
    attributes = study.user_attrs
    records = {AIM: stored_aim, POSSIBLE: stored_possible, RECIPE: stored_recipe}
    return tuple(
        f"{name} of the study is not used: {attributes[name]!r:.80} is nothing that stoic records."
        for name, read in records.items()
        if attributes.get(name) is not None and read(study) is None
    )


def _unknown_constraints(complete: Sequence[FrozenTrial], declared: Iterable[str]) -> list[str]:
    """Describe constraints without a value, or with nan, in some complete trials."""
    values = {trial.number: constraints(trial) for trial in complete}
    sentences = []
    seen = (name for of in values.values() for name in of)
    for name in dict.fromkeys([*declared, *seen]):
        if untold := [n for n, of in values.items() if name not in of]:
            sentences.append(
                f"Trials without a value of the constraint {name} count for the objective and not "
                f"for it: {_listed(untold)}."
            )
        if unknown := [n for n, of in values.items() if math.isnan(of.get(name, 0.0))]:
            sentences.append(
                f"Trials where the constraint {name} is not a number may be infeasible, and are "
                f"not recommended: {_listed(unknown)}."
            )
    return sentences


def _listed(numbers: Sequence[int]) -> str:
    more = len(numbers) - _LISTED
    return ", ".join(map(str, numbers[:_LISTED])) + f" and {more} more" * (more > 0)
