"""Figures of [Bogunovic2022]_: corruptions with a bounded total."""

from stoic.experiments.corruption import comparison, functions, pushing

FIGURES = (pushing.FIGURE, functions.FIGURE, *comparison.FIGURES)

__all__ = ["FIGURES", "comparison", "functions", "pushing"]
