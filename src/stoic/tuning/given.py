"""Settings that a search begins with, and results of them that are known."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from stoic.data import IS_NAN, numbers
from stoic.integrations.optuna.encoding import check_fixed
from stoic.integrations.optuna.internals import fixed_attrs
from stoic.integrations.optuna.unmodelled import FAILURE
from stoic.refusal import RefusalError
from stoic.tuning.space import Space

_GIVEN = "stoic:given"  # user attribute: which of the given settings a trial is


def given_trials(
    space: Space,
    x0: Sequence[Mapping[str, Any]] | None,
    y0: Sequence[float] | None,
    fixed: Mapping[str, Any],
) -> list[FrozenTrial]:
    """Make trials of settings that are given: finished ones of those with a result."""
    x0 = () if x0 is None else x0
    settings = list(x0) if isinstance(x0, Iterable) and not isinstance(x0, Mapping) else [x0]
    results = np.full(len(settings), np.nan) if y0 is None else numbers(y0, "y0").ravel()
    if len(results) != len(settings):
        raise RefusalError(
            f"y0 has a result for each setting in x0: got {len(results)} for {len(settings)}."
        )
    trials: list[FrozenTrial] = []
    same: Counter[str] = Counter()
    for setting, result in zip(settings, results.tolist(), strict=True):
        if not isinstance(setting, Mapping) or not space.keys() <= setting.keys():
            needed = ", ".join(space)
            raise RefusalError(
                f"A setting in x0 is a dict with a value for each of {needed}, got {setting!r}."
            )
        check_fixed(setting, space, "the space has")
        params = stored(setting, space)
        if y0 is None and any(params[name] != value for name, value in fixed.items()):
            raise RefusalError(f"A setting in x0 has another value than is fixed: {setting!r}.")
        # By what it is, and how many such there are: the same call has the same
        text = repr((sorted(params.items()), result))
        mark = {_GIVEN: hashlib.sha256(f"{same[text]} {text}".encode()).hexdigest()[:16]}
        same[text] += 1
        if y0 is None:
            given, state = fixed_attrs(params), TrialState.WAITING
            trials.append(create_trial(state=state, system_attrs=given, user_attrs=mark))
            continue
        failed = math.isnan(result)
        trials.append(
            create_trial(
                state=TrialState.FAIL if failed else TrialState.COMPLETE,
                value=None if failed else result,
                params=params,
                distributions=space,
                user_attrs=mark | ({FAILURE: IS_NAN} if failed else {}),
            )
        )
    return trials


def stored(setting: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Return values as a storage does: 3 is 3.0 where a parameter is a float."""
    ranges = {name: space[name] for name in setting}
    return {n: d.to_external_repr(d.to_internal_repr(setting[n])) for n, d in ranges.items()}


def add_missing(study: optuna.Study, given: Sequence[FrozenTrial]) -> None:
    """Add those that a study lacks: of a campaign that was killed in between some are there."""
    there = {trial.user_attrs.get(_GIVEN) for trial in study.get_trials(deepcopy=False)}
    study.add_trials(trial for trial in given if trial.user_attrs[_GIVEN] not in there)
