"""Estimated best of a study and trust in its trials, in the user's units and direction."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from optuna.search_space import intersection_search_space
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.balancing import Balanced
from stoic.data import Array
from stoic.defences.plateau import Plateau
from stoic.integrations.aim import WIDTH, RobustObjective, stored_aim
from stoic.integrations.campaign import Campaign
from stoic.integrations.certified import Certified, certified, sturdiest
from stoic.integrations.confirming import Confirmation, Standing, confirms, reliable
from stoic.integrations.executed import executed
from stoic.integrations.recipe import Recipe, recipe_to_look_with
from stoic.integrations.spaces import check_fixed, searched
from stoic.integrations.undecided import steep, undecided
from stoic.integrations.unmodelled import check_single_objective, unmodelled, violates
from stoic.learner import Learner
from stoic.policies.base import Band
from stoic.posteriors.base import FittedDefence
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.fitting import Fitting
from stoic.printable import printable
from stoic.refusal import Refusal

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Row:
    """Leave-one-out diagnostics of one complete trial, in the user's units.

    Attributes
    ----------
    number:
        Of the trial.
    value:
        The observed value.
    expected, sd:
        Posterior mean and standard deviation of the objective there, given all other trials.
    trust:
        From 0 to 1; below 0.5 the trial is called distrusted.
    noise_sd:
        Standard deviation of the noise of this value: as reported, else as estimated.
    centre, half_width:
        Of the plateau, within which a value is trusted entirely: its centre may rest on
        more, or less, than all other trials. None if the method has no plateau.
    executed:
        All parameters as they were run, if the trial reports them.
    refused:
        Why parts of that report were not used.
    """

    number: int
    value: float
    expected: float
    sd: float
    trust: float
    noise_sd: float = 0.0
    centre: float | None = None
    half_width: float | None = None
    executed: Mapping[str, Any] | None = None
    refused: tuple[str, ...] = ()

    @property
    def residual(self) -> float:
        """Leave-one-out residual, in standard deviations of the predicted value."""
        if self.value == self.expected:
            return 0.0
        spread = math.hypot(self.sd, self.noise_sd)
        apart = self.value - self.expected
        return apart / spread if spread else math.copysign(math.inf, apart)


def _unknown(settings: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
    """Predict without a model: means of nan, infinite deviations."""
    return np.full(len(settings), np.nan), np.full(len(settings), np.inf)


@dataclass(frozen=True)
class Explanation:
    """Recommendation of a study and its evidence, in the user's units and direction.

    Attributes
    ----------
    observed_best:
        The trial with the best observed value; it may be an outlier.
    recommended:
        The trial that was run where the pessimistic confidence bound is best, of the settings with
        a result that is not distrusted if there are any: query its parameters again. With an aim,
        the one whose parameters, as they were suggested, have the best certificate. None if no
        trial has a value, or no trusted one has the values that are given.
    recommended_mean, recommended_std:
        Posterior mean and standard deviation of the objective there, or where ``untried`` is; with
        the default method hyperparameters are integrated out, as in ``predict``. The
        deviation is infinite where it is not known: where nothing is learned from other trials, and
        where hyperparameters are fitted and no two results differ, which leaves no scale to measure
        it in. Then it is at most the standard error that was reported with the trial.
    model_optimum:
        The parameters, tried or not, where the posterior mean is best.
    model_optimum_mean:
        The posterior mean there.
    rows:
        One for each complete trial that the model observed, in the order of trials.
    predict:
        From a list of k settings, each with all parameters of ``model_optimum``, to the posterior
        mean and standard deviation of the objective there, both (k,); at the nearest point of a
        grid, if the recipe has one.
    certified, certified_observed:
        How far the recommended setting, and that of the observed best, may be moved. None if there
        is no aim, or no scale to measure deviations in.
    left_out:
        Number of a finished trial that was run at no point of the recipe's grid -> where it was
        run. The model did not observe these.
    fixed:
        Name of a parameter -> value, where only settings with these values were compared:
        ``observed_best``, ``recommended`` and ``model_optimum`` have them. ``rows`` has all trials.
    untried:
        Of all settings with the values that are given, the one where the pessimistic confidence
        bound is best, if no trusted trial has these values; else None.
    infeasible:
        Numbers of the complete trials that violate a constraint. None of them is
        ``observed_best``, ``recommended`` or in ``rows``.
    unmodelled:
        What trials have and the model does not use, a sentence each.
    undecided:
        Why the results contradict each other too much to recommend anything with confidence, and
        which queries would resolve it; None where they do not.
    repeats:
        Number of trusted trials at the recommended setting. One alone may be luck.
    confirmation:
        Outcome of the confirming measurements; None if there are none, with an aim, and where
        values are given.
    steep:
        Numbers of distrusted trials that are worse than expected beside others of this kind: rather
        a slope too steep for the model than outliers.
    """

    observed_best: FrozenTrial | None
    recommended: FrozenTrial | None
    recommended_mean: float
    recommended_std: float
    model_optimum: dict[str, Any]
    model_optimum_mean: float
    rows: tuple[Row, ...]
    predict: Callable[[Sequence[Mapping[str, Any]]], tuple[Array, Array]] = _unknown
    certified: Certified | None = None
    certified_observed: Certified | None = None
    left_out: Mapping[int, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    untried: dict[str, Any] | None = None
    infeasible: tuple[int, ...] = ()
    unmodelled: tuple[str, ...] = ()
    undecided: str | None = None
    repeats: int = 0
    steep: tuple[int, ...] = ()
    confirmation: Confirmation | None = None


def explain(
    study: Study,
    *,
    recipe: Recipe | None = None,
    aim: RobustObjective | None = None,
    fixed: Mapping[str, Any] | None = None,
    trials: Sequence[FrozenTrial] | None = None,
) -> Explanation:
    """Estimate the best of a study, and the trust in each trial.

    Uses the parameters that all complete trials share. Where there are none, or no complete trial
    at a point of the recipe's grid, nothing can be learned from one trial about another: then every
    value is trusted.

    Parameters
    ----------
    study:
        With one objective.
    recipe:
        Its model is used; by default the one that is recorded with the study by its name, else
        :func:`~stoic.recipes.robust`. A file that a storage names is not run: the log
        says so.
    aim:
        The objective where inputs move; by default the one that is recorded with the study.
    fixed:
        Name of a parameter -> its value this time: only settings with it are compared. The model
        learns from all trials. A trial has the value if it was run with it; with an aim, if it was
        suggested with it.
    trials:
        All trials of the study at the time in question; by default now.

    Raises
    ------
    ValueError
        For a study with several objectives, or an aim that does not fit its parameters, or a value
        that is ``fixed`` of a parameter that not all complete trials have, that cannot have it, or
        that does not have it anywhere on the recipe's grid.
    """
    check_single_objective(study)
    aim = aim or stored_aim(study)
    if recipe is None:
        recipe, instead = recipe_to_look_with(study)
        if instead is not None:
            log.warning(printable(instead))
    trials = study.get_trials(deepcopy=False) if trials is None else trials
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.value is not None]
    sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
    shared = intersection_search_space(list(complete))
    space = searched(shared)
    fixed = dict(fixed or {})
    if complete:
        check_fixed(fixed, shared, "all complete trials have")
    given = {name: value for name, value in fixed.items() if name in space}
    aside: dict[str, Any] = {
        "fixed": fixed,
        "infeasible": tuple(t.number for t in complete if violates(t)),
        "unmodelled": unmodelled(trials, shared),
    }
    feasible = [t for t in complete if not violates(t)]
    finite = [t for t in feasible if np.isfinite(_value(t))]
    if not complete or not space:
        best = max(finite, key=lambda t: sign * _value(t), default=None)
        return replace(_without_model(feasible, best), **aside)

    campaign = Campaign(study, space, recipe, aim)
    campaign.follow(trials)

    def has_given(trial: FrozenTrial) -> bool:
        run = executed(trial) if aim is None else None
        return campaign.encoding.agrees(trial.params if run is None else run.params, given)

    best = max(filter(has_given, finite), key=lambda t: sign * _value(t), default=None)
    learner, number = campaign.learner, {n: i for i, n in enumerate(campaign.told)}
    place = campaign.run if aim is None else campaign.asked
    at = [t for t in complete if t.number in number and place(t) is not None]
    if not at:
        unlearned = _without_model(feasible, best)
        return replace(unlearned, left_out=campaign.left_out, **aside)
    posterior, estimate, trust = learner.posterior, learner.estimate, learner.trust
    settings = np.array([place(t) for t in at])
    # A setting that has no result but outliers is not recommended, whatever the mean is there:
    # where there is next to no noise, it follows even results of hardly any trust.
    trusted = np.array([trust[number[t.number]] for t in at])
    inside = np.array([has_given(t) for t in at])
    levels = [trusted >= 0.5, trusted > 0.0, trusted >= 0.0][: 2 if given else 3]
    tried = np.empty((0, learner.domain.dim))
    for level in levels:
        if len(tried := np.unique(settings[level & inside], axis=0)):
            break
    tried = reliable(campaign, trials, tried) if aim is None else tried
    part = campaign.points.having(given) if given else None
    if aim is not None and len(tried):
        # The setting with the best lower bound sets the threshold; certificates are compared below.
        surest = int(np.argmax(Band(estimate, WIDTH).bounds(tried)[0]))
        recommendation = learner.recommend(settings=tried[[surest]], among=part)
    else:
        recommendation = learner.recommend(settings=tried, among=part)
    x, standing = recommendation.x, None
    if aim is None and not fixed and any(confirms(t) and t.state.is_finished() for t in trials):
        standing = Standing.of(study, campaign, trials, tried, x)
    found = campaign.encoding.decode(x)
    if not campaign.encoding.agrees(found, given):
        raise Refusal(
            f"No point of the recipe's grid has {_words(given)}: the nearest has "
            f"{_words({name: found[name] for name in given})}."
        )
    expected, sd = given_the_others(posterior, learner.observations)
    seen = learner.observations
    falling = steep(seen.x / learner.domain.widths, seen.observed, expected, trust)
    scaled = _scaled(learner)
    if not scaled:
        sd = np.full_like(sd, np.inf)
    noise_sd = np.sqrt(learner.observations.own_noise(posterior.prior.noise))
    plateau = _plateau(posterior.fitted_defence, len(learner))
    rows = tuple(
        Row(
            t.number,
            _value(t),
            sign * float(expected[i]),
            float(sd[i]),
            float(trust[i]),
            float(noise_sd[i]),
            None if plateau is None else sign * float(plateau[0][i]),
            None if plateau is None else float(plateau[1][i]),
            **_run(t),
        )
        for t in complete
        if (i := number.get(t.number)) is not None
    )
    if aim is not None and len(tried):
        threshold = recommendation.notes.get("threshold")
        assert threshold is None or isinstance(threshold, float)
        x = tried[sturdiest(learner, campaign.encoding, aim, tried, threshold)]

    def predict(settings: Sequence[Mapping[str, Any]]) -> tuple[Array, Array]:
        x = np.array([campaign.encoding.encode(s) for s in settings])
        mean, std = estimate.predict(campaign.points.nearest(x) if learner.domain.finite else x)
        return sign * mean, std if scaled else np.full_like(std, np.inf)

    chosen = None
    if len(tried):
        here = int(np.argmin(np.abs(settings - x).max(axis=1)))
        x = settings[here]
        # Of several trials at this very point, the most trusted one represents it.
        same = [t for t, setting in zip(at, settings, strict=True) if np.array_equal(setting, x)]
        chosen = max(same, key=lambda t: (trust[number[t.number]], sign * _value(t)))
    mean, std = estimate.predict(x[None])
    if not scaled:
        reported = learner.observations.noise[[number[t.number] for t in at]]
        here = reported[np.all(settings == x, axis=1) & ~np.isnan(reported)]
        std = np.array([math.sqrt(here.min(initial=np.inf))])
    explanation = Explanation(
        best,
        chosen,
        sign * float(mean[0]),
        float(std[0]),
        campaign.encoding.decode(recommendation.model_x) | given,
        sign * recommendation.model_mean,
        rows,
        predict,
        left_out=campaign.left_out,
        untried=None if len(tried) else found | given,
        undecided=undecided(rows, sign * float(mean[0]), sign),
        repeats=int((np.all(settings == x, axis=1) & (trusted >= 0.5)).sum()) if len(tried) else 0,
        steep=tuple(row.number for row in rows if falling[number[row.number]]),
        confirmation=None if standing is None else standing.outcome(),
        **aside,
    )
    if aim is None or not scaled:
        return explanation
    return _with_certificates(explanation, campaign, aim, recommendation.notes, part)


def _scaled(learner: Learner | Balanced) -> bool:
    """Return True if deviations have a scale: a given one, or results that differ."""
    leader = learner.learners[learner.leader] if isinstance(learner, Balanced) else learner
    fitting = getattr(getattr(leader, "model", None), "fitting", None)
    observed = learner.observations.observed
    return not isinstance(fitting, Fitting) or len(np.unique(observed[np.isfinite(observed)])) > 1


def _without_model(complete: Sequence[FrozenTrial], best: FrozenTrial | None) -> Explanation:
    """Explain without a model: every value is trusted, its deviation infinite."""
    rows = tuple(Row(t.number, _value(t), _value(t), math.inf, 1.0, **_run(t)) for t in complete)
    value = _value(best) if best is not None else float("nan")
    return Explanation(best, best, value, math.inf, dict(best.params) if best else {}, value, rows)


def _with_certificates(
    explanation: Explanation,
    campaign: Campaign,
    aim: RobustObjective,
    notes: Mapping[str, object],
    part: object,
) -> Explanation:
    """Add the certificates of the recommended setting and of the observed best.

    A threshold is out of reach if it is in the ``part`` of the domain that is compared.
    """
    learner, encoding, sign = campaign.learner, campaign.encoding, campaign.sign
    threshold, reached = notes.get("threshold"), None
    assert threshold is None or isinstance(threshold, float)
    if threshold is not None:
        learner.rng = np.random.default_rng(0)
        choice = learner.ask(among=part, pending=())
        if not choice.notes["reachable"]:
            reached = campaign.possible(choice.x)

    def of(trial: FrozenTrial | None, params: dict[str, Any] | None = None) -> Certified | None:
        params = params if trial is None else trial.params
        if params is None or not encoding.contains(params):
            return None
        return certified(learner, encoding, aim, sign, params, threshold, reached)

    return replace(
        explanation,
        certified=of(explanation.recommended, explanation.untried),
        certified_observed=of(explanation.observed_best),
    )


def _words(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())


def _run(trial: FrozenTrial) -> dict[str, Any]:
    """Arguments of a row on how a trial was run."""
    run = executed(trial)
    return {} if run is None else {"executed": run.params, "refused": run.refused}


def _plateau(defence: FittedDefence, rows: int) -> tuple[Array, Array] | None:
    """Centre and half-width for each observation, both (n,), if the defence has a plateau."""
    plateau = getattr(defence, "plateau", None)
    if not isinstance(plateau, Plateau):
        return None
    return np.broadcast_to(plateau.centre, rows), np.broadcast_to(plateau.half_width, rows)


def _value(trial: FrozenTrial) -> float:
    assert trial.value is not None  # all callers pass complete trials
    return trial.value
