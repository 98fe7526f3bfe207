"""Private names of Optuna, each behind one function; no other module uses any.

All of them are in Optuna 4.5 and in 5.0. Keys of system attributes are among them: Optuna stores
things under these, and what is stored stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, PartialFixedSampler
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from stoic.integrations.reported import as_number
from stoic.refusal import RefusalError

_FIXED = "fixed_params"  # system attribute of a trial: what ``enqueue_trial`` was given, since 1.2
_CONSTRAINTS = "constraints"  # system attribute of a trial: a list, since 2.5
_NUMBERS = (float, int, Real)  # the usual ones first: an abstract class is slow to ask
_NAMED = f"{_CONSTRAINTS}:"  # and before a name, since 5.0


def storage_of(study: Study) -> BaseStorage:
    """Storage of a study; ``Study._storage``, since 0.15.

    Attributes of a trial that is known by its number alone, and its state, are set there.
    """
    return study._storage


def whole_study(study: Study) -> Study:
    """Return the study behind a bracket of ``HyperbandPruner``, in which samplers are called.

    ``_BracketStudy._study``, since 1.4. A bracket has a part of the trials and no attributes.
    """
    behind = getattr(study, "_study", study)
    return behind if isinstance(behind, Study) else study


def study_id(study: Study) -> int:
    """Return the number of a study in its storage; ``Study._study_id``, since 1.0."""
    return study._study_id


def trial_id(trial: Trial | FrozenTrial) -> int:
    """Return the number of a trial in its storage, across studies; ``_trial_id``, since 0.9."""
    return trial._trial_id


def begin_trial(
    study: Study, system_attrs: Mapping[str, Any], user_attrs: Mapping[str, Any] | None = None
) -> Trial:
    """Begin a trial, as ``Study.ask`` does, in one transaction with its attributes.

    ``Study._thread_local.cached_all_trials``, since 3.2, is the samplers' cache of other trials:
    ``Study.ask`` clears it, too.
    """
    study._thread_local.cached_all_trials = None
    template = create_trial(
        state=TrialState.RUNNING,
        system_attrs=dict(system_attrs),
        user_attrs=dict(user_attrs or {}),
    )
    return Trial(study, storage_of(study).create_new_trial(study_id(study), template))


def fixed_attrs(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """System attributes that give a trial these parameters, as ``enqueue_trial`` does."""
    return {_FIXED: dict(fixed)} if fixed else {}


def fixed_params(trial: Trial | FrozenTrial) -> dict[str, Any]:
    """Parameters that a trial was given by ``enqueue_trial`` or :func:`fixed_attrs`.

    ``Trial._cached_frozen_trial``, since 3.0, has what :func:`fix` gave it.
    """
    queued = queued_params(trial._cached_frozen_trial if isinstance(trial, Trial) else trial)
    return dict(queued) if isinstance(queued, dict) else {}


def queued_params(trial: FrozenTrial) -> object:
    """Return what a storage has for such parameters: a dict, but for another writer's values."""
    return trial.system_attrs.get(_FIXED, {})


def leaves_out(trial: Trial, name: str) -> bool:
    """Return True if a trial is not given a parameter that its sampler models.

    Then none of its branches has it. Not asked of the sampler where all is given.
    """
    if name in fixed_params(trial):
        return False
    chosen = trial.relative_params  # first: it finds the space, too
    return name in (trial.relative_search_space or ()) and name not in chosen


def fix(study: Study, trial: FrozenTrial, params: Mapping[str, Any]) -> None:
    """Give a trial, in ``before_trial`` of a sampler, these parameters."""
    storage_of(study).set_trial_system_attr(trial_id(trial), _FIXED, dict(params))
    # Optuna's Trial takes them from this object, as soon as before_trial has returned
    trial.system_attrs = {**trial.system_attrs, _FIXED: dict(params)}


def unfix(study: Study, trial: Trial) -> None:
    """Let the sampler choose all parameters of a trial."""
    storage_of(study).set_trial_system_attr(trial_id(trial), _FIXED, {})


