"""Estimate of the best of a study and of the trust in its trials, in the user's units."""

from __future__ import annotations

import logging
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.confidence.base import Band
from stoic.data import DISTRUSTED, Array, Booleans, Integers, Recommendation
from stoic.domains import SAME, Box
from stoic.integrations.optuna.certified import Certified, certified, sturdiest
from stoic.integrations.optuna.confirming import Places, Standing, confirms, reliable
from stoic.integrations.optuna.diagnostics import (
    PartialRow,
    Row,
    judged,
    plateau_of,
    run_of,
    scaled,
)
from stoic.integrations.optuna.earlier import trust_in_sources
from stoic.integrations.optuna.effects import total_effects
from stoic.integrations.optuna.encoding import check_fixed, given_points, searched
from stoic.integrations.optuna.executed import run_with
from stoic.integrations.optuna.explanation import Explanation, Settings
from stoic.integrations.optuna.front import explain_front
from stoic.integrations.optuna.objective import WIDTH, RobustObjective, checked_aim, stored_aim
from stoic.integrations.optuna.objectives import needs_one, trials_of
from stoic.integrations.optuna.partial import has_value
from stoic.integrations.optuna.penalties import penalties, too_good
from stoic.integrations.optuna.permitted import limits_of, permitted
from stoic.integrations.optuna.possible import PossibleValues, is_result, stored_possible
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.undecided import (
    alone,
    changed,
    flat,
    plain,
    steep,
    summit,
    undecided,
)
from stoic.integrations.optuna.unmodelled import (
    Parameters,
    all_unusable,
    declared_constraints,
    failure_kind,
    modelled_space,
    unmodelled,
    unusable_records,
    violates,
    violating,
)
from stoic.integrations.recipe import DEFAULT, Recipe, load, name_of, recipe_to_look_with
from stoic.models.constraints import Constraints
from stoic.models.rescaling import UNCHANGED
from stoic.policies.base import apart
from stoic.policies.untried import goes_before, spread_of_results
from stoic.posteriors.base import Posterior
from stoic.posteriors.fitting import extreme
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

    Uses the parameters that complete trials have, always with the same step or choices. Where there
    are none, or no complete trial at a point of the recipe's grid, nothing can be learned from one
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
        Lowest and highest possible value: one outside counts as nan. By default as recorded.

    Raises
    ------
    ValueError
        For a study with more than three objectives, or with several and another recipe, an aim or a
        range of possible values; an aim that does not fit its parameters; a value that is ``fixed``
        of a parameter that no complete trial has, or that does not have it on the recipe's grid.
    """
    if not isinstance(study, Study):
        raise RefusalError(
            f"explain needs an Optuna study, got {reprlib.repr(study)}: "
            "optuna.load_study(study_name=..., storage=...) loads one."
        )
    aim = checked_aim(aim) or stored_aim(study)
    if recipe is None:
        recipe, instead = recipe_to_look_with(study)
        if instead is not None:
            log.warning(printable(instead))
    else:
        recipe = load(recipe)
    trials = trials_of(study, trials)
    if not isinstance(fixed, Mapping | None):
        raise RefusalError(f'fixed has a value for each name, as in {{"lr": 0.1}}, got {fixed!r}.')
    fixed = dict(fixed or {})
    if len(study.directions) > 1:
        needs_one(study, possible=PossibleValues.of(possible))
        return explain_front(study, recipe, aim, fixed, trials)
    values = PossibleValues.of(possible) or stored_possible(study)
    reading = _Reading(study, trials, recipe, aim, fixed, values)
    if not reading.complete or not reading.space:
        return _without_model(reading, reading.best(reading.feasible), reading.aside())
    judge = None if recipe == DEFAULT else name_of(recipe)
    return replace(_with_model(_Compared(reading, recipe)), recipe=judge)


class _Reading:
    """What the trials of a study with one objective say without a model.

    Attributes
    ----------
    ranges, space:
        Ranges of the parameters that are modelled, and of those of them that are searched, by name.
    parameters:
        Those of the complete trials.
    complete, feasible:
        Trials with a value, and those of them that are possible and violate nothing.
    outside:
        Number of a complete trial -> its value, which is not possible.
    sign:
        1 if more is better, else -1.
    """

    def __init__(
        self,
        study: Study,
        trials: Sequence[FrozenTrial],
        recipe: Recipe,
        aim: RobustObjective | None,
        fixed: dict[str, Any],
        values: PossibleValues | None,
    ) -> None:
        self.study, self.trials = study, trials
        self.aim, self.fixed, self.values = aim, fixed, values
        self.complete = [t for t in trials if has_value(t)]
        self.parameters = Parameters.of(self.complete)
        self.ranges = modelled_space(trials, shared=aim is not None)
        if self.complete:
            check_fixed(fixed, self.ranges, "complete trials have in the same range")
        self.space = searched(self.ranges)
        outside = (t for t in self.complete if not is_result(t.value, values))
        self.outside = {t.number: _value(t) for t in outside}
        self.sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
        penal = penalties(trials, recipe, aim, values, self.sign)
        self.penalised = {t.number: _value(t) for t in self.complete if _value(t) in penal}
        left_out = self.outside.keys() | self.penalised.keys()
        self.observed = [t for t in self.complete if t.number not in left_out]
        self.feasible = [t for t in self.observed if not violates(t)]

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Values of the parameters that have a single one, in all complete trials alike."""
        single = {name for name, d in self.ranges.items() if d.single()}
        shared = single - set(self.parameters.conditional(single))
        params = next((t.params for t in self.complete if shared <= t.params.keys()), {})
        return {name: params[name] for name in self.ranges if name in shared & params.keys()}

    @property
    def given(self) -> dict[str, Any]:
        """The fixed values of parameters that are searched."""
        return {name: value for name, value in self.fixed.items() if name in self.space}

    def best(self, trials: Iterable[FrozenTrial]) -> FrozenTrial | None:
        """Return the trial with the best finite value."""
        finite = (t for t in trials if np.isfinite(_value(t)))
        return max(finite, key=lambda t: self.sign * _value(t), default=None)

    def aside(self, constrained: bool = False, partial: bool = True) -> dict[str, Any]:
        """Return what an explanation says of trials beside the model, if that takes these."""
        finite = [value for t in self.feasible if np.isfinite(value := _value(t))]
        declared = declared_constraints(self.study)
        return {
            "fixed": self.fixed,
            "infeasible": violating(self.trials),
            "conditional": self.parameters.conditional(self.space),
            "unmodelled": unmodelled(self.trials, self.ranges, constrained, declared, partial)
            + all_unusable(self.trials)
            + unusable_records(self.study)
            + extreme(finite),
            "repeated": too_good(self.feasible, self.values, self.sign),
            "possible": self.values,
            "impossible": self.outside,
            "penalties": self.penalised,
        }


