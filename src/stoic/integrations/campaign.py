"""A learner that is kept in step with an Optuna study.

Optuna minimises by default, the core maximises: the one sign flip is here.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.balancing import Balanced
from stoic.data import FAILURES, Array, Choice, FailureKind
from stoic.domains import Finite
from stoic.integrations.aim import Aim
from stoic.integrations.executed import EXECUTED, executed, finite
from stoic.integrations.optuna_internals import storage_of, study_id
from stoic.integrations.points import Points
from stoic.integrations.recipe import Recipe, where_inputs_move
from stoic.integrations.spaces import Encoding
from stoic.integrations.turns import announced
from stoic.integrations.unmodelled import violates
from stoic.learner import Learner
from stoic.pending import NothingLeft, Waiting
from stoic.policies.ucb import PLACE
from stoic.posteriors.feasibility import Feasibility
from stoic.recipes import robust
from stoic.refusal import Refusal

NOISE = "stoic:noise"  # user attribute: noise variance told with a trial's value
FAILED = "stoic:failed"  # user attribute: why a trial has no value, one of stoic.data.FAILURES

# So often a place may fail for no fault of its own. What takes its worker with it every time
# looks transient each time, and would be asked for ever.
_TRANSIENT = 2

# Points of the sequence that are looked at for a trial of the design. Of its first ten, 5 crashed
# where half of the domain does, and of those that are chosen 2.3 in two and 3.1 in five dimensions.
_LATER = 32
_STRIDE = 1009  # prime, and more than a design has: no point is looked at for two trials


Identity = tuple[int, int, object]  # of a study


def identity(study: Study, trials: Sequence[FrozenTrial]) -> Identity:
    """What a study shares with no other, from its first trial on: storage, number and beginning.

    A study that is deleted leaves its number to the next, and a storage in memory its place.
    """
    begun = trials[0].datetime_start if trials else None
    return id(storage_of(study)), study_id(study), begun


class Campaign:
    """A learner that is kept in step with the finished trials of one study.

    Results are told in the order of trials, as far as they have finished. Only a learner that plans
    is told in the order in which trials ended, by the storage, and begun anew if one turns up that
    ended before one that was told: so all workers, and who resumes, have the same plan.

    A finished trial that was run at no point of the learner's domain cannot be told: it is left out
    of the model.

    Parameters
    ----------
    study, search_space:
        What is searched.
    recipe:
        From a domain to a learner, which may have a grid of that domain for its own.
    aim:
        What is wanted where inputs move.
    probe:
        Whether the learner moves them, see :class:`~stoic.integrations.aim.Aim`.
    trials:
        Of the study, for whoever asks later whether it is the same one.
    """

    def __init__(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        recipe: Recipe,
        aim: Aim | None = None,
        probe: bool = False,
        trials: Sequence[FrozenTrial] = (),
    ) -> None:
        self.study = identity(study, trials)
        self.encoding = Encoding(search_space)
        self.sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
        self.recipe, self.aim, self.probe = recipe, aim, probe
        self._begin()

    def _begin(self) -> None:
        self.learner, self.points = made(
            self.recipe, self.encoding, self.aim, self.sign, self.probe
        )
        self.asking: dict[int, Choice] = {}  # by trial: whose question its result answers
        self.told: list[int] = []  # number of the trial behind each observation
        self.failed: list[int] = []  # and behind each failure
        self.left_out: dict[int, str] = {}  # number of a trial at no point -> where it was run
        self._seen: set[int] = set()  # numbers of all trials that were looked at
        self._latest = _ended(None)

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

    def asked(self, trial: FrozenTrial) -> Array | None:
        """The point of a trial's setting, shape (d,); None if there is none."""
        return self._at(self._asked(trial))

    def run(self, trial: FrozenTrial) -> Array | None:
        """The point where a trial was run, (d,), as far as that is known; None if there is none."""
        return self._at(self._run(trial))

    def _asked(self, trial: FrozenTrial) -> Mapping[str, Any] | None:
        """The setting of a trial; None if it lacks a parameter or one is out of its range."""
        params = trial.params
        if trial.state == TrialState.RUNNING:
            params = announced(trial, self.encoding.space)
        return params if self.encoding.contains(params) else None

    def _run(self, trial: FrozenTrial) -> Mapping[str, Any] | None:
        if (asked := self._asked(trial)) is None:
            return None
        return asked if (said := executed(trial)) is None else said.params

    def _at(self, params: Mapping[str, Any] | None) -> Array | None:
        if params is None:
            return None
        x = self.points.of(np.clip(self.encoding.encode(params), 0.0, 1.0))[0]
        return None if np.isnan(x).any() else x

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Tell the learner what has finished since the last time."""
        finished = [trial for trial in trials if trial.state.is_finished()]
        if self.learner.plans:
            finished.sort(key=_ended)
        new = [trial for trial in finished if trial.number not in self._seen]
        if new and self.learner.plans and _ended(new[0]) < self._latest:
            self._begin()
            new = finished
        for trial in new:
            self._seen.add(trial.number)
            self._latest = max(self._latest, _ended(trial))
            if (params := self._run(trial)) is None:
                continue
            if (x := self._at(params)) is not None:
                self._tell(trial, x)
            else:
                self.left_out[trial.number] = ", ".join(
                    f"{name}={params[name]}" for name in self.encoding.space
                )

    def _tell(self, trial: FrozenTrial, x: Array) -> None:
        kind, choice = failure_kind(trial), self.asking.pop(trial.number, None)
        if kind is None and violates(trial):
            kind = "infeasible"
        if kind == "transient":
            before = np.abs(self.learner.failures.of("transient") - x).max(axis=1) <= PLACE
            kind = kind if np.count_nonzero(before) < _TRANSIENT else None
        if kind is not None:
            self.learner.tell(x, failed=kind, choice=choice)
            self.failed.append(trial.number)
            return
        value = trial.value if trial.state == TrialState.COMPLETE else None
        y = np.nan if value is None else self.sign * value
        self.learner.tell(x, y, _noise(trial), choice=choice)
        self.told.append(trial.number)

    def start(self, trials: Sequence[FrozenTrial], number: int, seed: int) -> dict[str, Any]:
        """The parameters of a trial before the model decides: quasi-random ones, on the grid.

        A point where failure is likelier than a result, and than elsewhere, gives way to a later
        one of the sequence, which no other trial has: by what has finished and the number alone.
        """
        self.follow(trials)
        feasibility = self._feasibility()
        likeliest, most = None, -np.inf
        for k in range(_LATER if feasibility else 1):
            params = self.encoding.sobol(number + k * _STRIDE, seed)
            x = self.points.nearest(self.encoding.encode(params)[None])[0]
            if self.learner.domain.finite:
                params = self.encoding.decode(x)
            chance = float(feasibility(x[None])[0]) if feasibility else 1.0
            if chance > most:
                likeliest, most = params, chance
            if feasibility is None or chance >= min(0.5, feasibility.share):
                break
        assert likeliest is not None  # there is a first point
        return likeliest

    def _feasibility(self) -> Feasibility | None:
        """Where trials give results, by those that did and did not; ``None`` if all did."""
        observations = self.learner.observations
        finite = np.isfinite(observations.observed)
        failed = [self.learner.failures.of("infeasible"), observations.x[~finite]]
        if not sum(map(len, failed)):
            return None
        return Feasibility.learned(
            self.learner.domain, observations.x[finite], np.concatenate(failed)
        )

    def ask(
        self,
        trials: Sequence[FrozenTrial],
        number: int,
        fixed: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> Choice:
        """The choice for a trial, given all others.

        A learner that waits for others, any of which may have died without a word, is not waited
        for: it is asked as if the trial that has been running for longest were none, then the next
        one, so that what it is owed is run a second time. A plan that has nothing left for the
        parameters that are ``fixed`` gets a trial that does not count, where the most may be hoped
        for.
        """
        self.follow(trials)
        running = [
            x
            for trial in trials
            if trial.state == TrialState.RUNNING
            and trial.number != number
            and (x := self.asked(trial)) is not None
        ]
        self.learner.rng = rng
        among = self.points.having(fixed) if fixed else None
        choice = None
        for forgotten in range(len(running) + 1):
            try:
                choice = self.learner.ask(among=among, pending=running[forgotten:])
                break
            except (Waiting, NothingLeft):
                continue
        choice = choice or self._hopeful(among)
        self.asking[number] = choice
        return choice

    def _hopeful(self, among: object) -> Choice:
        """Of some rows that have not been ruled out, if any, the one whose upper bound is best."""
        domain = self.learner.domain
        assert isinstance(domain, Finite)
        rows = np.arange(len(domain)) if among is None else np.asarray(among)
        kept = rows[self.learner.active()[rows]]
        rows = kept if len(kept) else rows
        _, upper = self.learner.band().bounds(domain.points[rows])
        row = int(rows[np.argmax(upper)])
        return Choice(domain.points[row], row)

    def possible(self, x: Array) -> float:
        """The best value that is possible at ``x`` (d,), by the bound that is better."""
        _, upper = self.learner.band().bounds(x[None])
        return self.sign * float(upper[0])


def made(
    recipe: Recipe, encoding: Encoding, aim: Aim | None, sign: float = 1.0, probe: bool = False
) -> tuple[Learner | Balanced, Points]:
    """What a recipe makes of a search space, after an aim if there is one.

    Raises
    ------
    Refusal
        If the recipe cannot be used there, or not with tolerances, or the aim does not fit.
    """
    if aim is not None and recipe is robust:
        recipe = where_inputs_move
    learner = recipe(encoding.box)
    points = Points(encoding, learner.domain)
    if aim is None:
        return learner, points
    if isinstance(learner, Balanced):
        raise Refusal(
            "Tolerances need one belief about the values, and this recipe balances several "
            "learners: take another recipe, or leave out the tolerances."
        )
    if isinstance(learner.domain, Finite):
        raise Refusal(
            "Tolerances need values between settings, and this recipe has a grid of "
            f"{len(learner.domain)} points: take a recipe that leaves the box as it is, or leave "
            "out the tolerances."
        )
    return aim.learner(learner, encoding, sign, probe), points


def _ended(trial: FrozenTrial | None) -> tuple[datetime.datetime, int]:
    """When a trial ended, and its number; before all others if that is not known."""
    never = datetime.datetime.min
    return (never, -1) if trial is None else (trial.datetime_complete or never, trial.number)


def moved(trials: Sequence[FrozenTrial]) -> bool:
    """Whether any trial says what was executed."""
    return any(EXECUTED in trial.user_attrs for trial in trials)


def failure_kind(trial: FrozenTrial) -> FailureKind | None:
    """Why a failed trial has no value; None if that is not known, or it did not fail."""
    kind = trial.user_attrs.get(FAILED)
    if trial.state != TrialState.FAIL:
        return None
    return next((known for known in FAILURES if kind == known), None)


def _noise(trial: FrozenTrial) -> float | None:
    """The noise variance told with a trial; None if there is none, or none that could be one."""
    noise = finite(trial.user_attrs.get(NOISE))
    return noise if noise is not None and noise > 0.0 else None
