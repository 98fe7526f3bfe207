"""Keeper of what a model has settled on: it begins with what is stored, and stores it again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from optuna.study import Study
from optuna.trial import FrozenTrial

from stoic.integrations.optuna.stored_model import (
    StoredModel,
    store_model,
    stored_trials,
    trials_digest,
)
from stoic.learner import Learner
from stoic.objectives import MultiLearner
from stoic.optimizer import Optimizer
from stoic.printable import printable
from stoic.surrogate import Surrogate

log = logging.getLogger(__name__)

_RECENT = 8  # trials: a model of another worker is as good


class ModelKeeper:
    """Keeper of the model of a learner that observes the trials of a study.

    The model is stored whenever a window was chosen, every 64 results or later, so that the next
    process has as few results to add as this one had. Up to the number of results that the exact
    model takes nothing is stored, and each process fits its own. The trials determine all of it:
    what cannot be stored, or used, costs time alone.

    Parameters
    ----------
    learner:
        Without observations so far.
    method:
        Returns a digest of all that its models depend on beside the trials; None if that is not
        known. Called when there is something to compare with, or to store.
    stored:
        What is stored with the study; None if there is nothing.
    """

    def __init__(
        self,
        learner: Optimizer,
        method: Callable[[], str | None],
        stored: StoredModel | None,
    ) -> None:
        self.learner = learner
        self.method = method
        self.surrogates: list[Surrogate] = []  # of each objective
        if isinstance(learner, MultiLearner):
            self.surrogates = [output.surrogate for output in learner.outputs]
        elif isinstance(learner, Learner) and not learner.plans:
            self.surrogates = [learner.surrogate]
        self._stored = None
        if stored is not None and len(stored.outputs) == len(self.surrogates):
            self._stored = stored if stored.method == method() else None
        self._observed: list[FrozenTrial] = []  # in their order
        self._windows = () if self._stored is None else self._stored.windows
        self._warned = False

    def add(self, trial: FrozenTrial) -> None:
        """Note a trial that the learner observes."""
        self._observed.append(trial)

    def split(
        self, trials: Sequence[FrozenTrial]
    ) -> tuple[Sequence[FrozenTrial], Sequence[FrozenTrial]]:
        """Split trials in those that the stored model had observed, in that order, and others."""
        if self._stored is None or self._observed:
            return (), trials
        return self._stored.split(trials) or ((), trials)

    def knows(self) -> bool:
        """Return True if what the learner has observed is what the stored model had observed."""
        stored, n = self._stored, len(self.learner)
        if stored is None or not n or trials_digest(self._observed) != stored.digest:
            return False
        return all(each.objective.n == n for each in stored.outputs)

    def resume(self) -> None:
        """Begin with the stored model, after whatever was observed in addition."""
        assert self._stored is not None
        for surrogate, known in zip(self.surrogates, self._stored.outputs, strict=True):
            surrogate.resume(known)

    def record(self, study: Study) -> None:
        """Store the model with its study, if a window was chosen since it was stored."""
        windows = tuple(surrogate.chosen_at for surrogate in self.surrogates)
        if not any(windows) or windows == self._windows:
            return
        self._windows = windows
        try:
            apart = abs(stored_trials(study) - len(self._observed))
            if apart >= _RECENT and (model := self._model()) is not None:
                store_model(study, model)
        except Exception as error:  # any error: it must not end a search
            if not self._warned:
                log.warning(
                    "Could not store the model with the study: %s. It is fitted anew when the "
                    "study is resumed; results are not affected.",
                    printable(str(error) or type(error).__name__),
                )
            self._warned = True

    def _model(self) -> StoredModel | None:
        """Return what the model has settled on; None if not of all trials, or not in numbers."""
        method, found = self.method(), [surrogate.checkpoints() for surrogate in self.surrogates]
        outputs = tuple(each for each in found if each is not None)
        if method is None or len(outputs) < len(found):
            return None
        if any(output.objective.n < len(self.learner) for output in outputs):
            return None
        order = tuple(trial.number for trial in self._observed)
        return StoredModel(method, order, trials_digest(self._observed), outputs)
