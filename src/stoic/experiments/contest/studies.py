"""Studies of the contest: a contender in a world, and the outcome."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import optuna
from optuna.trial import FrozenTrial, TrialState

from stoic.data import DISTRUSTED, SDS_95
from stoic.experiments.contest.contenders import EXPLAINED, contender
from stoic.experiments.contest.foreign import Adapter
from stoic.experiments.contest.scenes import World
from stoic.experiments.figure import Cell
from stoic.integrations.optuna import Explanation, explain


class Outcome(NamedTuple):
    """Outcome of one study and one recommendation: a row of the CSV file.

    A peer has two rows: one for its own recommendation, ``study.best_trial`` or its library's, and
    one, with "+ explain" in its name, for that of ``explain`` on the same trials.

    Attributes
    ----------
    score:
        Score of the recommended setting, as the ground truth defines it: 0 is the optimum.
    tried, settings:
        Best score of all queried settings, and the number of different ones.
    truth:
        Noiseless value of the recommended setting, in the user's units.
    mean, lower, upper:
        Estimate of it by ``explain`` with its 95 % interval; nan for a peer's own recommendation.
    covered:
        True if the truth is in the interval; None without one.
    outlier:
        True if every result at the recommended setting is an outlier; None if that is not known.
    undecided:
        True if ``explain`` reports being undecided; None for a peer's own recommendation.
    outliers, failed:
        Number of outliers, and of failed results.
    caught, rejected:
        Numbers of rejected outliers and of other rejected results; None for a peer's own
        recommendation.
    """

    panel: str
    method: str
    seed: int
    score: float
    tried: float
    truth: float
    mean: float
    lower: float
    upper: float
    covered: bool | None
    outlier: bool | None
    undecided: bool | None
    outliers: int
    failed: int
    caught: int | None
    rejected: int | None
    settings: int


def play(world: World, cell: Cell, trials: int) -> list[Outcome]:
    """Play one study; return a row for each of its recommendations.

    A result that is no number is a failed trial, as in Optuna's own loop.
    """
    method, ground = contender(cell.method), world.ground
    space = dict(ground.space)
    with quiet():
        sampler = method.sampler(space, cell.seed, trials)
        study = optuna.create_study(
            sampler=sampler, direction="maximize" if ground.sign > 0.0 else "minimize"
        )
        for t in range(trials):
            trial = study.ask(space)
            ground.suggest(trial)
            value = world.observe(trial.params, t)
            if math.isnan(value):
                study.tell(trial, state=TrialState.FAIL)
            else:
                study.tell(trial, value)
        played = study.get_trials(deepcopy=False)
        explained = _explained(world, cell, explain(study), played)
        if not method.peer:
            return [explained]
        if isinstance(sampler, Adapter):
            params: Mapping[str, Any] = sampler.optimizer.recommend()
        else:
            complete = [trial for trial in played if trial.value is not None]
            # ``study.best_trial``, or the first trial if all failed
            best = max(complete, key=lambda t: ground.sign * value_of(t), default=played[0])
            params = best.params
    own = _outcome(world, cell, played, params)
    return [own, explained._replace(method=cell.method + EXPLAINED)]


def _explained(
    world: World, cell: Cell, known: Explanation, trials: Sequence[FrozenTrial]
) -> Outcome:
    """Outcome of the recommendation of ``explain``, or of the first trial if there is none."""
    rejected = {row.number for row in known.rows if row.trust < DISTRUSTED}
    caught = sum(world.is_outlier(number) for number in rejected)
    mean, lower, upper = interval(known)
    outcome = _outcome(world, cell, trials, (known.recommended or trials[0]).params)
    return outcome._replace(
        mean=mean,
        lower=lower,
        upper=upper,
        covered=lower <= outcome.truth <= upper,
        undecided=known.undecided is not None,
        caught=caught,
        rejected=len(rejected) - caught,
    )


def interval(explanation: Explanation) -> tuple[float, float, float]:
    """Estimate and 95 % interval of the value of the recommended setting, in the user's units."""
    mean, half = explanation.recommended_mean, SDS_95 * explanation.recommended_std
    return mean, mean - half, mean + half


def _outcome(
    world: World, cell: Cell, trials: Sequence[FrozenTrial], params: Mapping[str, Any]
) -> Outcome:
    """Outcome of a recommendation that nothing is stated about."""
    ground = world.ground
    tried = {tuple(sorted(trial.params.items())) for trial in trials}
    here = [trial.number for trial in trials if trial.params == params]
    outlier = bool(here) and all(world.is_outlier(number) for number in here)
    return Outcome(
        *cell,
        score=ground.score(params),
        tried=min(ground.score(dict(setting)) for setting in tried),
        truth=ground.sign * ground.truth(params),
        mean=math.nan,
        lower=math.nan,
        upper=math.nan,
        covered=None,
        outlier=outlier if world.scene.marked else None,
        undecided=None,
        outliers=sum(world.is_outlier(trial.number) for trial in trials),
        failed=sum(trial.value is None for trial in trials),
        caught=None,
        rejected=None,
        settings=len(tried),
    )


def value_of(trial: FrozenTrial) -> float:
    """Return the value of a complete trial."""
    assert trial.value is not None
    return trial.value


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Optuna's line per trial and the warnings of other libraries."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
