"""Constants of the theorems, as one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Literal

from stoic.confidence.base import Confidence
from stoic.confidence.frequentist import check_gain, check_noise_sd, check_norm


def check_corruptions(corruptions: float | str) -> None:
    """Refuse what is no number of corruptions; ``"distrusted"`` is what was counted."""
    given = isinstance(corruptions, Real) and 0.0 <= corruptions < math.inf
    if corruptions != "distrusted" and not given:
        raise ValueError(f"corruptions is a count >= 0 or 'distrusted', got {corruptions!r}.")


@dataclass(frozen=True)
class Theory:
    """Constants of a theorem: what is assumed of f, of the noise and of the corruptions.

    A recipe with a ``Theory()`` uses the constants that its guarantee is proved for; without one it
    uses those that worked in practice. It refuses a number that it has no use for, in theory as in
    practice.

    Parameters
    ----------
    constants:
        ``"theory"``: as proved. ``"tight"``: proved as well, with a smaller enlargement, where the
        recipe has one. ``"practice"``: as run by the authors, with the numbers below.
    norm:
        B, a bound on the norm of f minus the prior mean.
    noise_sd:
        R or sigma, the sub-Gaussian constant of the noise; ``None`` takes the prior's.
    delta:
        Failure probability.
    horizon:
        T; ``None`` takes the recipe's default.
    corruptions:
        T_c, the number of corrupted results. ``"distrusted"`` estimates it by the number of results
        that the defence rejects.
    assumption:
        ``"draw"``: f is drawn from the prior. ``"norm"``: its norm is bounded.
    gain:
        Upper bound on the information gain gamma_T; ``None`` computes one where that is possible.
    """

    constants: Literal["practice", "theory", "tight"] = "theory"
    norm: float = 1.0
    noise_sd: float | None = None
    delta: float = 0.1
    horizon: int | None = None
    corruptions: float | Literal["distrusted"] = 0
    assumption: Literal["draw", "norm"] = "draw"
    gain: float | None = None

    def __post_init__(self) -> None:
        if self.constants not in ("practice", "theory", "tight"):
            raise ValueError(
                f"constants is 'practice', 'theory' or 'tight', got {self.constants!r}."
            )
        if self.horizon is not None and not 1 <= self.horizon < math.inf:
            raise ValueError(f"The theory needs a horizon >= 1, got {self.horizon!r}.")
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"The theory needs 0 < delta < 1, got {self.delta!r}.")
        check_norm(self.norm)
        check_noise_sd(self.noise_sd)
        check_corruptions(self.corruptions)
        check_gain(self.gain)
        if self.assumption not in ("draw", "norm"):
            raise ValueError(f"assumption is 'draw' or 'norm', got {self.assumption!r}.")

    @property
    def proved(self) -> bool:
        """True if a theorem holds for the constants."""
        return self.constants != "practice"

    @property
    def form(self) -> Literal["practice", "theory"]:
        """``"theory"`` if a theorem holds, ``"tight"`` included."""
        return "theory" if self.proved else "practice"

    def only(
        self,
        recipe: str,
        *names: str,
        practice: Sequence[str] = (),
        width: Sequence[str] = (),
        confidence: Confidence | None = None,
    ) -> Theory:
        """Return these constants, if a recipe uses all that are not the default.

        ``names`` are the fields that it uses, and ``"tight"`` if it has such constants; those in
        ``practice`` also with the constants of practice. Those in ``width`` are of its own width,
        which is not used if a ``confidence`` is given.

        Raises
        ------
        ValueError
            If one would be ignored.
        """
        if self.constants == "tight" and "tight" not in names:
            raise ValueError(f"{recipe} has no 'tight' constants: take 'theory' or 'practice'.")
        for field in fields(self):
            given = getattr(self, field.name)
            if field.name == "constants" or given == field.default:
                continue
            if field.name not in (*names, *width):
                raise ValueError(
                    f"{recipe} has no use for {field.name} in its theory: leave it out, got "
                    f"{given!r}."
                )
            if not self.proved and field.name not in practice:
                raise ValueError(
                    f"{recipe} uses {field.name} in theory, and not in practice: leave it out, or "
                    f"take Theory({field.name}=...), got {given!r} with 'practice'."
                )
            if confidence is not None and field.name in width:
                raise ValueError(
                    f"{recipe} uses {field.name} for its own width, and a confidence is given "
                    f"instead: leave one of them out, got {field.name}={given!r}."
                )
        return self


PRACTICE = Theory("practice")
