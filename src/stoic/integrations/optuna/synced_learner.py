"""A learner that is synchronised with an Optuna study.

Optuna minimises by default, the core maximises: the one sign flip is here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic import recipes
from stoic.balancing import Balanced
from stoic.data import DISTRUSTED, Array, Booleans, Choice, Observations
from stoic.domains import Finite
from stoic.integrations.optuna.coordinates import Numbers
from stoic.integrations.optuna.earlier import EarlierStudy, stored_sources
from stoic.integrations.optuna.encoding import Encoding, met
from stoic.integrations.optuna.executed import EXECUTED, executed
from stoic.integrations.optuna.internals import constraints, storage_of, study_id
from stoic.integrations.optuna.keeper import ModelKeeper
from stoic.integrations.optuna.noise import TypicalNoise
from stoic.integrations.optuna.objective import RobustObjective
from stoic.integrations.optuna.objectives import needs_one, noises_of, signs, values_of
from stoic.integrations.optuna.partial import Unfinished, ended_early, noise_variance
from stoic.integrations.optuna.penalties import Penalties
from stoic.integrations.optuna.points import Points
from stoic.integrations.optuna.possible import PossibleValues, stored_possible
from stoic.integrations.optuna.stored_model import method_digest, stored_model
from stoic.integrations.optuna.times import end_of, start_of
from stoic.integrations.optuna.turns import announced
from stoic.integrations.optuna.unmodelled import (
    WITH_RESULT,
    Parameters,
    excluded_by,
    failure_kind,
    ruled_out,
    violates,
)
from stoic.integrations.recipe import DEFAULT, Recipe, build_learner, in_direction
from stoic.learner import Learner
from stoic.models.constraints import Constraints
from stoic.models.feasibility import Feasibility
from stoic.objectives import MultiLearner
from stoic.pending import NothingLeftError, WaitingError
from stoic.policies.base import choices_at
from stoic.policies.risk import Chance
from stoic.refusal import RefusalError

_LEFT_OUT = 16  # results that a model which was fitted before may be without

# Candidates of the sequence for a trial of the design. Of its first ten points, 5 crashed where
# half of the domain does, and of those that are chosen 2.3 in two and 3.1 in five dimensions.
_LATER = 32
_STRIDE = 1009  # prime, and more than a design has: no point is a candidate for two trials

Identity = tuple[int, int, object]  # of a study


def identity(study: Study, trials: Sequence[FrozenTrial]) -> Identity:
    """Return the unique key of a study, from its first trial on: storage, number and beginning.

    The next study may get the number of a deleted one, and the next storage in memory its address.
    """
    begun = trials[0].datetime_start if trials else None
    return id(storage_of(study)), study_id(study), begun


class SyncedLearner:
    """A learner that is synchronised with the finished trials of one study.

    The learner observes results in the order of trials, as far as they have finished. Only one that
    plans observes them in the order in which trials ended, by the storage, and begins anew if one
    turns up that ended before an observed one: so all workers, and a resumed study, have the same
    plan.

    A finished trial that was run at no point of the learner's domain is left out of the model. One
    that ended without a final value, or with a bound, is observed as what it says about it
    (:mod:`stoic.integrations.optuna.partial`), and that is revised as further trials finish; but a
    learner that plans, or balances several, observes nan.

    Where not all complete trials have all parameters, they teach which settings have which
    (:meth:`Encoding.learned`); the learner begins anew when a trial contradicts what was learned.

    Parameters
    ----------
    study, search_space:
        The study, and the parameters that are searched.
    recipe:
        A value of :mod:`stoic.recipes`, or a function from a domain to a learner, whose own domain
        may be a grid of that.
    aim:
        The objective where inputs move.
    probe:
        True if the learner moves them, see :class:`~stoic.integrations.optuna.RobustObjective`.
    trials:
        Of the study, to identify it later.
    possible:
        Range of the values; by default the one that is recorded with the study.
    sources:
        Earlier studies that inform this one; by default those that are recorded with it.
    branched:
        True if a parameter whose range depends on a choice has a coordinate in that range.
    """

    def __init__(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        recipe: Recipe,
        aim: RobustObjective | None = None,
        probe: bool = False,
        trials: Sequence[FrozenTrial] = (),
        possible: PossibleValues | None = None,
        sources: Sequence[EarlierStudy] | None = None,
        branched: bool = True,
    ) -> None:
        self.study = identity(study, trials)
        # Only the default method has a kernel with sources; the sampler warns that they are unused
        if aim is not None or recipe != DEFAULT:
            sources = ()
        self.sources = stored_sources(study) if sources is None else tuple(sources)
        self.signs = signs(study)
        self.sign = float(self.signs[0])  # of the only objective
        self.recipe, self.aim, self.probe = recipe, aim, probe
        self.encoding = Encoding(search_space, met=self._met(search_space, trials))
        self.possible = possible or stored_possible(study)
        another = None if recipe is DEFAULT else recipe
        needs_one(
            study,
            recipe=another,
            tolerance=aim,
            possible=self.possible,
            warm_start=self.sources,
        )
        self._stored = stored_model(study)
        self._parameters = Parameters(len(study.directions))
        self._branched = branched and aim is None and not self.sources  # of the whole range
        self.penalties = Penalties(recipe, aim, self.possible, self.sign)
        self.inside: dict[int, bool] = {}  # complete trial -> whether its values are in the space
        self._begin()

    def _begin(self) -> None:
        self.learner, self.points = build_with_points(
            warmed(self.recipe, self.encoding, self.sources),
            self.encoding,
            self.aim,
            self.signs,
            self.probe,
        )
        self.constrained = (
            isinstance(self.learner, Learner | MultiLearner) and self.learner.policy.constrained
        )
        revises = isinstance(self.learner, Learner) and not self.learner.plans
        bad = self.penalties.values
        self.unfinished = Unfinished(self.sign, self.possible, bad) if revises else None
        self._typical = TypicalNoise() if revises else None
        self.asking: dict[int, Choice] = {}  # by trial: the query that its result answers
        self.observed: list[int] = []  # number of the trial behind each observation
        if isinstance(self.learner, Learner):
            self.learner.surrogate.numbers = self.observed
        self.failed: list[int] = []  # and behind each failure
        self._limited: dict[str, list[int]] = {}  # and behind each value of a constraint
        self.left_out: dict[int, str] = {}  # number of a trial at no point -> where it was run
        self._seen: set[int] = set()  # numbers of all trials that were processed
        self.keeper = ModelKeeper(self.learner, self._method, self._stored)
        self._latest = end_of(None)

    def _method(self) -> str | None:
        return method_digest(
            self.recipe,
            self.encoding,
            self.possible,
            self.sources,
            [*self.signs.tolist(), *sorted(self.penalties.values)],
        )

    def _met(
        self, space: Mapping[str, BaseDistribution], trials: Sequence[FrozenTrial]
    ) -> dict[str, frozenset[int]]:
        """Choices of categories with many that trials have, or sources, for the default method."""
        if self.recipe is not DEFAULT:  # others plan, or have a grid, which cannot change
            return {}
        ran = (announced(trial, space) for trial in trials)
        instead = (report.params for trial in trials if (report := executed(trial)) is not None)
        return met(space, chain(ran, instead, *(source.choices() for source in self.sources)))

    @property
    def takes_partial(self) -> bool:
        """True if trials without a final value are modelled."""
        return self.unfinished is not None

    @property
    def modelled(self) -> Observations:
        """Observations as the model has them, see :class:`~stoic.Learner`."""
        return self.learner.modelled

    def serves(
        self,
        study: Study,
        trials: Sequence[FrozenTrial],
        search_space: Mapping[str, BaseDistribution],
        probe: bool,
    ) -> bool:
        return (
            self.study == identity(study, trials)
            and self.encoding.space == dict(search_space)
            and self.probe == probe
        )

    def queried(self, trial: FrozenTrial) -> Array | None:
        """Return the point of a trial's setting, shape (d,); None if there is none."""
        return self._at(self._suggested(trial))

    def run(self, trial: FrozenTrial) -> Array | None:
        """Return the point where a trial was run, (d,), as far as known; None if there is none."""
        return self._at(self._run(trial))

    def _suggested(self, trial: FrozenTrial) -> Mapping[str, Any] | None:
        """Return a trial's setting; None if it lacks a parameter or one is out of its range."""
        params, whole = trial.params, trial.state == TrialState.COMPLETE
        if trial.state == TrialState.RUNNING:
            # Optuna stores its parameters one by one, after all of them have been announced
            params = announced(trial, self.encoding.space)
        elif whole and not self.encoding.space.keys() <= params.keys():
            # A parameter that was chosen, and that the setting turned out not to have: where it is
            # not known which do, the result answers the choice, or that would be made again
            chosen = announced(trial, self.encoding.space)
            params = chosen if self.encoding.contains(chosen, whole) else params
        # Others than complete ones may have ended before the last parameter
        return params if self.encoding.contains(params, whole) else None

    def _run(self, trial: FrozenTrial) -> Mapping[str, Any] | None:
        if (suggested := self._suggested(trial)) is None:
            return None
        return suggested if (report := executed(trial)) is None else report.params

    def _at(self, params: Mapping[str, Any] | None) -> Array | None:
        if params is None:
            return None
        x = self.points.of(self.encoding.box.clip(self.encoding.encode(params)[None]))[0]
        return None if np.isnan(x).any() else x

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Report to the learner the trials that have finished since the last call."""
        finished = [trial for trial in trials if trial.state.is_finished()]
        if self.learner.plans:
            finished.sort(key=end_of)  # by the storage, which all workers read
        new = [trial for trial in finished if trial.number not in self._seen]
        others = len(self.signs) == 1 and self.penalties.follow(new, finished)
        before = self.encoding
        self.encoding = before.having_met(self._met(before.space, trials))
        if self.encoding is not before:
            if self.encoding.choices != before.choices:
                # Other coordinates: what the learner has observed are points of another space
                self._begin()
                new = finished
            else:
                # The coordinates stay, but another choice may stand for all that no trial has
                self.points = Points(self.encoding, self.learner.domain)
        if others:  # which were observed as values
            self._begin()
            new = finished
        if new and self.learner.plans and end_of(new[0]) < self._latest:
            self._begin()
            new = finished
        self._parameters.follow(new)
        branches = {}
        if self._branched and not self.learner.domain.finite:  # a grid is of the whole range
            branches = self._parameters.branches(self.encoding.space)
        if branches != self.encoding.branches:
            self.encoding = self.encoding.branched(branches)
            self._begin()
            new = finished
        shown = [] if self.aim else [t.params for t in new if self._parameters.shown_by(t)]
        if not all(map(self.encoding.explains, shown)) or any(map(self.encoding.lacks, shown)):
            shown = [t.params for t in trials if self._parameters.shown_by(t)]
            self.encoding = self.encoding.learned(shown)
            self._begin()
            new = finished
        # What a pruned trial says depends on all that have finished, later ones included
        if new and self.unfinished is not None:
            self.unfinished.compare_with(finished)
        first, rest = self.keeper.split(new)
        self._observe(first)
        known = self.keeper.knows() if first else False
        self._observe(rest)
        if self.unfinished is not None and any(t.state == TrialState.COMPLETE for t in new):
            assert isinstance(self.learner, Learner)
            for trial in self.unfinished.take_waiting():
                if (x := self.run(trial)) is not None:
                    self._tell(trial, x)
            self.unfinished.revise(self.learner)
        if self._typical is not None:
            assert isinstance(self.learner, Learner)
            self._typical.revise(self.learner)
        if known:
            self.keeper.resume()

    def _observe(self, trials: Iterable[FrozenTrial]) -> None:
        """Report finished trials to the learner."""
        for trial in trials:
            self._seen.add(trial.number)
            self._latest = max(self._latest, end_of(trial))
            if (params := self._run(trial)) is None:
                continue  # it lacks a parameter, or one is out of its range
            if (x := self._at(params)) is not None:
                self._tell(trial, x)
            else:
                self.left_out[trial.number] = ", ".join(
                    f"{name}={params[name]}" for name in self.encoding.space if name in params
                )

    def _tell(self, trial: FrozenTrial, x: Array) -> None:
        kind, choice = failure_kind(trial), self.asking.pop(trial.number, None)
        unknown = choice is None and moved([trial]) and not self.learner.plans
        if unknown and (chosen := self.queried(trial)) is not None:
            (choice,) = choices_at(self.learner.domain, chosen[None])
        values = values_of(trial, len(self.signs))
        outputs = constraints(trial) if self.constrained else {}
        beyond = math.inf in outputs.values()  # a size that no model of it can use
        outside = beyond if self.constrained else violates(trial)
        excluded = excluded_by(trial) if kind is None and self.constrained else {}
        outputs = excluded or outputs
        if kind is None and not excluded and (outside or ruled_out(trial)):
            kind = "infeasible"
        if kind is None and values is not None and values[0] in self.penalties.values:
            kind = "infeasible"
        if values is not None and self.possible is not None and self.possible.excludes(values[0]):
            values = np.array([np.nan])  # by chance, or wherever a sensor does not work
        partial = None
        if self.unfinished is not None and kind is None and not excluded and ended_early(trial):
            partial = self.unfinished.begin(trial, len(self.observed))
            if partial is None and trial.state == TrialState.PRUNED:
                return  # there is nothing to compare it with, so far
        self.keeper.add(trial)
        tell: Callable[..., None] = self.learner.tell
        if isinstance(self.learner, Learner | MultiLearner) and outputs:
            tell = functools.partial(self.learner.tell, constraints=outputs)
            for name in outputs:
                self._limited.setdefault(name, []).append(trial.number)
        if excluded:
            tell(x, choice=choice)
            return
        some = values is not None and trial.state != TrialState.COMPLETE
        if kind is not None and not (some and kind == "transient"):
            tell(x, failed=kind, choice=choice)
            tell = self.learner.tell  # which has the constraints now
            self.failed.append(trial.number)
        if kind is not None and not some:
            return
        if partial is not None:
            tell = functools.partial(tell, censored=partial.censored)
            tell(x, partial.value, partial.noise, choice=choice)
        else:
            y = np.full(len(self.signs), np.nan) if values is None else self.signs * values
            noise: Any
            if len(y) > 1:
                noise = noises_of(trial, len(y))
            elif self._typical is None:
                noise = noise_variance(trial)
            else:
                noise = self._typical.of(trial, len(self.observed), float(y[0]))
            tell(x, y, noise, choice=choice)
        self.observed.append(trial.number)

    def start(
        self,
        trials: Sequence[FrozenTrial],
        number: int,
        seed: int,
        fixed: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Design a trial before the model decides: quasi-random parameters, on the grid.

        They are those of a setting that can have what is ``fixed``, if complete trials show one. A
        point where failure is likelier than a result, and than elsewhere, or that a rule rather
        excludes, gives way to a later one of the sequence, which no other trial has: as far as
        failures are confined to a region. The finished trials and the number alone determine it.
        """
        self.follow(trials)
        learner, chance = self.learner, self._chance()
        rules = learner.rules() if isinstance(learner, Learner | MultiLearner) else None
        rng = np.random.default_rng([seed, number])
        whole = {**fixed, **self._deciding(fixed, trials, rng)} if fixed else None
        likeliest, most = None, -np.inf
        for k in range(_LATER if chance or rules else 1):
            params = self.encoding.sobol(number + k * _STRIDE, seed, fixed)
            if fixed and not self.encoding.has(params, fixed):
                params = self.encoding.sobol(number + k * _STRIDE, seed, whole)
            x = self.points.nearest(self.encoding.encode(params)[None])[0]
            if self.learner.domain.finite:
                params = self.encoding.decode(x)
            p = math.prod(float(each(x[None])[0]) for each in (chance, rules) if each)
            if p > most:
                likeliest, most = params, p
            if p >= min(0.5, chance.share if chance else 1.0):
                break
        assert likeliest is not None  # there is a first point
        return likeliest

    def _worked(self) -> Booleans:
        """Mask of the modelled trials (n,) that gave a result."""
        results = self.modelled.observed[:, None]  # (n, 1), as of one output
        if isinstance(self.learner, MultiLearner):
            results = self.learner.results
        return np.asarray(np.isfinite(results).all(axis=1))

    def _feasibility(self) -> Feasibility | None:
        """Model of where trials give results, from those with and without; ``None`` if all did."""
        x, worked, known = self.modelled.x, self._worked(), self.learner.failures.of_settings
        if worked.all() and not len(known):
            return None
        return Feasibility.learned(
            self.learner.domain, x[worked], np.concatenate([known, x[~worked]])
        )

    def _chance(self) -> Chance | Feasibility | None:
        """Probability that a trial gives a result; ``None`` if all did.

        Once one did, failures without a kind may also be everywhere, or outages.
        """
        worked, known = self._worked(), self.learner.failures.of_settings
        if worked.all() or not worked.any():
            return self._feasibility()
        # In the order of their numbers, which all workers know
        order = np.argsort(self.observed)
        x, worked = self.modelled.x[order], worked[order]
        domain = self.learner.domain
        reported = Feasibility.learned(domain, x[worked], known) if len(known) else None
        return Chance.learned(domain, x, worked, known, reported)

    def prepare(self, trials: Sequence[FrozenTrial]) -> None:
        """Fit the model to the finished trials, for a choice that comes later."""
        self.follow(trials)
        if self._fits_alone:
            assert isinstance(self.learner, Learner)
            # Kept by the learner until it has observed more
            self.learner.surrogate.posterior()

    @property
    def _fits_alone(self) -> bool:
        """True if the model can be fitted before a choice, and has results to be fitted to."""
        learner = self.learner
        return isinstance(learner, Learner) and not learner.plans and len(learner) > 0

    def ask(
        self,
        trials: Sequence[FrozenTrial],
        number: int,
        fixed: Mapping[str, Any],
        rng: np.random.Generator,
        prepared: bool = False,
        ranges: Mapping[str, Numbers] | None = None,
    ) -> Choice:
        """Choose the point of a trial in narrower ``ranges`` if there are any, given all others.

        What ended since the model was ``prepared`` is pending, as what runs is, unless it is much.

        Pending trials may have died unnoticed. Where the learner waits for them, it is queried
        without the one that has been running for longest, then without the next one, so that what
        is missing is run again. A choice that other parameters depend on and that no trial had is
        tried first. A plan that has nothing left for what is ``fixed`` gets a trial that does not
        count, of the best upper bound. Where the chosen setting cannot have it, another one can.
        """
        unseen = [t for t in trials if t.state in WITH_RESULT and t.number not in self._seen]
        if not (prepared and self._fits_alone and len(unseen) <= _LEFT_OUT):
            self.follow(trials)
            unseen = []
        running = [t for t in trials if t.state == TrialState.RUNNING and t.number != number]
        places = [*map(self.queried, running), *map(self.run, unseen)]
        pending = [x for x in places if x is not None]
        # Other processes may have asked, too
        latest = max([self._latest, *map(end_of, unseen)])[0]
        asked = sum((start_of(t) or latest) > latest for t in running)
        self.learner.rng = rng  # the stream of this trial, whatever was asked before
        if self.encoding.tree is not None:
            settings = [announced(trial, self.encoding.space) for trial in trials]
            fixed = {**self.encoding.untried(settings), **fixed}  # what is given goes before
        own = self.encoding.branches
        ranges = {name: d for name, d in (ranges or {}).items() if name not in own}
        # Of a single number there is nothing to choose
        fixed = {n: d.low for n, d in ranges.items() if d.single()} | dict(fixed)
        choice = self._choose(fixed, ranges, pending, asked)
        if not self.learner.plans and (more := self._lacking(choice, fixed, trials, rng)):
            choice = self._choose({**fixed, **more}, ranges, pending, asked)
        self.asking[number] = choice
        return choice

    def _choose(
        self,
        fixed: Mapping[str, Any],
        ranges: Mapping[str, Numbers],
        pending: Sequence[Array],
        asked: int,
    ) -> Choice:
        self.learner.history.asked = asked
        among = self.points.having(fixed, ranges) if fixed or ranges else None
        choice = None
        for forgotten in range(len(pending) + 1):
            try:
                choice = self.learner.ask(among=among, pending=pending[forgotten:])
                break
            except (WaitingError, NothingLeftError):
                if not self.learner.plans:  # it has nothing to wait for
                    raise
        # With nothing pending, either, the plan has no play left for what is fixed
        return choice or self._optimistic(among)

    def _lacking(
        self,
        choice: Choice,
        fixed: Mapping[str, Any],
        trials: Sequence[FrozenTrial],
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Choices without which what is ``fixed`` has no place: those made, if it has one there."""
        encoding = self.encoding
        by = {of.by for name, of in encoding.branches.items() if name in fixed}
        if not by and (encoding.tree is None or not fixed):
            return {}
        params = encoding.decode(choice.x)
        if not encoding.has(params, fixed):
            return self._deciding(fixed, trials, rng)
        return {name: params[name] for name in by & params.keys() - fixed.keys()}

    def _deciding(
        self, fixed: Mapping[str, Any], trials: Sequence[FrozenTrial], rng: np.random.Generator
    ) -> dict[str, Any]:
        """Draw choices with which a setting can have what is ``fixed``, as complete trials do.

        Each combination that one of them has is as likely; none without such a trial.
        """
        deciding = self.encoding.deciding(fixed)
        given = {name: fixed[name] for name in deciding & fixed.keys()}
        found: dict[str, dict[str, Any]] = {}
        for trial in trials:
            if trial.state != TrialState.COMPLETE or not self.encoding.has(trial.params, fixed):
                continue
            if self.encoding.agrees(trial.params, given):
                free = {n: v for n, v in trial.params.items() if n in deciding - fixed.keys()}
                found[repr(sorted(free.items()))] = free
        return list(found.values())[int(rng.integers(len(found)))] if found else {}

    def _optimistic(self, among: object) -> Choice:
        """Choose the row with the best upper bound, of those not eliminated if there are any."""
        domain, learner = self.learner.domain, self.learner
        assert isinstance(domain, Finite)
        assert not isinstance(learner, MultiLearner)  # which plans nothing
        rows = np.arange(len(domain)) if among is None else np.asarray(among)
        kept = rows[learner.active()[rows]]
        rows = kept if len(kept) else rows
        row = int(rows[np.argmax(learner.band().bounds(domain.points[rows])[1])])
        return Choice(domain.points[row], row)

    def feasibility(self) -> Constraints | None:
        """Return the probability that all constraints hold; None without any, or a model of it."""
        learner = self.learner
        return learner.constraints() if isinstance(learner, Learner | MultiLearner) else None

    def feasible(self, x: Array) -> Array | None:
        """Return the probability that a trial at ``x`` (k, d) succeeds and violates nothing, (k,).

        None if nothing is known to fail.
        """
        constraints, successes = self.feasibility(), self._feasibility()
        known = [each(x) for each in (constraints, successes) if each is not None]
        return np.prod(known, axis=0) if known else None

    def distrusted_constraints(self) -> dict[str, tuple[int, ...]]:
        """Return name of a constraint -> numbers of the trials whose value of it is distrusted."""
        if not self._limited:
            return {}
        assert isinstance(self.learner, Learner | MultiLearner)
        found = {}
        for name, trust in self.learner.constraint_trust().items():
            doubtful = np.flatnonzero(trust < DISTRUSTED)
            if len(doubtful):
                found[name] = tuple(self._limited[name][k] for k in doubtful)
        return found

    @property
    def single(self) -> Learner | Balanced:
        """The learner of a study with one objective."""
        assert not isinstance(self.learner, MultiLearner)
        return self.learner

    def best_possible(self, x: Array) -> float:
        """Return the best value possible at ``x`` (d,): the optimistic confidence bound."""
        _, upper = self.single.band().bounds(x[None])
        return self.sign * float(upper[0])


def warmed(recipe: Recipe, encoding: Encoding, sources: Sequence[EarlierStudy]) -> Recipe:
    """Return the default method with what sources say about a space; a recipe without any."""
    mapped = tuple(found for source in sources if (found := source.on(encoding)) is not None)
    return recipes.robust(sources=mapped) if mapped else recipe


def build_with_points(
    recipe: Recipe,
    encoding: Encoding,
    aim: RobustObjective | None,
    signs: Sequence[float] | Array = (1.0,),
    probe: bool = False,
) -> tuple[Learner | Balanced | MultiLearner, Points]:
    """Build a recipe's learner on a search space, for an aim if there is one, and its points.

    With several ``signs``, which are 1 or -1, that of so many objectives.

    Raises
    ------
    RefusalError
        If the recipe cannot be used there, or not with tolerances, or the aim does not fit.
    """
    if len(signs) > 1:
        several = MultiLearner(encoding.box, len(signs), recipes.robust())
        return several, Points(encoding, encoding.box)
    learner = build_learner(recipe, encoding.box)
    points = Points(encoding, learner.domain)
    if aim is None:
        # The sampler says it, in the user's units, where a threshold is out of reach
        if isinstance(learner, Learner):
            learner.policy = in_direction(learner.policy, float(signs[0]))
        return learner, points
    if isinstance(learner, Balanced):
        raise RefusalError(
            "Tolerances need one belief about the values, and this recipe balances several "
            "learners: take another recipe, or leave out the tolerances."
        )
    if isinstance(learner.domain, Finite):
        raise RefusalError(
            "Tolerances need values between settings, and this recipe has a grid of "
            f"{len(learner.domain)} points: take a recipe that leaves the box as it is, or leave "
            "out the tolerances."
        )
    parts = aim.parts(learner.parts, encoding, float(signs[0]), probe)
    return Learner(learner.domain, parts), points


def moved(trials: Sequence[FrozenTrial]) -> bool:
    """Return True if any trial reports what was executed."""
    return any(EXECUTED in trial.user_attrs for trial in trials)