class _Compared:
    """Trials that a model compares, each at its setting.

    Attributes
    ----------
    reading, synced, learner:
        What the trials say, and the model of them.
    modelled:
        Trials that have a row of the explanation, if the model observed them.
    number:
        Number of a trial -> its row in the model.
    at, settings:
        Trials that are compared, and their settings, shape (n, d).
    """

    def __init__(self, reading: _Reading, recipe: Recipe) -> None:
        self.reading = reading
        self.synced = SyncedLearner(
            reading.study, reading.space, recipe, reading.aim, possible=reading.values
        )
        self.synced.follow(reading.trials)
        self.synced.encoding.check(reading.given)
        self.learner = self.synced.single
        self.number = {n: i for i, n in enumerate(self.synced.observed)}
        # What violates a constraint is modelled, too, with a model of it
        self.modelled = reading.feasible
        if self.synced.constrained:
            self.modelled = reading.observed
        # With an aim a setting is what was suggested: what happens when it is moved is judged
        place = self.synced.run if reading.aim is None else self.synced.queried
        seen = (t for t in self.modelled if t.number in self.number)
        places = [(t, x) for t in seen if (x := place(t)) is not None]
        self.at, self.settings = [t for t, _ in places], np.array([x for _, x in places])

    @cached_property
    def estimate(self) -> Posterior:
        """Posterior for reports, which may have the hyperparameters integrated out."""
        return self.learner.estimate

    @cached_property
    def part(self) -> Box | Integers | None:
        """The part of the domain that has the values that are given; None is all of it.

        Where a choice says whether they can be, it is that of the best trusted trial that has, or
        could have, these values.
        """
        given, encoding = self.reading.given, self.synced.encoding
        if not given:
            return None
        if (by := encoding.deciding(given)) - given.keys():
            could = [t for t in self.at if encoding.has(t.params, given)]
            same = [t for t in could if self.has_given(t)]
            pairs = zip(self.at, self.trusted, strict=True)
            trusted = {t.number for t, trust in pairs if trust >= DISTRUSTED}
            best = self.reading.best(t for t in same or could if t.number in trusted)
            params = {} if best is None else best.params
            given = {n: params[n] for n in by & params.keys()} | given
        return self.synced.points.having(given, {})

    @cached_property
    def trusted(self) -> Array:
        """Trust of each compared trial, (n,)."""
        trust = self.learner.trust
        return np.array([trust[self.number[t.number]] for t in self.at])

    @cached_property
    def limits(self) -> Constraints | None:
        """Models of the constraints, where the policy, for moved inputs, weighs none."""
        return limits_of(self.synced, self.reading.trials)

    @cached_property
    def permitted(self) -> Booleans:
        """Mask of the compared trials that their constraints permit, (n,)."""
        return permitted(self.synced, self.at, self.settings)

    def has_given(self, trial: FrozenTrial) -> bool:
        """Return True if a trial has the values that are given."""
        params = run_with(trial) if self.reading.aim is None else trial.params
        return self.synced.encoding.agrees(params, self.reading.given)

    def tried(self) -> Array:
        """Return the settings of which one may be recommended, (m, d).

        One that has no result but outliers is not, whatever the mean is there: where there is next
        to no noise, it follows even results of hardly any trust. So they are those of trusted
        results, else of some trust, else any that has a result. But where values are given, the
        model answers instead of a distrusted setting.
        """
        inside = np.array([self.has_given(t) for t in self.at])
        result = np.isfinite([_value(t) for t in self.at])
        levels = [self.trusted >= DISTRUSTED, self.trusted > 0.0, result]
        for level in levels[: 1 if self.reading.given else 3]:
            if len(tried := np.unique(self.settings[level & inside & self.permitted], axis=0)):
                break
        if self.reading.aim is not None:
            return self._safe(tried, self.reading.aim)
        return reliable(self.synced, self.reading.trials, tried)

    def _safe(self, tried: Array, aim: RobustObjective) -> Array:
        """Leave out settings that are less likely to be feasible, if others are good enough."""
        if not len(tried) or self.limits is None:
            return tried
        safe = tried[self.limits.safest(tried)]
        if isinstance(aim.threshold, str) or aim.threshold is None:
            return safe
        lower, _ = Band(self.estimate, WIDTH).bounds(safe)
        return safe if lower.max() >= self.reading.sign * aim.threshold else tried

    def recommend(self, tried: Array) -> Recommendation:
        """Recommend one of the settings ``tried``, or any in the part if there are none."""
        if self.reading.aim is not None and len(tried):
            # The best lower bound sets the threshold; certificates are compared later
            tried = tried[[int(np.argmax(Band(self.estimate, WIDTH).bounds(tried)[0]))]]
        return self.learner.recommend(settings=tried, among=self.part)

    def clearly_better(self, tried: Recommendation) -> Recommendation | None:
        """Return what the model recommends of all that has the given values, if not just as good.

        As in :meth:`~stoic.Learner.recommend`: a single bad trial that has them is no answer.
        """
        free = self.recommend(np.empty((0, len(tried.x))))
        given, found = self.reading.given, self.synced.encoding.decode(free.x, self.reading.given)
        # Where a choice says whether they can be, the best may lack them
        if given.keys() - found.keys() or not self.synced.encoding.agrees(found, given):
            return None
        band, both = Band(self.estimate, WIDTH), np.stack([tried.x, free.x])
        spread = spread_of_results(band, self.synced.modelled, self.learner.trust)
        if not goes_before(both[1:], both[:1], band, spread, self.synced.feasibility()):
            return None
        chosen = self.learner.recommend(settings=both, among=self.part).x
        return free if np.array_equal(chosen, free.x) else None

    def nearest(self, x: Array) -> Array:
        """Return the setting of a compared trial that is nearest to ``x`` (d,): it is that."""
        best: Array = self.settings[int(np.argmin(np.abs(self.settings - x).max(axis=1)))]
        return best

    def decoded(self, x: Array) -> dict[str, Any]:
        """Return the parameters at ``x``; refuse values that they cannot have together."""
        given = self.reading.given
        found = self.synced.encoding.decode(x, given)
        if lacking := given.keys() - found.keys():
            raise RefusalError(
                "No such trial is trusted, and the best such setting has no "
                f"{', '.join(lacking)}: give values also of the parameters that decide whether it "
                "is there."
            )
        if not self.synced.encoding.agrees(found, given):
            raise RefusalError(
                f"No point of the recipe's grid has {_words(given)}: the nearest has "
                f"{_words({name: found[name] for name in given})}."
            )
        return self.reading.constants | found | given

    def representative(self, x: Array) -> FrozenTrial:
        """Return the most trusted of the trials at a setting."""
        same = np.flatnonzero(self.permitted & (self.settings == x).all(axis=1))
        best = max(same, key=lambda i: (self.trusted[i], self.reading.sign * _value(self.at[i])))
        return self.at[best]

    def predict(self, settings: Settings) -> tuple[Array, Array]:
        """Return mean and deviation of the objective at one setting or several, (k,)."""
        x = given_points(self.synced.encoding, settings, self.reading.ranges, self.reading.complete)
        mean, std = self.learner.scale.restored(*self.estimate.predict(self._nearest(x)))
        return self.reading.sign * mean, std if scaled(self.learner) else np.full_like(std, np.inf)

    def importances(self, objective: str | None = None) -> dict[str, float]:
        """Total effect of each parameter, by name."""
        if objective is not None:
            raise RefusalError(f"This study has one objective: leave out {objective!r}.")
        return total_effects(
            self.synced.encoding, lambda x: self.estimate.predict(self._nearest(x))[0]
        )

    def _nearest(self, x: Array) -> Array:
        return self.synced.points.nearest(x) if self.learner.domain.finite else x

    def at_best(self, x: Array) -> tuple[float, float]:
        """Return mean and deviation at a setting, as :class:`Explanation` has them."""
        mean, std = self.learner.scale.restored(*self.estimate.predict(x[None]))
        if not scaled(self.learner):
            reported = self.learner.observations.noise[[self.number[t.number] for t in self.at]]
            here = reported[np.all(self.settings == x, axis=1) & ~np.isnan(reported)]
            std = np.array([math.sqrt(here.min(initial=np.inf))])
        return self.reading.sign * float(mean[0]) + 0.0, float(std[0])  # no -0

    @cached_property
    def judgement(self) -> tuple[Array, Array, list[float]]:
        """Mean and deviation of each row given all others, and the trust in it, as modelled."""
        return judged(self.learner, self.learner.posterior, self.synced.modelled)

    def rows(self) -> tuple[tuple[Row, ...], tuple[int, ...]]:
        """Return a row for each observed trial, and the numbers of the steep ones."""
        found, learner, seen = self._rows(True), self.learner, self.synced.modelled
        expected = self.judgement[0]
        falling = steep(seen.x / learner.domain.widths, seen.observed, expected, learner.trust)
        return found, tuple(row.number for row in found if falling[self.number[row.number]])

    def _rows(self, restored: bool) -> tuple[Row, ...]:
        """Return the rows in units of the results, or in those that they are modelled in."""
        learner, seen, sign = self.learner, self.synced.modelled, self.reading.sign
        (expected, sd, judgement), posterior = self.judgement, learner.posterior
        noise_sd, values = np.sqrt(seen.own_noise(posterior.prior.noise)), seen.observed
        if restored:
            sds, reported = np.stack([sd, noise_sd]), learner.observations.noise
            expected, (sd, noise_sd) = learner.scale.restored(expected, sds, values)
            noise_sd = np.where(np.isnan(reported), noise_sd, np.sqrt(reported))
        plateau = plateau_of(posterior.fitted_defence, len(learner))
        return tuple(
            Row(
                t.number,
                _value(t) if restored else sign * float(values[i]),
                sign * float(expected[i]),
                float(sd[i]),
                judgement[i],
                float(noise_sd[i]),
                None if plateau is None else sign * float(plateau[0][i]),
                None if plateau is None else float(plateau[1][i]),
                params=t.params,
                **run_of(t),
            )
            for t in self.modelled
            if (i := self.number.get(t.number)) is not None
        )

    def doubts(self, rows: Sequence[Row], recommended: float) -> str | None:
        """Return why nothing can be recommended with confidence; None if it can."""
        if not (self.settings != self.settings[0]).any():
            return None  # of one setting there is nothing to decide
        sign, scale = self.reading.sign, self.learner.scale
        if scale is not UNCHANGED:  # of poor results errors are too large in their own units
            rows = self._rows(False)
            recommended = sign * float(scale(np.array(sign * recommended)))
        if found := undecided(rows, recommended, sign) or changed(rows, sign):
            return found
        if not scaled(self.learner):
            return None
        seen, trust = self.synced.modelled, self.learner.trust
        found = plain(self.learner.domain, seen, trust, sign * recommended)
        if found := found or summit(rows, recommended, sign):
            return f"{found} Measure the observed best again, a few times."
        sure = np.isfinite(seen.observed) & (trust >= DISTRUSTED)
        return flat(self.estimate.predict, seen.x[sure], seen.observed[sure])


