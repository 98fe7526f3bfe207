"""Tune a Python function with several objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from stoic.data import FailureKind
from stoic.integrations.optuna import Explanation
from stoic.integrations.optuna.explanation import FrontPoint
from stoic.objectives import MOST
from stoic.printable import ShownAsText
from stoic.refusal import RefusalError
from stoic.tuning.explaining import explanation
from stoic.tuning.function import searched
from stoic.tuning.measured import Measured
from stoic.tuning.objectives import Objective, check_direction
from stoic.tuning.search import Search
from stoic.tuning.space import parse_space
from stoic.tuning.trials import failure_kinds, failures
from stoic.tuning.views.summary import Summary


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


def tune_front(
    objective: Callable[[dict[str, Any]], Sequence[float] | Measured],
    space: Mapping[str, object],
    directions: Mapping[str, str],
    *,
    n_trials: int = 50,
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    seed: int | None = None,
    n_startup_trials: int = 10,
    catch: tuple[type[Exception], ...] = (Exception,),
    callback: Callable[[optuna.Study, FrozenTrial], None] | None = None,
) -> FrontResult:
    """Optimize a function with two or three objectives that may be noisy, fail and return outliers.

    Parameters
    ----------
    objective:
        Parameters -> values in the order of ``directions``, or ``stoic.Measured(values=...)``. nan
        in one of them is a failed trial whose other values count.
    space:
        As of :func:`tune`.
    directions:
        Name of each objective -> "minimize" or "maximize".
    n_trials, storage, study_name, seed, n_startup_trials, catch, callback:
        As of :func:`tune`.

    Raises
    ------
    RefusalError, RuntimeError
        As of :func:`tune`.
    """
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
    study, recipe = searched(search, storage, objective, catch, callback)
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
