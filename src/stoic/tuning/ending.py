"""End of a campaign: when the search stops, and what is measured again after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import optuna
from optuna.trial import FrozenTrial

from stoic.integrations.optuna.explaining import explain
from stoic.integrations.optuna.partial import has_value
from stoic.integrations.optuna.settling import remaining_gain
from stoic.refusal import RefusalError, check_at_least

Amount = float | Literal["noise"]
# Results of a search that is settled. The first ten are quasi-random: in eight searches of five
# parameters for a rate with much noise, those that ended by the gain alone, after 10 to 28, had a
# loss of 2.0 of the noise's standard deviation; after 20 or more, and not undecided, 1.2; after all
# 30 it was 1.6.
_FEWEST = 20


@dataclass(frozen=True)
class Ending:
    """End of a campaign.

    Attributes
    ----------
    confirm:
        Largest number of confirming measurements after the search.
    until_settled:
        End the search when what more trials can gain is below this, or below the standard deviation
        of the noise; None to run all trials.
    """

    confirm: int = 0
    until_settled: Amount | None = None

    def __post_init__(self) -> None:
        check_at_least(0, confirm=self.confirm)
        amount = self.until_settled
        if amount is None or amount == "noise":
            return
        if isinstance(amount, str) or not (math.isfinite(amount) and amount > 0.0):
            raise RefusalError(
                f'until_settled must be "noise" or a number above 0 in the unit of the value, '
                f"got {amount!r}."
            )

    def check(self, beside: str | None) -> None:
        """Refuse to confirm, or to settle, beside something that compares settings in another way.

        Parameters
        ----------
        beside:
            What that is, in words; None if there is nothing.
        """
        if beside is not None and self != Ending():
            raise RefusalError(
                "Confirming and settling compare all settings at what was run, so they do not go "
                f"with {beside}: leave out one of them."
            )

    def settled(self, study: optuna.Study, trials: Sequence[FrozenTrial]) -> bool:
        """Return True if more trials of the search are not worth it."""
        if self.until_settled is None:
            return False
        if sum(map(has_value, trials)) < _FEWEST:
            return False
        gain, noise_sd = remaining_gain(study, trials)
        if gain >= (noise_sd if self.until_settled == "noise" else self.until_settled):
            return False
        return explain(study, trials=trials).undecided is None


def read_amount(text: str) -> Amount:
    """Read the AMOUNT of the command line."""
    if text == "noise":
        return "noise"
    try:
        return float(text)
    except ValueError as error:
        raise RefusalError(f"until_settled must be noise or a number, got {text!r}.") from error
