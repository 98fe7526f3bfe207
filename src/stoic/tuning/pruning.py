"""Intermediate values of a trial's program, and what stops it by them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.trial import Trial, TrialState

from stoic.integrations.optuna import StoicPruner
from stoic.integrations.optuna.confirming import confirms
from stoic.integrations.optuna.internals import trial_id
from stoic.refusal import RefusalError
from stoic.tuning.storage import patiently

PRUNERS: Mapping[str, Callable[[], BasePruner]] = {
    "stoic": StoicPruner,
    "median": MedianPruner,
    "hyperband": HyperbandPruner,
    "none": NopPruner,
}


def check_pruner(name: str | None, intermediate: str | None, repeats: int) -> str:
    """Return the name of the pruner: by default stoic, and none without intermediate values."""
    if name is not None and name not in PRUNERS:
        raise RefusalError(f"pruner must be {', '.join(PRUNERS)}, got {name!r}.")
    if intermediate is None:
        if name not in (None, "none"):
            raise RefusalError(
                f"The pruner {name!r} needs intermediate values: say where they are, as in "
                r"--intermediate 'regex:loss (\S+)'."
            )
        return "none"
    if repeats > 1:
        raise RefusalError(
            f"Intermediate values are of one measurement, and repeats is {repeats}: leave out one "
            "of them."
        )
    return name or "stoic"


def intermediate_values(trial: Trial) -> Callable[[float], bool]:
    """Return a function that stores a trial's intermediate values, in order, from step 1 on.

    It returns True if the trial is to be pruned; a confirming measurement never is.
    """
    step, confirmation = 0, confirms(trial)

    def report(value: float) -> bool:
        nonlocal step
        step += 1

        def store() -> bool:
            with contextlib.suppress(UpdateFinishedTrialError):  # somebody else ended it
                trial.report(value, step)
                return not confirmation and trial.should_prune()
            return False

        return patiently(store, f"Could not store an intermediate value of trial {trial.number}")

    return report


def report_number(study: optuna.Study, number: int, step: int, value: float) -> bool:
    """Store an intermediate value of a trial; return True if it is to be pruned."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    found = next((trial for trial in running if trial.number == number), None)
    if found is None:
        raise RefusalError(f"Cannot tell a step of trial {number}: no such trial is running.")
    if not 0 <= step < 2**31:  # a storage's integer
        raise RefusalError(f"A step is a count below {2**31}, got {step}.")
    study.pruner = StoicPruner()  # a loaded study has Optuna's default, the median
    trial = Trial(study, trial_id(found))
    trial.report(value, step)
    return trial.should_prune()
