"""Posterior that is another one's in a box."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from stoic.data import Array, Booleans, Integers
from stoic.posteriors.base import Posterior
from stoic.posteriors.mixture import Averaged


@dataclass(frozen=True, eq=False)
class Refined(Averaged):
    """Averaged posterior whose mean and deviation in a box are those of a local posterior.

    Both jump at its faces, and at inputs outside whose own results are known. All else is that of
    the averaged one; but the deviation outside counts what that one takes for noise and the local
    one does not, since it is no noise, and no number of results nearby averages it away.

    Attributes
    ----------
    near:
        The posterior in the box.
    rows:
        The rows in the box, shape (m,), which it is given.
    trusted:
        Trust of all rows, shape (n,), by both.
    lower, upper:
        Corners of the box, shape (d,).
    misfit:
        Variance of the noise of the averaged one, less that of the local one.
    at_results:
        Input, as bytes -> mean and deviation there, in which its own result counts in full.
    """

    near: Posterior = field(kw_only=True)
    rows: Integers = field(kw_only=True)
    trusted: Array = field(kw_only=True)
    lower: Array = field(kw_only=True)
    upper: Array = field(kw_only=True)
    misfit: float = field(kw_only=True)
    at_results: Mapping[bytes, tuple[float, float]] = field(kw_only=True)

    def copy(self) -> Self:
        return replace(super().copy(), near=self.near.copy())

    def predict(self, x: Array) -> tuple[Array, Array]:
        mean, std = super().predict(x)
        if self.at_results:
            for i, own in enumerate(map(self.at_results.get, map(bytes, x))):
                if own is not None:
                    mean[i], std[i] = own
        std = np.hypot(std, math.sqrt(self.misfit))
        if (inside := self._inside(x)).any():
            mean[inside], std[inside] = self.near.predict(x[inside])
        return mean, std

    def predict_with_gradient(self, x: Array) -> tuple[Array, Array, Array, Array]:
        mean, std, slope, std_slope = super().predict_with_gradient(x)
        total = np.hypot(std, math.sqrt(self.misfit))
        share = np.divide(std, total, out=np.zeros_like(std), where=total > 0.0)
        predicted = mean, total, slope, share[:, None] * std_slope
        if (inside := self._inside(x)).any():
            near = self.near.predict_with_gradient(x[inside])
            for of, its in zip(predicted, near, strict=True):
                of[inside] = its
        return predicted

    def fantasise(self, x: Array, arms: Integers | None = None, at_most: float = math.inf) -> Self:
        near = self.near.fantasise(x, arms, at_most)
        return replace(super().fantasise(x, arms, at_most), near=near)

    def _inside(self, x: Array) -> Booleans:
        return np.asarray(((x >= self.lower) & (x <= self.upper)).all(axis=1))
