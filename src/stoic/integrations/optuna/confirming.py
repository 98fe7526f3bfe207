"""Confirmation of a study: the candidates for its best setting, measured again.

A confirming measurement is an ordinary trial with the user attribute ``stoic:confirm``: the model
judges it as it judges every result, and a study that was killed goes on from its storage.
"""

from __future__ import annotations

import functools
import logging
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from optuna import TrialPruned
from optuna.pruners import NopPruner
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.confirmation import DRAWS, Comparison, contenders, draw_jointly
from stoic.data import DISTRUSTED, SDS_95, Array, Booleans, Integers
from stoic.integrations.optuna.confirmed import Candidate, Confirmation
from stoic.integrations.optuna.encoding import searched
from stoic.integrations.optuna.executed import executed, run_with
from stoic.integrations.optuna.internals import (
    begin_trial,
    fix,
    fixed_attrs,
    fixed_by,
    fixed_params,
    storage_of,
    trial_id,
)
from stoic.integrations.optuna.objective import stored_aim
from stoic.integrations.optuna.objectives import check_single_objective, trials_of
from stoic.integrations.optuna.partial import has_value
from stoic.integrations.optuna.permitted import permitted
from stoic.integrations.optuna.possible import is_result
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.unmodelled import CONFIRM, failure_kind, modelled_space, violates
from stoic.integrations.recipe import DEFAULT, recipe_to_look_with
from stoic.models.constraints import Constraints
from stoic.models.rescaling import Rescaling
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior
from stoic.refusal import RefusalError, check_at_least, check_callable

log = logging.getLogger(__name__)

_LIKELY = 0.01  # probability to be the best from which on a candidate is listed
_SURE = 0.95  # probability to be the best with which the question is settled
_BROKEN = 3  # settings that fail one after the other
# Of the noise's standard deviation: an expected loss that is settled, too. To see a difference of
# that size at two standard errors takes 20,000 measurements of each setting.
_SMALL = 0.02


def confirms(trial: FrozenTrial | Trial) -> bool:
    """Return True for a confirming measurement."""
    return trial.user_attrs.get(CONFIRM) is True


def confirmations(trials: Sequence[FrozenTrial]) -> int:
    """Count the confirming measurements that were begun."""
    return sum(confirms(trial) and trial.state != TrialState.WAITING for trial in trials)


