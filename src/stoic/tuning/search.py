"""Search of a study: what is given now, and with it what was recorded earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.storages import BaseStorage

from stoic.integrations.optuna import StoicSampler
from stoic.integrations.optuna.earlier import EarlierStudy, stored_names, stored_sources
from stoic.integrations.optuna.encoding import Encoding, met, searched
from stoic.integrations.optuna.objective import (
    RobustArguments,
    RobustObjective,
    record_aim,
    stored_aim,
)
from stoic.integrations.optuna.possible import PossibleValues, record_possible, stored_possible
from stoic.integrations.optuna.synced_learner import build_with_points
from stoic.integrations.optuna.unmodelled import Parameters
from stoic.integrations.optuna.warm_start import WarmStart, learned
from stoic.integrations.recipe import (
    DEFAULT,
    InFile,
    Recipe,
    load,
    parse,
    record_recipe,
    replaces,
    stored_recipe,
    text_of,
)
from stoic.refusal import RefusalError
from stoic.tuning.ending import Ending
from stoic.tuning.objectives import Direction, Objective
from stoic.tuning.space import Space
from stoic.tuning.storage import PATIENCE, is_new, open_storage, patiently
from stoic.tuning.study import earlier_studies, find_study


@dataclass(frozen=True, kw_only=True)
class Search:
    """Search of a study, as far as it is given now.

    Attributes
    ----------
    space:
        Name of a parameter -> its distribution.
    name:
        Of the study; None for one without a name.
    goal:
        "minimize" or "maximize"; or the objectives, if there are several.
    trials:
        Total number of finished trials.
    seed, startup:
        Of the sampler, and its trials from a quasi-random sequence before the model decides.
    said:
        Where inputs move: arguments of ``stoic.integrations.optuna.RobustObjective``.
    recipe, possible:
        The method, and the range of the values; None if not given.
    warm_start:
        Earlier studies that inform it: NAME, URL::NAME, or the study itself.
    fixed:
        Name of a parameter -> its value in this run.
    ending:
        When the search stops, and what is measured again after it.
    repeats:
        Measurements of a trial.
    """

    space: Space
    name: str | None = None
    goal: Direction | tuple[Objective, ...] = "minimize"
    trials: int = 50
    seed: int | None = None
    startup: int = 10
    said: RobustArguments = field(default_factory=RobustArguments)
    recipe: Recipe | str | None = None
    possible: PossibleValues | None = None
    warm_start: Sequence[str | optuna.Study] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    ending: Ending = field(default_factory=Ending)
    repeats: int = 1


@dataclass(frozen=True)
class StudyMethod:
    """Method of a search.

    Attributes
    ----------
    aim:
        Robust objective where inputs move; None if none is given.
    recipe:
        A value of :mod:`stoic.recipes`, or a function from a domain to a learner.
    possible:
        Range of the values; None if it is not declared.
    sources:
        What was learned from earlier studies, if any are named that are not recorded yet.
    """

    aim: RobustObjective | None = None
    recipe: Recipe = DEFAULT
    possible: PossibleValues | None = None
    sources: tuple[EarlierStudy, ...] = ()

    @classmethod
    def of(
        cls, study: optuna.Study | None, search: Search, storage: BaseStorage | None = None
    ) -> StudyMethod:
        """Combine what is given now with what a study recorded; the former overrides.

        ``study`` is None for a new one. Earlier studies without a URL are in ``storage``.
        """
        together = RobustObjective.of(search.said, study)
        recipe, possible = search.recipe, search.possible
        if recipe is None and study is not None:
            recipe = _recorded(study)
        if possible is None and study is not None:
            possible = stored_possible(study)
        recipe = load(DEFAULT if recipe is None else recipe)
        names = [
            each.rpartition("::")[2] if isinstance(each, str) else each.study_name
            for each in search.warm_start
        ]
        # The record goes before: an earlier study may have gone on since, or have been deleted
        if names and study is not None and names == stored_names(study):
            WarmStart(stored_sources(study), recipe, together)  # checks them
            return cls(together, recipe, possible)
        warm_start = earlier_studies(search.warm_start, storage, search.name)
        WarmStart(warm_start, recipe, together)
        return cls(together, recipe, possible, tuple(map(learned, warm_start)))

    def check(self, space: Space) -> None:
        """Refuse a method that cannot be used for these parameters."""
        if free := searched(space):
            known = met(free, ()) if self.recipe is DEFAULT else None
            build_with_points(self.recipe, Encoding(free, met=known), self.aim)

    def sampler(self, study: optuna.Study | None, search: Search, confirm: int = 0) -> StoicSampler:
        """Make the sampler of a study, None for a new one; its next trials ``confirm``."""
        trials = [] if study is None else study.get_trials(deepcopy=False)
        parameters = Parameters.of(trials, 1 if study is None else len(study.directions))
        met = parameters.modelled(shared=self.aim is not None)
        # Trials that came from elsewhere may have others, other ranges, or branches
        alike = met in ({}, search.space) and not parameters.conditional(met)
        return StoicSampler(
            seed=search.seed,
            n_startup_trials=search.startup,
            recipe=self.recipe,
            search_space=search.space if alike else None,
            possible=None if self.possible is None else (self.possible.low, self.possible.high),
            warm_start=self.sources,
            confirm=confirm,
            **({} if self.aim is None else self.aim.record()),
        )

    def record(self, study: optuna.Study) -> None:
        """Record the method with a study, for other workers and for readers."""
        if (aim := self.aim) is not None:
            patiently(lambda: record_aim(study, aim), "Could not record the tolerances")
        if self.recipe is not DEFAULT:
            patiently(lambda: record_recipe(study, self.recipe), "Could not record the recipe")
        if (possible := self.possible) is not None:
            patiently(lambda: record_possible(study, possible), "Could not record what is possible")
        if self.sources:
            warm = WarmStart(self.sources)
            patiently(lambda: warm(study), "Could not record the warm start")

    def replaces(self, study: optuna.Study) -> list[str]:
        """List what differs from a study's record, a sentence for each."""
        notes = []
        earlier, text = stored_aim(study), stored_recipe(study)
        if self.aim is not None and earlier not in (None, self.aim):
            assert earlier is not None
            was = ", ".join(f"{name} {_brief(value)}" for name, value in earlier.record().items())
            notes.append(f"until now this study was after something else: {was}")
        given = self.recipe is not DEFAULT and text_of(self.recipe) is not None
        if given and text is not None and replaces(self.recipe, text):
            notes.append(f"until now this study used another recipe: {text}")
        were = stored_possible(study)
        if were is not None and self.possible not in (None, were):
            notes.append(f"until now the possible values of this study were {were}")
        if self.sources and (names := stored_names(study)):
            notes.append(f"until now this study was warmed by {', '.join(names)}")
        return notes


