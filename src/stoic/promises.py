"""Putative regret bounds of base learners [Pacchiano2020]_, and the deviation of mean rewards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

Bound = Callable[[int], float]

_PRIOR_PLAYS = 32.0  # N_0; the deviation is tightest, roughly, after 12 times as many plays


@dataclass(frozen=True, slots=True)
class Promise:
    """Putative regret bound R(N) = min(scale N^power + rate N, most N) after N of its own plays.

    Parameters
    ----------
    scale, power:
        Of the sublinear part: power 1/2 for UCB, 1 / (1 + alpha) or more under heavy tails.
    rate:
        Regret per play that does not vanish: an error of the model.
    most:
        Largest regret of one play, in units of the results.
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
    """Confidence radius of the mean of rewards in [0, 1], uniform in time.

    sqrt(proxy (N + N_0) (ln(1 + N / N_0) + 2 ln(M / delta))) / N with N_0 = 32, the mixture bound
    of [AbbasiYadkori2013]_ for one coordinate, for each of M learners with delta / M of delta.

    Parameters
    ----------
    plays, learners:
        N >= 1 and M.
    delta:
        Failure probability, for both sides, all learners and all N together.
    proxy:
        Variance proxy of one reward (sub-Gaussian): 1/4 for the reward around its mean at the input
        that was played, and 1/4 for the best mean of a random action set around its own, by
        Hoeffding's lemma.
    """
    doubt = math.log1p(plays / _PRIOR_PLAYS) + 2.0 * math.log(learners / delta)
    return math.sqrt(proxy * (plays + _PRIOR_PLAYS) * doubt) / plays
