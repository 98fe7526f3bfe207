"""Figures of [Ezzerg2026]_: outliers of unbounded size, bounded in number."""

from stoic.experiments.outliers import (
    both_signs,
    forrester_clean,
    forrester_corrupted,
    lunar_lander,
    sizes,
    tuning,
    weights,
)

FIGURES = (
    weights.FIGURE,
    forrester_clean.FIGURE,
    forrester_corrupted.FIGURE,
    sizes.FIGURE,
    both_signs.FIGURE,
    tuning.FIGURE,
    lunar_lander.FIGURE,
)
