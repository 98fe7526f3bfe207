"""Optuna sampler of stoic, and the explanation of a study.

The pure core knows arrays; everything about studies, trials and storage is in this folder.
:class:`RobustImportanceEvaluator` is imported when it is first used: Optuna's evaluators, among
them its base, load scikit-learn where it is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoic.integrations.optuna.certified import Certified, Curve
from stoic.integrations.optuna.confirmed import Confirmation
from stoic.integrations.optuna.confirming import confirm
from stoic.integrations.optuna.diagnostics import Row
from stoic.integrations.optuna.executed import EXECUTED
from stoic.integrations.optuna.explaining import explain
from stoic.integrations.optuna.explanation import Explanation, FrontPoint
from stoic.integrations.optuna.objective import AIM, RobustObjective
from stoic.integrations.optuna.objectives import CENSORED, NOISE, VALUES
from stoic.integrations.optuna.possible import POSSIBLE, PossibleValues
from stoic.integrations.optuna.pruner import StoicPruner
from stoic.integrations.optuna.sampler import StoicSampler
from stoic.integrations.optuna.unmodelled import CONFIRM, FAILED, failure_kind
from stoic.integrations.recipe import RECIPE, Recipe
from stoic.recipes import robust

if TYPE_CHECKING:
    from stoic.integrations.optuna.importance import RobustImportanceEvaluator

__all__ = [
    "AIM",
    "CENSORED",
    "CONFIRM",
    "EXECUTED",
    "FAILED",
    "NOISE",
    "POSSIBLE",
    "RECIPE",
    "VALUES",
    "Certified",
    "Confirmation",
    "Curve",
    "Explanation",
    "FrontPoint",
    "PossibleValues",
    "Recipe",
    "RobustImportanceEvaluator",
    "RobustObjective",
    "Row",
    "StoicPruner",
    "StoicSampler",
    "confirm",
    "explain",
    "failure_kind",
    "robust",
]


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> object:
        if name != "RobustImportanceEvaluator":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from stoic.integrations.optuna.importance import RobustImportanceEvaluator

        return RobustImportanceEvaluator
