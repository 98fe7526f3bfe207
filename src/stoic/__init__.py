"""Bayesian optimization that keeps working when its data lie.

    learner = model (prior x defence) x confidence x policy        over a domain

Start with :mod:`stoic.recipes`, or with ``stoic tune`` on the command line.
"""

from stoic import recipes
from stoic.data import Choice, Observations, Outcome, Recommendation, Targets
from stoic.domains import Box, Finite
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.pending import Waiting
from stoic.posteriors.prior import Prior

__all__ = [
    "Box",
    "Choice",
    "Finite",
    "GaussianProcess",
    "Learner",
    "Observations",
    "Outcome",
    "Prior",
    "Recommendation",
    "Targets",
    "Waiting",
    "recipes",
]
__version__ = "0.1.0"
