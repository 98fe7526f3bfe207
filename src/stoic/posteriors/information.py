"""The maximum information gain gamma_T."""

from __future__ import annotations

import math

import numpy as np

from stoic.domains import Finite
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import as_told
from stoic.posteriors.prior import Prior


def greedy_information(prior: Prior, domain: Finite, rounds: int) -> float:
    """max over ``rounds`` plays of 0.5 log det(I + K / noise), greedily, in nats.

    Greedy maximisation of a monotone submodular function reaches at least 1 - 1/e of the maximum
    [Srinivas2010]_, section V: divide by that to bound gamma_T from above. Costs O(rounds N U).
    """
    posterior = Arms(prior, as_told, domain)
    for _ in range(rounds):
        posterior.observe(int(np.argmax(posterior.variance)), prior.mean, prior.noise)
    return posterior.information


def information_upper_bound(greedy: float) -> float:
    """An upper bound on gamma_T from the greedy value: divided by 1 - 1/e [Srinivas2010]_."""
    return greedy / (1.0 - 1.0 / math.e)
