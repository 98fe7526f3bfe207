"""Selection of the study of a command, and opening it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoic.cli.printing import note
from stoic.refusal import RefusalError

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage

    from stoic.integrations.recipe import Recipe
    from stoic.tuning.request import Request, Settings


def parse(what: list[str], param: list[str], settings: Settings) -> Request:
    """Parse the request to tune, from a study file or from the command line."""
    from stoic.tuning.request import from_file, from_options

    if len(what) == 1 and what[0].endswith(".toml"):
        if param:
            raise RefusalError("A study file has its own parameters: leave out --param.")
        return from_file(Path(what[0]), settings)
    return from_options(param, what, settings)


def settings(**said: Any) -> Settings:
    """Build settings from the options of the command line."""
    from stoic.tuning.request import Settings

    return Settings(**said)


def written(recipe: str | None) -> Recipe | None:
    """Parse the recipe of the command line, if there is one."""
    from stoic.integrations.recipe import parse

    return None if recipe is None else parse(recipe)


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
    from stoic.tuning.space import parse_fixed
    from stoic.tuning.stored import known_space

    return parse_fixed(fix, known_space(study) or {}) if fix else {}


def open_store(storage: str | None, kind: str | None, *, create: bool) -> BaseStorage:
    """Open the storage of a URL, of the variable OPTUNA_STORAGE, or the default one."""
    from stoic.tuning.storage import open_storage, storage_url

    return open_storage(storage_url(storage), create=create, kind=kind)


def load(
    what: str | None,
    name: str | None,
    storage: str | None,
    kind: str | None,
    *,
    only_read: bool = False,
) -> Study:
    """Load the study of a study file, or of a name given as an argument or as an option."""
    silence_optuna()
    from stoic.tuning.storage import open_storage, storage_url
    from stoic.tuning.study import load_study

    name = one_name(what, name)
    if name is not None and name.endswith(".toml"):
        from stoic.tuning.request import from_file

        request = from_file(Path(name), settings(storage=storage))
        storage, name = request.storage, request.name
    url = storage_url(storage)
    return load_study(open_storage(url, create=False, kind=kind, only_read=only_read), name)


def check_single(study: Study, what: str, instead: str = "leave it out") -> None:
    """Refuse a study with several objectives, for ``what`` works with one."""
    if len(study.directions) > 1:
        raise RefusalError(
            f"{what} works with one objective, and the study {study.study_name!r} has "
            f"{len(study.directions)}: {instead}."
        )


def one_name(what: str | None, name: str | None) -> str | None:
    """Return the name of a study, which may be given as an argument or as --study-name."""
    if what is not None and name is not None and what != name:
        raise RefusalError(f"Which study is meant, {what!r} or {name!r}? Leave out one of them.")
    return what or name


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
