"""The upper confidence bound [Srinivas2010]_."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoic.data import Array, Choice
from stoic.domains import Domain, Finite
from stoic.policies.base import Band, Policy, View, choice_of


@dataclass(frozen=True, eq=False, slots=True)
class UpperBound:
    """The surface mean + width * std."""

    band: Band

    def on(self, points: Finite) -> Array:
        mean, std = self.band.posterior.on(points)
        return mean + self.band.width * std

    def __call__(self, x: Array) -> Array:
        mean, std = self.band.posterior.predict(x)
        return mean + self.band.width * std

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        mean, std, mean_slope, std_slope = self.band.posterior.predict_with_gradient(x)
        return mean + self.band.width * std, mean_slope + self.band.width * std_slope


@dataclass(frozen=True, slots=True)
class UCB(Policy):
    """argmax of mean + width * std.

    A batch hallucinates, as GP-BUCB does [Desautels2014]_: at points that were handed out and not
    told yet, the standard deviation shrinks as if they had been observed, and the mean is held.

    Guarantee
    ---------
    If f lies in the band in all rounds, the regret of round t is at most 2 width_t std_t(x_t), so
    the sum over T rounds is O(width_T sqrt(T gamma_T)) [Srinivas2010]_. On a ``Box`` this supposes
    that the global maximum of the bound was found, which no local search can promise.
    """

    def start(self, domain: Domain) -> None:
        return None

    def choose(self, view: View, state: None, n: int) -> tuple[list[Choice], None]:
        band = view.band()
        if len(view.pending):
            band = band.fantasise(view.pending, None)
        choices = [choice_of(view.maximise(UpperBound(band)))]
        while len(choices) < n:
            last = choices[-1]
            band = band.fantasise(last.x[None], None if last.arm is None else np.array([last.arm]))
            choices.append(choice_of(view.maximise(UpperBound(band))))
        return choices, None