def fixed_by(sampler: BaseSampler) -> dict[str, Any]:
    """Parameters that a ``PartialFixedSampler``, or several of them around one another, fixes.

    ``PartialFixedSampler._fixed_params`` and ``._base_sampler``, since 2.4.
    """
    fixed: dict[str, Any] = {}
    while isinstance(sampler, PartialFixedSampler):
        fixed = {**sampler._fixed_params, **fixed}
        sampler = sampler._base_sampler
    return fixed


def possible(distribution: BaseDistribution, value: Any) -> bool:
    """Return True if a parameter can be this value; ``BaseDistribution._contains``, since 0.11."""
    if not isinstance(value, _NUMBERS) and not isinstance(distribution, CategoricalDistribution):
        return False  # float() reads a text, too
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (ValueError, TypeError, OverflowError):  # not one of the choices, or not a number
        return False


def same_range(one: BaseDistribution, other: BaseDistribution) -> bool:
    """Return True if two distributions are equal; of thousands of choices sooner than by ``==``."""
    if one is other:
        return True
    if isinstance(one, CategoricalDistribution) and isinstance(other, CategoricalDistribution):
        # The same tuple, as copies have it; an equal one; equal but for a nan
        same = one.choices is other.choices or one.choices == other.choices
        return same or one == other
    return one == other


@contextlib.contextmanager
def stoppable(study: Study) -> Iterator[None]:
    """Allow ``Study.stop()`` within, as in a callback of ``Study.optimize``.

    ``Study._thread_local.in_optimize_loop``, since 3.1.
    """
    study._thread_local.in_optimize_loop = True
    try:
        yield
    finally:
        study._thread_local.in_optimize_loop = False


def is_stopped(study: Study) -> bool:
    """Return True if ``Study.stop()`` was called; ``Study._stop_flag``, since 1.5."""
    return study._stop_flag


def constraints(trial: FrozenTrial) -> dict[str, float]:
    """Name of each constraint of a trial -> its value, which satisfies it up to 0.

    Samplers store a list for their ``constraints_func``; ``Trial.set_constraint``, since 5.0,
    stores each under a name of its own. Both are read here by any version, the first, second, ...
    of a list by the names 0, 1, ... What is stored and no number, such as the None of a
    ``constraints_func`` that raised, is nan.
    """
    found: dict[str, object] = {}
    for key, stored in trial.system_attrs.items():
        if key == _CONSTRAINTS:
            values = stored if isinstance(stored, list | tuple) else [stored]
            found |= {str(k): value for k, value in enumerate(values)}
        elif key.startswith(_NAMED):
            found[key.removeprefix(_NAMED)] = stored
    return {name: as_number(value) for name, value in found.items()}


def store_constraints(
    study: Study, trial: Trial | FrozenTrial, values: Mapping[str, float]
) -> None:
    """Store the values of a trial's constraints, so that all samplers of this version read them."""
    storage, key = storage_of(study), trial_id(trial)
    for name, value in constraint_attrs(values).items():
        storage.set_trial_system_attr(key, name, value)


def constraint_attrs(values: Mapping[str, float]) -> dict[str, Any]:
    """System attributes of a trial with these constraints; before 5.0 a list without names."""
    if not hasattr(Trial, "set_constraint"):
        return {_CONSTRAINTS: list(values.values())}
    return {f"{_NAMED}{name}": value for name, value in values.items()}


def record_constraints(
    study: Study,
    trial: FrozenTrial,
    state: TrialState,
    constraints_func: Callable[[FrozenTrial], Sequence[float]],
) -> None:
    """Compute a trial's constraints and store them, before it ends in this state.

    As all samplers of Optuna do, of trials that are complete or pruned; after an error None is
    stored. But nan is stored, too, where they stop the study.
    """
    if state not in (TrialState.COMPLETE, TrialState.PRUNED):
        return
    values = None
    try:
        found = constraints_func(trial)
        try:
            values = [float(value) for value in found]
        except (TypeError, ValueError, OverflowError) as error:
            raise RefusalError(
                "constraints_func must return a list of numbers, each at most 0 where a constraint "
                f"is satisfied; got {found!r}."
            ) from error
    finally:
        storage_of(study).set_trial_system_attr(trial_id(trial), _CONSTRAINTS, values)
