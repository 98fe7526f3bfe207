"""Comparison of tried settings, and which of them to measure again. Ours.

Notation: k candidates, n joint posterior draws of f at them. The posterior accounts for the
selection: it has all results, also those of candidates that lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stoic.data import Array, Integers
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior

DRAWS = 4096  # standard error of a probability: at most 0.008
_MOST = 128  # candidates: those with the best upper bounds
_LEADER = 0.5  # how often the first of two draws is measured, as in [Russo2020]_


def draw_jointly(posterior: Posterior, x: Array, n: int, rng: np.random.Generator) -> Array:
    """Draw f at the points ``x`` (k, d) jointly from a posterior, shape (n, k).

    Of a mixture each part has its share of the draws.

    Raises
    ------
    TypeError
        For a posterior that is neither exact nor a mixture of exact ones.
    """
    if isinstance(posterior, MixturePosterior):
        shares = rng.multinomial(n, posterior.weights / posterior.weights.sum())
        drawn = [
            draw_jointly(part, x, int(share), rng)
            for part, share in zip(posterior.parts, shares, strict=True)
            if share
        ]
        return np.concatenate(drawn)
    if not isinstance(posterior, Exact):
        raise TypeError(f"Joint draws need an exact posterior, got {type(posterior).__name__}.")
    mean, covariance = posterior.jointly(x)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # rounding may make a variance negative
    # ~ N(mean, covariance)
    return np.asarray(mean + rng.standard_normal((n, len(mean))) @ root.T)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates compared by joint posterior draws of f.

    Attributes
    ----------
    draws:
        Shape (n, k).
    leader:
        The candidate that is recommended.
    """

    draws: Array
    leader: int

    @cached_property
    def probability(self) -> Array:
        """Probability of each candidate to be the best of them, shape (k,)."""
        n, k = self.draws.shape
        return np.asarray(np.bincount(self.draws.argmax(axis=1), minlength=k) / n)

    @cached_property
    def loss(self) -> Array:
        """Draws of the loss: f at the best of the candidates less f at the leader, shape (n,)."""
        loss: Array = self.draws.max(axis=1) - self.draws[:, self.leader]
        return loss

    def next_measurement(self, verified: bool, rng: np.random.Generator) -> int:
        """Choose the candidate to measure again.

        The leader, if it is not ``verified`` by a second measurement, made or pending: what was
        selected for its luck shows at once. Else by top-two Thompson sampling [Russo2020]_: a
        candidate drawn by its probability to be the best, or as often another one, drawn so, too.
        Several workers that draw independently need not know of each other.

        In 48 studies of four functions the loss against the best setting tried was smaller than
        with the knowledge gradient, 0.5 against 0.9 % of the range. Against more trials of the
        search it is no gain: see ``contest/confirm``.
        """
        if not verified:
            return self.leader
        first = int(rng.choice(len(self.probability), p=self.probability))
        others = self.probability.copy()
        others[first] = 0.0
        if rng.random() < _LEADER or not others.any():
            return first
        # One draw from the others, for draws that are repeated until another one comes
        return int(rng.choice(len(others), p=others / others.sum()))


def contenders(posterior: Posterior, x: Array) -> Integers:
    """Select the rows of ``x`` (k, d) whose upper bound reaches the best mean.

    Three standard deviations wide, and at most 128 rows, those with the highest upper bounds.
    """
    mean, std = posterior.predict(x)
    upper = mean + 3.0 * std
    order = np.argsort(-upper, kind="stable")[:_MOST]
    return np.sort(order[upper[order] >= mean.max()])
