"""Elliptical slice sampling of the hyperparameters from their posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from scipy import optimize

from stoic import linalg
from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.posteriors.fitting import Conditioning, Fitting, Problem
from stoic.posteriors.prior import Prior

# The autocorrelation time is 2 to 12 steps in up to 6 dimensions, of 2 likelihoods each.
_BURN_IN = 20  # steps, from the mode
_EVERY = 4  # steps between two draws that are kept
_WIDER = 1.3  # a chain sticks where the approximation is narrower than the density
_STEP = 0.05  # prior deviations, for differences of the gradient
_NARROW = 1e-9  # radians: a bracket in which there is nothing but its centre


def sample_hyperparameters(
    fitting: Fitting,
    domain: Domain,
    observations: Observations,
    fitted_defence: Conditioning,
    start: Prior,
    draws: int,
    rng: np.random.Generator,
) -> list[Prior]:
    """Draw hyperparameters from their posterior, given the fitted defence.

    The density is that of ``fitting``, its log-normal priors times the marginal likelihood of the
    targets; row noise that the defence adds is held. Ellipses are those of a normal approximation
    at its mode [Nishihara2014]_: variance and lengthscales go together. A chain of this length does
    not leave a mode: where a short lengthscale and a large noise explain the targets equally well,
    as in pure noise, the draws are those of the mode nearest to ``start``.

    Parameters
    ----------
    fitting:
        Priors of the hyperparameters and the units they are in.
    fitted_defence:
        Fitted defence: its noise of a row under ``start`` is held.
    start:
        Start of the search for the mode: the best hyperparameters.
    draws:
        Number of draws. Each costs about ten factorisations of an n x n matrix, the mode and the
        curvature there a hundred and some for each hyperparameter.
    """
    density = LogDensity(Problem.of(fitting, domain, observations, fitted_defence, start), start)
    mode, root = normal_approximation(density, density.start)
    root = _WIDER * root

    def log_weight(w: Array) -> float:
        return density(mode + root @ w) + 0.5 * float(np.dot(w, w))

    chain = elliptical_slices(log_weight, np.zeros(len(mode)), rng)
    kept = islice(chain, _BURN_IN, _BURN_IN + draws * _EVERY, _EVERY)
    return [density.prior(mode + root @ w) for w in kept]


class LogDensity:
    """Log posterior density of the free hyperparameters, in deviations of their priors."""

    def __init__(self, problem: Problem, start: Prior) -> None:
        observations = problem.observations
        targets = problem.conditioning(observations, start)
        kept = np.isfinite(targets.noise)
        own = observations.own_noise(start.noise)[kept]
        self._x, self._values = observations.x[kept], targets.values[kept] - problem.location
        self._learned = np.isnan(observations.noise[kept])
        self._noise = targets.noise[kept] - np.where(self._learned, own, 0.0)
        self._problem, self._free = problem, problem.free
        free = [prior for prior, is_free in zip(problem.priors, self._free, strict=True) if is_free]
        self._mean = np.array([prior.mu for prior in free])
        self._sd = np.array([prior.sigma for prior in free])
        self._held = problem.coordinates(start)
        self.bounds = (problem.bounds[self._free] - self._mean[:, None]) / self._sd[:, None]
        self.start = (self._held[self._free] - self._mean) / self._sd

    def prior(self, v: Array) -> Prior:
        u = self._held.copy()
        u[self._free] = self._mean + self._sd * v
        return self._problem.prior(u)

    def __call__(self, v: Array) -> float:
        """Log density; -inf outside of the bounds, and where a covariance has no factor."""
        if ((v < self.bounds[:, 0]) | (v > self.bounds[:, 1])).any():
            return -math.inf
        prior = self.prior(v)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                L = self._factor(prior.kernel(self._x, self._x), prior)
            except linalg.NotPositiveDefiniteError:
                return -math.inf
            return self._of(L, linalg.solve_lower(L, self._values), v)

    def with_gradient(self, v: Array) -> tuple[float, Array]:
        """Log density and gradient, defined and smooth outside of the bounds as well."""
        prior = self.prior(v)
        with np.errstate(over="ignore", invalid="ignore"):
            K, pull = prior.kernel.wrt_theta(self._x)
            try:
                L = self._factor(K.copy(), prior)
            except linalg.NotPositiveDefiniteError:
                return -math.inf, np.zeros_like(v)
            z = linalg.solve_lower(L, self._values)
            weights = linalg.solve_upper(L, z)
            by_A = 0.5 * (np.outer(weights, weights) - linalg.cholesky_inverse(L))
            by_noise = prior.noise * np.diagonal(by_A)[self._learned].sum()
            gradient = np.append(pull(by_A), by_noise)[self._free] * self._sd - v
            value = self._of(L, z, v)
        if not np.isfinite(gradient).all():
            return -math.inf, np.zeros_like(v)
        return value, gradient

    def _factor(self, A: Array, prior: Prior) -> Array:
        A.flat[:: len(A) + 1] += self._noise + np.where(self._learned, prior.noise, 0.0)
        return linalg.cholesky(A)

    @staticmethod
    def _of(L: Array, z: Array, v: Array) -> float:
        value = float(-0.5 * (np.dot(z, z) + np.dot(v, v)) - np.log(np.diagonal(L)).sum())
        return value if math.isfinite(value) else -math.inf


def normal_approximation(density: LogDensity, start: Array) -> tuple[Array, Array]:
    """Laplace approximation: the mode in the bounds, and a root R of the covariance R R' there.

    In units of the prior's deviations; no direction is wider than the prior.
    """

    def descent(v: Array) -> tuple[float, Array]:
        value, gradient = density.with_gradient(v)
        return -value, -gradient

    with np.errstate(divide="ignore", invalid="ignore"):
        mode: Array = optimize.minimize(
            descent, start, jac=True, method="L-BFGS-B", bounds=density.bounds
        ).x
    if not math.isfinite(density(mode)):
        mode = start
    sides = _STEP * np.eye(len(mode))
    hessian = np.array([
        density.with_gradient(mode + side)[1] - density.with_gradient(mode - side)[1]
        for side in sides
    ]) / (2.0 * _STEP)  # fmt: skip
    precisions, directions = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    return mode, directions / np.sqrt(np.maximum(precisions, 1.0))


def elliptical_slices(
    log_weight: Callable[[Array], float], start: Array, rng: np.random.Generator
) -> Iterator[Array]:
    """Elliptical slice sampling [Murray2010]_ of the density N(w; 0, I) exp(log_weight(w)).

    It is a Markov chain and has no tuning parameters: a step draws an ellipse
    through w and a standard normal draw, and shrinks a bracket on it until the weight is above a
    random level below that of w. It does not move where the weight is 0.
    """
    w, here = start, log_weight(start)
    while True:
        direction = rng.standard_normal(len(w))
        level = here + math.log1p(-rng.random()) if math.isfinite(here) else math.inf
        angle = rng.uniform(0.0, 2.0 * math.pi)
        low, high = angle - 2.0 * math.pi, angle
        while high - low > _NARROW:
            proposed = w * math.cos(angle) + direction * math.sin(angle)
            there = log_weight(proposed)
            if there > level:
                w, here = proposed, there
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        yield w
