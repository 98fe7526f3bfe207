"""Ours: the default against other optimizers, where ordinary results lie and where none does."""

from stoic.experiments.contest import development, final, tables

FIGURES = (development.QUICK, development.FIGURE, tables.FIGURE, final.FIGURE)

__all__ = ["FIGURES", "development", "final", "tables"]
