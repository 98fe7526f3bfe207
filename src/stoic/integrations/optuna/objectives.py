"""Objectives of a study: their names, the values of trials, and what needs a single one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.data import Array
from stoic.integrations.reported import as_number, finite
from stoic.objectives import MOST
from stoic.refusal import RefusalError

# User attribute of a failed trial: its value of each objective, None where there is none. Optuna
# stores values of complete trials alone.
VALUES = "stoic:values"
# User attribute of a trial: the value is at least as bad as this number; or True, and it is at
# least as bad as the trial's own value. With several objectives such a trial has no values.
CENSORED = "stoic:censored"
NOISE = "stoic:noise"  # user attribute: noise variance of a trial's value, or a list of them


def trials_of(study: Study, trials: Iterable[FrozenTrial] | None) -> Sequence[FrozenTrial]:
    """Return the trials that a caller gives, or by default those that the study has now."""
    if trials is None:
        return study.get_trials(deepcopy=False)
    given = list(trials) if isinstance(trials, Iterable) else [trials]
    if wrong := [trial for trial in given if not isinstance(trial, FrozenTrial)]:
        raise RefusalError(
            "trials are trials of the study, as study.trials or a part of it, got "
            f"{wrong[0]!r:.80}."
        )
    return given


def check_single_objective(study: Study) -> None:
    """Refuse a study with several objectives, where only one has a meaning."""
    if len(study.directions) != 1:
        raise RefusalError(
            f"The study {study.study_name!r} has {len(study.directions)} objectives: a study with "
            "one objective is needed."
        )


def check_objectives(study: Study) -> None:
    """Refuse a study with more objectives than can be modelled together."""
    if len(study.directions) > MOST:
        raise RefusalError(
            f"The study {study.study_name!r} has {len(study.directions)} objectives, and at most "
            f"{MOST} can be optimized together: make constraints of the others."
        )


def needs_one(study: Study, **given: object) -> None:
    """Refuse what is ``given``, name -> it or None, in a study with several objectives."""
    names = [name for name, it in given.items() if it]
    if len(study.directions) > 1 and names:
        raise RefusalError(
            f"The study {study.study_name!r} has {len(study.directions)} objectives, and "
            f"{names[0]} needs a study with one: leave it out."
        )


def objective_names(study: Study) -> tuple[str, ...]:
    """Names of the objectives: its metric names, else numbers; none of a study with one."""
    count = len(study.directions)
    if count == 1:
        return ()
    names = study.metric_names
    if names is not None and len(names) == count:
        return tuple(map(str, names))
    return tuple(f"objective {k}" for k in range(count))


def signs(study: Study) -> Array:
    """1 for each objective to maximise and -1 for each to minimise, shape (k,)."""
    return np.array([-1.0 if d == StudyDirection.MINIMIZE else 1.0 for d in study.directions])


def states_bound(trial: FrozenTrial) -> bool:
    """Return True if a trial states that its value, or a number, is a bound."""
    said = trial.user_attrs.get(CENSORED)
    return said is True or finite(said) is not None


def values_of(trial: FrozenTrial, count: int) -> Array | None:
    """Return the value of each of ``count`` objectives, nan where there is none; None without any.

    Those of a failed trial are in its attribute. Another number of values is no result, and with
    several objectives a bound is none.
    """
    if count > 1 and states_bound(trial):
        return None
    if trial.state == TrialState.COMPLETE:
        values: Sequence[object] = trial.values or ()
    else:
        stored = trial.user_attrs.get(VALUES) if count > 1 else None
        values = stored if isinstance(stored, list) else ()
    if len(values) != count:
        return None
    numbers = [np.nan if isinstance(value, bool) else as_number(value) for value in values]
    return None if np.isnan(numbers).all() else np.array(numbers)


def measured(trial: FrozenTrial, count: int) -> bool:
    """Return True if a trial is complete, or failed with a value of one of ``count`` objectives."""
    if trial.state == TrialState.FAIL:
        return count > 1 and values_of(trial, count) is not None
    return trial.state == TrialState.COMPLETE


def noises_of(trial: FrozenTrial, count: int) -> Array | None:
    """Return the noise variance of each of ``count`` values, nan where there is none reported."""
    stored = trial.user_attrs.get(NOISE)
    if not (isinstance(stored, list) and len(stored) == count):
        return None
    noises = [finite(noise) for noise in stored]
    return np.array([noise if noise is not None and noise > 0.0 else np.nan for noise in noises])
