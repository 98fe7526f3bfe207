"""Programs of the examples and studies of the command line, as tests use them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial


def load(path: Path) -> ModuleType:
    """A script as a module of its own."""
    specification = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def stoic(*arguments: str, where: Path) -> str:
    """What the command line prints, run in a directory, with a storage there."""
    environment = {**os.environ, "OPTUNA_STORAGE": f"sqlite:///{where.absolute()}/stoic.db"}
    command = [sys.executable, "-m", "stoic", *arguments]
    return subprocess.run(
        command, cwd=where, env=environment, check=True, capture_output=True, text=True
    ).stdout


def trials_of(storage: str, name: str) -> list[FrozenTrial]:
    """All trials of a study, over a connection that is closed again."""
    opened = RDBStorage(storage)
    try:
        return optuna.load_study(study_name=name, storage=opened).trials
    finally:
        opened.remove_session()
        opened.engine.dispose()
