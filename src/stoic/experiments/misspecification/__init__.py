"""Figures of [Bogunovic2021b]_, which has none of its own: a model that is wrong by at most eps."""

from stoic.experiments.misspecification import errors, mismatch

FIGURES = (errors.FIGURE, mismatch.FIGURE)

__all__ = ["FIGURES", "errors", "mismatch"]
