"""Problems from records: prices of stocks, readings of light sensors.

Arms are the columns of a table, f(arm) is a column's mean, and a reward is one entry of it, drawn
by ``adversaries.Empirical(records.rewards)``. The tables are not part of this library; loaders take
a path.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.io import loadmat

from stoic.data import Array
from stoic.domains import Finite
from stoic.kernels import RBF, Kernel, Precomputed
from stoic.problems.base import outside
from stoic.problems.tabulated import Tabulated

# The days of [Chowdhury2019]_, section 6, first and last.
FIRST, LAST = date(2016, 1, 4), date(2019, 4, 10)

# Squared lengthscale of the sensors' positions, once they are scaled to [0, 1]^2.
_SQUARED_LENGTHSCALE = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Problem whose rewards were recorded, and the kernel that goes with it.

    Parameters
    ----------
    name:
        A short name for tables.
    domain:
        A point for each arm, N of them.
    kernel:
        The covariance of the arms.
    readings:
        Recorded rewards in their own units, a column for each arm, shape (rows, N). The largest
        mean of a column must be positive.
    labels:
        The names of the arms.
    kept:
        Readings of the same arms that are no rewards, such as those that the kernel is of, shape
        (rows, N).

    Attributes
    ----------
    unit:
        The largest mean of a column, which rewards and f are divided by: B = 1.
    rewards:
        ``readings / unit``, shape (rows, N).
    problem:
        f(arm), the mean of its rewards; its maximum is 1.
    """

    name: str
    domain: Finite
    kernel: Kernel
    readings: Array
    labels: tuple[str, ...]
    kept: Array | None = None
    unit: float = field(init=False)
    rewards: Array = field(init=False)
    problem: Tabulated = field(init=False)

    def __post_init__(self) -> None:
        readings = np.array(self.readings, dtype=np.float64)
        if readings.ndim != 2 or readings.shape[1] != len(self.domain) or not len(readings):
            raise ValueError(
                f"{self.name} needs readings with a column for each of {len(self.domain)} arms, "
                f"got shape {readings.shape}."
            )
        unit = float(readings.mean(axis=0).max())
        if not 0.0 < unit < np.inf or not np.isfinite(readings).all():
            raise ValueError(
                f"{self.name} needs finite readings and a positive largest mean, got a largest "
                f"mean of {unit}."
            )
        rewards = readings / unit
        readings.flags.writeable = rewards.flags.writeable = False
        object.__setattr__(self, "readings", readings)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "rewards", rewards)
        problem = Tabulated(self.name, self.domain, rewards.mean(axis=0))
        object.__setattr__(self, "problem", problem)


def stocks(path: str | Path | None = None) -> Records:
    """Load the search for the most profitable stock, [Chowdhury2019]_, section 6.

    Arms are tickers, f is the mean price over the days from 4 January 2016 to 10 April 2019 and a
    reward the price on a random one of them, both divided by the largest mean price; the kernel is
    the covariance of the standardised prices.

    With a = 1, v is ``Empirical(rewards).moment(1.0, 1.0)``, 1.18 on the table of the paper. The
    paper sets v to the mean of *all* squared prices, 0.26 in these units, which 9 of the 29 stocks
    exceed.

    Parameters
    ----------
    path:
        A CSV file with a column ``Date`` (YYYY-MM-DD) and a column of prices for each ticker; days
        out of the range are left out. Without a path, the 20 stocks of the S&P 500 that come with
        skfolio, from the extra ``problems``; nothing is downloaded.
    """
    tickers, prices = _bundled_prices() if path is None else _prices(Path(path))
    # A point is a row number, since the kernel is a table
    rows = np.arange(float(len(tickers)))
    return Records("stocks", Finite(rows), Precomputed(_correlation(prices)), prices, tickers)


