"""Ranking-weighted Gaussian process ensemble [Feurer2018]_, a peer of warm starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stoic.data import Array, Observations
from stoic.defences import Trust
from stoic.domains import Box
from stoic.models import GaussianProcess
from stoic.policies.improvement import log_improvement
from stoic.posteriors.base import Posterior
from stoic.posteriors.cavity import given_the_others
from stoic.posteriors.fitting import Fitting, marginal_likelihood
from stoic.posteriors.scales import mean_and_sd
from stoic.recipes.parts import family

_DESIGN = 5  # Sobol points before the ensemble
_DRAWS = 256  # of the ranking losses
_DILUTION = 0.95  # a source whose median loss is above this quantile of the target's is left out
_CANDIDATES = 2000


class RankingEnsemble:
    """Optimizer of the contest: sources and target are ordinary Gaussian processes.

    The weight of each is the share of the draws in which it misranks the fewest pairs of the new
    results: the sources by their posteriors, the target by its leave-one-out predictions. The next
    point maximises expected improvement over candidates, half of them near the incumbent.
    """

    def __init__(
        self, names: Sequence[str], sources: Sequence[tuple[Array, Array]], seed: int
    ) -> None:
        self.names, self.box = list(names), Box(np.zeros(len(names)), np.ones(len(names)))
        self.rng = np.random.default_rng(seed)
        self.design = self.box.spread(_DESIGN, self.rng)
        self.sources = [self._model(x, y) for x, y in sources]
        self.x: list[Array] = []
        self.y: list[float] = []

    def _model(self, x: Array, y: Array) -> tuple[Posterior, Observations, float, float]:
        rows = Observations(x, y, np.full(len(x), np.nan))
        model = GaussianProcess(
            family(self.box), Trust(), Fitting(marginal_likelihood, scale=mean_and_sd)
        )
        return model(self.box, rows), rows, float(np.mean(y)), float(np.std(y)) or 1.0

    def ask(self) -> dict[str, Any]:
        """Suggest a configuration."""
        if len(self.x) < _DESIGN:
            return self._named(self.design[len(self.x)])
        x, y = np.array(self.x), np.array(self.y)
        models = [*self.sources, self._model(x, y)]
        weights = self._weights(models, x, y)
        best = x[np.argmax(y)]
        # ~ N(best, 0.05^2), clipped to the cube
        near = np.clip(best + 0.05 * self.rng.standard_normal((_CANDIDATES // 2, len(best))), 0, 1)
        points = np.concatenate([self.rng.random((_CANDIDATES // 2, len(best))), near])
        mean, std = self._predict(models, weights, points)
        incumbent = self._predict(models, weights, x)[0].max()
        std = np.maximum(std, 1e-9)  # no logarithm of 0
        gain = np.log(std) + log_improvement((mean - incumbent) / std)[0]
        return self._named(points[int(np.argmax(gain))])

    def tell(self, params: Mapping[str, Any], loss: float) -> None:
        """Observe a result, which is minimised; nan for a failed run."""
        if np.isfinite(loss):
            self.x.append(np.array([params[name] for name in self.names]))
            self.y.append(-loss)

    def recommend(self) -> dict[str, Any]:
        """Return the setting with the best result."""
        return self._named(self.x[int(np.argmax(self.y))])

    def _named(self, x: Array) -> dict[str, Any]:
        return dict(zip(self.names, x.tolist(), strict=True))

    @staticmethod
    def _predict(models: Sequence[Any], weights: Array, x: Array) -> tuple[Array, Array]:
        """Mean sum_i w_i m_i and deviation (sum_i w_i^2 s_i^2)^1/2, each model standardised."""
        mean, variance = np.zeros(len(x)), np.zeros(len(x))
        for weight, (posterior, _, centre, unit) in zip(weights, models, strict=True):
            if weight:
                m, s = posterior.predict(x)
                mean += weight * (m - centre) / unit
                variance += (weight * s / unit) ** 2
        return mean, np.sqrt(variance)

    def _weights(self, models: Sequence[Any], x: Array, y: Array) -> Array:
        losses = []
        for posterior, rows, *_ in models:
            # The target: only its model has these results as its own
            own = rows.observed is not None and len(rows) == len(x) and np.array_equal(rows.x, x)
            m, s = given_the_others(posterior, rows) if own else posterior.predict(x)
            drawn = m + s * self.rng.standard_normal((_DRAWS, len(x)))  # (draws, n)
            # The target ranks each held-out prediction against the results themselves.
            other = np.broadcast_to(y, drawn.shape) if own else drawn
            wrong = (drawn[:, :, None] < other[:, None, :]) != (y[:, None] < y)  # (draws, n, n)
            losses.append(wrong.sum(axis=(1, 2)))
        found = np.array(losses)  # (models, draws), the target last
        poor = np.median(found, axis=1) > np.quantile(found[-1], _DILUTION)
        poor[-1] = False  # the target is always kept
        found[poor] = found.max() + 1  # so that it never has the least
        least = found == found.min(axis=0)
        least[:-1] &= ~least[-1]  # ties go to the target
        return np.asarray((least / least.sum(axis=0)).mean(axis=1))
