"""Posteriors over f: exact inference, hyperparameter fitting, information gain."""

from stoic.posteriors.arms import Arms
from stoic.posteriors.base import FittedDefence, Model, Posterior, as_observed
from stoic.posteriors.exact import Exact
from stoic.posteriors.information import (
    InformationBounds,
    greedy_information,
    information_bounds,
    information_upper_bound,
)
from stoic.posteriors.prior import Prior

__all__ = [
    "Arms",
    "Exact",
    "FittedDefence",
    "InformationBounds",
    "Model",
    "Posterior",
    "Prior",
    "as_observed",
    "greedy_information",
    "information_bounds",
    "information_upper_bound",
]
