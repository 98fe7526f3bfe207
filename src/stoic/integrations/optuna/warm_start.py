"""Warm starts: what earlier studies learned, for a new one."""

from __future__ import annotations

import reprlib
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from stoic.integrations.optuna.earlier import ABSENT, EarlierStudy, record_sources, stored_sources
from stoic.integrations.optuna.encoding import searched
from stoic.integrations.optuna.internals import storage_of, study_id
from stoic.integrations.optuna.objective import RobustObjective
from stoic.integrations.optuna.objectives import check_single_objective, needs_one
from stoic.integrations.optuna.synced_learner import SyncedLearner
from stoic.integrations.optuna.unmodelled import modelled_space
from stoic.integrations.recipe import DEFAULT, Recipe
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models.hypotheses import Hypothesis
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.mixture import MixturePosterior
from stoic.refusal import RefusalError

_LEARNING = threading.Lock()  # of this process; a lock in a sampler could not be pickled
_FEWEST = 3  # results of a source
_MOST = 20  # sources of a study: each is a hyperparameter of its model


class WarmStart:
    """Sources of the studies of one sampler, learned once, and recorded with each.

    Parameters
    ----------
    studies:
        Earlier studies, or what was learned from them.
    recipe, aim:
        Of the sampler.

    Raises
    ------
    RefusalError
        If it is no list of studies with different names, or the method cannot use any.
    """

    def __init__(
        self,
        studies: Sequence[Study | EarlierStudy],
        recipe: Recipe = DEFAULT,
        aim: RobustObjective | None = None,
    ) -> None:
        if not isinstance(studies, Sequence) or not all(
            isinstance(each, Study | EarlierStudy) for each in studies
        ):
            # Shortened: the text of a list of trials is pages long
            raise RefusalError(
                f"warm_start is a list of Optuna studies, got {reprlib.repr(studies)}."
            )
        self._studies = tuple(studies)
        self._names = [e.name if isinstance(e, EarlierStudy) else e.study_name for e in studies]
        self._learned: tuple[EarlierStudy, ...] | None = None
        # By storage, number and name: the next storage may get the address of an earlier one.
        self._of: dict[tuple[int, int, str], tuple[EarlierStudy, ...]] = {}
        check_names(self._names)
        if studies and (aim is not None or recipe != DEFAULT):
            other = "tolerances" if aim is not None else f"the recipe {recipe!r}"
            raise RefusalError(
                f"Only the default method can be warmed by earlier studies: leave out {other}, or "
                "the warm start."
            )

    def __call__(self, study: Study) -> tuple[EarlierStudy, ...]:
        """Return the sources of a study: those that are recorded, if they are the same studies."""
        key = id(storage_of(study)), study_id(study), study.study_name
        if key not in self._of:
            with _LEARNING:
                if key not in self._of:
                    self._of[key] = self._sources(study)
        return self._of[key]

    def _sources(self, study: Study) -> tuple[EarlierStudy, ...]:
        stored = stored_sources(study)
        if self._names and not self._are(stored):
            needs_one(study, warm_start=self._names)  # before anything is recorded
            if any(isinstance(each, Study) and _same(each, study) for each in self._studies):
                raise RefusalError(f"The study {study.study_name!r} cannot warm itself.")
            if self._learned is None:
                self._learned = tuple(map(learned, self._studies))
            record_sources(study, stored := self._learned)
        return stored

    def _are(self, sources: Sequence[EarlierStudy]) -> bool:
        """Return True if these were learned from the same studies, by name and beginning."""
        if [source.name for source in sources] != self._names:
            return False
        pairs = zip(sources, self._studies, strict=True)
        # A beginning that is not known decides nothing
        known = [(source.begun, begun_of(each)) for source, each in pairs]
        return all(one == other or not (one and other) for one, other in known)

    def first(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """Return the first source's value of a parameter for the first trial; else ``ABSENT``.

        Nothing is known of the space yet; later trials are chosen with it.
        """
        sources = self(study) if trial.number == 0 else ()  # no record is read for later ones
        return sources[0].setting({name: distribution})[name] if sources else ABSENT


def begun_of(study: Study | EarlierStudy) -> str:
    """Return when the first trial of a study began, as text; empty if that is not known."""
    if isinstance(study, EarlierStudy):
        return study.begun
    try:
        trials = study.get_trials(deepcopy=False)
    except KeyError:  # it was deleted
        return ""
    return str(trials[0].datetime_start or "") if trials else ""


def _same(one: Study, other: Study) -> bool:
    return storage_of(one) is storage_of(other) and study_id(one) == study_id(other)


def check_names(names: Sequence[str]) -> None:
    """Refuse a source that is named twice, and more sources than can be distinguished."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusalError(
            f"The study {twice!r} is named twice as a warm start: once is enough, and studies of "
            "different storages need different names."
        )
    if len(names) > _MOST:
        raise RefusalError(f"At most {_MOST} studies can warm another one, got {len(names)}.")


def learned(study: Study | EarlierStudy) -> EarlierStudy:
    """Learn a source from a study, by the default method and its own results alone.

    Raises
    ------
    RefusalError
        If it has several objectives, too few results, or no parameter that could be searched.
    """
    if isinstance(study, EarlierStudy):
        return study
    try:
        check_single_objective(study)
        trials, name = study.get_trials(deepcopy=False), study.study_name
    except KeyError as error:
        raise RefusalError(
            "A study that is to warm another one was deleted before it was used."
        ) from error
    space = searched(modelled_space(trials))
    complete = [t for t in trials if t.state == TrialState.COMPLETE]
    if not space or len(complete) < _FEWEST:
        what = f"{len(complete)} results" if space else "no parameters with a range"
        raise RefusalError(
            f"The study {name!r} cannot warm another one: it has {what}, and at least {_FEWEST} "
            "results of settings with the same parameters are needed."
        )
    synced = SyncedLearner(study, space, DEFAULT, sources=(), branched=False)
    synced.follow(trials)
    learner = synced.learner
    assert isinstance(learner, Learner)
    if np.isfinite(learner.observations.observed).sum() < _FEWEST:
        raise RefusalError(
            f"The study {name!r} cannot warm another one: fewer than {_FEWEST} of its results are "
            "numbers."
        )
    part = likeliest(learner.posterior)
    assert isinstance(part, Exact)
    kernel = part.prior.kernel
    assert isinstance(kernel, Scaled)
    assert isinstance(kernel.kernel, Matern52)
    # By the model of searches: a new study reached its target 2.2 +- 0.8 trials later, of 25, with
    # what explain recommends (120 pairs with noise and outliers)
    best = synced.encoding.decode(learner.recommend(width=None).x)
    source = EarlierStudy(
        name, len(learner), synced.encoding.known_space, best, kernel.kernel.lengthscale,
        # The posterior has L^-1 r of its residuals r, (n,)
        kernel.variance, part.x, part.L @ part.residual, part.noise, begun_of(study),
    )  # fmt: skip
    try:
        # Refused here with the reason, not by the storage that is to hold the record
        source.record()
    except TypeError as error:
        raise RefusalError(
            f"The study {name!r} cannot warm another one: it has choices that no storage can hold "
            f"({error})."
        ) from error
    return source


def likeliest(posterior: Posterior) -> Posterior:
    """Return the likeliest part of a mixture; of one that has absorbed rows, given its window."""
    if isinstance(posterior, WindowPosterior):
        assert isinstance(posterior.fitted_defence, Hypothesis)
        part = posterior.fitted_defence.explanations[0].posterior
        assert part is not None
        return part
    return posterior.parts[0] if isinstance(posterior, MixturePosterior) else posterior
