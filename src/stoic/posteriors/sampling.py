"""Sampling of the hyperparameters from their posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy import optimize

from stoic import linalg
from stoic.data import Array, Observations
from stoic.domains import Domain
from stoic.posteriors.fitting import Conditioning, Fitting, Problem
from stoic.posteriors.prior import Prior

# The autocorrelation time is 1 to 4 steps in up to 6 dimensions, 8 without noise, 12 in 12.
_BURN_IN = 10  # steps, from the mode of the best hyperparameters
_EVERY = 3  # steps between two draws that are kept
_WIDER = 1.3  # a chain sticks where the approximation is narrower than the density
_STEP = 0.05  # prior deviations, for differences of the gradient
_SAME = 0.05  # prior deviations between two ends of climbs to one mode
_NEGLIGIBLE = 10.0  # nats below the mass of all: less than one draw in 20,000
_LOG_ODDS_OF_PRIOR = -math.log(3.0)  # one proposal in four
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
    targets; row noise that the defence adds is held. Two kinds of steps take turns. One proposes a
    draw from the mixture of the prior and of normal approximations at the modes [Tierney1994]_, so
    that the chain goes from one mode to another: a short lengthscale and a large noise often
    explain the targets equally well. The other is elliptical slice sampling on the ellipses of one
    component [Nishihara2014]_: variance and lengthscales go together.

    Parameters
    ----------
    fitting:
        Priors of the hyperparameters and the units they are in.
    fitted_defence:
        Fitted defence: its noise of a row under ``start`` is held.
    start:
        First start of the search for the modes: the best hyperparameters. The others are the
        canonical ones of a fit.
    draws:
        Number of draws. Each costs about ten factorisations of an n x n matrix, each mode and the
        curvature there some dozens and two for each hyperparameter.
    """
    density = LogDensity(Problem.of(fitting, domain, observations, fitted_defence, start), start)
    steps = chain(density, find_modes(density), rng)
    kept = islice(steps, _BURN_IN, _BURN_IN + draws * _EVERY, _EVERY)
    return [density.prior(v) for v in kept]


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
        # v = (u - mean) / sd ~ N(0, I) a priori; its bounds are (d, 2)
        self._mean = np.array([prior.mu for prior in free])
        self._sd = np.array([prior.sigma for prior in free])
        self._held = problem.coordinates(start)
        self.bounds = (problem.bounds[self._free] - self._mean[:, None]) / self._sd[:, None]
        self.starts = [
            (u[self._free] - self._mean) / self._sd for u in (self._held, *problem.starts())
        ]

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
                L = self._factor(K.copy(), prior)  # adds to its argument, and pull reads K
            except linalg.NotPositiveDefiniteError:
                return -math.inf, np.zeros_like(v)
            z = linalg.solve_lower(L, self._values)
            weights = linalg.solve_upper(L, z)
            by_A = 0.5 * (np.outer(weights, weights) - linalg.cholesky_inverse(L))
            by_noise = prior.noise * np.diagonal(by_A)[self._learned].sum()  # d / d log noise
            gradient = np.append(pull(by_A), by_noise)[self._free] * self._sd - v  # -v: of N(0, I)
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


@dataclass(frozen=True)
class Mode:
    """Normal approximation at a mode of a density [Tierney1986]_.

    Attributes
    ----------
    centre:
        The mode, shape (d,).
    root, inverse:
        Root R of the covariance R R', and R^-1, shape (d, d).
    height:
        log N(centre; centre, R R'), up to the constant that depends on d alone.
    log_mass:
        Logarithm of the integral of the density by this approximation, up to the same constant.
    """

    centre: Array
    root: Array
    inverse: Array
    height: float
    log_mass: float

    @classmethod
    def at(cls, density: LogDensity, centre: Array) -> Mode:
        """Approximate the density at a mode; no direction is wider than the prior's."""
        sides = _STEP * np.eye(len(centre))
        # Central differences, symmetric but for their error
        hessian = np.array([
            density.with_gradient(centre + side)[1] - density.with_gradient(centre - side)[1]
            for side in sides
        ]) / (2.0 * _STEP)  # fmt: skip
        precisions, directions = np.linalg.eigh(-0.5 * (hessian + hessian.T))
        widths = _WIDER / np.sqrt(np.maximum(precisions, 1.0))  # the prior has the precision 1
        height = -float(np.log(widths).sum())
        root, inverse = directions * widths, directions.T / widths[:, None]
        return cls(centre, root, inverse, height, density(centre) - height)

    def log_density(self, v: Array) -> float:
        """Return the log density of the approximation, up to the same constant."""
        w = self.inverse @ (v - self.centre)
        return self.height - 0.5 * float(np.dot(w, w))


