"""Explanation of a study with several objectives: a recommended front, and trust in each value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.data import DISTRUSTED, Array, Booleans, Integers
from stoic.integrations.optuna.diagnostics import Row, judged, run_of, scaled
from stoic.integrations.optuna.effects import total_effects
from stoic.integrations.optuna.encoding import Encoding, check_fixed, given_points, met, searched
from stoic.integrations.optuna.executed import run_with
from stoic.integrations.optuna.explanation import Explanation, FrontPoint, Settings
from stoic.integrations.optuna.objective import RobustObjective
from stoic.integrations.optuna.objectives import (
    check_objectives,
    objective_names,
    signs,
    values_of,
)
from stoic.integrations.optuna.permitted import permitted
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.undecided import plain, undecided
from stoic.integrations.optuna.unmodelled import (
    Parameters,
    all_unusable,
    declared_constraints,
    failure_kind,
    modelled_space,
    unmodelled,
    violates,
    violating,
)
from stoic.integrations.recipe import Recipe
from stoic.models.constraints import Constraints
from stoic.objectives import MultiLearner
from stoic.pareto import non_dominated
from stoic.policies.hypervolume import best_trust
from stoic.refusal import RefusalError


def explain_front(
    study: Study,
    recipe: Recipe,
    aim: RobustObjective | None,
    fixed: Mapping[str, Any],
    trials: Sequence[FrozenTrial],
) -> Explanation:
    """Estimate the front of a study with several objectives, and the trust in each value.

    Parameters as of :func:`~stoic.integrations.optuna.explain`.

    Raises
    ------
    RefusalError
        If there are too many objectives, for another recipe than the default or with an aim, or if
        no trial can have the values in ``fixed``.
    """
    check_objectives(study)
    count = len(study.directions)
    values = {t.number: found for t in trials if (found := values_of(t, count)) is not None}
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.number in values]
    some = [t for t in trials if t.number in values and t.state.is_finished()]
    ranges = modelled_space(trials, objectives=count)
    space = searched(ranges)
    if some:
        check_fixed(fixed, ranges, "complete trials have in the same range")
    given = {name: value for name, value in fixed.items() if name in space}
    declared = declared_constraints(study)
    empty = Explanation(
        None, None, math.nan, math.inf, {}, math.nan, (),
        fixed=dict(fixed),
        infeasible=tuple(sorted({*violating(trials), *(t.number for t in some if violates(t))})),
        conditional=Parameters.of(some, count).conditional(space),
        unmodelled=unmodelled(
            trials, ranges, True, declared, partial=False, objectives=len(study.directions)
        )
        + all_unusable(trials, count),
        objectives=objective_names(study),
        directions=tuple(direction.name.lower() for direction in study.directions),
    )  # fmt: skip
    feasible = [t for t in complete if not violates(t) and np.isfinite(values[t.number]).all()]
    if given:
        encoding = Encoding({name: space[name] for name in given}, met=met(space, ()))
        feasible = [t for t in feasible if encoding.agrees(run_with(t), given)]
    known = replace(empty, observed_front=_observed_front(feasible, values, signs(study)))
    if not some or not space:  # nothing is learned from one trial about another
        return _without_model(known, some, values)
    synced = SyncedLearner(study, space, recipe, aim)
    synced.follow(trials)
    learner = synced.learner
    assert isinstance(learner, MultiLearner)
    number = {n: i for i, n in enumerate(synced.observed)}
    # A setting that cannot be run is no answer, whatever one of its outputs was.
    at = [t for t in trials if t.number in number and t.number in values]
    at = [t for t in at if failure_kind(t) not in ("infeasible", "bad")]
    if not at:
        return replace(_without_model(known, complete, values), left_out=synced.left_out)
    # Shape (k,): infinite for an output of which no two values differ
    deviating = np.array([1.0 if scaled(output) else math.inf for output in learner.outputs])

    def predict(settings: Settings) -> tuple[Array, Array]:
        mean, std = learner.predict(given_points(synced.encoding, settings, ranges, some))
        return synced.signs * mean, np.where(np.isfinite(deviating), std, np.inf)

    def importances(objective: str | None = None) -> dict[str, float]:
        if objective not in known.objectives:
            raise RefusalError(
                f"The importances are those for one objective, {' or '.join(known.objectives)}: "
                f"give its name, got {objective!r}."
            )
        k = known.objectives.index(objective)
        return total_effects(synced.encoding, lambda x: learner.predict(x)[0][:, k])

    settings = np.array([synced.run(t) for t in at])
    rows_at = np.array([number[t.number] for t in at])
    allowed = permitted(synced, at, settings) & _has(synced, at, given)
    recommended = _recommended(learner, at, rows_at, settings, allowed, synced.feasibility())
    front = tuple(
        FrontPoint(
            trial, synced.signs * mean, np.where(np.isfinite(deviating), std, np.inf), feasible
        )
        for trial, mean, std, feasible in recommended
    )
    rows = _rows(synced, learner, at, values, known.objectives)
    return replace(
        known,
        rows=rows,
        front=front,
        undecided=_undecided(synced, rows, front, known.objectives),
        feasible=min((p.feasible for p in front if p.feasible is not None), default=None),
        predict=predict,
        importances=importances,
        left_out=synced.left_out,
        distrusted_constraints=synced.distrusted_constraints(),
    )


def _undecided(
    synced: SyncedLearner,
    rows: Sequence[Row],
    front: Sequence[FrontPoint],
    names: Sequence[str],
) -> str | None:
    """Reason to doubt the front, in a sentence that names the objective; None if there is none.

    Results that are rejected and worse than all of the front decide nothing.
    """
    learner = synced.learner
    assert isinstance(learner, MultiLearner)
    if not front or not (learner.observations.x != learner.observations.x[0]).any():
        return None  # of one setting there is nothing to decide
    what = "settings of the front and of the observed front"
    for k, (name, output, sign) in enumerate(
        zip(names, learner.outputs, synced.signs, strict=True)
    ):
        if not scaled(output):
            continue
        worst = min(sign * float(point.mean[k]) for point in front)
        own = [row for row in rows if row.objective == name]
        found = undecided(own, sign * worst, sign, what)
        if found is None:
            found = plain(output.domain, output.observations, output.trust, worst)
            found = found and f"{found} Measure those of the observed front again, a few times."
        if found is not None:
            return f"of {name}, {found}"
    return None


def _observed_front(
    trials: Sequence[FrozenTrial], values: Mapping[int, Array], signs: Array
) -> tuple[FrozenTrial, ...]:
    """Trials whose values no other one's dominate."""
    if not trials:
        return ()
    mask = non_dominated(signs * np.array([values[t.number] for t in trials]))
    return tuple(trial for trial, kept in zip(trials, mask, strict=True) if kept)


