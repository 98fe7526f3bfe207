"""The threat matrix: every recipe against every lie."""

from stoic.experiments.matrix import figure

FIGURES = (figure.FIGURE,)

__all__ = ["FIGURES", "figure"]
