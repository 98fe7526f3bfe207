"""Selection of the study of a command, and opening it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoic.cli.printing import note
from stoic.refusal import RefusalError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage

    from stoic.integrations.recipe import Recipe
    from stoic.tuning.request import Request


@dataclass(frozen=True)
class Place:
    """Study of a command, and its storage.

    Attributes
    ----------
    what:
        A study file, or a name.
    study_name:
        The name, as an option.
    storage, storage_class:
        URL of the storage and its class, see ``stoic.tuning.storage.open_storage``.
    """

    what: str | None
    study_name: str | None
    storage: str | None
    storage_class: str | None

    @property
    def name(self) -> str | None:
        """Name of the study, or a study file; None if there is only one."""
        from stoic.tuning.study import check_study_name

        what, name = self.what, self.study_name
        for each in (what, name):
            check_study_name(each)
        if what is not None and name is not None and what != name:
            raise RefusalError(
                f"Which study is meant, {what!r} or {name!r}? Leave out one of them."
            )
        return what or name

    def open(self, *, create: bool = False, only_read: bool = False) -> BaseStorage:
        """Open the storage: of the URL, of the variable OPTUNA_STORAGE, or the default one."""
        silence_optuna()
        from stoic.tuning.storage import open_storage, storage_url

        url = storage_url(self.storage)
        return open_storage(url, create=create, kind=self.storage_class, only_read=only_read)

    def load(self, *, only_read: bool = False) -> Study:
        """Load the study."""
        silence_optuna()
        from stoic.tuning.study import load_study

        if self.request is not None:
            return self.of(self.request).load(only_read=only_read)
        return load_study(self.open(only_read=only_read), self.name)

    @cached_property
    def request(self) -> Request | None:
        """Read the study file; None for a name."""
        if (name := self.name) is None or not name.endswith(".toml"):
            return None
        from stoic.tuning.request import Settings, from_file

        settings = Settings() if self.storage is None else Settings(storage=self.storage)
        return from_file(Path(name), settings, by_hand=True)

    def of(self, request: Request) -> Place:
        """Return the place that a study file names."""
        return Place(None, request.name, request.storage, self.storage_class)


def look_with(study: Study, recipe: str | None) -> Recipe:
    """Recipe to analyse a study with: that of the command line, else the study's own."""
    from stoic.integrations.recipe import load, recipe_to_look_with

    if recipe is not None:
        return load(recipe)
    own, instead = recipe_to_look_with(study)
    if instead is not None:
        note(f"note: {instead}")
    return own


def given(study: Study, fix: list[str] | None) -> dict[str, Any]:
    """Parse the fixed parameters of the command line."""
    from stoic.tuning.space import parse_as, parse_named
    from stoic.tuning.stored import known_space

    space = known_space(study) or {}
    # What is possible is for `explain` to say: trials may have had other ranges than the latest one
    return {name: parse_as(space.get(name), text) for name, text in parse_named(fix or ()).items()}


def check_single(study: Study, what: str, instead: str = "leave it out") -> None:
    """Refuse a study with several objectives, for ``what`` works with one."""
    if len(study.directions) > 1:
        raise RefusalError(
            f"{what} works with one objective, and the study {study.study_name!r} has "
            f"{len(study.directions)}: {instead}."
        )


def silence_optuna() -> None:
    """Silence Optuna's reports of trials and experimental parts; print other messages as notes."""
    import warnings

    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    # Messages repeat names and values from the storage, so they are escaped.
    warnings.showwarning = lambda message, *_, **__: note(f"note: {message}")
    optuna.logging.disable_default_handler()
    optuna.logging.enable_propagation()
    root = logging.getLogger()
    # Once, however many commands run in this process
    if not any(isinstance(handler, _Notes) for handler in root.handlers):
        root.addHandler(_Notes())


class _Notes(logging.Handler):
    """Handler that prints log records as escaped notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())