@dataclass(frozen=True, eq=False)
class Standing:
    """Comparison of the settings of a study, by the model of :func:`~stoic.recipes.robust`.

    Attributes
    ----------
    synced:
        The learner and its encoding.
    x:
        The candidates, shape (k, d).
    leader:
        The one that is recommended.
    trials:
        All trials of the study.
    places:
        Where they count.
    posterior:
        Of the objective, for reports.
    noise:
        Noise variance of one measurement.
    scale:
        Scale of the posterior; all else is in the units of the results.
    """

    synced: SyncedLearner
    x: Array
    leader: int
    trials: Sequence[FrozenTrial]
    places: Places
    posterior: Posterior
    noise: float
    scale: Rescaling

    @staticmethod
    def of(
        study: Study,
        synced: SyncedLearner,
        trials: Sequence[FrozenTrial],
        places: Places,
        tried: Array,
        recommended: Array,
    ) -> Standing | None:
        """Compare the settings ``tried`` (k, d) with the ``recommended`` one, which is among them.

        None if there is none, or no scale to compare them in.
        """
        learner, posterior = synced.single, synced.single.estimate
        if not len(tried):
            return None
        # Joint draws need one of these: the default's model compares settings of other recipes
        if not isinstance(posterior, Exact | MixturePosterior):
            own = SyncedLearner(study, synced.encoding.space, DEFAULT)
            own.follow(trials)
            learner, posterior = own.single, own.single.estimate
        noise = np.median(learner.modelled.own_noise(learner.posterior.prior.noise))
        mean, _ = posterior.predict(recommended[None])
        _, noise_sd = learner.scale.restored(mean, np.full(1, math.sqrt(noise)))
        here = np.flatnonzero((tried == recommended).all(axis=1))
        rows = np.union1d(contenders(posterior, tried), here[:1])  # the leader is always among them
        leader = int(np.searchsorted(rows, here[0]))
        standing = Standing(
            synced, tried[rows], leader, trials, places, posterior, float(noise_sd[0]) ** 2,
            learner.scale,
        )  # fmt: skip
        return standing if np.isfinite(standing.comparison.draws).all() else None

    @cached_property
    def comparison(self) -> Comparison:
        """Comparison of the candidates."""
        return Comparison(self.draws(self.x, DRAWS, np.random.default_rng(0)), self.leader)

    def draws(self, x: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw the objective at points (k, d) jointly, shape (n, k), in units of the results."""
        return self.scale.inverse(draw_jointly(self.posterior, x, n, rng))

    def _count(self, which: Callable[[FrozenTrial], bool]) -> Integers:
        """Count the trials of a kind at each candidate, shape (k,)."""
        return self.places.count(self.x, filter(which, self.trials))

    def _measured(self, trial: FrozenTrial) -> bool:
        return _measured(self.synced, trial)

    @cached_property
    def limits(self) -> Constraints | None:
        """Constraints of the study; None without any."""
        return self.synced.feasibility()

    @cached_property
    def safe(self) -> bool:
        """True if the leader is likely to satisfy them, see :class:`Confirmation`."""
        return self.limits is None or bool(self.limits.sure(self.x[[self.leader]])[0])

    def settled(self) -> bool:
        """Return True if further measurements are not needed, see :class:`Confirmation`."""
        comparison = self.comparison
        sure = comparison.probability[self.leader] >= _SURE
        small = comparison.loss.mean() <= _SMALL * np.sqrt(self.noise)
        again = self._count(self._measured)[self.leader] > 1
        return bool(self.safe and again and (sure or small))

    def next_trial(self) -> FrozenTrial:
        """Return a trial at the setting that is to be measured next."""
        # What other workers are measuring counts: else all of them would measure the leader
        results = self._count(lambda t: self._measured(t) or t.state == TrialState.RUNNING)
        rng = np.random.default_rng(len(self.trials))  # the same when read again
        row = self.comparison.next_measurement(results[self.leader] > 1, rng)
        failed = self._count(functools.partial(_failed, self.synced))
        if failed[row] and not any(confirms(t) and self._measured(t) for t in self.trials):
            # Another setting tells whether it is the program that fails
            row = int(np.lexsort([-self.comparison.probability, failed])[0])
        return next(self._complete_at(self.x[row]))

    def _complete_at(self, x: Array) -> Iterator[FrozenTrial]:
        """Iterate over the complete trials at a setting, shape (d,)."""
        complete = filter(has_value, self.trials)
        return (trial for trial in complete if self.places.count(x[None], [trial])[0])

    def _left_out(self, failed: Sequence[FrozenTrial]) -> tuple[int, ...]:
        """List the first complete trials at settings that are not reliable, as these failed."""
        settings = [x for trial in failed if (x := self.synced.run(trial)) is not None]
        if not settings:
            return ()
        x = np.unique(settings, axis=0)
        x = x[_unreliable(self.synced, self.trials, x) & ~(x[:, None] == self.x).all(-1).any(-1)]
        first = (next(self._complete_at(setting), None) for setting in x)
        return tuple(sorted(trial.number for trial in first if trial is not None))

    def outcome(self) -> Confirmation:
        """Sum up for people."""
        comparison, sign, trust = self.comparison, self.synced.sign, self.synced.single.trust
        modelled, sd = self.posterior.predict(self.x)
        mean, std = self.scale.restored(modelled, sd)
        number = {n: i for i, n in enumerate(self.synced.observed)}
        known = [t for t in self.trials if t.number in number and has_value(t)]
        at = np.array([self.places.count(self.x, [t]) for t in known], dtype=bool)

        def example(row: int) -> FrozenTrial:
            """Return the trial that explain names, the most trusted one, and the best of those."""
            here = [t for t, there in zip(known, at, strict=True) if there[row]]
            # Not one that was asked alike and run elsewhere
            there = [t for t in here if (self.synced.run(t) == self.x[row]).all()]
            if not there:
                return next(self._complete_at(self.x[row]))
            return max(there, key=lambda t: (trust[number[t.number]], sign * (t.value or 0.0)))

        trusted = self._count(
            lambda t: t.number in number and trust[number[t.number]] >= DISTRUSTED
        )
        confirmed = self._count(lambda t: confirms(t) and t.number in number)
        counted, best = _failures(self.synced, self.trials), self.leader
        failures = self.places.count(self.x, counted)
        order = sorted(range(len(self.x)), key=lambda j: (j != best, -comparison.probability[j]))
        mine = [t for t in self.trials if confirms(t) and t.state.is_finished()]
        failed = sum(_failed(self.synced, t) for t in mine)
        half = SDS_95 * np.array([-sd[best], sd[best]])
        ends = (sign * self.scale.inverse(modelled[best] + half)).tolist()
        listed = [j for j in order if j == best or comparison.probability[j] >= _LIKELY]
        return Confirmation(
            tuple(
                Candidate(
                    shown.number,
                    run_with(shown),
                    sign * float(mean[j]),
                    float(std[j]),
                    float(comparison.probability[j]),
                    int(trusted[j]),
                    int(confirmed[j]),
                    int(failures[j]),
                )
                for j, shown in zip(listed, map(example, listed), strict=True)
            ),
            float(min(ends)),
            float(max(ends)),
            float(comparison.loss.mean()),
            float(np.quantile(comparison.loss, 0.95)),
            len(mine),
            failed,
            failed - len(counted),
            self._left_out(counted),
            self.settled(),
            None if self.limits is None else float(self.limits(self.x[[best]])[0]),
            self.safe,
        )


def _measured(synced: SyncedLearner, trial: FrozenTrial) -> bool:
    """Return True if a trial has a finite value that is possible, feasible, and no penalty.

    A constraint that is modelled has noise, too: one value beyond its limit is no failure.
    """
    if not has_value(trial) or trial.value in synced.penalties.values:
        return False
    if violates(trial) and not synced.constrained:
        return False
    return is_result(trial.value, synced.possible) and math.isfinite(trial.value)


def _failed(synced: SyncedLearner, trial: FrozenTrial) -> bool:
    """Return True for a confirming measurement that failed, but for a transient reason.

    One that a pruner stopped says that it was worse than others at that step, and nothing more.
    """
    if not confirms(trial) or not trial.state.is_finished() or trial.state == TrialState.PRUNED:
        return False
    if trial.state == TrialState.COMPLETE:
        return not _measured(synced, trial)
    return failure_kind(trial) != "transient"


def _failures(synced: SyncedLearner, trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """List the failed measurements that count against their settings.

    Where measurements of three settings or more fail one after the other, or of two before the
    program has worked at all, it is the program, and they count against none.
    """
    mine = [trial for trial in trials if confirms(trial) and trial.state.is_finished()]
    measured = functools.partial(_measured, synced)
    worked = (
        i
        for i, t in enumerate(mine)
        if measured(t) or violates(t) or failure_kind(t) == "infeasible"
    )
    first = next(worked, len(mine))
    streaks = [mine[:first], *(list(streak) for _, streak in groupby(mine[first:], measured))]
    counted = []
    for k, streak in enumerate(streaks):
        failed = list(filter(functools.partial(_failed, synced), streak))
        if len({str(sorted(trial.params.items())) for trial in failed}) < _BROKEN - (k == 0):
            counted += failed
    return counted


class Places:
    """Points that trials count at: where one was run, and where one was that was asked alike."""

    def __init__(self, synced: SyncedLearner, trials: Iterable[FrozenTrial]) -> None:
        self._synced = synced
        # Asked, (d,), and run elsewhere -> all of its runs; and a run -> all that was asked there
        self._alike: dict[bytes, list[Array]] = {}
        self._asked_at: dict[bytes, set[bytes]] = {}
        complete = list(filter(has_value, trials))
        moved = {self._asked(trial) for trial in complete if executed(trial) is not None}
        for trial in complete if moved else ():
            if (run := synced.run(trial)) is not None:
                asked = self._asked(trial)
                self._asked_at.setdefault(run.tobytes(), set()).add(asked)
                if asked in moved:
                    self._alike.setdefault(asked, []).append(run)

    def _asked(self, trial: FrozenTrial) -> bytes:
        asked = self._synced.queried(trial)
        return b"" if asked is None else asked.tobytes()

    def merged(self, tried: Array) -> Array:
        """Keep one of the points ``tried`` (k, d) of each setting, the most central one.

        Of two, the one that is nearer to what was asked. Before one of all is recommended: it would
        be the luckiest of the runs. A point that was run for several settings stays.
        """
        for asked, runs in self._alike.items():
            own = [run for run in runs if len(self._asked_at[run.tobytes()]) == 1]
            if len(own) < 2:
                continue
            here = (tried[:, None] == np.array(own)).all(axis=2).any(axis=1)
            if here.sum() > 1:
                same = tried[here]
                two = here.sum() == 2 and asked  # empty where what was asked is no point of a grid
                centre = np.frombuffer(asked) if two else same.mean(axis=0)
                central = same[np.abs(same - centre).sum(axis=1).argmin()]
                tried = np.concatenate([tried[~here], central[None]])
        return np.unique(tried, axis=0)

    def count(self, x: Array, trials: Iterable[FrozenTrial]) -> Integers:
        """Count the trials at each of the points ``x`` (k, d), shape (k,)."""
        counts = np.zeros(len(x), dtype=np.intp)
        for trial in trials:
            if (run := self._synced.run(trial)) is not None:
                at = [run, *(self._alike.get(self._asked(trial), ()) if self._alike else ())]
                counts += (x[:, None] == np.array(at)).all(axis=2).any(axis=1)
        return counts


def reliable(synced: SyncedLearner, trials: Sequence[FrozenTrial], tried: Array) -> Array:
    """Leave out settings whose confirming measurements failed as often as any had a value.

    Unless that holds for all of the settings ``tried`` (k, d); and those that are less likely to be
    feasible than others.
    """
    if len(tried) and (feasibility := synced.feasibility()) is not None:
        tried = tried[feasibility.safest(tried)]
    if not any(map(confirms, trials)) or not len(tried):
        return tried
    kept = ~_unreliable(synced, trials, tried)
    return tried[kept] if kept.any() else tried


def _unreliable(synced: SyncedLearner, trials: Sequence[FrozenTrial], x: Array) -> Booleans:
    """Mask of the points whose confirming measurements failed as often as any had a value."""
    places = Places(synced, trials)
    failed = places.count(x, _failures(synced, trials))
    measured = filter(functools.partial(_measured, synced), trials)
    counted: Booleans = failed >= np.maximum(places.count(x, measured), 1)
    return counted


def standing(study: Study, trials: Sequence[FrozenTrial] | None = None) -> Standing | None:
    """Compare the trusted settings of a study; None if none has a value or nothing is searched."""
    check_single_objective(study)
    trials = trials_of(study, trials)
    complete = list(filter(has_value, trials))
    space = searched(modelled_space(trials, shared=stored_aim(study) is not None))
    if not complete or not space:
        return None
    synced = SyncedLearner(study, space, recipe_to_look_with(study)[0])
    synced.follow(trials)
    number, trust = {n: i for i, n in enumerate(synced.observed)}, synced.learner.trust
    tried = [
        (t, x)
        for t in complete
        if t.number in number
        and (synced.constrained or not violates(t))
        and trust[number[t.number]] >= DISTRUSTED
        and (x := synced.run(t)) is not None
    ]
    if not tried:
        return None
    settings = np.array([x for _, x in tried])
    settings = settings[permitted(synced, [t for t, _ in tried], settings)]
    if not len(settings):
        return None
    settings = reliable(synced, trials, np.unique(settings, axis=0))
    # One without a number that was added since cannot be run again as it was
    whole = ~synced.encoding.box.apart(settings).any(axis=1)
    places = Places(synced, trials)
    settings = places.merged(settings[whole] if whole.any() else settings)
    recommended = synced.single.recommend(settings=settings).x
    return Standing.of(study, synced, trials, places, settings, recommended)


def next_confirmation(
    study: Study, trials: Sequence[FrozenTrial] | None = None
) -> dict[str, Any] | None:
    """Choose the parameters to measure again; None if the answer is settled, or has no candidate.

    Parameters
    ----------
    study:
        Of any sampler; with one objective.
    trials:
        All of its trials; by default those it has now.
    """
    found = standing(study, trials)
    if found is None or found.settled():
        return None
    # What was asked, also where another setting was run: that would be moved once more
    return dict(found.next_trial().params)


def check_confirming(study: Study) -> None:
    """Refuse a study whose trials cannot be confirming measurements."""
    check_single_objective(study)
    if given := fixed_by(study.sampler):
        raise RefusalError(
            f"confirm measures settings as they were run, and {', '.join(given)} cannot be given: "
            "leave out PartialFixedSampler, or confirm."
        )


def make_confirming(study: Study, trial: FrozenTrial, measurements: int, after: int) -> None:
    """Make a trial that has just begun the next of so many confirming ``measurements``, if due.

    It is not before ``after`` trials are complete, once the answer is settled, or if the trial has
    parameters of its own.
    """
    trials = [t for t in study.get_trials(deepcopy=False) if t.number != trial.number]
    searched_enough = sum(map(has_value, trials)) >= after
    if not searched_enough or fixed_params(trial) or confirmations(trials) >= measurements:
        return
    if (params := next_confirmation(study, trials)) is not None:
        fix(study, trial, params)
        storage_of(study).set_trial_user_attr(trial_id(trial), CONFIRM, True)
        trial.user_attrs = {**trial.user_attrs, CONFIRM: True}


def _carried_out(
    study: Study, objective: Callable[[Trial], float], params: Mapping[str, Any]
) -> None:
    """Run the objective in a trial with these parameters, whatever else waits in the queue.

    Raises
    ------
    RefusalError
        If it runs others; that trial has failed.
    """
    trial = begin_trial(study, fixed_attrs(params), {CONFIRM: True})
    value, state = None, None
    try:
        value = objective(trial)
    except TrialPruned:
        state = TrialState.PRUNED
    except Exception:  # as study.optimize does with catch=(Exception,)
        log.warning("Trial %d, a confirming one, failed.", trial.number, exc_info=True)
        state = TrialState.FAIL
    except BaseException:  # Ctrl-C: this process may live on
        study.tell(trial, state=TrialState.FAIL)
        raise
    ran = trial.params
    if value is None or all(name in ran and ran[name] == params[name] for name in params):
        study.tell(trial, value, state)
        return
    study.tell(trial, state=TrialState.FAIL)  # the value is one of another setting
    raise RefusalError(
        f"The objective of a confirmation runs the parameters of the study, {dict(params)}, and "
        f"this one ran {ran}: it is that of another study."
    )


def confirm(
    study: Study, objective: Callable[[Trial], float], n_trials: int
) -> Confirmation | None:
    """Measure the candidates of a study again, until the answer is settled.

    For any study, whatever sampler made it. ``explain(study).confirmation`` has the outcome later,
    too.

    Parameters
    ----------
    study:
        With one objective.
    objective:
        As for ``study.optimize``, but no measurement is pruned. An exception is a failed
        measurement, which counts against its candidate.
    n_trials:
        The largest number of measurements.

    Returns
    -------
    outcome:
        None if there is nothing to confirm: no trusted result, or no parameter that is searched.

    Raises
    ------
    ValueError
        If ``n_trials`` is no positive integer, or ``study`` none, or one with several objectives.
    """
    if not isinstance(study, Study):
        raise RefusalError(
            "confirm needs an Optuna study and then its objective, got "
            f"{reprlib.repr(study)} first."
        )
    check_callable(objective=objective)
    check_at_least(1, n_trials=n_trials)
    pruner, study.pruner = study.pruner, NopPruner()  # half a measurement decides nothing
    try:
        for _ in range(n_trials):
            if (params := next_confirmation(study)) is None:
                break
            _carried_out(study, objective, params)
    finally:
        study.pruner = pruner
    found = standing(study)
    return None if found is None else found.outcome()