def light_sensors(path: str | Path, inputs: Literal["rows", "positions"] = "rows") -> Records:
    """Load the search for the sensor with the most light, [Chowdhury2019]_, section 6.

    Arms are 41 sensors in an office, f is the mean of a sensor's test readings and a reward a
    random one of them, both divided by the largest mean.

    With a = 1, v is ``Empirical(rewards).moment(1.0, 1.0)``, 1.28; the paper's mean of all squared
    readings is 0.42 in these units, which 16 of the 41 sensors exceed.

    Parameters
    ----------
    path:
        A MATLAB file with a struct ``data`` of ``train.sensordata`` (rows, N), ``test.sensordata``
        (rows, N) and ``coords`` (N, 2).
    inputs:
        ``"rows"``: the domain is the row numbers, the kernel the covariance of the standardised
        *train* readings. ``"positions"``: the domain is the sensors' positions, each coordinate
        scaled to [0, 1], the kernel squared exponential with a squared lengthscale of 0.1, for
        methods that need the formula of a kernel. Arms, f and rewards are the same.
    """
    if inputs not in ("rows", "positions"):
        raise ValueError(f"The inputs are 'rows' or 'positions', got {inputs!r}.")
    try:
        contents = loadmat(str(path), appendmat=False, squeeze_me=True, struct_as_record=False)
        data: Any = contents["data"]
        train = np.array(data.train.sensordata, dtype=np.float64)
        test = np.array(data.test.sensordata, dtype=np.float64)
        positions = np.array(data.coords, dtype=np.float64)
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} needs a struct 'data' with train.sensordata, test.sensordata and coords."
        ) from error
    labels = tuple(f"sensor {number}" for number in range(1, len(positions) + 1))
    if inputs == "rows":
        rows = np.arange(float(len(positions)))
        kernel: Kernel = Precomputed(_correlation(train))
        return Records("light-sensors", Finite(rows), kernel, test, labels, train)
    scaled = (positions - positions.min(axis=0)) / np.ptp(positions, axis=0)
    kernel = RBF(np.sqrt(_SQUARED_LENGTHSCALE))
    return Records("light-sensors", Finite(scaled), kernel, test, labels, train)


def _correlation(readings: Array) -> Array:
    """Return the covariance of standardised columns, shape (N, N), symmetric to the last bit."""
    constant = np.flatnonzero(np.ptp(readings, axis=0) == 0.0)
    if constant.size:
        raise ValueError(
            f"A column that never changes cannot be standardised: leave out {constant.tolist()}."
        )
    standardised = (readings - readings.mean(axis=0)) / readings.std(axis=0)
    return np.asarray(standardised.T @ standardised / len(readings))  # NumPy takes syrk for A'A


def _prices(path: Path) -> tuple[tuple[str, ...], Array]:
    """Tickers, and prices of the days in range, shape (days, N)."""
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if header[:1] != ["Date"] or len(header) < 2:
        raise ValueError(f"{path} needs a column 'Date' and then tickers, got {header[:3]}.")
    prices = []
    for number, row in enumerate(rows, start=2):
        try:
            day, entries = date.fromisoformat(row[0]), [float(entry) for entry in row[1:]]
        except (ValueError, IndexError) as error:
            raise ValueError(f"{path}, line {number}, is not a day and its prices.") from error
        if len(entries) != len(header) - 1 or not np.isfinite(entries).all():
            raise ValueError(
                f"{path}, line {number}, needs a finite price for each of {len(header) - 1} "
                f"tickers, got {len(entries)} entries: leave out days or tickers with gaps."
            )
        if FIRST <= day <= LAST:
            prices.append(entries)
    if not prices:
        raise ValueError(f"{path} has no day from {FIRST} to {LAST}.")
    return tuple(header[1:]), np.array(prices)


def _bundled_prices() -> tuple[tuple[str, ...], Array]:
    """Load tickers and prices from skfolio's own file."""
    install = "pip install 'stoic[problems]', or give the path of a table of prices"
    datasets = outside("skfolio.datasets", "Stocks without a path need skfolio", install)
    frame = datasets.load_sp500_dataset().loc[str(FIRST) : str(LAST)]
    return tuple(map(str, frame.columns)), frame.to_numpy(dtype=np.float64)
