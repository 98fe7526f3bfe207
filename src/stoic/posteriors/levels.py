"""Truncation levels b_t for observations with a bounded (1 + alpha)-th moment.

Notation: v bounds E|y|^(1 + alpha) of an observation about the prior mean, 0 < alpha <= 1; t
counts the observations so far; m counts features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Constants = Literal["practice", "theory"]


def check_moment(moment: float, alpha: float) -> None:
    """Refuse a moment bound that truncates nothing or all, and an alpha outside (0, 1]."""
    if isinstance(moment, str) or not 0.0 < moment < math.inf:
        raise ValueError(
            f"A moment bound is a positive finite number, got {moment!r}: give v with "
            "E|y|^(1 + alpha) <= v, for a smaller alpha if the moment is infinite."
        )
    if isinstance(alpha, str) or not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha is in (0, 1], got {alpha!r}: 1 is for a finite variance.")


def check_form(constants: str) -> None:
    """Refuse an unknown choice of the constants."""
    if constants not in ("practice", "theory"):
        raise ValueError(f"constants is 'practice' or 'theory', got {constants!r}.")


def check_constants(constants: str, horizon: int, delta: float) -> None:
    """Refuse an unknown choice of the constants, or numbers for which they are undefined."""
    check_form(constants)
    if horizon < 1 or not 0.0 < delta < 1.0:
        raise ValueError(
            f"The theory needs a horizon >= 1 and 0 < delta < 1, got {horizon!r} and {delta!r}."
        )


def growing_level(t: int, moment: float, alpha: float) -> float:
    """b_t = v^(1 / (1 + alpha)) t^(1 / (2 (1 + alpha))): Theorem 1 of [Chowdhury2019]_."""
    power = 1.0 / (1.0 + alpha)
    return float(moment**power * t ** (0.5 * power))


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """b_t of a truncation in each of m features: Lemma 1 and Theorem 4 of [Chowdhury2019]_.

    b_t = (v / L)^(1 / (1 + alpha)) t^((1 - alpha) / (2 (1 + alpha))), where L is

    ====================  ================  =================
    features              theory            practice
    ====================  ================  =================
    given in advance      ln(2 m T / delta)  ln(m T)
    drawn from the data   ln(4 m T / delta)  ln((m + 1) T)
    ====================  ================  =================

    m is the length of the feature vector, over whose entries the union bound runs. L is at least
    ln 2, so that a horizon of 1 with one feature has a level.

    Parameters
    ----------
    horizon, delta:
        T and the failure probability.
    constants:
        ``"practice"`` is what the authors ran.
    drawn:
        True if the features are drawn from the data, as Nystroem's are.
    """

    horizon: int
    delta: float = 0.1
    constants: Constants = "practice"
    drawn: bool = False

    def __post_init__(self) -> None:
        check_constants(self.constants, self.horizon, self.delta)

    def logarithm(self, m: int) -> float:
        """L."""
        if self.constants == "theory":
            inside = (4.0 if self.drawn else 2.0) * m * self.horizon / self.delta
        else:
            inside = float((m + 1 if self.drawn else m) * self.horizon)
        return max(math.log(max(inside, 1.0)), math.log(2.0))

    def __call__(self, t: int, m: int, moment: float, alpha: float) -> float:
        power = 1.0 / (1.0 + alpha)
        return float((moment / self.logarithm(m)) ** power * t ** (0.5 * (1.0 - alpha) * power))
