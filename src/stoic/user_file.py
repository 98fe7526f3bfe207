"""Python file of the user: a recipe, or a figure."""

from __future__ import annotations

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from stoic.refusal import RefusalError


def run_file(path: Path, name: str) -> ModuleType:
    """Run a file as the module of this name; it may import what is beside it.

    Raises
    ------
    RefusalError
        If there is no such file, or it raises.
    """
    if not path.is_file():
        raise RefusalError(f"There is no file {str(path)!r}.")
    spec = spec_from_file_location(name, path)
    assert spec is not None  # of a file that ends in .py
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for the names in annotations
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == spec.origin]
        where = f" in line {lines[-1]}" if lines else ""
        raise RefusalError(f"{path} raised {type(error).__name__}{where}: {error}") from error
    return module
