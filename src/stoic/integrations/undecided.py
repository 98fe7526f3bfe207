"""When the results of a study contradict each other too much to say what is best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stoic.integrations.explanation import Row

_FEWEST = 10  # results; with fewer, nothing was learned from one trial about another yet
_REJECTED = 1.0 / 3.0  # of the results: where half are outliers, nobody can say which half
# Of the variance of the trusted results, predicted by leaving each of them out: over four functions
# and 24 studies each at least 0.38 with 5 % noise, 0.56 with one outlier in ten and 0.85 without,
# and at most 0.16 in nine of ten studies where six results in ten were outliers.
_PREDICTED = 1.0 / 3.0


def undecided(rows: Sequence[Row], recommended: float = -np.inf, sign: float = 1.0) -> str | None:
    """Why nothing should be recommended with confidence, in a sentence; ``None`` if all is well.

    Rejected results that are worse than what is ``recommended`` do not count: whether they are true
    decides nothing. ``sign`` is 1 if more is better, else -1.
    """
    rows = [row for row in rows if row.trust >= 0.5 or sign * row.value > sign * recommended]
    finite = [row for row in rows if np.isfinite(row.value) and np.isfinite(row.expected)]
    trusted = [row for row in finite if row.trust >= 0.5]
    if len(finite) < _FEWEST or len(trusted) < 3:
        return None
    settle = "measure the recommended setting and the observed best again, a few times each."
    rejected = len(finite) - len(trusted)
    if rejected >= _REJECTED * len(finite):
        return f"{rejected} of {len(finite)} results contradict the others: {settle}"
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array([row.value for row in trusted])
        error = values - np.array([row.expected for row in trusted])
        total, left = np.mean((values - values.mean()) ** 2), np.mean(error**2)
    if np.isfinite(total) and total > 0.0 and left > (1.0 - _PREDICTED) * total:
        return f"the results of similar settings do not agree with each other: {settle}"
    return None
