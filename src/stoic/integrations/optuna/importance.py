"""Importance of each parameter, by the robust model: outliers have no part in it."""

from __future__ import annotations

from collections.abc import Callable

from optuna.importance import BaseImportanceEvaluator
from optuna.study import Study
from optuna.trial import FrozenTrial

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

        Raises
        ------
        ValueError
            If there is a ``target``, if the study has several objectives, or if a parameter is not
            modelled.
        """
        if target is not None:
            raise ValueError(
                "RobustImportanceEvaluator explains the objective, so it takes no target: leave it "
                "out, or use another evaluator of optuna.importance."
            )
        found = explain(study, recipe=self.recipe).importances()
        if unknown := sorted(set(params or ()) - found.keys()):
            raise ValueError(
                f"{', '.join(unknown)}: not modelled, so without an importance. Modelled are "
                f"{', '.join(found) or 'none: too few results'}."
            )
        return found if params is None else {n: v for n, v in found.items() if n in params}
