"""Figures of [Chowdhury2019]_: noise with heavy tails."""

from stoic.experiments.heavy_tails import comparison, truncation

FIGURES = (*comparison.FIGURES, truncation.FIGURE)
