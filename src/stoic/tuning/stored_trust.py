"""Trust of each trial, stored in attributes of the study, where a dashboard shows it."""

from __future__ import annotations

import logging
import math

import optuna

from stoic.integrations.optuna import Explanation
from stoic.printable import printable
from stoic.tuning.storage import cause

TRUST = "stoic:trust"  # of a study, and which trials: number of a trial -> its trust

log = logging.getLogger(__name__)

# Trials in one attribute, about 3 kB: MySQL holds 64 kB, and each write replaces all of it.
_TRIALS = 200
_SLACK = 0.005  # largest difference between stored and current trust


class TrustRecorder:
    """Writer of the trials' current trust to the storage.

    Attributes ``stoic:trust:0-199``, ``stoic:trust:200-399``, ... of the study hold 200 trials
    each. One of them is written if a trial in it is new, or if its trust has changed by more than
    0.005.

    The results determine all of it, so a storage that refuses it costs nothing but the record: the
    log says so once, and the next trial tries again.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self._warned = False

    def record(self, known: Explanation) -> None:
        """Store the trust that is new or has changed."""
        try:
            earlier = self.study.user_attrs
            for name, trust in _attributes(known).items():
                if _differs(earlier.get(name), trust):
                    self.study.set_user_attr(name, trust)
        except Exception as error:  # any error: a dashboard must not end a campaign
            if not self._warned:
                log.warning(
                    "Could not record the trust of the trials in the study: %s. That is "
                    "for dashboards; results are not affected.",
                    printable(cause(error)),
                )
            self._warned = True


def _attributes(known: Explanation) -> dict[str, dict[str, float]]:
    """Name of an attribute -> number of a trial -> trust."""
    found: dict[str, dict[str, float]] = {}
    for row in known.rows:
        if math.isnan(row.trust):  # not judged
            continue
        first = row.number - row.number % _TRIALS
        part = found.setdefault(f"{TRUST}:{first}-{first + _TRIALS - 1}", {})
        # With several objectives the least trust of a trial's values.
        earlier = part.get(str(row.number), 1.0)
        part[str(row.number)] = min(earlier, round(row.trust, 3))
    return found


def _differs(earlier: object, trust: dict[str, float]) -> bool:
    """Return True if the stored trust is not the current one; others may have written it."""
    if not isinstance(earlier, dict) or earlier.keys() != trust.keys():
        return True
    return any(
        not isinstance(earlier[number], int | float) or abs(earlier[number] - now) > _SLACK
        for number, now in trust.items()
    )
