"""Trials that may be recommended by their constraints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from optuna.trial import FrozenTrial

from stoic.data import DISTRUSTED, Array, Booleans
from stoic.integrations.optuna.internals import constraints
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.unmodelled import violates
from stoic.integrations.tables import among_their_kind
from stoic.models.constraints import SURE, ConstraintHistory, Constraints
from stoic.models.feasibility import Feasibility
from stoic.recipes import robust


def permitted(synced: SyncedLearner, trials: Sequence[FrozenTrial], settings: Array) -> Booleans:
    """Mask of trials, run at ``settings`` (n, d), that may be recommended by their constraints.

    They satisfy them, unless a value that does is distrusted and they rather do not; or hold
    them likely all the same, where a violation may be noise or an outlier. It is no noise where
    all satisfied values are one number, as of max(violation, 0).
    """
    values = [constraints(trial) for trial in trials]
    satisfied = np.array([not violates(trial) for trial in trials], dtype=bool)
    if (feasibility := synced.feasibility()) is None:
        return satisfied
    distrusted = synced.distrusted_constraints()
    exact = set()
    for name in {name for each in values for name in each}:
        kept = [v for each in values if (v := each.get(name, math.nan)) <= 0.0]
        if len(set(kept)) == 1 and (kept[0] == 0.0 or len(kept) > 1):
            exact.add(name)

    def excused(trial: FrozenTrial, name: str, value: float) -> bool:
        if math.isnan(value):
            return False
        certain = value > 0.0 and name in exact
        return not certain or trial.number in distrusted.get(name, ())

    known = [
        all(excused(trial, name, value) for name, value in each.items())
        for trial, each in zip(trials, values, strict=True)
    ]
    wrong = set().union(*distrusted.values())
    doubted = np.array([trial.number in wrong for trial in trials], dtype=bool)
    likely = feasibility(settings)
    satisfied &= ~(doubted & (likely < 0.5))
    return np.asarray(satisfied | (np.array(known) & (likely >= SURE)))


def limits_of(synced: SyncedLearner, trials: Sequence[FrozenTrial]) -> Constraints | None:
    """Model the constraints of a study by their values alone.

    Violations that are no numbers, or that the models distrust side by side, are classified, too.
    """
    box = synced.encoding.box
    outputs = ConstraintHistory(box, robust()(box).model)
    rows: dict[str, list[int]] = {}  # rows of the values of each
    at: list[Array] = []
    broken: list[bool] = []
    for trial in trials:
        values = constraints(trial) if trial.state.is_finished() else {}
        if values and (x := synced.run(trial)) is not None:
            outputs.tell(x[None], {name: np.array([value]) for name, value in values.items()})
            for name in values:
                rows.setdefault(name, []).append(len(at))
            at.append(x)
            broken.append(violates(trial))
    found, violated = outputs(), np.array(broken, dtype=bool)
    if found is None or not violated.any() or violated.all():
        return found
    points, doubted, numbers = np.array(at), np.zeros(len(at), dtype=bool), True
    for name, trust in outputs.trust().items():
        doubted[rows[name]] |= violated[rows[name]] & ~(trust >= DISTRUSTED)
        numbers &= not np.isnan(trust[violated[rows[name]]]).any()
    if numbers and among_their_kind(points / box.widths, doubted, ~doubted).sum() < 2:
        return found
    region = Feasibility.learned(box, points[~violated], points[violated])
    return replace(found, classifiers=(*found.classifiers, region))
