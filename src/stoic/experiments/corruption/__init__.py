"""Figures of [Bogunovic2022]_: corruptions with a bounded total."""

from typing import Any

from stoic.experiments.corruption import comparison, functions, pushing
from stoic.experiments.figure import Figure

FIGURES: tuple[Figure[Any, Any], ...] = (pushing.FIGURE, functions.FIGURE, *comparison.FIGURES)
