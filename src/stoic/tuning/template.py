"""Commands with ``{name}`` where a parameter goes."""

from __future__ import annotations

import os
import re
import shlex
import string
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoic.refusal import RefusalError

RESERVED = {
    "python": "the interpreter that runs stoic",
    "trial": "the number of the trial",
    "repeat": "the number of the run in its trial",
}


# Whole arguments that only a shell understands: operators, redirections, ~ and variables.
_SHELL = re.compile(r"\|\|?|&&?|;|\d?(>>?|<)(&\d)?.*|~(/.*)?|\$\w+(/.*)?|\$\(.*", re.DOTALL)
_OPTION = re.compile(r"--?[A-Za-z]")  # and no number
_NONE = "There is no program to run: give a command, as in -- python train.py."
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")


@dataclass(frozen=True)
class Template:
    """Arguments of a program, with placeholders.

    ``{name}`` stands for the value of a parameter, anywhere inside an argument and as often as
    wanted; ``{{`` and ``}}`` are braces. ``{python}``, ``{trial}`` and ``{repeat}`` are always
    there (``RESERVED``). No shell is involved: an argument stays one argument, whatever the value.

    Attributes
    ----------
    arguments:
        The program and its arguments, as written; empty where trials are run by hand.
    """

    arguments: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.arguments and not self.arguments[0]:
            raise RefusalError(_NONE)
        for argument in self.arguments:
            _pieces(argument)
            if _SHELL.fullmatch(argument) and not _runs_a_shell(self.arguments):
                raise RefusalError(
                    f"{argument!r} would be given to the program as it is, since no shell runs: "
                    "write sh -c '...' around a command that needs one."
                )

    @classmethod
    def parse(cls, command: str | Sequence[str]) -> Template:
        """Parse a list of arguments, or one text that is split as a POSIX shell would split it."""
        if not isinstance(command, str):
            return cls(tuple(command))
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise RefusalError(f"Cannot split the command {command!r}: {error}.") from error
        return cls(tuple(arguments))

    @property
    def placeholders(self) -> set[str]:
        """Names between braces, the reserved ones included."""
        return {
            name for argument in self.arguments for _, name in _pieces(argument) if name is not None
        }

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse no program, an unused parameter, and a placeholder that is no parameter."""
        if not self.arguments:
            raise RefusalError(_NONE)
        names = set(parameters)
        for name in sorted(names & RESERVED.keys()):
            raise RefusalError(f"{name!r} cannot name a parameter: {{{name}}} is {RESERVED[name]}.")
        for name in sorted(names - self.placeholders):
            raise RefusalError(
                f"The parameter {name!r} is not used: the command {self} has no {{{name}}}."
            )
        for name in sorted(self.placeholders - names - RESERVED.keys()):
            raise RefusalError(
                f"The command has a placeholder {{{name}}} but there is no parameter {name!r}; "
                "for a brace itself write {{ or }}."
            )

    def fill(self, values: Mapping[str, Any]) -> list[str]:
        """Return the arguments with every placeholder replaced by its value.

        An argument after the first with a parameter that has no value, since its branch lacks it,
        is left out, and so is the option that a placeholder alone is the value of.
        """
        filled: list[str] = []
        option = False  # the argument before, filled last
        for argument in self.arguments:
            pieces = _pieces(argument)
            names = [name for _, name in pieces if name is not None]
            if filled and not values.keys() >= set(names):
                if option and argument == f"{{{names[0]}}}":
                    filled.pop()
                option = False
                continue
            texts = (text + _written(values.get(name, "") if name else "") for text, name in pieces)
            filled.append("".join(texts))
            option = not names and bool(_OPTION.match(argument)) and len(filled) > 1
        return filled

    def __str__(self) -> str:
        return " ".join(
            argument
            if argument and not set(argument) & set(" \t\n\"'\\")
            else shlex.quote(argument)
            for argument in self.arguments
        )


def fixed_values(trial: int, repeat: int = 0) -> dict[str, Any]:
    """Return the values of the ``RESERVED`` placeholders; ``repeat`` is that of a trial's runs."""
    return {"python": sys.executable, "trial": trial, "repeat": repeat}


def _written(value: Any) -> str:
    """Write a value so that it reads back the same; argparse takes -1e-05 for an option."""
    text = str(value)
    negative = isinstance(value, float) and value < 0.0 and "e" in text
    return np.format_float_positional(value, trim="0") if negative else text


def _runs_a_shell(arguments: Sequence[str]) -> bool:
    return "-c" in arguments and any(os.path.basename(word) in _SHELLS for word in arguments)


def _pieces(argument: str) -> list[tuple[str, str | None]]:
    """Split into (literal text, placeholder after it or None)."""
    try:
        parsed = list(string.Formatter().parse(argument))
    except ValueError as error:
        raise RefusalError(
            f"Cannot read the braces of {argument!r}: for a brace itself write {{{{ or }}}}."
        ) from error
    pieces = []
    for text, name, form, conversion in parsed:
        if name is not None and (not name or form or conversion):
            raise RefusalError(
                f"Cannot read the braces of {argument!r}: a placeholder is {{name}} and nothing "
                "else; for a brace itself write {{ or }}."
            )
        pieces.append((text, name))
    return pieces
