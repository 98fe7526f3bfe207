"""Protocol of a problem: a function to maximise, its domain and its true maximum."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stoic.data import Array
from stoic.domains import Domain


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Maximum of a problem over its domain, never known to a learner.

    Attributes
    ----------
    x:
        A maximiser, shape (d,).
    value:
        f(x), noiseless.
    """

    x: Array
    value: float

    @staticmethod
    def among(points: Array, values: Array) -> Optimum:
        """Best row of ``points`` (N, d) by its value (N,); ties: the lowest."""
        best = int(np.argmax(values))
        return Optimum(points[best], float(values[best]))


@runtime_checkable
class Problem(Protocol):
    """Noiseless function on a domain. The environment adds noise and attacks."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def domain(self) -> Domain:
        """Domain of the function."""

    @property
    def optimum(self) -> Optimum:
        """The maximum over ``domain``."""

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,), noiseless and deterministic."""


def check_rows(x: Array, dim: int, name: str) -> Array:
    """Return points as an array (m, d); ``ValueError`` for another shape."""
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise ValueError(f"{name} takes points of shape (m, {dim}), got {rows.shape}.")
    return rows


def finite_values(values: Array, shape: tuple[int, ...], what: str) -> Array:
    """Return a read-only copy of finite values of this shape; ``what`` needs them."""
    copy = np.array(values, dtype=np.float64)
    if copy.shape != shape or not np.isfinite(copy).all():
        raise ValueError(
            f"{what}, got an array of shape {copy.shape} with "
            f"{np.count_nonzero(~np.isfinite(copy))} entries that are not finite."
        )
    copy.flags.writeable = False
    return copy


def outside(module: str, who: str, install: str = "pip install 'stoic[problems]'") -> Any:
    """Import an outside library, or say ``who`` needs it and how to ``install`` it."""
    try:
        with warnings.catch_warnings():
            # Box2D's types lack a __module__; turned into an error, that ends the process.
            warnings.simplefilter("ignore")
            return import_module(module)
    except Exception as error:  # gymnasium has an error of its own for a missing Box2D
        if not (isinstance(error, ImportError) or type(error).__name__ == "DependencyNotInstalled"):
            raise
        raise ImportError(f"{who}, which is not installed: {install}.") from error
