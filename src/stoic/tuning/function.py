"""Tune a Python function, without a command line and, by default, without a storage."""

from __future__ import annotations

import contextlib
import inspect
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
from stoic.integrations.optuna.encoding import check_fixed
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
from stoic.tuning.explaining import explanation, explanation_of_run
from stoic.tuning.given import add_missing, given_trials, stored
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
    callback: Callable[[optuna.Study, FrozenTrial], object] | None = None,
    possible: Sequence[float] | None = None,
    warm_start: Sequence[optuna.Study | TuningResult] = (),
    x0: Sequence[Mapping[str, Any]] | None = None,
    y0: Sequence[float] | None = None,
    fixed: Mapping[str, Any] | None = None,
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
        "float(1e-5, 1e-1, log)" or "choice(a, 0.5, true)"; a choice is a text unless Python reads
        it as something else.
    n_trials:
        Total number of finished trials, without those of ``y0``.
    direction:
        "minimize" or "maximize".
    storage:
        URL or Optuna storage to keep the study in; None keeps it in memory.
    study_name:
        In a storage, the study to create or to continue.
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
        Go on, too, if the first five trials of this call all fail and the study has no value, or
        ten in a row for a transient reason.
    callback:
        Called with the study and each trial that has ended; ``study.stop()`` in it, or True as its
        answer, ends the campaign.
    possible:
        Lowest and highest value that the objective can have: a value outside counts as nan, and
        stays in the study. Recorded with the study.
    warm_start:
        Earlier studies that inform this one, or results of this function with such a study, see
        :class:`~stoic.integrations.optuna.StoicSampler`; recorded with the study.
    x0:
        Settings to begin with, parameters -> value. Without ``y0`` they are the first trials.
    y0:
        Their results, if they were measured before; nan for a failed one. They are results like
        all others, of which some may be wrong. A call that goes on has them, and adds none twice;
        of processes that begin at one moment each does.
    fixed:
        Parameters -> value in this call; the result is the best setting that has them.
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
        ``keep_going`` that is raised after five trials, from what the objective raised last, and
        after ten transient failures in a row.

    Notes
    -----
    What ends a campaign early, ``KeyboardInterrupt`` or an error, has the study as its attribute
    ``study``.
    """
    check_at_least(1, n_trials=n_trials)
    ranges = parse_space(space, in_python=True)
    check_fixed(fixed or {}, ranges, "the space has")
    begun = given_trials(ranges, x0, y0, fixed or {})
    ending = Ending(confirm, until_settled)
    ending.check("fixed" if fixed else None)
    search = Search(
        space=ranges,
        name=study_name,
        goal=check_direction(direction),
        trials=n_trials + sum(trial.state.is_finished() for trial in begun),
        seed=seed,
        startup=n_startup_trials,
        said=check_arguments(robust_to_moves, tune),
        recipe=recipe,
        possible=PossibleValues.of(possible),
        warm_start=_studies(warm_start),
        fixed=stored(fixed or {}, ranges),
        ending=ending,
        repeats=repeats,
    )
    study, method = searched(search, storage, objective, catch, callback, keep_going, begun)
    return _result(study, method, search.fixed)


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
    callback: Callable[[optuna.Study, FrozenTrial], object] | None = None,
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
        space=parse_space(space, in_python=True),
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
        raise _with_study(
            RuntimeError(f"None of the {len(trials)} trials has usable values: {reason}"), study
        )
    return FrontResult(
        known.front, known.observed_front, known.trust, failed, failure_kinds(trials), known, study,
        Summary.around(study, trials, known).text(),
    )  # fmt: skip


def searched(
    search: Search,
    storage: str | BaseStorage | None,
    objective: Callable[[dict[str, Any]], Any],
    catch: tuple[type[Exception], ...],
    callback: Callable[[optuna.Study, FrozenTrial], object] | None,
    keep_going: bool,
    begun: Sequence[FrozenTrial] = (),
) -> tuple[optuna.Study, Recipe]:
    """Search by a Python function, after the trials it is ``begun`` with; see :func:`tune`."""
    check_at_least(1, n_trials=search.trials, repeats=search.repeats)
    _check_callback(callback)
    if storage is None and search.name is not None:
        raise RefusalError(
            f"A study named {search.name!r} is kept in a storage: give one, as in "
            "storage='sqlite:///studies.db', or leave out study_name."
        )
    opened, _, method, sampler = prepare(search, storage)
    study = open_study(opened, search.name, search.goal, search.space, sampler)
    method.record(study)
    if begun:
        add_missing(study, begun)
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
        again = "Call it again when that is over"
        if not hopeless.outage:
            again = "Mend the function and call it again"
        error = RuntimeError(f"{hopeless.finding} {again}, or say keep_going=True.")
        raise _with_study(error, study) from hopeless.__cause__
    except BaseException as interruption:
        _with_study(interruption, study)
        raise
    return study, method.recipe


def _studies(earlier: object) -> tuple[optuna.Study, ...]:
    """Return the studies that are meant: of one alone, of several, or of results that have one."""
    listed = earlier if isinstance(earlier, list | tuple) else [earlier]
    studies = [e.study if isinstance(e, TuningResult) else e for e in listed]
    found = tuple(each for each in studies if isinstance(each, optuna.Study))
    if len(found) == len(listed):
        return found
    raise RefusalError(f"warm_start is a list of Optuna studies, got {earlier!r}.")


def _check_callback(callback: object) -> None:
    """Refuse before the first trial what cannot be called with a study and a trial."""
    if callback is None:
        return
    try:
        inspect.signature(callback).bind("study", "trial")  # type: ignore[arg-type]
    except TypeError as error:
        raise RefusalError(
            f"callback is one function that takes the study and a trial, got {callback!r}."
        ) from error
    except ValueError:  # one of C, without a signature
        pass


def _with_study(error: BaseException, study: optuna.Study) -> BaseException:
    """Give an exception the study: it may be in memory alone."""
    with contextlib.suppress(AttributeError):  # of a frozen one
        if not hasattr(error, "study"):
            error.study = study  # type: ignore[attr-defined]
            error.add_note("The attribute study of this exception has the trials so far.")
    return error


class Calling(Observer):
    """Observer that passes every ended trial to a callback."""

    def __init__(
        self, study: optuna.Study, callback: Callable[[optuna.Study, FrozenTrial], object]
    ) -> None:
        self.study = study
        self.callback = callback

    def ended(self, trial: FrozenTrial, result: Result, explain: Explain) -> None:
        """Call back; the callback may call ``study.stop()`` as in Optuna, or return True."""
        with stoppable(self.study):
            answer = self.callback(self.study, trial)
        if (isinstance(answer, bool | np.bool_) and answer) or is_stopped(self.study):
            raise Stopped


class Stopped(Exception):  # noqa: N818 - no error
    """Request of a callback to stop the campaign."""


def _result(study: optuna.Study, recipe: Recipe, fixed: Mapping[str, Any]) -> TuningResult:
    trials = study.get_trials()  # copies: they are returned
    finished = [trial for trial in trials if trial.state.is_finished()]
    known = explanation_of_run(study, recipe, fixed, trials)
    failed = failures(finished)
    if known is None or known.recommended is None:
        infeasible = "no setting is known to be feasible" if known and known.infeasible else None
        unjudged = "no parameter is modelled" if known and known.observed_best else None
        bounds = (
            "all results are bounds" if any(bound_of(t) is not None for t in finished) else None
        )
        reason = infeasible or unjudged or next(iter(failed), bounds or "no value was finite")
        raise _with_study(
            RuntimeError(f"None of the {len(finished)} trials has a usable value: {reason}"), study
        )
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
