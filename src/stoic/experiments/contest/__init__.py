"""Ours: the default against other optimizers, with ordinary outliers and without."""

from stoic.experiments.contest import development, final, narrow, ordinary, tables

FIGURES = (
    development.QUICK,
    development.FIGURE,
    ordinary.FIGURE,
    narrow.FIGURE,
    tables.FIGURE,
    final.FIGURE,
)

__all__ = ["FIGURES", "development", "final", "narrow", "ordinary", "tables"]
