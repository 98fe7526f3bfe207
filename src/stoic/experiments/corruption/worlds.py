"""Functions and attacks of [Bogunovic2022]_ (section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from stoic.adversaries import Attack, Clipping, Flip, NoAttack, Subtraction, TopK
from stoic.confidence import Confidence, Fixed, Schedule
from stoic.data import Array, Booleans
from stoic.kernels import RBF, Kernel
from stoic.posteriors.prior import Prior
from stoic.problems import Tabulated, f1, robot3d
from stoic.recipes.corruption import square_root_of_log

NO_ATTACK = "no attack"
ATTACKS = (NO_ATTACK, "Clipping", "AggSub", "Top-3", "Top-5", "Flip")


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Random functions of one kind, and the assumptions about them.

    Attributes
    ----------
    name:
        Name as in settings.
    problem:
        Function from a seed to a problem on 100 points.
    kernel:
        Kernel of the prior of all methods.
    round_width, epoch_width:
        beta_t of GP-UCB and RGP-UCB, and beta_h of RGP-PE.
    inside:
        True if a point is in the target region, which two of the attacks favour.
    depth:
        h_max of aggressive subtraction, in units of f.
    linear:
        The attacks under which the paper sees GP-UCB's regret grow linearly.
    draw:
        The first seed that meets what the paper presupposes, see ``trials.Settings``.
    """

    name: str
    problem: Callable[[int], Tabulated]
    kernel: Kernel
    round_width: Schedule
    epoch_width: Confidence
    inside: Callable[[Array], bool]
    depth: float
    linear: tuple[str, ...]
    draw: int

    @property
    def prior(self) -> Prior:
        """Prior of all methods; its noise variance is lambda = 1."""
        return Prior(self.kernel, noise=1.0)

    def region(self, problem: Tabulated) -> Booleans:
        """Mask of the rows in the target region, shape (N,)."""
        return np.array([self.inside(x) for x in problem.domain.points])

    def best_inside(self, problem: Tabulated) -> float:
        """max f over the target region; minus infinity if it is empty."""
        return float(problem.values[self.region(problem)].max(initial=-np.inf))

    def can_be_misled(self, problem: Tabulated) -> bool:
        """Return True if x* is not in the region and h_max > f(x*) - best inside, as assumed."""
        return 0.0 < problem.optimum.value - self.best_inside(problem) < self.depth

    def attack(self, name: str, problem: Tabulated) -> Attack:
        """Build the attack of this name on one function."""
        attacks: dict[str, Callable[[], Attack]] = {
            NO_ATTACK: NoAttack,
            # Delta = 0.5, K = 3 and 5 (section 4)
            "Clipping": lambda: Clipping(self.inside, self.best_inside(problem), margin=0.5),
            "AggSub": lambda: Subtraction(self.inside, self.depth),
            "Top-3": lambda: TopK(problem.values, 3),
            "Top-5": lambda: TopK(problem.values, 5),
            "Flip": Flip,
        }
        return attacks[name]()


class Draw(NamedTuple):
    """One function, and the seed of its draw."""

    seed: int
    problem: Tabulated


@cache
def draw(world: str, k: int, seed: int | None = None) -> Draw:
    """Draw the function of trial k: that of a seed, or the k-th that ``can_be_misled`` accepts.

    Raises
    ------
    ImportError
        If the simulator of a world is missing.
    """
    kind = WORLDS[world]
    if seed is not None:
        return Draw(seed, kind.problem(seed))
    drawn = (Draw(seed, kind.problem(seed)) for seed in count())
    return next(islice((one for one in drawn if kind.can_be_misled(one.problem)), k, None))


def _upper_left(x: Array) -> bool:
    return bool(x[0] <= x[1])  # x_1 <= x_2 (section 4)


def _right(x: Array) -> bool:
    return bool(x[0] >= 0.0)  # r_x >= 0 (section 4)


# Section 4: the lengthscale 0.5, beta_t = sqrt(ln t) / 2, beta_h = 4, h_max = 1. The last
# number is the draw; how its rule came about stands in the notes on figure 2.
_FOUR = ("Clipping", "AggSub", "Top-3", "Top-5")
F1 = World("f1", f1, RBF(0.5), square_root_of_log(0.5), Fixed(4.0), _upper_left, 1.0, _FOUR, 42)
# Section 4: the lengthscale 2, of maximum likelihood, beta_t = 2 sqrt(ln t), beta_h = 6, h_max = 3;
# regret grows linearly under Top-3 and Top-5 alone.
ROBOT3D = World(
    "Robot3D", robot3d, RBF(2.0), square_root_of_log(2.0), Fixed(6.0), _right, 3.0, _FOUR[2:], 4
)
WORLDS = {world.name: world for world in (F1, ROBOT3D)}
