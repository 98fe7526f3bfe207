"""Optuna sampler of stoic, and the explanation of a study.

The pure core knows arrays; everything about studies, trials and storage is in this folder.
"""

from stoic.integrations.optuna.certified import Certified, Curve
from stoic.integrations.optuna.confirming import CONFIRM, Confirmation, confirm
from stoic.integrations.optuna.diagnostics import Row
from stoic.integrations.optuna.executed import EXECUTED
from stoic.integrations.optuna.explaining import explain
from stoic.integrations.optuna.explanation import Explanation
from stoic.integrations.optuna.importance import RobustImportanceEvaluator
from stoic.integrations.optuna.objective import AIM, RobustObjective
from stoic.integrations.optuna.possible import POSSIBLE, PossibleValues
from stoic.integrations.optuna.sampler import StoicSampler
from stoic.integrations.optuna.synced_learner import FAILED, NOISE, failure_kind
from stoic.integrations.recipe import RECIPE, Recipe
from stoic.recipes import robust

__all__ = [
    "AIM",
    "CONFIRM",
    "EXECUTED",
    "FAILED",
    "NOISE",
    "POSSIBLE",
    "RECIPE",
    "Certified",
    "Confirmation",
    "Curve",
    "Explanation",
    "PossibleValues",
    "Recipe",
    "RobustImportanceEvaluator",
    "RobustObjective",
    "Row",
    "StoicSampler",
    "confirm",
    "explain",
    "failure_kind",
    "robust",
]
