from __future__ import annotations

from typing import TYPE_CHECKING

from stoic.tuning.views.timeline import draw
from stoic.tuning.views.trust import Trust

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna.study import Study

__all__ = ["plot_trust"]


def plot_trust(study: Study) -> Figure:
    """Plot observed values over the number of the trial, coloured by trust.

    Args:
        study:
            Study with one objective and at least one complete trial, of any sampler.

    Returns:
        A figure of Matplotlib.
    """
    return draw(Trust.of(study))
