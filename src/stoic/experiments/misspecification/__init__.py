"""Figures of [Bogunovic2021b]_, which has none of its own: a model misspecified by at most eps."""

from stoic.experiments.misspecification import contextual, errors, mismatch, untested

FIGURES = (errors.FIGURE, mismatch.FIGURE, contextual.FIGURE, untested.FIGURE)