def _with_model(compared: _Compared) -> Explanation:
    """Explain by a model of the trials."""
    reading, synced, learner = compared.reading, compared.synced, compared.learner
    aside = reading.aside(synced.constrained, synced.takes_partial) | {"left_out": synced.left_out}
    best = reading.best(filter(compared.has_given, reading.feasible))
    if not compared.at:
        return _without_model(reading, best, aside)
    tried = compared.tried()
    confirmed, places = any(confirms(t) and t.state.is_finished() for t in reading.trials), None
    if confirmed and reading.aim is None and not reading.fixed:
        places = Places(synced, reading.trials)
        tried = places.merged(tried)
    recommendation, instead_of = compared.recommend(tried), None
    may_differ = len(tried) and reading.given and reading.aim is None
    if may_differ and (free := compared.clearly_better(recommendation)) is not None:
        instead_of = compared.representative(compared.nearest(recommendation.x)).number
        tried, recommendation = tried[:0], free
    x, standing = recommendation.x, None
    if places is not None:
        standing = Standing.of(reading.study, synced, reading.trials, places, tried, x)
    untried = compared.decoded(x)
    rows, falling = compared.rows()
    aside |= {
        "rows": rows,
        "predict": compared.predict,
        "importances": compared.importances,
        "partial": _partial_rows(compared),
        "distrusted_constraints": synced.distrusted_constraints(),
        "sources": trust_in_sources(synced.sources, synced.encoding, learner.posterior),
    }
    if not compared.permitted.any():
        return Explanation(best, None, math.nan, math.inf, {}, math.nan, **aside)
    if not (len(tried) or reading.given):
        return _without_model(reading, best, aside)
    threshold = recommendation.notes.get("threshold")
    assert threshold is None or isinstance(threshold, float)
    chosen, repeats, failures = None, 0, 0
    if len(tried):
        if reading.aim is not None:
            known = learner, synced.encoding, reading.aim, tried, threshold, compared.limits
            x = tried[sturdiest(*known)]
        x = compared.nearest(x)
        chosen = compared.representative(x)
        # A search that ends at a setting is off by its last digits
        here = apart(compared.settings, x, learner.domain.widths) <= SAME
        # What was run differs where the same was asked: another measurement of the same setting
        here |= [trial.params == chosen.params for trial in compared.at]
        repeats = int((here & (compared.trusted >= DISTRUSTED)).sum())
        there = (t for t in reading.trials if t.params == chosen.params)
        failures = sum(t.state == TrialState.FAIL and failure_kind(t) != "transient" for t in there)
        aside["unmodelled"] += reading.parameters.outdated(chosen.params, reading.fixed)
    mean, std = compared.at_best(x)
    optimum = compared.decoded(recommendation.model_x)
    feasibility = synced.feasibility()
    explanation = Explanation(
        best, chosen, mean, std, optimum,
        float(compared.predict(optimum)[0][0]),  # by the model of all other numbers here
        untried=None if len(tried) else untried,
        instead_of=instead_of,
        undecided=compared.doubts(rows, mean),
        repeats=repeats,
        failures=failures,
        steep=falling,
        confirmation=None if standing is None else standing.outcome(),
        feasible=None if feasibility is None else float(feasibility(x[None])[0]),
        **aside,
    )  # fmt: skip
    if reading.aim is None or not scaled(learner):
        return explanation
    return _with_certificates(explanation, compared, reading.aim, threshold)


