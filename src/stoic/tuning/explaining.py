"""Explanations of a study while it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna import Explanation, explain
from stoic.integrations.recipe import Recipe
from stoic.tuning.storage import patiently
from stoic.tuning.stored_trust import TrustRecorder

_QUICK = 0.3  # seconds of an explanation that nobody waits for


class Explainer:
    """Explains a study after its trials, and records their trust where a dashboard shows it.

    With hundreds of results an explanation takes seconds, longer than many a trial. So those that
    are not quick take at most half of the time of a campaign; where one is left out, the last one
    stands.
    """

    def __init__(self, study: optuna.Study, recipe: Recipe | None) -> None:
        self.study, self.recipe = study, recipe
        self.recorder = TrustRecorder(study)
        self.begun = time.monotonic()
        self.spent = self.latest = 0.0
        self.behind = False
        self.known: Explanation | None = None

    def __call__(self) -> Explanation | None:
        """Explain the study as it is, or as it was lately; None before there is a value."""
        elapsed = time.monotonic() - self.begun
        self.behind = self.latest > _QUICK and self.spent > elapsed / 2.0
        if not self.behind:
            self._explain()
        return self.known

    def catch_up(self) -> None:
        """Explain and record at the end what was left out."""
        if self.behind:
            self._explain()

    def _explain(self) -> None:
        start = time.monotonic()
        self.known = patiently(
            lambda: explanation(self.study, self.recipe), "Could not read the study"
        )
        if self.known is not None:
            self.recorder.record(self.known)
        self.latest = time.monotonic() - start
        self.spent += self.latest


def explanation(
    study: optuna.Study,
    recipe: Recipe | None = None,
    fixed: Mapping[str, Any] | None = None,
    trials: Sequence[FrozenTrial] | None = None,
    possible: Sequence[float] | None = None,
) -> Explanation | None:
    """Explain a study, by default by its own recipe; return None before there is a value.

    Recommendations have the values in ``fixed``, if any. ``trials`` are the data, by default those
    stored now. ``possible`` is the range of the value, by default the one that is recorded.
    """
    trials = study.get_trials(deepcopy=False) if trials is None else trials
    if any(trial.state == TrialState.COMPLETE for trial in trials):
        return explain(study, recipe=recipe, fixed=fixed, trials=trials, possible=possible)
    return None
