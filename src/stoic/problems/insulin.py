"""Dose of insulin before a meal that may turn out larger or smaller than announced.

A point is (dose in units, carbohydrates of the meal in grams); the first is chosen, the second is
given. f is minus the distance of the blood glucose 150 minutes after the meal from 112.5 mg/dl
[Saday2025]_. Glucose comes from a table, or from the simulator simglucose (UVA/Padova); both are no
part of this library.
"""

from __future__ import annotations

import csv
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from stoic.domains import Finite
from stoic.problems.base import outside
from stoic.problems.tabulated import Tabulated

PATIENT = "adult#003"  # whose meals of 20 to 80 g all have a dose of at most 15 units
TARGET, MINUTES = 112.5, 150  # mg/dl, and when it is measured
DOSES = tuple(float(dose) for dose in range(16))  # units
MEALS = tuple(10.0 * k for k in range(11))  # grams, where they are simulated
COLUMNS = ("fasting_glucose_mg_dl", "carbohydrate_g", "insulin_u", "glucose_150min_mg_dl")


def insulin(
    path: str | Path | None = None, *, fasting: float = 100.0, patient: str = PATIENT
) -> Tabulated:
    """Tabulate f on all combinations of meals and doses of at most 15 units.

    Parameters
    ----------
    path:
        A CSV file with the columns ``fasting_glucose_mg_dl``, ``carbohydrate_g``, ``insulin_u`` and
        ``glucose_150min_mg_dl``. Without one, 16 doses for each of 11 meals are simulated, which
        takes one to three minutes, and is kept.
    fasting:
        The rows of the table with this glucose before the meal, in mg/dl.
    patient:
        Name of the simulated patient, with his own fasting glucose; the paper gives none.
    """
    measured = _simulated(patient) if path is None else _table(Path(path), fasting)
    meals, doses = (sorted({key[k] for key in measured}) for k in (1, 0))
    points = [(dose, meal) for meal in meals for dose in doses]
    missing = [point for point in points if point not in measured]
    if missing:
        dose, meal = missing[0]
        raise ValueError(
            f"{path} needs every dose with every meal, and lacks {len(missing)} of them: {dose:g} "
            f"units with {meal:g} g is one."
        )
    glucose = np.array([measured[point] for point in points])
    return Tabulated("insulin", Finite(np.array(points)), -np.abs(glucose - TARGET))


def glucose_after(dose: float, carbohydrates: float, patient: str = PATIENT) -> float:
    """Simulate glucose under the skin in mg/dl, 150 minutes after the first bite.

    Basal insulin goes on, the dose comes with the first bite, and 5 g are eaten per minute.
    """
    if not (0.0 <= dose < np.inf and 0.0 <= carbohydrates < np.inf):
        raise ValueError(
            f"A dose and a meal are finite numbers >= 0, got {dose!r} and {carbohydrates!r}."
        )
    patients = _simulator()
    try:
        somebody = patients.T1DPatient.withName(patient)
        basal = float(somebody._params.u2ss * somebody._params.BW / 6000.0)  # pmol/kg/min to U/min
    except (AttributeError, TypeError, IndexError) as error:
        raise ValueError(f"simglucose has no patient {patient!r}: {PATIENT} is one.") from error
    for minute in range(MINUTES):
        first = minute == 0
        somebody.step(
            patients.Action(
                CHO=carbohydrates if first else 0.0, insulin=basal + (dose if first else 0.0)
            )
        )
    return float(somebody.observation.Gsub)


def _table(path: Path, fasting: float) -> dict[tuple[float, float], float]:
    """Glucose by (dose, meal)."""
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if not set(COLUMNS) <= set(reader.fieldnames or ()):
            raise ValueError(
                f"{path} needs the columns {', '.join(COLUMNS)}, got {reader.fieldnames}."
            )
        rows = list(reader)
    found: dict[tuple[float, float], float] = {}
    for number, row in enumerate(rows, start=2):
        try:
            before, meal, dose, after = (float(row[name]) for name in COLUMNS)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}, needs four numbers.") from error
        if not np.isfinite([before, meal, dose, after]).all():
            raise ValueError(f"{path}, line {number}, has a number that is not finite.")
        if before != fasting or dose > DOSES[-1]:
            continue
        if found.setdefault((dose, meal), after) != after:
            raise ValueError(
                f"{path}, line {number}, gives {dose:g} units with {meal:g} g another result than "
                "an earlier line."
            )
    if not found:
        raise ValueError(
            f"{path} has no row with a fasting glucose of {fasting:g} mg/dl and at most "
            f"{DOSES[-1]:g} units."
        )
    return found


@cache
def _simulated(patient: str) -> dict[tuple[float, float], float]:
    return {
        (dose, meal): glucose_after(dose, meal, patient) for dose, meal in product(DOSES, MEALS)
    }


@cache
def _simulator() -> Any:
    install = (
        "pip install 'stoic[insulin]' in an environment of its own, as its gymnasium is older than "
        "that of stoic[problems]; or give the path of a table"
    )
    who = "The dose of insulin without a path needs simglucose"
    return outside("simglucose.patient.t1dpatient", who, install)
