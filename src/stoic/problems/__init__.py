"""What is optimised: noiseless functions with their true maxima."""

from stoic.problems.base import Optimum, Problem
from stoic.problems.synthetic import (
    SMOOTH,
    Synthetic,
    branin_tilted,
    camel,
    forrester,
    forrester_negative,
    hartmann3,
    hosaki,
    mccormick,
    peaks,
    styblinski_tang3,
    two_sines,
)

__all__ = [
    "SMOOTH",
    "Optimum",
    "Problem",
    "Synthetic",
    "branin_tilted",
    "camel",
    "forrester",
    "forrester_negative",
    "hartmann3",
    "hosaki",
    "mccormick",
    "peaks",
    "styblinski_tang3",
    "two_sines",
]
