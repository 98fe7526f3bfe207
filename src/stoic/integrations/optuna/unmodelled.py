"""Features of a study that the model lacks: refused, or reported in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from optuna.distributions import BaseDistribution
from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.internals import constraints
from stoic.refusal import RefusalError

CONSTRAINTS = "stoic:constraints"  # of a study: name of an output -> its constraint, as written

_LISTED = 3  # trials; a sentence that had all would be another one after each trial


def shared_space(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return the parameters that all complete trials have, of those that have any.

    A trial that ended before it had parameters says nothing about which ones there are.
    """
    return intersection_search_space([trial for trial in trials if trial.distributions])


def check_single_objective(study: Study) -> None:
    """Refuse a study with several objectives."""
    if len(study.directions) != 1:
        raise RefusalError(
            f"The study {study.study_name!r} has {len(study.directions)} objectives: a study with "
            "one objective is needed."
        )


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
) -> tuple[str, ...]:
    """Describe what trials have and the model does not use, a sentence for each thing.

    Parameters
    ----------
    trials:
        All trials of a study.
    space:
        The parameters that are modelled; by default those that all complete trials share.
    constrained:
        True if constraints are modelled.
    declared:
        Names of constraints that trials should have.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    sentences = _unknown_constraints(complete, declared)
    if not constrained and any(constraints(trial) for trial in trials):
        sentences.append(
            "A trial that violates a constraint is avoided as infeasible: by how much it violates "
            "it, and its value, are not modelled."
        )
    if space is None:
        space = shared_space(complete)
    if space and (bare := [t.number for t in complete if not t.distributions]):
        sentences.append(f"Trials without parameters are not modelled: {_listed(bare)}.")
    if names := {name for trial in complete for name in trial.distributions} - space.keys():
        sentences.append(
            f"Not all trials have {', '.join(sorted(names))} in the same range: what not all share "
            "is drawn at random, or by the independent sampler, and not modelled."
        )
    if any(trial.state == TrialState.PRUNED for trial in trials):
        sentences.append(
            "Intermediate values of pruned trials are not used: a pruned trial counts as a result "
            "that is not a number, and its point is queried once more."
        )
    return tuple(sentences)


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
