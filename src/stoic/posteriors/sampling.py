"""Draws of the hyperparameters from their posterior: elliptical slice sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from stoic import linalg
from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.posteriors.fitting import Conditioning, Fitting, Problem
from stoic.posteriors.prior import Prior

_BURN_IN = 50  # steps, from the best hyperparameters
_EVERY = 10  # steps between two draws that are kept
_NARROW = 1e-9  # radians: a bracket in which there is nothing but its centre


def sample_hyperparameters(
    fitting: Fitting,
    domain: Domain,
    observations: Observations,
    stance: Conditioning,
    start: Prior,
    draws: int,
    rng: np.random.Generator,
) -> list[Prior]:
    """Priors with hyperparameters drawn from their posterior, given how the rows are judged.

    The density is that of ``fitting``, its log-normal priors times the marginal likelihood of the
    targets; row noise that the stance adds is held.

    Parameters
    ----------
    fitting:
        Priors of the hyperparameters and the units they are in.
    stance:
        From observations to targets: what noise it adds to a row under ``start``.
    start:
        Where the chain starts: the best hyperparameters.
    draws:
        How many. Each costs about 100 factorisations of an n x n matrix.
    """
    problem = Problem.of(fitting, domain, observations, stance, start)
    targets = stance(observations, start)
    kept = np.isfinite(targets.noise)
    told = ~np.isnan(observations.noise[kept])
    x, values = observations.x[kept], targets.values[kept] - problem.location
    own = observations.own_noise(start.noise)[kept]
    added = targets.noise[kept] - np.where(told, 0.0, own)

    def log_likelihood(u: Array) -> float:
        if ((u < problem.bounds[:, 0]) | (u > problem.bounds[:, 1])).any():
            return -math.inf
        prior = problem.prior(u)
        A = prior.kernel(x, x)
        A.flat[:: len(A) + 1] += added + np.where(told, 0.0, prior.noise)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                L = linalg.cholesky(A)
            except linalg.NotPositiveDefiniteError:
                return -math.inf
            z = linalg.solve_lower(L, values)
            value = float(-0.5 * np.dot(z, z) - np.log(np.diagonal(L)).sum())
        return value if math.isfinite(value) else -math.inf

    first = problem.coordinates(start)
    mean = np.where(problem.free, [prior.mu for prior in problem.priors], first)
    sd = np.where(problem.free, [prior.sigma for prior in problem.priors], 0.0)
    chain = elliptical_slices(log_likelihood, mean, sd, first, rng)
    found = []
    for step, u in zip(range(_BURN_IN + draws * _EVERY), chain, strict=False):
        if step >= _BURN_IN and step % _EVERY == 0:
            found.append(problem.prior(u))
    return found


def elliptical_slices(
    log_likelihood: Callable[[Array], float],
    mean: Array,
    sd: Array,
    start: Array,
    rng: np.random.Generator,
) -> Iterator[Array]:
    """A Markov chain in the density prod_k N(u_k; mean_k, sd_k^2) exp(log_likelihood(u)).

    Elliptical slice sampling [Murray2010]_, which has nothing to be tuned: a step draws an ellipse
    through u and a draw of the prior, and shrinks a bracket on it until the likelihood is above a
    random level below that of u. It does not move where the likelihood is 0.
    """
    u, here = start, log_likelihood(start)
    while True:
        direction = sd * rng.standard_normal(len(u))
        level = here + math.log(rng.random()) if math.isfinite(here) else math.inf
        angle = rng.uniform(0.0, 2.0 * math.pi)
        low, high = angle - 2.0 * math.pi, angle
        while high - low > _NARROW:
            proposed = mean + (u - mean) * math.cos(angle) + direction * math.sin(angle)
            there = log_likelihood(proposed)
            if there > level:
                u, here = proposed, there
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        yield u