def find_modes(density: LogDensity) -> list[Mode]:
    """Return the modes of a density that are found from its starts, without the negligible.

    The last is the prior: between modes, and in tails, a density may be far from all of its normal
    approximations.
    """
    centres: list[Array] = []
    for start in density.starts:
        centre = climb(density, start)
        if all(np.abs(centre - other).max() > _SAME for other in centres):
            centres.append(centre)
    modes = [Mode.at(density, centre) for centre in centres]
    total = float(np.logaddexp.reduce([mode.log_mass for mode in modes]))
    # None is kept if no start has a finite density
    kept = [mode for mode in modes if mode.log_mass > total - _NEGLIGIBLE] or modes[:1]
    eye = np.eye(len(centres[0]))
    return [*kept, Mode(np.zeros(len(eye)), eye, eye, 0.0, total + _LOG_ODDS_OF_PRIOR)]


def climb(density: LogDensity, start: Array) -> Array:
    """Return the mode in the bounds that L-BFGS-B finds; the start where it finds none."""

    def descent(v: Array) -> tuple[float, Array]:
        value, gradient = density.with_gradient(v)
        return -value, -gradient

    with np.errstate(divide="ignore", invalid="ignore"):
        mode: Array = optimize.minimize(
            descent, start, jac=True, method="L-BFGS-B", bounds=density.bounds
        ).x
    return mode if math.isfinite(density(mode)) else start


def chain(
    density: Callable[[Array], float], modes: Sequence[Mode], rng: np.random.Generator
) -> Iterator[Array]:
    """Run a Markov chain with this log density, from the first of its modes.

    Every step is an independent proposal from the mixture of the modes, and a slice of an ellipse
    of one of them.
    """
    masses = np.array([mode.log_mass for mode in modes])
    # A start where the density is 0 has no mass to weigh it by: all count alike
    if not np.isfinite(masses).all():
        masses = np.zeros(len(modes))
    logs = masses - np.logaddexp.reduce(masses)
    sums = np.exp(logs[:-1]).cumsum()  # without the last: the sum of all is 1 but for rounding

    def pick() -> Mode:
        return modes[int(np.searchsorted(sums, rng.random()))]

    def mixture(v: Array) -> float:
        parts = [log + mode.log_density(v) for log, mode in zip(logs, modes, strict=True)]
        return float(np.logaddexp.reduce(parts))

    v = modes[0].centre
    here = density(v)
    while True:
        mode = pick()
        proposed = mode.centre + mode.root @ rng.standard_normal(len(v))
        there = density(proposed)
        # Metropolis-Hastings for independent proposals; 1 less a draw from [0, 1) is never 0
        if there - here + mixture(v) - mixture(proposed) > math.log1p(-rng.random()):
            v, here = proposed, there
        v, here = elliptical_slice(density, v, here, pick(), rng)
        yield v


def elliptical_slice(
    density: Callable[[Array], float], v: Array, here: float, mode: Mode, rng: np.random.Generator
) -> tuple[Array, float]:
    """Step of elliptical slice sampling [Murray2010]_ on the ellipses of a normal approximation.

    It leaves any density as it is and has no tuning parameters: it draws an ellipse through ``v``
    and a normal draw, and shrinks a bracket on it until the density relative to the normal one is
    above a random level below that of ``v``. It does not move where the density is 0.

    Parameters
    ----------
    density:
        Logarithm of the density.
    v, here:
        State, and the log density there.

    Returns
    -------
    v, here:
        The next ones.
    """
    if not math.isfinite(here):
        return v, here
    w, direction = mode.inverse @ (v - mode.centre), rng.standard_normal(len(v))
    level = here + 0.5 * float(np.dot(w, w)) + math.log1p(-rng.random())
    angle = rng.uniform(0.0, 2.0 * math.pi)
    low, high = angle - 2.0 * math.pi, angle
    while high - low > _NARROW:
        turned = w * math.cos(angle) + direction * math.sin(angle)
        proposed = mode.centre + mode.root @ turned
        there = density(proposed)
        if there + 0.5 * float(np.dot(turned, turned)) > level:
            return proposed, there
        low, high = (angle, high) if angle < 0.0 else (low, angle)  # the angle 0 is v
        angle = rng.uniform(low, high)
    return v, here
