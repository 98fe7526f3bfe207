"""Test problems: noiseless functions with their true maxima.

A file or an argument of another form raises ``ValueError``, an outside library that is missing
``ImportError``; each says what to do.
"""

from stoic.problems.base import Optimum, Problem
from stoic.problems.draws import KernelSum, f1, gaussian_draw, kernel_sum
from stoic.problems.insulin import insulin
from stoic.problems.lunar_lander import LunarLander
from stoic.problems.misspecified import Approximated, Bump, Needle, Signs, nearest, perturbed
from stoic.problems.pendulum import pendulum
from stoic.problems.polynomial import polynomial
from stoic.problems.programs import Program, Runs
from stoic.problems.recorded import Records, light_sensors, stocks
from stoic.problems.robot import robot3d
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
from stoic.problems.tabulated import Tabulated
from stoic.problems.tuning import CifarTuning, DigitsTuning, Interpolated

__all__ = [
    "SMOOTH", "Approximated", "Bump", "CifarTuning", "DigitsTuning", "Interpolated", "KernelSum",
    "LunarLander", "Needle", "Optimum", "Problem", "Program", "Records", "Runs", "Signs",
    "Synthetic", "Tabulated", "branin_tilted", "camel", "f1", "forrester", "forrester_negative",
    "gaussian_draw", "hartmann3", "hosaki", "insulin", "kernel_sum", "light_sensors", "mccormick",
    "nearest", "peaks", "pendulum", "perturbed", "polynomial", "robot3d", "stocks",
    "styblinski_tang3", "two_sines",
]  # fmt: skip
