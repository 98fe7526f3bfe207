"""Objectives of plain Optuna scripts whose failures are classified, and tried again."""

from __future__ import annotations

import logging
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import Literal, TypeVar, get_args

import optuna

from stoic.data import FAILURES, IS_NAN, FailureKind
from stoic.integrations.optuna import FAILED
from stoic.integrations.tracking import REASON
from stoic.refusal import check_at_least, check_callable

__all__ = ["KINDS", "Ending", "ending_of", "retrying"]

log = logging.getLogger(__name__)

Ending = Literal["out of memory", "timeout", "killed", "nan"]

KINDS: Mapping[Ending, FailureKind | None] = {
    "killed": "transient",
    "out of memory": "infeasible",
    # Both may be the machine's fault or the parameters': the sampler learns which.
    "timeout": None,
    "nan": None,
}
"""How a run ended -> what that says about its parameters, by default."""

# In messages of CUDA, ROCm, XLA and the C library; torch and jax derive from RuntimeError.
_MEMORY = ("out of memory", "resource_exhausted", "cannot allocate memory", "bad_alloc")
_LONGEST = 200  # letters of a reason

Value = TypeVar("Value", bound=float | Sequence[float])


def retrying(
    objective: Callable[[optuna.Trial], Value],
    *,
    attempts: int = 3,
    kinds: Mapping[Ending, FailureKind | None] | None = None,
) -> Callable[[optuna.Trial], Value | float]:
    """Wrap an objective so that its failures have a kind, and transient ones are tried again.

    A transient failure runs the objective once more, in the same trial: Optuna suggests the same
    parameters again, and no trial is lost. After the last attempt, and at once for all other
    failures, the trial fails with its kind in ``stoic:failed``, which
    :class:`~stoic.integrations.optuna.StoicSampler` and ``explain`` use, and its reason in
    ``failure``; the study goes on. It works with any sampler::

        study.optimize(retrying(objective), n_trials=50)

    An exception that is none of these, such as a mistyped name, is raised as it is. A function that
    hangs is not interrupted: run a program with ``subprocess.run(..., timeout=600)`` instead. What
    kills this very process is not seen either; ``stoic tune`` runs a process for each trial.

    Parameters
    ----------
    objective:
        Trial -> value.
    attempts:
        Largest number of runs of one trial.
    kinds:
        Other kinds than those in ``KINDS``, by how a run ended, see :func:`ending_of`; None if that
        says nothing about the parameters. An exception with an attribute ``kind`` that is one of
        the kinds, such as :class:`stoic.Failed`, has it from there.

    Raises
    ------
    ValueError
        If there is no attempt, or an ending or a kind does not exist.
    """
    check_callable(objective=objective)
    check_at_least(1, attempts=attempts)
    for ending, kind in (kinds or {}).items():
        if ending not in get_args(Ending):
            known = ", ".join(map(repr, get_args(Ending)))
            raise ValueError(f"A run ends with one of {known}, got {ending!r}.")
        if kind is not None and kind not in FAILURES:
            known = ", ".join(map(repr, FAILURES))
            raise ValueError(
                f"The kind of {ending!r} must be None or one of {known}, got {kind!r}."
            )
    meaning = {**KINDS, **(kinds or {})}

    def tried(trial: optuna.Trial) -> Value | float:
        kind: FailureKind | None
        for attempt in range(1, attempts + 1):
            try:
                value = objective(trial)
            except Exception as error:
                # By its attribute: stoic.Failed is in stoic.tuning, which is above
                ending, said = ending_of(error), getattr(error, "kind", None)
                if said in FAILURES:
                    kind = said
                elif ending is not None:
                    kind = meaning[ending]
                else:
                    raise
                reason = f"{type(error).__name__}: {error}"
            else:
                if not _has_nan(value):
                    return value
                kind, reason = meaning["nan"], IS_NAN
            if kind != "transient":
                break
            log.info("Trial %d, attempt %d of %d: %s", trial.number, attempt, attempts, reason)
        # Before the end: a finished trial takes no attributes
        if kind is not None:
            trial.set_user_attr(FAILED, kind)
        trial.set_user_attr(REASON, reason[:_LONGEST])
        return math.nan  # with which Optuna fails the trial, and goes on

    return tried


def ending_of(error: BaseException) -> Ending | None:
    """Classify an exception; None if it is none of these endings.

    ``"out of memory"``: ``MemoryError``, or an error of a device that says so. ``"timeout"``:
    ``TimeoutError`` and ``subprocess.TimeoutExpired``. ``"killed"``: a program that a signal ended,
    a worker process that died, or a lost connection.
    """
    # Before the others: the errors of devices are RuntimeErrors.
    if isinstance(error, MemoryError) or _mentions_memory(error):
        return "out of memory"
    if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
        return "timeout"
    if isinstance(error, BrokenExecutor | ConnectionError):
        return "killed"
    if isinstance(error, subprocess.CalledProcessError):
        signalled = error.returncode < 0 or 128 < error.returncode <= 128 + 64  # as shells say it
        return "killed" if signalled else None
    return None


def _mentions_memory(error: BaseException) -> bool:
    said = str(error).lower()
    if isinstance(error, subprocess.CalledProcessError) and error.stderr:
        tail = error.stderr[-4096:]
        said = (tail if isinstance(tail, str) else tail.decode(errors="replace")).lower()
    elif not isinstance(error, RuntimeError | OSError):
        return False
    return any(words in said for words in _MEMORY)


def _has_nan(value: float | Sequence[float]) -> bool:
    numbers = value if isinstance(value, Sequence) else [value]
    return any(each != each for each in numbers)
