"""What is believed of each trial, kept in attributes of the study, where a dashboard shows it."""

from __future__ import annotations

import logging

import optuna

from stoic.integrations.optuna import Explanation
from stoic.printable import printable
from stoic.tuning.storage import cause

TRUST = "stoic:trust"  # of a study, and which trials: number of a trial -> how far it is believed

log = logging.getLogger(__name__)

# Of trials in one attribute, about 3 kB: MySQL holds 64 kB, and a whole attribute is written anew.
_TRIALS = 200
_SLACK = 0.005  # what is written is at most so far from what is believed


class Believed:
    """Keeps the trust of a study's trials up to date, in the storage.

    Attributes `stoic:trust:0-199`, `stoic:trust:200-399`, ... of the study hold 200 trials each.
    One of them is written if a trial in it is new, or is believed differently by more than 0.005.

    All of it follows from the results, so a storage that does not take it costs nothing but the
    record: the log says so once, and it is tried again after the next trial.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self._said = False

    def record(self, known: Explanation) -> None:
        """What is believed now."""
        try:
            earlier = self.study.user_attrs
            for name, trust in _attributes(known).items():
                if _differs(earlier.get(name), trust):
                    self.study.set_user_attr(name, trust)
        except Exception as error:  # whatever it is: a dashboard is not worth a campaign
            if not self._said:
                log.warning(
                    "Could not record in the study how far its trials are believed: %s. That is "
                    "for dashboards; results are not affected.",
                    printable(cause(error)),
                )
            self._said = True


def _attributes(known: Explanation) -> dict[str, dict[str, float]]:
    """Name of an attribute -> number of a trial -> its trust."""
    found: dict[str, dict[str, float]] = {}
    for row in known.rows:
        first = row.number - row.number % _TRIALS
        part = found.setdefault(f"{TRUST}:{first}-{first + _TRIALS - 1}", {})
        part[str(row.number)] = round(row.trust, 3)
    return found


def _differs(earlier: object, trust: dict[str, float]) -> bool:
    """Whether what is recorded is not what is believed; it may have been by something else."""
    if not isinstance(earlier, dict) or earlier.keys() != trust.keys():
        return True
    return any(
        not isinstance(earlier[number], int | float) or abs(earlier[number] - now) > _SLACK
        for number, now in trust.items()
    )
