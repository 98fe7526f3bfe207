"""Figures of [Saday2025]_: inputs that are perturbed before they are executed."""

from typing import Any

from stoic.experiments.figure import Figure
from stoic.experiments.inputs import averages, comparison, outliers, solutions

_THIRD, _FOURTH, *_OTHERS = comparison.FIGURES

FIGURES: tuple[Figure[Any, Any], ...] = (
    solutions.FIGURE_2,
    _THIRD,
    _FOURTH,
    solutions.FIGURE_5,
    *_OTHERS,
    averages.TABLE_2,
    outliers.FIGURE,
)
