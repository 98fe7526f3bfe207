"""Libraries of others, which are extras, imported when they are used."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from stoic.refusal import RefusalError


def load(what: str, library: str, *modules: str, extra: str = "contest") -> list[Any]:
    """Import modules of a library that something needs; ``RefusalError`` names the extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what they deprecate among themselves
            return [import_module(module) for module in modules]
    except ImportError as error:
        raise RefusalError(
            f"{what} needs {library}, which is not installed: pip install 'stoic[{extra}]'."
        ) from error
