"""Tune a Python function, without a command line and, by default, without a storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, Trial, TrialState

from stoic.data import FailureKind
from stoic.integrations.optuna import Explanation
from stoic.integrations.optuna.explanation import FrontPoint
from stoic.integrations.optuna.internals import is_stopped, stoppable
from stoic.integrations.optuna.objective import RobustArguments, check_arguments
from stoic.integrations.optuna.partial import bound_of
from stoic.integrations.optuna.possible import PossibleValues
from stoic.integrations.recipe import Recipe
from stoic.objectives import MOST
from stoic.printable import ShownAsText
from stoic.refusal import RefusalError, check_at_least
from stoic.tuning.campaign import Explain, HopelessError, Observer, Stop, run
from stoic.tuning.ending import Ending
from stoic.tuning.explaining import explanation
from stoic.tuning.measured import Measured, measured
from stoic.tuning.objectives import Objective, check_direction, merge_objectives
from stoic.tuning.program import Result
from stoic.tuning.search import Search, prepare
from stoic.tuning.space import parse_space
from stoic.tuning.study import open_study
from stoic.tuning.trials import failure_kinds, failures
from stoic.tuning.views.summary import Summary


@dataclass(frozen=True, repr=False)
class TuningResult(ShownAsText):
    """Result of a campaign, in the user's units and direction.

    Attributes
    ----------
    x:
        The recommended parameters: of the tried ones, the best by the pessimistic confidence bound
        or the certificate.
    fun:
        Posterior mean there; not the observed value, which may be luck or an outlier.
    fun_std:
        Posterior standard deviation there.
    x_iters:
        Parameters of every finished trial, in the order of trials; n of them.
    func_vals:
        (n,) observed values, nan where a trial failed.
    trust:
        (n,) in [0, 1], how far each value is trusted; nan where a trial failed.
    observed_best:
        The trial with the best finite observed value.
    recommended:
        The trial whose parameters are ``x``.
    failures:
        Reason -> numbers of the trials that failed for it.
    failure_kinds:
        Number of a failed trial -> "transient", "infeasible" or "bad", if known.
    explanation:
        Everything else that is known, see ``stoic.integrations.optuna.explain``.
    study:
        The Optuna study, for plots and for more trials.
    text:
        Summary for people, as ``stoic show`` prints it.
    """

    x: dict[str, Any]
    fun: float
    fun_std: float
    x_iters: list[dict[str, Any]]
    func_vals: NDArray[np.float64]
    trust: NDArray[np.float64]
    observed_best: FrozenTrial | None
    recommended: FrozenTrial
    failures: Mapping[str, list[int]]
    failure_kinds: Mapping[int, FailureKind]
    explanation: Explanation
    study: optuna.Study
    text: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def params(self) -> dict[str, Any]:
        """Recommended parameters, ``x``."""
        return self.x


@dataclass(frozen=True, repr=False)
class FrontResult(ShownAsText):
    """Result of a campaign with several objectives, in the user's units and directions.

    Attributes
    ----------
    front:
        The recommended front, see ``stoic.integrations.optuna.Explanation``.
    observed_front:
        Trials whose observed values no other one's dominate; some may be outliers.
    trust:
        Number of a trial -> objective -> trust of its value.
    failures, failure_kinds, explanation, study, text:
        As of ``TuningResult``.
    """

    front: tuple[FrontPoint, ...]
    observed_front: tuple[FrozenTrial, ...]
    trust: Mapping[int, Mapping[str, float]]
    failures: Mapping[str, list[int]]
    failure_kinds: Mapping[int, FailureKind]
    explanation: Explanation
    study: optuna.Study
    text: str = ""

    def __str__(self) -> str:
        return self.text


def tune(
    objective: Callable[[dict[str, Any]], float | Measured],
    space: Mapping[str, object],
    *,
    n_trials: int = 50,
    direction: str = "minimize",
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    seed: int | None = None,
    n_startup_trials: int = 10,
    recipe: Recipe | str | None = None,
    confirm: int = 0,
    repeats: int = 1,
    until_settled: float | Literal["noise"] | None = None,
    catch: tuple[type[Exception], ...] = (Exception,),
    keep_going: bool = False,
    callback: Callable[[optuna.Study, FrozenTrial], None] | None = None,
    possible: Sequence[float] | None = None,
    warm_start: Sequence[optuna.Study] = (),
    **robust_to_moves: Unpack[RobustArguments],
) -> TuningResult:
    """Optimize a function that may be noisy, fail and return outliers.

    Parameters
    ----------
    objective:
        Parameters -> value, or ``stoic.Measured``, which also says what was executed and how noisy
        the value is. nan, or an exception in ``catch``, is a failed trial; so is ``stoic.Failed``,
        which reports the kind of failure. An infinite value is observed as it is.
    space:
        Name -> an Optuna distribution, a list of choices, or a text such as
        "float(1e-5, 1e-1, log)".
    n_trials:
        Total number of finished trials.
    direction:
        "minimize" or "maximize".
    storage:
        URL or Optuna storage to keep the study in; None keeps it in memory.
    study_name:
        With a storage, the study to create or to continue.
    seed:
        Makes the suggested parameters repeatable.
    n_startup_trials:
        Trials from a quasi-random sequence before the model decides.
    recipe:
        Method other than :func:`~stoic.recipes.robust`: a value such as
        ``recipes.rgp_ucb(budget=5.0)``, its text, or a function from a domain to a learner, see
        :class:`~stoic.integrations.optuna.StoicSampler`. What has a text is recorded with the
        study; without a recipe the recorded one is used.
    confirm:
        Largest number of measurements after the search that tell the settings that may be the best
        apart; ``result.explanation.confirmation`` has the outcome.
    repeats:
        Measurements of each trial. Its value is their median; it fails if half of them fail.
    until_settled:
        End the search when more trials can gain less than this, in the unit of the value, or with
        "noise" less than the standard deviation of the noise.
    catch:
        Exceptions of the objective that fail a trial instead of ending the campaign.
    keep_going:
        Go on, too, if the first five trials of this call all fail and the study has no value.
    callback:
        Called with the study and each trial that has ended; ``study.stop()`` ends the campaign.
    possible:
        Lowest and highest value that the objective can have: a value outside counts as nan, and
        stays in the study. Recorded with the study.
    warm_start:
        Earlier studies that inform this one, see
        :class:`~stoic.integrations.optuna.StoicSampler`; recorded with the study.
    **robust_to_moves:
        ``policy``, ``threshold``, ``margin``, ``tolerance``, ``radius``, ``p`` and ``probe``: for
        values that stay good when parameters are moved, see
        ``stoic.integrations.optuna.RobustObjective``; recorded with the study. Those not given are
        as recorded earlier, as far as that still fits.

    Raises
    ------
    RefusalError
        If the request makes no sense, or the storage cannot be opened.
    RuntimeError
        If no trial has a usable value; the message has the most frequent reason. Without
        ``keep_going`` that is raised after five trials, from what the objective raised last.
    """
    search = Search(
        space=parse_space(space),
        name=study_name,
        goal=check_direction(direction),
        trials=n_trials,
        seed=seed,
        startup=n_startup_trials,
        said=check_arguments(robust_to_moves),
        recipe=recipe,
        possible=PossibleValues.of(possible),
        warm_start=tuple(warm_start),
        ending=Ending(confirm, until_settled),
        repeats=repeats,
    )
    return _result(*searched(search, storage, objective, catch, callback, keep_going))


def tune_front(
    objective: Callable[[dict[str, Any]], Sequence[float] | Mapping[str, float] | Measured],
    space: Mapping[str, object],
    directions: Mapping[str, str],
    *,
    n_trials: int = 50,
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    seed: int | None = None,
    n_startup_trials: int = 10,
    catch: tuple[type[Exception], ...] = (Exception,),
    keep_going: bool = False,
    callback: Callable[[optuna.Study, FrozenTrial], None] | None = None,
) -> FrontResult:
    """Optimize a function with two or three objectives that may be noisy, fail and return outliers.

    Parameters
    ----------
    objective:
        Parameters -> values, in the order of ``directions`` or by name, or
        ``stoic.Measured(values=...)``. nan in one of them is a failed trial whose other values
        count.
    space:
        As of :func:`tune`.
    directions:
        Name of each objective -> "minimize" or "maximize".
    n_trials, storage, study_name, seed, n_startup_trials, catch, keep_going, callback:
        As of :func:`tune`.

    Raises
    ------
    RefusalError, RuntimeError
        As of :func:`tune`.
    """
    if not isinstance(directions, Mapping):
        raise RefusalError(
            'directions has one for each name, as in {"loss": "minimize", "size": "minimize"}, got '
            f"{directions!r}."
        )
    objectives = tuple(Objective(str(n), check_direction(d)) for n, d in directions.items())
    if not 2 <= len(objectives) <= MOST:
        raise RefusalError(
            f"tune_front needs two or three objectives, got {len(objectives)}: stoic.tune is for "
            "one, and more can be constraints."
        )
    search = Search(
        space=parse_space(space),
        name=study_name,
        goal=objectives,
        trials=n_trials,
        seed=seed,
        startup=n_startup_trials,
    )
    study, recipe = searched(search, storage, objective, catch, callback, keep_going)
    trials = study.get_trials()
    known = explanation(study, recipe, trials=trials)
    failed = failures(trials)
    if known is None or not known.front:
        reason = next(iter(failed), "no value was finite")
        raise RuntimeError(f"None of the {len(trials)} trials has usable values: {reason}")
    return FrontResult(
        known.front, known.observed_front, known.trust, failed, failure_kinds(trials), known, study,
        Summary.around(study, trials, known).text(),
    )  # fmt: skip


def searched(
    search: Search,
    storage: str | BaseStorage | None,
    objective: Callable[[dict[str, Any]], Any],
    catch: tuple[type[Exception], ...],
    callback: Callable[[optuna.Study, FrozenTrial], None] | None,
    keep_going: bool,
) -> tuple[optuna.Study, Recipe]:
    """Search by a Python function; return the study and its recipe."""
    check_at_least(1, n_trials=search.trials, repeats=search.repeats)
    opened, _, method, sampler = prepare(search, storage)
    study = open_study(opened, search.name, search.goal, search.space, sampler)
    method.record(study)
    # Of a study that goes on, the objectives may have been given in another order
    given = () if isinstance(search.goal, str) else search.goal
    order = [each.name for each in merge_objectives(study, given)] if given else []
    names = [each.name for each in given]

    def measure(trial: Trial, repeat: int) -> Result:
        return measured(study, trial, objective, catch, order, names)

    observer = Observer() if callback is None else Calling(study, callback)
    try:
        # Stop() is not entered: Ctrl-C raises in the objective, as in any function
        run(study, search, measure, observer, Stop(), method, keep_going)
    except Stopped:
        pass
    except HopelessError as hopeless:
        raise RuntimeError(
            f"{hopeless.finding} Mend the function and call it again, or say keep_going=True."
        ) from hopeless.__cause__
    return study, method.recipe


class Calling(Observer):
    """Observer that passes every ended trial to a callback."""

    def __init__(
        self, study: optuna.Study, callback: Callable[[optuna.Study, FrozenTrial], None]
    ) -> None:
        self.study = study
        self.callback = callback

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """Call back; as in Optuna, the callback may call ``study.stop()``."""
        with stoppable(self.study):
            self.callback(self.study, trial)
        if is_stopped(self.study):
            raise Stopped


class Stopped(Exception):  # noqa: N818 - no error
    """Request of a callback to stop the campaign."""


def _result(study: optuna.Study, recipe: Recipe) -> TuningResult:
    trials = study.get_trials()  # copies: they are returned
    finished = [trial for trial in trials if trial.state.is_finished()]
    known = explanation(study, recipe, trials=trials)
    failed = failures(finished)
    if known is None or known.recommended is None:
        infeasible = "no setting is known to be feasible" if known and known.infeasible else None
        unjudged = "no parameter is modelled" if known and known.observed_best else None
        bounds = (
            "all results are bounds" if any(bound_of(t) is not None for t in finished) else None
        )
        reason = infeasible or unjudged or next(iter(failed), bounds or "no value was finite")
        raise RuntimeError(f"None of the {len(finished)} trials has a usable value: {reason}")
    trust = {row.number: row.trust for row in known.rows}
    return TuningResult(
        x=known.recommended.params,
        fun=known.recommended_mean,
        fun_std=known.recommended_std,
        x_iters=[trial.params for trial in finished],
        func_vals=np.array(
            [
                # A pruned trial has its last intermediate value there
                trial.values[0] if trial.state == TrialState.COMPLETE else np.nan
                for trial in finished
            ]
        ),
        trust=np.array([trust.get(trial.number, np.nan) for trial in finished]),
        observed_best=known.observed_best,
        recommended=known.recommended,
        failures=failed,
        failure_kinds=failure_kinds(finished),
        explanation=known,
        study=study,
        text=Summary.around(study, trials, known).text(),
    )
