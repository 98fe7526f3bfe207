"""Figures of [Bogunovic2022]_: corruptions with a bounded total."""

from stoic.experiments.corruption import comparison, functions, pushing

FIGURES = (
    pushing.FIGURE,
    comparison.FIGURE_2,
    comparison.FIGURE_3,
    functions.FIGURE,
    comparison.FIGURE_5,
    comparison.FIGURE_6,
)

__all__ = ["FIGURES", "comparison", "functions", "pushing"]
