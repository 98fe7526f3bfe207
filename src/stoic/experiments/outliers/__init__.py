"""Figures of [Ezzerg2026]_: outliers of unbounded size, bounded in number."""

from stoic.experiments.outliers import (
    forrester_clean,
    forrester_corrupted,
    lunar_lander,
    tuning,
    weights,
)

FIGURES = (
    weights.FIGURE,
    forrester_clean.FIGURE,
    forrester_corrupted.FIGURE,
    tuning.FIGURE,
    lunar_lander.FIGURE,
)

__all__ = [
    "FIGURES",
    "forrester_clean",
    "forrester_corrupted",
    "lunar_lander",
    "tuning",
    "weights",
]
