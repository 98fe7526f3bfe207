"""What the conformance checks of :mod:`stoic.testing` are made of."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from stoic.data import Array, Booleans, Observations


def require(holds: object, promise: str) -> None:
    """Raise an ``AssertionError`` with the promise unless it holds."""
    # Not an assert, which python -O leaves out
    if not holds:
        raise AssertionError(f"Broken promise: {promise}.")


def require_close(
    a: Array, b: Array, promise: str, atol: float = 1e-10, rtol: float = 1e-10
) -> None:
    """Require that two arrays have one shape and about the same numbers."""
    a, b = np.asarray(a), np.asarray(b)
    require(a.shape == b.shape, f"{promise} (shapes {a.shape} and {b.shape})")
    if a.size:
        error = float(np.max(np.abs(a - b) - rtol * np.abs(b)))
        # A nan on either side fails too.
        require(error <= atol, f"{promise} (off by {float(np.max(np.abs(a - b))):.3g})")


def differences(function: Callable[[Array], Array], at: Array) -> Iterator[Array]:
    """Central differences of ``function`` in each coordinate of ``at`` (p,)."""
    for k in range(len(at)):
        step = 1e-5 * np.eye(len(at))[k] * max(1.0, abs(float(at[k])))
        yield (function(at + step) - function(at - step)) / (2.0 * step[k])


def refusal_of(call: Callable[[], object], promise: str) -> str:
    """Message of the ``ValueError`` that ``call`` must raise."""
    try:
        call()
    except ValueError as refusal:
        require(len(str(refusal)) > 20, f"{promise}, with a sentence")
        return str(refusal)
    raise AssertionError(f"Broken promise: {promise}.")


def fingerprint(thing: object) -> bytes:
    """Fingerprint of a thing: its pickle, or its repr where it has none."""
    try:
        return pickle.dumps(thing)
    except (pickle.PicklingError, AttributeError, TypeError):
        return repr(thing).encode()


@contextmanager
def unaltered(*things: Array | Booleans | Observations) -> Iterator[None]:
    """Check that arguments are the same afterwards, to the last bit."""
    before = [fingerprint(thing) for thing in things]
    yield
    require(before == [fingerprint(thing) for thing in things], "what is handed in is not altered")


@contextmanager
def no_warnings() -> Iterator[None]:
    """Raise warnings as errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
