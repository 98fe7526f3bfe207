"""A learner that is kept in step with an Optuna study.

Optuna minimises by default, the core maximises: the one sign flip is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.balancing import Balanced
from stoic.data import FAILURES, Array, Choice, FailureKind
from stoic.domains import Domain
from stoic.integrations.aim import Aim
from stoic.integrations.executed import EXECUTED, executed
from stoic.integrations.spaces import Encoding
from stoic.integrations.turns import announced
from stoic.learner import Learner
from stoic.policies.ucb import PLACE
from stoic.refusal import Refusal

Recipe = Callable[[Domain], Learner | Balanced]

NOISE = "stoic:noise"  # user attribute: noise variance told with a trial's value
FAILED = "stoic:failed"  # user attribute: why a trial has no value, one of stoic.data.FAILURES

# So often a place may fail for no fault of its own. What takes its worker with it every time
# looks transient each time, and would be asked for ever.
_TRANSIENT = 2


class Campaign:
    """A learner that is kept in step with the finished trials of one study.

    Parameters
    ----------
    study, search_space:
        What is searched.
    recipe:
        From a domain to a learner.
    aim:
        What is wanted where inputs move.
    probe:
        Whether the learner moves them, see :class:`~stoic.integrations.aim.Aim`.
    """

    def __init__(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        recipe: Recipe,
        aim: Aim | None = None,
        probe: bool = False,
    ) -> None:
        self.study = (id(study._storage), study._study_id)
        self.encoding = Encoding(search_space)
        self.sign = -1.0 if study.direction == StudyDirection.MINIMIZE else 1.0
        self.recipe, self.aim, self.probe = recipe, aim, probe
        self._begin()

    def _begin(self) -> None:
        self.learner = self.recipe(self.encoding.box)
        if self.aim is not None:
            if isinstance(self.learner, Balanced):
                raise Refusal(
                    "Tolerances need one belief about the values, and this recipe balances several "
                    "learners: take another recipe, or leave out the tolerances."
                )
            self.learner = self.aim.learner(self.learner, self.encoding, self.sign, self.probe)
        self.asking: dict[int, Choice] = {}  # by trial: whose question its result answers
        self.told: list[int] = []  # number of the trial behind each observation
        self.failed: list[int] = []  # and behind each failure

    def serves(
        self, study: Study, search_space: Mapping[str, BaseDistribution], probe: bool
    ) -> bool:
        return (
            self.study == (id(study._storage), study._study_id)
            and self.encoding.space == dict(search_space)
            and self.probe == probe
        )

    def asked(self, trial: FrozenTrial) -> Array | None:
        """The setting of a trial, shape (d,); None if it lacks a parameter or lies outside."""
        params = trial.params
        if trial.state == TrialState.RUNNING:
            params = announced(trial, self.encoding.space)
        if not self.encoding.contains(params):
            return None
        return np.clip(self.encoding.encode(params), 0.0, 1.0)

    def run(self, trial: FrozenTrial) -> Array | None:
        """Where a trial was run, shape (d,), as far as that is known."""
        if (asked := self.asked(trial)) is None:
            return None
        said = executed(trial)
        return asked if said is None else np.clip(self.encoding.encode(said.params), 0.0, 1.0)

    def follow(self, trials: Sequence[FrozenTrial]) -> None:
        """Tell the learner what has finished since the last time, in the order of trials."""
        finished = [
            (trial, x)
            for trial in trials
            if trial.state.is_finished() and (x := self.run(trial)) is not None
        ]
        known = {*self.told, *self.failed}
        if not known <= {trial.number for trial, _ in finished}:  # a study under the same number
            self._begin()
            known = set()
        for trial, x in finished:
            if trial.number not in known:
                self._tell(trial, x)

    def _tell(self, trial: FrozenTrial, x: Array) -> None:
        kind, choice = failure_kind(trial), self.asking.pop(trial.number, None)
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

    def ask(
        self,
        trials: Sequence[FrozenTrial],
        number: int,
        fixed: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> Choice:
        """The choice for a trial, given all others."""
        self.follow(trials)
        running = [
            x
            for trial in trials
            if trial.state == TrialState.RUNNING
            and trial.number != number
            and (x := self.asked(trial)) is not None
        ]
        self.learner.rng = rng
        among = self.encoding.part_with(fixed) if fixed else None
        choice = self.learner.ask(among=among, pending=running)
        self.asking[number] = choice
        return choice

    def possible(self, x: Array) -> float:
        """The best value that is possible at ``x`` (d,), by the bound that is better."""
        _, upper = self.learner.band().bounds(x[None])
        return self.sign * float(upper[0])


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
    noise = trial.user_attrs.get(NOISE)
    if isinstance(noise, int | float) and noise > 0.0 and np.isfinite(noise):
        return float(noise)
    return None