def _has(synced: SyncedLearner, at: Sequence[FrozenTrial], given: Mapping[str, Any]) -> Booleans:
    return np.array([synced.encoding.agrees(run_with(t), given) for t in at], dtype=bool)


def _recommended(
    learner: MultiLearner,
    at: Sequence[FrozenTrial],
    rows: Integers,
    settings: Array,
    allowed: Booleans,
    constraints: Constraints | None,
) -> list[tuple[FrozenTrial, Array, Array, float | None]]:
    """Trials of the recommended front, means and deviations, (k,) each, and P(feasible).

    Where no setting has a trusted value of each objective, of those that have some trust in each.
    Of these, where all constraints hold with a probability of 0.9 or with the largest.
    """
    trust = best_trust(learner.observations.x, learner.trust)[rows]
    for level in (trust >= DISTRUSTED, trust > 0.0):
        kept = allowed & level.all(axis=1)
        if kept.any():
            break
    else:
        return []
    if constraints is not None:
        kept[kept] = constraints.safest(settings[kept])
    front = learner.front(settings[kept])
    # A trial with all values first, then by the trust of its least trusted one
    own = np.array([t.state == TrialState.COMPLETE for t in at]) + learner.trust[rows].min(axis=1)
    found = []
    for x, mean, std in zip(front.x, front.mean, front.std, strict=True):
        same = np.flatnonzero(kept & (settings == x).all(axis=1))
        best = same[np.argmax(own[same])]  # of several trials there the most trusted one
        likely = None if constraints is None else float(constraints(x[None])[0])
        found.append((at[best], mean, std, likely))
    return found


def _without_model(
    known: Explanation, trials: Sequence[FrozenTrial], values: Mapping[int, Array]
) -> Explanation:
    """Explain without a model: no value is judged, and no front recommended."""
    rows = tuple(
        Row(t.number, float(v), float(v), math.inf, math.nan, params=t.params, objective=name)
        for t in trials
        for name, v in zip(known.objectives, values[t.number], strict=True)
        if not math.isnan(v)
    )
    return replace(known, rows=rows)


def _rows(
    synced: SyncedLearner,
    learner: MultiLearner,
    at: Sequence[FrozenTrial],
    values: Mapping[int, Array],
    names: Sequence[str],
) -> tuple[Row, ...]:
    """Diagnostics of each value of each trial that the model observed."""
    number = {n: i for i, n in enumerate(synced.observed)}
    found: list[Row] = []
    of_outputs = []
    for output in learner.outputs:
        posterior, observations = output.posterior, output.observations
        noise = np.sqrt(observations.own_noise(posterior.prior.noise))
        of_outputs.append((*judged(output, posterior, observations), noise))
    for trial in at:
        i = number[trial.number]
        for k, (expected, sd, trust, noise) in enumerate(of_outputs):
            value = float(values[trial.number][k])
            if math.isnan(value):
                continue
            found.append(
                Row(
                    trial.number,
                    value,
                    float(synced.signs[k] * expected[i]),
                    float(sd[i]),
                    trust[i],
                    float(noise[i]),
                    params=trial.params,
                    objective=names[k],
                    **run_of(trial),
                )
            )
    return tuple(found)
