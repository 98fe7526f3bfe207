"""Contender: a named method under comparison, with its look in pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Generic, ParamSpec, TypeVar

# Okabe and Ito's palette, which people with any colour vision can distinguish.
BLACK, GREY = "#000000", "#999999"
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW = "#E69F00", "#56B4E9", "#F0E442"

P = ParamSpec("P")
L = TypeVar("L")


@dataclass(frozen=True)  # without slots, which a generic class that is frozen cannot have
class Contender(Generic[P, L]):
    """Method under comparison.

    Attributes
    ----------
    name:
        As in tables and legends.
    build:
        Function from what the method knows of a world to a learner.
    colour, line:
        As matplotlib knows them: one colour a family, one line style a variant.
    batch:
        Number of rounds queried at once; more than one for learners that plan ahead.
    module:
        Module that has to be installed besides; ``None`` for none.
    """

    name: str
    build: Callable[P, L]
    colour: str
    line: str = "-"
    batch: int = 1
    module: str | None = None

    @property
    def installed(self) -> bool:
        """True if its library is installed."""
        # Imports nothing: settings of figures ask this when their module is imported
        return self.module is None or find_spec(self.module) is not None