def _partial_rows(compared: _Compared) -> tuple[PartialRow, ...]:
    """Rows of the trials without a final value, in the order of trials."""
    synced, number, trust = compared.synced, compared.number, compared.learner.trust
    if synced.unfinished is None:
        return ()
    state = {trial.number: trial.state.name.lower() for trial in compared.reading.trials}
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
        for n, found in sorted(synced.unfinished.partial.items())
        if n in number
    )


def _without_model(
    reading: _Reading, best: FrozenTrial | None, aside: Mapping[str, Any]
) -> Explanation:
    """Explain without a model: no value is judged, and the only setting, if any, recommended.

    Its value is the median of its results.
    """
    rows = tuple(
        Row(t.number, _value(t), _value(t), math.inf, math.nan, params=t.params, **run_of(t))
        for t in reading.feasible
    )
    aside = {"rows": rows} | dict(aside)
    if best is None or not best.params or any(t.params != best.params for t in reading.feasible):
        return Explanation(best, None, math.nan, math.inf, {}, math.nan, **aside)
    finite = [value for t in reading.feasible if math.isfinite(value := _value(t))]
    middle, n = float(np.median(finite)), len(finite)
    params = dict(best.params)
    return Explanation(best, best, middle, math.inf, params, middle, repeats=n, **aside)


