"""Estimate of the best of a study and of the trust in its trials, in the user's units."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from stoic.confidence.base import Band
from stoic.data import DISTRUSTED, Array
from stoic.defences.plateau import Plateau
from stoic.integrations.optuna.certified import Certified, certified, sturdiest
from stoic.integrations.optuna.confirming import Standing, confirms, reliable
from stoic.integrations.optuna.diagnostics import PartialRow, Row, judged, run_of, scaled
from stoic.integrations.optuna.earlier import trust_in_sources
from stoic.integrations.optuna.effects import total_effects
from stoic.integrations.optuna.encoding import check_fixed, searched
from stoic.integrations.optuna.executed import run_with
from stoic.integrations.optuna.explanation import Explanation, Settings
from stoic.integrations.optuna.front import explain_front
from stoic.integrations.optuna.objective import WIDTH, RobustObjective, stored_aim
from stoic.integrations.optuna.objectives import needs_one
from stoic.integrations.optuna.partial import has_value
from stoic.integrations.optuna.possible import PossibleValues, stored_possible
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.undecided import flat, steep, undecided
from stoic.integrations.optuna.unmodelled import (
    Parameters,
    all_unusable,
    declared_constraints,
    extreme,
    modelled_space,
    unmodelled,
    violates,
)
from stoic.integrations.recipe import Recipe, load, recipe_to_look_with
from stoic.posteriors.base import FittedDefence
from stoic.printable import printable
from stoic.refusal import RefusalError
from stoic.threads import one_thread

log = logging.getLogger(__name__)


@one_thread()
def explain(
    study: Study,
    *,
    recipe: Recipe | str | None = None,
    aim: RobustObjective | None = None,
    fixed: Mapping[str, Any] | None = None,
    trials: Sequence[FrozenTrial] | None = None,
    possible: Sequence[float] | None = None,
) -> Explanation:
    """Estimate the best of a study, and the trust in each trial.

    Uses the parameters that complete trials have, each always in the same range. Where there are
    none, or no complete trial at a point of the recipe's grid, nothing can be learned from one
    trial about another: then nothing is judged, each trust is nan, and nothing is recommended.

    Parameters
    ----------
    study:
        With one objective, or with two or three: then a front is recommended.
    recipe:
        A recipe or its text; its model is used. By default the one that is recorded with the study
        by its name, else :func:`~stoic.recipes.robust`. A file that a storage names is not run: the
        log says so.
    aim:
        The objective where inputs move; by default the one that is recorded with the study.
    fixed:
        Name of a parameter -> its value this time: only settings with it are compared. The model
        learns from all trials. A trial has the value if it was run with it; with an aim, if it was
        suggested with it.
    trials:
        All trials of the study at the time in question; by default now.
    possible:
        Lowest and highest possible value: a value outside is no observation. By default the range
        that is recorded with the study.

    Raises
    ------
    ValueError
        For a study with more than three objectives, or with several and another recipe, an aim or a
        range of possible values; or an aim that does not fit its parameters, or a value
        that is ``fixed`` of a parameter that no complete trial has, that cannot have it, or that
        does not have it anywhere on the recipe's grid.
    """
    if not isinstance(study, Study):
        raise RefusalError(
            f"explain needs an Optuna study, got {study!r}: optuna.load_study(study_name=..., "
            "storage=...) loads one."
        )
    aim = aim or stored_aim(study)
    if recipe is None:
        recipe, instead = recipe_to_look_with(study)
        if instead is not None:
            log.warning(printable(instead))
    else:
        recipe = load(recipe)
    trials = study.get_trials(deepcopy=False) if trials is None else trials
    if len(study.directions) > 1:
        needs_one(study, possible=PossibleValues.of(possible))
        return explain_front(study, recipe, aim, dict(fixed or {}), trials)
    complete = [t for t in trials if has_value(t)]
    sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
    ranges = modelled_space(trials, shared=aim is not None)
    space = searched(ranges)
    fixed = dict(fixed or {})
    values = PossibleValues.of(possible) or stored_possible(study)
    outside = {t.number: _value(t) for t in complete if values and values.excludes(_value(t))}
    if complete:
        check_fixed(fixed, ranges, "complete trials have in the same range")
    given = {name: value for name, value in fixed.items() if name in space}
    declared = declared_constraints(study)
    feasible = [t for t in complete if not violates(t) and t.number not in outside]
    finite = [t for t in feasible if np.isfinite(_value(t))]
    unused = all_unusable(trials) + extreme([_value(t) for t in finite])
    aside: dict[str, Any] = {
        "fixed": fixed,
        "infeasible": tuple(t.number for t in complete if violates(t)),
        "conditional": Parameters.of(complete).conditional(space),
        "unmodelled": unmodelled(trials, ranges, False, declared) + unused,
        "possible": values,
        "impossible": outside,
    }
    if not complete or not space:
        best = max(finite, key=lambda t: sign * _value(t), default=None)
        return replace(_without_model(feasible, best), **aside)

    synced = SyncedLearner(study, space, recipe, aim, possible=values)
    synced.follow(trials)
    takes, partial = synced.constrained, synced.takes_partial
    aside["unmodelled"] = unmodelled(trials, ranges, takes, declared, partial) + unused
    # What violates a constraint is modelled, too, with a model of it.
    modelled = [t for t in complete if t.number not in outside] if takes else feasible

    def has_given(trial: FrozenTrial) -> bool:
        params = run_with(trial) if aim is None else trial.params
        return synced.encoding.agrees(params, given)

    best = max(filter(has_given, finite), key=lambda t: sign * _value(t), default=None)
    learner, number = synced.single, {n: i for i, n in enumerate(synced.observed)}
    # With an aim a setting is what was suggested: what happens when it is moved is judged
    place = synced.run if aim is None else synced.queried
    places = {t.number: x for t in modelled if t.number in number if (x := place(t)) is not None}
    at = [t for t in modelled if t.number in places]
    if not at:
        unlearned = _without_model(feasible, best)
        return replace(unlearned, left_out=synced.left_out, **aside)
    # posterior is at fitted hyperparameters, estimate may have them integrated out
    posterior, estimate, trust = learner.posterior, learner.estimate, learner.trust
    aside["sources"] = trust_in_sources(synced.sources, synced.encoding, posterior)
    settings = np.array([places[t.number] for t in at])
    # A setting that has no result but outliers is not recommended, whatever the mean is there:
    # where there is next to no noise, it follows even results of hardly any trust.
    trusted = np.array([trust[number[t.number]] for t in at])
    inside = np.array([has_given(t) for t in at])
    permitted, feasibility = synced.permitted(at, settings), synced.feasibility()
    # Trusted ones, else those of some trust, else any that has a result. But where values are
    # given, the model answers instead of a setting without any trust.
    result = np.isfinite([_value(t) for t in at])
    levels = [trusted >= DISTRUSTED, trusted > 0.0, result][: 2 if given else 3]
    tried = np.empty((0, learner.domain.dim))
    for level in levels:
        if len(tried := np.unique(settings[level & inside & permitted], axis=0)):
            break
    tried = reliable(synced, trials, tried) if aim is None else tried
    part = synced.points.having(given) if given else None
    if aim is not None and len(tried):
        # The setting with the best lower bound sets the threshold; certificates are compared below.
        surest = int(np.argmax(Band(estimate, WIDTH).bounds(tried)[0]))
        recommendation = learner.recommend(settings=tried[[surest]], among=part)
    else:
        recommendation = learner.recommend(settings=tried, among=part)
    x, standing = recommendation.x, None
    if aim is None and not fixed and any(confirms(t) and t.state.is_finished() for t in trials):
        standing = Standing.of(study, synced, trials, tried, x)
    found = synced.encoding.decode(x, given)
    if lacking := given.keys() - found.keys():
        raise RefusalError(
            f"No such trial is trusted, and the best such setting has no {', '.join(lacking)}: "
            "give values also of the parameters that decide whether it is there."
        )
    if not synced.encoding.agrees(found, given):
        raise RefusalError(
            f"No point of the recipe's grid has {_words(given)}: the nearest has "
            f"{_words({name: found[name] for name in given})}."
        )
    seen = synced.modelled
    expected, sd, judgement = judged(learner, posterior, seen)
    falling = steep(seen.x / learner.domain.widths, seen.observed, expected, trust)
    has_scale = scaled(learner)
    noise_sd = np.sqrt(seen.own_noise(posterior.prior.noise))
    plateau = _plateau(posterior.fitted_defence, len(learner))
    aside["partial"] = _partial_rows(synced, trials, trust)
    aside["distrusted_constraints"] = synced.distrusted_constraints()
    rows = tuple(
        Row(
            t.number,
            _value(t),
            sign * float(expected[i]),
            float(sd[i]),
            judgement[i],
            float(noise_sd[i]),
            None if plateau is None else sign * float(plateau[0][i]),
            None if plateau is None else float(plateau[1][i]),
            params=t.params,
            **run_of(t),
        )
        for t in modelled
        if (i := number.get(t.number)) is not None
    )
    if aim is not None and len(tried):
        threshold = recommendation.notes.get("threshold")
        assert threshold is None or isinstance(threshold, float)
        x = tried[sturdiest(learner, synced.encoding, aim, tried, threshold)]

    def predict(settings: Settings) -> tuple[Array, Array]:
        settings = [settings] if isinstance(settings, Mapping) else settings
        x = np.array([synced.encoding.encode(s) for s in settings])
        mean, std = estimate.predict(synced.points.nearest(x) if learner.domain.finite else x)
        return sign * mean, std if has_scale else np.full_like(std, np.inf)

    def importances() -> dict[str, float]:
        nearest = synced.points.nearest if learner.domain.finite else np.asarray
        return total_effects(synced.encoding, lambda x: estimate.predict(nearest(x))[0])

    aside["importances"] = importances
    if not permitted.any() or not (len(tried) or given):
        unlearned = replace(_without_model(feasible, best), rows=rows, predict=predict)
        return replace(unlearned, left_out=synced.left_out, **aside)
    chosen = None
    if len(tried):
        here = int(np.argmin(np.abs(settings - x).max(axis=1)))
        x = settings[here]
        # Of several trials at this very point, the most trusted feasible one represents it.
        same = [at[i] for i in np.flatnonzero(permitted & (settings == x).all(axis=1))]
        chosen = max(same, key=lambda t: (trust[number[t.number]], sign * _value(t)))
    mean, std = estimate.predict(x[None])
    if not has_scale:
        reported = learner.observations.noise[[number[t.number] for t in at]]
        here = reported[np.all(settings == x, axis=1) & ~np.isnan(reported)]
        std = np.array([math.sqrt(here.min(initial=np.inf))])
    optimum = synced.encoding.decode(recommendation.model_x) | given
    sure = np.isfinite(seen.observed) & (trust >= DISTRUSTED)
    few = flat(estimate.predict, seen.x[sure], seen.observed[sure]) if has_scale else None
    doubts = None
    if (settings != settings[0]).any():  # of one setting there is nothing to decide
        doubts = undecided(rows, sign * float(mean[0]), sign) or few
    explanation = Explanation(
        best,
        chosen,
        sign * float(mean[0]) + 0.0,  # no -0
        float(std[0]),
        optimum,
        float(predict(optimum)[0][0]),  # by the model of all other numbers here
        rows,
        predict,
        left_out=synced.left_out,
        untried=None if len(tried) else found | given,
        undecided=doubts,
        repeats=int((np.all(settings == x, axis=1) & (trusted >= DISTRUSTED)).sum())
        if len(tried)
        else 0,
        steep=tuple(row.number for row in rows if falling[number[row.number]]),
        confirmation=None if standing is None else standing.outcome(),
        feasible=None if feasibility is None else float(feasibility(x[None])[0]),
        **aside,
    )
    if aim is None or not has_scale:
        return explanation
    return _with_certificates(explanation, synced, aim, recommendation.notes, part)


def _partial_rows(
    synced: SyncedLearner, trials: Sequence[FrozenTrial], trust: Array
) -> tuple[PartialRow, ...]:
    """Rows of the trials without a final value, in the order of trials."""
    if synced.unfinished is None:
        return ()
    state = {trial.number: trial.state.name.lower() for trial in trials}
    known, number = synced.unfinished.partial, {n: i for i, n in enumerate(synced.observed)}
    return tuple(
        PartialRow(
            n,
            state[n],
            synced.sign * found.value,
            None if found.noise is None else math.sqrt(found.noise),
            found.source,
            found.censored,
            float(trust[number[n]]),
        )
        for n, found in sorted(known.items())
        if n in number
    )


def _without_model(complete: Sequence[FrozenTrial], best: FrozenTrial | None) -> Explanation:
    """Explain without a model: no value is judged, and the only setting, if any, recommended."""
    rows = tuple(
        Row(t.number, _value(t), _value(t), math.inf, math.nan, params=t.params, **run_of(t))
        for t in complete
    )
    if best is None or not best.params or any(t.params != best.params for t in complete):
        return Explanation(best, None, math.nan, math.inf, {}, math.nan, rows)
    value = _value(best)
    return Explanation(best, best, value, math.inf, dict(best.params), value, rows)


def _with_certificates(
    explanation: Explanation,
    synced: SyncedLearner,
    aim: RobustObjective,
    notes: Mapping[str, object],
    part: object,
) -> Explanation:
    """Add the certificates of the recommended setting and of the observed best.

    A threshold is out of reach if it is in the ``part`` of the domain that is compared.
    """
    learner, encoding, sign = synced.single, synced.encoding, synced.sign
    threshold, reached = notes.get("threshold"), None
    assert threshold is None or isinstance(threshold, float)
    if threshold is not None:
        learner.rng = np.random.default_rng(0)  # fixed: the same trials give the same answer
        choice = learner.ask(among=part, pending=())
        if not choice.notes["reachable"]:
            reached = synced.best_possible(choice.x)

    def of(trial: FrozenTrial | None, params: dict[str, Any] | None = None) -> Certified | None:
        params = params if trial is None else trial.params
        if params is None or not encoding.contains(params):
            return None
        return certified(learner, encoding, aim, sign, params, threshold, reached)

    best = explanation.observed_best
    doubted = best is not None and explanation.trust_of(best.number) < DISTRUSTED
    return replace(
        explanation,
        certified=of(explanation.recommended, explanation.untried),
        certified_observed=None if doubted else of(best),
    )


def _words(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _plateau(defence: FittedDefence, rows: int) -> tuple[Array, Array] | None:
    """Centre and half-width for each observation, both (n,), if the defence has a plateau."""
    plateau = getattr(defence, "plateau", None)
    if not isinstance(plateau, Plateau):
        return None
    return np.broadcast_to(plateau.centre, rows), np.broadcast_to(plateau.half_width, rows)


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None  # all callers pass complete trials
    return trial.value
