"""What a learner promises to lose at most, and how far its rewards may be from what they show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Bound = Callable[[int], float]

_PRIOR_PLAYS = 32.0  # where the deviation is tightest, roughly: after 12 times as many plays


@dataclass(frozen=True, slots=True)
class Promise:
    """A bound on regret, R(N) = min(scale N^power + rate N, most N), after N of its own plays.

    Parameters
    ----------
    scale, power:
        Of what is learned: 1/2 for UCB, 1 / (1 + alpha) or more under heavy tails.
    rate:
        Of what is never learned, per play: an error of the model.
    most:
        No play can cost more, in units of the results.
    """

    scale: float
    power: float = 0.5
    rate: float = 0.0
    most: float = 1.0

    def __post_init__(self) -> None:
        numbers = (self.scale, self.power, self.rate, self.most)
        if not all(0.0 <= number < math.inf for number in numbers):
            raise ValueError(f"A promise is made of finite numbers >= 0, got {self}.")

    def __call__(self, plays: int) -> float:
        learned = self.scale * math.pow(plays, self.power)
        return min(learned + self.rate * plays, self.most * plays)


def deviation(plays: int, learners: int, delta: float, proxy: float = 0.5) -> float:
    """How far the mean of rewards in [0, 1] may be from what it estimates, at all times at once.

    sqrt(proxy (N + N_0) (ln(1 + N / N_0) + 2 ln(M / delta))) / N with N_0 = 32, the mixture bound
    of [AbbasiYadkori2013]_ for one coordinate, for each of M learners with delta / M of delta.

    Parameters
    ----------
    plays, learners:
        N >= 1 and M.
    delta:
        Failure probability, for both sides, all learners and all N together.
    proxy:
        One reward deviates as a Gaussian of this variance does: 1/4 for the reward around its mean
        at the input that was played, and 1/4 for the best mean of a random action set around its
        own, by Hoeffding's lemma.
    """
    doubt = math.log1p(plays / _PRIOR_PLAYS) + 2.0 * math.log(learners / delta)
    return math.sqrt(proxy * (plays + _PRIOR_PLAYS) * doubt) / plays