def _with_certificates(
    explanation: Explanation,
    compared: _Compared,
    aim: RobustObjective,
    threshold: float | None,
) -> Explanation:
    """Add the certificates of the recommended setting and of the observed best.

    A threshold is out of reach if it is in the part of the domain that is compared.
    """
    learner, encoding, sign = compared.learner, compared.synced.encoding, compared.reading.sign
    reached = None
    if threshold is not None:
        learner.rng = np.random.default_rng(0)  # fixed: the same trials give the same answer
        choice = learner.ask(among=compared.part, pending=())
        if not choice.notes["reachable"]:
            reached = compared.synced.best_possible(choice.x)

    def of(trial: FrozenTrial | None, params: dict[str, Any] | None = None) -> Certified | None:
        params = params if trial is None else trial.params
        if params is None or not encoding.contains(params):
            return None
        return certified(learner, encoding, aim, sign, params, threshold, reached, compared.limits)

    best = explanation.observed_best
    doubted = best is not None and explanation.trust_of(best.number) < DISTRUSTED
    chosen = explanation.recommended
    found, undecided = of(chosen, explanation.untried), explanation.undecided
    single = chosen is not None and explanation.repeats == 1
    if undecided is None and single and found is not None and found.reached is None:
        row = next(row for row in explanation.rows if row.number == chosen.number)
        undecided = alone(row, found.certificate.value, sign)
    return replace(
        explanation,
        undecided=undecided,
        certified=found,
        certified_observed=None if doubted else of(best),
    )


def _words(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None  # all callers pass complete trials
    return trial.value
