"""Checkpoints as data of JSON, with exact numbers.

A record may come from anywhere: whatever is malformed is refused, with a ``ValueError``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stoic.data import Array, Integers
from stoic.models.checkpoint import (
    Checkpoint,
    Checkpoints,
    SettledHypothesis,
    Window,
)
from stoic.posteriors.hyperparameters import Hyperparameters

_MOST = 100  # hypotheses of a record: a fit has a handful
_LARGEST = 1e300  # number


def record(of: Checkpoints) -> dict[str, Any]:
    """Return checkpoints as data of JSON."""
    return {
        "objective": _record(of.objective),
        "sites": [[row, *site] for row, site in of.sites.items()],
        "constraints": {name: _record(each) for name, each in of.constraints.items()},
    }


def read(data: object, most: int) -> Checkpoints:
    """Read a record of checkpoints, of at most so many observations.

    Raises
    ------
    ValueError
        If it is none.
    """
    try:
        return _read_all(data, most)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"no checkpoint: {type(error).__name__}: {error}") from error


def _record(of: Checkpoint) -> dict[str, Any]:
    window, trusting = of.window, of.all_trusted
    return {
        "n": of.n,
        "hypotheses": [
            [
                _numbers(each.hyperparameters),
                _sparse(each.excess),
                each.evidence,
                each.weight,
                *([each.credit] if each.credit else []),
            ]
            for each in of.hypotheses
        ],
        "all_trusted": None if trusting is None else [_numbers(trusting[0]), trusting[1]],
        "window": None
        if window is None
        else {
            "rows": window.rows.tolist(),
            "inducing": window.inducing.tolist(),
            "fitted_to": window.fitted_to,
            "chosen_at": window.chosen_at,
            "excess": _sparse(window.excess),
        },
    }


def _numbers(of: Hyperparameters) -> list[Any]:
    return [list(of.lengthscales), of.variance, of.noise, of.mean, list(of.sources)]


def _sparse(excess: Array) -> list[Any]:
    """Return the rows with an excess, and theirs: most have none."""
    rows = np.flatnonzero(excess)
    return [rows.tolist(), excess[rows].tolist()]


def _read_all(data: Any, most: int) -> Checkpoints:
    return Checkpoints(
        _read(data["objective"], most),
        {
            _integer(row, 0): (_number(value), _positive(noise))
            for row, value, noise in data["sites"]
        },
        {str(name): _read(each, most) for name, each in data["constraints"].items()},
    )


def _read(data: Any, most: int) -> Checkpoint:
    n = _integer(data["n"], 0, most)
    window = None if data["window"] is None else _window(data["window"], n)
    m = n if window is None else len(window.rows)
    hypotheses = tuple(
        SettledHypothesis(
            _hyperparameters(numbers),
            _dense(excess, m),
            _number(evidence),
            _positive(weight),
            *map(_number, credit),
        )
        for numbers, excess, evidence, weight, *credit in data["hypotheses"]
    )
    total = sum(each.weight for each in hypotheses)
    if len(hypotheses) > _MOST or not math.isclose(total, 1.0, rel_tol=1e-6):
        raise ValueError("no checkpoint: the weights of its hypotheses are no probabilities")
    all_trusted = None
    if data["all_trusted"] is not None:
        numbers, rows = data["all_trusted"]
        all_trusted = _hyperparameters(numbers), _integer(rows, 0)
    return Checkpoint(n, hypotheses, all_trusted, window)


def _window(data: Mapping[str, Any], n: int) -> Window:
    rows = _rows(data["rows"], n)
    return Window(
        rows,
        _rows(data["inducing"], len(rows)),
        _integer(data["fitted_to"], 0, n),
        _integer(data["chosen_at"], 0, n),
        _dense(data["excess"], n),
    )


def _hyperparameters(data: Any) -> Hyperparameters:
    lengthscales, variance, noise, mean, sources = data
    return Hyperparameters(
        tuple(map(_number, lengthscales)),
        _number(variance),
        _number(noise),
        _number(mean),
        tuple(map(_number, sources)),
    )


def _dense(data: Any, n: int) -> Array:
    rows, values = data
    excess = np.zeros(n)
    excess[_rows(rows, n)] = [_number(value, math.inf) for value in values]
    if not (excess >= 0.0).all():
        raise ValueError("no checkpoint: an excess is below 0")
    return excess


def _rows(data: Any, n: int) -> Integers:
    """Increasing row numbers below ``n``."""
    rows = np.array([_integer(row, 0, n - 1) for row in data], dtype=np.intp)
    if (np.diff(rows) <= 0).any():
        raise ValueError("no checkpoint: rows are out of order")
    return rows


def _integer(value: Any, least: int, most: float = math.inf) -> int:
    if type(value) is not int or not least <= value <= most:  # True is an int, too
        raise ValueError(f"no checkpoint: {value!r} is no whole number in its range")
    return value


def _number(value: Any, most: float = _LARGEST) -> float:
    if type(value) not in (int, float) or not -_LARGEST <= value <= most:
        raise ValueError(f"no checkpoint: {value!r} is no number in its range")
    return float(value)


def _positive(value: Any) -> float:
    if not _number(value) > 0.0:
        raise ValueError(f"no checkpoint: {value!r} is not above 0")
    return float(value)
