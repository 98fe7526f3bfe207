"""Importance of each parameter, by the robust model: outliers have no part in it."""

from __future__ import annotations

from collections.abc import Callable

from optuna.importance import BaseImportanceEvaluator
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.explaining import explain
from stoic.integrations.recipe import Recipe


class RobustImportanceEvaluator(BaseImportanceEvaluator):
    """Evaluator of ``optuna.importance.get_param_importances`` that outliers do not mislead.

    A parameter's importance is its total effect: the share of the variance of the posterior mean
    over the search space that is left when all other parameters are known. Shares of parameters
    that interact overlap, so they may add up to more than 1.

    Parameters
    ----------
    recipe:
        As in :func:`~stoic.integrations.optuna.explain`.

    Notes
    -----
    Jansen's estimator ([Saltelli2010]_, Table 2) with 512 Sobol points and their exchanges.
    """

    def __init__(self, recipe: Recipe | str | None = None) -> None:
        self.recipe = recipe

    def evaluate(
        self,
        study: Study,
        params: list[str] | None = None,
        *,
        target: Callable[[FrozenTrial], float] | None = None,
    ) -> dict[str, float]:
        """Evaluate the importance of ``params``, by default of all that are modelled.

        With several objectives ``target`` says for which, as in ``lambda trial: trial.values[0]``.

        Raises
        ------
        ValueError
            If ``target`` is none of the objectives, or missing where there are several, or if a
            parameter is not modelled.
        """
        place = _objective(study, target)
        if place is None:
            raise ValueError(
                "RobustImportanceEvaluator explains an objective: leave target out, or with "
                "several give one that returns its value, as in lambda trial: trial.values[0]."
            )
        explanation = explain(study, recipe=self.recipe)
        found = explanation.importances(*explanation.objectives[place : place + 1])
        if unknown := sorted(set(params or ()) - found.keys()):
            raise ValueError(
                f"{', '.join(unknown)}: not modelled, so without an importance. Modelled are "
                f"{', '.join(found) or 'none: too few results'}."
            )
        return found if params is None else {n: v for n, v in found.items() if n in params}


def _objective(study: Study, target: Callable[[FrozenTrial], float] | None) -> int | None:
    """Return the objective whose values a target returns; None if it returns others."""
    if target is None:
        return None if len(study.directions) > 1 else 0
    complete = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    found = [target(trial) for trial in complete]
    places = range(len(study.directions))
    return next((k for k in places if found == [t.values[k] for t in complete]), None)
