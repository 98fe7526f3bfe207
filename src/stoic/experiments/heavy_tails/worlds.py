"""Worlds of [Chowdhury2019]_ (section 6): three random functions and two tables of records.

Everything is in units of max |f|, so B = 1, and alpha and v are the paper's. Two of them do not
meet the theorems' assumptions, and are kept because the figure is the paper's:

- B bounds max |f|, not the norm of f in the space of the kernel, which is larger.
- v of the records is the mean of *all* squared entries. It bounds the average arm: the squares of
  the best stock have 4.6 times that mean, those of the best sensor 3.0 times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stoic.adversaries import Empirical, Noise, Pareto, StudentT
from stoic.data import Array
from stoic.domains import Finite
from stoic.kernels import RBF, Kernel, Matern52
from stoic.problems import KernelSum, Records, Tabulated, kernel_sum, light_sensors, stocks
from stoic.refusal import RefusalError


class Arms(NamedTuple):
    """Points to choose from with f on them, and the assumed kernel k."""

    problem: KernelSum | Tabulated
    kernel: Kernel


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """World of one trial.

    Attributes
    ----------
    arms, by_formula:
        Arms for all methods but those that need a formula; and the same arms with a squared
        exponential kernel, None where there is none.
    noise:
        Distribution of the rewards.
    alpha, moment:
        Assumption: E|y|^(1 + alpha) <= v, in units of max |f|.
    recorded:
        All that was recorded, a column for each arm; None of random functions.
    """

    arms: Arms
    by_formula: Arms | None
    noise: Noise
    alpha: float
    moment: float
    recorded: Array | None = None


# From the number of a trial, and the path of a table, to its instance.
World = Callable[[int, Path | None], Instance]


def _synthetic(
    kernel: Kernel, lowest: float, noise: StudentT | Pareto, alpha: float, formula: bool = True
) -> World:
    def world(seed: int, data: Path | None) -> Instance:
        grid = Finite(np.linspace(0.0, 1.0, 100))
        # A sum of p = 100 kernels (section 6), the default; B is max |f|, so it is 1 here
        f = kernel_sum(grid, kernel, seed, coefficients=(lowest, 1.0), normalise=True)
        arms = Arms(f, kernel)
        return Instance(arms, arms if formula else None, noise, alpha, noise.moment(alpha, 1.0))

    return world


def _stocks(seed: int, data: Path | None) -> Instance:
    return _recorded(_load(stocks, data), None)


def _sensors(seed: int, data: Path | None) -> Instance:
    if data is None:
        raise RefusalError(
            f"The light sensors need their table, which is not part of stoic: say --data with the "
            f"path of {FILES[SENSORS]}, or of the directory that it is in."
        )
    # A squared exponential kernel of the positions, l^2 = 0.1: for QFF alone (section 6)
    positions = _load(lambda path: light_sensors(path or "", inputs="positions"), data)
    return _recorded(_load(lambda path: light_sensors(path or ""), data), positions)


def _recorded(records: Records, positions: Records | None) -> Instance:
    return Instance(
        Arms(records.problem, records.kernel),
        None if positions is None else Arms(positions.problem, positions.kernel),
        Empirical(records.rewards),
        1.0,  # alpha (section 6)
        float(np.mean(records.rewards**2)),  # v, the mean of all squares (section 6)
        records.readings if records.kept is None else np.vstack([records.kept, records.readings]),
    )


def _load(load: Callable[[Path | None], Records], data: Path | None) -> Records:
    try:
        return load(data)
    except FileNotFoundError:
        raise RefusalError(f"There is no file {data}: say --data with the path of one.") from None
    except (ImportError, OSError, ValueError) as error:
        raise RefusalError(str(error)) from error


STUDENT, PARETO, MATERN = "SE, Student's t", "SE, Pareto", "Matern, Student's t"
STOCKS, SENSORS = "stocks", "light sensors"
WORLDS: dict[str, World] = {
    STUDENT: _synthetic(RBF(0.2), -1.0, StudentT(3.0), 1.0),  # v = B^2 + 3
    PARETO: _synthetic(RBF(0.2), 0.0, Pareto(2.0), 0.9),  # v = B^1.9 / (2^0.9 0.1)
    MATERN: _synthetic(Matern52(0.2), -1.0, StudentT(3.0), 1.0, formula=False),
    STOCKS: _stocks,
    SENSORS: _sensors,
}
# Names of the tables in a given directory.
FILES = {STOCKS: "stocks_2016_2019.csv", SENSORS: "light_sensors_2005.mat"}
