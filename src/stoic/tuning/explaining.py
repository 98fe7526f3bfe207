"""Explanations of a study while it runs, and its trust for dashboards."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from stoic.integrations.optuna import Explanation, explain
from stoic.integrations.optuna.objectives import measured, trials_of
from stoic.integrations.recipe import Recipe
from stoic.printable import printable
from stoic.refusal import RefusalError
from stoic.tuning.storage import cause, patiently

TRUST = "stoic:trust"  # of a study, and which trials: number of a trial -> its trust

log = logging.getLogger(__name__)

_QUICK = 0.3  # seconds of an explanation that nobody waits for
# Trials in one attribute, about 3 kB: MySQL holds 64 kB, and each write replaces all of it.
_TRIALS = 200
_SLACK = 0.005  # largest difference between stored and current trust


class Half:
    """At most half of the time of a campaign, for what no trial waits for, unless it is quick."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.spent = self.latest = 0.0

    @property
    def over(self) -> bool:
        """True if the next one has to wait."""
        return self.latest > _QUICK and self.spent > (time.monotonic() - self.begun) / 2.0

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time that it takes."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.latest = time.monotonic() - start
            self.spent += self.latest


class Explainer:
    """Explains a study after its trials, and records their trust where a dashboard shows it.

    With hundreds of results an explanation takes seconds, longer than many a trial. So those that
    are not quick take at most half of the time of a campaign; where one is left out, the last one
    stands. Recommendations have the values in ``fixed``, those of this run, if there are any.
    """

    def __init__(
        self, study: optuna.Study, recipe: Recipe | None, fixed: Mapping[str, Any] | None = None
    ) -> None:
        self.study, self.recipe, self.fixed = study, recipe, fixed
        self.recorder = TrustRecorder(study)
        self.half = Half()
        self.behind = False
        self.known: Explanation | None = None

    def __call__(self) -> Explanation | None:
        """Explain the study as it is, or as it was lately; None before there is a value."""
        self.behind = self.half.over
        if not self.behind:
            self._explain()
        return self.known

    def catch_up(self) -> None:
        """Explain and record at the end what was left out."""
        if self.behind:
            self._explain()

    def _explain(self) -> None:
        with self.half.spending():
            self.known = patiently(
                lambda: explanation_of_run(self.study, self.recipe, self.fixed),
                "Could not read the study",
            )
            if self.known is not None:
                self.recorder.record(self.known)


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
    trials = trials_of(study, trials)
    if any(measured(trial, len(study.directions)) for trial in trials):
        return explain(study, recipe=recipe, fixed=fixed, trials=trials, possible=possible)
    return None


def explanation_of_run(
    study: optuna.Study,
    recipe: Recipe | None,
    fixed: Mapping[str, Any] | None,
    trials: Sequence[FrozenTrial] | None = None,
) -> Explanation | None:
    """Explain a study for a run with some parameters ``fixed``, which may have no answer yet.

    As where the best setting lacks one: then it is the explanation of the study as a whole.
    """
    try:
        return explanation(study, recipe, fixed, trials)
    except RefusalError:
        if not fixed:
            raise
        return explanation(study, recipe, trials=trials)


class TrustRecorder:
    """Writer of the trials' current trust to the storage.

    Attributes ``stoic:trust:0-199``, ``stoic:trust:200-399``, ... of the study hold 200 trials
    each. One of them is written if a trial in it is new, or if its trust has changed by more than
    0.005.

    The results determine all of it, so a storage that refuses it costs nothing but the record: the
    log says so once, and the next trial tries again.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self._warned = False

    def record(self, known: Explanation) -> None:
        """Store the trust that is new or has changed."""
        try:
            earlier = self.study.user_attrs
            for name, trust in _attributes(known).items():
                if _differs(earlier.get(name), trust):
                    self.study.set_user_attr(name, trust)
        except Exception as error:  # any error: a dashboard must not end a campaign
            if not self._warned:
                log.warning(
                    "Could not record the trust of the trials in the study: %s. That is "
                    "for dashboards; results are not affected.",
                    printable(cause(error)),
                )
            self._warned = True


def _attributes(known: Explanation) -> dict[str, dict[str, float]]:
    """Name of an attribute -> number of a trial -> trust."""
    found: dict[str, dict[str, float]] = {}
    for row in known.rows:
        if math.isnan(row.trust):  # not judged
            continue
        first = row.number - row.number % _TRIALS
        part = found.setdefault(f"{TRUST}:{first}-{first + _TRIALS - 1}", {})
        # With several objectives the least trust of a trial's values.
        earlier = part.get(str(row.number), 1.0)
        part[str(row.number)] = min(earlier, round(row.trust, 3))
    return found


def _differs(earlier: object, trust: dict[str, float]) -> bool:
    """Return True if the stored trust is not the current one; others may have written it."""
    if not isinstance(earlier, dict) or earlier.keys() != trust.keys():
        return True
    return any(
        not isinstance(earlier[number], int | float) or abs(earlier[number] - now) > _SLACK
        for number, now in trust.items()
    )
