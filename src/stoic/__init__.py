"""Bayesian optimization that is robust to outliers, corruption and failures.

    learner = model (prior x defence) x confidence x policy        over a domain

Start with :mod:`stoic.recipes`, with :func:`stoic.tune`, or with ``stoic tune`` on the command
line. The names below are imported when they are first used: ``stoic --help`` needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoic import recipes
    from stoic.data import Choice, Observations, Outcome, Recommendation, Targets
    from stoic.domains import Box, Finite
    from stoic.learner import Learner
    from stoic.models import GaussianProcess
    from stoic.pending import WaitingError
    from stoic.posteriors.prior import Prior
    from stoic.recipes import Parts
    from stoic.tuning import Failed, FrontResult, Measured, TuningResult, tune, tune_front

_HOMES = {
    "data": ("Choice", "Observations", "Outcome", "Recommendation", "Targets"),
    "domains": ("Box", "Finite"),
    "learner": ("Learner",),
    "models": ("GaussianProcess",),
    "pending": ("WaitingError",),
    "posteriors.prior": ("Prior",),
    "recipes": ("Parts",),
    "tuning": ("Failed", "FrontResult", "Measured", "TuningResult", "tune", "tune_front"),
}

__all__ = [
    "Box", "Choice", "Failed", "Finite", "FrontResult", "GaussianProcess", "Learner", "Measured",
    "Observations", "Outcome", "Parts", "Prior", "Recommendation", "Targets", "TuningResult",
    "WaitingError", "recipes", "tune", "tune_front",
]  # fmt: skip
__version__ = "0.2.0"


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> object:
        if name == "recipes":
            return import_module("stoic.recipes")
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"stoic.{home}"), name)
        raise AttributeError(f"module 'stoic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__version__"]
