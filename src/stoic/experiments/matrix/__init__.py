"""Threat matrix: every recipe against every threat."""

from stoic.experiments.matrix import figure

FIGURES = (figure.FIGURE,)
