"""Features of a study that the model lacks: refused, or reported in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.data import FAILURES
from stoic.integrations.optuna.choices import ChoiceNumbers
from stoic.integrations.optuna.internals import constraints, possible, same_range
from stoic.integrations.optuna.objectives import NOISE, noises_of, states_bound
from stoic.integrations.optuna.partial import bound_trouble, noise_variance

CONSTRAINTS = "stoic:constraints"  # of a study: name of an output -> its constraint, as written

FAILED = "stoic:failed"  # user attribute: why a trial has no value, one of stoic.data.FAILURES

_LISTED = 3  # trials; a sentence that had all would be another one after each trial


def witnesses(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that show which parameters a setting has.

    The complete ones; and if there are any, those that ended otherwise after a parameter that no
    complete one has, so that a branch where everything fails is modelled, too.
    """
    found = [t for t in trials if t.state == TrialState.COMPLETE and t.distributions]
    names = {name for trial in found for name in trial.distributions}
    others = (TrialState.FAIL, TrialState.PRUNED) if found else ()
    return found + [t for t in trials if t.state in others and t.distributions.keys() - names]


def modelled_space(
    trials: Sequence[FrozenTrial], shared: bool = False
) -> dict[str, BaseDistribution]:
    """Return the parameters that some trial has, and no other one in another range.

    Only those that are ``shared`` by all complete trials, where inputs move: a tolerance is one of
    every setting. A trial that ended before it had parameters says nothing about which there are.
    """
    if shared:
        return intersection_search_space([trial for trial in trials if trial.distributions])
    space: dict[str, BaseDistribution] = {}
    changed = set()
    for trial in witnesses(trials):
        for name, distribution in trial.distributions.items():
            if not same_range(space.setdefault(name, distribution), distribution):
                changed.add(name)
    return {name: d for name, d in space.items() if name not in changed}


def conditional(trials: Sequence[FrozenTrial], space: Iterable[str]) -> tuple[str, ...]:
    """Return the names in ``space`` of the parameters that not all trials with any have."""
    settings = [trial.params for trial in trials if trial.params]
    return tuple(name for name in space if not all(name in params for params in settings))


def declared_constraints(study: Study) -> dict[str, str]:
    """Return the constraints that are recorded with a study, by name, as they were written."""
    record = study.user_attrs.get(CONSTRAINTS)
    if not isinstance(record, dict):
        return {}
    return {str(name): text for name, text in record.items() if isinstance(text, str)}


def violates(trial: FrozenTrial) -> bool:
    """Return True if a trial violates a constraint, or is not known to satisfy it (nan)."""
    return not all(value <= 0.0 for value in constraints(trial).values())


def unmodelled(
    trials: Sequence[FrozenTrial],
    space: Mapping[str, BaseDistribution] | None = None,
    constrained: bool = True,
    declared: Iterable[str] = (),
    partial: bool = True,
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
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    sentences = _unknown_constraints(complete, declared)
    if not constrained and any(constraints(trial) for trial in trials):
        sentences.append(
            "A trial that violates a constraint is avoided as infeasible: by how much it violates "
            "it, and its value, are not modelled."
        )
    if space is None:
        space = modelled_space(trials)
    if space and (bare := [t.number for t in complete if not t.distributions]):
        sentences.append(f"Trials without parameters are not modelled: {_listed(bare)}.")
    choices = {
        name: ChoiceNumbers(d)
        for name, d in space.items()
        if isinstance(d, CategoricalDistribution)
    }

    def inside(name: str, value: Any) -> bool:
        return value in choices[name] if name in choices else possible(space[name], value)

    outside = [
        trial.number
        for trial in complete
        if not all(inside(name, v) for name, v in trial.params.items() if name in space)
    ]
    if outside:
        sentences.append(
            "Trials with a value that is out of its parameter's range are not modelled: "
            f"{_listed(outside)}."
        )
    if names := {name for trial in complete for name in trial.distributions} - space.keys():
        sentences.append(
            f"Not all trials have {', '.join(sorted(names))} in the same range: what not all share "
            "is drawn at random, or by the independent sampler, and not modelled."
        )
    if not partial and any(trial.state == TrialState.PRUNED for trial in trials):
        sentences.append(
            "With this recipe a pruned trial counts as a result that is not a number: its "
            "intermediate values are not used."
        )
    if not partial and (bounds := [t.number for t in trials if states_bound(t)]):
        sentences.append(
            f"With this recipe bounds are not modelled, as those of trials {_listed(bounds)}."
        )
    return tuple(sentences)


def all_unusable(trials: Sequence[FrozenTrial], objectives: int = 1) -> tuple[str, ...]:
    """Describe attributes of trials that are of no use, a sentence with the first trial of each."""
    first: dict[str, str] = {}
    for trial in trials:
        for reason in unusable(trial, objectives):
            first.setdefault(reason.partition(" ")[0], f"Trial {trial.number}: {reason}.")
    return tuple(first.values())


def unusable(trial: FrozenTrial, objectives: int = 1) -> list[str]:
    """Name the attributes of a trial that are of no use, since something else is in them."""
    reasons = []
    # By the number of objectives: a trial that is about to end has no values yet
    several = objectives > 1
    used = noises_of(trial, objectives) if several else noise_variance(trial)
    if NOISE in trial.user_attrs and used is None:
        noise = trial.user_attrs[NOISE]
        each = f", one for each of the {objectives} objectives" * several
        reasons.append(f"{NOISE} is not used: it must be a variance above 0{each}, got {noise!r}")
    if FAILED in trial.user_attrs and trial.user_attrs[FAILED] not in FAILURES:
        kind, kinds = trial.user_attrs[FAILED], ", ".join(FAILURES)
        reasons.append(f"{FAILED} is not used: it must be one of {kinds}, got {kind!r}")
    if (trouble := bound_trouble(trial)) is not None:
        reasons.append(trouble)
    return reasons


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
    return ", ".join(map(str, numbers[:_LISTED])) + ", ..." * (len(numbers) > _LISTED)
