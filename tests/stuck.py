"""A learner whose choices are known beforehand."""

import numpy as np

from stoic import Choice, Finite, Prior
from stoic.kernels import RBF
from stoic.policies import Policy

GRID = Finite(np.linspace(-1.0, 3.0, 25))
PRIOR = Prior(RBF(0.4), 0.04)


class Stuck(Policy):
    """Always the same arm, or the first of those that may be chosen if it is none of them."""

    needs_finite = True

    def __init__(self, arm):
        self.arm = arm

    def start(self, domain):
        return None

    def choose(self, view, state, n):
        points, arm = view.domain.points, self.arm
        if not view.among.contains(points[arm : arm + 1])[0]:
            arm = int(view.among.arms[0])
        return [Choice(points[arm], arm) for _ in range(n)], None
