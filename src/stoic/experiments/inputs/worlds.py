"""Worlds of [Saday2025]_ (section 5 and appendix E), and perturbations of the inputs.

Choices that the paper leaves open are made here, the same for all methods.

- *Polynomial*: the paper modifies the function of [Bogunovic2018]_ in a way that it does not state;
  here it is as published. The polynomial kernel has degree 6, as f has, a lengthscale for each
  coordinate and an offset, and the prior the samples' mean. The RBF kernel that does not suit it
  has variance 1 in standardised units: the prior has the samples' mean and variance.
- *Insulin*: a squared exponential kernel with two lengthscales, fitted to 200 samples. Meals of 20
  to 80 g are announced, each as often as any other; 0 to 100 g may be eaten. Noise sd 1 mg/dl.
- *Pendulum*: see :func:`~stoic.problems.pendulum.pendulum`. Noise sd 0.1.

Samples are drawn without repetition from the points, with the noise of the rounds, once for all
trials. The prior's noise is the true one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from stoic import adversaries
from stoic.adversaries import Gaussian, GaussianMove, Perturbation
from stoic.data import Array, Observations
from stoic.distances import Distance
from stoic.domains import Finite
from stoic.environment import Environment
from stoic.kernels import RBF, Kernel, Linear, Polynomial, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting, marginal_likelihood
from stoic.posteriors.scales import mean_and_sd
from stoic.problems import Tabulated, insulin, pendulum, polynomial
from stoic.refusal import RefusalError
from stoic.satisficing import least_fragile

TABLE = "postprandial_glucose.csv"  # name of the table of insulin in a directory
MEAL = 1  # the coordinate of insulin that is given, and moved


@dataclass(frozen=True, eq=False)
class World:
    """Function on N points, and the assumptions about it.

    Attributes
    ----------
    problem, prior:
        f and its domain, and the prior of all methods.
    noise_sd:
        sigma, in units of f.
    distance:
        Distance that measures moves of inputs.
    contexts:
        Values of the given coordinate that may be announced; empty if none is given.
    """

    problem: Tabulated
    prior: Prior
    noise_sd: float
    distance: Distance
    contexts: tuple[float, ...] = ()

    @property
    def points(self) -> Array:
        """Points of the domain, shape (N, d)."""
        return self.problem.domain.points

    def fragility(self, threshold: float, context: float | None = None) -> float:
        """kappa_tau: the least fragility of any point, or of any with this context."""
        rows = None
        if context is not None:
            rows = self.problem.domain.having({MEAL: context}).arms
        f = self.problem.values
        return least_fragile(f, threshold, self.points, self.distance, rows).value


def samples(problem: Tabulated, count: int, noise_sd: float) -> Observations:
    """Observe so many points of the problem, with noise."""
    outcomes = Environment(problem, Gaussian(noise_sd), seed=0).initial(count)
    x = np.array([outcome.x for outcome in outcomes])
    observed = np.array([outcome.observed for outcome in outcomes])
    return Observations(x, observed, np.full(count, np.nan), problem.domain.locate(x))


def fitted(kernel: Kernel, problem: Tabulated, count: int, noise_sd: float) -> Prior:
    """Fit a prior of this family to noisy values of the problem."""
    observations = samples(problem, count, noise_sd)
    model = GaussianProcess(
        Prior(kernel, noise_sd**2), fitting=Fitting(marginal_likelihood, mean_and_sd)
    )
    found = model(problem.domain, observations).prior
    return Prior(found.kernel, noise_sd**2, found.mean)


@cache
def polynomial_on(side: int) -> Tabulated:
    """Polynomial on a grid with so many points a side."""
    problem = polynomial().on_grid(side)
    assert isinstance(problem.domain, Finite)
    return Tabulated(problem.name, problem.domain, problem.value(problem.domain.points))


def _polynomial(side: int, data: Path | None) -> World:
    problem = polynomial_on(side)
    kernel = Scaled(Polynomial(6, 1.0, Linear(np.ones(2))))
    return World(problem, fitted(kernel, problem, 500, 1.0), 1.0, Distance())  # section 5


def _misspecified(side: int, data: Path | None) -> World:
    """RBF kernel of variance 1 for standardised results: with mean 0, no result of f is likely."""
    problem = polynomial_on(side)
    centre, spread = mean_and_sd(problem.domain, samples(problem, 500, 1.0))
    return World(problem, Prior(Scaled(RBF(1.0), spread**2), 1.0, centre), 1.0, Distance())


def _insulin(side: int, data: Path | None) -> World:
    try:
        problem = insulin(data)
    except FileNotFoundError:
        raise RefusalError(f"There is no file {data}: say --data with the path of one.") from None
    except ImportError as error:
        raise RefusalError(
            f"{error} The figures take it as --data, or the directory that {TABLE} is in."
        ) from error
    except (OSError, ValueError) as error:
        raise RefusalError(str(error)) from error
    meals = np.unique(problem.domain.points[:, MEAL])
    announced = tuple(meals[(meals >= 20.0) & (meals <= 80.0)].tolist())
    prior = fitted(Scaled(RBF(np.ones(2))), problem, min(200, len(problem.domain)), 1.0)
    # Doses are executed as chosen: only meals are moved
    return World(problem, prior, 1.0, Distance(tolerance=[0.0, 1.0]), announced)


def _pendulum(side: int, data: Path | None) -> World:
    problem = pendulum(side)
    # ARD, fitted to 400 samples (appendix E.1)
    kernel = Scaled(RBF(np.ones(4)))
    return World(
        problem, fitted(kernel, problem, min(400, len(problem.domain)), 0.1), 0.1, Distance()
    )


POLYNOMIAL, MISSPECIFIED = "polynomial", "polynomial, RBF kernel"
INSULIN, PENDULUM = "insulin", "pendulum"
WORLDS: dict[str, Callable[[int, Path | None], World]] = {
    POLYNOMIAL: _polynomial,
    MISSPECIFIED: _misspecified,
    INSULIN: _insulin,
    PENDULUM: _pendulum,
}


@cache
def world(name: str, side: int, data: Path | None = None) -> World:
    """Build the world of this name, once in a process.

    Parameters
    ----------
    name, side:
        One of ``WORLDS``; and points of a grid in each coordinate, where insulin has its table's.
    data:
        Path of the table of insulin.

    Raises
    ------
    ValueError
        If the table is missing, or is not such a table.
    """
    return WORLDS[name](side, data)


RANDOM, LCB, WORST, GAUSSIAN = "random", "LCB", "worst case", "Gaussian"
BALLS: dict[str, Callable[[float, Distance], Perturbation]] = {
    RANDOM: adversaries.RandomMove,
    LCB: adversaries.LowestBound,
    WORST: adversaries.WorstCase,
}


def perturbation(name: str, radius: float, distance: Distance) -> Perturbation:
    """Build the perturbation of inputs.

    Parameters
    ----------
    name, radius:
        ``"random"``, ``"LCB"`` or ``"worst case"``, in the ball of this radius; or ``"Gaussian"``
        with this standard deviation.
    distance:
        Distance that defines the ball, and which coordinates move.
    """
    if name == GAUSSIAN:
        return GaussianMove(radius * np.asarray(distance.tolerance))  # 0 for coordinates that stay
    return BALLS[name](radius, distance)