def prepare(
    search: Search,
    storage: str | BaseStorage | None,
    kind: str | None = None,
    patience: float = PATIENCE,
) -> tuple[BaseStorage, optuna.Study | None, StudyMethod, StoicSampler]:
    """Open a storage, find the study there, and make the method and sampler of its search.

    ``storage`` is a URL, or None for one in memory; ``kind`` and ``patience`` as of
    :func:`~stoic.tuning.storage.open_storage`. A search that is refused creates no file.
    """

    def method_of(study: optuna.Study | None, opened: BaseStorage | None) -> StudyMethod:
        method = StudyMethod.of(study, search, opened)
        method.check(search.space)
        moves = "tolerances" if search.said else "tolerances, which the study has"
        search.ending.check(moves if method.aim else None)
        return method

    if isinstance(storage, str):
        if is_new(storage, kind):
            method_of(None, None)
        storage = open_storage(storage, create=True, kind=kind, patience=patience)
    opened = optuna.storages.get_storage(storage)
    earlier = None if search.name is None else find_study(opened, search.name)

    def searched_with() -> tuple[StudyMethod, StoicSampler]:
        method = method_of(earlier, opened)
        return method, method.sampler(earlier, search)

    found = patiently(searched_with, f"Could not read the study {search.name!r}")
    return opened, earlier, *found


def _recorded(study: optuna.Study) -> Recipe | None:
    text = stored_recipe(study)
    if text is None:
        return None
    begun = f"The study {study.study_name!r} was begun with the recipe {text}"
    try:
        recipe = parse(text)
    except RefusalError as refusal:
        raise RefusalError(
            f"{begun}, which cannot be used here: give a --recipe. {refusal}"
        ) from None
    if isinstance(recipe, InFile):
        raise RefusalError(
            f"{begun}, and a file is not run only because a storage names it: "
            f"give --recipe {text}, or another one."
        )
    return recipe


def _brief(value: object) -> str:
    if not isinstance(value, dict):
        return str(value)
    return " ".join(f"{name}={size:g}" for name, size in value.items())
